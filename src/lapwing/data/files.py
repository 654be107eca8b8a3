"""Experience in files: an .npz archive, or a folder of .npy files for what is larger than memory.

Both are checked when they are read: shapes, NaN, and the SHA-256 that they carry. Nothing in them is run.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from lapwing._version import __version__
from lapwing.data.archives import names_in, read_archive, read_header
from lapwing.data.experience import Experience, check_flags, checked_episode, lengths_of
from lapwing.errors import CheckpointError, DatasetError, StorageError
from lapwing.storage import (
    make_folder,
    read_json,
    remove,
    remove_leftovers,
    write_atomically,
    write_bytes,
    write_json,
)

MANIFEST, UNFINISHED = "manifest.json", ".unfinished"
FORMAT = 1
_KIND = "lapwing experience"
END_MARKS = ("ends", "terminals", "timeouts")
ARCHIVED = ("observations", "lengths", *END_MARKS, "table", "sha256")


def load_experience(path: str | Path) -> Experience:
    """Read an .npz file, or a folder that `save_episodes` wrote, whose observations are memory-mapped.

    An .npz file holds `observations` with `lengths`, or with `ends`, or with `terminals` and `timeouts`;
    docs/data.md has the layout. Pickled content is refused, never run.
    """
    path = Path(path)
    if is_data_folder(path):
        return _load_folder(path)
    with suppress(OSError):  # no folder can have such a name; what reads archives says so
        if path.is_dir():
            raise DatasetError(without_manifest(path))
    arrays = read_archive(path, ARCHIVED)
    digest = arrays.pop("sha256", None)
    try:
        experience = _experience_in(path, arrays)
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from error
    if digest is not None and digest.tobytes().hex() != experience.sha256():
        raise DatasetError(
            f"{path} is damaged: its content does not match its SHA-256 "
            "(if you changed it on purpose, leave the array sha256 out)"
        )
    return experience


def _experience_in(path: Path, arrays: dict[str, np.ndarray]) -> Experience:
    if "observations" not in arrays:
        raise DatasetError(_nothing_observed(names_in(path)))
    if "lengths" in arrays:
        return Experience(arrays["observations"], arrays["lengths"], arrays.get("table"))
    marks = _marks(arrays)
    if not marks:
        held = ", ".join(names_in(path))
        raise DatasetError(f"there is no array 'lengths' and no 'ends'; it holds {held}: add one of them")
    if "table" in arrays:
        raise DatasetError("a table goes with lengths, not with ends; add the array 'lengths'")
    if len({len(mark) for mark in marks}) > 1:
        raise DatasetError("terminals and timeouts differ in length; give one of each an observation")
    return Experience.from_ends(arrays["observations"], np.logical_or.reduce(marks))


def marked_lengths(arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    """The lengths of episodes whose ends are marked; None where they are not, or not alike."""
    marks = _marks(arrays)
    return lengths_of(np.logical_or.reduce(marks)) if len({len(mark) for mark in marks}) == 1 else None


def _marks(arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What marks the last observations of episodes."""
    marks = {name: arrays[name].reshape(-1) for name in END_MARKS if name in arrays}
    for name, mark in marks.items():
        check_flags(name, mark)
    return [mark.astype(bool) for mark in marks.values()]


def _nothing_observed(names: Iterable[str]) -> str:
    held = sorted(names)
    if "actions" in held:
        return "it holds actions but no observations, and φ is learned from what was observed: add the array"
    return f"there is no array 'observations'; it holds {', '.join(held) or 'nothing'}"


def is_data_folder(path: Path) -> bool:
    """Whether `path` is a folder of experience."""
    try:
        return (path / MANIFEST).is_file()
    except OSError:  # no file can have such a name
        return False


def without_manifest(folder: Path) -> str:
    """What to say of a folder that `save_episodes` has not finished, or never wrote."""
    return (
        f"no data file {folder}: the folder has no {MANIFEST}, which lapwing.save_episodes writes at its end"
    )


def save_episodes(folder: str | Path, episodes: Iterable[ArrayLike]) -> Experience:
    """Write episodes, one after the other as they come, to a folder that need not fit into memory.

    Args:
        folder: a new or empty one, or one of an earlier call, which is replaced as soon as all is written.
        episodes: arrays of observations, one an episode, from a generator for instance.

    Returns:
        The experience, memory-mapped from the folder.

    Example:
        >>> import tempfile
        >>> episodes = (np.full((10, 2), i) for i in range(100))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_episodes(folder, episodes).n_transitions
        900
    """
    folder = Path(folder)
    writer = _EpisodeWriter(iter(episodes))
    _check_free(folder)
    make_folder(folder)
    for name in ("observations.npy", "lengths.npy"):
        remove_leftovers(folder, name)

    def write(file: IO[bytes]) -> None:
        writer.write(file)
        write_bytes(folder / UNFINISHED, b"")
        for name in (MANIFEST, "table.npy"):  # from here on the earlier data is gone
            remove(folder / name)

    write_atomically(folder / "observations.npy", write)
    lengths = np.array(writer.lengths, np.int64)
    write_atomically(folder / "lengths.npy", lambda file: np.save(file, lengths))
    _seal(writer.digest, (sum(writer.lengths), *writer.shape), lengths, None)
    manifest = {"kind": _KIND, "format": FORMAT, "version": __version__, "sha256": writer.digest.hexdigest()}
    write_json(folder / MANIFEST, manifest)
    remove(folder / UNFINISHED)
    return load_experience(folder)


def _seal(digest: Any, shape: tuple[int, ...], lengths: np.ndarray, table: np.ndarray | None) -> None:
    """Add what is known only after the last observation."""
    digest.update(f"{shape}".encode())
    digest.update(lengths.astype("<i8").tobytes())
    if table is not None:
        digest.update(f"{table.dtype}{table.shape}".encode() + table.tobytes())


def _check_free(folder: Path) -> None:
    if folder.is_file():
        raise StorageError(f"{folder} is a file; name a folder")
    known = {MANIFEST, "observations.npy", "lengths.npy", "table.npy"} if _is_ours(folder) else set()
    others = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    foreign = sorted(name for name in others if name not in known and not name.startswith("."))
    if foreign:
        raise StorageError(f"{folder} is not empty (it holds {foreign[0]}); name another folder")


def _is_ours(folder: Path) -> bool:
    """Whether a call of `save_episodes` has written the folder, or was stopped at it."""
    try:
        return (folder / UNFINISHED).is_file() or bool(_read_manifest(folder))
    except (DatasetError, StorageError):
        return False


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_json(folder / MANIFEST)
    except CheckpointError as error:
        raise DatasetError(
            f"{folder / MANIFEST} is damaged: it is not JSON; write the folder again"
        ) from error
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise DatasetError(
            f"{folder / MANIFEST} does not describe experience; lapwing.save_episodes writes it"
        )
    return manifest


class _EpisodeWriter:
    """Writes one .npy file, episode by episode; its header is written again when their number is known."""

    def __init__(self, episodes: Any):
        self._episodes = episodes
        self._dtype: Any = None
        self.shape: tuple[int, ...] = ()
        """Of one observation."""
        self.lengths: list[int] = []
        self.digest = hashlib.sha256()

    def write(self, file: IO[bytes]) -> None:
        for episode in self._episodes:
            self._add(file, episode)
            del episode  # or it would stay while the next one is made
        if not self.lengths:
            raise DatasetError("there are no episodes; give at least one of two observations")
        file.seek(0)
        self._write_header(file)

    def _add(self, file: IO[bytes], episode: ArrayLike) -> None:
        array = checked_episode(len(self.lengths), episode)
        if not self.lengths:
            self.shape, self._dtype = array.shape[1:], array.dtype
            self._write_header(file)
        if (array.shape[1:], array.dtype) != (self.shape, self._dtype):
            raise DatasetError(
                f"episode {len(self.lengths)} has observations of shape {array.shape[1:]} and {array.dtype}, "
                f"episode 0 of {self.shape} and {self._dtype}; give all the same"
            )
        content = np.ascontiguousarray(array)
        file.write(content.data)
        self.digest.update(content.data)
        self.lengths.append(len(array))

    def _write_header(self, file: IO[bytes]) -> None:
        """NumPy pads the header so that a longer first axis fits into the same bytes."""
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (sum(self.lengths), *self.shape)}
        np.lib.format.write_array_header_1_0(file, header)


def _load_folder(folder: Path) -> Experience:
    manifest = _read_manifest(folder)
    if manifest.get("format") != FORMAT:
        raise DatasetError(
            f"{folder} has format {manifest.get('format')!r}; lapwing {__version__} reads format {FORMAT}"
        )
    observations, lengths = (
        _memory_mapped(folder / "observations.npy"),
        np.array(_memory_mapped(folder / "lengths.npy")),
    )
    table = np.array(_memory_mapped(folder / "table.npy")) if (folder / "table.npy").is_file() else None
    kinds = (np.float32, np.uint8) if observations.ndim == 4 else (np.float32,)
    if observations.ndim > 1 and observations.dtype not in kinds:
        raise DatasetError(
            f"{folder / 'observations.npy'} holds {observations.dtype} of shape {observations.shape}; only "
            "float32, and images of bytes, can be learned from without loading them: write it again with "
            "lapwing.save_episodes"
        )
    digest = hashlib.sha256()
    try:
        experience = Experience(
            observations,
            lengths,
            table,
            on_chunk=lambda chunk: digest.update(np.ascontiguousarray(chunk).data),
        )
    except DatasetError as error:
        raise DatasetError(f"{folder}: {error}") from error
    _seal(digest, observations.shape, lengths, table)
    if manifest.get("sha256", digest.hexdigest()) != digest.hexdigest():
        raise DatasetError(
            f"{folder} is damaged: its content does not match the SHA-256 in {MANIFEST} "
            "(if you changed it on purpose, leave sha256 out of it)"
        )
    return experience


def _memory_mapped(path: Path) -> np.ndarray:
    if not path.is_file():
        raise DatasetError(f"no data file {path}; the folder is incomplete")
    try:
        with path.open("rb") as file:
            if read_header(path, path.name, file).n_bytes > path.stat().st_size - file.tell():
                raise ValueError("it says more than it holds")
        return np.lib.format.open_memmap(path, mode="r")
    except DatasetError:
        raise
    except Exception as error:  # damaged bytes make numpy raise nearly anything
        raise DatasetError(f"{path} is damaged or not a plain .npy file ({error})") from error
