"""A worker process: takes runs as lines of JSON, gives progress and measures as lines of JSON.

`python -m lapwing.figures.worker`, one thread each. It ends when its standard input does, so that it
does not outlive the process that feeds it, however that one dies.
"""

import json
import os
import queue
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, TextIO

from lapwing.errors import LapwingError, LapwingWarning
from lapwing.figures.grid import Run

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""What the environment must hold before NumPy and JAX are imported."""
COMPILED = "LAPWING_COMPILED"
"""The environment variable that names the folder of compiled programs."""
SECONDS_BETWEEN_REPORTS = 0.5


def main() -> None:
    """Work until there is no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not come between the answers
    warnings.simplefilter("ignore", LapwingWarning)
    orders = _orders()
    import jax

    jax.config.update("jax_compilation_cache_dir", os.environ[COMPILED])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
    while True:
        order = orders.get()
        _answer(answers, _execute(order, answers))


def _orders() -> "queue.Queue[dict[str, Any]]":
    """Lines of standard input as they come; when there are no more the process ends at once."""
    waiting: queue.Queue[dict[str, Any]] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return waiting


def _execute(order: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    from lapwing.figures import find_study

    last = 0.0

    def on_progress(phase: str, done: int, total: int, metrics: dict[str, float]) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            _answer(answers, {"progress": [phase, done, total]})

    run = Run(**order["run"])
    try:
        measured = find_study(run.figure).execute(run, Path(order["folder"]), on_progress)
    except LapwingError as error:
        return {"error": str(error)}
    except Exception as error:  # whatever it is, the other runs go on
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return {"error": f"{type(error).__name__}: {error} ({where})"}
    return {"measures": [list(measure) for measure in measured.measures], "seconds": measured.seconds}


def _answer(answers: TextIO, content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
