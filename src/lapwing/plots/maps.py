"""A maze as a map of numbers."""

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from lapwing.envs.gridworld import GridWorld

WALL = "#3a3f4b"


def draw_map(axis, world: GridWorld, values: np.ndarray, **options: Any):
    """A number for each state, in colours; returns the image."""
    grid = np.full(world.maze.floor.shape, np.nan)
    grid[world.maze.floor] = values
    axis.set_facecolor(WALL)
    axis.imshow(np.zeros((*grid.shape, 3)) + to_rgb(WALL))
    return axis.imshow(grid, **options)
