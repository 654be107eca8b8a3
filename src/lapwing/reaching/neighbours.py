"""The reference for the controller: the actions of the nearest states of the data, no network."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

from lapwing.reaching.controller import Samples

MOST = 100_000
"""So many states are remembered."""
NEIGHBOURS = 64


@dataclass(frozen=True, eq=False)
class Neighbours:
    """States of the data, where they were some steps later, and the actions that were taken."""

    features: np.ndarray
    before: np.ndarray
    after: np.ndarray
    actions: np.ndarray
    temperature: float

    @classmethod
    def of(cls, samples: Samples, lag: int, temperature: float, seed: int) -> "Neighbours":
        """Some of the data, drawn at random."""
        here = samples.followed(lag)
        here = np.sort(np.random.default_rng([seed, 2]).permutation(here)[:MOST])
        return cls(
            samples.features[here],
            samples.coordinates[here],
            samples.coordinates[here + lag],
            samples.actions[here],
            temperature,
        )

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.features)

    def __call__(self, features: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """The mean of the neighbours' actions, weighed by how much nearer to the goal they came.

        Args:
            features: of the states.
            goals: the coordinates of their way points.
        """
        count = min(NEIGHBOURS, len(self.features))
        _, near = self._tree.query(features, k=count)
        near = near.reshape(len(features), -1)
        before = np.linalg.norm(self.before[near] - goals[:, None], axis=2)
        nearer = before - np.linalg.norm(self.after[near] - goals[:, None], axis=2)
        spread = nearer.std(axis=1, keepdims=True)
        standard = (nearer - nearer.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
        weights = np.exp(self.temperature * standard)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("bn,bna->ba", weights, self.actions[near])
