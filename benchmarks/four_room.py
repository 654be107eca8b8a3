"""How good and how quick the defaults are on FourRoom, and how much quicker than the paper's recipe."""

import time
from typing import Any

import numpy as np

from benchmarks.rows import Row
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.estimators import make_estimator
from lapwing.laplacian.evaluate import evaluate, exact_spectrum, objective_gap
from lapwing.laplacian.learn import learn_resolved
from lapwing.laplacian.representation import embed_batch
from lapwing.laplacian.ritz import moments_of_chain, rayleigh_ritz, unrotated
from lapwing.laplacian.target import Target, open_target
from lapwing.laplacian.train import train, untrained_encoder
from lapwing.settings.learn import LearnSettings, ResolvedSettings


class GapClock:
    """Stands in for a run folder while `train` runs: when the gap falls to a level."""

    def __init__(self, target: Target, settings: ResolvedSettings, level: float):
        truth = target.truth()
        assert truth is not None
        self.target, self.settings, self.level = target, settings, level
        self.spectrum = exact_spectrum(truth, settings.dim)
        self.reached = float("inf")

    def restore(self, like):
        return None

    def record(self, row):
        pass

    def keep(self, state, step, seconds, *, last):
        if self._gap(state.encoder) <= self.level:
            self.reached = min(self.reached, seconds)

    def _gap(self, encoder) -> float:
        phi = embed_batch(encoder, self.target.states)
        moments = moments_of_chain(self.target.one_step, phi)
        solve = rayleigh_ritz if self.settings.rotate else unrotated
        functions = np.insert(phi, 0, 1.0, axis=1) @ solve(*moments, self.settings.dim).coefficients
        return objective_gap(self.spectrum, functions, self.settings.dim)


def seconds_to_gap(settings: LearnSettings, level: float) -> float:
    """Seconds until the gap is at most `level`: preparing and learning, without compilation."""
    target = open_target("FourRoom", settings)
    make_estimator(target, resolve(settings, target), untrained_encoder(target, resolve(settings, target)))
    target = open_target("FourRoom", settings)  # anew, so that only what is compiled is kept
    began = time.perf_counter()
    resolved = resolve(settings, target)
    resolving = time.perf_counter() - began
    clock = GapClock(target, resolved, level)
    trained = train(target, resolved, checkpoints=clock)
    return resolving + trained.prepare_seconds + clock.reached


def learned(settings: LearnSettings, source="FourRoom") -> tuple[dict[str, Any], float]:
    """The measures of a representation and the seconds it took to learn."""
    target = open_target(source, settings)
    representation, trained = learn_resolved(target, resolve(settings, target))
    return evaluate(representation, target), trained.learn_seconds


def measure() -> list[Row]:
    result, seconds = learned(LearnSettings())
    true, _ = learned(LearnSettings(true_chain=True))
    fifty, _ = learned(LearnSettings(dim=50))
    ours_to_gap = seconds_to_gap(LearnSettings(), 0.4)
    paper_to_gap = seconds_to_gap(LearnSettings.from_keywords({"preset": "paper"}), 0.4)
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
