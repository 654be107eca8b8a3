"""A maze for a robot in MuJoCo: the same text as a gridworld's, with `#` cells as walls.

Everything that can be computed without simulation is here: the walls, the free space, the start positions,
and the length of the shortest path to the goal. `envs.simulator` simulates robots, many at once.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, nearest
from lapwing.mazes import ARENAS, Maze, arena_names, parse_maze, read_maze
from lapwing.settings.checks import checked

EPISODE_LENGTH = 300
BodyName = Literal["Point", "Ant"]
Cell = Sequence[int] | np.ndarray
"""(row, column)."""


@dataclass(frozen=True)
class Body:
    """What moves through an arena."""

    name: BodyName
    file: str
    """Its MJCF, beside this module."""
    cell: float
    """The width of a corridor, by default."""
    radius: float
    """How near its centre comes to a wall."""
    frame_skip: int
    """Steps of the simulation in one of the environment."""
    fast_timestep: float
    """Seconds in a step of the simulation where the integrator is implicitfast."""
    lam: float
    """λ of the paper."""
    learning_rate: float
    """Of φ and of the critic, in the paper."""
    steps: int
    """How long an agent learns, by default."""
    evaluate_every: int


BODIES: dict[str, Body] = {
    "Point": Body("Point", "point.xml", 2.0, 0.3, 2, 0.04, 0.99, 1e-3, 60_000, 2_000),
    "Ant": Body("Ant", "ant.xml", 3.0, 0.75, 5, 0.02, 0.999, 1e-4, 1_000_000, 20_000),
}
NARROWEST = 2.5
"""How many radii of its body a corridor must be wide."""
WIDEST = 1_000
"""How wide a corridor may be at most: a Point takes minutes to cross it."""
FINENESS = 12
"""Into how many parts a cell is divided to measure ways through it."""
NEIGHBOURHOOD = tuple(step for step in itertools.product((-1, 0, 1), repeat=2) if step != (0, 0))
"""Steps (row, column) to the cells that touch a cell."""


@dataclass(frozen=True)
class Arena:
    """A body in a maze, with a goal.

    Example:
        >>> arena = open_arena("PointUMaze")
        >>> arena.name, arena.size, arena.goal.tolist()
        ('PointUMaze', 6.0, [-2.0, -2.0])
    """

    body: Body
    maze: Maze
    cell: float
    """The width of a corridor."""
    goal_cell: tuple[int, int]
    """(row, column) of the goal."""
    fast: bool = False
    """Whether the simulation takes the integrator implicitfast in place of RK4."""

    @property
    def name(self) -> str:
        """Body and maze."""
        return self.body.name + self.maze.name

    @property
    def target(self) -> str:
        """What `lapwing learn` calls it: PointUMaze, or Point: and the file of its maze."""
        if self.maze.file is None and self.maze.name in ARENAS:
            return self.name
        return f"{self.body.name}:{self.maze.file or self.maze.name}"

    def description(self) -> dict[str, Any]:
        """The arena as JSON can hold it; `parse_arena` reads it."""
        return {
            "name": self.maze.name,
            "text": self.maze.text,
            "body": self.body.name,
            "cell": self.cell,
            "goal": list(self.goal_cell),
            "fast": self.fast,
        }

    @property
    def size(self) -> float:
        """The longer side of the floor."""
        rows, columns = np.nonzero(self.maze.floor)
        return float(self.cell * (1 + max(np.ptp(rows), np.ptp(columns))))

    @property
    def goal(self) -> np.ndarray:
        """(x, y) of the goal."""
        return self.centre(np.array(self.goal_cell))

    @property
    def goal_radius(self) -> float:
        """The goal is reached within this distance: a tenth of the maze's size."""
        return 0.1 * self.size

    def centre(self, cells: np.ndarray) -> np.ndarray:
        """(x, y) of the centres of cells (row, column); y points up, as in a picture of the text."""
        middle = (np.array(self.maze.floor.shape) - 1) / 2
        row, column = np.moveaxis(cells - middle, -1, 0)
        return np.stack([column, -row], axis=-1) * self.cell

    def cell_at(self, points: np.ndarray) -> np.ndarray:
        """(row, column) of the cells that points lie in."""
        column, up = np.moveaxis(np.asarray(points) / self.cell, -1, 0)
        middle = (np.array(self.maze.floor.shape) - 1) / 2
        return np.rint(np.stack([-up, column], axis=-1) + middle).astype(int)

    @cached_property
    def walls(self) -> np.ndarray:
        """Rectangles as (x, y, half width, half height): wall cells at the floor, joined along rows."""
        floor = np.pad(self.maze.floor, 2)  # walls stand on the first cell beyond the text
        near = np.any([np.roll(floor, step, (0, 1)) for step in NEIGHBOURHOOD], axis=0)
        boxes = []
        for row, line in enumerate(near & ~floor):
            edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]]).astype(int)))
            for begin, end in edges.reshape(-1, 2):
                x, y = self.centre(np.array([row - 2, (begin + end - 1) / 2 - 2]))
                boxes.append((x, y, (end - begin) * self.cell / 2, self.cell / 2))
        return np.array(boxes)

    def on_floor(self, points: np.ndarray) -> np.ndarray:
        """Whether points lie in floor cells."""
        return self.maze.is_floor(*np.moveaxis(self.cell_at(points), -1, 0))

    def has_room(self, points: np.ndarray) -> np.ndarray:
        """Whether the body fits there: on the floor, and no nearer to a wall than its radius.

        The radius is less than half a cell, so only the cells around a point's own can be too near.
        """
        points = np.asarray(points)
        room = self.on_floor(points)
        row, column = self.cell_at(points[room]).T
        right, up = (points[room] - self.centre(np.stack([row, column], axis=-1))).T
        fits = np.ones(len(row), bool)
        for down, aside in NEIGHBOURHOOD:
            x = np.maximum(np.abs(right - aside * self.cell) - self.cell / 2, 0.0)
            y = np.maximum(np.abs(up + down * self.cell) - self.cell / 2, 0.0)
            fits &= self.maze.is_floor(row + down, column + aside) | (np.hypot(x, y) >= self.body.radius)
        room[room] = fits
        return room

    def random_positions(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Where episodes start: uniformly wherever there is room."""
        cells = np.argwhere(self.maze.floor)
        found = np.empty((0, 2))
        while len(found) < count:
            at = self.centre(cells[generator.integers(len(cells), size=2 * count)].astype(float))
            at += generator.uniform(-self.cell / 2, self.cell / 2, at.shape)
            found = np.concatenate([found, at[self.has_room(at)]])
        return found[:count]

    def stratified_positions(self, per_cell: int) -> np.ndarray:
        """A fixed set of starts, `per_cell` in every floor cell, spread over where the body has room."""
        reach = (self.cell / 2 - self.body.radius) * (1 - 1e-9)  # lest rounding put one into a wall
        golden = (np.arange(per_cell) * (np.sqrt(5) - 1) / 2) % 1
        inside = np.stack([(np.arange(per_cell) + 0.5) / per_cell, golden], axis=1) * 2 - 1
        inside = inside if per_cell > 1 else np.zeros((1, 2))
        cells = np.argwhere(self.maze.floor).astype(float)
        return (self.centre(cells)[:, None] + inside * reach).reshape(-1, 2)

    @cached_property
    def _ways(self) -> tuple[KDTree, np.ndarray]:
        """Points with room, on a fine grid, and how long the shortest path from each to the goal is."""
        parts = (np.arange(FINENESS) + 0.5) / FINENESS - 0.5
        rows, columns = (np.add.outer(np.arange(n), parts).ravel() for n in self.maze.floor.shape)
        grid = self.centre(np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1))
        free = self.has_room(grid)
        number = np.cumsum(free.ravel()).reshape(free.shape) - 1
        heads, tails, lengths = [], [], []
        for step in ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1)):
            here, there = _shifted(free.shape, step)
            open_ = free[here] & free[there]
            open_[open_] = self.has_room((grid[here][open_] + grid[there][open_]) / 2)
            heads.append(number[here][open_])
            tails.append(number[there][open_])
            lengths.append(np.full(open_.sum(), np.hypot(*step) * self.spacing))
        # The goal is a point of its own, joined to those round it.
        tree, count = KDTree(grid[free]), int(free.sum())
        away, near = (np.atleast_1d(found) for found in tree.query(self.goal, k=min(16, count)))
        heads.append(np.full(len(near), count))
        tails.append(near)
        lengths.append(away)
        edges = (np.concatenate(heads), np.concatenate(tails))
        graph = sparse.coo_array((np.concatenate(lengths), edges), shape=(count + 1,) * 2).tocsr()
        return tree, dijkstra(graph, directed=False, indices=count)[:count]

    @property
    def spacing(self) -> float:
        """How far apart `points` are."""
        return self.cell / FINENESS

    @property
    def points(self) -> np.ndarray:
        """(x, y) all over the arena where the body has room, on a fine grid."""
        return np.asarray(self._ways[0].data)

    def path_lengths(self, points: np.ndarray) -> np.ndarray:
        """The length of the shortest path to the goal that the body has room on."""
        tree, lengths = self._ways
        away, place = tree.query(points)
        straight = np.linalg.norm(points - self.goal, axis=-1)
        there = straight <= 2 * self.spacing
        return np.where(there, straight, np.maximum(lengths[place] + away, straight))


def _shifted(shape: tuple[int, ...], step: tuple[int, int]) -> tuple[tuple, tuple]:
    """Slices of a grid that lie `step` apart."""
    pairs = []
    for size, move in zip(shape, step, strict=True):
        pairs.append((slice(max(-move, 0), size - max(move, 0)), slice(max(move, 0), size - max(-move, 0))))
    return (pairs[0][0], pairs[1][0]), (pairs[0][1], pairs[1][1])


def open_arena(
    name: str, *, goal: Cell | None = None, cell: float | None = None, fast: bool = False
) -> Arena:
    """An arena by its name, `PointUMaze` or `Ant:my_maze.txt`; one without room is refused."""
    for body in BODIES.values():
        rest = name.removeprefix(body.name)
        if rest != name and (rest in ARENAS or rest.startswith(":")):
            return make_arena(body, read_maze(rest.removeprefix(":")), goal=goal, cell=cell, fast=fast)
    raise ConfigError(f"unknown arena {name!r}; {nearest(name, arena_names())} (or Point:my_maze.txt)")


def parse_arena(description: dict[str, Any]) -> Arena:
    """The arena that `Arena.description` described."""
    body, maze = BODIES[description["body"]], parse_maze(description["text"], name=description["name"])
    row, column = description["goal"]
    return make_arena(body, maze, goal=(row, column), cell=description["cell"], fast=description["fast"])


def make_arena(
    body: Body, maze: Maze, *, goal: Cell | None = None, cell: float | None = None, fast: bool = False
) -> Arena:
    """A body in a maze; `goal` and `cell` default to the maze's own and the body's."""
    goal = maze.goal if goal is None else goal
    if goal is None:
        raise ConfigError(f"{maze.name} has no cell marked G; name one with --goal ROW,COLUMN")
    GridWorld(maze).check_cell(goal)
    row, column = map(int, goal)
    width = body.cell if cell is None else checked("cell", cell, most=WIDEST)
    if width < NARROWEST * body.radius:
        raise ConfigError(
            f"cells of {width:g} leave no room for the body {body.name}, which is {2 * body.radius:g} wide "
            f"and needs {NARROWEST * body.radius:g} to move; make --cell larger, {body.cell:g} or so"
        )
    arena = Arena(body, maze, width, (row, column), fast)
    centres = arena.centre(np.argwhere(maze.floor).astype(float))
    if np.all(np.linalg.norm(centres - arena.goal, axis=1) <= arena.goal_radius):
        raise ConfigError(
            f"{maze.name} leaves no room for a path to the goal: all its floor is at the goal; "
            "draw a larger maze"
        )
    return arena
