"""What the parts on others' data share: learning with the clock, held-out sums, and the earlier default."""

import time
from typing import Any

import numpy as np

from lapwing.data.experience import Experience
from lapwing.laplacian.closed_form import held_out_score
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import Representation, embed_batch
from lapwing.laplacian.ritz import moments_of_experience
from lapwing.laplacian.target import Target
from lapwing.settings.learn import LearnSettings

NETWORKS: dict[str, dict[str, Any]] = {
    "fourier": {"estimator": "pairwise", "encoder": "fourier"},
    "mlp": {"estimator": "pairwise", "encoder": "mlp"},
}
"""Trained networks; `fourier` was the default for continuous vectors before bumps."""
GOALS, POINTS = 30, 2_000


def learn(target: Target, **settings: Any) -> tuple[Representation, float]:
    """A representation and what it took, all in."""
    began = time.process_time()  # pinned to one core: what it would take alone on it
    representation = learn_target(target, LearnSettings.from_keywords(settings))
    return representation, time.process_time() - began


def held_out(representation: Representation, target: Target) -> tuple[float, np.ndarray]:
    """The sum of the eigenvalues on held-out episodes, and the eigenvalues."""
    return on_episodes(representation, target.held_out_episodes)


def on_episodes(representation: Representation, episodes: Experience) -> tuple[float, np.ndarray]:
    """The same on any episodes."""
    moments = moments_of_experience(
        episodes, lambda batch: embed_batch(representation.encoder, batch), most=200_000
    )
    coefficients = np.asarray(representation.coefficients, np.float64)
    return held_out_score(coefficients, moments, representation.config["settings"]["dim"])


def states(target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Goals and points to measure distances between, as the data has them."""
    seen = target.held_out_episodes
    drawn = np.random.default_rng(0).integers(len(seen.observations), size=POINTS)
    points = seen.observe(np.sort(drawn))
    return points[:: POINTS // GOALS][:GOALS], points


def geometric_mean(ratios: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(ratios))))
