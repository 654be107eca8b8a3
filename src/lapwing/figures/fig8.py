"""Figure 8: φ learned together with the agent, compared with a pretrained φ."""

import dataclasses
import itertools
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from lapwing.agents.evaluation import steps_to_success
from lapwing.figures import arena_agents, maze_agents
from lapwing.figures.grid import Measured, Preset, Row, Run, Study, recipe
from lapwing.figures.statistics import Range, equivalence, paired_interval
from lapwing.figures.tables import (
    ABOUT_NEVER,
    RANGES,
    Count,
    by_seed,
    curves_of,
    interval,
    last_evaluation,
    markdown_table,
    select,
    speed_of,
)
from lapwing.plots import Curve, OnlinePanel, draw_online
from lapwing.progress import OnProgress
from lapwing.runs.train_dqn import steps_to_optimum

NOTE = "the reward is mix; λ is annealed to 0.95 where φ is learned online"
MAZE = "TwoRoom"
MIX = next(curve for curve in maze_agents.COMPARED if curve.reward == "mix")
LABELS = {"": "pretrained", " online": "online"}
"""How methods end, and their curves are called."""


class Target(NamedTuple):
    """Where agents are compared, by what, and which differences do not matter."""

    name: str
    method: str
    metric: str
    within: Range
    """From the worst to the best."""
    margin: float
    """Of the metric."""
    goal: str
    steps_to_goal: Count
    steps_margin: float
    """Of the steps to the goal: those between two evaluations."""


_ABOUT = (
    "The last evaluation, and the steps to 90 % success in an arena, to within 2 of the optimal return in "
    f"the maze. Steps that pretraining takes are not counted. {ABOUT_NEVER}"
)
_ABOUT_EQUIVALENCE = (
    "The mean paired difference (same seed) with its 95 % t-interval. Equivalent: two one-sided paired "
    "t-tests at 5 % (TOST) say that it is smaller than the margin. Else different if the interval leaves out "
    "0, else undecided. The margins: one start in twenty, one step of return, one evaluation."
)


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Arenas and maze, pretrained and online; the pretrained runs are those of figures 4 and 5."""
    found = []
    for seed, online in itertools.product(range(seeds), (False, True)):
        for panel in _panels(preset, seed):
            found.append(arena_agents.arena_run("fig8", preset, panel, "mix", seed, online=online))
        run = maze_agents.maze_run("fig8", preset, MAZE, MIX, seed)
        found.append(_online(run) if online else run)
    return found


def _panels(preset: Preset, seed: int = 0) -> list[arena_agents.Panel]:
    """The arenas with an online run: pretrained alone would be compared with nothing."""
    return [p for p in arena_agents.PANELS if arena_agents.is_compared(preset, p, "mix", seed, online=True)]


def _online(run: Run) -> Run:
    """The same agent with φ learned online, by the same recipe; it needs no data beforehand."""
    agent = run.settings["agent"] | {"online": True}
    return dataclasses.replace(run, method="dqn online", n=0, recipe=recipe(agent=agent, phi=None))


def execute(run: Run, folder: Path, on_progress: OnProgress) -> Measured:
    """Train the agent of a run, in its arena or maze."""
    study = arena_agents if run.method.startswith("ddpg") else maze_agents
    return study.execute(run, folder, on_progress)


def _targets(preset: Preset) -> list[Target]:
    optimum = maze_agents.task_of(MAZE).optimal_return
    maze = Target(
        MAZE,
        "dqn",
        "return",
        within=maze_agents.return_range(MAZE),
        margin=1.0,
        goal="within 2 of the optimum",
        steps_to_goal=partial(steps_to_optimum, optimum=optimum),
        steps_margin=float(maze_agents.EVALUATE_EVERY),
    )
    return [*map(_arena_target, _panels(preset)), maze]


def _arena_target(panel: arena_agents.Panel) -> Target:
    return Target(
        panel.arena,
        "ddpg",
        "success",
        within=RANGES["success"],
        margin=0.05,
        goal="90 % success",
        steps_to_goal=steps_to_success,
        steps_margin=float(panel.evaluate_every),
    )


def draw(rows: list[Row], preset: Preset) -> Figure:
    """Success in the arenas and the mean return in the maze, over the steps, where any has been run."""
    panels = {
        f"{target.name} ({preset})": OnlinePanel(_curves(rows, target), target.metric, target.within[1])
        for target in _targets(preset)
    }
    return draw_online({title: panel for title, panel in panels.items() if panel.curves} or panels)


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """How good at the end, how soon, and whether online and pretrained are equivalent."""
    measured, compared = [], []
    for target in _targets(preset):
        cells = {ending: _cell(rows, target, ending) for ending in LABELS}
        speeds = {ending: speed_of(cell, target.steps_to_goal) for ending, cell in cells.items()}
        for ending, label in LABELS.items():
            last = interval(last_evaluation(cells[ending]), within=target.within)
            measured.append([target.name, label, last, speeds[ending]])
        before, online = (by_seed(last_evaluation(cell)) for cell in cells.values())
        compared.append([target.name, f"last {target.metric}", *_compared(online, before, target.margin)])
        if any(speed and speed.never < len(speed.steps) for speed in speeds.values()):
            before, online = (speed.steps if speed else {} for speed in speeds.values())
        else:
            before, online = {}, {}  # runs that never get there are not as fast as each other
        compared.append(
            [target.name, f"steps to {target.goal}", *_compared(online, before, target.steps_margin)]
        )
    lines = [_ABOUT, "", *markdown_table(["target", "φ", "last evaluation", "steps"], measured), ""]
    header = ["target", "measure", "online - pretrained", "margin", "verdict"]
    return [*lines, _ABOUT_EQUIVALENCE, "", *markdown_table(header, compared)]


def _cell(rows: list[Row], target: Target, ending: str) -> list[Row]:
    return select(rows, environment=target.name, method=target.method + ending, metric=target.metric)


def _curves(rows: list[Row], target: Target) -> dict[str, Curve]:
    cells = {label: _cell(rows, target, ending) for ending, label in LABELS.items()}
    return curves_of(cells, target.within)


def _compared(online: dict[int, float], before: dict[int, float], margin: float) -> list[object]:
    """The difference, the margin and the verdict."""
    found = paired_interval(online, before)
    return [found, f"{margin:,g}", found and equivalence(online, before, margin)]


FIG8 = Study(
    "fig8", "φ learned online, against pretrained", runs, execute, draw, describe, NOTE, ("fig4", "fig5")
)
