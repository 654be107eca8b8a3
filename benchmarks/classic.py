"""Classic control and MiniGrid, random actions: held-out sums against the networks that were the default."""

import numpy as np

from benchmarks.others import NETWORKS, held_out, learn, on_episodes
from benchmarks.rows import Row
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings

CLASSIC = ("MountainCar-v0", "Acrobot-v1", "Pendulum-v1", "CartPole-v1")
STEPS = 50_000
MINIGRID, IMAGES = "MiniGrid-FourRooms-v0", 5_000
"""Its `image` is what the agent sees, 7 x 7 x 3 numbers: few enough that states are enumerated."""


def measure() -> list[Row]:
    sums = {name: _vectors(name) for name in CLASSIC} | {f"{MINIGRID}, image": _images()}
    ratios = [ours / earlier for ours, earlier in sums.values()]
    rows = [
        Row(
            f"{name}: held-out sum over the earlier default's",
            ours / earlier,
            1.02,
            True,
            f"{ours:.3g} / {earlier:.3g}",
        )
        for name, (ours, earlier) in sums.items()
    ]
    return [*rows, Row("… in the mean", float(np.mean(ratios)), 0.7, True)]


def _vectors(name: str) -> tuple[float, float]:
    target = open_target(f"gym:{name}", LearnSettings(transitions=STEPS))
    ours, earlier = (held_out(learn(target, **how)[0], target)[0] for how in ({}, NETWORKS["fourier"]))
    return ours, earlier


def _images() -> tuple[float, float]:
    """Nothing is held out of enumerated states, so the sums are on episodes of another seed."""
    target, others = (
        open_target(f"gym:{MINIGRID}", LearnSettings(transitions=IMAGES, observation_key="image", seed=seed))
        for seed in (0, 1)
    )
    episodes = others.experience
    assert episodes is not None
    ours, earlier = (
        on_episodes(learn(target, **how)[0], episodes)[0]
        for how in ({}, {"estimator": "exact", "encoder": "conv"})
    )
    return ours, earlier
