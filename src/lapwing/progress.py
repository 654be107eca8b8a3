"""The callbacks that long work reports its progress to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnChunk = Callable[[int, int, dict[str, float]], None]
"""Called with (done, all, metrics) within one phase."""
OnProgress = Callable[[str, int, int, dict[str, float]], None]
"""Called with (phase, done, all, metrics)."""


def within(phase: str, on_progress: OnProgress | None) -> OnChunk | None:
    """What reports the progress of one phase, if anybody asks."""
    return on_progress and (lambda *chunk: on_progress(phase, *chunk))


@contextmanager
def uncounted(phase: str, on_progress: OnProgress | None) -> Iterator[None]:
    """Report the beginning and the end of a phase whose steps cannot be counted."""
    if on_progress:
        on_progress(phase, 0, 1, {})
    yield
    if on_progress:
        on_progress(phase, 1, 1, {})
