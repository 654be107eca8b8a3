"""Experience in a folder of .npy files, which may be larger than memory: written as a stream, memory-mapped.

A folder is validated when it is read: shapes, NaN, and the SHA-256 in its manifest, which is written last.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from lapwing._version import __version__
from lapwing.data.archives import read_header
from lapwing.data.episodes import FIELDS, Episode, checked_episode, no_episodes
from lapwing.data.experience import Experience
from lapwing.data.memory_map import chunks
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
EXPERIENCE, SHARDS = "lapwing experience", "lapwing shards"
_FILES = tuple(f"{name}.npy" for name in (*FIELDS, "lengths", "table"))


def is_data_folder(path: Path) -> bool:
    """Whether `path` is a folder of experience."""
    try:
        return (path / MANIFEST).is_file()
    except OSError:  # no file can have such a name
        return False


def kind_of_folder(path: Path) -> str | None:
    """What the manifest of a folder says it holds; None where there is no manifest, or a damaged one."""
    try:
        manifest = read_json(path / MANIFEST) if is_data_folder(path) else None
    except (CheckpointError, StorageError):
        return None
    return manifest.get("kind") if isinstance(manifest, dict) else None


def without_manifest(folder: Path) -> str:
    """What to say of a folder that `save_episodes` has not finished, or never wrote."""
    return (
        f"no data file {folder}: the folder has no {MANIFEST}, which lapwing.save_episodes writes at its "
        "end; name a file in it, or save the episodes with lapwing.save_episodes"
    )


def save_episodes(folder: str | Path, episodes: Iterable[ArrayLike | Mapping[str, ArrayLike]]) -> Experience:
    """Stream episodes, one at a time, to a folder that need not fit into memory.

    Args:
        folder: a new or empty one, or one of an earlier call, which is replaced when everything is written.
        episodes: an iterable, for instance a generator, of arrays of observations or of dicts with
            `observations`, `actions` and `rewards`, as for `Experience.from_episodes`.

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
    _check_free(folder)
    writer = _EpisodeWriter(iter(episodes))
    make_folder(folder)
    for name in _FILES:
        remove_leftovers(folder, name)

    def write(*files: IO[bytes]) -> None:
        writer.write(*files)
        write_bytes(folder / UNFINISHED, b"")
        for name in (MANIFEST, *_FILES):  # from here on the earlier data is gone
            remove(folder / name)

    _write_together([folder / f"{column.name}.npy" for column in writer.columns], write)
    lengths = np.array(writer.lengths, np.int64)
    write_atomically(folder / "lengths.npy", lambda file: np.save(file, lengths))
    seen, *others = writer.columns
    _seal(seen.digest, (seen.rows, *seen.shape), lengths, None)
    for column in others:
        seen.digest.update(column.described().encode() + column.digest.digest())
    manifest = {
        "kind": EXPERIENCE,
        "format": FORMAT,
        "version": __version__,
        "sha256": seen.digest.hexdigest(),
    }
    write_json(folder / MANIFEST, manifest)
    remove(folder / UNFINISHED)
    return load_folder(folder)


def _seal(digest: Any, shape: tuple[int, ...], lengths: np.ndarray, table: np.ndarray | None) -> None:
    """Add what is known only after the last observation."""
    digest.update(f"{shape}".encode())
    digest.update(lengths.astype("<i8").tobytes())
    if table is not None:
        digest.update(f"{table.dtype}{table.shape}".encode() + table.tobytes())


def _check_free(folder: Path) -> None:
    if folder.is_file():
        raise StorageError(f"{folder} is a file; name a folder")
    known = {MANIFEST, *_FILES} if _is_ours(folder) else set()
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
    if isinstance(manifest, dict) and manifest.get("kind") == SHARDS:
        raise DatasetError(
            f"{folder} holds shards, which lapwing learn takes; name one of them, {folder / 'shard-000'}"
        )
    if not isinstance(manifest, dict) or manifest.get("kind") != EXPERIENCE:
        raise DatasetError(
            f"{folder / MANIFEST} does not describe experience; lapwing.save_episodes writes it"
        )
    return manifest


class _Column:
    """One .npy file, written row after row; its header is written again when their number is known."""

    def __init__(self, name: str):
        self.name, self.rows = name, 0
        self.shape: tuple[int, ...] = ()
        """Of one row."""
        self.digest = hashlib.sha256()
        self._dtype: Any = None

    def add(self, file: IO[bytes], episode: int, array: np.ndarray) -> None:
        if not self.rows:
            self.shape, self._dtype = array.shape[1:], array.dtype
            self._write_header(file)
        if (array.shape[1:], array.dtype) != (self.shape, self._dtype):
            raise DatasetError(
                f"episode {episode} has {self.name} of shape {array.shape[1:]} and {array.dtype}, "
                f"episode 0 of {self.shape} and {self._dtype}; give all the same"
            )
        content = np.ascontiguousarray(array)
        file.write(content.data)
        self.digest.update(content.data)
        self.rows += len(array)

    def finish(self, file: IO[bytes]) -> None:
        file.seek(0)
        self._write_header(file)

    def described(self) -> str:
        """As the digest of the folder has it."""
        return f"{self.name}{self._dtype}{(self.rows, *self.shape)}"

    def _write_header(self, file: IO[bytes]) -> None:
        """NumPy pads the header so that a longer first axis fits into the same bytes."""
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (self.rows, *self.shape)}
        np.lib.format.write_array_header_1_0(file, header)


class _EpisodeWriter:
    """Writes a file for each field of the episodes, which the first of them tells."""

    def __init__(self, episodes: Iterator[Any]):
        self._episodes = episodes
        self.lengths: list[int] = []
        self._first = self._next()
        if self._first is None:
            raise DatasetError(no_episodes())
        self.columns = [_Column(name) for name in FIELDS if getattr(self._first, name) is not None]

    def write(self, *files: IO[bytes]) -> None:
        episode, self._first = self._first, None
        while episode is not None:
            self._add(episode, files)
            episode = None  # or it would stay while the next one is made
            episode = self._next()
        for column, file in zip(self.columns, files, strict=True):
            column.finish(file)

    def _next(self) -> Episode | None:
        for episode in self._episodes:
            return checked_episode(len(self.lengths), episode)
        return None

    def _add(self, episode: Episode, files: Sequence[IO[bytes]]) -> None:
        names = [name for name in FIELDS if getattr(episode, name) is not None]
        if names != [column.name for column in self.columns]:
            raise DatasetError(
                f"episode {len(self.lengths)} has {', '.join(names)}, and episode 0 "
                f"{', '.join(column.name for column in self.columns)}; give the same to all"
            )
        for column, file in zip(self.columns, files, strict=True):
            column.add(file, len(self.lengths), getattr(episode, column.name))
        self.lengths.append(len(episode.observations))


def _write_together(
    paths: Sequence[Path], fill: Callable[..., object], files: tuple[IO[bytes], ...] = ()
) -> None:
    """Let `fill` write several files at once; they appear one after the other when it is done."""
    if not paths:
        fill(*files)
        return
    write_atomically(paths[-1], lambda file: _write_together(paths[:-1], fill, (file, *files)))


def load_folder(folder: Path) -> Experience:
    """The experience in a folder that `save_episodes` wrote, memory-mapped."""
    manifest = _read_manifest(folder)
    if manifest.get("format") != FORMAT:
        raise DatasetError(
            f"{folder} has format {manifest.get('format')!r}; lapwing {__version__} reads format {FORMAT}"
        )
    observations, lengths = (
        _memory_mapped(folder / "observations.npy"),
        np.array(_memory_mapped(folder / "lengths.npy")),
    )
    table, actions, rewards = (
        _memory_mapped(folder / name) if (folder / name).is_file() else None
        for name in ("table.npy", "actions.npy", "rewards.npy")
    )
    table = None if table is None else np.array(table)
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
            actions=actions,
            rewards=rewards,
            on_chunk=lambda chunk: digest.update(np.ascontiguousarray(chunk).data),
        )
    except DatasetError as error:
        raise DatasetError(f"{folder}: {error}") from error
    _seal(digest, observations.shape, lengths, table)
    for name, array in (("actions", actions), ("rewards", rewards)):
        if array is not None:
            digest.update(f"{name}{array.dtype}{array.shape}".encode() + _digest_of(array))
    if manifest.get("sha256", digest.hexdigest()) != digest.hexdigest():
        raise DatasetError(
            f"{folder} is damaged: its content does not match the SHA-256 in {MANIFEST}; copy it again, or "
            "write it anew with lapwing.save_episodes"
        )
    return experience


def _digest_of(array: np.ndarray) -> bytes:
    digest = hashlib.sha256()
    for _, chunk in chunks(array):
        digest.update(np.ascontiguousarray(chunk).data)
    return digest.digest()


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
