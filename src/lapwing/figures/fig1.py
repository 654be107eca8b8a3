"""Figure 1: shaped rewards in TwoRoom, by distance in (x, y) and in the Laplacian embedding."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lapwing.figures.grid import Measure, Measured, Preset, Row, Run, Study, recipe
from lapwing.figures.maze_agents import AUDITED, phi_recipe, task_of
from lapwing.figures.tables import interval, markdown_table, select, values_by_step
from lapwing.plots import draw_goal_maps
from lapwing.progress import OnProgress
from lapwing.runs.learn import run as learn_into
from lapwing.settings.learn import PRESETS, LearnSettings, RewardForm
from lapwing.shaping.audit import Audit, audit
from lapwing.shaping.rewards import chosen_filter
from lapwing.shaping.tasks import default_scale, embedded_states
from lapwing.timing import stopwatch

MAZE = "TwoRoom"
_TITLES = {
    "l2": "distance in (x, y)",
    "laplacian": "distance in the paper's φ (β = 5)",
    "commute": "commute distance in lapwing's φ",
}
_GAMMA = 0.98


def runs(preset: Preset, seeds: int) -> list[Run]:
    """The rewards; the picture is of seed 0, the table of all."""
    paper = PRESETS["paper-shaping"]
    shared = ("fig1", MAZE, "reward", "position")
    runs = [Run(*shared, 0, 0, None, None, 0, preset, recipe(), "l2")]
    for seed in range(seeds):
        phi = recipe(seed=seed, **phi_recipe(preset, 5.0))
        runs.append(Run(*shared, paper.transitions, 20, 5.0, paper.lam, seed, preset, phi, "laplacian"))
        phi = recipe(seed=seed, transitions=paper.transitions)
        runs.append(Run(*shared, paper.transitions, 20, None, None, seed, preset, phi, "commute"))
    return runs


def execute(run: Run, folder: Path, on_progress: OnProgress) -> Measured:
    """Learn φ if it is asked for; keep the reward of every state, and its audit."""
    task = task_of(MAZE)
    with stopwatch() as watch:
        form: RewardForm = "l2"
        to = task.distances()
        if run.reward != "l2":
            settings, begun = LearnSettings.from_keywords(run.settings), (folder / "config.json").is_file()
            phi = learn_into(
                task.world.maze, settings, folder, resume=begun, on_progress=on_progress
            ).representation
            form, filter = "laplacian", chosen_filter(None, phi)
            embedded = embedded_states(task.world, "position", phi, filter)
            to = task.distances(embedded, default_scale(task, form, filter, embedded))
    return Measured(_measures(audit(task, form, to, gamma=_GAMMA)), watch.working)


def _measures(found: Audit) -> list[Measure]:
    numbers = found.as_json()
    measures = [Measure(name, float(numbers[name])) for name in AUDITED if numbers[name] is not None]
    measures += [Measure("reward", float(value), state) for state, value in enumerate(found.landing)]
    return measures + [Measure("optimum", 1.0, int(state)) for state in found.optima]


def draw(rows: list[Row], preset: Preset) -> Figure:
    """The rewards of seed 0 over the maze."""
    task, maps = task_of(MAZE), {}
    for reward, title in _TITLES.items():
        cell = select(rows, reward=reward, seed=0)
        values = values_by_step(cell, metric="reward")
        if values.size:
            optima = [row["step"] for row in select(cell, metric="optimum")]
            maps[title] = (task, values, np.array(optima, int))
    nothing = (task, np.zeros(task.world.n_states), np.zeros(0, int))
    return draw_goal_maps(maps or {"nothing yet": nothing}, label="reward")


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """Their audits."""
    header = ["reward", *(name.replace("_", " ") for name in AUDITED)]
    cells = [
        [title, *(interval(rows, reward=reward, metric=name) for name in AUDITED)]
        for reward, title in _TITLES.items()
    ]
    return [
        "The picture is of seed 0; crosses stand where every move looks worse. Without a mix: the reward is "
        "minus the distance.",
        "",
        *markdown_table(header, cells),
    ]


FIG1 = Study(
    "fig1",
    "Shaped rewards in TwoRoom",
    runs,
    execute,
    draw,
    describe,
    "lookahead is how many steps an agent must look ahead to come within 2 of the optimum",
)
