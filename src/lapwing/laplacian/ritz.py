"""From a learned subspace to individual eigenfunctions with their eigenvalues: Rayleigh-Ritz.

Graph drawing finds the subspace only up to a rotation. In the span of the columns of φ and the constant, the
eigenproblem A w = λ B w with A = ½ E[(φ(u)-φ(v))(φ(u)-φ(v))ᵀ] over one-step pairs and B = E[φφᵀ] gives the
ordered eigenvalues, and the coefficients of each eigenfunction.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg

from lapwing.data.experience import Experience
from lapwing.laplacian.chain import Chain, fixed_signs, one_step_eigenvalues

RANK_TOLERANCE = 1e-6
Embed = Callable[[np.ndarray], np.ndarray]
Moments = tuple[np.ndarray, np.ndarray]
"""(A, B)."""


class Ritz(NamedTuple):
    """The outcome: `[1, φ(s)] @ coefficients` are the eigenfunctions at s."""

    eigenvalues: np.ndarray
    coefficients: np.ndarray
    rank: int
    """How many independent functions the columns of φ and the constant span."""


def moments_of_chain(chain: Chain, phi: np.ndarray, lam: float = 0.0) -> Moments:
    """(A, B) of enumerated states, `phi` having one row a state.

    With `lam` > 0 the pairs in A are those of P_λ of the reversible walk. Its eigenfunctions are those of one
    step, but what is rough in φ weighs less beside what is slow.
    """
    functions = _with_constant(phi)
    second = functions.T @ (chain.rho[:, None] * functions)
    if lam == 0:
        return second - functions.T @ np.asarray(chain.weights @ functions), second
    summed = chain.resolvent(functions, lam)
    smoothness = chain.rho[:, None] * summed - np.asarray(chain.weights @ summed)
    return functions.T @ smoothness, second


def moments_of_experience(
    experience: Experience, embed: Embed, *, most: int = 1_000_000, batch: int = 8_192
) -> Moments:
    """(A, B) over the one-step pairs of an experience, or over `most` of them."""
    numbers = np.arange(min(experience.n_transitions, most))
    if experience.n_transitions > most:  # at random, for any even spacing may keep step with the episodes
        numbers = np.sort(np.random.default_rng(0).integers(experience.n_transitions, size=most))
    indices = experience.transitions(numbers)
    parts = (indices[begin : begin + batch] for begin in range(0, len(indices), batch))
    return mean_moments(
        (pair_moments(embed(experience.observe(here)), embed(experience.observe(here + 1))), len(here))
        for here in parts
    )


def pair_moments(phi_u: np.ndarray, phi_v: np.ndarray) -> Moments:
    """(A, B) over pairs (u, v), one a row."""
    u, v = np.asarray(phi_u, np.float64), np.asarray(phi_v, np.float64)
    sums, differences = u + v, u - v
    count, size = len(u), u.shape[1] + 1
    drawing, second = np.zeros((size, size)), np.zeros((size, size))
    drawing[1:, 1:] = differences.T @ differences / (2 * count)
    second[1:, 1:] = sums.T @ sums / (4 * count) + drawing[1:, 1:] / 2  # for 2(uuᵀ + vvᵀ) = ssᵀ + ddᵀ
    second[0, 0] = 1.0
    second[0, 1:] = second[1:, 0] = sums.sum(axis=0) / (2 * count)
    return drawing, second


def mean_moments(parts: Iterable[tuple[Moments, int]]) -> Moments:
    """(A, B) of all, from those of parts and how many pairs each has."""
    drawing, second, count = 0.0, 0.0, 0
    for moments, pairs in parts:
        drawing, second = drawing + pairs * moments[0], second + pairs * moments[1]
        count += pairs
    return np.asarray(drawing) / count, np.asarray(second) / count


def rayleigh_ritz(
    drawing: np.ndarray, second: np.ndarray, dim: int, *, cutoff: float = RANK_TOLERANCE
) -> Ritz:
    """Solve A w = λ B w; B may be singular, for dimensions vanish under the penalty.

    Args:
        drawing: A, with the constant as its first function.
        second: B, likewise.
        dim: how many eigenfunctions to keep; fewer if the rank is lower.
        cutoff: directions with less than this share of the largest variance are left out.
    """
    return ritz_by_cutoff(drawing, second, dim, (cutoff,))[cutoff]


def ritz_by_cutoff(
    drawing: np.ndarray, second: np.ndarray, dim: int, cutoffs: Sequence[float]
) -> dict[float, Ritz]:
    """`rayleigh_ritz` for each cut-off; B is decomposed once."""
    # In units of its largest column φ is comparable with the constant, whatever δ is.
    unit = np.sqrt(np.diag(second)[1:].max(initial=np.finfo(np.float64).tiny))
    units = np.append(1.0, np.full(len(second) - 1, unit))
    scales, directions = np.linalg.eigh((second + second.T) / 2 / np.outer(units, units))
    whiten = directions / np.sqrt(np.maximum(scales, np.finfo(np.float64).tiny)) / units[:, None]
    kept = scales > min(cutoffs) * scales.max()
    whitened = whiten[:, kept].T @ (drawing + drawing.T) @ whiten[:, kept] / 2
    found = {}
    for cutoff in cutoffs:
        rank = int(np.sum(scales > cutoff * scales.max()))  # the last ones, for they ascend
        wanted = [0, min(dim, rank) - 1]
        eigenvalues, rotation = scipy.linalg.eigh(whitened[-rank:, -rank:], subset_by_index=wanted)
        found[cutoff] = Ritz(np.maximum(eigenvalues, 0.0), whiten[:, -rank:] @ rotation, rank)
    return found


def ritz_of_chain(chain: Chain, phi: np.ndarray, dim: int, lam: float) -> Ritz:
    """Rayleigh-Ritz over enumerated states by P_λ; the eigenvalues are turned into those of one step.

    They too are bounds from above, and nearer: with a function of slow and rough parts the mean of
    λ_i / ((1-λ) + λ·λ_i), which is concave, is below that of the mean λ_i.
    """
    found = rayleigh_ritz(*moments_of_chain(chain, phi, lam), dim)
    return found._replace(eigenvalues=one_step_eigenvalues(found.eigenvalues, lam))


def unrotated(drawing: np.ndarray, second: np.ndarray, dim: int) -> Ritz:
    """No rotation: each column of φ scaled to E[f²] = 1, with its Rayleigh quotient for an eigenvalue."""
    size = np.sqrt(np.maximum(np.diag(second)[1:], np.finfo(np.float64).tiny))
    coefficients = np.vstack([np.zeros(len(size)), np.diag(1 / size)])[:, :dim]
    eigenvalues = np.diag(drawing)[1:] / size**2
    rank = int(np.linalg.matrix_rank(second[1:, 1:], tol=RANK_TOLERANCE * size.max() ** 2))
    return Ritz(eigenvalues[:dim], coefficients, rank)


def with_fixed_signs(ritz: Ritz, phi: np.ndarray) -> Ritz:
    """Each eigenfunction positive on the first of these states where it reaches half its largest size."""
    signs = fixed_signs(_with_constant(phi) @ ritz.coefficients)
    return ritz._replace(coefficients=ritz.coefficients * signs)


def _with_constant(phi: np.ndarray) -> np.ndarray:
    phi = np.asarray(phi, dtype=np.float64)
    return np.column_stack([np.ones(len(phi)), phi])
