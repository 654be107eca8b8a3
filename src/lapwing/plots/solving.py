"""Figures of a reward in a maze and of the policy that solves it."""

import numpy as np
from matplotlib.figure import Figure

from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import MOVES
from lapwing.plots.representations import draw_map
from lapwing.plots.style import DIVERGING, REWARDS

_ARROWS = np.array([*MOVES.values(), (0, 0)])


def draw_solution(
    world: GridWorld, rewards: np.ndarray, values: np.ndarray, actions: np.ndarray, path: list[int]
) -> Figure:
    """The reward of each state; beside it its value, the policy's moves, and the path from one start."""
    height, width = world.maze.floor.shape
    size = float(np.clip(0.28 * max(height, width), 4.2, 9.0))
    figure = Figure(figsize=(2 * size + 1.6, size * max(0.6, height / width) + 0.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    limit = float(np.abs(rewards).max(initial=0.0)) or 1.0
    image = draw_map(left, world, rewards, cmap=DIVERGING, vmin=-limit, vmax=limit)
    figure.colorbar(image, ax=left, shrink=0.7, label="reward")
    image = draw_map(right, world, values, cmap=REWARDS)
    figure.colorbar(image, ax=right, shrink=0.7, label="value")
    _draw_moves(right, world, actions)
    for axis in (left, right):
        _draw_path(axis, world, path)
        axis.set_axis_off()
    left.set_title(f"{world.maze.name}: reward, and the path from the dot", fontsize=9)
    right.set_title("value and best moves", fontsize=9)
    return figure


def _draw_moves(axis, world: GridWorld, actions: np.ndarray) -> None:
    direction = _ARROWS[actions]
    options = {"angles": "xy", "scale_units": "xy", "scale": 1.7, "pivot": "mid", "width": 0.004}
    cells = world.cells
    axis.quiver(cells[:, 1], cells[:, 0], direction[:, 1], direction[:, 0], color="white", **options)


def _draw_path(axis, world: GridWorld, path: list[int]) -> None:
    rows, columns = world.cells[path].T
    axis.plot(columns, rows, color="#ff7f0e", lw=1.6)
    axis.plot(columns[0], rows[0], "o", color="#ff7f0e", ms=7)
    axis.plot(columns[-1], rows[-1], "*", color="#ff7f0e", mec="black", ms=12)
