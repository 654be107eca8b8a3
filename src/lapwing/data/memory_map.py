"""Arrays in files that are mapped, not loaded: gone through in pieces, and never held whole.

The pages of a mapped file that were read count as memory of this process until they are let go.
"""

import mmap
from collections.abc import Iterator

import numpy as np

BYTES_AT_ONCE = 1 << 26
"""Where all observations are looked at, so much is looked at at a time."""
IN_MEMORY = 1 << 29
"""The observations of a mapped file of more bytes than this stay on disk."""
PLACES_AT_ONCE = 1_024
"""Of a mapped file so many places are looked up at a time: each may bring in the 64 KiB around it."""


def is_large(array: np.ndarray) -> bool:
    """Whether an array is, or is part of, a mapped file that is too large for memory."""
    mapping = mapping_of(array)
    return mapping is not None and len(mapping) > IN_MEMORY


def pieces(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """An array in pieces of bounded size, each with where it begins; pages of a mapped one are let go."""
    rows = max(1, BYTES_AT_ONCE // max(1, array[:1].nbytes))
    for begin in range(0, len(array), rows):
        yield begin, array[begin : begin + rows]
        forget_pages(array)


def forget_pages(array: np.ndarray) -> None:
    """Let go of what was read of a mapped file, which would else count as this process's memory."""
    mapping = mapping_of(array)
    if mapping is not None and getattr(array, "mode", None) != "c":  # whose changes are in memory alone
        mapping.madvise(mmap.MADV_DONTNEED)


def mapping_of(array: np.ndarray) -> mmap.mmap | None:
    """What an array is mapped by; a copy of a mapped one is of the same type, but has none."""
    return getattr(array, "_mmap", None)


def looked_up(array: np.ndarray, mapping: mmap.mmap, places: np.ndarray) -> np.ndarray:
    """Rows of a mapped array, letting go of its pages on the way."""
    at_once = min(PLACES_AT_ONCE, max(1, BYTES_AT_ONCE // max(1, array[:1].nbytes)))
    flat = places.reshape(-1)
    rows = np.empty((len(flat), *array.shape[1:]), array.dtype)
    mapping.madvise(mmap.MADV_RANDOM)  # or the system reads a megabyte ahead at each place
    for begin in range(0, len(flat), at_once):
        rows[begin : begin + at_once] = array[flat[begin : begin + at_once]]
        forget_pages(array)
    mapping.madvise(mmap.MADV_NORMAL)
    return rows.reshape(*places.shape, *array.shape[1:])
