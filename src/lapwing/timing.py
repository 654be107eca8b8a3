"""Timing with and without the time that JAX needs to trace and compile.

Compilation depends on the machine and on earlier compilations, not on the method that is measured.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import jax

_COMPILING = "/jax/core/compile"


@dataclass
class Stopwatch:
    """What a block has taken, once it is done."""

    working: float = 0.0
    """Seconds without compilation."""
    compiling: float = 0.0
    """Seconds of tracing and compiling."""


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Time a block.

    Example:
        >>> with stopwatch() as watch:
        ...     total = sum(range(1000))
        >>> watch.working > 0, watch.compiling
        (True, 0.0)
    """
    watch, running = Stopwatch(), _running()
    running[id(watch)] = []
    began = time.perf_counter()
    try:
        yield watch
    finally:
        watch.compiling = _covered(running.pop(id(watch)))
        watch.working = time.perf_counter() - began - watch.compiling


@cache
def _running() -> dict[int, list[tuple[float, float]]]:
    """For each stopwatch that runs, begin and end of all that JAX has compiled since it was started."""
    running: dict[int, list[tuple[float, float]]] = {}

    def note(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.startswith(_COMPILING):
            now = time.perf_counter()
            for spans in tuple(running.values()):
                spans.append((now - duration_secs, now))

    jax.monitoring.register_event_duration_secs_listener(note)
    return running


def _covered(spans: list[tuple[float, float]]) -> float:
    """The length of the union: one trace may contain another."""
    total, end = 0.0, -float("inf")
    for begin, finish in sorted(spans):
        total += max(0.0, finish - max(begin, end))
        end = max(end, finish)
    return total
