"""Figures of arenas, and of agents that learn to reach a goal in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from lapwing.agents.evaluation import SUCCESS_RATE
from lapwing.envs.arena import Arena
from lapwing.plots.curves import Column, Curve, colours_of, draw_columns, draw_curves
from lapwing.plots.style import DISTANCES, WALL

SHARES = -0.02, 1.02
"""Where the axis of a share begins and ends."""


def arena_column(arena: Arena, distances: dict[str, np.ndarray], curves: dict[str, Curve]) -> Column:
    """One arena of figure 5.

    Args:
        arena: where agents learn.
        distances: by title, the distance to the goal from each of the arena's points.
        curves: by reward, success over the steps.
    """
    maps = {title: partial(_draw_values, arena, values, DISTANCES) for title, values in distances.items()}
    return Column(maps, curves, SUCCESS_RATE)


def draw_reaching(columns: Mapping[str, Column]) -> Figure:
    """For each arena maps of distance above, success over steps below."""
    measure = "share of starts from which the goal is reached"
    return draw_columns(columns, measure=measure, best="90 %", limits=SHARES)


@dataclass(frozen=True)
class OnlinePanel:
    """One target of figure 8."""

    curves: dict[str, Curve]
    measure: str
    best: float


def draw_online(panels: Mapping[str, OnlinePanel]) -> Figure:
    """Side by side the curves of each target, and the best there is."""
    figure = Figure(figsize=(5.2 * len(panels), 4.0), layout="constrained")
    shown: dict[str, Any] = {}
    colours = colours_of(panel.curves for panel in panels.values())
    axes = np.ravel(figure.subplots(1, len(panels), squeeze=False))
    for axis, (title, panel) in zip(axes, panels.items(), strict=True):
        for label, line in draw_curves(axis, panel.curves, colours).items():
            shown.setdefault(label, line)
        shown.setdefault("the best there is", axis.axhline(panel.best, color="black", ls=":", lw=1))
        axis.set(title=title, xlabel="step", ylabel=panel.measure)
        if panel.measure == "success":
            axis.set_ylim(SHARES)
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=3, frameon=False)
    return figure


def draw_success(evaluated_at: Sequence[int], success: Sequence[float]) -> Figure:
    """The share of starts from which the goal is reached, over the steps."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axis = figure.subplots()
    axis.plot(evaluated_at, success, ".-")
    axis.axhline(SUCCESS_RATE, color="black", ls=":", lw=1)
    axis.set(xlabel="step", ylabel="share of starts that reach the goal", ylim=SHARES)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_arena_maps(arena: Arena, maps: Mapping[str, np.ndarray], *, cmap: str, columns: int = 4) -> Figure:
    """By title, a number for each of the arena's points."""
    columns = min(columns, len(maps))
    rows = -(-len(maps) // columns)
    figure = Figure(figsize=(3.6 * columns + 0.8, 3.2 * rows + 0.4), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axis in axes:
        axis.set_axis_off()
    for axis, (title, values) in zip(axes, maps.items(), strict=False):
        image = _draw_values(arena, values, cmap, axis)
        axis.set_title(title, fontsize=9)
        figure.colorbar(image, ax=axis, shrink=0.8)
    return figure


def draw_paths(arena: Arena, paths: np.ndarray, reached: np.ndarray) -> Figure:
    """Where the policy goes from each start: green to the goal, red where it never comes."""
    figure = Figure(figsize=(4.8, 4.8), layout="constrained")
    axis = figure.subplots()
    axis.set_axis_off()
    draw_arena(axis, arena)
    for path, came in zip(np.swapaxes(paths, 0, 1), reached, strict=True):
        colour = "#2a9d4a" if came else "#c83c32"
        axis.plot(*path.T, color=colour, lw=0.8, alpha=0.8)
        axis.plot(*path[0], "o", color=colour, ms=3)
    axis.set_title(f"from {len(reached)} starts; {reached.mean():.0%} reach the goal", fontsize=9)
    return figure


def draw_strip(frames: Sequence[np.ndarray], *, count: int = 6) -> Figure:
    """Some of the pictures of a film, side by side."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, count).astype(int))
    figure = Figure(figsize=(2.2 * len(chosen), 2.4), layout="constrained")
    for axis, place in zip(np.ravel(figure.subplots(1, len(chosen))), chosen, strict=True):
        axis.imshow(frames[place])
        axis.set_axis_off()
    return figure


def draw_arena(axis, arena: Arena, *, goal: bool = True) -> None:
    """Walls, and the goal if it is wanted."""
    for x, y, half_width, half_height in arena.walls:
        corner = (x - half_width, y - half_height)
        axis.add_patch(Rectangle(corner, 2 * half_width, 2 * half_height, color=WALL, lw=0))
    if goal:
        axis.add_patch(Circle(tuple(arena.goal), arena.goal_radius, color="red", fill=False, lw=1.5))
    points = arena.centre(np.argwhere(arena.maze.floor).astype(float))
    margin = 0.7 * arena.cell
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")


def _draw_values(arena: Arena, values: np.ndarray, cmap: str, axis) -> Any:
    """A number for each of the arena's points, in colours."""
    low, high = arena.points.min(axis=0), arena.points.max(axis=0)
    width = arena.spacing
    columns, rows = np.rint((arena.points - low) / width).astype(int).T
    grid = np.full((rows.max() + 1, columns.max() + 1), np.nan)
    grid[rows, columns] = values
    edges = (low[0] - width / 2, high[0] + width / 2, low[1] - width / 2, high[1] + width / 2)
    image = axis.imshow(grid, origin="lower", extent=edges, cmap=cmap, interpolation="nearest")
    draw_arena(axis, arena)
    return image
