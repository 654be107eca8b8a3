"""Observations as inputs of φ: an index, a vector of float32 or an image, from a space or an array.

The same conversion is used for collected data, wrapped environments and data sets, so that φ always gets the
same input. Arrays are validated before they become experience; an error names the problem, its location and
the remedy.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from lapwing.data.extent import bounds_of
from lapwing.data.shrink import Shrinking, shrinking_of
from lapwing.errors import ConfigError, DatasetError, LapwingWarning, nearest, warn

CHANNELS = (1, 3, 4)
"""How many channels a picture has. Channels come first where the first axis alone is so long."""
MOST_STATES = 10_000_000
"""A discrete space of more states than this is no table."""
FEWEST_VALUES = 1_000
"""A feature should have so many values in float32 from its least to its largest."""
NOISE = 1e-10
"""What changes by less than this share of itself is a constant with rounding errors."""


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
    shrinking: Shrinking | None = None
    """How images become smaller, if they do."""
    bounds: tuple[tuple[float, float], ...] | None = field(default=None, compare=False)
    """Of each feature of a vector, as the space declares them."""

    def pick(self, observations: Any) -> Any:
        """The part of an observation, or of a batch, that φ sees, as the space has it."""
        if self.key is None:
            return observations
        try:
            return observations[self.key]
        except KeyError:
            raise ConfigError(
                f"an observation has the parts {', '.join(map(str, observations))}, and the space promises "
                f"{self.key!r}; fix the environment, or its observation_space"
            ) from None

    def one(self, observation: Any) -> Any:
        """One observation as φ sees it; an index is a NumPy number."""
        picked = np.asarray(self.pick(observation))
        if picked.shape == self.raw_shape == self.shape and self.kind == "vector":  # a quick way
            return _as_float32(picked)
        return self.seen(picked[None])[0]

    def many(self, observations: Any) -> np.ndarray:
        """A batch of observations as φ sees it."""
        return self.seen(np.asarray(self.pick(observations)))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse an observation of another shape than the space has."""
        if shape != self.raw_shape:
            raise DatasetError(
                f"observations have shape {shape}, and the space says {self.raw_shape}; "
                "fix the environment, or its observation_space"
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
        whole = self.shape if self.shrinking is None else self.shrinking.shape
        images = _as_bytes_or_float32("observations", picked.reshape(len(picked), *whole))
        return images if self.shrinking is None else self.shrinking(images)

    def shrunk(self, most: int) -> "View":
        """The same with images of at most `most` pixels each way."""
        shrinking = shrinking_of(self.shape, most) if self.kind == "image" else None
        if shrinking is None:
            return self
        return replace(self, shape=shrinking.shrunk_shape, shrinking=shrinking)


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
        return View("index", (), (), np.dtype(np.int64), key, int(space.start), int(space.n))
    shape, dtype = space.shape or (), np.dtype(space.dtype)
    if 0 in shape:
        raise ConfigError(f"observations of shape {shape} are empty; nothing can be learned from them")
    if isinstance(space, spaces.Box) and len(shape) > 3:
        raise ConfigError(
            f"observations of shape {shape} cannot be embedded; make them images (height, width, channels) "
            "with gymnasium.wrappers.ReshapeObservation, or vectors with FlattenObservation"
        )
    if isinstance(space, spaces.Box) and len(shape) == 3:
        first = channels_first(shape)
        seen = (*shape[1:], shape[0]) if first else shape
        return View("image", seen, shape, dtype, key, channels_first=first)
    if isinstance(space, spaces.Box) and len(shape) == 2 and dtype == np.uint8:
        return View("image", (*shape, 1), shape, dtype, key)
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return View("vector", (int(np.prod(shape)),), shape, dtype, key, bounds=bounds_of(space))
    raise ConfigError(
        f"observations of type {type(space).__name__} cannot be embedded; wrap the environment so that "
        "it gives a Box, Discrete, MultiDiscrete, MultiBinary or Dict observation "
        "(gymnasium.wrappers.FlattenObservation, for instance; on the command line --wrap "
        "gymnasium.wrappers:FlattenObservation)"
    )


def _part(space: gymnasium.Space, key: str | None) -> gymnasium.Space:
    if not isinstance(space, spaces.Dict):
        if key is not None:
            raise ConfigError(
                f"observation_key={key!r} only works with Dict observations, and these are "
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


def channels_first(shape: tuple[int, ...]) -> bool:
    """Whether an image of this shape is (channels, height, width).

    Example:
        >>> channels_first((3, 32, 32)), channels_first((32, 32, 3))
        (True, False)
    """
    return shape[0] in CHANNELS and shape[2] not in CHANNELS and min(shape[1:]) > shape[0]


def as_array(name: str, values: Any) -> np.ndarray:
    """One array of what is given; a memory-mapped one stays as it is."""
    if isinstance(values, np.memmap):
        return values
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DatasetError(f"{name} cannot be made one array ({error}); give all the same shape") from error


def checked_lengths(lengths: Any) -> np.ndarray:
    """How many observations each episode has, at least two."""
    array = as_array("lengths", lengths)
    if array.size == 0:
        raise DatasetError("there are no episodes; give at least one of two observations")
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise DatasetError(f"lengths must be a list of integers, not {array.dtype} of shape {array.shape}")
    counts = array.astype(np.int64)
    if counts.min() < 2:
        short = int(np.argmax(counts < 2))
        raise DatasetError(too_short(short, counts[short]))
    return counts


def too_short(episode: int, length: int | np.integer) -> str:
    """What is said of an episode without a transition."""
    return (
        f"episode {episode} has {length} observations; an episode needs at least 2, "
        "the two ends of one transition: leave it out"
    )


def checked_observations(observations: Any, table: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Vectors, images or ids as they are learned from, and the table of the ids."""
    array = as_array("observations", observations)
    if table is not None or (array.ndim == 1 and np.issubdtype(array.dtype, np.integer)):
        return _checked_ids(array, table)
    if array.ndim > 1 and 0 not in array.shape[1:]:
        return _learnable("observations", array), None
    _check_numbers("observations", array)
    raise DatasetError(
        f"observations of shape {array.shape} have no features; "
        "give vectors (n, k), images (n, height, width, channels) or integer ids (n,)"
    )


def _checked_ids(ids: np.ndarray, table: Any) -> tuple[np.ndarray, np.ndarray]:
    ids = np.asarray(ids)  # in memory, of a mapped file too: ids are few bytes, and are read often
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise DatasetError(
            f"with a table, observations must be integer ids (n,), not {ids.dtype} of {ids.shape}"
        )
    if len(ids) and ids.min() < 0:
        raise DatasetError(f"observations hold the id {ids.min()}; ids count from 0")
    largest = int(ids.max()) if len(ids) else -1
    if table is None and largest > MOST_STATES:  # a hash, or the number of a cell
        raise DatasetError(
            f"observations hold the id {largest}; number the states from 0 (numpy.unique gives the inverse)"
        )
    rows = np.arange(largest + 1) if table is None else as_array("table", table)
    if rows.ndim == 0 or 0 in rows.shape[1:]:
        raise DatasetError(f"a table of shape {rows.shape} has no features; give one observation a row")
    if largest >= len(rows):
        raise DatasetError(f"observations hold the id {largest}, but the table has {len(rows)} rows")
    if rows.ndim > 1:
        return ids.astype(np.int32), _learnable("table", rows)
    if not np.array_equal(rows, np.arange(len(rows))):
        raise DatasetError("a table of numbers must be 0, 1, 2, …; make it (states, 1) for scalars")
    return ids.astype(np.int32), rows.astype(np.int32)


def _learnable(name: str, array: np.ndarray) -> np.ndarray:
    _check_numbers(name, array)
    return _as_bytes_or_float32(name, array) if array.ndim == 4 else _as_float32(array)


def _check_numbers(name: str, array: np.ndarray) -> None:
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise DatasetError(f"{name} must hold numbers, not {array.dtype}; convert them to float32")


def _as_bytes_or_float32(name: str, images: np.ndarray) -> np.ndarray:
    """Images: of whole numbers as bytes, of others as float32."""
    if not np.issubdtype(images.dtype, np.integer):
        return _as_float32(images)
    if images.dtype != np.uint8 and images.size and not 0 <= images.min() <= images.max() <= 255:
        raise DatasetError(f"{name} hold images of whole numbers beyond 0 … 255; scale them to floats")
    return images.astype(np.uint8, copy=False)


def _as_float32(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.float32:
        return array
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused with its index
        return array.astype(np.float32)


def warn_of_form(given: np.ndarray) -> None:
    """Warn of observations that can be learned from, but hardly as they are meant."""
    if given.ndim == 4 and channels_first(given.shape[1:]):
        warn(
            f"images of shape {given.shape[1:]} look as if their channels came first, and are taken for "
            "(height, width, channels); turn them with numpy.moveaxis(images, 1, -1)",
            LapwingWarning,
        )
    if given.ndim == 2 and given.dtype == np.float64:
        _warn_of_rounding(given)


def _warn_of_rounding(given: np.ndarray) -> None:
    """Warn of features so far from 0, for how little they change, that float32 merges their values."""
    low, high = given.min(axis=0), given.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(np.abs(low), np.abs(high))
        values = (high - low) / np.spacing(largest.astype(np.float32))
        coarse = (high - low > NOISE * largest) & (values < FEWEST_VALUES)
        merged = [i for i in np.flatnonzero(coarse) if np.any(given[:, i] != given[:, i].astype(np.float32))]
    if merged:
        first, more = merged[0], f" (and {len(merged) - 1:,} more)" if merged[1:] else ""
        warn(
            f"feature {first}{more} of the observations lies between {low[first]:.9g} and {high[first]:.9g}, "
            f"where float32 has {values[first]:,.0f} values: what lies between them is lost; "
            "subtract its mean",
            LapwingWarning,
        )


def first_not_finite(rows: np.ndarray) -> int | None:
    """The first row that holds NaN or infinity."""
    if not np.issubdtype(rows.dtype, np.floating):
        return None
    finite = np.isfinite(rows)
    return None if finite.all() else int(np.argmin(finite.reshape(len(rows), -1).all(axis=1)))


def not_finite(episode: int, step: int) -> str:
    """What is said of an observation that holds NaN or infinity."""
    return (
        f"observations hold NaN or infinity at episode {episode}, step {step}; fix or drop that episode "
        "(float32 ends at 3.4e38)"
    )
