"""Classic control and MiniGrid, random actions: held-out sums against the networks that were the default."""

from benchmarks.others import NETWORKS, held_out, learn, on_episodes
from benchmarks.rows import Row
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings

STEPS = 50_000
MINIGRID, IMAGES = "MiniGrid-FourRooms-v0", 5_000
"""Its `image` is what the agent sees, 7 x 7 x 3 numbers: few enough that states are enumerated."""


def measure(name: str) -> list[Row]:
    ours, earlier = _images() if name == "MiniGrid" else _vectors(name)
    note = f"{ours:.4g} / {earlier:.4g}"
    return [Row(f"{name}: held-out sum over the earlier default's", ours / earlier, 1.02, True, note)]


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
