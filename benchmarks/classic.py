"""Classic control and MiniGrid, random actions: held-out sums against the networks that were the default."""

import numpy as np

from benchmarks.others import NETWORKS, held_out, learn
from benchmarks.rows import Row
from lapwing.laplacian.target import Target, open_target
from lapwing.settings.learn import LearnSettings

CLASSIC = ("MountainCar-v0", "Acrobot-v1", "Pendulum-v1", "CartPole-v1")
STEPS = 50_000


def measure() -> list[Row]:
    targets = {name: open_target(f"gym:{name}", LearnSettings(transitions=STEPS)) for name in CLASSIC}
    sums = {name: _sums(target) for name, target in targets.items()}
    ratios = {name: found["default"] / found["fourier"] for name, found in sums.items()}
    rows = [
        Row(
            f"{name}: held-out sum over the earlier default's",
            ratios[name],
            1.02,
            True,
            ", ".join(f"{network} {value:.3g}" for network, value in found.items()),
        )
        for name, found in sums.items()
    ]
    return [*rows, Row("… in the mean", float(np.mean(list(ratios.values()))), 0.7, True)]


def _sums(target: Target) -> dict[str, float]:
    ours = {"default": held_out(learn(target)[0], target)[0]}
    return ours | {name: held_out(learn(target, **how)[0], target)[0] for name, how in NETWORKS.items()}
