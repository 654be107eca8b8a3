"""The loop of every training, with steps that only count."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from lapwing.errors import NonFiniteError
from lapwing.laplacian.loop import Progress, restored, run_chunks

LAST = 10


class Kept:
    """Checkpoints in memory."""

    def __init__(self, found: Any = None):
        self.found, self.rows, self.kept = found, list[dict](), list[tuple]()

    def restore(self, like: Any):
        return self.found

    def record(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def keep(self, state: Any, step: int, seconds: float, *, last: bool) -> None:
        self.kept.append((state, step, last))


def advance(state: int, step: int) -> tuple[int, int, dict[str, float]]:
    end = min(step + 3, LAST)
    return state + end - step, end, {"loss": 1.0}


def measure(state: int, step: int) -> tuple[int, dict[str, float]]:
    return state, {"return": float(state)}


def not_finite(step: int) -> NonFiniteError:
    return NonFiniteError(f"at step {step}")


def run(progress: Progress, *, steps: Any = advance, measures: Any = measure, **how: Any) -> Progress:
    return run_chunks(progress, LAST, steps, measures, not_finite, **how)


def test_every_chunk_is_recorded_kept_and_reported():
    kept, calls = Kept(), []
    found = run(Progress(100), checkpoints=kept, on_chunk=lambda *call: calls.append(call))
    assert (found.state, found.step) == (110, 10)
    assert kept.kept == [(103, 3, False), (106, 6, False), (109, 9, False), (110, 10, True)]
    assert [(row["step"], row["return"], row["loss"]) for row in kept.rows] == [
        (step, 100.0 + step, 1.0) for step in (3, 6, 9, 10)
    ]
    assert calls == [(row["step"], 10, row) for row in kept.rows]
    assert found.seconds == kept.rows[-1]["seconds"] > 0
    assert all(row["steps_per_second"] > 0 for row in kept.rows)


def test_from_a_checkpoint():
    kept = Kept((106, 6, 5.0))
    progress = restored(kept, 0)
    assert progress == Progress(106, 6, 5.0)
    found = run(progress, checkpoints=kept)
    assert [row["step"] for row in kept.rows] == [9, 10]
    assert found.seconds > 5
    assert run(Progress(110, 10, 7.0)) == Progress(110, 10, 7.0), "a finished one stays as it is"
    assert restored(Kept(), 0) is None
    assert restored(None, 0) is None


def test_where_no_evaluation_is_due_nothing_is_recorded():
    kept, calls = Kept(), []
    run(
        Progress(0),
        measures=lambda state, step: measure(state, step) if step in (6, 10) else None,
        checkpoints=kept,
        on_chunk=lambda *call: calls.append(call),
    )
    assert [row["step"] for row in kept.rows] == [call[0] for call in calls] == [6, 10]
    assert [step for _, step, _ in kept.kept] == [3, 6, 9, 10]


def test_what_cannot_be_resumed_from_is_not_kept():
    kept = Kept()
    run(Progress(0), checkpoints=kept, resumable=lambda: False)
    assert kept.kept == []
    assert len(kept.rows) == 4


@pytest.mark.parametrize("part", ["loss", "return"])
def test_metrics_that_are_not_finite_end_it_before_anything_is_kept(part):
    def steps(state, step):
        state, end, _ = advance(state, step)
        return state, end, {"loss": float("inf") if part == "loss" and end == 6 else 1.0}

    def measures(state, step):
        return state, {"return": float("nan") if part == "return" and step == 6 else 1.0}

    kept = Kept()
    with pytest.raises(NonFiniteError, match="at step 6"):
        run(Progress(0), steps=steps, measures=measures, checkpoints=kept)
    assert [row["step"] for row in kept.rows] == [step for _, step, _ in kept.kept] == [3]


def test_seconds_leave_evaluation_and_compilation_out():
    def steps(state, step):
        jax.jit(lambda x: jnp.sin(x) * step + state)(jnp.ones(3))  # compiled each time
        return advance(state, step)

    def measures(state, step):
        time.sleep(0.05)
        return measure(state, step)

    began = time.perf_counter()
    found = run(Progress(0), steps=steps, measures=measures)
    assert 0 < found.seconds < time.perf_counter() - began - 4 * 0.05
