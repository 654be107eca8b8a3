"""A point on the floor of a maze: continuous states, and a chain that is known to any precision.

An action is a displacement. It has no effect if its straight path would touch a wall. So under uniformly
random actions the step from u to v is as likely as its reverse: the walk is reversible, and its stationary
distribution is uniform on the floor. `Plane.transition_matrix` is that walk on a lattice.

Positions are (row, column), as in `GridWorld`: rows downwards, columns to the right. Both axes have the same
scale, which maps the longer side of the maze, including walls, to [-1, 1], and the middle to 0. (In
`GridWorld` -1 and 1 are the centres of the outermost cells, here their outer borders.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from scipy import sparse

from lapwing.envs.gridworld import AGENT, GOAL, GridWorld
from lapwing.errors import ConfigError, nearest
from lapwing.mazes import MOVES, PLANE, Maze, is_plane, parse_maze, plane_names, read_maze
from lapwing.settings.checks import check_size

Progress = Callable[[int, int], None]
Cell = tuple[int, int]
REACH = 0.7
GOAL_RADIUS = 0.5
"""The goal is reached within so many cells of the centre of its cell."""
DOT_RADIUS, PIXELS = 0.25, 16
"""In pictures: how large the point is, in cells, and how wide a cell."""


@dataclass(frozen=True)
class Plane:
    """The floor of a maze, and how far a point moves in it at most.

    Example:
        >>> plane = open_plane("PlaneFourRoom")
        >>> plane.step(plane.points(1)[:2], np.array([(-1.0, 0.0), (0.5, 0.5)])).round(3)
        array([[-0.8  , -0.8  ],
               [-0.753, -0.62 ]])
        >>> plane.transition_matrix(4).shape
        (2432, 2432)
    """

    maze: Maze
    reach: float = REACH
    """How far an action of 1 moves along its axis, in cells: more than 0, less than 1."""
    goal_cell: Cell | None = None
    """(row, column) of the goal, in place of the maze's own."""

    def __post_init__(self) -> None:
        # Below 1, a path meets at most one border between rows and one between columns.
        if not 0 < self.reach < 1:
            raise ConfigError(f"reach must be more than 0 and less than 1 cell, not {self.reach:g}")
        if self.goal_cell is not None:
            GridWorld(self.maze).check_cell(self.goal_cell)

    @property
    def name(self) -> str:
        """PlaneFourRoom and so on."""
        return PLANE + self.maze.name

    def description(self) -> dict[str, Any]:
        """The plane as JSON can hold it; `parse_plane` reads it."""
        goal = None if self.goal_cell is None else list(self.goal_cell)
        return {"name": self.maze.name, "text": self.maze.text, "reach": self.reach, "goal": goal}

    @property
    def goal(self) -> np.ndarray | None:
        """The centre of the goal's cell, or None."""
        cell = self.maze.goal if self.goal_cell is None else self.goal_cell
        return None if cell is None else self.scaled(np.array(cell) + 0.5)

    @property
    def cell(self) -> float:
        """The width of a cell in the scale of positions."""
        return 2 / max(self.maze.floor.shape)

    def scaled(self, places: np.ndarray) -> np.ndarray:
        """Positions of (row, column) in cells from the top left corner, where the first centre is (½, ½)."""
        return (places - np.array(self.maze.floor.shape) / 2) * self.cell

    def in_cells(self, positions: np.ndarray) -> np.ndarray:
        """The inverse of `scaled`."""
        return positions / self.cell + np.array(self.maze.floor.shape) / 2

    def on_floor(self, positions: np.ndarray) -> np.ndarray:
        """Which positions (n, 2) a point can be at: inside the maze, and touching no wall."""
        here = self.in_cells(np.asarray(positions, np.float64))
        return self._openness(here, here) == 1

    def step(self, positions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Where points at `positions` (n, 2) come to by `actions` (n, 2), in double precision.

        Actions beyond [-1, 1] are clipped. A point whose path would touch a wall stays.
        """
        here = np.asarray(positions, np.float64)
        there = here + np.clip(np.asarray(actions, np.float64), -1, 1) * (self.reach * self.cell)
        clear = self._openness(self.in_cells(here), self.in_cells(there)) == 1
        return np.where(clear[:, None], there, here)

    def sample_starts(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Positions drawn uniformly from the floor, (count, 2)."""
        cells = np.argwhere(self.maze.floor)
        corners = cells[generator.integers(len(cells), size=count)]
        return self.scaled(corners + generator.random((count, 2)))

    def points(self, fineness: int = 8) -> np.ndarray:
        """Centres of the `fineness` x `fineness` parts of every floor cell, row by row through the maze."""
        return self.scaled((self._parts(fineness) + 0.5) / fineness)

    def transition_matrix(self, fineness: int = 8) -> sparse.csr_array:
        """P(v|u) of the uniformly random walk over `points(fineness)`: symmetric, its rows sum to 1.

        Displacements are those between centres of parts, with the variance of the uniform one. A path that
        is not clear is not gone; one through a corner of a wall stands for those to both sides of it, and is
        gone half of the time. (Without these two the eigenvalues converge much more slowly.)
        """
        part, (furthest, weights) = self._parts(fineness), _displacements(self.reach * fineness)
        number = np.zeros(np.array(self.maze.floor.shape) * fineness, int)
        number[tuple(part.T)] = np.arange(len(part))
        heads, tails, chances = [], [], []
        either = range(-furthest, furthest + 1)
        for offset in (pair for pair in product(either, either) if pair > (0, 0)):  # and, below, the way back
            there = part + np.array(offset)
            # In half parts centres and borders are whole numbers: what goes through a corner is exact.
            openness = self._openness(2 * part + 1, 2 * there + 1, 2 * fineness)
            gone = np.flatnonzero(openness)
            heads.append(gone)
            tails.append(number[tuple(there[gone].T)])
            chances.append(openness[gone] * np.prod(weights[np.abs(offset)]))
        places = (np.concatenate(heads), np.concatenate(tails))
        one_way = sparse.coo_array((np.concatenate(chances), places), shape=(len(part),) * 2).tocsr()
        moving = one_way + one_way.T
        return (moving + sparse.diags_array(1 - moving.sum(axis=1))).tocsr()

    def _parts(self, fineness: int) -> np.ndarray:
        """(row, column) of the parts of floor cells, counted in parts."""
        if fineness < 1:
            raise ConfigError(f"fineness must be at least 1 part along the side of a cell, not {fineness}")
        return np.argwhere(np.kron(self.maze.floor, np.ones((fineness, fineness), bool)))

    def _openness(self, here: np.ndarray, there: np.ndarray, unit: int = 1) -> np.ndarray:
        """1 for straight paths that touch no wall, ½ for those that touch just its corner, 0 for others.

        Places are (row, column) in cells times `unit`, and no path is longer than a cell along an axis.
        Walls include their borders, so a place on a border touches the cells on both sides of it.
        """
        # A path touches one row, or two with a border in between; so with columns.
        first = (-(-np.minimum(here, there) // unit) - 1).astype(int)
        last = (np.maximum(here, there) // unit).astype(int)
        begin = np.where(here <= there, first, last)
        end = first + last - begin
        # When each border is met, both times multiplied by the lengths of the path along both axes.
        met = np.abs(last * unit - here) * np.abs(there - here)[:, ::-1]
        rows_first = 0.5 + 0.5 * np.sign(met[:, 1] - met[:, 0])
        is_floor = self.maze.is_floor
        between = rows_first * is_floor(end[:, 0], begin[:, 1])
        between += (1 - rows_first) * is_floor(begin[:, 0], end[:, 1])
        return between * (is_floor(*begin.T) & is_floor(*end.T))


def _displacements(reach: float) -> tuple[int, np.ndarray]:
    """Whole numbers for a uniform displacement in [-reach, reach]: k, and how likely 0, ±1, ..., ±k are.

    All are equally likely but ±k, whose share makes the variance that of the displacement, reach² / 3.
    """
    k = max(int(np.ceil(np.sqrt(reach**2 + 0.25) - 0.5)), 1)  # the least with k(k+1) ≥ reach²
    share = (2 * k - 1) * (reach**2 - k * (k - 1)) / (2 * (3 * k**2 - reach**2))
    return k, np.append(np.ones(k), share) / (2 * k - 1 + 2 * share)


def open_plane(source: str | Path | Maze, *, reach: float = REACH, goal: Cell | None = None) -> Plane:
    """A plane by its name, `PlaneFourRoom` or `Plane:my_maze.txt`, or that of a `Maze`."""
    if isinstance(source, Maze):
        return Plane(source, reach, goal)
    name = str(source)
    if not is_plane(name):
        raise ConfigError(f"unknown plane {name!r}; {nearest(name, plane_names())} (or Plane:my_maze.txt)")
    return Plane(read_maze(name.removeprefix(PLANE).removeprefix(":")), reach, goal)


def parse_plane(description: dict[str, Any]) -> Plane:
    """The plane that `Plane.description` described."""
    maze, goal = parse_maze(description["text"], name=description["name"]), description["goal"]
    return Plane(maze, float(description["reach"]), None if goal is None else (int(goal[0]), int(goal[1])))


def random_walks(
    plane: Plane, transitions: int, episode_length: int, seed: int, on_progress: Progress | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Whole episodes of uniformly random actions from all over the floor, at least `transitions` steps.

    Returns:
        Positions, (episodes, episode_length + 1, 2), and actions, (episodes, episode_length, 2), in single
        precision.
    """
    if min(transitions, episode_length) < 1:
        raise ConfigError(
            f"transitions and episode_length must be at least 1, not {transitions} and {episode_length}"
        )
    episodes = -(-transitions // episode_length)
    longer = "transitions" if transitions > episode_length else "episode_length"
    check_size(longer, episodes * (episode_length + 1) * 16)
    generator = np.random.default_rng(seed)
    seen = np.empty((episodes, episode_length + 1, 2), np.float32)
    taken = np.empty((episodes, episode_length, 2), np.float32)
    seen[:, 0] = positions = plane.sample_starts(episodes, generator)
    for step in range(1, episode_length + 1):
        actions = generator.uniform(-1, 1, (episodes, 2))
        positions = plane.step(positions, actions)
        seen[:, step], taken[:, step - 1] = positions, actions
        if on_progress:
            on_progress(step * episodes, episode_length * episodes)
    return seen, taken


class PlaneEnv(gymnasium.Env):
    """A point that moves through the floor of a maze; the reward is -1, or 0 at the goal if there is one.

    Args:
        maze: a built-in name, the path of a text file, or a `Maze`.
        reach: how far an action of 1 moves along its axis, in cells.
        goal: (row, column) of the goal's cell, in place of the maze's own.
        render_mode: `"rgb_array"` for pictures from above.
        discrete: whether actions are the four moves of a grid, each as far as `reach`, and not vectors.

    Example:
        >>> env = gymnasium.make("lapwing/PlaneFourRoom-v0")
        >>> position, info = env.reset(seed=0, options={"position": (0.0, -0.5)})
        >>> position.tolist(), info
        ([0.0, -0.5], {'cell': (7, 3)})
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        maze: str | Path | Maze = "FourRoom",
        reach: float = REACH,
        goal: Cell | None = None,
        render_mode: str | None = None,
        discrete: bool = False,
    ):
        """Open a maze."""
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.plane = Plane(read_maze(maze), reach, goal)
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._moves = np.array([*MOVES.values()], np.float64) if discrete else None
        if discrete:
            self.action_space = gymnasium.spaces.Discrete(len(MOVES))
        self._position = self.plane.points(1)[:1]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start anywhere on the floor, or at `options={"position": (row, column)}`."""
        super().reset(seed=seed)
        if options and "position" in options:
            start = np.asarray(options["position"], np.float64)[None]
            inside = start.shape == (1, 2) and (np.abs(start) <= 1).all()
            if not (inside and self.plane.on_floor(start)[0]):
                where = options["position"]
                raise ConfigError(f"position {where!r} is not on the floor of {self.plane.maze.name}")
            self._position = start
        else:
            self._position = self.plane.sample_starts(1, self.np_random)
        return self._seen()

    def step(self, action):
        """Move, unless a wall is in the way."""
        if self._moves is not None:
            if not self.action_space.contains(np.int64(action)):
                raise ConfigError(f"action must be 0 … {len(self._moves) - 1}, not {action!r}")
            action = self._moves[int(action)]
        if np.shape(action) != (2,) or not np.isfinite(action).all():
            raise ConfigError(f"action must be two finite numbers, not {action!r}")
        self._position = self.plane.step(self._position, np.asarray(action)[None])
        goal, (observation, info) = self.plane.goal, self._seen()
        there = goal is None or self._away(self._position[0], goal) <= GOAL_RADIUS
        return observation, 0.0 if there else -1.0, False, False, info

    def render(self) -> np.ndarray | None:
        """The maze from above, sixteen pixels a cell, or None without a render mode."""
        if self.render_mode is None:
            return None
        picture = np.kron(GridWorld(self.plane.maze).background(), np.ones((PIXELS, PIXELS, 1), np.uint8))
        pixels = self.plane.scaled((np.moveaxis(np.indices(picture.shape[:2]), 0, -1) + 0.5) / PIXELS)
        if self.plane.goal is not None:
            picture[self._away(pixels, self.plane.goal) <= GOAL_RADIUS] = GOAL
        picture[self._away(pixels, self._position[0]) <= DOT_RADIUS] = AGENT
        return picture

    def _away(self, positions: np.ndarray, other: np.ndarray) -> np.ndarray:
        """In cells."""
        return np.asarray(np.linalg.norm(positions - other, axis=-1) / self.plane.cell)

    def _seen(self) -> tuple[np.ndarray, dict[str, Any]]:
        row, column = np.floor(self.plane.in_cells(self._position[0]))
        return self._position[0].astype(np.float32), {"cell": (int(row), int(column))}
