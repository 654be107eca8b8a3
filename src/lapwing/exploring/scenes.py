"""Where the states of a representation are drawn: on the floor of a maze, over two features, or by φ itself.

Whatever has a floor plan is drawn in cells, (x, y) from the upper left corner of the text. An affine map goes
from there to the first two features of an observation, so that a page can ask φ about any point.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from lapwing.data.ogbench import OGBenchData
from lapwing.envs.arena import Arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.ogbench import PointMaze
from lapwing.envs.plane import Plane
from lapwing.envs.simulator import point_observations
from lapwing.laplacian.chain import Chain, true_chain
from lapwing.plots.representations import telling_features

NEIGHBOURS = 8
"""A state of a continuous space has so many."""
CHOICE, GRID, MUCH = 10, 40, 1.5
"""Two of so many functions are drawn: those over which states are spread over the most squares of a grid with
so many a side, if these are so many times those of the slowest two."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
ALIKE = 4.0
"""Features whose ranges differ by no more than this factor may be coordinates, and are drawn to one scale."""
APART = 4.0
"""What is farther away than so many times the median to the nearest is no neighbour."""


@dataclass(frozen=True, eq=False)
class Scene:
    """States and where they are drawn."""

    points: np.ndarray
    """(n, 2), x to the right and y downwards."""
    observations: np.ndarray | None
    """What φ sees at each; None where that is not known."""
    lines: tuple[str, ...] | None = None
    """The floor plan."""
    discrete: bool = False
    """Whether a state is a cell of the floor plan."""
    spacing: float = 0.0
    """How far apart states are drawn, where they are on a lattice."""
    axes: tuple[str, str] | None = None
    """The names of what is drawn to the right and upwards, where there is no floor plan."""
    features: tuple[int, int] | None = None
    """Of an observation, which number is drawn to the right and which upwards, where these are."""
    columns: tuple[int, int] | None = None
    """The same of eigenfunctions."""
    to_features: np.ndarray | None = None
    """(2, 3), from (x, y, 1) to the first two features."""
    goal: int | None = None
    """The state of the goal that the maze has."""
    moves: np.ndarray | None = None
    """(n, actions), where each move leads; None where moves are not known."""
    chain: Chain | None = None
    """The chain whose eigenfunctions are the exact ones."""
    coarser: "Callable[[int], Scene] | None" = None
    """The same with at most so many states, on a lattice again."""
    remarks: tuple[str, ...] = field(default=())

    @property
    def to_scale(self) -> bool:
        """Whether as long to the right is as long upwards: on a floor, and of features of like ranges."""
        if self.lines is not None:
            return True
        low, high = np.sort(np.ptp(self.points, axis=0))
        return self.features is not None and bool(0 < high <= ALIKE * low)

    @property
    def expression(self) -> str | None:
        """Python for the two numbers that are drawn of observations `seen`."""
        if self.features is not None:
            return f"seen[:, {list(self.features)}]"
        return None if self.columns is None else f"rep.eigenfunctions(seen)[:, {list(self.columns)}]"

    def placed(self, functions: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Where other observations, and the eigenfunctions there, are drawn: (n, 2)."""
        if self.features is not None:
            return observations[:, self.features] * [1, -1]
        assert self.columns is not None, "a floor plan has its own way from observations to points"
        return functions[:, self.columns] * [1, -1]

    def neighbours(self) -> np.ndarray:
        """(n, most), the states beside each; the state itself fills up the row."""
        return self.moves if self.moves is not None else self._nearest()

    def _nearest(self) -> np.ndarray:
        """States near each, without what a wall is between.

        On a lattice those around it. Where states are a sample over a floor plan, one in each of eight
        directions, as far as a few spacings away: the very nearest lie to one side as often as not.
        """
        places = self.points
        if self.lines is None and self.observations is not None and self.observations.ndim == 2:
            spread = self.observations.std(axis=0)
            places = self.observations / np.where(spread > 0, spread, 1.0)
        sampled = self.lines is not None and not self.spacing
        count = min((5 if sampled else 1) * NEIGHBOURS + 1, len(places))
        apart, found = KDTree(places).query(places, k=count)
        apart, found = apart.reshape(len(places), count), found.reshape(len(places), count)
        here = np.broadcast_to(np.arange(len(places))[:, None], found.shape)
        near = found != here
        if self.lines is not None:
            near &= (apart <= APART * np.median(apart[:, min(1, count - 1)])) & self._clear(here, found)
        if sampled:
            return self._by_direction(here, found, near)
        return np.where(near, found, here)[:, 1:]

    def _by_direction(self, here: np.ndarray, found: np.ndarray, near: np.ndarray) -> np.ndarray:
        """The farthest in each of eight directions of those that are near."""
        aside = self.points[found] - self.points[here]
        octant = np.floor(np.arctan2(aside[..., 1], aside[..., 0]) / (np.pi / 4) + 0.5).astype(int) % 8
        chosen = np.repeat(here[:, :1], 8, axis=1)
        for column in range(found.shape[1]):  # from near to far
            rows = np.flatnonzero(near[:, column])
            chosen[rows, octant[rows, column]] = found[rows, column]
        return chosen

    def _clear(self, here: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Whether no wall is between states of neighbouring cells."""
        assert self.lines is not None
        floor = np.array([[mark != "#" for mark in line] for line in self.lines])
        limits = np.array(floor.shape) - 1
        ends = [np.clip(self.points[end][..., ::-1].astype(int), 0, limits) for end in (here, there)]
        crossed = [floor[ends[one][..., 0], ends[other][..., 1]] for one in (0, 1) for other in (0, 1)]
        return np.all(crossed, axis=0)

    def taken(self, rows: np.ndarray) -> "Scene":
        """Some of the states, which are no lattice any more; the goal is the nearest of them."""
        points, goal = self.points[rows], self.goal
        if goal is not None:
            goal = int(np.linalg.norm(points - self.points[goal], axis=1).argmin())
        seen = None if self.observations is None else self.observations[rows]
        return replace(self, points=points, observations=seen, goal=goal, spacing=0.0, chain=None)


def of_maze(world: GridWorld, observation: str) -> Scene:
    """Every cell of a maze."""
    height, width = world.maze.floor.shape
    scales = 2 / max(height - 1, 1), 2 / max(width - 1, 1)
    row = np.array([[0, scales[0], -1 - scales[0] / 2], [scales[1], 0, -1 - scales[1] / 2]])
    return Scene(
        points=world.cells[:, ::-1] + 0.5,
        observations=world.observations(observation),
        lines=world.maze.lines,
        discrete=True,
        spacing=1.0,
        to_features=row if observation == "position" else None,
        goal=world.goal_state,
        moves=world.next_state,
        chain=true_chain(world.transition_matrix()),
    )


def of_plane(plane: Plane, most: int) -> Scene:
    """A lattice over the floor of a plane, as fine as `most` points allow."""
    fineness = int(np.clip(np.sqrt(most / plane.maze.floor.sum()), 1, 6))
    positions = plane.points(fineness)
    height, width = plane.maze.floor.shape
    cell = plane.cell
    matrix = np.array([[0, cell, -height / 2 * cell], [cell, 0, -width / 2 * cell]])
    points = plane.in_cells(positions)[:, ::-1]
    goal = None if plane.goal is None else int(np.linalg.norm(positions - plane.goal, axis=1).argmin())
    uniform = np.full(len(points), 1 / len(points))  # for the walk is symmetric
    return Scene(
        points=points,
        observations=positions.astype(np.float32),
        lines=plane.maze.lines,
        spacing=1 / fineness,
        to_features=matrix,
        goal=goal,
        chain=true_chain(plane.transition_matrix(fineness), rho=uniform),
        coarser=partial(of_plane, plane) if fineness > 1 else None,
        remarks=(f"exact functions are those of a lattice, {fineness} x {fineness} points a cell",),
    )


def of_arena(arena: Arena, observation: str, most: int) -> Scene:
    """A lattice over where a body has room."""
    positions = arena.points
    left, top = arena.centre(np.array([0.0, 0.0])) + np.array([-1, 1]) * arena.cell / 2
    points = np.stack([positions[:, 0] - left, top - positions[:, 1]], axis=1) / arena.cell
    goal = int(np.linalg.norm(positions - arena.goal, axis=1).argmin())
    scene = Scene(
        points=points,
        observations=point_observations(arena, whole=observation == "state"),
        lines=arena.maze.lines,
        spacing=arena.spacing / arena.cell,
        to_features=np.array([[arena.cell, 0, left], [0, -arena.cell, top]]),
        goal=goal,
    )
    return scene if len(points) <= most else scene.taken(spread_rows(points, most))


def of_vectors(observations: np.ndarray, functions: np.ndarray) -> Scene:
    """Vectors over the two features that go most with the eigenfunctions."""
    first, second = telling_features(observations, functions)
    return Scene(
        points=observations[:, [first, second]] * [1, -1],
        observations=observations,
        axes=(f"feature {first}", f"feature {second}"),
        features=(first, second),
        to_features=np.array([[1.0, 0, 0], [0, -1.0, 0]]) if observations.shape[1] == 2 else None,
    )


def of_functions(functions: np.ndarray, observations: np.ndarray | None, *, constant: bool) -> Scene:
    """States in the plane of two of these functions, which the constant may be the first of."""
    columns = telling_columns(functions, first=int(constant and functions.shape[1] > 1))
    right, up = (str(column + 1).translate(SUBSCRIPTS) for column in columns)
    return Scene(
        points=functions[:, columns] * [1, -1],
        observations=observations,
        axes=(f"f{right}", f"f{up}"),
        columns=columns,
    )


def telling_columns(functions: np.ndarray, first: int) -> tuple[int, int]:
    """Two of the first functions over which states are spread: the slowest two, unless others are much more.

    The slowest may tell apart a few parts, or a few outliers, and all else lies on top of each other.
    """
    last = min(first + CHOICE, functions.shape[1])
    pairs = list(combinations(range(first, last), 2))
    if not pairs:
        return first, first
    spread = [_squares(functions[:, pair]) for pair in pairs]
    best = int(np.argmax(spread))
    return pairs[best] if spread[best] > MUCH * spread[0] else pairs[0]


def _squares(points: np.ndarray) -> float:
    """Over how many squares of a grid these points are spread: the exponential of the entropy."""
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    square = np.floor(GRID * (points - low) / np.where(size > 0, size, 1.0)).astype(int)
    shares = np.unique(square, axis=0, return_counts=True)[1] / len(points)
    return float(np.exp(-np.sum(shares * np.log(shares))))


def of_point_maze(source: OGBenchData, observations: np.ndarray) -> Scene:
    """Observations of OGBench's data on the floor plan of its maze."""
    maze = PointMaze(source.name.split("-")[1])
    left, top = maze.centres(np.array([0.0, 0.0])) - maze.unit / 2
    points = (observations[:, :2] - np.array([left, top])) / maze.unit
    lines = tuple("".join(".#"[not cell] for cell in row) for row in maze.floor)
    matrix = np.array([[maze.unit, 0, left], [0, maze.unit, top]])
    return Scene(points=points, observations=observations, lines=lines, to_features=matrix)


def spread_rows(points: np.ndarray, most: int) -> np.ndarray:
    """At most so many rows, one for each square of a grid."""
    low, size = points.min(axis=0), float(np.ptp(points, axis=0).max()) or 1.0
    narrow, wide = 0.0, size
    rows = np.zeros(1, int)
    for _ in range(20):
        side = (narrow + wide) / 2
        squares = np.floor((points - low) / side).astype(int)
        kept = np.unique(squares, axis=0, return_index=True)[1]
        if len(kept) <= most:
            rows, wide = kept, side
        else:
            narrow = side
    return np.sort(rows)


def described(scene: Scene) -> dict[str, Any]:
    """What of a scene is plain text and numbers."""
    return {
        "lines": None if scene.lines is None else list(scene.lines),
        "discrete": scene.discrete,
        "spacing": scene.spacing,
        "toScale": scene.to_scale,
        "axes": None if scene.axes is None else list(scene.axes),
        "toFeatures": None if scene.to_features is None else scene.to_features.tolist(),
        "goal": scene.goal,
    }


def with_chain(scene: Scene, chain: Chain) -> Scene:
    """The same with exact eigenfunctions: those of the chain of its states."""
    return replace(scene, chain=chain)
