"""A second opinion: eigenfunctions over bumps that have nothing to do with φ, fitted to the same episodes.

What φ never learned is in no combination of its columns, so no refit over φ can miss it. Another basis can:
every basis gives upper bounds of the eigenvalues, so where the reference has lower ones on held-out episodes,
φ lacks something; and a function that both bases have is hardly the doing of either.
"""

from dataclasses import dataclass

import numpy as np

from lapwing.data.experience import Experience
from lapwing.laplacian.agreement import Counted
from lapwing.laplacian.closed_form import CUTOFFS, SOME_PAIRS, Basis, Reduction, Study, pair_batches
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.ritz import Ritz, mean_moments, pair_moments, rayleigh_ritz

BUMPS = 200
"""Another number than those that are tried for φ."""
WIDTHS = (1.5, 3.0)
SLOWNESSES = (0.5, 0.0)
"""Widths and slownesses that are tried, where φ does not say."""
MOST_PAIRS = 100_000
"""At most so many pairs are fitted to."""
MOST_NUMBERS = 100_000_000
"""Fewer, where their observations would be more numbers than this."""
SPARE = 0.5
"""So many functions more than φ has, as a share: those at the end may stand in another order."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Eigenfunctions of observations, over bumps."""

    reduction: Reduction
    basis: Basis
    cutoff: float
    learned: Counted
    """Moments of the columns on the episodes learned from."""
    ritz: Ritz

    def columns(self, observations: np.ndarray) -> np.ndarray:
        """What is combined to eigenfunctions, one row an observation; the constant is not among them."""
        return self.basis(self.reduction(observations))


def fit_reference(learned_from: Experience, representation: Representation) -> Reference:
    """The eigenfunctions of what was learned from: as many as φ has, and some more.

    If φ consists of bumps too, the reference has the same coordinates, and other bumps.
    """
    settings, dim = representation.config.get("settings", {}), representation.dim
    numbers = max(1, int(np.prod(learned_from.observation_shape)))
    most = max(1_000, min(MOST_PAIRS, MOST_NUMBERS // numbers))
    study = Study(learned_from, dim, settings.get("seed", 0) + 1, most_pairs=min(SOME_PAIRS, most))
    slowness = settings.get("slowness")
    trials = [
        study.trial(each, min(BUMPS, study.most_bumps), WIDTHS, CUTOFFS)
        for each in (SLOWNESSES if slowness is None else (slowness,))
    ]
    choice = min(trials, key=lambda trial: trial.score).choice
    assert choice is not None
    basis = study.basis(choice.slowness, choice.bumps, choice.bump_width)
    moments = mean_moments(
        (pair_moments(basis(here), basis(there)), len(here))
        for here, there in pair_batches(learned_from, study.reduction, most)
    )
    ritz = rayleigh_ritz(*moments, dim + max(4, int(SPARE * dim)), cutoff=choice.cutoff)
    ritz.eigenvalues[0], ritz.coefficients[:, 0] = 0.0, np.eye(len(moments[0]))[0]  # blurred by the cut-off
    learned = moments, min(most, learned_from.n_transitions)
    return Reference(study.reduction, basis, choice.cutoff, learned, ritz)
