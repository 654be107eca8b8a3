"""The training loop: chunks of steps with timing, metrics, records and checkpoints."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax

from lapwing.errors import NonFiniteError
from lapwing.progress import OnChunk
from lapwing.timing import stopwatch

Metrics = dict[str, float]


@runtime_checkable
class Checkpoints(Protocol):
    """Where the state between chunks, any tree of arrays, is kept; `runs.RunFolder` is one."""

    def restore(self, like: Any) -> tuple[Any, int, float] | None:
        """The last whole state, its step and the seconds trained so far."""
        ...

    def keep(self, state: Any, step: int, seconds: float, *, last: bool) -> None:
        """Offer a state to be kept."""
        ...

    def record(self, row: dict[str, Any]) -> None:
        """Keep one row of metrics."""
        ...


class Progress(NamedTuple):
    """How far a training has come."""

    state: Any
    step: int = 0
    seconds: float = 0.0
    """Of training alone, without compilation and evaluation."""


def restored(checkpoints: Checkpoints | None, like: Any) -> Progress | None:
    """The progress that a checkpoint holds, if there is one of a state like this."""
    found = checkpoints.restore(like) if checkpoints else None
    return None if found is None else Progress(*found)


def run_chunks(
    progress: Progress,
    last: int,
    advance: Callable[[Any, int], tuple[Any, int, Metrics]],
    measure: Callable[[Any, int], tuple[Any, Metrics] | None],
    not_finite: Callable[[int], NonFiniteError],
    *,
    checkpoints: Checkpoints | None = None,
    on_chunk: OnChunk | None = None,
    resumable: Callable[[], bool] = lambda: True,
) -> Progress:
    """Train until the step `last`.

    Args:
        progress: what to start from.
        last: the last step.
        advance: `(state, step) -> (state, end, metrics)`, one chunk of steps; this is what is timed.
        measure: `(state, step) -> (state, metrics)`, the evaluation after it; None: not due yet.
        not_finite: the error for metrics that are not finite at a step.
        checkpoints: where metrics and states are kept.
        on_chunk: called after each evaluation with (step, last step, metrics).
        resumable: whether training could be resumed from the state of now.
    """
    state, step, seconds = progress
    before, before_seconds = step, seconds
    while step < last:
        with stopwatch() as watch:
            state, step, row = advance(state, step)
            jax.block_until_ready(state)
        seconds += watch.working
        measured = measure(state, step)
        if measured is not None:
            state, more = measured
            row |= more | {"step": step, "seconds": seconds}
            row["steps_per_second"] = (step - before) / max(seconds - before_seconds, 1e-9)
            if not all(map(math.isfinite, row.values())):
                raise not_finite(step)
            before, before_seconds = step, seconds
            if checkpoints:
                checkpoints.record(row)
        if checkpoints and resumable():
            checkpoints.keep(state, step, seconds, last=step == last)
        if on_chunk and measured is not None:
            on_chunk(step, last, row)
    return Progress(state, step, seconds)
