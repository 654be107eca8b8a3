"""Rewards shaped by a φ that is learned beside the agent, and so change with every step of it."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lapwing.laplacian.encoders import Encoder, embed
from lapwing.laplacian.online import PhiLearner
from lapwing.settings.learn import RewardForm
from lapwing.shaping.rewards import FORMS, Goal, Step, ToGoal, action_rewards, to_goal
from lapwing.shaping.tasks import GridTask


@dataclass(frozen=True)
class OnlinePhi:
    """The reward of arriving at observations."""

    learner: PhiLearner
    encoder: Encoder
    """φ before its first step."""
    form: RewardForm
    goal: Goal

    def rewards(self, encoder: Encoder, observations: Float[Array, "batch k"]) -> Float[Array, " batch"]:
        """The reward of arriving there, with φ as it is now."""
        z = self.goal.h(observations)
        goal, at = (self.goal.z, z) if self.goal.state is None else (self.goal.state, observations)
        phi = jax.vmap(embed, in_axes=(None, 0))(encoder, jnp.concatenate([at, jnp.asarray(goal)[None]]))
        to = to_goal(z, self.goal.z, self.goal.radius, phi[:-1], phi[-1])
        return FORMS[self.form](Step(to, to))

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
