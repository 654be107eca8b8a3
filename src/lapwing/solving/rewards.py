"""Rewards as users pass them: a function of observations, an array over states, labelled observations."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lapwing.errors import ConfigError

Reward = Callable[[np.ndarray], Any] | np.ndarray | Sequence[Any]


def of_function(reward: Callable[[np.ndarray], Any], observations: np.ndarray) -> np.ndarray:
    """What a function says of a batch of observations, one number each."""
    values = np.asarray(reward(observations))
    if values.shape != observations.shape[:1]:
        raise ConfigError(
            f"reward must return one number for each of {len(observations)} observations, not shape "
            f"{values.shape}; it is given a batch of them"
        )
    return finite(values)


def of_states(reward: Any, n_states: int | None) -> np.ndarray:
    """An array with a number for each of the enumerated states."""
    values = np.asarray(reward)
    if n_states is None:
        raise ConfigError(
            "reward is an array, and the states are not enumerated; give a function of observations, or a "
            "pair of observations and their rewards"
        )
    if values.shape != (n_states,):
        raise ConfigError(f"reward must have one number for each of {n_states} states, not {values.shape}")
    return finite(values)


def labelled(reward: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Observations of this shape, and their rewards."""
    if len(reward) != 2:
        raise ConfigError(f"reward must be a pair of observations and rewards, not {len(reward)} things")
    observations, values = (np.asarray(part) for part in reward)
    if observations.shape[1:] != shape or observations.ndim != len(shape) + 1 or not len(observations):
        raise ConfigError(
            f"reward has labelled observations of shape {observations.shape}; give a batch of observations "
            f"of shape {shape}"
        )
    if values.shape != observations.shape[:1]:
        raise ConfigError(
            f"reward has {len(observations)} observations and labels of shape {values.shape}; give one each"
        )
    return observations, finite(values)


def finite(values: np.ndarray) -> np.ndarray:
    """The rewards as floats; NaN and infinity are refused."""
    if values.dtype.kind not in "biuf":
        raise ConfigError(f"reward must hold numbers, not {values.dtype}")
    numbers = values.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise ConfigError(f"reward is {numbers[bad[0]]} at index {bad[0]}; give finite numbers")
    return numbers
