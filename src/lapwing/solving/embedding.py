"""The space in which landmarks are compared: f/√λ, the continuous vectors themselves, or both."""

from dataclasses import dataclass

import numpy as np

from lapwing.errors import ConfigError, nearest
from lapwing.laplacian.representation import Representation
from lapwing.solving.steps import Steps

NEAR = ("observation", "both", "phi")
"""What landmarks of continuous vectors can be compared by."""


@dataclass(frozen=True, eq=False)
class Embedding:
    """A batch of observations, embedded."""

    representation: Representation | None
    """None: φ is not compared."""
    scale: np.ndarray | None = None
    """Of each number of a vector, its standard deviation; None: vectors are not compared."""
    units: tuple[float, float] = (1.0, 1.0)
    """What vectors and φ are divided by."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """(observations, dimensions)."""
        parts = []
        if self.scale is not None:
            parts.append(np.asarray(observations, np.float64) / self.scale / self.units[0])
        if self.representation is not None:
            parts.append(phi_embedding(self.representation, observations) / self.units[1])
        return np.hstack(parts)


def phi_embedding(representation: Representation, observations: np.ndarray) -> np.ndarray:
    """f/√λ of a batch of observations; φ itself where there are no single eigenfunctions."""
    filter = "commute" if "commute" in representation.filters else "soft"
    return np.asarray(representation.embed(observations, filter), np.float64)


def embedding_for(representation: Representation, steps: Steps, near: str | None = None) -> Embedding:
    """The embedding that landmarks are compared in.

    φ is slow: what is quick but decides what an action does, such as the velocity of a pole, is hardly in it.
    But vectors alone reach through walls. So continuous vectors can be compared by either, or by both side by
    side, each in units of its own steps.
    """
    vectors = not steps.enumerated and steps.observations.ndim == 2
    if near is not None and near not in NEAR:
        raise ConfigError(f"near must be one of {', '.join(NEAR)}, not {near!r}; {nearest(near, NEAR)}")
    if near in ("observation", "both") and not vectors:
        raise ConfigError(
            f"near={near!r} only works with continuous vectors, and these states are none; leave it out"
        )
    slow = Embedding(representation)
    if near == "phi" or not vectors:
        return slow
    spread = steps.observations.std(axis=0)
    quick = Embedding(None, np.where(spread > 0, spread, 1.0))
    if near != "both":
        return quick
    return Embedding(representation, quick.scale, (_median_step(quick, steps), _median_step(slow, steps)))


def _median_step(embedding: Embedding, steps: Steps) -> float:
    points = embedding(steps.observations)
    lengths = np.linalg.norm(points[steps.there] - points[steps.here], axis=1)
    return float(np.median(lengths[lengths > 0])) if lengths.any() else 1.0
