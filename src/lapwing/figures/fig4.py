"""Figure 4: DQN agents on shaped rewards in three mazes."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import kendalltau

from lapwing.figures.grid import Preset, Row, Run, Study
from lapwing.figures.maze_agents import (
    COMPARED,
    MAZES,
    about_recipe,
    execute,
    maze_run,
    return_range,
    task_of,
)
from lapwing.figures.tables import (
    ABOUT_NEVER,
    Speed,
    curves_of,
    interval,
    last_evaluation,
    markdown_table,
    select,
    speed_tables,
    speeds_of,
    values_by_step,
)
from lapwing.plots import Curve, draw_columns, maze_column
from lapwing.runs.train_dqn import steps_to_optimum
from lapwing.shaping.audit import LONGEST_LOOKAHEAD

NOTE = "returns count -1 for each step that does not end at the goal"
_MAPS = {"mix": "the paper's φ (β = 5)", "commute": "lapwing's φ, commute"}
"""The rewards whose distance is shown above the curves."""
_LABELS = {curve.reward: curve.label for curve in COMPARED}
_ABOUT_SPEED = (
    "The first evaluation of the greedy policy, one every 500 steps, whose mean return over all starts is "
    f"within 2 of the optimum; the 10,000 random steps before are not counted. {ABOUT_NEVER}"
)
_ABOUT_AUDIT = (
    "The audit of each learned reward, means over the seeds, in the order in which the audit expects agents "
    "to learn: the smallest lookahead first, and among equals the largest contrast."
)
_ABOUT_ORDER = (
    "Kendall's τ between the measured steps and what the audit says before: its order, lookahead alone "
    "(equals count as ties, τ-b), and the rank correlation with true distance. 1 is full agreement. "
    "All: the cells of all mazes together."
)


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Every maze and reward; seed by seed, so that an early stop leaves whole figures."""
    return [
        maze_run("fig4", preset, maze, curve, seed)
        for seed in range(seeds)
        for maze in MAZES
        for curve in COMPARED
    ]


def draw(rows: list[Row], preset: Preset) -> Figure:
    """For each maze the distance to the goal in the embedding of seed 0, and the curves of all rewards."""
    columns = {}
    for maze in MAZES:
        cell = select(rows, environment=maze, metric="distance", seed=0)
        maps = {title: values_by_step(cell, reward=reward) for reward, title in _MAPS.items()}
        found = {title: values for title, values in maps.items() if values.size}
        columns[maze] = maze_column(task_of(maze), found, return_curves(rows, maze))
    return draw_columns(columns, measure="mean return", best="optimum")


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """How soon, how well, and what the audit said before."""
    lines = [*about_recipe(preset), "## Steps to within 2 of the optimum", ""]
    lines += [*speed_table(rows), "", "## The return after the last step", "", *final_returns(rows), ""]
    return [*lines, "## What the audit expects, and what came", "", *audit_tables(rows)]


def return_curves(rows: list[Row], maze: str) -> dict[str, Curve]:
    """The mean return over the steps, for each reward."""
    cells = {label: _returns(rows, maze, reward) for reward, label in _LABELS.items()}
    return curves_of(cells, return_range(maze))


def speed_table(rows: list[Row]) -> list[str]:
    """Steps to within 2 of the optimum, and how many times fewer than the best baseline's."""
    shaped = [curve.reward for curve in COMPARED if curve.learns_phi]
    return [_ABOUT_SPEED, "", *speed_tables({maze: speeds(rows, maze) for maze in MAZES}, _LABELS, shaped)]


def speeds(rows: list[Row], maze: str) -> dict[str, Speed]:
    """By reward: the steps to within 2 of the optimum."""
    count = partial(steps_to_optimum, optimum=task_of(maze).optimal_return)
    return speeds_of({reward: _returns(rows, maze, reward) for reward in _LABELS}, count)


def final_returns(rows: list[Row]) -> list[str]:
    """The mean return at the end, and the optimum."""
    lines: list[list[object]] = [["optimum", *(f"{task_of(maze).optimal_return:.3f}" for maze in MAZES)]]
    lines += [[label, *(_final(rows, maze, reward) for maze in MAZES)] for reward, label in _LABELS.items()]
    return markdown_table(["reward", *MAZES], lines)


def _returns(rows: list[Row], maze: str, reward: str) -> list[Row]:
    return select(rows, environment=maze, reward=reward, metric="return")


def _final(rows: list[Row], maze: str, reward: str) -> str | None:
    found = interval(last_evaluation(_returns(rows, maze, reward)), within=return_range(maze))
    if found is None:
        return None
    bounds = f" [{found.low:.2f}, {found.high:.2f}]" if found.count > 1 else " (1 seed)"
    mark = "" if found.mean >= task_of(maze).optimal_return - 0.5 else " (more than 0.5 below)"
    return f"{found.mean:.2f}{bounds}{mark}"


class AuditedReward(NamedTuple):
    """What the audit said of a reward in a maze, and what the agents then took."""

    label: str
    measures: list[float]
    """Rank correlation, local optima, share astray, greedy success."""
    lookahead: float
    contrast: float
    steps: float


_MEASURES = ("correlation", "local_optima", "astray", "greedy_success")


def audited_rewards(rows: list[Row], maze: str) -> list[AuditedReward]:
    """In the order in which the audit expects the rewards to be learned from."""
    audited = []
    for reward, speed in speeds(rows, maze).items():
        cell = select(rows, environment=maze, reward=reward)
        audited.append(
            AuditedReward(
                _LABELS[reward],
                [_mean(cell, name) for name in _MEASURES],
                # A reward that never leads there has no lookahead in the table.
                _mean(cell, "lookahead", float(LONGEST_LOOKAHEAD), of=len(speed.steps)),
                _mean(cell, "contrast"),
                speed.interval.mean,
            )
        )
    return sorted(audited, key=lambda one: (one.lookahead, -one.contrast))


def audit_tables(rows: list[Row]) -> list[str]:
    """For each maze the audit of each reward beside the measured steps; then Kendall's τ."""
    lines, summary, everything = [_ABOUT_AUDIT, ""], [], []
    header = ["reward", "correlation", "local optima", "astray", "greedy success", "lookahead", "contrast"]
    for maze in MAZES:
        audited = audited_rewards(rows, maze)
        cells = [
            [
                one.label,
                *(f"{value:.2f}" for value in one.measures),
                f"{one.lookahead:.1f}",
                f"{one.contrast:.2f}",
                f"{one.steps:,.0f}",
            ]
            for one in audited
        ]
        lines += [f"### {maze}", "", *markdown_table([*header, "steps measured"], cells), ""]
        summary.append([maze, *agreement(audited)])
        everything += audited
    everything.sort(key=lambda one: (one.lookahead, -one.contrast))
    summary.append(["all", *agreement(everything)])
    lines += ["### Does the order agree?", "", _ABOUT_ORDER, ""]
    return [*lines, *markdown_table(["maze", "the order", "lookahead", "rank correlation"], summary)]


def agreement(audited: list[AuditedReward]) -> list[str | None]:
    """Kendall's τ of the measured steps with the audit's order, with lookahead, and with the correlation."""
    steps = [one.steps for one in audited]
    order = range(len(audited))
    predictors = (order, [one.lookahead for one in audited], [-one.measures[0] for one in audited])
    if len(set(steps)) < 2:
        return [None] * len(predictors)
    taus: list[Any] = [kendalltau(list(predicted), steps) for predicted in predictors]
    return [f"{tau.statistic:.2f}" for tau in taus]


def _mean(cell: list[Row], metric: str, missing: float = 0.0, of: int = 0) -> float:
    """The mean of a metric; `missing` stands for what is not there of `of` values."""
    values = [row["value"] for row in cell if row["metric"] == metric]
    values += [missing] * (of - len(values))
    return float(np.mean(values)) if values else 0.0


FIG4 = Study("fig4", "DQN on shaped rewards in three mazes", runs, execute, draw, describe, NOTE)
