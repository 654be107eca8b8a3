"""A task for a worker: a function with arguments; and the worker's answer."""

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lapwing.errors import ConfigError, LapwingError, LapwingWarning
from lapwing.progress import OnProgress

Message = dict[str, Any]
"""From a worker: `progress`, `result`, `error`, `refused` (as any task would be), or how it ended (`died`,
`lost`)."""
Step = tuple[str, int, int]
"""A phase, and how far it is: done of all."""

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""What a worker's environment must hold before NumPy and JAX are imported."""
SECONDS_BETWEEN_REPORTS = 0.5


class GuardError(ConfigError):
    """A script that cannot be read by a worker."""


@dataclass(frozen=True)
class Task:
    """`function(**arguments, on_progress=…)` for a worker, which gives something that JSON can hold."""

    function: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    run: Any = None
    """What the caller knows the task by."""


def answer(
    function: Callable[..., Any], arguments: dict[str, Any], on_step: Callable[[Step], None]
) -> Message:
    """Call the function; whatever goes wrong is an answer too, so that the other tasks continue."""
    warnings.simplefilter("ignore", LapwingWarning)
    try:
        return {"result": function(**arguments, on_progress=_seldom(on_step))}
    except GuardError as error:
        return {"refused": str(error)}
    except LapwingError as error:
        return {"error": str(error)}
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return {"error": f"{type(error).__name__}: {error} ({where})"}


def keep_compiled(folder: str) -> None:
    """Share compiled programs through this folder with the other workers on such a CPU."""
    import jax

    from lapwing.compilation import machine_digest

    jax.config.update("jax_compilation_cache_dir", str(Path(folder) / machine_digest()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")


def _seldom(on_step: Callable[[Step], None]) -> OnProgress:
    """A callback that reports at most every half a second."""
    last = 0.0

    def on_progress(phase: str, done: int, total: int, metrics: dict[str, float]) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            on_step((phase, done, total))

    return on_progress
