"""How soon agents come to the optimum, in tables and curves, and whether the audit knew."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau

from lapwing.envs.gridworld import GridWorld
from lapwing.figures.grid import Row
from lapwing.figures.shaping import BASELINES, COMPARED, MAZES
from lapwing.figures.tables import Interval, bootstrap, interval, markdown_table, select
from lapwing.mazes import read_maze
from lapwing.plots import Curve
from lapwing.runs.train_dqn import steps_to_optimum
from lapwing.shaping.audit import LONGEST_LOOKAHEAD
from lapwing.shaping.tasks import GridTask, grid_task

_ABOUT_SPEED = (
    "The first evaluation of the greedy policy, one every 500 steps, whose mean return over all starts is "
    "within 2 of the optimum; the 10,000 random steps before are not counted. A run that never gets there "
    "counts with all its steps; how many did is in brackets."
)
_ABOUT_RATIO = (
    "How many times fewer steps than the best of sparse, l2 and rawmix takes in the maze, by the means. "
    "In brackets whether they are fewer than each one's: yes or no if the 95 % interval of every difference, "
    "seed by seed, leaves out 0, else level."
)
_ABOUT_AUDIT = (
    "The audit of each reward as it was learned, means over the seeds, in the order in which the audit "
    "expects them to be learned: the smallest lookahead first, and among equals the largest contrast."
)
_ABOUT_ORDER = (
    "Kendall's τ between the measured steps and what the audit says before: its order, lookahead alone "
    "(equals count as ties, τ-b), and the plain rank correlation with true distance. 1 is full agreement. "
    "All: the cells of all mazes together."
)


@cache
def task_of(maze: str) -> GridTask:
    """The maze with its own goal."""
    return grid_task(GridWorld(read_maze(maze)))


def return_curves(rows: list[Row], maze: str) -> dict[str, Curve]:
    """The mean return over the steps, for each reward."""
    curves = {}
    for curve in COMPARED:
        cell = select(rows, environment=maze, reward=curve.reward, metric="return")
        steps = sorted({row["step"] for row in cell})
        found = {step: interval(cell, step=step) for step in steps}
        if found:
            curves[curve.label] = Curve.of(found)
    return curves


def goal_distances(rows: list[Row], maze: str, reward: str) -> np.ndarray | None:
    """The distance of each state to the goal in the embedding of seed 0."""
    cell = select(rows, environment=maze, reward=reward, metric="distance", seed=0)
    return np.array([row["value"] for row in sorted(cell, key=lambda row: row["step"])]) if cell else None


def steps_taken(rows: list[Row], maze: str, reward: str) -> dict[int, tuple[float, bool]]:
    """By seed: how many steps to within 2 of the optimum, and whether it got there at all."""
    taken = {}
    cell = select(rows, environment=maze, reward=reward, metric="return")
    for seed in sorted({row["seed"] for row in cell}):
        curve = sorted((row["step"], row["value"]) for row in cell if row["seed"] == seed)
        steps, returns = (np.array(column) for column in zip(*curve, strict=True))
        first = steps_to_optimum(steps, returns, task_of(maze).optimal_return)
        taken[seed] = (float(steps[-1] if first is None else first), first is not None)
    return taken


def speed_table(rows: list[Row]) -> list[str]:
    """Steps to within 2 of the optimum, and how many times fewer than the best baseline's."""
    steps = [
        [curve.label, *(words_of_steps(rows, maze, curve.reward) for maze in MAZES)] for curve in COMPARED
    ]
    ratios = [
        [curve.label, *(_ratio(rows, maze, curve.reward) for maze in MAZES)]
        for curve in COMPARED
        if curve.learns_phi
    ]
    lines = [_ABOUT_SPEED, "", *markdown_table(["reward", *MAZES], steps), ""]
    return [*lines, _ABOUT_RATIO, "", *markdown_table(["reward", *MAZES], ratios)]


def final_returns(rows: list[Row]) -> list[str]:
    """The mean return at the end, and the optimum."""
    lines: list[list[object]] = [["optimum", *(f"{task_of(maze).optimal_return:.3f}" for maze in MAZES)]]
    for curve in COMPARED:
        lines.append([curve.label, *(_final(rows, maze, curve.reward) for maze in MAZES)])
    return markdown_table(["reward", *MAZES], lines)


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
    for curve in COMPARED:
        taken = steps_taken(rows, maze, curve.reward)
        if not taken:
            continue
        cell = select(rows, environment=maze, reward=curve.reward)
        audited.append(
            AuditedReward(
                curve.label,
                [_mean(cell, name) for name in _MEASURES],
                # A reward that never leads there has no lookahead in the table.
                _mean(cell, "lookahead", float(LONGEST_LOOKAHEAD), of=len(taken)),
                _mean(cell, "contrast"),
                float(np.mean([steps for steps, _ in taken.values()])),
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


def _interval(rows: list[Row], maze: str, reward: str) -> Interval | None:
    taken = steps_taken(rows, maze, reward)
    return bootstrap([steps for steps, _ in taken.values()]) if taken else None


def words_of_steps(rows: list[Row], maze: str, reward: str) -> str | None:
    """Steps to within 2 of the optimum, with the interval and how many never got there."""
    found, taken = _interval(rows, maze, reward), steps_taken(rows, maze, reward)
    if found is None:
        return None
    late = sum(not reached for _, reached in taken.values())
    words = f"{found.mean:,.0f} [{found.low:,.0f}, {found.high:,.0f}]"
    return words + (f" ({late} of {len(taken)} never)" if late else "")


def _ratio(rows: list[Row], maze: str, reward: str) -> str | None:
    ours = _interval(rows, maze, reward)
    others = [found.mean for baseline in BASELINES if (found := _interval(rows, maze, baseline))]
    verdict = _sooner(rows, maze, reward)
    if ours is None or verdict is None:
        return None
    return f"{min(others) / ours.mean:.2f} ({verdict})"


def _sooner(rows: list[Row], maze: str, reward: str) -> str | None:
    """Whether the steps are fewer than each baseline's, judged by differences seed by seed."""
    ours, differences = steps_taken(rows, maze, reward), []
    for baseline in BASELINES:
        theirs = steps_taken(rows, maze, baseline)
        shared = sorted(ours.keys() & theirs.keys())
        if not shared:
            return None
        differences.append(bootstrap([ours[seed][0] - theirs[seed][0] for seed in shared]))
    if all(one.high < 0 for one in differences):
        return "yes"
    return "no" if any(one.low > 0 for one in differences) else "level"


def _final(rows: list[Row], maze: str, reward: str) -> str | None:
    cell = select(rows, environment=maze, reward=reward, metric="return")
    if not cell:
        return None
    last = max(row["step"] for row in cell)
    found = interval(cell, step=last)
    assert found is not None
    mark = "" if found.mean >= task_of(maze).optimal_return - 0.5 else " (more than 0.5 below)"
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]{mark}"
