"""Reading arrays from untrusted HDF5 files.

HDF5 can refer to other files (external links, virtual datasets, external storage), can load libraries
(filters), and can unpack to any size. Only hard links to plain datasets of the expected shape are followed,
and sizes are checked before anything is read.
"""

import io
import math
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from lapwing.data.archives import BOMB_BYTES, BOMB_RATIO, GIB, MOST_BYTES
from lapwing.errors import ConfigError, DatasetError, LapwingError

HDF5_SUFFIXES = (".hdf5", ".h5")
_IMAGES_AT_ONCE = 64
_OWN_FILTERS = (1, 2, 3, 4, 5, 6, 32000)  # of HDF5 and of h5py; for any other HDF5 looks for a library


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """An HDF5 file to read from; whatever its bytes make h5py raise becomes a `DatasetError`."""
    try:
        import h5py
    except ImportError as error:
        raise ConfigError(
            f"{path} is read by h5py, which is missing; install lapwing with its extra hdf5: "
            "pip install 'lapwing[hdf5]'"
        ) from error
    try:
        with h5py.File(path, "r") as file:
            yield file
    except LapwingError:
        raise
    except Exception as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, 200, placeholder=" …")
        raise DatasetError(f"{path} is damaged or not an HDF5 file ({reason})") from error


def read_datasets(path: Path, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    """The wanted arrays at the top of an HDF5 file; those that it does not hold are absent."""
    with _opened_file(path) as file:
        there = set(file)
        columns = {name: _column(file, name, path) for name in wanted if name.partition("/")[0] in there}
        check_size(str(path), list(columns.values()))
        return {name: column.read() for name, column in columns.items()}


def datasets_in(path: Path) -> list[str]:
    """The names of what is at the top of an HDF5 file."""
    with _opened_file(path) as file:
        return list(file)


def kinds_in(path: Path) -> dict[str, tuple[np.dtype, tuple[int, ...]] | None]:
    """The type and shape of each dataset at the top of an HDF5 file; None for what is none."""
    with _opened_file(path) as file:
        return {name: _kind(file, name, path) for name in file}


def _kind(file: Any, name: str, path: Path) -> tuple[np.dtype, tuple[int, ...]] | None:
    try:
        dataset = child(file, name, str(path))
        return dataset.dtype, dataset.shape
    except Exception:  # a group, a link, or bytes of any kind, which nobody asked for
        return None


@contextmanager
def _opened_file(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise DatasetError(f"no data file {path}")
    with opened(path) as file:
        yield file


def _column(file: Any, name: str, path: Path) -> "Column":
    """A dataset as it is, whatever the shape of its rows."""
    dataset = child(file, name, str(path))
    shape = getattr(dataset, "shape", None) or ()
    return Column(dataset, gymnasium.Space(shape[1:]), f"{path}, {name!r},", jpeg=False)


def holds(group: Any, name: str) -> bool:
    """Whether a group has anything by this name; a link is not followed to tell."""
    return group.id.links.exists(name.encode())


def child(node: Any, name: str, where: str) -> Any:
    """What a group holds by this name, if it is the file's own; `where` says in errors what the group is."""
    from h5py import Group, h5l  # pyright: ignore[reportAttributeAccessIssue]

    for part in name.split("/"):  # Minari makes groups of a key with slashes
        if not isinstance(node, Group) or not part or not holds(node, part):
            held = ", ".join(node) if isinstance(node, Group) else "an array"
            raise DatasetError(
                f"{where} has no {part!r}, it holds {textwrap.shorten(held, 200) or 'nothing'} only; "
                "collect the data again with all of it"
            )
        # The link itself is asked, and nothing opened that it may lead to.
        if node.id.links.get_info(part.encode()).type != h5l.TYPE_HARD:
            raise DatasetError(f"{where} has a link in place of {part!r}; save the data itself")
        node = node[part]
    return node


@dataclass(frozen=True)
class Column:
    """A dataset whose rows belong to a space, checked on the way in.

    Args:
        dataset: of h5py.
        space: what each row belongs to.
        where: what it is, for errors.
        jpeg: whether each row is the bytes of a JPEG image.
    """

    dataset: Any
    space: gymnasium.Space
    where: str
    jpeg: bool

    def __post_init__(self):
        """Refuse what is not plain; nothing of the content has been read yet."""
        self._check_storage()
        self._check_content()
        packed = self.dataset.id.get_storage_size()
        if self.dataset.nbytes > max(BOMB_BYTES, BOMB_RATIO * packed):
            raise DatasetError(
                f"{self.where} holds {self.dataset.nbytes / GIB:.1f} GiB in {packed:,} bytes, as only a "
                "decompression bomb does; if it is none, save it uncompressed"
            )

    def __len__(self) -> int:
        return self.dataset.shape[0]

    @property
    def n_bytes(self) -> int:
        """What it takes to hold all rows, packed or not."""
        row = math.prod(self.space.shape or ()) if self.jpeg else 0
        chunk = math.prod(self.dataset.chunks or ()) * self.dataset.dtype.itemsize
        return max(self.dataset.nbytes, len(self) * row, chunk)

    def read(self) -> np.ndarray:
        """All rows."""
        return self._images() if self.jpeg else self.dataset[()]

    def _check_storage(self) -> None:
        import h5py

        if not isinstance(self.dataset, h5py.Dataset):
            raise DatasetError(f"{self.where} is not an array; download or collect the data again")
        created = self.dataset.id.get_create_plist()
        if created.get_layout() == h5py.h5d.VIRTUAL or created.get_external_count():
            raise DatasetError(f"{self.where} is kept in another file; save the data itself")
        filters = [created.get_filter(index)[0] for index in range(created.get_nfilters())]
        if not set(filters) <= set(_OWN_FILTERS):
            raise DatasetError(
                f"{self.where} is compressed by the HDF5 filters {filters}, of which h5py does not have all; "
                "save it uncompressed"
            )

    def _check_content(self) -> None:
        shape, dtype = self.dataset.shape, self.dataset.dtype
        if self.jpeg:
            if not (self._is_variable_length() or (dtype == np.uint8 and shape and len(shape) == 2)):
                raise DatasetError(
                    f"{self.where} holds {dtype} of shape {shape}, and no JPEG images as its metadata says; "
                    "download or collect the data again"
                )
        elif dtype.kind not in "biuf":
            raise DatasetError(
                f"{self.where} holds text or objects ({dtype}), and only numbers are read; "
                "choose another part of the observations, or save numbers"
            )
        elif not shape or shape[1:] != self.space.shape:
            raise DatasetError(
                f"{self.where} has the shape {shape}, and its space says {('n', *(self.space.shape or ()))}; "
                "download or collect the data again"
            )

    def _is_variable_length(self) -> bool:
        """Whether it is as Minari stores images whose JPEG files differ in length."""
        import h5py

        return h5py.check_vlen_dtype(self.dataset.dtype) == np.uint8 and len(self.dataset.shape) == 1

    def _jpeg_files(self) -> Iterator[bytes]:
        for begin in range(0, len(self), _IMAGES_AT_ONCE):
            yield from (row.tobytes() for row in self.dataset[begin : begin + _IMAGES_AT_ONCE])

    def _images(self) -> np.ndarray:
        from PIL.Image import DecompressionBombWarning

        images = np.empty((len(self), *(self.space.shape or ())), np.uint8)
        done = 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DecompressionBombWarning)
                for packed in self._jpeg_files():
                    images[done] = self._image(packed)
                    done += 1
        except Exception as error:  # Pillow raises nearly anything
            reason = textwrap.shorten(str(error) or type(error).__name__, 200, placeholder=" …")
            raise DatasetError(
                f"{self.where} has a damaged JPEG image {done} ({reason}); download or collect the data again"
            ) from error
        return images

    def _image(self, content: bytes) -> np.ndarray:
        from PIL.Image import open as open_image

        image = open_image(io.BytesIO(content), formats=["JPEG"])
        expected = self.space.shape or ()
        bands = (len(image.getbands()),) if len(image.getbands()) > 1 else ()
        if (image.height, image.width, *bands) != expected:  # before it is unpacked
            raise ValueError(f"it is {image.width} by {image.height} {image.mode}, not {expected}")
        return np.asarray(image)


def check_together(where: str, columns: list[Column]) -> None:
    """Refuse columns of different lengths, and those that do not fit into memory together."""
    if len({len(column) for column in columns}) != 1:
        lengths = ", ".join(str(len(column)) for column in columns) or "none"
        raise DatasetError(f"{where} has parts of the lengths {lengths}; leave it out")
    check_size(where, columns)


def check_size(where: str, columns: list[Column]) -> None:
    """Refuse columns that do not fit into memory together."""
    total = sum(column.n_bytes for column in columns)
    if total > MOST_BYTES:
        raise DatasetError(
            f"{where} unpacks to {total / GIB:.1f} GiB, and at most {MOST_BYTES / GIB:.0f} GiB are read at "
            "once; cut it into shorter episodes"
        )
