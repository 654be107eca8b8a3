"""Arenas as Gymnasium goal environments: `lapwing/PointUMaze-v0` and its like.

An observation is a dictionary with the state, where the body is and where it should be; the reward is that of
`compute_reward`: -1, or 0 at the goal. Episodes start anywhere and end by a time limit alone.
"""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from lapwing.envs.arena import BODIES, Arena, Cell, make_arena
from lapwing.envs.simulator import Simulator
from lapwing.envs.top_view import TopView
from lapwing.errors import ConfigError, nearest
from lapwing.mazes import ARENAS, Maze, read_maze


def checked_actions(actions: Any, space: gymnasium.Space) -> np.ndarray:
    """Actions of a space's shape, as the simulator takes them; what is no number would end in no place."""
    try:
        pushes = np.asarray(actions, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"actions must be numbers, not {actions!r}") from None
    if pushes.shape != space.shape:
        raise ConfigError(f"actions must have shape {space.shape}, not {pushes.shape}")
    if np.isnan(pushes).any():
        raise ConfigError(f"actions must be numbers in [-1, 1], not {pushes.tolist()}: NaN is none")
    return pushes


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
        chosen = maze if isinstance(maze, Maze) else read_maze(maze)
        self.arena: Arena = make_arena(BODIES[body], chosen, goal=goal, cell=cell, fast=fast)
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
        observation = self._observe()
        return observation, self._info(observation)

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
        """Push, and see what comes of it."""
        action = checked_actions(action, self.action_space)
        self._row = self.simulator.step_one(self._row[0], action)[None]
        observation = self._observe()
        info = self._info(observation)
        reward = float(self.compute_reward(observation["achieved_goal"], observation["desired_goal"], info))
        return observation, reward, False, False, info

    def compute_reward(self, achieved_goal, desired_goal, info) -> np.ndarray:
        """-1, or 0 within a tenth of the maze's size of the goal; of one step or of a batch."""
        away = np.linalg.norm(np.asarray(achieved_goal) - np.asarray(desired_goal), axis=-1)
        return np.asarray((away <= self.arena.goal_radius) - 1.0)

    def compute_terminated(self, achieved_goal, desired_goal, info) -> bool:
        """Never: the task goes on at the goal."""
        return False

    def compute_truncated(self, achieved_goal, desired_goal, info) -> bool:
        """Never by itself: the time limit is a wrapper's."""
        return False

    def render(self) -> np.ndarray | None:
        """The arena from above, by MuJoCo's renderer or, where there is no GL, drawn; None without a mode."""
        if self.render_mode is None:
            return None
        if self._view is None:
            self._view = TopView(self.simulator)
        return self._view(self._row[0])

    def close(self) -> None:
        """Give the renderer back."""
        if self._view is not None:
            self._view.close()
            self._view = None

    def _observe(self) -> dict[str, np.ndarray]:
        seen = self.simulator.observe(self._row)[0]
        return {
            "observation": seen,
            "achieved_goal": seen[:2].copy(),
            "desired_goal": self.arena.goal.astype(np.float32),
        }

    def _info(self, observation: dict[str, np.ndarray]) -> dict[str, Any]:
        away = float(np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"]))
        success = away <= self.arena.goal_radius
        # Both names are in use: `success` in Gymnasium-Robotics' mazes, `is_success` in Stable-Baselines3.
        return {"success": success, "is_success": success, "distance": away}
