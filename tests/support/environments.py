"""Small Gymnasium environments and wrappers."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Discrete

import lapwing  # noqa: F401 (registers the environments)


class Line(gymnasium.Env):
    """Five places in a row, left and right; each step costs 1; at the right end an episode terminates."""

    PLACES = 5

    def __init__(self, first_action: int = 0, first_place: int = 0):
        self.first_action, self.first_place = first_action, first_place
        self.action_space = Discrete(2, start=first_action)
        self.observation_space = Discrete(self.PLACES, start=first_place)
        self.place = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(self.PLACES - 1))
        return self.first_place + self.place, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place = max(self.place + (1 if action == self.first_action + 1 else -1), 0)
        return self.first_place + self.place, -1.0, self.place == self.PLACES - 1, False, {}


class Restless(gymnasium.Wrapper):
    """Episodes that end for good by chance, with a reward that tells the states apart."""

    def step(self, action):
        observation, _, _, truncated, info = self.env.step(action)
        terminated = bool(self.unwrapped.np_random.random() < 0.06)
        return observation, info["state"] / 10, terminated, truncated, info


def restless(kind: str = "position", limit: int = 9) -> gymnasium.Env:
    """TwoRoom with both kinds of ends."""
    env = gymnasium.make("lapwing/TwoRoom-v0", observation=kind, max_episode_steps=-1)
    return gymnasium.wrappers.TimeLimit(Restless(env), limit)


class Asked(gymnasium.Wrapper):
    """Remembers the options of its resets."""

    def __init__(self, env):
        super().__init__(env)
        self.asked: list[Any] = []

    def reset(self, *, seed=None, options=None):
        self.asked.append(options)
        return self.env.reset(seed=seed, options=options)


class Seeker(gymnasium.Env):
    """A point on a line of numbered places or in a plane; the goal moves, also within an episode."""

    def __init__(self, discrete: bool = False):
        place = spaces.Discrete(9, start=1) if discrete else spaces.Box(-9, 9, (2,), np.float64)
        self.observation_space = spaces.Dict({"achieved_goal": place, "desired_goal": place})
        self.action_space = spaces.Discrete(4)
        self.place = place

    def _drawn(self):
        if isinstance(self.place, spaces.Discrete):
            return self.np_random.integers(1, 10)
        return self.np_random.uniform(-9, 9, 2)

    def _observed(self):
        return {"achieved_goal": self.at, "desired_goal": self.goal}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.goal = self._drawn(), self._drawn()
        if options and "goal" in options:
            self.goal = options["goal"]
        return self._observed(), {}

    def step(self, action):
        self.at = self._drawn()
        if self.np_random.random() < 0.3:
            self.goal = self._drawn()
        return self._observed(), 0.5, bool(self.np_random.random() < 0.1), False, {}


class Sight(gymnasium.ObservationWrapper):
    """A Dict of where one is and a small picture."""

    def __init__(self, env):
        super().__init__(env)
        pixels = spaces.Box(0, 255, (6, 5), np.uint8)
        self.observation_space = spaces.Dict({"where": env.observation_space, "pixels": pixels})

    def observation(self, observation):
        return {"where": observation, "pixels": np.full((6, 5), int(127 * (1 + observation[0])), np.uint8)}
