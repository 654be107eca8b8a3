"""Warnings about environments in forked processes while JAX has threads."""

import multiprocessing
import warnings
from multiprocessing.process import BaseProcess

from gymnasium.vector import AsyncVectorEnv, VectorEnv

from lapwing.errors import LapwingWarning


def warn_of_forks(envs: object, *, stacklevel: int = 2) -> None:
    """Warn of workers that may hang, for they were forked while JAX may have been running.

    JAX warns of the fork as well, and names no remedy. Workers that were forked before JAX started are safe;
    where φ is there it has most likely started before them.

    Args:
        envs: a vector of environments, or anything else.
        stacklevel: as `warnings.warn` takes it, counted from the caller.
    """
    if not (isinstance(envs, VectorEnv) and isinstance(envs.unwrapped, AsyncVectorEnv)):
        return
    if any(map(_is_forked, envs.unwrapped.processes)) and _jax_runs():
        warnings.warn(
            "AsyncVectorEnv forked its processes, and these may hang, for JAX has threads; make it with "
            "context='forkserver'",
            LapwingWarning,
            stacklevel=stacklevel + 1,
        )


def _is_forked(worker: BaseProcess) -> bool:
    return (getattr(worker, "_start_method", None) or multiprocessing.get_start_method()) == "fork"


def _jax_runs() -> bool:
    """Whether JAX has started its threads; it has no public way to ask."""
    try:
        from jax._src.xla_bridge import backends_are_initialized
    except ImportError:
        return False
    return backends_are_initialized()
