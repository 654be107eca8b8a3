"""φ learned while an agent learns: one step of its own for each of the agent's, on pairs from the replay.

The replay grows and its episodes have a common length, so how many steps follow a place is known without
looking. λ falls linearly over the agent's steps, for an agent that has learned moves faster (the paper).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, Scalar

from lapwing.laplacian.encoders import Encoder, embed
from lapwing.laplacian.objectives import pairwise_loss
from lapwing.laplacian.representation import vector_norm
from lapwing.settings.learn import LearnSettings, RewardForm
from lapwing.shaping.rewards import FORMS, Goal, Step, ToGoal

LAM_FINAL = 0.95
"""What λ is annealed to, in the paper."""
TRIES = 16
"""How many places are drawn for a pair, of which the first that is not discarded is taken."""


class PhiState(NamedTuple):
    """What a step of φ changes."""

    encoder: Encoder
    optimiser: optax.OptState


@dataclass(frozen=True)
class PhiLearner:
    """How φ is learned beside an agent."""

    beta: float
    delta: float
    lam: float
    lam_final: float
    batch: int
    learning_rate: float

    @classmethod
    def of(cls, recipe: LearnSettings, lam_final: float = LAM_FINAL) -> "PhiLearner":
        """The recipe that φ would be pretrained by, with λ annealed."""
        assert recipe.beta is not None
        assert recipe.lam is not None
        assert recipe.learning_rate is not None
        return cls(recipe.beta, recipe.delta, recipe.lam, lam_final, recipe.batch, recipe.learning_rate)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam."""
        return optax.adam(self.learning_rate)

    def init(self, encoder: Encoder) -> PhiState:
        """φ before its first step."""
        return PhiState(encoder, self.optimiser.init(eqx.filter(encoder, eqx.is_inexact_array)))

    def annealed_lam(self, progress) -> Float[Scalar, ""]:
        """λ after a share `progress` of the agent's steps."""
        return jnp.asarray(self.lam + (self.lam_final - self.lam) * progress, jnp.float32)

    def update(self, state: PhiState, u: Array, v: Array) -> tuple[PhiState, dict[str, Float[Scalar, ""]]]:
        """One step of Adam on pairs (u, v) of observations."""

        def loss_of(encoder: Encoder):
            phi = jax.vmap(embed, in_axes=(None, 0))(encoder, jnp.concatenate([u, v]))
            return pairwise_loss(*jnp.split(phi, 2), beta=self.beta, delta=self.delta)

        gradient, metrics = eqx.filter_grad(loss_of, has_aux=True)(state.encoder)
        updates, optimiser = self.optimiser.update(gradient, state.optimiser)
        metrics = {f"phi/{name}": value for name, value in metrics.items()}
        return PhiState(eqx.apply_updates(state.encoder, updates), optimiser), metrics


@dataclass(frozen=True)
class OnlinePhi:
    """φ that is learned beside the agent, and the reward that it gives."""

    learner: PhiLearner
    encoder: Encoder
    form: RewardForm
    goal: Goal

    def rewards(self, encoder: Encoder, observations: Float[Array, "batch k"]) -> Float[Array, " batch"]:
        """The reward of arriving there, with φ as it is now."""
        z = self.goal.h(observations)
        raw = vector_norm(z - self.goal.z)
        goal, at = (self.goal.z, z) if self.goal.state is None else (self.goal.state, observations)
        phi = jax.vmap(embed, in_axes=(None, 0))(encoder, jnp.concatenate([at, jnp.asarray(goal)[None]]))
        to = ToGoal(raw, raw <= self.goal.radius, vector_norm(phi[:-1] - phi[-1]))
        return FORMS[self.form](Step(to, to))

    def sees(self, observations: Any) -> Any:
        """What φ embeds of an observation."""
        return self.goal.h(observations) if self.goal.state is None else observations


def sample_recent_pairs(
    horizon: Callable[[Int[Array, "..."]], Int[Array, "..."]],
    filled,
    lam: float | Float[Scalar, ""],
    batch: int,
    *,
    key: PRNGKeyArray,
) -> tuple[Int[Array, " batch"], Int[Array, " batch"]]:
    """Places t of a growing replay and numbers of steps τ ~ (1-λ) λ^(τ-1) that stay within the episode.

    A pair that runs past the end of its episode is drawn again, time and place, as the paper discards it.

    Args:
        horizon: how many steps follow a place; at least 1.
        filled: how many places there are.
        lam: λ in (0, 1).
        batch: how many pairs.
        key: a typed random key.
    """
    place_key, keep_key, rest_key, step_key = jax.random.split(key, 4)
    log_lam = jnp.log(jnp.asarray(lam, jnp.float32))
    places = jax.random.randint(place_key, (batch, TRIES), 0, filled)
    ends = horizon(places)
    survival = -jnp.expm1(ends * log_lam)  # the chance that τ ends within the episode
    kept = jax.random.uniform(keep_key, places.shape) < survival
    # Where all were discarded, one of them by its chance: nearly the same law, and λ must be near 1 for it.
    chosen = jnp.where(
        kept.any(axis=1), jnp.argmax(kept, axis=1), jax.random.categorical(rest_key, jnp.log(survival))
    )
    place, end, inside = (
        jnp.take_along_axis(values, chosen[:, None], axis=1)[:, 0] for values in (places, ends, survival)
    )
    uniform = jax.random.uniform(step_key, (batch,))
    tau = 1 + jnp.floor(jnp.log1p(-uniform * inside) / log_lam).astype(jnp.int32)
    return place, jnp.clip(tau, 1, end)
