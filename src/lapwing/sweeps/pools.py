"""From the user's `on` argument to a pool of workers."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lapwing.errors import ConfigError
from lapwing.sweeps.local import LocalPool
from lapwing.sweeps.work import Pool

MakePool = Callable[[int | None, Path], Pool]
"""From the number of workers (None: one for each core) and the folder of their compiled programs."""


def pool_maker(on: str) -> MakePool:
    """What makes the workers: `local` processes, or `ray` with the address of a cluster."""
    if not isinstance(on, str):
        raise ConfigError(f"on must be local, ray or ray:HOST:PORT, not {on!r}")
    if on == "local":
        return lambda jobs, compiled: LocalPool(jobs or cores(), compiled)
    kind, _, address = on.partition(":")
    if kind != "ray":
        raise ConfigError(f"on must be local, ray or ray:HOST:PORT, not {on!r}")
    from lapwing.sweeps.on_ray import RayPool

    return partial(RayPool, address=address or None)


def cores() -> int:
    """The cores that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
