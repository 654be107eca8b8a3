"""Many bodies in one arena as a Gymnasium vector environment, stepped at once through `mujoco.rollout`.

`gymnasium.make_vec("lapwing/PointUMaze-v0", num_envs=16, vectorization_mode="vector_entry_point")` gives one.
"""

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lapwing.envs.arena import EPISODE_LENGTH, Cell
from lapwing.envs.arena_env import ControlEnv, checked_actions
from lapwing.envs.top_view import TopView
from lapwing.errors import ConfigError
from lapwing.mazes import Maze


class ControlVectorEnv(VectorEnv):
    """`ControlEnv` for many bodies, to the same bits as Gymnasium's `SyncVectorEnv` of them.

    Args:
        num_envs: how many bodies.
        max_episode_steps: after how many steps an episode is truncated.
        body: `"Point"` or `"Ant"`.
        maze: `"UMaze"`, `"HookMaze"`, a text file or a `Maze`.
        goal: (row, column) of the goal; None is the maze's own.
        cell: the width of a corridor; None is the body's own.
        fast: whether to simulate with the integrator implicitfast in place of RK4.
        render_mode: `"rgb_array"` for pictures from above, one a body.
        autoreset_mode: whether an ended episode begins anew with the next step, in the same step, or not
            before it is reset.
    """

    metadata = {  # noqa: RUF012
        **ControlEnv.metadata,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        body: str,
        maze: str | Path | Maze | None = None,
        goal: Cell | None = None,
        cell: float | None = None,
        fast: bool = False,
        max_episode_steps: int = EPISODE_LENGTH,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ):
        """Compile the arena once for all bodies."""
        if num_envs < 1:
            raise ConfigError(f"num_envs must be at least 1, not {num_envs}")
        self._one = ControlEnv(body, maze, goal, cell, fast, render_mode)
        self.arena, self.simulator = self._one.arena, self._one.simulator
        self.num_envs, self.max_episode_steps = num_envs, max_episode_steps
        self.autoreset_mode = _checked_mode(autoreset_mode)
        self.metadata = type(self).metadata | {"autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        self.single_observation_space = self._one.observation_space
        self.single_action_space = self._one.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space: gymnasium.Space = batch_space(self.single_action_space, num_envs)
        self._rows = self.simulator.at_rest(np.repeat(self.arena.goal[None], num_envs, axis=0))
        self._steps = np.zeros(num_envs, int)
        self._over = np.zeros(num_envs, bool)
        self._chance = [seeding.np_random() for _ in range(num_envs)]
        self._view: TopView | None = None

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The generator of each body."""
        return tuple(generator for generator, _ in self._chance)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The seed of each body's generator."""
        return tuple(seed for _, seed in self._chance)

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None):
        """Start all of them anywhere, each with a seed of its own: `seed`, `seed + 1` and so on, or a list.

        Args:
            seed: of the first body, or of each; None goes on with the generators as they are.
            options: `reset_mask`, booleans, resets some and leaves the others where they are; `position`,
                (x, y), is where they start; `rows` are bodies as the simulator knows them.
        """
        options = options or {}
        seeds = self._checked_seeds(seed)
        which = self._checked_mask(options.get("reset_mask"))
        rows = self._checked_rows(options["rows"]) if "rows" in options else None
        start = self._one.checked_start(options["position"]) if "position" in options else None
        for body in np.flatnonzero(which):
            if seeds[body] is not None:
                self._chance[body] = seeding.np_random(seeds[body])
        self._begin(which, start)
        if rows is not None:
            self._rows[which] = rows[which]
        observation = self._observe()
        return observation, self._info(observation)

    def step(self, actions):
        """Push them all; those whose episode is over begin another one in place, as the mode says."""
        actions = checked_actions(actions, self.action_space)
        begun = self._over.copy()
        if self.autoreset_mode == AutoresetMode.DISABLED and begun.any():
            raise ConfigError(
                f"the episodes of bodies {np.flatnonzero(begun).tolist()} are over; reset them with "
                "options={'reset_mask': …}, or leave it to another autoreset_mode"
            )
        self._rows = self.simulator.step(self._rows, actions)
        self._steps += 1
        self._begin(begun)
        observation = self._observe()
        info = self._info(observation)
        rewards = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], info)
        rewards = np.where(begun, 0.0, rewards)
        truncated = self._steps >= self.max_episode_steps
        if self.autoreset_mode == AutoresetMode.SAME_STEP and truncated.any():
            observation, info = self._begun_at_once(truncated, observation, info)
        else:
            self._over = truncated.copy()
        return observation, rewards, np.zeros(self.num_envs, bool), truncated, info

    def compute_reward(self, achieved_goal, desired_goal, info) -> np.ndarray:
        """-1, or 0 within a tenth of the maze's size of the goal."""
        return self._one.compute_reward(achieved_goal, desired_goal, info)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each body's arena from above, or None without a render mode."""
        if self.render_mode is None:
            return None
        if self._view is None:
            self._view = TopView(self.simulator)
        return tuple(self._view(row) for row in self._rows)

    def close_extras(self, **kwargs: Any) -> None:
        """Give the renderer back."""
        if self._view is not None:
            self._view.close()
            self._view = None

    def _begin(self, which: np.ndarray, start: np.ndarray | None = None) -> None:
        """New episodes for some, each from its own generator."""
        for body in np.flatnonzero(which):
            generator, _ = self._chance[body]
            place = self.arena.random_positions(1, generator) if start is None else start[None]
            self._rows[body] = self.simulator.at_rest(place, generator)[0]
        self._steps[which], self._over[which] = 0, False

    def _begun_at_once(self, over: np.ndarray, observation: dict[str, np.ndarray], info: dict[str, Any]):
        """What is seen of the next episodes, and of the last ones as `final_obs` and `final_info`."""
        self._begin(over)
        after = self._observe()
        infos = self._info(after)
        for body in np.flatnonzero(over).tolist():
            last = {name: values[body] for name, values in observation.items()}
            told = {name: values[body].item() for name, values in info.items()}
            infos = self._add_info(infos, {"final_obs": last, "final_info": told}, body)
        return after, infos

    def _observe(self) -> dict[str, np.ndarray]:
        seen = self.simulator.observe(self._rows)
        goals = np.repeat(self.arena.goal.astype(np.float32)[None], self.num_envs, axis=0)
        return {"observation": seen, "achieved_goal": seen[:, :2].copy(), "desired_goal": goals}

    def _info(self, observation: dict[str, np.ndarray]) -> dict[str, Any]:
        away = np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"], axis=1)
        success = away <= self.arena.goal_radius
        return {"success": success, "is_success": success.copy(), "distance": away}

    def _checked_seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, Sequence | np.ndarray):
            if len(seed) != self.num_envs:
                raise ConfigError(f"seed has {len(seed)} numbers, and there are {self.num_envs} bodies")
            return [None if one is None else operator.index(one) for one in seed]
        return [operator.index(seed) + body for body in range(self.num_envs)]

    def _checked_mask(self, mask: Any) -> np.ndarray:
        """Which are to be reset: all, unless there is a mask."""
        if mask is None:
            return np.ones(self.num_envs, bool)
        which = np.asarray(mask)
        if which.dtype != bool or which.shape != (self.num_envs,) or not which.any():
            raise ConfigError(
                f"reset_mask must be {self.num_envs} booleans, one of them True at least, not {mask!r}"
            )
        return which

    def _checked_rows(self, rows: Any) -> np.ndarray:
        try:
            given = np.array(rows, np.float64)
        except (TypeError, ValueError):
            raise ConfigError(f"rows must be numbers, not {rows!r}") from None
        if given.shape != self._rows.shape:
            raise ConfigError(f"rows must have shape {self._rows.shape}, not {given.shape}")
        if not np.isfinite(given).all():
            raise ConfigError("rows must be finite, and some number in them is NaN or infinite")
        return given


def _checked_mode(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(each.value) for each in AutoresetMode)
        raise ConfigError(f"autoreset_mode must be one of {known}, not {mode!r}") from None
