"""The loss of a step, by each of the three estimators, with the data that it needs.

A loss is a pytree: its data are arguments of the compiled loop, not constants inside it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lapwing import objectives
from lapwing.chain import dense
from lapwing.encoders import Encoder
from lapwing.sampling import PairSampler, pair_sampler, sample_pairs, sample_states
from lapwing.settings import ResolvedSettings
from lapwing.targets import Target


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
    """`sampled` and `pairwise`: pairs drawn from experience."""

    observations: Array
    """What was seen at each place, or the id of the state."""
    features: Array | None
    """The features of each state, where the states are enumerated."""
    sampler: PairSampler
    settings: ResolvedSettings = eqx.field(static=True)

    def __call__(self, encoder: Encoder, step, key: PRNGKeyArray) -> objectives.Loss:
        """The loss of the pairs of this step."""
        weights = {"beta": self.settings.beta, "delta": self.settings.delta}
        if self.settings.estimator == "pairwise":
            pairs = self._pairs(step, key)
            return objectives.pairwise_loss(*self._embed(encoder, *pairs), **weights)
        pair_key, *state_keys = jax.random.split(key, 3)
        pairs = self._pairs(step, pair_key)
        states = [
            sample_states(len(self.observations), self.settings.batch, key=state_key)
            for state_key in state_keys
        ]
        return objectives.sampled_loss(*self._embed(encoder, *pairs, *states), **weights)

    def _pairs(self, step, key: PRNGKeyArray) -> tuple[Int[Array, " batch"], Int[Array, " batch"]]:
        settings, lam = self.settings, self.settings.lam
        if settings.lam_final is not None:
            lam = lam + (settings.lam_final - lam) * step / max(settings.steps - 1, 1)
        return sample_pairs(self.sampler, lam, settings.batch, settings.past_end, key=key)

    def _embed(self, encoder: Encoder, *places: Int[Array, " batch"]) -> tuple[Array, ...]:
        """φ at these places; a table no larger than the batches is embedded whole, and gathered from."""
        at = jnp.concatenate(places)
        if self.features is None:
            phi = jax.vmap(encoder.network)(jax.vmap(encoder.features)(self.observations[at]))
        elif len(self.features) <= len(at):
            phi = jax.vmap(encoder.network)(self.features)[self.observations[at]]
        else:
            phi = jax.vmap(encoder.network)(self.features[self.observations[at]])
        return tuple(jnp.split(phi, len(places)))


def make_loss(target: Target, settings: ResolvedSettings, encoder: Encoder) -> ExactLoss | PairLoss:
    """The loss that the settings ask for, with its data in place."""
    features: Any = None
    if target.states is not None:
        features = jax.vmap(encoder.features)(jnp.asarray(target.states))
    if settings.estimator == "exact":
        chain = target.chain(settings.lam)
        laplacian = np.diag(chain.rho) - dense(chain.weights)
        rho = jnp.asarray(chain.rho, jnp.float32)
        return ExactLoss(features, jnp.asarray(laplacian, jnp.float32), rho, settings)
    assert target.experience is not None
    largest_lam = max(settings.lam, settings.lam_final or 0.0)
    sampler = pair_sampler(target.experience, largest_lam)
    return PairLoss(jnp.asarray(target.experience.observations), features, sampler, settings)
