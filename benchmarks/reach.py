"""Any goal by `lapwing reach`: from random data, fifty random goals each; and what one action costs.

`random:NAME` collects random steps in an environment and counts the goals that are reached within an episode.
`act` is the CPU time of one call, for one state and for each state of a batch, with φ in every call; the goal
is the same in all, as it is in an episode.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

import lapwing
from benchmarks.rows import Row
from lapwing.data.ogbench import OGBenchData
from lapwing.data.source import read_source
from lapwing.runs.reach import run_reach
from lapwing.settings.reach import ReachSettings


class Arena(NamedTuple):
    """How much is collected, and which share of goals is wanted."""

    transitions: int
    dim: int
    share: float | None = None


ARENAS = {
    "PointUMaze": Arena(300_000, 30, 0.95),
    "PointHookMaze": Arena(300_000, 30, 0.95),
    "PlaneHardMaze": Arena(1_000_000, 50, 0.95),
    "AntUMaze": Arena(100_000, 20),
    "AntHookMaze": Arena(100_000, 20),
}
"""Random torques need not take the Ant anywhere, so nothing is promised of it."""
CALLS, BATCH, BATCHES = 2_000, 256, 100
MILLISECONDS = 1.0


def measure(part: str, name: str) -> list[Row]:
    return _act(name) if part == "act" else _random_goals(name)


def _random_goals(name: str) -> list[Row]:
    arena = ARENAS[name]
    settings = ReachSettings(dim=arena.dim, transitions=arena.transitions)
    with TemporaryDirectory() as folder:
        outcome = run_reach(read_source(name), settings, Path(folder) / "run")
    result, episodes = outcome.result, outcome.episodes
    assert episodes is not None
    joined = np.bincount(outcome.reacher.graph.parts).max()
    note = (
        f"d = {arena.dim}; {np.sum(episodes.steps == 0)} begin at their goal; {result['mean_steps']:.0f} "
        f"steps in the mean; {joined} of {outcome.reacher.graph.count} landmarks are joined"
    )
    claim = f"{name}, {arena.transitions:,} random steps: share of {result['episodes']} random goals reached"
    return [Row(claim, result["success"], arena.share, note=note)]


def _act(name: str) -> list[Row]:
    """Milliseconds of CPU, medians; the data's own states, in random order."""
    data = read_source(f"ogbench:pointmaze-{name}")
    assert isinstance(data, OGBenchData)
    experience = data.read()
    reacher = lapwing.reach(experience)
    generator = np.random.default_rng(0)
    seen = experience.observe(generator.integers(len(experience.observations), size=CALLS + BATCH * BATCHES))
    goal = seen[0]
    for batch in (seen[0], seen[:BATCH]):
        reacher.act(batch, goal)  # compiles
    single = [_milliseconds(reacher, one, goal) for one in seen[:CALLS]]
    batches = [_milliseconds(reacher, some, goal) for some in seen[CALLS:].reshape(BATCHES, BATCH, -1)]
    low, high = np.quantile(single, [0.25, 0.75])
    claim = f"{name}, {reacher.graph.count} landmarks: `act`, median ms of CPU a state"
    return [
        Row(claim, _median(single), MILLISECONDS, at_most=True, note=f"quartiles {low:.2f} and {high:.2f}"),
        Row(f"… in a batch of {BATCH}", _median(batches) / BATCH, MILLISECONDS, at_most=True),
    ]


def _milliseconds(reacher: lapwing.Reacher, seen: np.ndarray, goal: np.ndarray) -> float:
    began = time.process_time()
    reacher.act(seen, goal)
    return 1e3 * (time.process_time() - began)


def _median(values: list[float]) -> float:
    return float(np.median(values))
