"""What must hold of observations before they are experience; a refusal names what, where, and the remedy."""

import warnings

import numpy as np

from lapwing.data.spaces import MOST_STATES, channels_first
from lapwing.errors import DatasetError, LapwingWarning

FEWEST_VALUES = 1_000
"""A feature should have so many values in float32 from its least to its largest."""
NOISE = 1e-10
"""What changes by less than this share of itself is a constant with rounding errors."""


def as_array(name: str, values) -> np.ndarray:
    """One array of what is given; a mapped file stays as it is."""
    if isinstance(values, np.memmap):
        return values
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DatasetError(f"{name} cannot be made one array ({error}); give all the same shape") from error


def checked_lengths(lengths) -> np.ndarray:
    """How many observations each episode has, at least two."""
    array = as_array("lengths", lengths)
    if array.size == 0:
        raise DatasetError("there are no episodes; give at least one of two observations")
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise DatasetError(f"lengths must be a list of integers, not {array.dtype} of shape {array.shape}")
    if array.min() < 2:
        short = int(np.argmax(array < 2))
        raise DatasetError(too_short(short, array[short]))
    return array.astype(np.int64)


def too_short(episode: int, length: int | np.integer) -> str:
    """What is said of an episode without a transition."""
    return (
        f"episode {episode} has {length} observations; an episode needs at least 2, "
        "the two ends of one transition: leave it out"
    )


def checked_observations(observations, table) -> tuple[np.ndarray, np.ndarray | None]:
    """Vectors, images or ids as they are learned from, and the table of the ids."""
    array = as_array("observations", observations)
    if table is not None or (array.ndim == 1 and np.issubdtype(array.dtype, np.integer)):
        return _checked_ids(array, table)
    _check_numbers("observations", array)
    if array.ndim < 2 or 0 in array.shape[1:]:
        raise DatasetError(
            f"observations of shape {array.shape} have no features; "
            "give vectors (n, k), images (n, height, width, channels) or integer ids (n,)"
        )
    return _learnable("observations", array), None


def _checked_ids(ids: np.ndarray, table) -> tuple[np.ndarray, np.ndarray]:
    ids = np.asarray(ids)  # of a mapped file too: ids are few bytes, and are gone through again and again
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
    """Images of whole numbers are bytes; other numbers become float32."""
    _check_numbers(name, array)
    if array.ndim == 4 and np.issubdtype(array.dtype, np.integer):
        if array.dtype != np.uint8 and array.size and not 0 <= array.min() <= array.max() <= 255:
            raise DatasetError(f"{name} hold images of whole numbers beyond 0 … 255; scale them to floats")
        return array.astype(np.uint8, copy=False)
    with np.errstate(over="ignore"):
        return array.astype(np.float32, copy=False)


def _check_numbers(name: str, array: np.ndarray) -> None:
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise DatasetError(f"{name} must hold numbers, not {array.dtype}; convert them to float32")


def warn_of_form(given: np.ndarray) -> None:
    """Warn of observations that can be learned from, but hardly as they are meant."""
    if given.ndim == 4 and channels_first(given.shape[1:]):
        warnings.warn(
            f"images of shape {given.shape[1:]} look as if their channels came first, and are taken for "
            "(height, width, channels); turn them with numpy.moveaxis(images, 1, -1)",
            LapwingWarning,
            stacklevel=3,
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
        warnings.warn(
            f"feature {first}{more} of the observations lies between {low[first]:.9g} and {high[first]:.9g}, "
            f"where float32 has {values[first]:,.0f} values: what lies between them is lost; "
            "subtract its mean",
            LapwingWarning,
            stacklevel=4,
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
        f"observations hold NaN or infinity at episode {episode}, step {step}; mend or drop that episode "
        "(float32 ends at 3.4e38)"
    )
