"""Figure 4: DQN agents on shaped rewards in three mazes."""

from matplotlib.figure import Figure

from lapwing.figures.grid import Row, Run
from lapwing.figures.learning_speed import (
    audit_tables,
    final_returns,
    goal_distances,
    return_curves,
    speed_table,
    task_of,
)
from lapwing.figures.shaping import (
    COMPARED,
    MAZES,
    about_recipe,
    execute,
    shaping_run,
)
from lapwing.figures.study import Preset, Study
from lapwing.plots import ShapingPanel, draw_shaping

NOTE = "returns count -1 for each step that does not end at the goal"
_MAPS = {"mix": "the paper's φ (β = 5)", "commute": "lapwing's φ, commute"}
"""The rewards whose distance is shown above the curves."""


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Every maze and reward; seed by seed, so that an early stop leaves whole figures."""
    return [
        shaping_run("fig4", preset, maze, curve, seed)
        for seed in range(seeds)
        for maze in MAZES
        for curve in COMPARED
    ]


def draw(rows: list[Row], preset: Preset) -> Figure:
    """For each maze the distance to the goal in the embedding of seed 0, and the curves of all rewards."""
    panels = {}
    for maze in MAZES:
        maps = {title: goal_distances(rows, maze, reward) for reward, title in _MAPS.items()}
        found = {title: values for title, values in maps.items() if values is not None}
        panels[maze] = ShapingPanel(task_of(maze), found, return_curves(rows, maze))
    return draw_shaping(panels)


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """How soon, how well, and what the audit said before."""
    lines = [*about_recipe(preset), "## Steps to within 2 of the optimum", ""]
    lines += [*speed_table(rows), "", "## The return after the last step", "", *final_returns(rows), ""]
    return [*lines, "## What the audit expects, and what came", "", *audit_tables(rows)]


STUDY = Study("fig4", "DQN on shaped rewards in three mazes", runs, execute, draw, describe, NOTE)
