"""Do 300 steps hold the Ant back? Figure 5's agent of AntHookMaze in longer episodes too (the reward mix).

The preset quick, seed 0, as `lapwing reproduce fig5` trains it; then the same policy from the same starts for
300, 600 and 900 steps.
"""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.rows import Row
from lapwing.agents.evaluation import EvaluationEpisodes, evaluate_policy
from lapwing.envs.arena import Arena, open_arena
from lapwing.envs.simulator import Simulator
from lapwing.figures.arena_agents import PANELS, arena_run
from lapwing.runs.train_ddpg import train_control
from lapwing.settings.agents import ControlSettings

MAZE, REWARD, NEAR = "AntHookMaze", "mix", 15.0
"""Every start of AntUMaze is nearer to its goal than this."""
STEPS = (300, 600, 900)


def measure() -> list[Row]:
    """Success by the length of episodes, and by how far the start is."""
    panel = next(panel for panel in PANELS if panel.arena == MAZE)
    run, arena = arena_run("fig5", "quick", panel, REWARD, 0), open_arena(MAZE)
    settings = ControlSettings.from_keywords(run.settings["agent"])
    with tempfile.TemporaryDirectory() as folder:
        outcome = train_control(arena, settings, Path(folder) / "run")
    simulator = Simulator(outcome.arena)
    episodes = {steps: evaluate_policy(simulator, outcome.agent.act, steps=steps) for steps in STEPS}
    return [_row(arena, steps, found) for steps, found in episodes.items()]


def _row(arena: Arena, steps: int, found: EvaluationEpisodes) -> Row:
    starts = found.paths[0]
    far = arena.path_lengths(starts) - arena.goal_radius > NEAR
    walked = np.linalg.norm(np.diff(found.paths[::10], axis=0), axis=-1).sum(axis=0)
    note = (
        f"{found.reached[~far].mean():.2f} of the {np.sum(~far)} starts within {NEAR:g} units of the goal, "
        f"{found.reached[far].mean():.2f} of the {np.sum(far)} beyond; "
        f"half of them walk more than {np.median(walked):.0f}"
    )
    return Row(f"{MAZE}, {REWARD}, episodes of {steps} steps: success", found.reached.mean(), note=note)
