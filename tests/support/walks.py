"""Walks whose Laplacian has eigenvalues and eigenfunctions in closed form."""

from typing import NamedTuple

import numpy as np

from lapwing.data.experience import Experience


class Known(NamedTuple):
    """Eigenvalues, ascending from 0, and the eigenfunctions at states, E[f²] = 1, one a column."""

    eigenvalues: np.ndarray
    functions: np.ndarray


def reflected(episodes: int, length: int, step: float, *, dims: int = 1, seed: int = 0) -> np.ndarray:
    """Episodes in the unit cube, (episodes, length, dims): normal steps, folded back at the walls."""
    rng = np.random.default_rng(seed)
    walk = rng.uniform(0, 1, (episodes, 1, dims)) + np.concatenate(
        [np.zeros((episodes, 1, dims)), rng.normal(0, step, (episodes, length - 1, dims)).cumsum(axis=1)], 1
    )
    return 1 - np.abs(1 - walk % 2)


def known_of_interval(x: np.ndarray, step: float, count: int) -> Known:
    """Of `reflected` in one dimension: cos(kπx) with 1 - exp(-(kπ·step)²/2)."""
    k = np.arange(count)
    functions = np.sqrt(2) * np.cos(k * np.pi * x[:, None])
    functions[:, 0] = 1
    return Known(1 - np.exp(-((k * np.pi * step) ** 2) / 2), functions)


def around(episodes: int, length: int, step: float, *, seed: int = 0) -> np.ndarray:
    """Angles (episodes, length) of a walk around a circle, in normal steps."""
    rng = np.random.default_rng(seed)
    begins = rng.uniform(0, 2 * np.pi, (episodes, 1))
    return np.concatenate([begins, begins + rng.normal(0, step, (episodes, length - 1)).cumsum(axis=1)], 1)


def known_of_ring(angle: np.ndarray, step: float, count: int) -> Known:
    """Of `around`: sines and cosines of kθ, a pair for each 1 - exp(-(k·step)²/2)."""
    k = (np.arange(count) + 1) // 2
    waves = [np.cos(n * angle) if i % 2 else np.sin(n * angle) for i, n in enumerate(k)]
    functions = np.sqrt(2) * np.stack(waves, axis=1)
    functions[:, 0] = 1
    return Known(1 - np.exp(-((k * step) ** 2) / 2), functions)


def experience_of(walks: np.ndarray) -> Experience:
    """Episodes as lapwing has them."""
    return Experience.from_episodes(np.asarray(walks, np.float32))


def cosines(found: np.ndarray, known: Known, nearly: float = 1e-5) -> np.ndarray:
    """The cosine of each function found with the known ones of its eigenvalue, the constant left out.

    Eigenvalues whose ratio is within `nearly` of 1 count as one.
    """
    found = found / np.sqrt(np.mean(found**2, axis=0))
    overlaps = found.T @ known.functions / len(found)
    same = np.isclose(known.eigenvalues[: len(overlaps), None], known.eigenvalues, rtol=nearly)
    return np.sqrt(np.sum(np.where(same, overlaps, 0) ** 2, axis=1))[1:]
