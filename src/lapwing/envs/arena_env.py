"""Arenas as Gymnasium goal environments: `lapwing/PointUMaze-v0` and others, for one robot or many.

An observation is a dictionary with the state, the achieved goal and the desired goal; the reward is that of
`compute_reward`: -1, or 0 at the goal. Episodes start anywhere and end only by a time limit.

`gymnasium.make_vec("lapwing/PointUMaze-v0", num_envs=16, vectorization_mode="vector_entry_point")` simulates
many robots in one arena at once, through `mujoco.rollout`.
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

from lapwing.envs.arena import BODIES, EPISODE_LENGTH, Arena, Cell, make_arena
from lapwing.envs.simulator import Simulator, TopView
from lapwing.errors import ConfigError, nearest
from lapwing.mazes import ARENAS, Maze, read_maze
from lapwing.settings.checks import check_size, checked


def _numbers(name: str, values: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """A new array of this shape in double precision; anything else is refused."""
    try:
        numbers = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} must be numbers, not {values!r}") from None
    if numbers.shape != shape:
        raise ConfigError(f"{name} must have shape {shape}, not {numbers.shape}")
    return numbers


def _checked_actions(actions: Any, space: gymnasium.Space) -> np.ndarray:
    pushes = _numbers("actions", actions, space.shape)
    if np.isnan(pushes).any():
        raise ConfigError(f"actions must be numbers in [-1, 1], not {pushes.tolist()}: NaN is none")
    return pushes


def _seen(simulator: Simulator, rows: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Observations and infos of bodies, one a row."""
    state, goal = simulator.observe(rows), simulator.arena.goal.astype(np.float32)
    here, goals = state[:, :2].copy(), np.repeat(goal[None], len(rows), axis=0)
    away = np.linalg.norm(here - goals, axis=1)
    success = away <= simulator.arena.goal_radius
    # Both names are in use: `success` in Gymnasium-Robotics' mazes, `is_success` in Stable-Baselines3.
    infos = {"success": success, "is_success": success.copy(), "distance": away}
    return {"observation": state, "achieved_goal": here, "desired_goal": goals}, infos


def _of_body(
    body: int, observations: dict[str, np.ndarray], infos: dict[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    observation = {name: values[body] for name, values in observations.items()}
    return observation, {name: values[body].item() for name, values in infos.items()}


class ControlEnv(gymnasium.Env):
    """A body in a maze that is to reach a goal.

    Args:
        body: `"Point"` or `"Ant"`.
        maze: `"UMaze"`, `"HookMaze"`, a text file or a `Maze`.
        goal: (row, column) of the goal; None is the maze's own.
        cell: the width of a corridor; None is the body's own.
        fast: whether to simulate with the integrator implicitfast in place of RK4.
        render_mode: `"rgb_array"` for pictures from above.

    Example:
        >>> env = gymnasium.make("lapwing/PointUMaze-v0")
        >>> observation, info = env.reset(seed=0)
        >>> observation["observation"].shape, observation["desired_goal"].tolist()
        ((6,), [-2.0, -2.0])
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 25}  # noqa: RUF012

    def __init__(
        self,
        body: str,
        maze: str | Path | Maze | None = None,
        goal: Cell | None = None,
        cell: float | None = None,
        fast: bool = False,
        render_mode: str | None = None,
    ):
        """Compile the arena."""
        if body not in BODIES:
            raise ConfigError(f"unknown body {body!r}; {nearest(str(body), BODIES)}")
        if maze is None:
            raise ConfigError(f"name a maze: maze='{next(iter(ARENAS))}', the path of a text file, or a Maze")
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.arena: Arena = make_arena(BODIES[body], read_maze(maze), goal=goal, cell=cell, fast=fast)
        self.simulator = Simulator(self.arena)
        self.render_mode = render_mode
        unbounded = {"low": -np.inf, "high": np.inf, "dtype": np.float32}
        self.observation_space = gymnasium.spaces.Dict(
            observation=gymnasium.spaces.Box(shape=(self.simulator.n_observations,), **unbounded),
            achieved_goal=gymnasium.spaces.Box(shape=(2,), **unbounded),
            desired_goal=gymnasium.spaces.Box(shape=(2,), **unbounded),
        )
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.simulator.n_actions,), np.float32)
        self._row = self.simulator.at_rest(self.arena.goal[None])
        self._view: TopView | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start anywhere, or at `options={"position": (x, y)}`."""
        super().reset(seed=seed)
        if options and "position" in options:
            start = self.checked_start(options["position"])[None]
        else:
            start = self.arena.random_positions(1, self.np_random)
        self._row = self.simulator.at_rest(start, self.np_random)
        return self._seen()

    def checked_start(self, position: Any) -> np.ndarray:
        """(x, y) where the body has room, or a `ConfigError`."""
        try:
            start = np.asarray(position, np.float64)
        except (TypeError, ValueError):
            raise ConfigError(f"position must be two numbers (x, y), not {position!r}") from None
        if start.shape != (2,) or not np.isfinite(start).all() or not self.arena.has_room(start):
            raise ConfigError(f"position {position!r} leaves no room for the {self.arena.body.name}")
        return start

    def step(self, action):
        """Apply the action for `frame_skip` steps of the simulation."""
        action = _checked_actions(action, self.action_space)
        self._row = self.simulator.step_one(self._row[0], action)[None]
        observation, info = self._seen()
        reward = float(self.compute_reward(observation["achieved_goal"], observation["desired_goal"], info))
        return observation, reward, False, False, info

    def compute_reward(self, achieved_goal, desired_goal, info) -> np.ndarray:
        """-1, or 0 within a tenth of the maze's size of the goal; of one step or of a batch."""
        away = np.linalg.norm(np.asarray(achieved_goal) - np.asarray(desired_goal), axis=-1)
        return np.asarray((away <= self.arena.goal_radius) - 1.0)

    def compute_terminated(self, achieved_goal, desired_goal, info) -> bool:
        """Never: an episode does not end at the goal."""
        return False

    def compute_truncated(self, achieved_goal, desired_goal, info) -> bool:
        """Never by itself: the time limit is a wrapper's."""
        return False

    def render(self) -> np.ndarray | None:
        """The arena from above, by MuJoCo's renderer or, where there is no GL, drawn; None without a mode."""
        return None if self.render_mode is None else self.picture(self._row[0])

    def picture(self, row: np.ndarray) -> np.ndarray:
        """The arena from above, with the body as the row has it."""
        if self._view is None:
            self._view = TopView(self.simulator)
        return self._view(row)

    def close(self) -> None:
        """Free the renderer."""
        if self._view is not None:
            self._view.close()
            self._view = None

    def _seen(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        observations, infos = _seen(self.simulator, self._row)
        return _of_body(0, observations, infos)


class ControlVectorEnv(VectorEnv):
    """`ControlEnv` for many bodies, bit-identical to Gymnasium's `SyncVectorEnv` of them.

    Args:
        num_envs: how many bodies.
        body: as of `ControlEnv`.
        maze: as of `ControlEnv`.
        goal: as of `ControlEnv`.
        cell: as of `ControlEnv`.
        fast: as of `ControlEnv`.
        render_mode: as of `ControlEnv`; pictures are one a body.
        max_episode_steps: after how many steps an episode is truncated.
        autoreset_mode: when a new episode begins: with the next step, in the same step, or at a reset.
    """

    metadata = ControlEnv.metadata | {"autoreset_mode": AutoresetMode.NEXT_STEP}

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
        num_envs = checked("num_envs", num_envs, whole=True, least=1)
        check_size("num_envs", 1024 * num_envs)
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
        self._generators = [seeding.np_random() for _ in range(num_envs)]

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The generator of each body."""
        return tuple(generator for generator, _ in self._generators)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The seed of each body's generator."""
        return tuple(seed for _, seed in self._generators)

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None):
        """Start all of them anywhere, each with a seed of its own: `seed`, `seed + 1` and so on, or a list.

        Args:
            seed: of the first body, or of each; None leaves the generators as they are.
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
                self._generators[body] = seeding.np_random(seeds[body])
        self._begin(which, start)
        if rows is not None:
            self._rows[which] = rows[which]
        return _seen(self.simulator, self._rows)

    def step(self, actions):
        """Step all bodies; those whose episode is over begin the next one, as the autoreset mode says."""
        actions = _checked_actions(actions, self.action_space)
        begun = self._over.copy()
        if self.autoreset_mode == AutoresetMode.DISABLED and begun.any():
            raise ConfigError(
                f"the episodes of bodies {np.flatnonzero(begun).tolist()} are over; reset them with "
                "options={'reset_mask': …}, or leave it to another autoreset_mode"
            )
        self._rows = self.simulator.step(self._rows, actions)
        self._steps += 1
        self._begin(begun)
        observation, info = _seen(self.simulator, self._rows)
        rewards = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], info)
        rewards = np.where(begun, 0.0, rewards)
        truncated = self._steps >= self.max_episode_steps
        if self.autoreset_mode == AutoresetMode.SAME_STEP and truncated.any():
            observation, info = self._reset_in_step(truncated, observation, info)
        else:
            self._over = truncated.copy()
        return observation, rewards, np.zeros(self.num_envs, bool), truncated, info

    def compute_reward(self, achieved_goal, desired_goal, info) -> np.ndarray:
        """-1, or 0 within a tenth of the maze's size of the goal."""
        return self._one.compute_reward(achieved_goal, desired_goal, info)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each body's arena from above, or None without a render mode."""
        return None if self.render_mode is None else tuple(map(self._one.picture, self._rows))

    def close_extras(self, **kwargs: Any) -> None:
        """Free the renderer."""
        self._one.close()

    def _begin(self, which: np.ndarray, start: np.ndarray | None = None) -> None:
        """New episodes for some, each from its own generator."""
        for body in np.flatnonzero(which):
            generator, _ = self._generators[body]
            place = self.arena.random_positions(1, generator) if start is None else start[None]
            self._rows[body] = self.simulator.at_rest(place, generator)[0]
        self._steps[which], self._over[which] = 0, False

    def _reset_in_step(self, over: np.ndarray, observation: dict[str, np.ndarray], info: dict[str, Any]):
        """What is seen of the next episodes, and of the last ones as `final_obs` and `final_info`."""
        self._begin(over)
        after, infos = _seen(self.simulator, self._rows)
        for body in np.flatnonzero(over).tolist():
            last, last_info = _of_body(body, observation, info)
            infos = self._add_info(infos, {"final_obs": last, "final_info": last_info}, body)
        return after, infos

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
        given = _numbers("rows", rows, self._rows.shape)
        if not np.isfinite(given).all():
            raise ConfigError("rows must be finite, and some number in them is NaN or infinite")
        return given


def _checked_mode(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(each.value) for each in AutoresetMode)
        raise ConfigError(f"autoreset_mode must be one of {known}, not {mode!r}") from None
