"""Actions: uniform sampling from a space, validation, and storage in arrays."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from lapwing.errors import ConfigError

ACTIONS_AT_ONCE = 4_096
"""Random actions are drawn so many at a time, which costs far less than one by one."""
_ACTIONS = 1
"""Beside the seed, so that the stream of random actions is one of its own."""


class Bounds(NamedTuple):
    """The least and the largest value of each number in an action."""

    low: np.ndarray
    high: np.ndarray

    def scaled(self, action: Any) -> np.ndarray:
        """An action from numbers in [-1, 1].

        Example:
            >>> Bounds(np.array([-2.0, 0.0]), np.array([2.0, 1.0])).scaled([0.5, -1.0]).tolist()
            [1.0, 0.0]
        """
        share = (np.asarray(action, self.low.dtype) + 1) / 2
        scaled = self.low + share * (self.high - self.low)
        return np.clip(scaled, self.low, self.high)  # rounding may carry an end outwards


def random_actions(space: gymnasium.Space, seed: int) -> Iterator[Any]:
    """Actions drawn uniformly from a space, without end.

    Environments seeded alike draw from `default_rng(seed)` itself: their noise must not be the actions again.

    Example:
        >>> actions = random_actions(spaces.Discrete(3, start=5), seed=0)
        >>> {int(next(actions)) for _ in range(100)}
        {5, 6, 7}
    """
    rng = np.random.default_rng([seed, _ACTIONS])
    if isinstance(space, spaces.Discrete):
        while True:
            yield from rng.integers(space.start, space.start + space.n, size=ACTIONS_AT_ONCE)
    floats = isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)
    if isinstance(space, spaces.Box) and floats and space.is_bounded():
        shape = (max(1, ACTIONS_AT_ONCE // max(1, int(np.prod(space.shape)))), *space.shape)
        while True:
            yield from rng.uniform(space.low, space.high, size=shape).astype(space.dtype)
    space.seed(int(rng.integers(2**31)))
    while True:
        yield space.sample()


def check_action(action: Any, space: gymnasium.Space) -> None:
    """Refuse a policy whose first action cannot be meant for the space; a Box's bounds may be overstepped."""
    try:
        fits = _may_be_of(action, space)
    except Exception:  # what cannot be inspected is left to the environment
        fits = True
    if not fits:
        raise ConfigError(f"the policy gives the action {action!r}, which is none of {space}; fix the policy")


def _may_be_of(action: Any, space: gymnasium.Space) -> bool:
    if isinstance(space, spaces.Dict):
        return set(action) == set(space.spaces) and all(_may_be_of(action[k], space[k]) for k in space.spaces)
    if isinstance(space, spaces.Tuple):
        return len(action) == len(space) and all(map(_may_be_of, action, space))
    array = np.asarray(action)
    if isinstance(space, spaces.Box):
        return array.dtype.kind in "biuf" and array.shape == space.shape and bool(np.isfinite(array).all())
    if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return True
    if array.dtype.kind not in "biuf" or array.size != np.prod(space.shape or (), dtype=int):
        return False
    array = array.reshape(space.shape or ())
    whole = array.astype(space.dtype)
    return bool(np.all(whole == array)) and space.contains(whole)


def kept_dtype(space: gymnasium.Space) -> np.dtype | None:
    """The type that actions of a space are kept in; None if they are no plain numbers.

    Example:
        >>> kept_dtype(spaces.Discrete(4)), kept_dtype(spaces.Box(-1, 1, (2,), np.float64))
        (dtype('uint8'), dtype('float32'))
    """
    if isinstance(space, spaces.Discrete):
        ends = int(space.start), int(space.start + space.n - 1)
        return np.result_type(*map(np.min_scalar_type, ends))
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return np.dtype(np.uint8 if isinstance(space, spaces.MultiBinary) else np.int32)
    if not isinstance(space, spaces.Box):
        return None
    return np.dtype(np.float32) if np.issubdtype(space.dtype, np.floating) else np.dtype(space.dtype)
