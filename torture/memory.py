"""Memory that stays flat over many calls."""

from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import numpy as np

import lapwing
from tests.support.walks import reflected
from torture.tally import SAME, Tally

TRIES = {"memory:learn": 500, "memory:online": 2_000, "memory:steps": 1_000_000}
FIRST = {"memory:learn": 20, "memory:online": 20, "memory:steps": 10_000}
"""After so many calls everything has been loaded and compiled."""
MOST = 50
"""MiB that memory may grow after them."""
ABOUT = {
    "memory:learn": f"calls of `lapwing.learn`; memory grows by less than {MOST} MiB after the first 20",
    "memory:online": "calls of `OnlineLearner.update`, likewise",
    "memory:steps": "steps of an environment in `LaplacianReward`, likewise",
}


def attempts(part: str, tally: Tally) -> Iterator[str]:
    """One call after the other; the slice ends with its growth in the note."""
    call, calls, before = _CALLS[part](), 0, 0.0
    while True:
        call()
        calls += 1
        if calls == FIRST[part]:
            before = resident()
        if calls > FIRST[part] and calls % FIRST[part] == 0:
            grown = resident() - before
            tally.note = f"{grown:+.1f} MiB over the last {calls - FIRST[part]:,} calls"
            yield SAME if grown < MOST else f"memory grew by {grown:.0f} MiB over {calls:,} calls"
        else:
            yield SAME


def resident() -> float:
    """MiB of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _learning() -> Callable[[], object]:
    walks = list(reflected(10, 31, 0.1, dims=2).astype(np.float32))
    return lambda: lapwing.learn(walks, dim=3, trials=1)


def _online() -> Callable[[], object]:
    walks = reflected(10, 31, 0.1, dims=2).astype(np.float32)
    learner = lapwing.OnlineLearner(dim=3, steps=2, hidden=(8,), capacity=600)
    return lambda: learner.update(walks)


def _stepping() -> Callable[[], object]:
    rep = lapwing.learn("TwoRoom", transitions=5_000, dim=4, steps=20, hidden=(16,))
    env = lapwing.LaplacianReward(gymnasium.make("lapwing/TwoRoom-v0"), rep, goal=np.array([0.125, 0.875]))
    env.reset(seed=0)
    actions = iter(np.random.default_rng(0).integers(4, size=10**7).tolist())

    def step() -> None:
        _, _, terminated, truncated, _ = env.step(next(actions))
        if terminated or truncated:
            env.reset()

    return step


_CALLS = {"memory:learn": _learning, "memory:online": _online, "memory:steps": _stepping}
