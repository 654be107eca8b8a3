"""φ learned together with an agent, and the rewards that it shapes, which change with every step of φ.

φ takes one step per agent step, on pairs from the replay buffer. λ decreases linearly over the agent's steps,
because a trained agent moves faster (the paper).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Scalar

from lapwing.laplacian.encoders import Encoder, embed
from lapwing.laplacian.objectives.drawing import pairwise_loss
from lapwing.laplacian.sampling import annealed_lam
from lapwing.settings.learn import LearnSettings, RewardForm
from lapwing.shaping.rewards import FORMS, Goal, Step, ToGoal, action_rewards, relative, to_goal
from lapwing.shaping.tasks import GridTask

LAM_FINAL = 0.95
"""What λ is annealed to, in the paper."""


class PhiState(NamedTuple):
    """What a step of φ changes."""

    encoder: Encoder
    optimiser: optax.OptState


@dataclass(frozen=True)
class PhiLearner:
    """How φ is learned online, while an agent learns."""

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
        return jnp.asarray(annealed_lam(self.lam, self.lam_final, progress), jnp.float32)

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
    """The reward of steps between observations."""

    learner: PhiLearner
    encoder: Encoder
    """φ before its first step."""
    form: RewardForm
    goal: Goal
    gamma: float | None = None
    """The discount of an agent whose values are relative to standing still; None: they are not."""

    def rewards(
        self, encoder: Encoder, observations: Float[Array, "batch k"], following: Float[Array, "batch k"]
    ) -> Float[Array, " batch"]:
        """The reward of each step, with φ as it is now."""
        there = self._to_goal(encoder, following)
        if self.gamma is None:
            return FORMS[self.form](Step(there, there))
        return relative(self.form, Step(self._to_goal(encoder, observations), there, gamma=self.gamma))

    def _to_goal(self, encoder: Encoder, observations: Float[Array, "batch k"]) -> ToGoal:
        z = self.goal.h(observations)
        goal, at = (self.goal.z, z) if self.goal.state is None else (self.goal.state, observations)
        phi = jax.vmap(embed, in_axes=(None, 0))(encoder, jnp.concatenate([at, jnp.asarray(goal)[None]]))
        return to_goal(z, self.goal.z, self.goal.radius, phi[:-1], phi[-1])

    def sees(self, observations: Any) -> Any:
        """What φ embeds of an observation."""
        return self.goal.h(observations) if self.goal.state is None else observations


@dataclass(frozen=True)
class OnlineRewards:
    """The reward of each action in each state of a maze."""

    learner: PhiLearner
    encoder: Encoder
    """φ before its first step."""
    form: RewardForm
    task: GridTask
    scale: float = 1.0
    """Multiplies the distance in the embedding."""

    def table(
        self, encoder: Encoder, observations: Array, next_state: Int[Array, "states actions"], gamma: float
    ) -> Float[Array, "states actions"]:
        """The rewards with φ as it is now.

        Args:
            encoder: φ.
            observations: what is seen in each state.
            next_state: where each action leads.
            gamma: the agent's discount.
        """
        phi = jax.vmap(embed, in_axes=(None, 0))(encoder, observations)
        to = ToGoal(*map(jnp.asarray, self.task.distances(phi, self.scale)))
        return action_rewards(self.form, to, next_state, gamma)
