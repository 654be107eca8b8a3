"""Figures of a reacher: its landmarks and edges, plans and paths, and the steps to a goal."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from lapwing.plots.style import DISTANCES

REACHED, MISSED = "#2a9d4a", "#c83c32"
PLAN = "#2b6cb0"
FLOOR = "#c9ced6"


def draw_landmarks(landmarks: np.ndarray, edges: np.ndarray, parts: np.ndarray) -> Figure:
    """Landmarks as dots, a colour for each part that is joined there and back, and the edges between them.

    Args:
        landmarks: (n, 2), where each is drawn.
        edges: (m, 2), indices of their ends.
        parts: the part of each landmark.
    """
    figure, axis = _axes()
    axis.add_collection(LineCollection(list(landmarks[edges]), colors=FLOOR, linewidths=0.4, zorder=1))
    sizes = np.bincount(parts)
    rank = np.argsort(np.argsort(-sizes))[parts]
    axis.scatter(*landmarks.T, c=rank % 10, cmap="tab10", vmin=0, vmax=9, s=10, zorder=2)
    joined = "all joined" if len(sizes) == 1 else f"{len(sizes)} parts"
    axis.set_title(f"{len(landmarks)} landmarks, {len(edges):,} edges, {joined}", fontsize=9)
    return figure


def draw_plan(landmarks: np.ndarray, plan: np.ndarray, path: np.ndarray | None, reached: bool) -> Figure:
    """A plan and the path that was walked.

    Args:
        landmarks: (n, 2), all of them.
        plan: (k, 2), the way points, the goal last.
        path: (steps, 2), or None where nothing was walked.
        reached: whether it came to the goal.
    """
    figure, axis = _axes()
    axis.plot(*landmarks.T, ".", color=FLOOR, ms=3)
    axis.plot(*plan.T, "o-", color=PLAN, ms=4, lw=1, label="plan")
    if path is not None:
        words = f"{len(path) - 1} steps" + ("" if reached else ", not reached")
        axis.plot(*path.T, color=REACHED if reached else MISSED, lw=1.2, label=words)
    axis.plot(*plan[-1], "*", color="black", ms=11, label="goal")
    axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def draw_walks(landmarks: np.ndarray, paths: np.ndarray, goals: np.ndarray, reached: np.ndarray) -> Figure:
    """Every path that was walked: green to its goal, red where it never came.

    Args:
        landmarks: (n, 2), all of them.
        paths: (steps + 1, episodes, 2).
        goals: (episodes, 2).
        reached: which came to their goals.
    """
    figure, axis = _axes()
    axis.plot(*landmarks.T, ".", color=FLOOR, ms=3)
    for path, goal, came in zip(np.swapaxes(paths, 0, 1), goals, reached, strict=True):
        colour = REACHED if came else MISSED
        axis.plot(*path.T, color=colour, lw=0.6, alpha=0.6)
        axis.plot(*goal, "*", color=colour, ms=5)
    axis.set_title(f"{len(reached)} episodes, {reached.mean():.0%} reach the goal", fontsize=9)
    return figure


def draw_steps_to(places: np.ndarray, steps: np.ndarray, goal: np.ndarray) -> Figure:
    """How many steps it is to a goal, from each place; grey where no way leads.

    Args:
        places: (n, 2).
        steps: (n,), infinite where no way leads.
        goal: (2,).
    """
    figure, axis = _axes()
    finite = np.isfinite(steps)
    axis.plot(*places[~finite].T, ".", color=FLOOR, ms=3)
    dots = axis.scatter(*places[finite].T, c=steps[finite], cmap=DISTANCES, s=12)
    axis.plot(*goal, "*", color="red", ms=12)
    figure.colorbar(dots, ax=axis, shrink=0.8, label="steps to the goal")
    return figure


def walk_frames(
    landmarks: np.ndarray, plan: np.ndarray, path: np.ndarray, *, count: int = 24
) -> list[np.ndarray]:
    """Pictures of a walk along its plan, as arrays of bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    frames = []
    for last in np.unique(np.linspace(0, len(path) - 1, count).astype(int)):
        figure = draw_plan(landmarks, plan, path[: last + 1], True)
        figure.axes[0].get_legend().remove()  # type: ignore[union-attr]
        figure.axes[0].plot(*path[last], "o", color="black", ms=5)
        figure.set_size_inches(3.6, 3.2)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        frames.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
    return frames


def draw_success_table(
    rows: Sequence[str],
    methods: Sequence[str],
    values: dict[tuple[str, str], float],
    published: dict[str, float],
) -> Figure:
    """Bars of success by data set and method, with the best published number as a line.

    Args:
        rows: data sets.
        methods: what is compared.
        values: success in percent by (data set, method).
        published: the best published percentage by data set.
    """
    figure = Figure(figsize=(1.5 * len(rows) + 2, 4.2), layout="constrained")
    axis = figure.subplots()
    width = 0.8 / max(1, len(methods))
    for number, method in enumerate(methods):
        at = np.arange(len(rows)) - 0.4 + width * (number + 0.5)
        heights = [values.get((row, method), np.nan) for row in rows]
        axis.bar(at, heights, width, label=method)
    for place, row in enumerate(rows):
        label = "best published" if place == 0 else None
        axis.plot([place - 0.45, place + 0.45], [published[row]] * 2, color="black", lw=1.5, label=label)
    axis.set_xticks(range(len(rows)), [row.replace("-", "\n", 1) for row in rows], fontsize=8)
    axis.set(ylabel="success, %", ylim=(0, 105))
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=8, ncols=4, loc="outside upper center")
    return figure


def _axes() -> tuple[Figure, Any]:
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axis = figure.subplots()
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_axis_off()
    return figure, axis
