"""How good and how quick the defaults are on FourRoom, and how much quicker than the paper's recipe."""

from typing import Any

from benchmarks.rows import Row
from lapwing.evaluation import evaluate, exact_spectrum, objective_gap
from lapwing.learning import train
from lapwing.representation import embed_batch
from lapwing.resolving import resolve
from lapwing.settings import LearnSettings
from lapwing.targets import Target, open_target
from lapwing.workflow import represent


class GapClock:
    """Stands in for a run folder while `train` runs: how long until φ's gap falls to a level."""

    def __init__(self, target: Target, dim: int, level: float):
        truth = target.truth()
        assert truth is not None
        self.target, self.dim, self.level = target, dim, level
        self.spectrum = exact_spectrum(truth, dim)
        self.reached: float | None = None

    def restore(self, like):
        return None

    def record(self, row):
        pass

    def keep(self, state, step, seconds, *, last):
        if self.reached is None and self._gap(state.encoder) <= self.level:
            self.reached = seconds

    def _gap(self, encoder) -> float:
        return objective_gap(self.spectrum, embed_batch(encoder, self.target.states), self.dim)


def seconds_to_gap(target: Target, settings: LearnSettings, level: float) -> float:
    """Seconds of learning, without compilation and measuring, until the gap is at most `level`."""
    resolved = resolve(settings, target)
    clock = GapClock(target, resolved.dim, level)
    train(target, resolved, checkpoints=clock)
    return float("inf") if clock.reached is None else clock.reached


def learned(settings: LearnSettings, source="FourRoom") -> tuple[dict[str, Any], float]:
    """The measures of a representation and the seconds it took to learn."""
    target = open_target(source, settings)
    resolved = resolve(settings, target)
    trained = train(target, resolved)
    return evaluate(represent(target, resolved, trained), target), trained.learn_seconds


def measure() -> list[Row]:
    result, seconds = learned(LearnSettings())
    true, _ = learned(LearnSettings(true_chain=True))
    fifty, _ = learned(LearnSettings(dim=50))
    target = open_target("FourRoom", LearnSettings())
    paper = LearnSettings.from_keywords({"preset": "paper"})
    ours_to_gap = seconds_to_gap(target, LearnSettings(), 0.4)
    paper_to_gap = seconds_to_gap(target, paper, 0.4)
    floor = f"floor of the data {result['cosine_floor']:.4f}"
    return [
        Row("FourRoom, gap", result["gap"], 0.01, True, f"random basis {result['gap_random']:.2f}"),
        Row(
            "FourRoom, cosine below the floor",
            result["cosine_floor"] - result["cosine_mean"],
            0.01,
            True,
            floor,
        ),
        Row("FourRoom, seconds of learning", seconds, 5, True),
        Row("FourRoom, true chain, cosine", true["cosine_mean"], 0.999),
        Row("FourRoom, d=50, gap", fifty["gap"], 0.3, True),
        Row(
            "time to gap 0.4, paper's recipe over defaults",
            paper_to_gap / ours_to_gap,
            30,
            note=f"{paper_to_gap:.1f} s / {ours_to_gap:.2f} s",
        ),
    ]
