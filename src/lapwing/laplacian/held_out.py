"""How far a representation of continuous states can be trusted, from episodes that it was not learned from.

There is no exact spectrum to compare with. But functions that chance or over-fitting made do not come out
again on other episodes of the same kind: Rayleigh-Ritz over what was learned from and over what was kept
apart then gives different eigenfunctions, with different eigenvalues.
"""

from functools import partial
from typing import Any

import numpy as np

from lapwing.data.experience import Experience
from lapwing.errors import DatasetError
from lapwing.laplacian.objectives import distance_to_identity
from lapwing.laplacian.representation import Representation, embed_batch
from lapwing.laplacian.ritz import Ritz, moments_of_experience, rayleigh_ritz

MOST_PAIRS = 100_000
"""So many pairs of each part are looked at."""
NEARLY_SAME = 0.1
"""Eigenvalues that differ by less than this share are held to be one, and their functions one eigenspace."""
NO_EIGENVALUE = 1e-7
"""Below this, eigenvalues are 0 but for rounding, as those of walks that never meet are."""
AGREEMENT = 0.9
"""From this cosine on, an eigenfunction has come out again."""
Moments = tuple[np.ndarray, np.ndarray]


def held_out_measures(
    representation: Representation, learned_from: Experience, kept_apart: Experience
) -> dict[str, Any]:
    """Eigenvalues, orthonormality and agreement on episodes that were not learned from.

    Args:
        representation: what was learned.
        learned_from: the episodes that it was learned from.
        kept_apart: others of the same kind.

    Returns:
        `eigenvalues` on the kept episodes with their `spread`, half the difference between two halves of
        them; `eigenvalues_learned` on the others; `orthonormality_error` of functions told apart on one half,
        measured on the other; `agreement`, the cosine of each eigenfunction with its like over the
        episodes learned from; and `trusted`, how many from the first on agree.
    """
    dim = representation.dim
    moments = partial(moments_of_experience, embed=partial(embed_batch, representation.encoder))
    sides = kept_apart.split(0.5)
    if not all(side.n_episodes for side in sides):
        raise DatasetError(
            f"{len(kept_apart.observations)} observations kept apart are too few to be halved; "
            "raise held_out, or set it to 0"
        )
    halves = [moments(side, most=MOST_PAIRS // 2) for side in sides]
    whole = _together(halves, [side.n_transitions for side in sides])
    kept, seen = rayleigh_ritz(*whole, dim), rayleigh_ritz(*moments(learned_from, most=MOST_PAIRS), dim)
    parts = [rayleigh_ritz(*half, dim) for half in halves]
    spread = np.abs(np.subtract(*_as_many(parts))) / 2
    agreement = agreements(seen, kept, whole[1], 2 * spread)
    differs = np.append(agreement < AGREEMENT, True)
    return {
        "eigenvalues": kept.eigenvalues.tolist(),
        "spread": spread.tolist(),
        "eigenvalues_learned": seen.eigenvalues.tolist(),
        "orthonormality_error": float(
            np.mean([_orthonormality(parts[0], halves[1]), _orthonormality(parts[1], halves[0])])
        ),
        "agreement": agreement.tolist(),
        "trusted": int(np.argmax(differs)),
        "transitions": kept_apart.n_transitions,
    }


def agreements(one: Ritz, other: Ritz, second: np.ndarray, uncertain: np.ndarray | None = None) -> np.ndarray:
    """The cosine of each function of `other` with the eigenspace of `one` that its eigenvalue is in.

    Args:
        one: some eigenfunctions as combinations of columns.
        other: others, of the same columns.
        second: B, the second moment of the columns.
        uncertain: how far the eigenvalues of `other` may be off: those as near count as one eigenspace too.
    """
    overlaps = one.coefficients.T @ second @ other.coefficients
    sizes = np.outer(_sizes(one, second), _sizes(other, second))
    apart = np.abs(one.eigenvalues[:, None] - other.eigenvalues[None])
    larger = np.maximum(one.eigenvalues[:, None], other.eigenvalues[None])
    slack = np.zeros(len(other.eigenvalues))
    if uncertain is not None:
        slack[: len(uncertain)] = uncertain[: len(slack)]
    near = apart <= np.maximum(NEARLY_SAME * larger, NO_EIGENVALUE) + slack
    same = near | np.eye(*overlaps.shape, dtype=bool)
    cosines = np.sqrt(np.sum(np.where(same, overlaps / sizes, 0.0) ** 2, axis=0))
    return np.minimum(cosines, 1.0)


def _together(halves: list[Moments], transitions: list[int]) -> Moments:
    """The moments of both halves, each counted by how many transitions it has."""
    drawing, second = (np.average(both, axis=0, weights=transitions) for both in zip(*halves, strict=True))
    return drawing, second


def _sizes(ritz: Ritz, second: np.ndarray) -> np.ndarray:
    squares = np.sum(ritz.coefficients * (second @ ritz.coefficients), axis=0)
    return np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))


def _orthonormality(ritz: Ritz, moments: Moments) -> float:
    return distance_to_identity(ritz.coefficients.T @ moments[1] @ ritz.coefficients)


def _as_many(parts: list[Ritz]) -> list[np.ndarray]:
    """Eigenvalues of two parts, as many as both have."""
    count = min(len(part.eigenvalues) for part in parts)
    return [part.eigenvalues[:count] for part in parts]
