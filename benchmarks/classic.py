"""Classic control and MiniGrid, random actions: held-out sums against the networks that were the default."""

from typing import Any

from benchmarks.others import NETWORKS, held_out, learn, on_episodes
from benchmarks.rows import Row
from lapwing.laplacian.target import Target, open_target
from lapwing.settings.learn import LearnSettings

STEPS = 50_000
MINIGRID, IMAGES = "MiniGrid-FourRooms-v0", 20_000
"""Its `image` is what the agent sees, 7 x 7 x 3 numbers."""


def measure(name: str) -> list[Row]:
    ours, earlier = _images() if name == "MiniGrid" else _vectors(name)
    note = f"{ours:.4g} / {earlier:.4g}"
    return [Row(f"{name}: held-out sum over the earlier default's", ours / earlier, 1.02, True, note)]


def _vectors(name: str) -> tuple[float, float]:
    target = open_target(f"gym:{name}", LearnSettings(transitions=STEPS))
    ours, earlier = (held_out(learn(target, **how)[0], target)[0] for how in ({}, NETWORKS["fourier"]))
    return ours, earlier


def _images() -> tuple[float, float]:
    """The earlier default took images for states and held nothing out: the sums are on another seed's."""
    settings = {"transitions": IMAGES, "observation_key": "image"}
    ours, earlier = (settings | how for how in ({}, {"estimator": "exact", "encoder": "conv"}))
    episodes = _of_minigrid(settings | {"seed": 1}).experience
    assert episodes is not None
    found = (learn(_of_minigrid(how), **how)[0] for how in (ours, earlier))
    ours, earlier = (on_episodes(representation, episodes)[0] for representation in found)
    return ours, earlier


def _of_minigrid(settings: dict[str, Any]) -> Target:
    return open_target(f"gym:{MINIGRID}", LearnSettings.from_keywords(settings))
