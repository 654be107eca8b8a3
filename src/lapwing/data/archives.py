"""Reading untrusted .npz files: everything that a file declares is checked first.

zipfile finds the entries and numpy's own header describes them. Nothing is unpickled, nothing is extracted,
and declared sizes are checked before memory is allocated. Every problem ends in a `DatasetError`.
"""

import math
import textwrap
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from lapwing.errors import DatasetError
from lapwing.storage import memory_bytes

GIB = 2**30
BOMB_RATIO, BOMB_BYTES = 200, GIB
"""An entry that unpacks to more than both is taken for a bomb.

Deflate cannot pass 1032:1. Honest arrays come near: zeros reach 1028, images with one bright pixel 200 to
900, one-hot rows of 152 states 200 and of 5,000 states 880; mazes drawn as images stay below 80. So the ratio
alone proves nothing, and up to 1 GiB any is let through, for that much harms nobody. Beyond it, the owner of
such a file can save it uncompressed, or as ids with a table; a bomb cannot.
"""
_CHUNK = 2**20
_LONGEST_HEADER = 10_000  # as for numpy
_LARGEST_DIRECTORY = 2**20
_HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_ENCRYPTED = 0x1 | 0x40
MOST_BYTES = min(8 * GIB, memory_bytes() // 2)
"""What the arrays read from one file may unpack to."""


def read_archive(path: Path, wanted: Sequence[str], *, most_bytes: int = MOST_BYTES) -> dict[str, np.ndarray]:
    """The wanted arrays that an .npz file holds; those that it does not hold are absent.

    Args:
        path: the file.
        wanted: names of arrays, without `.npy`. Other entries are never opened.
        most_bytes: what the wanted arrays may unpack to, together.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "data.npz")
        ...     np.savez(path, lengths=[2, 3], rewards=np.zeros(3))
        ...     read_archive(path, ["lengths", "table"])
        {'lengths': array([2, 3])}
    """
    with _opened(path) as archive:
        entries = _entries(path, archive)
        chosen = {name: entries[name] for name in wanted if name in entries}
        for name, entry in chosen.items():
            _check_entry(path, name, entry)
        total = sum(entry.file_size for entry in chosen.values())
        if total >= most_bytes:
            raise DatasetError(
                f"{path} unpacks to {total / GIB:.1f} GiB of {', '.join(chosen)}, and at most "
                f"{most_bytes / GIB:.1f} GiB are read on this machine; keep fewer episodes"
            )
        return {name: _read_array(path, name, archive, entry) for name, entry in chosen.items()}


def names_in(path: Path) -> list[str]:
    """The names of the arrays that an .npz file holds, in its order.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder, "data.npz"), lengths=[2, 3], rewards=np.zeros(3))
        ...     print(*names_in(Path(folder, "data.npz")))
        lengths rewards
    """
    with _opened(path) as archive:
        return list(_entries(path, archive))


def kinds_in(path: Path) -> dict[str, tuple[np.dtype, tuple[int, ...]] | None]:
    """The type and shape of each array of an .npz file, by its header; None for what is not plain numbers."""
    with _opened(path) as archive:
        return {name: _kind(path, name, archive, one) for name, one in _entries(path, archive).items()}


def _kind(
    path: Path, name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> tuple[np.dtype, tuple[int, ...]] | None:
    try:
        _check_entry(path, name, entry)
        with archive.open(entry) as stream:
            header = read_header(path, name, stream)
        return header.dtype, header.shape
    except Exception:  # bytes of any kind, which nobody asked for
        return None


class _ShortReads:
    """A stream that refuses to be read by more than `most` bytes at once, however many its content asks for.

    zipfile makes an object of several hundred bytes of each entry of a directory, and numpy reads a header
    whole before it looks at its length.
    """

    def __init__(self, stream: Any, most: int, what: str):
        self.stream, self.most, self.what = stream, most, what

    def read(self, size: int = -1) -> bytes:
        if size > self.most:
            raise ValueError(f"{self.what} takes {size:,} bytes")
        return self.stream.read(size)

    def seek(self, *place: int) -> int:
        return self.stream.seek(*place)

    def tell(self) -> int:
        return self.stream.tell()

    def seekable(self) -> bool:
        return True


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        if not path.is_file():
            raise DatasetError(f"no data file {path}")
        file = path.open("rb")
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read ({error.strerror}); check the path and its permissions"
        ) from error
    with file:
        try:
            _check_kind(path, file.read(6))
            short: Any = _ShortReads(file, _LARGEST_DIRECTORY, "its directory")
            with zipfile.ZipFile(short) as archive:
                yield archive
        except DatasetError:
            raise
        except Exception as error:  # damaged bytes make numpy and zipfile raise nearly anything
            reason = textwrap.shorten(str(error) or type(error).__name__, 200, placeholder=" …")
            raise DatasetError(f"{path} is damaged or not an .npz file ({reason})") from error


def _check_kind(path: Path, start: bytes) -> None:
    if start.startswith(npy.MAGIC_PREFIX):
        raise DatasetError(
            f"{path} is a single array, and where episodes end is needed too; write both with "
            'numpy.savez("data.npz", observations=…, lengths=…)'
        )
    if start[:1] == b"\x80" and start[1:2] <= b"\x05":  # the opcode PROTO of pickle, and its version
        raise _pickled(path)
    # zipfile looks at the end of a file only, and so takes a program with an archive behind it.
    if not start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        raise ValueError("it does not begin as one")


def _pickled(path: Path) -> DatasetError:
    return DatasetError(
        f"{path} holds pickled Python objects, which lapwing never loads; save plain numeric arrays"
    )


def _entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    entries = {}
    for entry in archive.infolist():
        name = entry.orig_filename.removesuffix(".npy")
        if _leads_elsewhere(entry.orig_filename):
            raise DatasetError(
                f"{path} holds an entry {entry.orig_filename!r}, a path and not the name of an array; "
                "save it with numpy.savez"
            )
        if name in entries:
            raise DatasetError(f"{path} holds two arrays {name!r}; save it again with one of them")
        entries[name] = entry
    return entries


def _leads_elsewhere(name: str) -> bool:
    absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).is_absolute()
    return absolute or "\\" in name or "\0" in name or ".." in name.split("/")


def _check_entry(path: Path, name: str, entry: zipfile.ZipInfo) -> None:
    if entry.flag_bits & _ENCRYPTED:
        raise DatasetError(f"{path} holds {name!r} encrypted; save it with numpy.savez")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DatasetError(
            f"{path} holds {name!r} compressed by method {entry.compress_type}; "
            "save it with numpy.savez or numpy.savez_compressed"
        )
    if entry.header_offset + entry.compress_size > path.stat().st_size:
        raise ValueError(f"{name!r} extends beyond the end of the file")
    if entry.compress_type == zipfile.ZIP_STORED and entry.file_size != entry.compress_size:
        raise ValueError(f"{name!r} has two sizes, {entry.file_size} and {entry.compress_size}")
    if entry.file_size > max(BOMB_BYTES, BOMB_RATIO * entry.compress_size):
        raise DatasetError(
            f"{path} holds {entry.file_size / GIB:.1f} GiB of {name!r} in {entry.compress_size:,} bytes, "
            "as only a decompression bomb does; if it is none, save it uncompressed with numpy.savez"
        )


class Header(NamedTuple):
    """What an .npy file says of its array."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype

    @property
    def n_bytes(self) -> int:
        """How many bytes the array takes, by a Python number, which does not overflow."""
        return math.prod(self.shape) * self.dtype.itemsize


def _read_array(path: Path, name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(entry) as stream:
        header = read_header(path, name, stream)
        stored = entry.file_size - stream.tell()
        if header.n_bytes != stored:
            raise ValueError(
                f"{name!r} is {header.dtype} of shape {header.shape}, but there are {stored} bytes of it"
            )
        content = np.empty(header.n_bytes, np.uint8)
        _fill(content, stream)
    array = content.view(header.dtype)
    return array.reshape(header.shape[::-1]).T if header.fortran_order else array.reshape(header.shape)


def read_header(path: Path, name: str, stream: Any) -> Header:
    """The header of an .npy file of plain numbers, which `stream` has at its beginning."""
    short: Any = _ShortReads(stream, _LONGEST_HEADER, "the header of an array")
    version = npy.read_magic(short)
    if version not in _HEADER_READERS:
        raise ValueError(f".npy format {version} is not one of plain arrays")  # 3.0: names of fields
    header = Header(*_HEADER_READERS[version](short))
    if header.dtype.hasobject:
        raise _pickled(path)
    if header.dtype.kind == "V":
        raise DatasetError(f"{path} holds records in {name!r}; save plain numeric arrays")
    if not header.dtype.itemsize or any(length < 0 for length in header.shape):
        raise ValueError(f"{name!r} cannot be {header.dtype} of shape {header.shape}")
    return header


def _fill(content: np.ndarray, stream: Any) -> None:
    """Copy the stream to its end, where zipfile compares the checksum."""
    filled = 0
    while chunk := stream.read(_CHUNK):
        content[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
        filled += len(chunk)
    if filled != len(content):
        raise ValueError(f"only {filled} of {len(content)} bytes are there")
