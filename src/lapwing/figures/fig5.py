"""Figure 5: DDPG agents on shaped rewards, Point and Ant in arenas."""

from matplotlib.figure import Figure

from lapwing.envs.arena import open_arena
from lapwing.figures.grid import Row, Run
from lapwing.figures.reaching import PANELS, about_preset, execute, reaching_run
from lapwing.figures.reaching_speed import (
    final_tables,
    gate_table,
    goal_maps,
    mean_table,
    speed_table,
    success_curves,
)
from lapwing.figures.study import Preset, Study
from lapwing.plots import ReachingPanel, draw_reaching

NOTE = "success is the share of fixed starts from which the policy without noise reaches the goal"


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Every arena and reward; seed by seed, so that an early stop leaves whole figures."""
    return [
        reaching_run("fig5", preset, panel, reward, seed)
        for seed in range(seeds)
        for panel in PANELS
        for reward in panel.rewards
    ]


def draw(rows: list[Row], preset: Preset) -> Figure:
    """For each arena φ's distance to the goal of seed 0, and the curves of all rewards."""
    panels = {}
    for panel in PANELS:
        curves = success_curves(rows, panel, preset)
        if curves:
            maps = goal_maps(rows, panel)
            panels[f"{panel.arena} ({preset})"] = ReachingPanel(open_arena(panel.arena), maps, curves)
    return draw_reaching(panels)


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """Whether φ leads to the goal, how soon agents do, and how well at the end."""
    lines = [*about_preset(preset), "## Does φ's distance lead to the goal?", "", *gate_table(rows), ""]
    lines += ["## Steps to 90 % success", "", *speed_table(rows, preset), ""]
    lines += ["## Success over the whole run", "", *mean_table(rows, preset), ""]
    return [*lines, "## After the last step", "", *final_tables(rows, preset)]


STUDY = Study("fig5", "DDPG on shaped rewards in arenas", runs, execute, draw, describe, NOTE)
