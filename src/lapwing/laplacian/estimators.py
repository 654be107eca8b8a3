"""The three estimators: what each passes to an objective at a step, and the data that it needs.

An estimator is a pytree: its data are arguments of the compiled loop, not constants inside it.
"""

from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from lapwing.data.experience import Experience
from lapwing.laplacian.chain import DENSE_EIGEN_LIMIT, multi_step_eigenvalues
from lapwing.laplacian.encoders import Encoder, embed
from lapwing.laplacian.objectives.batch import Batch, ExactBatch, PairwiseBatch, SampledBatch, StatesBatch
from lapwing.laplacian.sampling import (
    PairSampler,
    annealed_lam,
    cumulative,
    draw_pairs,
    pair_sampler,
    sample_by,
    sample_pairs,
    sample_states,
)
from lapwing.laplacian.target import Target
from lapwing.settings.learn import ResolvedSettings

CHUNKS = 100
"""Into so many parts learning is divided, with a row of metrics for each."""
ALL_STATES = 2_000
"""Up to so many states `exact` sums over all of them at every step."""
STATES_DRAWN = 1_024
"""So many it draws for a step where there are more."""
LEAST_EIGENPAIRS, EIGENPAIRS_A_DIMENSION = 64, 4
"""D of many states is known by so many of its eigenpairs."""
READ_AT_ONCE = 1 << 26
"""How many bytes are read from disk at a time."""


class ExactEstimator(eqx.Module):
    """`exact`: sums over enumerated states."""

    features: Array
    functions: Float[Array, "states r"]
    """The eigenfunctions of D of P_λ."""
    mu: Float[Array, " r"]
    """Their eigenvalues."""
    rho: Float[Array, " states"]

    def __call__(self, encoder: Encoder, step, key: PRNGKeyArray) -> ExactBatch:
        """The same at every step, but for φ."""
        phi = jax.vmap(encoder.network)(self.features)
        return ExactBatch(phi, self.functions, self.mu, self.rho)


class StatesEstimator(eqx.Module):
    """`exact` where the states are too many to embed all of them at every step: some are drawn."""

    states: Array
    """The observation of each state."""
    functions: Float[Array, "states r"]
    """The eigenfunctions of D of P_λ."""
    mu: Float[Array, " r"]
    """Their eigenvalues."""
    rho: UInt32[Array, " states"]
    """The distribution of the states, as `sampling.cumulative` has it."""

    def __call__(self, encoder: Encoder, step, key: PRNGKeyArray) -> StatesBatch:
        """The states of this step."""
        drawn = sample_by(self.rho, STATES_DRAWN, key=key)
        phi = jax.vmap(embed, in_axes=(None, 0))(encoder, self.states[drawn])
        return StatesBatch(phi, self.functions[drawn], self.mu)


class PairEstimator(eqx.Module):
    """`sampled` and `pairwise`: pairs drawn from experience in memory."""

    observations: Array
    """The observation at each index, or the id of its state."""
    features: Array | None
    """The features of each state, where the states are enumerated."""
    sampler: PairSampler
    settings: ResolvedSettings = eqx.field(static=True)

    def __call__(self, encoder: Encoder, step, key: PRNGKeyArray) -> Batch:
        """The pairs of this step."""
        if self.settings.estimator == "pairwise":
            return PairwiseBatch(*self._embed(encoder, *self._pairs(step, key)))
        pair_key, *state_keys = jax.random.split(key, 3)
        size = len(self.observations)
        states = [sample_states(size, self.settings.batch, key=state_key) for state_key in state_keys]
        indices = (*self._pairs(step, pair_key), *states)
        return SampledBatch(*self._embed(encoder, *indices))

    def _pairs(self, step, key: PRNGKeyArray) -> tuple[Int[Array, " batch"], Int[Array, " batch"]]:
        batch, past_end = self.settings.batch, self.settings.past_end
        return sample_pairs(self.sampler, lam_at(self.settings, step), batch, past_end, key=key)

    def _embed(self, encoder: Encoder, *indices: Int[Array, " batch"]) -> tuple[Array, ...]:
        """φ at these indices; a table no larger than the batches is embedded whole, and gathered from."""
        at = jnp.concatenate(indices)
        if self.features is None:
            phi = jax.vmap(encoder.network)(jax.vmap(encoder.features)(self.observations[at]))
        elif len(self.features) <= len(at):
            phi = jax.vmap(encoder.network)(self.features)[self.observations[at]]
        else:
            phi = jax.vmap(encoder.network)(self.features[self.observations[at]])
        return tuple(jnp.split(phi, len(indices)))


class DiskEstimator(eqx.Module):
    """`sampled` and `pairwise` from experience on disk: what some steps need is read before them."""

    batches: Array
    """What is embedded at each of these steps: (steps, batches, batch, …), the pairs' two ends first."""
    begin: Int[Array, ""]
    """The step that `batches` begins with."""
    experience: Experience = eqx.field(static=True)
    settings: ResolvedSettings = eqx.field(static=True)

    @classmethod
    def of(cls, experience: Experience, settings: ResolvedSettings) -> "DiskEstimator":
        """With nothing read yet."""
        drawn = 2 if settings.estimator == "pairwise" else 4
        steps = steps_at_once(experience, settings, drawn)
        shape = (steps, drawn, settings.batch, *experience.observation_shape)
        return cls(jnp.zeros(shape, experience.observations.dtype), jnp.int32(0), experience, settings)

    @property
    def most_steps(self) -> int:
        """How many steps are read for at a time."""
        return len(self.batches)

    def at(self, begin: int, end: int) -> "DiskEstimator":
        """For these steps, at most `most_steps`; the same numbers whatever the chunks."""
        rows = read_at(self.experience, np.concatenate([self._indices(step) for step in range(begin, end)]))
        batches = np.zeros(self.batches.shape, rows.dtype)
        batches[: end - begin] = rows.reshape(end - begin, *self.batches.shape[1:])
        return DiskEstimator(jnp.asarray(batches), jnp.int32(begin), self.experience, self.settings)

    def _indices(self, step: int) -> np.ndarray:
        settings = self.settings
        rng = np.random.default_rng([settings.seed, step])
        lam = float(lam_at(settings, step))
        pairs = draw_pairs(self.experience, lam, settings.batch, settings.past_end, rng)
        alone = (self.batches.shape[1] - 2) * settings.batch
        return np.concatenate([*pairs, rng.integers(len(self.experience.observations), size=alone)])

    def __call__(self, encoder: Encoder, step, key: PRNGKeyArray) -> Batch:
        """The pairs of this step; they have been drawn, so `key` is not used."""
        seen = self.batches[step - self.begin]
        phi = jax.vmap(embed, in_axes=(None, 0))(encoder, seen.reshape(-1, *seen.shape[2:]))
        drawn = jnp.split(phi, len(seen))
        return PairwiseBatch(*drawn) if len(seen) == 2 else SampledBatch(*drawn)


def steps_at_once(experience: Experience, settings: ResolvedSettings, drawn: int) -> int:
    """How many steps are read for at a time, with so many batches in each."""
    a_step = drawn * settings.batch * max(1, experience.observations[:1].nbytes)
    return min(max(1, READ_AT_ONCE // a_step), max(1, settings.steps // CHUNKS))


def read_at(experience: Experience, indices: np.ndarray) -> np.ndarray:
    """The observations at indices of any shape, read from the beginning of a file to its end."""
    flat = indices.reshape(-1)
    order = np.argsort(flat)
    rows = np.empty((len(flat), *experience.observation_shape), experience.observations.dtype)
    rows[order] = experience.observe(flat[order])
    return rows.reshape(*indices.shape, *experience.observation_shape)


def lam_at(settings: ResolvedSettings, step):
    """λ at this step."""
    if settings.lam_final is None:
        return settings.lam
    return annealed_lam(settings.lam, settings.lam_final, step / max(settings.steps - 1, 1))


StepEstimator = ExactEstimator | StatesEstimator | PairEstimator | DiskEstimator


def make_estimator(target: Target, settings: ResolvedSettings, encoder: Encoder) -> StepEstimator:
    """The estimator that the settings ask for, with its data in place."""
    if settings.estimator == "exact":
        return _exact(target, settings, encoder)
    features = None if target.states is None else _features(target, encoder)
    experience = target.learned_from
    if experience.on_disk:
        return DiskEstimator.of(experience, settings)
    sampler = pair_sampler(experience, max(settings.lam, settings.lam_final or 0.0))
    return PairEstimator(jnp.asarray(experience.observations), features, sampler, settings)


def _exact(target: Target, settings: ResolvedSettings, encoder: Encoder) -> ExactEstimator | StatesEstimator:
    """`exact` of P_λ of the reversible one-step chain, whose eigenfunctions are those of one step."""
    count = eigenpairs_known(cast(int, target.n_states), settings.dim + settings.oversample)
    eigenvalues, functions = target.eigenpairs(count)
    mu = 1 - multi_step_eigenvalues(eigenvalues, settings.lam)
    known = (jnp.asarray(functions, jnp.float32), jnp.asarray(mu, jnp.float32))
    rho = target.one_step.rho
    if sums_over_all(target, settings):
        return ExactEstimator(_features(target, encoder), *known, jnp.asarray(rho, jnp.float32))
    return StatesEstimator(jnp.asarray(target.states), *known, cumulative(rho))


def _features(target: Target, encoder: Encoder) -> Array:
    return jax.vmap(encoder.features)(jnp.asarray(target.states))


def sums_over_all(target: Target, settings: ResolvedSettings) -> bool:
    """Whether `exact` sums over all states at every step: where they are few, or φ is a table of them."""
    return settings.encoder == "linear" or cast(int, target.n_states) <= ALL_STATES


def eigenpairs_known(states: int, dimensions: int) -> int:
    """How many eigenpairs of D `exact` works with: all where a dense solver finds them."""
    if states <= DENSE_EIGEN_LIMIT:
        return states
    return min(states, max(LEAST_EIGENPAIRS, EIGENPAIRS_A_DIMENSION * dimensions))
