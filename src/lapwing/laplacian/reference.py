"""A reference basis: eigenfunctions over bumps, independent of φ, fitted to the same episodes.

A function that φ never learned is in no combination of its columns, so a refit over φ cannot detect it.
Another basis can: every basis gives upper bounds of the eigenvalues, so if the reference has lower ones on
held-out episodes, φ lacks something. And a function that both bases contain is hardly an artefact of either.
"""

from dataclasses import dataclass

import numpy as np

from lapwing.data.experience import Experience
from lapwing.laplacian.agreement import Counted
from lapwing.laplacian.bases import Basis, Reduction
from lapwing.laplacian.closed_form import CUTOFFS, Study
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.ritz import Ritz, moments_of_experience, rayleigh_ritz

BUMPS = 200
"""Another number than those that are tried for φ."""
WIDTHS = (1.5, 3.0)
SLOWNESSES = (0.5, 0.0)
"""Widths and slownesses that are tried, where φ does not say."""
MOST_PAIRS = 100_000
"""At most so many pairs are fitted to."""
MOST_NUMBERS = 200_000_000
"""Of episodes with more numbers than this, a sample is used: large images take long."""
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

    If φ consists of bumps too, the reference has the coordinates of its first stage, and other bumps.
    """
    settings, dim = representation.config.get("settings", {}), representation.dim
    seen = _manageable(learned_from)
    study = Study(seen, dim, settings.get("seed", 0) + 1)
    slownesses = settings["slowness"][:1] if settings.get("slowness") else SLOWNESSES
    count = min(BUMPS, study.most_bumps)
    trials = [study.trial(slowness, count, WIDTHS, CUTOFFS) for slowness in slownesses]
    choice, *_ = min(trials, key=lambda trial: trial[1])
    basis = study.basis(choice)
    moments = moments_of_experience(seen, lambda x: basis(study.reduction(x)), most=MOST_PAIRS)
    ritz = rayleigh_ritz(*moments, dim + max(4, int(SPARE * dim)), cutoff=choice.cutoff)
    ritz.eigenvalues[0], ritz.coefficients[:, 0] = 0.0, np.eye(len(moments[0]))[0]  # blurred by the cut-off
    learned = moments, min(MOST_PAIRS, seen.n_transitions)
    return Reference(study.reduction, basis, choice.cutoff, learned, ritz)


def _manageable(experience: Experience) -> Experience:
    """Some of the episodes, where all would take long."""
    numbers = len(experience.observations) * max(1, int(np.prod(experience.observation_shape)))
    return experience if numbers <= MOST_NUMBERS else experience.split(MOST_NUMBERS / numbers)[1]
