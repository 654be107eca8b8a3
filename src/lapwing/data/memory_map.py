"""Memory-mapped arrays: read in chunks, and never held whole.

Pages of a memory-mapped file count as memory of this process after they are read, until they are released.
"""

import mmap
from collections.abc import Iterator

import numpy as np

BYTES_AT_ONCE = 1 << 26
"""Where all observations are read, so much is read at a time."""
IN_MEMORY = 1 << 29
"""The observations of a memory-mapped file of more bytes than this stay on disk."""
ROWS_AT_ONCE = 1_024
"""Of a memory-mapped file so many rows are read at a time: each may bring in the 64 KiB around it."""


def is_large(array: np.ndarray) -> bool:
    """Whether an array is, or is part of, a memory-mapped file that is too large for memory."""
    mapping = mapping_of(array)
    return mapping is not None and len(mapping) > IN_MEMORY


def chunks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """An array in chunks of bounded size, each with the index of its first row."""
    rows = max(1, BYTES_AT_ONCE // max(1, array[:1].nbytes))
    for begin in range(0, len(array), rows):
        yield begin, array[begin : begin + rows]
        _release_pages(array)


def take_rows(array: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """`array[indices]`, in bounded memory where the array is memory-mapped."""
    mapping = mapping_of(array)
    if mapping is None:
        return array[indices]
    at_once = min(ROWS_AT_ONCE, max(1, BYTES_AT_ONCE // max(1, array[:1].nbytes)))
    flat = indices.reshape(-1)
    rows = np.empty((len(flat), *array.shape[1:]), array.dtype)
    _advise(mapping, "MADV_RANDOM")  # or the system reads a megabyte ahead at each row
    for begin in range(0, len(flat), at_once):
        rows[begin : begin + at_once] = array[flat[begin : begin + at_once]]
        _release_pages(array)
    _advise(mapping, "MADV_NORMAL")
    return rows.reshape(*indices.shape, *array.shape[1:])


def mapping_of(array: np.ndarray) -> mmap.mmap | None:
    """What an array is mapped by; a copy of a memory-mapped one is of the same type, but has none."""
    return getattr(array, "_mmap", None)


def _release_pages(array: np.ndarray) -> None:
    mapping = mapping_of(array)
    if mapping is not None and getattr(array, "mode", None) != "c":  # whose changes are in memory alone
        _advise(mapping, "MADV_DONTNEED")


def _advise(mapping: mmap.mmap, advice: str) -> None:
    """Tell the system how the pages are used, where it can be told."""
    if hasattr(mmap, advice):
        mapping.madvise(getattr(mmap, advice))
