"""Rows of any length in an HDF5 file, read by hand.

HDF5 keeps such rows in heaps, and trusts what a file says of them: where it lies, HDF5 2.0 goes round for
ever or reads beyond its memory. Here each length is compared with what is there.
"""

import mmap
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

_SIGNATURE = b"GCOL\x01"
_HEADER = 16


def rows_of_any_length(dataset: Any) -> Iterator[bytes]:
    """The rows of a chunked, unfiltered dataset of h5py whose type is vlen of bytes, one by one."""
    (rows,), (chunk,) = dataset.shape, dataset.chunks
    heaps: dict[int, dict[int, slice]] = {}
    with (
        Path(dataset.file.filename).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        for start in range(0, rows, chunk):
            _, references = dataset.id.read_direct_chunk((start,))
            for length, address, index in islice(struct.iter_unpack("<IQI", references), rows - start):
                if address not in heaps:
                    heaps[address] = _objects(content, address)
                place = heaps[address][index]
                if length > place.stop - place.start:
                    raise ValueError(f"it says {length} bytes, and has {place.stop - place.start}")
                yield content[place.start : place.start + length]


def _objects(content: mmap.mmap, address: int) -> dict[int, slice]:
    """Where the objects of a heap lie (HDF5 file format specification, III.E)."""
    if content[address : address + len(_SIGNATURE)] != _SIGNATURE:
        raise ValueError(f"there is no heap at {address}")
    (size,) = struct.unpack_from("<8xQ", content, address)
    place, end = address + _HEADER, min(address + size, len(content))
    objects = {}
    while place + _HEADER <= end:
        index, size = struct.unpack_from("<H6xQ", content, place)
        if index == 0:  # what is free comes last
            break
        place += _HEADER
        if size > end - place:
            raise ValueError(f"an object of the heap at {address} goes on after its end")
        objects[index] = slice(place, place + size)
        place += -(-size // 8) * 8
    return objects
