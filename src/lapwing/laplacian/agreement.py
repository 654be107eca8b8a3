"""Whether two sets of eigenfunctions agree, and how far sampling noise has rotated one.

Functions whose eigenvalues nearly coincide form one eigenspace: any basis of it is equally valid.
"""

from typing import NamedTuple

import numpy as np

from lapwing.laplacian.ritz import RANK_TOLERANCE, Moments, Ritz, mean_moments, rayleigh_ritz

NEARLY_SAME = 0.1
"""Eigenvalues that differ by less than this share count as one, and their functions as one eigenspace."""
NO_EIGENVALUE = 1e-7
"""Below this, eigenvalues are 0 but for rounding, as those of walks that never meet are."""
COMPARABLE = 2.0
"""Functions of the same index are compared if one eigenvalue is at most so many times the other."""
Counted = tuple[Moments, int]
"""Moments, and how many pairs they are of."""


class Stability(NamedTuple):
    """How far some eigenfunctions may be off by sampling error."""

    cosines: np.ndarray
    """Estimates of their cosines with what many more episodes would give."""
    uncertain: np.ndarray
    """Estimates of how far the eigenvalues are off."""


def quotients(coefficients: np.ndarray, moments: Moments) -> np.ndarray:
    """The Rayleigh quotient wᵀAw / wᵀBw of each column."""
    drawing, second = moments
    return np.sum(coefficients * (drawing @ coefficients), axis=0) / _squares(coefficients, second)


def agreements(one: Ritz, other: Ritz, second: np.ndarray, uncertain: np.ndarray | None = None) -> np.ndarray:
    """The cosine of each function of `other` with the eigenspace of `one` that its eigenvalue is in.

    Args:
        one: some eigenfunctions as combinations of columns; they need not be orthonormal.
        other: others, of the same columns.
        second: B, the second moment of the columns.
        uncertain: how far the eigenvalues of `other` may be off: those as near count as one eigenspace too.
    """
    compared = _compared(one.eigenvalues, other.eigenvalues, 0.0 if uncertain is None else uncertain)
    moment = one.coefficients.T @ second @ one.coefficients
    overlaps = one.coefficients.T @ second @ other.coefficients
    squares = [
        _projected(moment[chosen][:, chosen], overlap[chosen])
        for chosen, overlap in zip(compared.T, overlaps.T, strict=True)
    ]
    return np.minimum(np.sqrt(np.array(squares) / _squares(other.coefficients, second)), 1.0)


def _projected(moment: np.ndarray, overlaps: np.ndarray) -> float:
    """The squared length of a function's projection on others, from their products."""
    inverse = np.linalg.pinv(moment, rcond=1e-9, hermitian=True)
    return max(0.0, float(overlaps @ inverse @ overlaps))


def _compared(one: np.ndarray, other: np.ndarray, slack: np.ndarray | float) -> np.ndarray:
    """For each eigenvalue of `other`, a column, which of `one` are compared with it.

    They are those near it, and those near the one of the same index, unless that is far away: a little of
    the next function in a function adds so much of the next eigenvalue, which may be large beside its own.
    """
    one, other = np.maximum(one, NO_EIGENVALUE), np.maximum(other, NO_EIGENVALUE)
    same, following = (one[np.minimum(np.arange(len(other)) + step, len(one) - 1)] for step in (0, 1))
    comparable = np.maximum(same, other) <= COMPARABLE * np.minimum(same, other)
    comparable |= np.abs(same - other) <= NEARLY_SAME * following
    return _near(one, other, slack) | (_near(one, same, slack) & comparable)


def _near(one: np.ndarray, other: np.ndarray, slack: np.ndarray | float) -> np.ndarray:
    larger = np.maximum(one[:, None], other[None])
    return np.abs(one[:, None] - other[None]) <= NEARLY_SAME * larger + slack


def stability(
    learned: Counted, others: list[Counted], dim: int, *, cutoff: float = RANK_TOLERANCE
) -> Stability:
    """How near the eigenfunctions of a basis are to what many more episodes would give.

    Each of `others` is added to what was learned from, and the functions are fitted again. So m of n pairs
    turn a function by about √(m/n) times the angle between it and its expectation, and that angle is
    estimated as the root mean square of √(n/m) times the turns. A fit on the few others alone would be
    turned mostly by their own chance: by which states they happen to visit.

    Args:
        learned: moments of what was learned from.
        others: those of two or more other parts.
        dim: how many functions.
        cutoff: of `rayleigh_ritz`.
    """
    first = rayleigh_ritz(*learned[0], dim, cutoff=cutoff)
    pooled = [mean_moments([learned, part]) for part in others]
    scales = [(learned[1] + count) / count for _, count in others]
    refits = [rayleigh_ritz(*moments, 2 * dim, cutoff=cutoff) for moments in pooled]
    found = len(first.eigenvalues)
    shifts = [_resized(refit.eigenvalues, found) - first.eigenvalues for refit in refits]
    # About their mean, for a shift that all have in common is not chance, and must not hide behind it.
    uncertain = np.std(
        [scale**0.5 * shift for scale, shift in zip(scales, shifts, strict=True)], axis=0, ddof=1
    )
    turns = [
        scale * _squared_tangents(agreements(refit, first, second, uncertain))
        for scale, refit, (_, second) in zip(scales, refits, pooled, strict=True)
    ]
    cosines = 1 / np.sqrt(1 + np.mean(turns, axis=0))
    return Stability(np.pad(cosines, (0, dim - found)), _resized(uncertain, dim))


def _squared_tangents(cosines: np.ndarray) -> np.ndarray:
    return 1 / np.maximum(cosines, RANK_TOLERANCE) ** 2 - 1


def _resized(values: np.ndarray, count: int) -> np.ndarray:
    """The first so many; the last once more for each that is missing."""
    return np.pad(values, (0, max(0, count - len(values))), mode="edge")[:count]


def _squares(coefficients: np.ndarray, second: np.ndarray) -> np.ndarray:
    """E[f²] of each function, above 0."""
    squares = np.sum(coefficients * (second @ coefficients), axis=0)
    return np.maximum(squares, np.finfo(np.float64).tiny)
