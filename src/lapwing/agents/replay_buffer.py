"""A replay buffer that stores each observation once: the next observation of a transition is the next row.

Only if an episode is truncated is its last observation stored separately. After a termination the next
observation does not matter, so the next row may hold anything.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from lapwing.settings.checks import check_size


class Transitions(NamedTuple):
    """s, a, r, s', and whether the episode terminated at s'; one row each."""

    observations: Any
    actions: Any
    rewards: Any
    next_observations: Any
    terminated: Any


class Stored(NamedTuple):
    """The content of a replay buffer, as a checkpoint holds it."""

    observations: np.ndarray
    """One more than there are transitions."""
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    cut: np.ndarray
    """For each transition that an episode is cut off after, the index of what followed it, else -1."""
    followed: np.ndarray
    """What followed those."""


class ReplayBuffer:
    """Room for `capacity` transitions of observations of one shape and type.

    Actions are numbers from 0, or vectors of so many numbers where `n_actions` is given.
    """

    def __init__(self, capacity: int, shape: tuple[int, ...], dtype, n_actions: int | None = None):
        check_size("steps", capacity * math.prod(shape) * np.dtype(dtype).itemsize)
        vectors = n_actions is not None
        self._rows = Stored(
            np.zeros((capacity + 1, *shape), dtype),
            np.zeros((capacity, n_actions), np.float32) if vectors else np.zeros(capacity, np.int32),
            np.zeros(capacity, np.float32),
            np.zeros(capacity, bool),
            np.full(capacity, -1, np.int32),
            np.zeros((0, *shape), dtype),
        )
        self._filled, self._cuts = 0, 0

    def __len__(self) -> int:
        return self._filled

    def store(self, transition: Transitions, *, cut: bool) -> None:
        """Add one transition.

        Args:
            transition: s, a, r, s' and whether s' is terminal.
            cut: whether the next transition begins elsewhere although s' is not terminal.
        """
        index, rows = self._filled, self._rows
        rows.observations[index] = transition.observations
        rows.observations[index + 1] = transition.next_observations
        rows.actions[index] = transition.actions
        rows.rewards[index] = transition.rewards
        rows.terminated[index] = transition.terminated
        if cut:
            if self._cuts == len(rows.followed):
                more = np.empty_like(rows.followed, shape=(max(8, self._cuts), *rows.followed.shape[1:]))
                self._rows = rows = rows._replace(followed=np.concatenate([rows.followed, more]))
            rows.cut[index], rows.followed[self._cuts] = self._cuts, rows.observations[index + 1]
            self._cuts += 1
        self._filled += 1

    def sample(self, batch: int, generator: np.random.Generator) -> Transitions:
        """`batch` of the transitions, with replacement."""
        return self.at(generator.integers(self._filled, size=batch))

    def at(self, indices: np.ndarray) -> Transitions:
        """The transitions with these numbers."""
        rows, following, cut = self._rows, self._rows.observations[indices + 1], self._rows.cut[indices]
        following[cut >= 0] = rows.followed[cut[cut >= 0]]
        begins, actions, rewards, terminated = (array[indices] for array in rows[:4])
        return Transitions(begins, actions, rewards, following, terminated)

    def observations(self) -> np.ndarray:
        """Where each of the transitions begins."""
        return self._rows.observations[: self._filled]

    def content(self) -> Stored:
        """What is stored so far: views, not copies."""
        rows = Stored(*(array[: self._filled] for array in self._rows))
        observations = self._rows.observations[: self._filled + 1]
        return rows._replace(observations=observations, followed=self._rows.followed[: self._cuts])

    def empty(self) -> Stored:
        """What content looks like, with no rows: a checkpoint may hold any number of them."""
        return Stored(*(array[:0] for array in self._rows))

    def fill(self, content: Stored) -> None:
        """Take the content of another buffer over."""
        self._filled, self._cuts = len(content.actions), len(content.followed)
        for array, stored in zip(self._rows[:5], content[:5], strict=True):
            array[: len(stored)] = stored
        self._rows = self._rows._replace(followed=np.array(content.followed))
