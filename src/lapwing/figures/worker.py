"""Worker processes: they take runs as lines of JSON, and give progress and measures as lines of JSON.

`python -m lapwing.figures.worker` is one, with one thread; `Pool` starts and feeds them. A worker ends when
its standard input does, so that it does not outlive the process that feeds it, however that one dies.
"""

import dataclasses
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO

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
DIED = {"died": True}
"""The last message of a worker."""


@dataclass
class Worker:
    """A process, and its run."""

    process: subprocess.Popen
    log: IO[str]
    """What it wrote to standard error."""
    run: Run | None = None
    progress: tuple[str, int, int] = ("starting", 0, 0)

    def start(self, run: Run, folder: Path) -> None:
        """Send a run to the process."""
        self.run, self.progress = run, ("starting", 0, 0)
        task = {"run": dataclasses.asdict(run), "folder": str(folder)}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died, which the pool will receive

    def kill(self) -> None:
        """End the process and close its files; its output is closed by the thread that reads it."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # a task that was not read
            self.process.stdin.close()
        self.log.close()

    def exit_message(self) -> str:
        """Its exit status, and the last line of its log."""
        status = self.process.wait()
        self.log.seek(0)
        last = self.log.read().strip().splitlines()[-1:]
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"the worker process {how}" + (f" ({last[0]})" if last else "")


class Pool:
    """As many workers as wanted; one that dies is replaced when it is next needed."""

    def __init__(self, jobs: int, compiled: Path):
        """Workers are started by `idle`, when there is work; `compiled` is where they share programs."""
        self._jobs, self._compiled = jobs, compiled
        self._messages: queue.Queue[tuple[Worker, dict[str, Any]]] = queue.Queue()
        self.workers: list[Worker] = []
        self._dead: list[Worker] = []

    def idle(self) -> Worker | None:
        """A worker without a run, or None if all are busy."""
        for worker in self.workers:
            if worker.run is None:
                return worker
        return self._start() if len(self.workers) < self._jobs else None

    def receive(self, seconds: float) -> tuple[Worker, dict[str, Any]] | None:
        """The next message of a worker, or None if none comes within so many seconds."""
        try:
            worker, message = self._messages.get(timeout=seconds)
        except queue.Empty:
            return None
        if message is DIED:
            self.workers.remove(worker)
            self._dead.append(worker)
        return worker, message

    def close(self) -> None:
        """End all workers."""
        for worker in [*self.workers, *self._dead]:
            worker.kill()

    def _start(self) -> Worker:
        log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long-lived as the worker
        process = subprocess.Popen(
            [sys.executable, "-m", "lapwing.figures.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | ONE_THREAD | {COMPILED: str(self._compiled)},
        )
        worker = Worker(process, log)
        self.workers.append(worker)
        threading.Thread(target=self._read_messages, args=(worker,), daemon=True).start()
        return worker

    def _read_messages(self, worker: Worker) -> None:
        assert worker.process.stdout is not None
        try:
            with worker.process.stdout as lines:
                for line in lines:
                    self._messages.put((worker, json.loads(line)))
        except ValueError:
            worker.process.kill()  # a message was cut short, so it is dying anyway
        finally:
            self._messages.put((worker, DIED))


def main() -> None:
    """Do the runs of standard input until it ends."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not come between the messages
    warnings.simplefilter("ignore", LapwingWarning)
    tasks = _read_tasks()
    import jax

    jax.config.update("jax_compilation_cache_dir", os.environ[COMPILED])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
    while True:
        task = tasks.get()
        _send(output, _execute(task, output))


def _read_tasks() -> "queue.Queue[dict[str, Any]]":
    """Lines of standard input as they come; at its end the process ends at once."""
    waiting: queue.Queue[dict[str, Any]] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return waiting


def _execute(task: dict[str, Any], output: TextIO) -> dict[str, Any]:
    from lapwing.figures import find_study

    last = 0.0

    def on_progress(phase: str, done: int, total: int, metrics: dict[str, float]) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            _send(output, {"progress": [phase, done, total]})

    run = Run(**task["run"])
    try:
        measured = find_study(run.figure).execute(run, Path(task["folder"]), on_progress)
    except LapwingError as error:
        return {"error": str(error)}
    except Exception as error:  # whatever it is, the other runs continue
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return {"error": f"{type(error).__name__}: {error} ({where})"}
    return {"measures": [list(measure) for measure in measured.measures], "seconds": measured.seconds}


def _send(output: TextIO, content: dict[str, Any]) -> None:
    output.write(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
