"""Figures of shaped rewards and of the agents that learn from them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lapwing.envs.gridworld import AGENT, GOAL
from lapwing.mazes import MOVES
from lapwing.plots.curves import Column, Curve
from lapwing.plots.representations import draw_map
from lapwing.plots.style import DISTANCES, REWARDS
from lapwing.shaping.audit import Audit, greedy_policy
from lapwing.shaping.tasks import GridTask

_CELL = 16
"""Pixels of a cell in an animation."""
_ARROWS = np.array([*MOVES.values(), (0, 0)])


def draw_audits(task: GridTask, audits: Sequence[Audit], *, columns: int = 4) -> Figure:
    """For each reward what stepping on a cell is worth, where it leads, and where it stops (crosses)."""
    columns = min(columns, len(audits))
    rows = -(-len(audits) // columns)
    figure = Figure(figsize=(3.4 * columns, 3.5 * rows), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axis in axes:
        axis.set_axis_off()
    for axis, audit in zip(axes, audits, strict=False):
        image = draw_map(axis, task.world, audit.landing, cmap=REWARDS)
        _draw_arrows(axis, task, greedy_policy(audit.landing[task.world.next_state]))
        optima = task.world.cells[audit.optima]
        axis.plot(optima[:, 1], optima[:, 0], "x", color="red", ms=7, mew=2)
        _mark_goal(axis, task)
        axis.set_title(f"{audit.name}: correlation {audit.correlation:.2f}", fontsize=9)
        figure.colorbar(image, ax=axis, shrink=0.7)
    return figure


def draw_policy(task: GridTask, q_table: np.ndarray) -> Figure:
    """The value of each state and the greedy move."""
    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axis = figure.subplots()
    axis.set_axis_off()
    image = draw_map(axis, task.world, q_table.max(axis=1), cmap=REWARDS)
    best = np.eye(q_table.shape[1])[q_table.argmax(axis=1)]
    _draw_arrows(axis, task, best)
    _mark_goal(axis, task)
    axis.set_title("value and greedy move", fontsize=9)
    figure.colorbar(image, ax=axis, shrink=0.7)
    return figure


def draw_returns(evaluated_at: Sequence[int], returns: Sequence[float], optimum: float | None) -> Figure:
    """The mean return of the greedy policy over the steps, and the best there is."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axis = figure.subplots()
    axis.plot(evaluated_at, returns, ".-", label="greedy policy")
    if optimum is not None:
        axis.axhline(optimum, color="black", ls=":", label="optimum")
    axis.set(xlabel="step", ylabel="mean return")
    axis.legend(frameon=False, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def policy_frames(task: GridTask, policy: np.ndarray, *, held: int = 8) -> list[np.ndarray]:
    """One agent from every cell, all following the policy at once: an image for each step."""
    walks = task.walks(policy)
    settled = np.flatnonzero((walks[1:] != walks[:-1]).any(axis=1))
    last = int(settled[-1]) + 1 if len(settled) else 0
    frames = [_frame(task, walks[step]) for step in range(min(last, task.episode_length) + 1)]
    return [*frames, *[frames[-1]] * held]


def _frame(task: GridTask, states: np.ndarray) -> np.ndarray:
    pixels = task.world.background().astype(np.float64)
    pixels[task.goal_cell] = GOAL
    counts = np.bincount(states, minlength=task.world.n_states)
    there = counts > 0
    cells = tuple(task.world.cells[there].T)
    # Many on one cell are darker, so that a crowd can be told from a single one.
    alpha = 0.35 + 0.65 * np.minimum(np.log2(counts[there]) / 6, 1.0)
    pixels[cells] = (1 - alpha[:, None]) * pixels[cells] + alpha[:, None] * np.array(AGENT)
    pixels[task.goal_cell] = 0.5 * pixels[task.goal_cell] + 0.5 * np.array(GOAL)
    return np.kron(pixels.astype(np.uint8), np.ones((_CELL, _CELL, 1), np.uint8))


def draw_goal_maps(maps: Mapping[str, tuple[GridTask, np.ndarray, np.ndarray]], *, label: str) -> Figure:
    """Side by side a number for each state; crosses stand on the local optima.

    Args:
        maps: by title: a task, the numbers, and the states that are local optima.
        label: what the numbers are.
    """
    figure = Figure(figsize=(4.2 * len(maps), 3.8), layout="constrained")
    axes = np.ravel(figure.subplots(1, len(maps), squeeze=False))
    for axis, (title, (task, values, optima)) in zip(axes, maps.items(), strict=True):
        image = draw_map(axis, task.world, values, cmap=REWARDS)
        cells = task.world.cells[optima]
        axis.plot(cells[:, 1], cells[:, 0], "x", color="red", ms=8, mew=2)
        _mark_goal(axis, task)
        axis.set_axis_off()
        axis.set_title(title, fontsize=10)
        figure.colorbar(image, ax=axis, shrink=0.8, label=label)
    return figure


def maze_column(task: GridTask, distances: dict[str, np.ndarray], curves: dict[str, Curve]) -> Column:
    """One maze of figure 4, with the distance of each state to the goal by title."""
    maps = {title: partial(_draw_distance, task, values) for title, values in distances.items()}
    return Column(maps, curves, task.optimal_return)


def _draw_distance(task: GridTask, values: np.ndarray, axis) -> Any:
    image = draw_map(axis, task.world, values, cmap=DISTANCES)
    _mark_goal(axis, task)
    return image


def _draw_arrows(axis, task: GridTask, policy: np.ndarray) -> None:
    """The mean direction of a policy in each state but the goal."""
    away = np.arange(task.world.n_states) != task.goal_state
    direction = (policy @ _ARROWS[: policy.shape[1]])[away]
    cells = task.world.cells[away]
    options = {"angles": "xy", "scale_units": "xy", "scale": 1.7, "pivot": "mid", "width": 0.006}
    axis.quiver(cells[:, 1], cells[:, 0], direction[:, 1], direction[:, 0], color="white", **options)


def _mark_goal(axis, task: GridTask) -> None:
    row, column = task.goal_cell
    axis.plot(column, row, "*", color="red", ms=10)
