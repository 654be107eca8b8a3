"""The graph drawing loss minimised in closed form over bumps, which validation episodes select.

Over linear combinations of fixed functions the loss needs no gradient step. Rayleigh-Ritz gives their
eigenfunctions f_i with eigenvalues λ_i, and the minimiser is φ_i = a_i f_i with a_i² = max(0, δ - λ'_i / 2β).
By the same principle every basis gives upper bounds of the eigenvalues. So of two bases, the one with the
lower sum of Rayleigh quotients *on episodes that it was not fitted on* is better (the score of McGibbon and
Pande, 2015). This score selects the coordinates, the bumps, their width, the cut-off and the stages.

The coordinates of the first stage are the slow linear functions of the observation, also found by
Rayleigh-Ritz and scaled by (λ_2 / λ_i)^p: with p = ½ distances between them are those of commute times (the
kinetic map of Noé and Clementi, 2015). So noise and fast velocities have little weight, and no bumps are
spent on them. The coordinates of a further stage are the functions of the stage before it.
"""

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lapwing.data.experience import Experience
from lapwing.errors import DatasetError
from lapwing.laplacian import hosts
from lapwing.laplacian.bases import (
    Basis,
    Combined,
    Coordinates,
    Pairs,
    Reduction,
    at_once,
    components_of,
    observed,
    pair_batches,
    spread_centres,
)
from lapwing.laplacian.bumps import Bumps
from lapwing.laplacian.chain import multi_step_eigenvalues
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.objectives.drawing import surviving_scale
from lapwing.laplacian.ritz import Moments, mean_moments, rayleigh_ritz, ritz_by_cutoff
from lapwing.laplacian.shards import Shards

LEAST_SCORED = 10
"""A basis is chosen by at least so many functions: of a few, the fastest decide, and walls may be missed."""
LEAST_PASSED_ON = 20
"""At least so many functions of a stage are given to the next."""
CUTOFFS = (1e-9, 1e-7, 1e-5, 1e-3)
"""Directions whose variance is below this share of the largest are not used; those that are tried."""
BETTER = 0.99
"""What costs more is taken if the score falls below this share."""
VALIDATION = 0.2
"""The share of what is learned from that the choice is made on; the chosen bumps are then fitted on all."""
SOME_PAIRS = 40_000
"""So many pairs decide."""
MOST_PRODUCTS = 3e10
"""Pairs times squared functions in the last fit of a stage."""
SOME_ROWS = 20_000
"""So many observations are clustered."""
PER_BUMP = 10
"""At least so many transitions there are for each bump."""


@dataclass(frozen=True)
class StageChoice:
    """What defines the functions of a stage, given the data and the stages before."""

    slowness: float
    bumps: int
    bump_width: float
    cutoff: float

    def __str__(self) -> str:
        return f"{self.bumps} bumps of width {self.bump_width:.3g}, slowness {self.slowness:g}"


Choice = tuple[StageChoice, ...]
"""One for each stage."""


@dataclass(frozen=True)
class Trial:
    """What was tried and how it does on validation episodes."""

    what: str
    score: float
    """The sum of the Rayleigh quotients of the first functions, `dim` of a network and of bumps at least
    `LEAST_SCORED`; a missing one counts 1."""
    choice: Choice = ()
    eigenvalues: tuple[float, ...] = field(default=(), repr=False)

    def score_of(self, dim: int) -> float:
        """The sum of the first `dim` alone."""
        return sum(self.eigenvalues[:dim]) + max(0, dim - len(self.eigenvalues))

    def as_json(self) -> dict[str, Any]:
        """The trial as JSON can hold it."""
        return {"what": self.what, "score": self.score, "stages": [asdict(stage) for stage in self.choice]}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Trial":
        """The trial that `as_json` wrote, without its eigenvalues."""
        choice = tuple(StageChoice(**stage) for stage in values["stages"])
        return cls(values["what"], values["score"], choice)


class Study:
    """What the trials of one stage share: the data as it is seen behind the stages before."""

    def __init__(self, learned_from: Experience, dim: int, seed: int, scored: int | None = None):
        self.dim, self.seed = dim, seed
        self.scored = scored or dim
        """By how many functions a basis is chosen."""
        self.stages: tuple[Combined, ...] = ()
        self.learned_from = learned_from
        self.parts = learned_from.split(VALIDATION) if learned_from.n_transitions > 3 else (learned_from,) * 2
        """What trials are fitted on, and what they are scored on."""
        fitted_on = self.parts[0]
        drawn = np.random.default_rng(seed).integers(len(fitted_on.observations), size=SOME_ROWS)
        drawn.sort()
        spaced = drawn[:: -(-SOME_ROWS // at_once(fitted_on))]  # as many as fit, from all of the data
        most = components_of(fitted_on.observation_shape, fitted_on.n_transitions)
        self.reduction = Reduction.of(fitted_on.observe(spaced), most=most)
        if not self.reduction.matrix.any():
            raise DatasetError(
                f"{len(fitted_on.observations):,} of {len(learned_from.observations):,} observations, which "
                "functions are fitted to, are all the same; collect more of the others"
            )
        self.rows = np.concatenate([self.reduction(batch) for batch in observed(fitted_on, drawn)])
        """Some observations."""

    @cached_property
    def pairs(self) -> tuple[Pairs, Pairs]:
        """Transitions to fit on and to score on."""
        first, second = (_reduced_pairs(part, self.reduction) for part in self.parts)
        return first, second

    @cached_property
    def coordinates(self) -> Coordinates:
        """Slow linear functions of what is seen."""
        return Coordinates.of(self.pairs[0])

    @property
    def most_bumps(self) -> int:
        """No more than the data can tell apart."""
        return max(1, self.parts[0].n_transitions // PER_BUMP)

    def behind(self, stage: Combined) -> "Study":
        """The same behind one stage more."""
        further = object.__new__(Study)
        further.__dict__ |= {name: value for name, value in vars(self).items() if name != "coordinates"}
        further.stages = (*self.stages, stage)
        further.rows = stage(self.rows)
        first, second = (pairs.mapped(stage) for pairs in self.pairs)
        further.pairs = first, second
        return further

    def basis(self, choice: StageChoice) -> Basis:
        """The functions of a choice."""
        projection = self.coordinates.projection(choice.slowness)
        centres, spacing = spread_centres(self.rows @ projection, choice.bumps, self.seed)
        return Basis(projection, centres, choice.bump_width * spacing)

    def fitted(self, choice: StageChoice) -> Combined:
        """The functions that the next stage is given, fitted on what trials are fitted on."""
        basis = self.basis(choice)
        passed_on = max(self.dim, LEAST_PASSED_ON)
        ritz = rayleigh_ritz(*self.pairs[0].moments(basis), passed_on + 1, cutoff=choice.cutoff)
        return Combined(basis, ritz.coefficients[:, 1:])

    def trial(self, slowness: float, bumps: int, widths, cutoffs) -> tuple[StageChoice, float, np.ndarray]:
        """The best width and cut-off for so many bumps, with score and eigenvalues on validation data."""
        projection = self.coordinates.projection(slowness)
        centres, spacing = spread_centres(self.rows @ projection, bumps, self.seed)
        found = []
        for width in widths:
            basis = Basis(projection, centres, width * spacing)
            fitted, measured = (pairs.moments(basis) for pairs in self.pairs)
            for cutoff, ritz in ritz_by_cutoff(*fitted, self.scored, cutoffs).items():
                score, values = held_out_score(ritz.coefficients, measured, self.scored)
                found.append((score, StageChoice(slowness, len(centres), width, cutoff), values))
        score, choice, values = min(found, key=lambda one: one[0])
        return choice, score, values


def held_out_score(coefficients: np.ndarray, measured: Moments, dim: int) -> tuple[float, np.ndarray]:
    """The sum of the eigenvalues of fitted functions on other data, and these eigenvalues.

    Within the span of the functions it is the sum of the Rayleigh quotients, whatever basis they have.

    Args:
        coefficients: the functions, one a column.
        measured: the moments of the other data.
        dim: how many functions are wanted; a missing one counts 1.
    """
    drawing, second = (coefficients.T @ moment @ coefficients for moment in measured)
    scales, directions = np.linalg.eigh((second + second.T) / 2)
    kept = scales > 1e-9 * scales.max(initial=0)
    whiten = directions[:, kept] / np.sqrt(scales[kept])
    found = np.linalg.eigvalsh(whiten.T @ (drawing + drawing.T) @ whiten / 2)
    return float(found.sum()) + dim - len(found), found


def fit(
    learned_from: Experience,
    choice: Choice,
    dim: int,
    *,
    oversample: int,
    seed: int,
    lam: float,
    beta: float,
    delta: float,
    study: Study | None = None,
    shards: Shards | None = None,
) -> tuple[Bumps, EncoderSpec]:
    """The minimiser of the loss over the chosen functions, from every episode that is learned from.

    Args:
        learned_from: the episodes.
        choice: the functions.
        dim: how many eigenfunctions are wanted; the same as in `choose`, like `seed`.
        oversample: how many columns φ has beyond them.
        seed: of what is drawn.
        lam: λ of P_λ.
        beta: β.
        delta: δ.
        study: that of `choose`, if it is known.
        shards: what the moments are summed over, where the episodes are a sample of it.
    """
    study = study or Study(learned_from, dim, seed)
    for stage in choice[:-1]:
        study = study.behind(study.fitted(stage))
    basis = study.basis(choice[-1])
    most = int(MOST_PRODUCTS / (len(basis.centres) + basis.projection.shape[1]) ** 2)
    reduction, stages = study.reduction, study.stages
    if shards is not None:
        reduction, stages, basis = hosts.as_in_first((reduction, stages, basis))

    def fitted(part: Experience, some: int) -> tuple[Moments, int]:
        moments = mean_moments(
            (_through(stages, pairs).moments(basis), len(pairs.here))
            for pairs in pair_batches(part, reduction, some)
        )
        return moments, min(part.n_transitions, some)

    moments = fitted(learned_from, most)[0] if shards is None else shards.mean_moments(fitted, most)
    ritz = rayleigh_ritz(*moments, dim + oversample, cutoff=choice[-1].cutoff)
    scale = surviving_scale(multi_step_eigenvalues(ritz.eigenvalues, lam), beta, delta)
    stages = (*stages, Combined(basis, ritz.coefficients * scale))
    encoder, spec = encoder_of(reduction, stages, learned_from.observation_shape)
    encoder = encoder if shards is None else hosts.as_in_first(encoder)
    return encoder, spec.shrunk_by(learned_from.shrinking)


def _through(stages: tuple[Combined, ...], pairs: Pairs) -> Pairs:
    for stage in stages:
        pairs = pairs.mapped(stage)
    return pairs


def encoder_of(
    reduction: Reduction, stages: tuple[Combined, ...], shape: tuple[int, ...]
) -> tuple[Bumps, EncoderSpec]:
    """The network that computes these combinations."""
    sizes = tuple(
        (stage.basis.projection.shape[1], len(stage.basis.centres), stage.coefficients.shape[1])
        for stage in stages
    )
    spec = EncoderSpec(name="bumps", shape=shape, dim=sizes[-1][-1], stages=sizes)
    shift = jnp.asarray(reduction.shift.reshape(shape), jnp.float32)
    empty = Bumps(shift, sizes, key=jax.random.key(0))
    first = replace(stages[0].basis, projection=reduction.matrix @ stages[0].basis.projection)
    numbers = [
        (basis.projection, basis.centres, basis.width, stage.coefficients[1:].T, stage.coefficients[0])
        for stage, basis in zip(stages, (first, *(stage.basis for stage in stages[1:])), strict=True)
    ]

    def slots(bumps: Bumps) -> list:
        return [
            slot
            for stage in bumps.stages
            for slot in (stage.projection, stage.centres, stage.width, stage.layer.weight, stage.layer.bias)
        ]

    flat = [jnp.asarray(np.asarray(array), jnp.float32) for stage in numbers for array in stage]
    return eqx.tree_at(slots, empty, flat), spec


def _reduced_pairs(experience: Experience, reduction: Reduction) -> Pairs:
    batches = list(pair_batches(experience, reduction, SOME_PAIRS))
    return Pairs(*(np.concatenate(ends) for ends in zip(*batches, strict=True)))
