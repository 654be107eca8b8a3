"""Does φ of the whole state show the Ant its next step? Changes of φ's distance against those of the path.

The representations of figure 5's rewards `mix` (φ of position) and `fullmix` (φ of the whole state), preset
quick, seed 0, along random walks in AntUMaze.
"""

import numpy as np

from benchmarks.rows import Row
from lapwing.envs.arena import open_arena
from lapwing.envs.simulator import Simulator, goal_observation
from lapwing.figures.arena_agents import SHAPED
from lapwing.runs.train_ddpg import train_control
from lapwing.settings.agents import ControlSettings

MAZE, FILTER, ROBOTS, STEPS = "AntUMaze", "commute", 64, 100
SPANS = (1, 5, 20)
FAR = 2.0
"""Robots nearer to the goal than this are left out: there is little left to change."""


def measure() -> list[Row]:
    """Correlations of levels, and of changes over spans of steps."""
    arena = open_arena(MAZE, fast=True)
    seen = _random_walks(Simulator(arena))
    paths = arena.path_lengths(seen[..., :2].reshape(-1, 2).astype(float)).reshape(seen.shape[:2])
    rows = []
    for reward, sees in SHAPED.items():
        settings = ControlSettings.from_keywords({"reward": reward, "filter": FILTER, "steps": 16, "seed": 0})
        phi = train_control(open_arena(MAZE), settings, None).representation
        assert phi is not None
        whole = reward == "fullmix"
        places = seen if whole else seen[..., :2]
        distances = phi.distance(
            places.reshape(-1, places.shape[-1]), goal_observation(arena, whole=whole), FILTER
        ).reshape(paths.shape)
        rows.append(Row(f"φ of {sees}: correlation with the path's length", _correlation(paths, distances)))
        rows += [
            Row(f"… of changes, steps from one to the other: {span}", _of_changes(paths, distances, span))
            for span in SPANS
        ]
    return rows


def _random_walks(simulator: Simulator) -> np.ndarray:
    """Observations, (steps, robots, numbers)."""
    generator = np.random.default_rng(1)
    rows = simulator.at_rest(simulator.arena.random_positions(ROBOTS, generator), generator)
    seen = []
    for _ in range(STEPS):
        seen.append(simulator.observe(rows))
        rows = simulator.step(rows, generator.uniform(-1, 1, (ROBOTS, simulator.n_actions)))
    return np.stack(seen)


def _of_changes(paths: np.ndarray, distances: np.ndarray, span: int) -> float:
    far = paths[:-span] > FAR
    return _correlation(*((values[span:] - values[:-span])[far] for values in (paths, distances)))


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])
