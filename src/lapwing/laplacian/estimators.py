"""The loss of a step, by each of the three estimators, with the data that it needs.

A loss is a pytree: its data are arguments of the compiled loop, not constants inside it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lapwing.data.experience import Experience
from lapwing.laplacian import objectives
from lapwing.laplacian.chain import dense
from lapwing.laplacian.encoders import Encoder, embed
from lapwing.laplacian.sampling import (
    PairSampler,
    annealed_lam,
    draw_pairs,
    pair_sampler,
    sample_pairs,
    sample_states,
)
from lapwing.laplacian.target import Target
from lapwing.settings.learn import ResolvedSettings

CHUNKS = 100
"""Into so many parts learning is divided, with a row of metrics for each."""
READ_AT_ONCE = 1 << 26
"""How many bytes are read from disk at a time."""


class ExactLoss(eqx.Module):
    """`exact`: sums over enumerated states."""

    features: Array
    laplacian: Float[Array, "states states"]
    """diag(ρ) - W of P_λ."""
    rho: Float[Array, " states"]
    settings: ResolvedSettings = eqx.field(static=True)

    def __call__(self, encoder: Encoder, step, key: PRNGKeyArray) -> objectives.Loss:
        """The loss, which is the same at every step."""
        phi = jax.vmap(encoder.network)(self.features)
        weights = {"beta": self.settings.beta, "delta": self.settings.delta}
        return objectives.exact_loss(phi, self.laplacian, self.rho, **weights)


class PairLoss(eqx.Module):
    """`sampled` and `pairwise`: pairs drawn from experience in memory."""

    observations: Array
    """The observation at each index, or the id of its state."""
    features: Array | None
    """The features of each state, where the states are enumerated."""
    sampler: PairSampler
    settings: ResolvedSettings = eqx.field(static=True)

    def __call__(self, encoder: Encoder, step, key: PRNGKeyArray) -> objectives.Loss:
        """The loss of the pairs of this step."""
        weights = {"beta": self.settings.beta, "delta": self.settings.delta}
        if self.settings.estimator == "pairwise":
            return objectives.pairwise_loss(*self._embed(encoder, *self._pairs(step, key)), **weights)
        pair_key, *state_keys = jax.random.split(key, 3)
        size = len(self.observations)
        states = [sample_states(size, self.settings.batch, key=state_key) for state_key in state_keys]
        indices = (*self._pairs(step, pair_key), *states)
        return objectives.sampled_loss(*self._embed(encoder, *indices), **weights)

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


class DiskLoss(eqx.Module):
    """`sampled` and `pairwise` from experience on disk: what some steps need is read before them."""

    batches: Array
    """What is embedded at each of these steps: (steps, batches, batch, …), the pairs' two ends first."""
    begin: Int[Array, ""]
    """The step that `batches` begins with."""
    experience: Experience = eqx.field(static=True)
    settings: ResolvedSettings = eqx.field(static=True)

    @classmethod
    def of(cls, experience: Experience, settings: ResolvedSettings) -> "DiskLoss":
        """With nothing read yet."""
        drawn = 2 if settings.estimator == "pairwise" else 4
        a_step = drawn * settings.batch * max(1, experience.observations[:1].nbytes)
        steps = min(max(1, READ_AT_ONCE // a_step), max(1, settings.steps // CHUNKS))
        shape = (steps, drawn, settings.batch, *experience.observation_shape)
        return cls(jnp.zeros(shape, experience.observations.dtype), jnp.int32(0), experience, settings)

    @property
    def most_steps(self) -> int:
        """How many steps are read for at a time."""
        return len(self.batches)

    def at(self, begin: int, end: int) -> "DiskLoss":
        """For these steps, at most `most_steps`; the same numbers whatever the chunks."""
        flat = np.concatenate([self._indices(step) for step in range(begin, end)])
        order = np.argsort(flat)  # a file is read from its beginning to its end
        rows = np.empty((len(flat), *self.experience.observation_shape), self.experience.observations.dtype)
        rows[order] = self.experience.observe(flat[order])
        batches = np.zeros(self.batches.shape, rows.dtype)
        batches[: end - begin] = rows.reshape(end - begin, *self.batches.shape[1:])
        return DiskLoss(jnp.asarray(batches), jnp.int32(begin), self.experience, self.settings)

    def _indices(self, step: int) -> np.ndarray:
        settings = self.settings
        rng = np.random.default_rng([settings.seed, step])
        lam = float(lam_at(settings, step))
        pairs = draw_pairs(self.experience, lam, settings.batch, settings.past_end, rng)
        alone = (self.batches.shape[1] - 2) * settings.batch
        return np.concatenate([*pairs, rng.integers(len(self.experience.observations), size=alone)])

    def __call__(self, encoder: Encoder, step, key: PRNGKeyArray) -> objectives.Loss:
        """The loss of the pairs of this step; they have been drawn, so `key` is not used."""
        seen = self.batches[step - self.begin]
        phi = jax.vmap(embed, in_axes=(None, 0))(encoder, seen.reshape(-1, *seen.shape[2:]))
        loss = objectives.pairwise_loss if len(seen) == 2 else objectives.sampled_loss
        return loss(*jnp.split(phi, len(seen)), beta=self.settings.beta, delta=self.settings.delta)


def lam_at(settings: ResolvedSettings, step):
    """λ at this step."""
    if settings.lam_final is None:
        return settings.lam
    return annealed_lam(settings.lam, settings.lam_final, step / max(settings.steps - 1, 1))


StepLoss = ExactLoss | PairLoss | DiskLoss


def make_loss(target: Target, settings: ResolvedSettings, encoder: Encoder) -> StepLoss:
    """The loss that the settings ask for, with its data in place."""
    features: Any = None
    if target.states is not None:
        features = jax.vmap(encoder.features)(jnp.asarray(target.states))
    if settings.estimator == "exact":
        chain = target.chain(settings.lam)
        laplacian = np.diag(chain.rho) - dense(chain.weights)
        rho = jnp.asarray(chain.rho, jnp.float32)
        return ExactLoss(features, jnp.asarray(laplacian, jnp.float32), rho, settings)
    experience = target.learned_from
    if experience.on_disk:
        return DiskLoss.of(experience, settings)
    sampler = pair_sampler(experience, max(settings.lam, settings.lam_final or 0.0))
    return PairLoss(jnp.asarray(experience.observations), features, sampler, settings)
