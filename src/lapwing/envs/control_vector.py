"""Many bodies in one arena as a Gymnasium vector environment, stepped at once through `mujoco.rollout`.

`gymnasium.make_vec("lapwing/PointUMaze-v0", num_envs=16, vectorization_mode="vector_entry_point")` gives one.
"""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lapwing.envs.arena import EPISODE_LENGTH
from lapwing.envs.control import ControlEnv
from lapwing.errors import ConfigError
from lapwing.mazes import Maze


class ControlVectorEnv(VectorEnv):
    """`ControlEnv` for many bodies, to the same bits; an ended episode begins anew with the next step.

    Args:
        num_envs: how many bodies.
        max_episode_steps: after how many steps an episode is truncated.
        body: `"Point"` or `"Ant"`.
        maze: `"UMaze"`, `"HookMaze"`, a text file or a `Maze`.
        goal: (row, column) of the goal; None is the maze's own.
        cell: the width of a corridor; None is the body's own.
        fast: whether to simulate with the integrator implicitfast in place of RK4.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int,
        body: str,
        maze: str | Path | Maze,
        goal: tuple[int, int] | None = None,
        cell: float | None = None,
        fast: bool = False,
        max_episode_steps: int = EPISODE_LENGTH,
    ):
        """Compile the arena once for all bodies."""
        if num_envs < 1:
            raise ConfigError(f"num_envs must be at least 1, not {num_envs}")
        self._one = ControlEnv(body, maze, goal, cell, fast)
        self.arena, self.simulator = self._one.arena, self._one.simulator
        self.num_envs, self.max_episode_steps = num_envs, max_episode_steps
        self.single_observation_space = self._one.observation_space
        self.single_action_space = self._one.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space: gymnasium.Space = batch_space(self.single_action_space, num_envs)
        self._rows = self.simulator.at_rest(np.repeat(self.arena.goal[None], num_envs, axis=0))
        self._steps = np.zeros(num_envs, int)
        self._over = np.zeros(num_envs, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start all of them anywhere, or at `options={"rows": …}` as the simulator knows bodies."""
        super().reset(seed=seed)
        everyone = np.ones(self.num_envs, bool)
        if options and "rows" in options:
            self._rows = np.array(options["rows"], np.float64)
            self._steps[:], self._over[:] = 0, False
        else:
            self._begin(everyone)
        observation = self._observe()
        return observation, self._info(observation)

    def step(self, actions):
        """Push them all; those whose episode was over begin another one in place."""
        begun = self._over.copy()
        self._rows = self.simulator.step(self._rows, actions)
        self._steps += 1
        self._begin(begun)
        observation = self._observe()
        info = self._info(observation)
        rewards = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], info)
        rewards = np.where(begun, 0.0, rewards)
        truncated = self._steps >= self.max_episode_steps
        self._over = truncated
        return observation, rewards, np.zeros(self.num_envs, bool), truncated.copy(), info

    def compute_reward(self, achieved_goal, desired_goal, info) -> np.ndarray:
        """-1, or 0 within a tenth of the maze's size of the goal."""
        return self._one.compute_reward(achieved_goal, desired_goal, info)

    def _begin(self, which: np.ndarray) -> None:
        """New episodes for some."""
        if which.any():
            starts = self.arena.random_positions(int(which.sum()), self.np_random)
            self._rows[which] = self.simulator.at_rest(starts, self.np_random)
            self._steps[which], self._over[which] = 0, False

    def _observe(self) -> dict[str, np.ndarray]:
        seen = self.simulator.observe(self._rows)
        goals = np.repeat(self.arena.goal.astype(np.float32)[None], self.num_envs, axis=0)
        return {"observation": seen, "achieved_goal": seen[:, :2].copy(), "desired_goal": goals}

    def _info(self, observation: dict[str, np.ndarray]) -> dict[str, Any]:
        away = np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"], axis=1)
        success = away <= self.arena.goal_radius
        return {"success": success, "is_success": success.copy(), "distance": away}
