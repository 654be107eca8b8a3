"""Figure 2: the FourRoom maze and its three observations."""

from matplotlib.figure import Figure

from lapwing.envs.gridworld import GridWorld
from lapwing.figures.grid import Preset, Row, Run, Study
from lapwing.figures.methods import ENVIRONMENT, execute
from lapwing.mazes import read_maze
from lapwing.plots import draw_observations

CELL = (3, 4)
"""Where the agent stands in the picture."""


def runs(preset: Preset, seeds: int) -> list[Run]:
    """None: the figure is only drawn."""
    return []


def draw(rows: list[Row], preset: Preset) -> Figure:
    """The maze, and one state as index, as position and as image."""
    world = GridWorld(read_maze(ENVIRONMENT))
    return draw_observations(world, world.check_cell(CELL, "cell"))


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """The three observations in words."""
    world = GridWorld(read_maze(ENVIRONMENT))
    state = world.check_cell(CELL, "cell")
    row, column = world.observations("position")[state]
    height, width, channels = world.observations("image").shape[1:]
    return [
        f"- index: state {state} of {world.n_states}, a one-hot vector",
        f"- position: ({row:.3f}, {column:.3f}), row and column scaled to [-1, 1]",
        f"- image: {height} x {width} pixels of {channels} bytes; agent, walls and ground have three colours",
    ]


FIG2 = Study("fig2", "The FourRoom maze and its three observations", runs, execute, draw, describe)
