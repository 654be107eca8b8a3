"""The graph drawing loss minimised in closed form over bumps, and which bumps: what held-out episodes say.

Over linear combinations of fixed functions the loss needs no gradient step. Rayleigh-Ritz gives their
eigenfunctions f_i with eigenvalues λ_i, and the minimiser is φ_i = a_i f_i with a_i² = max(0, δ - λ'_i / 2β).
By the same principle every set of functions gives upper bounds of the eigenvalues, so of two sets the one
whose functions have the lower sum of Rayleigh quotients *on episodes that they were not fitted on* is better
(the score of McGibbon and Pande, 2015). Here it chooses coordinates, bumps, their width and the cut-off.

The coordinates are the slow linear functions of the observation, found by Rayleigh-Ritz as well and scaled by
(λ_2 / λ_i)^p: with p = ½ distances between them are those of commute times (the kinetic map of Noé and
Clementi, 2015). Noise and fast velocities so weigh little, and bumps are not spent on them.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from scipy.cluster.vq import kmeans2
from scipy.spatial import KDTree

from lapwing.data.experience import Experience
from lapwing.laplacian.bumps import Bumps
from lapwing.laplacian.chain import multi_step_eigenvalues
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.objectives import surviving_scale
from lapwing.laplacian.ritz import Moments, Ritz, mean_moments, pair_moments, rayleigh_ritz
from lapwing.progress import OnChunk

SLOWNESSES = (0.5, 1.0, 0.0)
"""Powers p that are tried."""
BUMPS = (150, 300, 600)
"""Numbers of bumps that are tried, one after the other while the score falls."""
WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0)
"""Widths that are tried, in median distances between neighbouring centres."""
CUTOFFS = (1e-9, 1e-7, 1e-5, 1e-3)
"""Directions whose variance is below this share of the largest are not used; those that are tried."""
BETTER = 0.99
"""A larger number of bumps is taken if the score falls below this share."""
VALIDATION = 0.2
"""The share of what is learned from that the choice is made on; the chosen bumps are then fitted on all."""
MOST_INPUTS, MOST_COORDINATES = 100, 32
"""Larger observations are reduced to so many principal components; so many of the slowest are used."""
SOME_PAIRS = 40_000
"""So many pairs decide."""
MOST_PRODUCTS = 6e10
"""Pairs times squared bumps in the last fit."""
SOME_ROWS = 20_000
"""So many observations are clustered."""
PER_BUMP = 10
"""At least so many transitions there are for each bump."""
BYTES = 1 << 25
"""Observations are read in batches of this size."""


@dataclass(frozen=True)
class Choice:
    """What defines the functions that are combined, given the data."""

    slowness: float
    bumps: int
    bump_width: float
    cutoff: float


@dataclass(frozen=True)
class Trial:
    """One choice and how it does on validation episodes."""

    what: str
    score: float
    """The sum of the Rayleigh quotients of the first `dim` functions; a missing one counts 1."""
    choice: Choice | None = None
    eigenvalues: tuple[float, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The trial as JSON can hold it."""
        return {"what": self.what, "score": self.score, "choice": self.choice and asdict(self.choice)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Trial":
        """The trial that `as_json` wrote."""
        return cls(values["what"], values["score"], values["choice"] and Choice(**values["choice"]))


class Pairs(NamedTuple):
    """Both ends of some transitions, reduced to a vector each."""

    here: np.ndarray
    there: np.ndarray

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> "Pairs":
        """A function of both ends."""
        return Pairs(function(self.here), function(self.there))


@dataclass(frozen=True, eq=False)
class Reduction:
    """Observations as vectors of moderate size: standardised, or the largest principal components."""

    shift: np.ndarray
    matrix: np.ndarray
    """From observations as vectors, less `shift`."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """One row an observation, in double precision."""
        return (as_vectors(observations) - self.shift.reshape(-1)) @ self.matrix

    @classmethod
    def of(cls, observations: np.ndarray) -> "Reduction":
        """Fitted to some observations."""
        rows = as_vectors(observations)
        shift, spread = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(spread > 1e-6 * spread.max(initial=0), spread, np.inf)
        shape = observations.shape[1:]
        if rows.shape[1] <= MOST_INPUTS:
            return cls(shift.reshape(shape), np.diag(1 / scale))
        rows = rows[:: max(1, len(rows) // 2_000)]  # so that the matrix of their products stays small
        if len(shape) > 1:
            scale = np.full_like(spread, np.sqrt(np.mean(spread**2)) or 1.0)  # pixels have one scale
        _, sizes, components = scipy.linalg.svd((rows - shift) / scale, full_matrices=False)
        kept = sizes[:MOST_INPUTS] > 1e-6 * sizes.max(initial=0)
        return cls(shift.reshape(shape), (components[:MOST_INPUTS][kept] / scale).T)


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions of reduced observations: coordinates and bumps."""

    projection: np.ndarray
    centres: np.ndarray
    width: float

    def __call__(self, reduced: np.ndarray) -> np.ndarray:
        """One row an observation, one column a function; the constant is not among them."""
        coordinates = reduced @ self.projection
        squares = np.sum(coordinates**2, axis=1)[:, None] + np.sum(self.centres**2, axis=1)
        squares -= 2 * coordinates @ self.centres.T
        return np.hstack([coordinates, np.exp(-np.maximum(squares, 0.0) / (2 * self.width**2))])


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Slow linear functions of reduced observations."""

    functions: np.ndarray
    """One column a function, slowest first."""
    eigenvalues: np.ndarray

    @classmethod
    def of(cls, pairs: Pairs) -> "Coordinates":
        """By Rayleigh-Ritz over the reduced observations themselves."""
        ritz = rayleigh_ritz(*pair_moments(*pairs), MOST_COORDINATES + 1)
        return cls(ritz.coefficients[1:, 1:], ritz.eigenvalues[1:])

    def projection(self, slowness: float) -> np.ndarray:
        """The functions, each times (λ_2 / λ_i)^slowness."""
        values = np.maximum(self.eigenvalues, 1e-9)
        return self.functions * (values[:1] / values) ** slowness


@dataclass(frozen=True, eq=False)
class Study:
    """What trials of one data set share."""

    learned_from: Experience
    dim: int
    seed: int
    most_pairs: int = SOME_PAIRS

    @cached_property
    def parts(self) -> tuple[Experience, Experience]:
        """What trials are fitted on, and what they are scored on."""
        return self.learned_from.split(VALIDATION)

    @cached_property
    def rows(self) -> np.ndarray:
        """Some observations, reduced."""
        experience = self.parts[0]
        generator = np.random.default_rng(self.seed)
        indices = np.sort(generator.integers(len(experience.observations), size=SOME_ROWS))
        return np.concatenate([self.reduction(rows) for rows in _observed(experience, indices)])

    @cached_property
    def reduction(self) -> Reduction:
        """Of all trials."""
        experience = self.parts[0]
        size = min(SOME_ROWS, max(200, BYTES // max(1, experience.observations[:1].nbytes)))
        indices = np.random.default_rng(self.seed).integers(len(experience.observations), size=size)
        return Reduction.of(experience.observe(np.sort(indices)))

    @cached_property
    def pairs(self) -> tuple[Pairs, Pairs]:
        """Transitions to fit on and to score on."""
        first, second = (_reduced_pairs(part, self.reduction, self.most_pairs) for part in self.parts)
        return first, second

    @cached_property
    def coordinates(self) -> Coordinates:
        """Of all trials."""
        return Coordinates.of(self.pairs[0])

    @property
    def most_bumps(self) -> int:
        """No more than the data can tell apart."""
        return max(1, self.parts[0].n_transitions // PER_BUMP)

    def basis(self, slowness: float, bumps: int, width: float) -> Basis:
        """The functions of a choice."""
        projection = self.coordinates.projection(slowness)
        centres, spacing = _centres(self.rows @ projection, bumps, self.seed)
        return Basis(projection, centres, width * spacing)

    def score(self, basis: Basis, cutoffs: tuple[float, ...]) -> list[tuple[float, np.ndarray]]:
        """For each cut-off, the score on validation episodes and the eigenvalues there."""
        fitted, measured = (pair_moments(*pairs.mapped(basis)) for pairs in self.pairs)
        return [
            held_out_score(rayleigh_ritz(*fitted, self.dim, cutoff=cutoff), measured, self.dim)
            for cutoff in cutoffs
        ]

    def trial(self, slowness: float, bumps: int, widths: tuple[float, ...], cutoffs) -> Trial:
        """The best width and cut-off for these coordinates and so many bumps."""
        projection = self.coordinates.projection(slowness)
        centres, spacing = _centres(self.rows @ projection, bumps, self.seed)
        best: Trial | None = None
        for width in widths:
            scores = self.score(Basis(projection, centres, width * spacing), cutoffs)
            for cutoff, (score, values) in zip(cutoffs, scores, strict=True):
                if best is None or score < best.score:
                    choice = Choice(slowness, len(centres), width, cutoff)
                    what = f"{len(centres)} bumps, slowness {slowness:g}"
                    best = Trial(what, score, choice, tuple(values.tolist()))
        assert best is not None
        return best


def held_out_score(ritz: Ritz, measured: Moments, dim: int) -> tuple[float, np.ndarray]:
    """The sum of the eigenvalues of fitted functions on other data, and these eigenvalues.

    Within the span of the functions it is the sum of the Rayleigh quotients, whatever basis they have.
    """
    drawing, second = (ritz.coefficients.T @ moment @ ritz.coefficients for moment in measured)
    found = rayleigh_ritz_values(drawing, second)
    return float(found.sum()) + dim - len(found), found


def rayleigh_ritz_values(drawing: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Eigenvalues of A w = λ B w for a B that may be singular, ascending."""
    scales, directions = np.linalg.eigh((second + second.T) / 2)
    kept = scales > 1e-9 * scales.max(initial=0)
    whiten = directions[:, kept] / np.sqrt(scales[kept])
    return np.linalg.eigvalsh(whiten.T @ (drawing + drawing.T) @ whiten / 2)


def choose(
    learned_from: Experience,
    dim: int,
    seed: int,
    trials: int,
    *,
    fixed: dict[str, Any],
    on_trial: OnChunk | None = None,
) -> list[Trial]:
    """What was tried, the chosen one first.

    Coordinates are compared with few bumps; then bumps are added while the score falls.

    Args:
        learned_from: the episodes.
        dim: how many eigenfunctions are wanted.
        seed: of what is drawn.
        trials: how many at most.
        fixed: values of `Choice` that are not to be chosen.
        on_trial: called after each with (done, all, scores).
    """
    study = Study(learned_from, dim, seed)
    slownesses = _given(fixed, "slowness", SLOWNESSES if study.reduction.matrix.shape[1] > 1 else (0.0,))
    counts = sorted({min(count, study.most_bumps) for count in _given(fixed, "bumps", BUMPS)})
    widths, cutoffs = _given(fixed, "bump_width", WIDTHS), _given(fixed, "cutoff", CUTOFFS)
    done: list[Trial] = []

    def attempt(slowness: float, bumps: int, some_widths: tuple[float, ...]) -> Trial:
        done.append(study.trial(slowness, bumps, some_widths, cutoffs))
        if on_trial:
            on_trial(len(done), trials, {"score": done[-1].score})
        return done[-1]

    for slowness in slownesses[:trials]:
        attempt(slowness, counts[0], widths)
    best = min(done, key=lambda trial: trial.score)
    for count in counts[1 : 1 + trials - len(done)]:
        assert best.choice is not None
        width = best.choice.bump_width
        near = widths if "bump_width" in fixed else (width / 1.5, width, width * 1.5)
        found = attempt(best.choice.slowness, count, near)
        if found.score >= BETTER * best.score:
            break
        best = found
    return [best, *(trial for trial in done if trial is not best)]


def fit(
    learned_from: Experience,
    choice: Choice,
    dim: int,
    *,
    seed: int,
    lam: float,
    beta: float,
    delta: float,
) -> tuple[Bumps, EncoderSpec]:
    """The minimiser of the loss over the chosen functions, from every episode that is learned from.

    Args:
        learned_from: the episodes.
        choice: the functions.
        dim: how many columns φ has.
        seed: of what is drawn; the same as in `choose`.
        lam: λ of P_λ.
        beta: β.
        delta: δ.
    """
    study = Study(learned_from, dim, seed)
    basis = study.basis(choice.slowness, choice.bumps, choice.bump_width)
    most = int(MOST_PRODUCTS / (len(basis.centres) + basis.projection.shape[1]) ** 2)
    moments = mean_moments(
        (pair_moments(basis(here), basis(there)), len(here))
        for here, there in pair_batches(learned_from, study.reduction, most)
    )
    ritz = rayleigh_ritz(*moments, dim, cutoff=choice.cutoff)
    scale = surviving_scale(multi_step_eigenvalues(ritz.eigenvalues, lam), beta, delta)
    return _encoder(study.reduction, basis, ritz.coefficients * scale, learned_from.observation_shape)


def _encoder(
    reduction: Reduction, basis: Basis, coefficients: np.ndarray, shape: tuple[int, ...]
) -> tuple[Bumps, EncoderSpec]:
    """The network that computes these combinations."""
    spec = EncoderSpec(
        name="bumps",
        shape=shape,
        dim=coefficients.shape[1],
        n_features=len(basis.centres),
        n_coordinates=basis.projection.shape[1],
    )
    shift = jnp.asarray(reduction.shift.reshape(shape), jnp.float32)
    empty = Bumps(shift, spec.n_coordinates, spec.n_features, spec.dim, key=jax.random.key(0))
    numbers = (
        reduction.matrix @ basis.projection,
        basis.centres,
        np.float64(basis.width),
        coefficients[1:].T,
        coefficients[0],
    )
    encoder = eqx.tree_at(
        lambda bumps: (bumps.projection, bumps.centres, bumps.width, bumps.layer.weight, bumps.layer.bias),
        empty,
        tuple(jnp.asarray(array, jnp.float32) for array in numbers),
    )
    return encoder, spec


def _given(fixed: dict[str, Any], name: str, otherwise: tuple) -> tuple:
    return (fixed[name],) if name in fixed else otherwise


def _centres(points: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, float]:
    """At most `count` centres of clusters, and the median distance between neighbours among them."""
    distinct = np.unique(points, axis=0)
    count = min(count, len(distinct))
    rng = np.random.default_rng(seed)
    centres = distinct[rng.choice(len(distinct), count, replace=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cluster keeps its centre
        centres, _ = kmeans2(points, centres, iter=10, minit="matrix", missing="warn")
    centres = np.unique(centres[np.isfinite(centres).all(axis=1)], axis=0)
    if len(centres) < 2:
        return centres, 1.0
    nearest, _ = KDTree(centres).query(centres, k=2)
    return centres, float(np.median(nearest[:, 1]))


def _reduced_pairs(experience: Experience, reduction: Reduction, most: int) -> Pairs:
    batches = list(pair_batches(experience, reduction, most))
    return Pairs(*(np.concatenate(ends) for ends in zip(*batches, strict=True)))


def pair_batches(experience: Experience, reduction: Reduction, most: int) -> Iterator[Pairs]:
    """Transitions, all or `most` of them at random, both ends reduced."""
    numbers = np.arange(min(experience.n_transitions, most))
    if experience.n_transitions > most:
        numbers = np.sort(np.random.default_rng(0).integers(experience.n_transitions, size=most))
    indices = experience.transitions(numbers)
    following = _observed(experience, indices + 1)
    for here, there in zip(_observed(experience, indices), following, strict=True):
        yield Pairs(reduction(here), reduction(there))


def _observed(experience: Experience, indices: np.ndarray) -> Iterator[np.ndarray]:
    """Observations in batches of bounded size."""
    batch = max(1, min(8_192, BYTES // max(1, experience.observe(indices[:1]).nbytes)))
    for begin in range(0, len(indices), batch):
        yield experience.observe(indices[begin : begin + batch])


def as_vectors(observations: np.ndarray) -> np.ndarray:
    """One row an observation, in double precision; bytes become numbers in [0, 1]."""
    flat = observations.reshape(len(observations), -1)
    return flat / 255.0 if np.issubdtype(flat.dtype, np.integer) else flat.astype(np.float64)
