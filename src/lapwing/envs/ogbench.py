"""OGBench's point mazes, stepped for many points at once, with the results of the installed ogbench.

An action displaces the point by a fifth of its length. Then MuJoCo simulates five short steps, in which walls
push a ball of radius 0.7 away and nothing else moves it. So MuJoCo simulates only the balls that touch a
wall, about one step in a hundred, and the result matches the environment bit for bit.

Positions are (x, y). The map, the sizes and the physical model are read from ogbench, whose environments are
the reference.
"""

import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from lapwing.envs.simulator import import_mujoco
from lapwing.errors import ConfigError, nearest
from lapwing.storage import remove

SIZES = ("medium", "large", "giant", "teleport")
REACH = 0.2
"""How far an action of 1 moves along its axis."""
PHYSICS_STEPS = 5
TOUCHING = 1e-6
"""A ball nearer to a wall than this may be pushed by it."""
TELEPORT_REACH = 1.5
"""Over a teleport's radius: how near its entrance takes in."""
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1))
"""In the order in which the oracle of ogbench prefers them, where ways are equally long."""
_AROUND = np.array([(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)])


def import_ogbench() -> Any:
    """The module of ogbench's mazes, or a sentence that says how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what ogbench imports beside its mazes
            from ogbench.locomaze import maze
    except ImportError as error:
        raise ConfigError(
            "OGBench's mazes need ogbench, which is not installed; pip install 'lapwing[ogbench]'"
        ) from error
    return maze


class PointMaze:
    """One of OGBench's point mazes.

    A point is a row of four numbers: its position, and MuJoCo's first guess of its next acceleration, which
    decides the last bits of the next contact.

    Args:
        size: `medium`, `large`, `giant` or `teleport`.
    """

    def __init__(self, size: str):
        """Build ogbench's environment."""
        if size not in SIZES:
            raise ConfigError(f"no point maze {size!r} of OGBench; {nearest(size, SIZES)}")
        self._env = import_ogbench().make_maze_env("point", "maze", maze_type=size, terminate_at_goal=False)
        remove(Path(self._env.fullpath))  # which ogbench writes for MuJoCo to read, and leaves
        self.size = size
        self.floor: np.ndarray = self._env.maze_map == 0
        """Which cells (row, column) one can be in."""
        self.goal_radius = float(self._env._goal_tol)
        self.unit = float(self._env._maze_unit)
        """The side of a cell."""
        self._offset = np.array([self._env._offset_x, self._env._offset_y], float)
        self._mj_step = import_mujoco().mj_step
        self._radius = float(self._env.model.geom("pointbody").size[0])

    @cached_property
    def cells(self) -> np.ndarray:
        """(row, column) of each cell that one can be in, in reading order."""
        return np.argwhere(self.floor)

    @cached_property
    def tasks(self) -> tuple[np.ndarray, np.ndarray]:
        """The cells (row, column) in which the tasks of the benchmark begin, and those of their goals."""
        infos = self._env.task_infos
        return tuple(np.array([info[key] for info in infos]) for key in ("init_ij", "goal_ij"))  # type: ignore[return-value]

    def centres(self, cells: np.ndarray) -> np.ndarray:
        """The middle (x, y) of cells (row, column)."""
        return cells[..., ::-1] * self.unit - self._offset

    def cells_at(self, positions: np.ndarray) -> np.ndarray:
        """The cell (row, column) of each position."""
        return ((positions + self._offset + self.unit / 2) / self.unit).astype(int)[..., ::-1]

    def points_at(self, positions: np.ndarray) -> np.ndarray:
        """Rows of points at rest."""
        return np.concatenate([positions, np.zeros_like(positions)], axis=-1)

    def step(self, points: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The rows of the points after one action each."""
        moved = self.points_at(points[:, :2] + REACH * actions)
        for index in np.flatnonzero(self._touch(moved[:, :2])):
            moved[index] = self._pushed(moved[index, :2], points[index, 2:])
        return moved

    @cached_property
    def exits(self) -> np.ndarray:
        """Where teleports lead, each as likely as the others; none in most mazes."""
        info = self._env._teleport_info
        return np.zeros((0, 2)) if info is None else np.array(info["teleport_out_xys"], float)

    def taken_in(self, positions: np.ndarray) -> np.ndarray:
        """Which positions are so near a teleport's entrance that one leaves by an exit."""
        info = self._env._teleport_info
        if info is None:
            return np.zeros(len(positions), bool)
        entrances = np.array(info["teleport_in_xys"], float)
        away = np.linalg.norm(positions[:, None] - entrances, axis=-1)
        return (away <= TELEPORT_REACH * info["teleport_radius"]).any(axis=1)

    @cached_property
    def number(self) -> np.ndarray:
        """Of each cell its index in `cells`, -1 in a wall."""
        grid = np.full(self.floor.shape, -1)
        grid[self.floor] = np.arange(len(self.cells))
        return grid

    @cached_property
    def steps_between(self) -> np.ndarray:
        """The fewest moves between cells, by their indices; infinite where there is no way."""
        here, side = np.nonzero(self._beside >= 0)
        moves = sparse.lil_array((len(self.cells), len(self.cells)))
        moves[here, self._beside[here, side]] = 1
        return shortest_path(moves.tocsr(), unweighted=True)

    @cached_property
    def next_cell(self) -> np.ndarray:
        """The next cell from a cell towards a goal, by their indices; the same where there is no way."""
        steps = np.where(self._beside[..., None] >= 0, self.steps_between[self._beside], np.inf)
        nearer = steps.min(axis=1) < self.steps_between
        beside = np.take_along_axis(self._beside, np.argmin(steps, axis=1), axis=1)
        return np.where(nearer, beside, np.arange(len(self.cells))[:, None])

    @cached_property
    def junctions(self) -> np.ndarray:
        """The indices of the cells that are no straight corridor: ends, corners and crossings."""
        up, left, down, right = (self._beside >= 0).T
        vertical = up & down & ~left & ~right
        horizontal = left & right & ~up & ~down
        return np.flatnonzero(~vertical & ~horizontal)

    @cached_property
    def _beside(self) -> np.ndarray:
        """The indices of the four cells beside each, -1 for a wall."""
        return self.number[tuple((self.cells[:, None] + _NEIGHBOURS).T)].T

    def _touch(self, positions: np.ndarray) -> np.ndarray:
        """Which balls may be pushed by a wall."""
        around = self.cells_at(positions)[:, None] + _AROUND
        beyond = np.maximum(np.abs(positions[:, None] - self.centres(around)) - self.unit / 2, 0.0)
        near = (beyond**2).sum(axis=-1) < (self._radius + TOUCHING) ** 2
        return (near & ~self.floor[tuple(np.moveaxis(around, -1, 0))]).any(axis=1)

    def _pushed(self, position: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """The row of a point that MuJoCo moves, from rest, away from the walls."""
        model, data = self._env.model, self._env.data
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = position, 0.0, guess
        self._mj_step(model, data, nstep=PHYSICS_STEPS)
        return np.concatenate([data.qpos, data.qacc_warmstart])
