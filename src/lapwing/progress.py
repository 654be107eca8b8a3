"""The callbacks through which long computations report progress."""

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
    with begun_and_done(within(phase, on_progress)):
        yield


@contextmanager
def begun_and_done(on_chunk: OnChunk | None) -> Iterator[None]:
    """The same to the callback of a phase."""
    report_begin(on_chunk)
    yield
    if on_chunk:
        on_chunk(1, 1, {})


def report_begin(on_chunk: OnChunk | None, total: int = 1) -> None:
    """Report that a phase has begun: its first step may be a long time coming."""
    if on_chunk:
        on_chunk(0, total, {})
