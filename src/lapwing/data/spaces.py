"""What φ sees of an observation, by the space that it comes from: an index, a vector or an image.

The same view is taken when data is collected, when an environment is wrapped and when a data set is read, so
that φ always sees the same thing.
"""

from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from lapwing.errors import ConfigError, nearest

CHANNELS = (1, 3, 4)
"""How many channels a picture has. Channels come first where the first axis alone is so long."""
MOST_STATES = 10_000_000
"""A discrete space of more states than this is no table."""


@dataclass(frozen=True)
class View:
    """How observations of a space become what φ sees.

    Example:
        >>> view = view_of(spaces.Dict({"pixels": spaces.Box(0, 255, (8, 8), np.uint8)}), "pixels")
        >>> view.kind, view.shape
        ('image', (8, 8, 1))
        >>> view.one({"pixels": np.zeros((8, 8), np.uint8)}).shape
        (8, 8, 1)
    """

    kind: Literal["index", "vector", "image"]
    shape: tuple[int, ...]
    """Of one observation as φ sees it; () for an index."""
    raw_shape: tuple[int, ...]
    """Of one as the space has it."""
    raw_dtype: np.dtype
    key: str | None = None
    """Which part of a Dict observation."""
    start: int = 0
    """The first index of a Discrete space."""
    n_states: int | None = None
    """How many indices there are."""
    channels_first: bool = False

    def pick(self, observations: Any) -> Any:
        """The part of an observation, or of a batch, that is looked at, as the space has it."""
        if self.key is None:
            return observations
        try:
            return observations[self.key]
        except KeyError:
            raise ConfigError(
                f"an observation has the parts {', '.join(map(str, observations))}, and the space promises "
                f"{self.key!r}; mend the environment, or its observation_space"
            ) from None

    def one(self, observation: Any) -> Any:
        """One observation as φ sees it; an index is a NumPy number."""
        picked = np.asarray(self.pick(observation))
        if picked.shape == self.shape and self.kind == "vector":  # a shorter way for what is seen most
            return picked if picked.dtype == np.float32 else _as_float32(picked)
        return self.seen(picked[None])[0]

    def many(self, observations: Any) -> np.ndarray:
        """A batch of observations as φ sees it."""
        return self.seen(np.asarray(self.pick(observations)))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse an observation of another shape than the space has."""
        if shape != self.raw_shape:
            raise ConfigError(
                f"observations have shape {shape}, and the space says {self.raw_shape}; "
                "mend the environment, or its observation_space"
            )

    def seen(self, picked: np.ndarray) -> np.ndarray:
        """What `pick` picked of a batch, as φ sees it."""
        self.check_shape(picked.shape[1:])
        if self.kind == "index":
            return (picked.astype(np.int64) - self.start).astype(np.int32)
        if self.kind == "vector":
            return _as_float32(picked.reshape(len(picked), -1))
        if self.channels_first:
            picked = np.moveaxis(picked, 1, -1)
        images = picked.reshape(len(picked), *self.shape)
        if not np.issubdtype(images.dtype, np.integer):
            return _as_float32(images)
        if images.dtype != np.uint8 and images.size and not 0 <= images.min() <= images.max() <= 255:
            raise ConfigError("images of whole numbers must lie in 0 … 255; scale them to floats")
        return images.astype(np.uint8, copy=False)


def view_of(space: gymnasium.Space, key: str | None = None) -> View:
    """How φ sees observations of `space`; one that cannot be embedded is refused.

    Args:
        space: of an environment's observations, one at a time.
        key: which part, where the space is a Dict.
    """
    space = _part(space, key)
    if isinstance(space, spaces.Discrete):
        if space.n > MOST_STATES:
            raise ConfigError(
                f"a Discrete space of {space.n:,} states is too large for a table; "
                "wrap the environment so that it gives a vector"
            )
        dtype = np.dtype(np.int64)
        return View("index", (), (), dtype, key, int(space.start), int(space.n))
    if 0 in (space.shape or ()):
        raise ConfigError(f"observations of shape {space.shape} are empty; nothing can be learned from them")
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return View("vector", (_size(space),), space.shape, np.dtype(space.dtype), key)
    if not isinstance(space, spaces.Box):
        raise ConfigError(
            f"observations of type {type(space).__name__} cannot be embedded; wrap the environment so that "
            "it gives a Box, Discrete, MultiDiscrete, MultiBinary or Dict observation "
            "(gymnasium.wrappers.FlattenObservation, for instance)"
        )
    return _view_of_box(space, key)


def _part(space: gymnasium.Space, key: str | None) -> gymnasium.Space:
    if not isinstance(space, spaces.Dict):
        if key is not None:
            raise ConfigError(
                f"observation_key={key!r} goes with Dict observations, and these are "
                f"{type(space).__name__}; leave it out"
            )
        return space
    keys = ", ".join(space.spaces)
    if key is None:
        raise ConfigError(f"observations are a Dict; choose a part with observation_key, one of: {keys}")
    if key not in space.spaces:
        hint = nearest(key, space.spaces)
        raise ConfigError(f"observation_key {key!r} is not in the Dict observations: {keys}; {hint}")
    part = space.spaces[key]
    if isinstance(part, spaces.Dict):
        raise ConfigError(
            f"observation_key {key!r} is itself a Dict; flatten the observations with "
            "gymnasium.wrappers.FlattenObservation"
        )
    return part


def _view_of_box(space: spaces.Box, key: str | None) -> View:
    shape, dtype = space.shape, np.dtype(space.dtype)
    if len(shape) > 3:
        raise ConfigError(
            f"observations of shape {shape} cannot be embedded; make them images (height, width, channels) "
            "with gymnasium.wrappers.ReshapeObservation, or vectors with FlattenObservation"
        )
    if len(shape) == 3:
        first = channels_first(shape)
        seen = (*shape[1:], shape[0]) if first else shape
        return View("image", seen, shape, dtype, key, channels_first=first)
    if len(shape) == 2 and dtype == np.uint8:
        return View("image", (*shape, 1), shape, dtype, key)
    return View("vector", (_size(space),), shape, dtype, key)


def channels_first(shape: tuple[int, ...]) -> bool:
    """Whether an image of this shape is (channels, height, width).

    Example:
        >>> channels_first((3, 32, 32)), channels_first((32, 32, 3))
        (True, False)
    """
    return shape[0] in CHANNELS and shape[2] not in CHANNELS and min(shape[1:]) > shape[0]


def _as_float32(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused with its place
        return array.astype(np.float32, copy=False)


def _size(space: gymnasium.Space) -> int:
    return int(np.prod(space.shape or ()))
