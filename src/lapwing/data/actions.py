"""Validated actions and rewards, aligned with observations.

`actions[i]` was taken at `observations[i]`, and `rewards[i]` resulted from it. The entry at the last
observation of an episode belongs to no transition and is never used.
"""

from typing import Any

import numpy as np

from lapwing.data.memory_map import chunks
from lapwing.data.observations import as_array, first_not_finite
from lapwing.errors import DatasetError


def checked_actions(actions: Any, lengths: np.ndarray) -> np.ndarray | None:
    """Actions as they are kept: whole numbers (n,) or (n, k), or vectors (n, k) of float32.

    Args:
        actions: one an observation, or one a transition; None is none.
        lengths: how many observations each episode has.

    Example:
        >>> checked_actions([3, 1, 2], np.array([2, 3]))
        array([3, 0, 1, 2, 0], dtype=int32)
    """
    if actions is None:
        return None
    array = at_observations("actions", as_array("actions", actions), lengths)
    if 0 in array.shape[1:]:
        raise DatasetError(f"actions of shape {array.shape} hold nothing; leave them out")
    if array.ndim > 2:
        array = array.reshape(len(array), -1)
    if array.dtype.kind in "biu":
        return _narrow(array)
    _check_numbers("actions", array)
    return _float32("actions", array[:, None] if array.ndim == 1 else array)


def checked_rewards(rewards: Any, lengths: np.ndarray) -> np.ndarray | None:
    """Rewards as they are kept: (n,) of float32."""
    if rewards is None:
        return None
    array = at_observations("rewards", as_array("rewards", rewards), lengths)
    _check_numbers("rewards", array)
    if array.size != len(array):
        raise DatasetError(f"rewards have shape {array.shape}; give one number an observation")
    return _float32("rewards", array.reshape(-1))


def at_observations(name: str, array: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """One row an observation, zero at the end of an episode, of one row an observation or a transition."""
    rows, observations = (len(array) if array.ndim else 0), int(lengths.sum())
    if rows == observations and array.ndim:
        return array
    if rows != observations - len(lengths):
        raise DatasetError(
            f"{name} have shape {array.shape}, and there are {observations} observations in {len(lengths)} "
            "episodes; give one an observation, or one a transition"
        )
    within = np.ones(observations, bool)
    within[np.cumsum(lengths) - 1] = False
    aligned = np.zeros((observations, *array.shape[1:]), array.dtype)
    aligned[within] = array
    return aligned


def _check_numbers(name: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf":
        raise DatasetError(f"{name} must hold numbers, not {array.dtype}; leave them out, or convert them")


def _narrow(array: np.ndarray) -> np.ndarray:
    """Whole numbers of at most 32 bits."""
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.itemsize < 8:
        return array
    narrow = array.astype(np.int32)
    if not np.array_equal(narrow, array):
        raise DatasetError(
            f"actions hold the whole number {array[narrow != array].flat[0]}, beyond 32 bits; "
            "number them from 0, or give floats"
        )
    return narrow


def _float32(name: str, array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused with its index
        kept = array if array.dtype == np.float32 else array.astype(np.float32)
    for begin, chunk in chunks(kept):
        bad = first_not_finite(chunk)
        if bad is not None:
            raise DatasetError(
                f"{name} hold NaN or infinity in row {begin + bad}; fix it, or leave the {name} out"
            )
    return kept
