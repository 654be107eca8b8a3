"""How soon agents reach the goal from 90 % of the starts, in tables and curves."""

from collections.abc import Callable

import numpy as np

from lapwing.agents.evaluation import SUCCESS_RATE, steps_to_stay, steps_to_success
from lapwing.figures.grid import Row
from lapwing.figures.reaching import PANELS, REWARDS, SHAPED, Panel
from lapwing.figures.shaping import BASELINES
from lapwing.figures.study import Preset
from lapwing.figures.tables import Interval, bootstrap, interval, markdown_table, select
from lapwing.plots import Curve
from lapwing.runs.train_ddpg import GATE

Count = Callable[[np.ndarray, np.ndarray], int | None]
"""From steps and success at each evaluation to how many steps it took."""
_ABOUT_GATE = (
    "The rank correlation (Spearman) of φ's distance to the goal with the length of the shortest way there, "
    f"over 1,000 random states, beside that of l2. Wanted before any agent is trained: at least {GATE}, and "
    "above l2."
)
_ABOUT_SPEED = (
    f"The first evaluation at which the goal is reached from {100 * SUCCESS_RATE:.0f} % of the fixed starts; "
    "the random steps before are not counted. A run that never gets there counts with all its steps; how "
    "many did is in brackets. A cell without an interval has one seed."
)
_ABOUT_STAY = (
    "Policies come and go, most of all early. So also: the evaluation from which on all the others, to the "
    "last, are at 90 % or above."
)
_ABOUT_MEAN = (
    "Neither of these sees the whole curve. Success in the mean over all evaluations of a run does: it is "
    "higher the sooner and the more steadily the goal is reached. In brackets whether it is above each of "
    "sparse, l2 and rawmix, judged in the same way."
)
_ABOUT_RATIO = (
    "How many times fewer steps than the best of sparse, l2 and rawmix takes, by the means. In brackets "
    "whether they are fewer than each one's: yes or no if the 95 % interval of every difference, seed by "
    "seed, leaves out 0, else level."
)


def of_panel(rows: list[Row], panel: Panel, preset: Preset, method: str = "ddpg") -> list[Row]:
    """The rows of an arena."""
    return select(rows, environment=panel.arena, preset=preset, method=method)


def success_curves(rows: list[Row], panel: Panel, preset: Preset) -> dict[str, Curve]:
    """Success over the steps, for each reward."""
    curves = {}
    for reward in panel.rewards:
        found = success_over_steps(of_panel(rows, panel, preset), reward)
        if found:
            curves[reward] = Curve.of(found)
    return curves


def success_over_steps(cells: list[Row], reward: str) -> dict[int, Interval]:
    """The interval over the seeds at each evaluation."""
    cell = select(cells, reward=reward, metric="success")
    steps = sorted({row["step"] for row in cell})
    return {step: found for step in steps if (found := interval(cell, step=step))}


def goal_maps(rows: list[Row], panel: Panel) -> dict[str, np.ndarray]:
    """φ's distance to the goal from each of the arena's points, of seed 0."""
    maps = {}
    for reward, sees in (("mix", "(x, y)"), ("fullmix", "the whole state")):
        cell = select(rows, environment=panel.arena, reward=reward, metric="map", seed=0, method="ddpg")
        if cell:
            ordered = sorted(cell, key=lambda row: row["step"])
            maps[f"φ of {sees}, {panel.filter}"] = np.array([row["value"] for row in ordered])
    return maps


def steps_taken(
    cells: list[Row], reward: str, counted: Count = steps_to_success
) -> dict[int, tuple[float, bool]]:
    """By seed: how many steps to 90 % success, and whether it got there at all."""
    taken = {}
    cell = select(cells, reward=reward, metric="success")
    for seed in sorted({row["seed"] for row in cell}):
        curve = sorted((row["step"], row["value"]) for row in cell if row["seed"] == seed)
        steps, values = (np.array(column) for column in zip(*curve, strict=True))
        first = counted(steps, values)
        taken[seed] = (float(steps[-1] if first is None else first), first is not None)
    return taken


def gate_table(rows: list[Row]) -> list[str]:
    """The rank correlations of every arena and φ."""
    lines = []
    for panel in PANELS:
        for reward in SHAPED:
            if reward not in panel.rewards:
                continue
            cell = select(rows, environment=panel.arena, reward=reward, method="ddpg")
            sees = "the whole state" if reward == "fullmix" else "(x, y)"
            found, l2 = interval(cell, metric="gate"), interval(cell, metric="gate_l2")
            passed = None
            if found and l2:
                passed = "yes" if found.low >= GATE and found.low > l2.high else "no"
            lines.append([panel.arena, sees, panel.filter, found, l2, passed])
    return [_ABOUT_GATE, "", *markdown_table(["arena", "φ of", "filter", "φ", "l2", "passed"], lines)]


def speed_table(rows: list[Row], preset: Preset) -> list[str]:
    """Steps to 90 % success, and how many times fewer than the best baseline's."""
    arenas = [panel.arena for panel in PANELS]
    cells = {panel.arena: of_panel(rows, panel, preset) for panel in PANELS}
    lines = []
    for about, counted in ((_ABOUT_SPEED, steps_to_success), (_ABOUT_STAY, steps_to_stay)):
        steps = [
            [reward, *(in_words(cells[arena], reward, counted) for arena in arenas)] for reward in REWARDS
        ]
        ratios = [[reward, *(_ratio(cells[arena], reward, counted) for arena in arenas)] for reward in SHAPED]
        lines += [about, "", *markdown_table(["reward", *arenas], steps), ""]
        lines += [_ABOUT_RATIO, "", *markdown_table(["reward", *arenas], ratios), ""]
    return lines[:-1]


def mean_table(rows: list[Row], preset: Preset) -> list[str]:
    """Success in the mean over all evaluations of a run, and whether it is above each baseline's."""
    lines = []
    for reward in REWARDS:
        line: list[object] = [reward]
        for panel in PANELS:
            cells = of_panel(rows, panel, preset)
            found = _means(cells, reward)
            others = [means for baseline in BASELINES if (means := _means(cells, baseline))]
            verdict = f" ({_above(found, others)})" if reward in SHAPED and others and len(found) > 1 else ""
            line.append(f"{bootstrap(list(found.values()))}{verdict}" if found else None)
        lines.append(line)
    return [_ABOUT_MEAN, "", *markdown_table(["reward", *(panel.arena for panel in PANELS)], lines)]


def _means(cells: list[Row], reward: str) -> dict[int, float]:
    """By seed: success in the mean over all evaluations."""
    cell = select(cells, reward=reward, metric="success")
    seeds = sorted({row["seed"] for row in cell})
    return {seed: float(np.mean([row["value"] for row in cell if row["seed"] == seed])) for seed in seeds}


def _above(ours: dict[int, float], theirs: list[dict[int, float]]) -> str:
    """Whether it is more than each baseline's, judged as in `_sooner`, with the sign turned round."""
    turned = [{seed: (-value, True) for seed, value in means.items()} for means in (ours, *theirs)]
    return _sooner(turned[0], turned[1:])


def final_tables(rows: list[Row], preset: Preset) -> list[str]:
    """Success and the way that is left, at the last evaluation."""
    lines: list[str] = []
    for metric, words in (("success", "Success"), ("distance", "The way left to the goal, in the mean")):
        table = []
        for reward in REWARDS:
            found = [_final(of_panel(rows, panel, preset), reward, metric) for panel in PANELS]
            table.append([reward, *found])
        lines += [f"{words}:", "", *markdown_table(["reward", *(panel.arena for panel in PANELS)], table), ""]
    return lines[:-1]


def in_words(cells: list[Row], reward: str, counted: Count = steps_to_success) -> str | None:
    """Steps to 90 % success, with the interval and how many never got there."""
    taken = steps_taken(cells, reward, counted)
    if not taken:
        return None
    found = bootstrap([steps for steps, _ in taken.values()])
    late = sum(not reached for _, reached in taken.values())
    words = f"{found.mean:,.0f}"
    words += f" [{found.low:,.0f}, {found.high:,.0f}]" if len(taken) > 1 else ""
    return words + (f" ({late} of {len(taken)} never)" if late else "")


def _ratio(cells: list[Row], reward: str, counted: Count) -> str | None:
    ours = steps_taken(cells, reward, counted)
    theirs = [taken for baseline in BASELINES if (taken := steps_taken(cells, baseline, counted))]
    if not ours or not theirs:
        return None
    means = [np.mean([steps for steps, _ in taken.values()]) for taken in (ours, *theirs)]
    return f"{min(means[1:]) / means[0]:.2f} ({_sooner(ours, theirs)})"


def _sooner(ours: dict[int, tuple[float, bool]], theirs: list[dict[int, tuple[float, bool]]]) -> str:
    """Whether the steps are fewer than each baseline's, judged by differences seed by seed."""
    shared = [sorted(ours.keys() & taken.keys()) for taken in theirs]
    if min(map(len, shared)) < 2:
        return "1 seed"
    differences = [
        bootstrap([ours[seed][0] - taken[seed][0] for seed in seeds])
        for seeds, taken in zip(shared, theirs, strict=True)
    ]
    if all(one.high < 0 for one in differences):
        return "yes"
    return "no" if any(one.low > 0 for one in differences) else "level"


def _final(cells: list[Row], reward: str, metric: str) -> Interval | None:
    cell = select(cells, reward=reward, metric=metric)
    return interval(cell, step=max(row["step"] for row in cell)) if cell else None
