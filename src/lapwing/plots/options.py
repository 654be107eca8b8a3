"""Figures of options: their paths and ends in a maze, and their effect on a random walk."""

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from lapwing.envs.arena import Arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.plane import Plane
from lapwing.mazes import MOVES
from lapwing.plots.reaching import draw_arena
from lapwing.plots.representations import draw_map, lay_out_features
from lapwing.plots.style import EXACT, LEARNED, WALL

_ARROWS = np.array([*MOVES.values(), (0, 0)])
MOST_DRAWN = 16
MOST_ARROWS = 600
"""In larger mazes arrows cannot be seen; the steps that are left are coloured."""
_COLOURS = {"learned": LEARNED, "exact": EXACT}


def draw_options(
    world: GridWorld,
    names: tuple[str, ...],
    actions: np.ndarray,
    begins: np.ndarray,
    stops: np.ndarray,
    lengths: np.ndarray,
) -> Figure:
    """A map for each option: steps until it ends in colour, its moves as arrows, its ends as rings.

    Args:
        world: the maze.
        names: of the options.
        actions: of each option in each state.
        begins: where it may begin; where that is one state, it is a dot.
        stops: where it ends.
        lengths: steps until it ends, from each state.
    """
    shown = min(len(names), MOST_DRAWN)
    columns = min(4, shown)
    rows = -(-shown // columns)
    height, width = world.maze.floor.shape
    size = 2.8
    figure = Figure(figsize=(size * columns, (size * height / width + 0.3) * rows), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axis in axes:
        axis.set_axis_off()
    image, largest = None, float(lengths[:shown].max(initial=1)) or 1.0
    for axis, index in zip(axes, range(shown), strict=False):
        image = draw_map(axis, world, lengths[index], cmap="viridis_r", vmin=0, vmax=largest)
        going = ~stops[index]
        if world.n_states <= MOST_ARROWS:
            _draw_arrows(axis, world, actions[index], going)
        row, column = world.cells[stops[index]].T
        axis.plot(column, row, "o", color="#ff2d55", mfc="none", ms=6, mew=1.6)
        if begins[index].sum() == 1:
            row, column = world.cells[begins[index]].T
            axis.plot(column, row, "o", color="#ff7f0e", ms=5)
        axis.set_title(names[index], fontsize=9)
    assert image is not None
    figure.colorbar(image, ax=axes.tolist(), shrink=0.6, label="steps until it ends")
    return figure


def _draw_arrows(axis, world: GridWorld, actions: np.ndarray, going: np.ndarray) -> None:
    direction, cells = _ARROWS[actions[going]], world.cells[going]
    axis.quiver(
        cells[:, 1],
        cells[:, 0],
        direction[:, 1],
        direction[:, 0],
        color="white",
        angles="xy",
        scale_units="xy",
        scale=1.6,
        pivot="mid",
        width=0.006,
    )


def draw_diffusion(rows: list[dict[str, Any]]) -> Figure:
    """Decisions and steps between two random states, and the cover time, over the number of options."""
    measures = {
        "decisions": "decisions between two random states",
        "steps": "steps between two random states",
        "cover": "steps until all states were seen",
    }
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes = figure.subplots(1, len(measures))
    for axis, (measure, label) in zip(axes, measures.items(), strict=True):
        axis.axhline(rows[0][measure], color="grey", ls=":", label="primitive actions")
        for source, colour in _COLOURS.items():
            found = [row for row in rows if row["source"] == source and row[measure] is not None]
            if found:
                counts = [row["options"] for row in found]
                axis.plot(counts, [row[measure] for row in found], "o-", color=colour, ms=4, label=source)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(ScalarFormatter())
        axis.set_yscale("log")
        axis.set_xlabel("options")
        axis.set_ylabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def draw_rides(rows: list[dict[str, Any]], *, floor: Plane | Arena | None = None) -> Figure:
    """Of options over continuous vectors: the ways they led, in the first two features.

    Args:
        rows: the measures of the options, as in `result.json`.
        floor: what has walls; in a plane the features are a row, which counts downwards, and a column.
    """
    columns = min(4, len(rows))
    lines = -(-len(rows) // columns)
    figure = Figure(figsize=(2.8 * columns, 2.9 * lines), layout="constrained")
    axes = np.ravel(figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True))
    for axis in axes[len(rows) :]:
        axis.set_axis_off()
    for axis, row in zip(axes, rows, strict=False):
        if isinstance(floor, Arena):
            draw_arena(axis, floor, goal=False)
        elif isinstance(floor, Plane):
            _draw_floor(axis, floor)
        ways = [np.array(way) for way in row["ways"]]
        if ways[0].shape[1] == 2:
            across = slice(None, None, -1) if isinstance(floor, Plane) else slice(None)
            _draw_ways(axis, [way[:, across] for way in ways])
        axis.set_title(f"{row['option']}: dots are starts, rings ends", fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    names = ("x", "y") if isinstance(floor, Arena) else ("feature 0", "feature 1")
    lay_out_features(figure, axes[: len(rows)], names, rows_and_columns=isinstance(floor, Plane))
    return figure


def _draw_floor(axis, plane: Plane) -> None:
    """The walls of a plane, by column and row."""
    height, width = np.array(plane.maze.floor.shape) * plane.cell / 2
    picture = np.where(plane.maze.floor[..., None], 1.0, to_rgb(WALL))
    axis.imshow(picture, extent=(-width, width, -height, height), origin="lower")


def _draw_ways(axis, ways: list[np.ndarray]) -> None:
    for way in ways:
        axis.plot(*way.T, color="#9aa5b1", lw=0.6)
    starts, ends = (np.array([way[place] for way in ways]) for place in (0, -1))
    axis.plot(*ends.T, "o", color="#ff2d55", mfc="none", ms=6, mew=1.4)
    axis.plot(*starts.T, ".", color=LEARNED, ms=4)
