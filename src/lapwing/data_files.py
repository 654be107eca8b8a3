"""Experience in files: an .npz archive, or a folder of .npy files for what is larger than memory.

Both are checked when they are read: shapes, NaN, and the SHA-256 that they carry. Nothing in them is run.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from lapwing._version import __version__
from lapwing.archives import names_in, read_archive
from lapwing.errors import DatasetError, StorageError
from lapwing.experience import Experience
from lapwing.storage import make_folder, read_json, remove, write_atomically, write_json

MANIFEST = "manifest.json"
FORMAT = 1
_KIND = "lapwing experience"
_ARCHIVED = ("observations", "lengths", "ends", "terminals", "timeouts", "table", "sha256")


def load_experience(path: str | Path) -> Experience:
    """Read an .npz file, or a folder that `save_episodes` wrote, whose observations are mapped, not loaded.

    An .npz file holds `observations` with `lengths`, or with `ends`, or with `terminals` and `timeouts`;
    docs/data.md has the layout. Pickled content is refused, never run.
    """
    path = Path(path)
    if is_data_folder(path):
        return _load_folder(path)
    if not path.is_file():
        raise DatasetError(f"no data file {path}")
    arrays = read_archive(path, _ARCHIVED)
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
    marks = [arrays[name].reshape(-1).astype(bool) for name in _ARCHIVED[2:5] if name in arrays]
    if not marks:
        held = ", ".join(names_in(path))
        raise DatasetError(f"there is no array 'lengths' and no 'ends'; it holds {held}: add one of them")
    if "table" in arrays:
        raise DatasetError("a table goes with lengths, not with ends; add the array 'lengths'")
    for mark in marks:
        if len(mark) != len(arrays["observations"]):
            raise DatasetError(
                f"ends are {len(mark)}, and there are {len(arrays['observations'])} observations"
            )
    return Experience.from_ends(arrays["observations"], np.logical_or.reduce(marks))


def _nothing_observed(names: Iterable[str]) -> str:
    held = sorted(names)
    if "actions" in held:
        return "it holds actions but no observations, and φ is learned from what was observed: add the array"
    return f"there is no array 'observations'; it holds {', '.join(held) or 'nothing'}"


def is_data_folder(path: Path) -> bool:
    """Whether `path` is a folder of experience."""
    return (path / MANIFEST).is_file()


def save_episodes(folder: str | Path, episodes: Iterable[ArrayLike]) -> Experience:
    """Write episodes, one after the other as they come, to a folder that need not fit into memory.

    Args:
        folder: a new or empty one, or one of an earlier call, which is replaced.
        episodes: arrays of observations, one an episode, from a generator for instance.

    Returns:
        The experience, mapped from the folder.

    Example:
        >>> import tempfile
        >>> episodes = (np.full((10, 2), i) for i in range(100))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_episodes(folder, episodes).n_transitions
        900
    """
    folder = Path(folder)
    _check_free(folder)
    make_folder(folder)
    remove(folder / MANIFEST)
    writer = _EpisodeWriter(iter(episodes))
    write_atomically(folder / "observations.npy", writer.write)
    write_atomically(folder / "lengths.npy", lambda file: np.save(file, np.array(writer.lengths, np.int64)))
    manifest = {"kind": _KIND, "format": FORMAT, "version": __version__, "sha256": writer.digest.hexdigest()}
    write_json(folder / MANIFEST, manifest)
    return load_experience(folder)


def _check_free(folder: Path) -> None:
    if folder.is_file():
        raise StorageError(f"{folder} is a file; name a folder")
    known = {MANIFEST, "observations.npy", "lengths.npy", "table.npy"}
    others = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    foreign = sorted(name for name in others if name not in known and not name.startswith("."))
    if foreign:
        raise StorageError(f"{folder} is not empty (it holds {foreign[0]}); name another folder")


class _EpisodeWriter:
    """Writes one .npy file, episode by episode; its header is written again when their number is known."""

    def __init__(self, episodes: Any):
        self._episodes = episodes
        self.lengths: list[int] = []
        self.digest = hashlib.sha256()

    def write(self, file: IO[bytes]) -> None:
        shape, dtype = None, None
        for number, episode in enumerate(self._episodes):
            array = self._learnable(number, episode)
            if shape is None:
                shape, dtype = array.shape[1:], array.dtype
                _write_header(file, 0, shape, dtype)
            if (array.shape[1:], array.dtype) != (shape, dtype):
                raise DatasetError(
                    f"episode {number} has observations of shape {array.shape[1:]} and {array.dtype}, "
                    f"episode 0 of {shape} and {dtype}; give all the same"
                )
            content = np.ascontiguousarray(array)
            file.write(content.data)
            self.digest.update(content.data)
            self.lengths.append(len(array))
        if shape is None:
            raise DatasetError("there are no episodes; give at least one of two observations")
        file.seek(0)
        _write_header(file, sum(self.lengths), shape, dtype)

    def _learnable(self, number: int, episode: ArrayLike) -> np.ndarray:
        """As it will be learned from; an episode that cannot be is named."""
        try:
            array = np.asarray(episode)
            checked = Experience(array, [len(array)] if array.ndim else [])
        except (DatasetError, ValueError) as error:
            raise DatasetError(f"episode {number}: {error}") from error
        return checked.observations


def _write_header(file: IO[bytes], rows: int, shape: tuple[int, ...], dtype: Any) -> None:
    """NumPy pads the header so that a longer first axis fits into the same bytes."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, *shape)}
    np.lib.format.write_array_header_1_0(file, header)


def _load_folder(folder: Path) -> Experience:
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise DatasetError(
            f"{folder / MANIFEST} does not describe experience; lapwing.save_episodes writes it"
        )
    if manifest.get("format") != FORMAT:
        raise DatasetError(
            f"{folder} has format {manifest.get('format')!r}; lapwing {__version__} reads format {FORMAT}"
        )
    observations, lengths = (_mapped(folder / f"{name}.npy") for name in ("observations", "lengths"))
    table = _mapped(folder / "table.npy") if (folder / "table.npy").is_file() else None
    if observations.ndim > 1 and observations.dtype not in (np.float32, np.uint8):
        raise DatasetError(
            f"{folder / 'observations.npy'} holds {observations.dtype}; only float32 and bytes can be "
            "learned from without loading them: write it again with lapwing.save_episodes"
        )
    digest = hashlib.sha256()
    try:
        experience = Experience(
            observations, np.array(lengths), table, on_piece=lambda p: digest.update(p.data)
        )
    except DatasetError as error:
        raise DatasetError(f"{folder}: {error}") from error
    if manifest.get("sha256", digest.hexdigest()) != digest.hexdigest():
        raise DatasetError(
            f"{folder / 'observations.npy'} is damaged: its content does not match the SHA-256 in {MANIFEST}"
        )
    return experience


def _mapped(path: Path) -> np.ndarray:
    if not path.is_file():
        raise DatasetError(f"no data file {path}; the folder is incomplete")
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # damaged bytes make numpy raise nearly anything
        raise DatasetError(f"{path} is damaged or not a plain .npy file ({error})") from error
