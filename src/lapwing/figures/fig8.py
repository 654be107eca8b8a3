"""Figure 8: φ learned while the agent learns, against φ learned before."""

import dataclasses
from pathlib import Path

from matplotlib.figure import Figure

from lapwing.figures import reaching, shaping
from lapwing.figures.grid import Measured, Row, Run, recipe
from lapwing.figures.learning_speed import task_of
from lapwing.figures.learning_speed import words_of_steps as steps_to_optimum
from lapwing.figures.reaching_speed import in_words as steps_to_success
from lapwing.figures.study import Preset, Study
from lapwing.figures.tables import Interval, interval, markdown_table, select
from lapwing.plots import Curve, OnlinePanel, draw_online
from lapwing.progress import OnProgress

NOTE = "the reward is mix; λ is annealed to 0.95 where φ is learned online"
ARENA, MAZE = reaching.PANELS[0], "TwoRoom"
MIX = next(curve for curve in shaping.COMPARED if curve.reward == "mix")
LABELS = {"": "pretrained", " online": "online"}
"""How methods end, and their curves are called."""
_ABOUT = (
    "The last evaluation, and how soon it was good: 90 % success in the arena, within 2 of the optimal "
    "return in the maze. Steps that pretraining takes are not counted. Alike: whether the two intervals of "
    "the last evaluation overlap."
)


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Arena and maze, pretrained and online; the pretrained runs are those of figures 4 and 5."""
    found = []
    for seed in range(seeds):
        for online in (False, True):
            found.append(reaching.reaching_run("fig8", preset, ARENA, "mix", seed, online=online))
            run = shaping.shaping_run("fig8", preset, MAZE, MIX, seed)
            found.append(_online(run) if online else run)
    return found


def _online(run: Run) -> Run:
    """The same agent with φ learned beside it, by the same recipe; it needs no data beforehand."""
    agent = run.settings["agent"] | {"online": True}
    return dataclasses.replace(run, method="dqn online", n=0, recipe=recipe(agent=agent, phi=None))


def execute(run: Run, folder: Path, on_progress: OnProgress) -> Measured:
    """Train the agent of a run, in its arena or maze."""
    study = reaching if run.method.startswith("ddpg") else shaping
    return study.execute(run, folder, on_progress)


def draw(rows: list[Row], preset: Preset) -> Figure:
    """Success in the arena and the mean return in the maze, over the steps."""
    panels = {
        f"{ARENA.arena} ({preset})": OnlinePanel(_curves(rows, "ddpg"), "success", 1.0),
        f"{MAZE} ({preset})": OnlinePanel(_curves(rows, "dqn"), "mean return", task_of(MAZE).optimal_return),
    }
    return draw_online(panels)


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """How good at the end, how soon, and whether the two are alike."""
    lines = []
    for method, steps in (("ddpg", _steps_in_arena), ("dqn", _steps_in_maze)):
        last = {ending: _last(rows, method + ending) for ending in LABELS}
        for ending, label in LABELS.items():
            cells = select(rows, method=method + ending)
            target = ARENA.arena if method == "ddpg" else MAZE
            alike = _alike(*last.values()) if ending else None
            lines.append([target, label, last[ending], steps(cells), alike])
    return [_ABOUT, "", *markdown_table(["target", "φ", "last evaluation", "steps", "alike"], lines)]


def _metric(method: str) -> str:
    return "success" if method.startswith("ddpg") else "return"


def _curves(rows: list[Row], method: str) -> dict[str, Curve]:
    curves = {}
    for ending, label in LABELS.items():
        cell = select(rows, method=method + ending, metric=_metric(method))
        steps = sorted({row["step"] for row in cell})
        if steps:
            curves[label] = Curve.of({step: interval(cell, step=step) for step in steps})
    return curves


def _last(rows: list[Row], method: str) -> Interval | None:
    cell = select(rows, method=method, metric=_metric(method))
    return interval(cell, step=max(row["step"] for row in cell)) if cell else None


def _alike(first: Interval | None, second: Interval | None) -> str | None:
    if first is None or second is None:
        return None
    return "yes" if first.low <= second.high and second.low <= first.high else "no"


def _steps_in_arena(cells: list[Row]) -> str | None:
    return steps_to_success(cells, "mix")


def _steps_in_maze(cells: list[Row]) -> str | None:
    return steps_to_optimum(cells, MAZE, "mix")


STUDY = Study(
    "fig8", "φ learned online, against pretrained", runs, execute, draw, describe, NOTE, ("fig4", "fig5")
)
