"""An environment that an agent plays in, episode by episode, each begun with a seed of its own."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from lapwing.agents.replay_buffer import ReplayBuffer, Transitions
from lapwing.data.rollouts import raised_by_env
from lapwing.errors import DatasetError

Reward = Callable[[Any, Any, Any], Any]
"""r(s, s', terminated), in place of the environment's own."""


class Starts(NamedTuple):
    """The first numbers of an environment's Discrete spaces, which need not be 0."""

    state: int
    action: int


def starts_of(env: gymnasium.Env) -> Starts:
    """Where the spaces begin; 0 where they are not Discrete."""
    return Starts(*(int(getattr(space, "start", 0)) for space in (env.observation_space, env.action_space)))


class Player:
    """An environment as an agent's training sees it.

    Args:
        env: the environment; observations are numbers or arrays.
        seed: the seeds of all episodes follow from it.
        reward: in place of the environment's own; None keeps that.
        take: from the agent's action to the environment's; None counts Discrete actions from the first.
        begun: how many episodes have begun already.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        seed: int,
        reward: Reward | None = None,
        take: Callable[[Any], Any] | None = None,
        begun: int = 0,
    ):
        self.env, self.seed, self.reward, self.begun = env, seed, reward, begun
        self.over = False
        self.first_state, first_action = starts_of(env)
        self.take = take or (lambda action: first_action + action)
        self.begin()

    def begin(self) -> None:
        """Start the next episode."""
        seed = int(np.random.default_rng([self.seed, 2, self.begun]).integers(2**31))
        try:
            observation, _ = self.env.reset(seed=seed)
        except Exception as error:
            raise raised_by_env(error) from error
        self.begun, self.over = self.begun + 1, False
        self.observation = self._checked(observation)

    def step(self, action: Any) -> Transitions:
        """One transition, after which the episode may be over."""
        here = self.observation
        try:
            observation, reward, terminated, truncated, _ = self.env.step(self.take(action))
        except Exception as error:
            raise raised_by_env(error) from error
        there = self._checked(observation)
        reward = float(reward if self.reward is None else self.reward(here, there, terminated))
        if not np.isfinite(reward):
            raise DatasetError(f"the reward is {reward} in episode {self.begun - 1}; fix the environment")
        self.observation, self.over = there, bool(terminated or truncated)
        return Transitions(here, action, reward, there, terminated)

    def fill(self, buffer: ReplayBuffer, steps: int, draw: Callable[[], Any]) -> None:
        """Store so many steps with the actions that are drawn; another player's may follow."""
        for left in reversed(range(steps)):
            transition = self.step(draw())
            buffer.store(transition, cut=(self.over or left == 0) and not transition.terminated)
            if self.over:
                self.begin()

    def _checked(self, observation: Any) -> Any:
        """The observation as networks take it; NaN is found before it is learned."""
        if not np.all(np.isfinite(observation)):
            raise DatasetError(
                f"an observation holds NaN or infinity in episode {self.begun - 1}; fix the environment"
            )
        if np.ndim(observation) == 0:
            return observation - self.first_state
        return np.array(observation)  # a copy: an environment may write its next one over it
