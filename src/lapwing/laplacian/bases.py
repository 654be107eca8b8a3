"""Basis functions for the closed form: slow coordinates, and bumps over them."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.linalg
from scipy.cluster.vq import kmeans2
from scipy.spatial import KDTree

from lapwing.data.experience import Experience
from lapwing.laplacian.ritz import Moments, mean_moments, pair_moments, rayleigh_ritz

ROWS = 4_096
"""So many rows of functions are in memory at a time: more would not stay in the cache."""
MOST_INPUTS, MOST_COORDINATES = 100, 32
"""Larger observations are reduced to so many principal components; so many of the slowest are used."""
IMAGE_INPUTS, PER_INPUT = 600, 20
"""So many of images, where what moves is a small part; and so many transitions for each."""
BYTES = 1 << 25
"""Observations are read in batches of this size."""
PASSES, SPARE = 2, 20
"""Passes over the rows that find principal components, and so many directions more than wanted."""


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


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Reduction:
    """Observations as vectors of moderate size: standardised, or the largest principal components."""

    shift: np.ndarray
    matrix: np.ndarray
    """From observations as vectors, less `shift`."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """One row an observation, in double precision; images are multiplied in float32, which is quick."""
        if observations.ndim < 3:
            return (as_vectors(observations) - self.shift) @ self.matrix
        shift, matrix = self._single
        return ((as_vectors(observations, np.float32) - shift) @ matrix).astype(np.float64)

    @cached_property
    def _single(self) -> tuple[np.ndarray, np.ndarray]:
        return self.shift.astype(np.float32), self.matrix.astype(np.float32)

    @classmethod
    def of(cls, observations: np.ndarray, *, one_scale: bool = False, most: int = MOST_INPUTS) -> "Reduction":
        """Fitted to some observations.

        Args:
            observations: one a row.
            one_scale: whether all features are divided by the same number, as pixels are.
            most: larger observations are reduced to so many principal components.
        """
        images = observations.ndim > 2
        rows = as_vectors(observations, np.float32 if images else np.float64)
        shift = rows.mean(axis=0, dtype=np.float64)
        spread = _spread(rows, shift)
        scale = np.where(spread > 1e-6 * spread.max(initial=0), spread, np.inf)
        if one_scale or images:
            scale = np.full_like(spread, np.sqrt(np.mean(spread**2)) or 1.0)
        if rows.shape[1] <= most:
            return cls(shift, np.diag(1 / scale))
        if images:
            rows -= shift.astype(np.float32)
            return cls(shift, principal_components(rows, most) / scale[:, None])
        rows = rows[:: max(1, len(rows) // 2_000)]  # so that the matrix of their products stays small
        _, sizes, components = scipy.linalg.svd((rows - shift) / scale, full_matrices=False)
        kept = sizes[:most] > 1e-6 * sizes.max(initial=0)
        return cls(shift, (components[:most][kept] / scale).T)


def components_of(shape: tuple[int, ...], transitions: int) -> int:
    """How many principal components observations are reduced to, if they have more numbers."""
    if len(shape) != 3:
        return MOST_INPUTS
    return min(IMAGE_INPUTS, max(MOST_INPUTS, transitions // PER_INPUT))


def principal_components(rows: np.ndarray, count: int) -> np.ndarray:
    """The directions of the largest variance of centred rows, one a column, largest first.

    By random directions that are multiplied with the rows a few times (Halko, Martinsson and Tropp, 2011):
    no matrix of all pixels with all pixels is formed. Directions without variance are left out.
    """
    wanted = min(count + SPARE, *rows.shape)
    found = np.random.default_rng(0).standard_normal((rows.shape[1], wanted)).astype(rows.dtype)
    for _ in range(PASSES):
        found, _ = np.linalg.qr(rows.T @ (rows @ found))
    sizes, turned = scipy.linalg.svd((rows @ found).astype(np.float64), full_matrices=False)[1:]
    kept = sizes[:count] > 1e-5 * sizes.max(initial=0)
    return (found @ turned[:count][kept].T).astype(np.float64)


def _spread(rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The standard deviation of each column, without another copy of all rows."""
    squares = sum(
        np.sum((rows[begin : begin + ROWS] - mean) ** 2, axis=0) for begin in range(0, len(rows), ROWS)
    )
    return np.sqrt(squares / len(rows))


@jax.tree_util.register_dataclass
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


@jax.tree_util.register_dataclass
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
    centres = _distinct(points)
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


def _distinct(points: np.ndarray) -> np.ndarray:
    """Each once, in order; where no two begin alike, by the first number alone, which is much quicker."""
    first = np.argsort(points[:, 0])
    ordered = points[first]
    return ordered if (np.diff(ordered[:, 0]) > 0).all() else np.unique(points, axis=0)


def as_vectors(observations: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """One row an observation, as new numbers of this type; bytes become numbers in [0, 1]."""
    flat = observations.reshape(len(observations), -1)
    return np.divide(flat, 255, dtype=dtype) if np.issubdtype(flat.dtype, np.integer) else flat.astype(dtype)


def pair_batches(experience: Experience, reduction: Reduction, most: int) -> Iterator[Pairs]:
    """Transitions, all or `most` of them at random, both ends reduced."""
    numbers = np.arange(min(experience.n_transitions, most))
    if experience.n_transitions > most:
        numbers = np.sort(np.random.default_rng(0).integers(experience.n_transitions, size=most))
    begins, batch = experience.transitions(numbers), at_once(experience)
    for at in range(0, len(begins), batch):
        here = begins[at : at + batch]
        both, where = np.unique(np.concatenate([here, here + 1]), return_inverse=True)  # most are both ends
        reduced = reduction(experience.observe(both))
        yield Pairs(*(reduced[end] for end in np.split(where, 2)))


def observed(experience: Experience, indices: np.ndarray) -> Iterator[np.ndarray]:
    """Observations in batches of bounded size."""
    batch = at_once(experience)
    for begin in range(0, len(indices), batch):
        yield experience.observe(indices[begin : begin + batch])


def at_once(experience: Experience) -> int:
    """How many observations a batch has."""
    return max(1, min(8_192, BYTES // max(1, experience.observe(np.zeros(1, int)).nbytes)))
