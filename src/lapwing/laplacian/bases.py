"""Functions of observations that are combined in closed form: slow coordinates, and bumps over them."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.cluster.vq import kmeans2
from scipy.spatial import KDTree

from lapwing.laplacian.ritz import Moments, mean_moments, pair_moments, rayleigh_ritz

ROWS = 4_096
"""So many rows of functions are in memory at a time: more would not stay in the cache."""
MOST_INPUTS, MOST_COORDINATES = 100, 32
"""Larger observations are reduced to so many principal components; so many of the slowest are used."""


class Pairs(NamedTuple):
    """Both ends of some transitions, a vector each."""

    here: np.ndarray
    there: np.ndarray

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> "Pairs":
        """A function of both ends."""
        return Pairs(function(self.here), function(self.there))

    def moments(self, function: Callable[[np.ndarray], np.ndarray]) -> Moments:
        """(A, B) of a function of both ends, a few rows at a time."""
        parts = (
            Pairs(*(end[begin : begin + ROWS] for end in self)) for begin in range(0, len(self.here), ROWS)
        )
        return mean_moments((pair_moments(*part.mapped(function)), len(part.here)) for part in parts)


@dataclass(frozen=True, eq=False)
class Reduction:
    """Observations as vectors of moderate size: standardised, or the largest principal components."""

    shift: np.ndarray
    matrix: np.ndarray
    """From observations as vectors, less `shift`."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """One row an observation, in double precision."""
        return (as_vectors(observations) - self.shift) @ self.matrix

    @classmethod
    def of(cls, observations: np.ndarray, *, one_scale: bool = False, most: int = MOST_INPUTS) -> "Reduction":
        """Fitted to some observations.

        Args:
            observations: one a row.
            one_scale: whether all features are divided by the same number, as pixels are.
            most: larger observations are reduced to so many principal components.
        """
        rows = as_vectors(observations)
        shift, spread = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(spread > 1e-6 * spread.max(initial=0), spread, np.inf)
        if one_scale or (observations.ndim > 2 and rows.shape[1] > most):
            scale = np.full_like(spread, np.sqrt(np.mean(spread**2)) or 1.0)
        if rows.shape[1] <= most:
            return cls(shift, np.diag(1 / scale))
        rows = rows[:: max(1, len(rows) // 2_000)]  # so that the matrix of their products stays small
        _, sizes, components = scipy.linalg.svd((rows - shift) / scale, full_matrices=False)
        kept = sizes[:most] > 1e-6 * sizes.max(initial=0)
        return cls(shift, (components[:most][kept] / scale).T)


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions of vectors: linear coordinates, and bumps over them."""

    projection: np.ndarray
    centres: np.ndarray
    width: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """One row a vector, one column a function; the constant is not among them."""
        count, features = (
            self.projection.shape[1],
            np.empty((len(x), len(self.centres) + self.projection.shape[1])),
        )
        coordinates, bumps = features[:, :count], features[:, count:]
        np.matmul(x, self.projection, out=coordinates)
        np.matmul(coordinates, 2 * self.centres.T, out=bumps)
        bumps -= np.sum(coordinates**2, axis=1)[:, None]
        bumps -= np.sum(self.centres**2, axis=1)
        np.minimum(bumps, 0.0, out=bumps)
        bumps *= 1 / (2 * self.width**2)
        np.exp(bumps, out=bumps)
        return features


@dataclass(frozen=True, eq=False)
class Combined:
    """Linear combinations of the functions of a basis: what a stage gives to the next."""

    basis: Basis
    coefficients: np.ndarray
    """That of the constant first."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """One row a vector, one column a combination."""
        return self.basis(x) @ self.coefficients[1:] + self.coefficients[0]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Slow linear functions of vectors."""

    functions: np.ndarray
    """One column a function, slowest first."""
    eigenvalues: np.ndarray

    @classmethod
    def of(cls, pairs: Pairs) -> "Coordinates":
        """Those of some transitions."""
        return cls.of_moments(pair_moments(*pairs))

    @classmethod
    def of_moments(cls, moments: Moments) -> "Coordinates":
        """By Rayleigh-Ritz over the vectors themselves, of which these are the moments."""
        ritz = rayleigh_ritz(*moments, MOST_COORDINATES + 1)
        return cls(ritz.coefficients[1:, 1:], ritz.eigenvalues[1:])

    def projection(self, slowness: float) -> np.ndarray:
        """The functions, each times (λ_2 / λ_i)^slowness."""
        values = np.maximum(self.eigenvalues, 1e-9)
        return self.functions * (values[:1] / values) ** slowness


def spread_centres(points: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, float]:
    """`count` centres of clusters, or as many as there are distinct points, and how far apart neighbours are.

    That is the median distance to the nearest other centre.
    """
    centres = np.unique(points, axis=0)
    if count < len(centres):
        drawn = np.random.default_rng(seed).choice(len(centres), count, replace=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty cluster keeps its centre
            centres, _ = kmeans2(points, centres[drawn], iter=10, minit="matrix", missing="warn")
    apart = np.unique(centres, axis=0)
    if len(apart) < 2:
        return centres, 1.0
    nearest, _ = KDTree(apart).query(apart, k=2)
    return centres, float(np.median(nearest[:, 1]))


def as_vectors(observations: np.ndarray) -> np.ndarray:
    """One row an observation, in double precision; bytes become numbers in [0, 1]."""
    flat = observations.reshape(len(observations), -1)
    return flat / 255.0 if np.issubdtype(flat.dtype, np.integer) else flat.astype(np.float64)
