"""Figure 5: DDPG agents on shaped rewards, Point and Ant in arenas."""

import numpy as np
from matplotlib.figure import Figure

from lapwing.agents.evaluation import SUCCESS_RATE, steps_to_stay, steps_to_success
from lapwing.envs.arena import open_arena
from lapwing.figures.arena_agents import (
    PANELS,
    REWARDS,
    SHAPED,
    Panel,
    about_preset,
    arena_run,
    execute,
    is_compared,
)
from lapwing.figures.grid import Preset, Row, Run, Study
from lapwing.figures.statistics import below_each, mean_interval, paired_interval
from lapwing.figures.tables import (
    ABOUT_NEVER,
    BASELINES,
    RANGES,
    Count,
    Speed,
    by_seed,
    curves_of,
    interval,
    last_evaluation,
    markdown_table,
    select,
    speed_tables,
    speeds_of,
    values_by_step,
)
from lapwing.plots import Curve, arena_column, draw_reaching
from lapwing.runs.train_ddpg import GATE

NOTE = "success is the share of fixed starts from which the policy without noise reaches the goal"
ARENAS = tuple(panel.arena for panel in PANELS)
_ABOUT_GATE = (
    "The rank correlation (Spearman) of φ's distance to the goal with the length of the shortest path to it, "
    f"over 1,000 random states, beside that of l2. Passed if its interval is at {GATE} or above, and that of "
    "its difference from l2 (same states) above 0."
)
_ABOUT_SPEED = (
    f"The first evaluation at which the goal is reached from {100 * SUCCESS_RATE:.0f} % of the fixed starts; "
    f"the random steps before are not counted. {ABOUT_NEVER}"
)
_ABOUT_STAY = (
    "An early policy may succeed once and fail again. So also: the evaluation from which on all the others, "
    "to the last, are at 90 % or above."
)
_ABOUT_MEAN = (
    "The mean success over all evaluations of a run sees the whole curve: it is higher the sooner and the "
    "more steadily the goal is reached. In brackets whether it is above sparse, l2 and rawmix, by the 95 % "
    "t-intervals of the paired differences (same seed): yes if above each, no if below any, else level."
)


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Every arena and reward; seed by seed, so that an early stop leaves whole figures."""
    return [
        arena_run("fig5", preset, panel, reward, seed)
        for seed in range(seeds)
        for panel in PANELS
        for reward in REWARDS
        if is_compared(preset, panel, reward, seed)
    ]


def draw(rows: list[Row], preset: Preset) -> Figure:
    """For each arena φ's distance to the goal of seed 0, and the curves of all rewards."""
    columns = {}
    for panel in PANELS:
        curves = success_curves(rows, panel, preset)
        if curves:
            maps = goal_maps(rows, panel)
            columns[f"{panel.arena} ({preset})"] = arena_column(open_arena(panel.arena), maps, curves)
    return draw_reaching(columns)


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """Whether φ leads to the goal, how soon agents do, and how well at the end."""
    lines = [*about_preset(preset), "## Does φ's distance lead to the goal?", "", *gate_table(rows), ""]
    lines += ["## Steps to 90 % success", "", *speed_table(rows, preset), ""]
    lines += ["## Success over the whole run", "", *mean_table(rows, preset), ""]
    return [*lines, "## After the last step", "", *final_tables(rows, preset)]


def success_curves(rows: list[Row], panel: Panel, preset: Preset) -> dict[str, Curve]:
    """Success over the steps, for each reward."""
    successes = select(_of_panel(rows, panel, preset), metric="success")
    return curves_of({reward: select(successes, reward=reward) for reward in REWARDS})


def goal_maps(rows: list[Row], panel: Panel) -> dict[str, np.ndarray]:
    """φ's distance to the goal from each of the arena's points, of seed 0."""
    maps = {}
    cell = select(rows, environment=panel.arena, metric="map", seed=0, method="ddpg")
    for reward, sees in SHAPED.items():
        values = values_by_step(cell, reward=reward)
        if values.size:
            maps[f"φ of {sees}, {panel.filter}"] = values
    return maps


def gate_table(rows: list[Row]) -> list[str]:
    """The rank correlations of every arena and φ."""
    lines = []
    for panel in PANELS:
        for reward, sees in SHAPED.items():
            cell = select(rows, environment=panel.arena, reward=reward, method="ddpg")
            found = [interval(cell, metric=metric) for metric in ("gate", "gate_l2")]
            lines.append([panel.arena, sees, panel.filter, *found, _passed(cell)])
    return [_ABOUT_GATE, "", *markdown_table(["arena", "φ of", "filter", "φ", "l2", "passed"], lines)]


def _passed(cell: list[Row]) -> str | None:
    phi, l2 = (by_seed(cell, metric=metric) for metric in ("gate", "gate_l2"))
    above = paired_interval(phi, l2)
    if above is None:
        return None
    if above.count == 1:
        return "1 seed"
    return "yes" if mean_interval(list(phi.values())).low >= GATE and above.low > 0 else "no"


def speed_table(rows: list[Row], preset: Preset) -> list[str]:
    """Steps to 90 % success, first and to stay, and how many times fewer than the best baseline's."""
    lines = []
    for about, count in ((_ABOUT_SPEED, steps_to_success), (_ABOUT_STAY, steps_to_stay)):
        found = {panel.arena: speeds(rows, panel, preset, count) for panel in PANELS}
        lines += [about, "", *speed_tables(found, {reward: reward for reward in REWARDS}, tuple(SHAPED)), ""]
    return lines[:-1]


def speeds(
    rows: list[Row], panel: Panel, preset: Preset, count: Count = steps_to_success
) -> dict[str, Speed]:
    """By reward: the steps to 90 % success."""
    successes = select(_of_panel(rows, panel, preset), metric="success")
    return speeds_of({reward: select(successes, reward=reward) for reward in REWARDS}, count)


def mean_table(rows: list[Row], preset: Preset) -> list[str]:
    """The mean success over all evaluations of a run, and whether it is above each baseline's."""
    means = [_means(select(_of_panel(rows, panel, preset), metric="success")) for panel in PANELS]
    lines = [[reward, *(_mean(found, reward) for found in means)] for reward in REWARDS]
    return [_ABOUT_MEAN, "", *markdown_table(["reward", *ARENAS], lines)]


def _means(successes: list[Row]) -> dict[str, dict[int, float]]:
    """By reward and seed: the mean success over all evaluations."""
    means: dict[str, dict[int, float]] = {}
    for reward, seed in dict.fromkeys((row["reward"], row["seed"]) for row in successes):
        curve = values_by_step(successes, reward=reward, seed=seed)
        means.setdefault(reward, {})[seed] = float(curve.mean())
    return means


def _mean(means: dict[str, dict[int, float]], reward: str) -> str | None:
    if reward not in means:
        return None
    found = mean_interval(list(means[reward].values()), within=RANGES["success"])
    negated = {name: {seed: -value for seed, value in one.items()} for name, one in means.items()}
    others = [negated[baseline] for baseline in BASELINES if baseline in negated]
    verdict = below_each(negated[reward], others) if reward in SHAPED and found.count > 1 else None
    return f"{found}" + (f" ({verdict})" if verdict else "")


def final_tables(rows: list[Row], preset: Preset) -> list[str]:
    """Success and the distance that is left, at the last evaluation."""
    lines: list[str] = []
    for metric, words in (("success", "Success"), ("distance", "The mean distance left to the goal")):
        table = []
        for reward in REWARDS:
            cells = (select(_of_panel(rows, panel, preset), reward=reward, metric=metric) for panel in PANELS)
            table.append([reward, *(interval(last_evaluation(cell)) for cell in cells)])
        lines += [f"{words}:", "", *markdown_table(["reward", *ARENAS], table), ""]
    return lines[:-1]


def _of_panel(rows: list[Row], panel: Panel, preset: Preset) -> list[Row]:
    return select(rows, environment=panel.arena, preset=preset, method="ddpg")


FIG5 = Study("fig5", "DDPG on shaped rewards in arenas", runs, execute, draw, describe, NOTE)
