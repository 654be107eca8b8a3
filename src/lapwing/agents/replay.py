"""A replay of transitions, in preallocated arrays that a checkpoint can hold."""

from typing import Any, NamedTuple

import numpy as np


class Transitions(NamedTuple):
    """s, a, r, s', and whether the episode terminated at s'; one row each."""

    observations: Any
    actions: Any
    rewards: Any
    next_observations: Any
    terminated: Any


def empty_replay(capacity: int, shape: tuple[int, ...], dtype) -> Transitions:
    """Room for `capacity` transitions of observations of that shape and type."""
    return Transitions(
        np.zeros((capacity, *shape), dtype),
        np.zeros(capacity, np.int32),
        np.zeros(capacity, np.float32),
        np.zeros((capacity, *shape), dtype),
        np.zeros(capacity, bool),
    )


def store(replay: Transitions, place: int, *transition) -> None:
    """Write one transition, in place."""
    for array, value in zip(replay, transition, strict=True):
        array[place] = value


def draw(replay: Transitions, filled: int, batch: int, generator: np.random.Generator) -> Transitions:
    """`batch` of the first `filled` transitions, with replacement."""
    places = generator.integers(filled, size=batch)
    return Transitions(*(array[places] for array in replay))
