"""How well eigenfunctions of continuous states hold on held-out episodes.

There is no exact spectrum to compare with. But functions that over-fitted the episodes learned from change
faster along others of the same kind, are not orthonormal there, and are no eigenfunctions of them.
"""

from functools import partial
from typing import Any

import numpy as np

from lapwing.data.experience import Experience
from lapwing.errors import DatasetError
from lapwing.laplacian.objectives import distance_to_identity
from lapwing.laplacian.representation import Representation, embed_batch
from lapwing.laplacian.ritz import Moments, Ritz, moments_of_experience, rayleigh_ritz

MOST_PAIRS = 100_000
"""At most this many pairs of each part are measured on."""
NEARLY_SAME = 0.1
"""Eigenvalues that differ by less than this share count as one, and their functions as one eigenspace."""
NO_EIGENVALUE = 1e-7
"""Below this, eigenvalues are 0 but for rounding, as those of walks that never meet are."""
AGREEMENT = 0.9
"""From this cosine on, an eigenfunction counts as one of the held-out episodes too."""


def held_out_measures(
    representation: Representation, learned_from: Experience, held_out: Experience
) -> dict[str, Any]:
    """The saved eigenfunctions, measured on episodes that they were not learned from.

    Args:
        representation: what was learned.
        learned_from: the episodes that it was learned from.
        held_out: others of the same kind.

    Returns:
        `eigenvalues`, the Rayleigh quotients on the held-out episodes, with their `spread`, half the
        difference between two halves of them; `eigenvalues_learned`, the same on the episodes learned from;
        `orthonormality_error` on the held-out episodes; `agreement`, the cosine of each eigenfunction that
        Rayleigh-Ritz finds on the held-out episodes with the saved ones of its eigenvalue; `trusted`, how
        many from the first on agree; and whether the coefficients were `fitted_on_held_out` episodes as
        well, as those of earlier versions were.
    """
    moments = partial(moments_of_experience, embed=partial(embed_batch, representation.encoder))
    sides = held_out.split(0.5)
    if not all(side.n_episodes for side in sides):
        raise DatasetError(
            f"{len(held_out.observations)} held-out observations are too few to be halved; "
            "raise held_out, or set it to 0"
        )
    halves = [moments(side, most=MOST_PAIRS // 2) for side in sides]
    transitions = [side.n_transitions for side in sides]
    drawing, second = (np.average(both, axis=0, weights=transitions) for both in zip(*halves, strict=True))
    coefficients = np.asarray(representation.coefficients, np.float64)
    saved = Ritz(representation.eigenvalues, coefficients, representation.dim)
    spread = np.abs(np.subtract(*(quotients(coefficients, half) for half in halves))) / 2
    # Eigenvalues that two halves of the episodes do not resolve count as one, for their order is chance.
    unresolved = np.abs(np.subtract(*(_eigenvalues(half, representation.dim) for half in halves)))
    refitted = rayleigh_ritz(drawing, second, representation.dim)
    agreement = agreements(saved, refitted, second, unresolved[: len(refitted.eigenvalues)])
    return {
        "eigenvalues": quotients(coefficients, (drawing, second)).tolist(),
        "spread": spread.tolist(),
        "eigenvalues_learned": quotients(coefficients, moments(learned_from, most=MOST_PAIRS)).tolist(),
        "orthonormality_error": distance_to_identity(coefficients.T @ second @ coefficients),
        "agreement": agreement.tolist(),
        "trusted": int(np.argmax(np.append(agreement < AGREEMENT, True))),
        "transitions": held_out.n_transitions,
        "fitted_on_held_out": representation.config.get("fitted_on_held_out", True),
    }


def quotients(coefficients: np.ndarray, moments: Moments) -> np.ndarray:
    """The Rayleigh quotient wᵀAw / wᵀBw of each column."""
    drawing, second = moments
    return np.sum(coefficients * (drawing @ coefficients), axis=0) / _sizes(coefficients, second) ** 2


def agreements(one: Ritz, other: Ritz, second: np.ndarray, uncertain: np.ndarray | None = None) -> np.ndarray:
    """The cosine of each function of `other` with the eigenspace of `one` that its eigenvalue is in.

    Args:
        one: some eigenfunctions as combinations of columns.
        other: others, of the same columns.
        second: B, the second moment of the columns.
        uncertain: how far the eigenvalues of `other` may be off: those as near count as one eigenspace too.
    """
    overlaps = one.coefficients.T @ second @ other.coefficients
    sizes = np.outer(_sizes(one.coefficients, second), _sizes(other.coefficients, second))
    difference = np.abs(one.eigenvalues[:, None] - other.eigenvalues[None])
    larger = np.maximum(one.eigenvalues[:, None], other.eigenvalues[None])
    slack = 0.0 if uncertain is None else uncertain
    near = difference <= np.maximum(NEARLY_SAME * larger, NO_EIGENVALUE) + slack
    same = near | np.eye(*overlaps.shape, dtype=bool)
    cosines = np.sqrt(np.sum(np.where(same, overlaps / sizes, 0.0) ** 2, axis=0))
    return np.minimum(cosines, 1.0)


def _eigenvalues(moments: Moments, dim: int) -> np.ndarray:
    """Those that Rayleigh-Ritz finds, the last once more for each that is missing."""
    found = rayleigh_ritz(*moments, dim).eigenvalues
    return np.pad(found, (0, dim - len(found)), mode="edge")


def _sizes(coefficients: np.ndarray, second: np.ndarray) -> np.ndarray:
    """√E[f²] of each function, above 0."""
    squares = np.sum(coefficients * (second @ coefficients), axis=0)
    return np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))
