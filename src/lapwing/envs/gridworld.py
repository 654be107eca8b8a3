"""A maze as a finite MDP: its tables, and a Gymnasium environment over the same tables.

The four moves (and, optionally, staying) are deterministic; a move into a wall has no effect. Episodes start
anywhere and end only by a time limit. If the maze has a goal, the reward is -1, or 0 on the goal.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import gymnasium
import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from lapwing.errors import ConfigError, nearest
from lapwing.mazes import MOVES, Maze, read_maze
from lapwing.storage import memory_bytes

Observation = Literal["index", "position", "image"]
WALL, GROUND, AGENT, GOAL = (40, 44, 52), (236, 236, 230), (31, 119, 180), (200, 60, 50)


@dataclass(frozen=True)
class GridWorld:
    """The finite MDP of a maze: states are its floor cells in reading order.

    Example:
        >>> world = GridWorld(read_maze("FourRoom"))
        >>> world.n_states, world.n_actions, world.next_state.shape
        (152, 4, (152, 4))
    """

    maze: Maze
    stay: bool = False
    """Adds a fifth action that does nothing (the authors' later code has it; the paper has not)."""

    @cached_property
    def cells(self) -> np.ndarray:
        """(row, column) of each state."""
        return np.argwhere(self.maze.floor)

    @cached_property
    def state_at(self) -> np.ndarray:
        """The state at each (row, column), -1 in a wall."""
        grid = np.full(self.maze.floor.shape, -1)
        grid[self.maze.floor] = np.arange(len(self.cells))
        return grid

    @property
    def n_states(self) -> int:
        """How many cells one can stand on."""
        return len(self.cells)

    @property
    def n_actions(self) -> int:
        """Up, down, left, right, and perhaps stay."""
        return len(MOVES) + self.stay

    @property
    def goal_state(self) -> int | None:
        """The state of the cell marked G, or None."""
        return None if self.maze.goal is None else int(self.state_at[self.maze.goal])

    @cached_property
    def next_state(self) -> np.ndarray:
        """The table of the dynamics, (states, actions)."""
        padded = np.pad(self.state_at, 1, constant_values=-1)
        here = np.arange(self.n_states)
        columns = []
        for step in [*MOVES.values(), *([(0, 0)] if self.stay else [])]:
            row, column = (self.cells + step + 1).T
            there = padded[row, column]
            columns.append(np.where(there < 0, here, there))
        return np.stack(columns, axis=1).astype(np.int32)

    def transition_matrix(self, policy: np.ndarray | None = None) -> sparse.csr_array:
        """P(v|u) under `policy` (states, actions), or under the uniformly random one."""
        states, actions = self.next_state.shape
        weights = np.full((states, actions), 1 / actions) if policy is None else policy
        rows = np.repeat(np.arange(states), actions)
        entries = (np.ravel(weights), (rows, self.next_state.ravel()))
        return sparse.coo_array(entries, shape=(states, states)).tocsr()

    def steps_to(self, goal_state: int | np.ndarray) -> np.ndarray:
        """The fewest moves from each state to `goal_state`; to several goals, one row for each."""
        return dijkstra(self.transition_matrix().T, unweighted=True, indices=goal_state)

    def observations(self, kind: str) -> np.ndarray:
        """What the agent sees in each state, one row a state.

        `index`: the state's number (the one-hot vector is never written out); `position`: (row, column)
        scaled to [-1, 1]; `image`: height x width x 3 bytes, agent, walls and ground in three colours.
        """
        if kind == "index":
            return np.arange(self.n_states, dtype=np.int32)
        if kind == "position":
            extent = np.maximum(np.array(self.maze.floor.shape) - 1, 1)
            return (2 * self.cells / extent - 1).astype(np.float32)
        if kind == "image":
            size = 3 * self.n_states * self.maze.floor.size
            if size > memory_bytes():
                raise ConfigError(
                    f"observation 'image' of {self.n_states:,} states takes {size >> 30:,} GiB of memory; "
                    "choose index or position"
                )
            images = np.repeat(self.background()[None], self.n_states, axis=0)
            images[np.arange(self.n_states), *self.cells.T] = AGENT
            return images
        raise ConfigError(
            f"observation must be one of {', '.join(get_args(Observation))}, not {kind!r}; "
            f"{nearest(str(kind), get_args(Observation))}"
        )

    def background(self) -> np.ndarray:
        """The maze without the agent, one RGB pixel a cell."""
        return np.where(self.maze.floor[..., None], GROUND, WALL).astype(np.uint8)

    def check_cell(self, cell: Sequence[int] | np.ndarray, role: str = "goal") -> int:
        """The state at `cell`, or a `ConfigError` that says what is there instead."""
        try:
            row, column = map(operator.index, cell)
        except (TypeError, ValueError):
            raise ConfigError(f"{role} must be a cell (row, column), not {cell!r}") from None
        height, width = self.maze.floor.shape
        if not (0 <= row < height and 0 <= column < width):
            raise ConfigError(
                f"{role} ({row},{column}) lies outside {self.maze.name} of {height} x {width} cells"
            )
        if (row, column) in self.maze.unreachable:
            raise ConfigError(
                f"{role} ({row},{column}) cannot be reached from the rest of {self.maze.name}; "
                "choose another cell, or open a path to it"
            )
        state = int(self.state_at[row, column])
        if state < 0:
            raise ConfigError(f"{role} ({row},{column}) is a wall of {self.maze.name}; choose a floor cell")
        return state


class GridWorldEnv(gymnasium.Env):
    """The maze as a Gymnasium environment.

    Example:
        >>> env = gymnasium.make("lapwing/TwoRoom-v0", observation="index")
        >>> observation, info = env.reset(seed=0)
        >>> sorted(info)
        ['cell', 'state']
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        maze: str | Path | Maze,
        observation: Observation = "position",
        stay: bool = False,
        goal: tuple[int, int] | None = None,
        render_mode: str | None = None,
    ):
        """Open a maze.

        Args:
            maze: a built-in name, the path of a text file, or a `Maze`.
            observation: `index`, `position` or `image`.
            stay: whether there is a fifth action that stays.
            goal: (row, column), in place of the maze's own goal.
            render_mode: `rgb_array` or None.
        """
        self.world = GridWorld(read_maze(maze), stay)
        self.table = self.world.observations(observation)
        self.goal_state = self.world.goal_state if goal is None else self.world.check_cell(goal)
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Discrete(self.world.n_actions)
        self.observation_space = _space(observation, self.table)
        self.state = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start anywhere, or at `options={"cell": (row, column)}`."""
        super().reset(seed=seed)
        if options and "cell" in options:
            self.state = self.world.check_cell(options["cell"], "start")
        else:
            self.state = int(self.np_random.integers(self.world.n_states))
        return self._observe(), self._info()

    def step(self, action):
        """Move; into a wall is to stay."""
        try:
            move = int(action)
        except (TypeError, ValueError):
            move = -1
        if move != action or not 0 <= move < self.world.n_actions:
            raise ConfigError(f"action must be 0 … {self.world.n_actions - 1}, not {action!r}")
        self.state = int(self.world.next_state[self.state, move])
        reward = 0.0 if self.goal_state is None else float(self.state == self.goal_state) - 1.0
        return self._observe(), reward, False, False, self._info()

    def render(self) -> np.ndarray | None:
        """The maze from above, sixteen pixels a cell, or None without a render mode."""
        if self.render_mode is None:
            return None
        pixels = self.world.background()
        if self.goal_state is not None:
            pixels[tuple(self.world.cells[self.goal_state])] = GOAL
        pixels[tuple(self.world.cells[self.state])] = AGENT
        return np.kron(pixels, np.ones((16, 16, 1), np.uint8))

    def _observe(self):
        seen = self.table[self.state]
        return int(seen) if seen.ndim == 0 else seen.copy()

    def _info(self) -> dict[str, Any]:
        row, column = self.world.cells[self.state]
        return {"state": self.state, "cell": (int(row), int(column))}


def _space(observation: Observation, table: np.ndarray) -> gymnasium.Space:
    if observation == "index":
        return gymnasium.spaces.Discrete(len(table))
    if observation == "position":
        return gymnasium.spaces.Box(-1.0, 1.0, table.shape[1:], np.float32)
    return gymnasium.spaces.Box(0, 255, table.shape[1:], np.uint8)
