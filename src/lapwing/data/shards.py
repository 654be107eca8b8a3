"""Experience in shards: a folder of folders of `save_episodes`, for several processes to learn from.

A shard is read by one process. The manifest of the whole, written last, holds the digest of each.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lapwing._version import __version__
from lapwing.data.episodes import FIELDS
from lapwing.data.experience import Experience
from lapwing.data.files import load_experience
from lapwing.data.folders import (
    EXPERIENCE,
    MANIFEST,
    SHARDS,
    UNFINISHED,
    kind_of_folder,
    load_folder,
    save_episodes,
)
from lapwing.errors import ConfigError, DatasetError, StorageError
from lapwing.progress import OnChunk, report_begin
from lapwing.storage import (
    file_sha256,
    make_folder,
    names_in,
    read_json,
    remove,
    remove_tree,
    write_bytes,
    write_json,
)

FORMAT = 1


def is_sharded(path: Path) -> bool:
    """Whether `path` is a folder of shards."""
    return kind_of_folder(path) == SHARDS


def shard(
    source: str | Path,
    shards: int,
    out: str | Path | None = None,
    *,
    keys: Mapping[str, str] | None = None,
    on_shard: OnChunk | None = None,
) -> Path:
    """Write the episodes of `source` as so many shards; they differ by at most one episode in size.

    Args:
        source: a folder of `save_episodes`, or a file of experience.
        shards: how many.
        out: the folder; SOURCE-shards if it is not given. Only shards of an interrupted call may be in it.
        keys: the names of the arrays in a file, if they differ: `{"observations": "obs"}`.
        on_shard: called after each shard with (done, all, {}).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save_episodes(f"{folder}/walks", [np.zeros((5, 2))] * 6)
        ...     load_shard(shard(f"{folder}/walks", 3), 0).n_episodes
        2
    """
    source = Path(source)
    experience = load_experience(source, keys)
    if experience.table is not None or experience.observations.ndim < 2:
        raise DatasetError(
            f"{source} holds enumerated states, whose counts fit into one process; learn from it as it is"
        )
    if not 1 <= shards <= experience.n_episodes:
        raise ConfigError(
            f"shards must be between 1 and the {experience.n_episodes:,} episodes of {source}, not {shards}"
        )
    name = source.name if source.is_dir() else source.stem
    folder = source.with_name(f"{name}-shards") if out is None else Path(out)
    _clear(folder)
    report_begin(on_shard, shards)
    owners = _owners(experience.lengths, shards)
    for number in range(shards):
        save_episodes(folder / _name(number), _episodes(experience, owners == number))
        if on_shard:
            on_shard(number + 1, shards, {})
    join_shards(folder)
    remove(folder / UNFINISHED)
    return folder


def join_shards(folder: str | Path) -> Path:
    """Describe the shards in a folder, `shard-000` and so on, each of which `save_episodes` wrote.

    `shard` does it at its end. Call it yourself where every shard was written by a process of its own.
    """
    folder = Path(folder)
    found = {name for name in names_in(folder) if name.startswith("shard-")}
    names = [_name(number) for number in range(len(found))]
    if not names or found != set(names):
        other = ", ".join(sorted(found - set(names))[:3]) or "no shards"
        raise DatasetError(f"{folder} holds {other}; give shard-000, shard-001 and so on")
    for name in names:
        if kind_of_folder(folder / name) != EXPERIENCE:
            raise DatasetError(f"{folder / name} holds no experience; lapwing.save_episodes writes it")
    digests = [file_sha256(folder / name / MANIFEST) for name in names]
    described = {"kind": SHARDS, "format": FORMAT, "version": __version__, "shards": digests}
    write_json(folder / MANIFEST, described)
    return folder


def shard_count(folder: Path) -> int:
    """How many shards there are."""
    return len(_digests(folder))


def load_shard(folder: Path, number: int) -> Experience:
    """One shard, memory-mapped; one that is not what the manifest describes is refused."""
    path = folder / _name(number)
    if not (path / MANIFEST).is_file():
        raise DatasetError(f"no shard {path}; copy it there, or write the shards again")
    if file_sha256(path / MANIFEST) != _digests(folder)[number]:
        raise DatasetError(f"{path} is not the shard that {folder / MANIFEST} describes; write them again")
    return load_folder(path)


def _digests(folder: Path) -> list[str]:
    path = folder / MANIFEST
    manifest: dict[str, Any] = read_json(path)
    if manifest.get("format") != FORMAT:
        raise DatasetError(
            f"{path} has format {manifest.get('format')!r}; lapwing {__version__} reads format {FORMAT}"
        )
    found = manifest.get("shards")
    if not isinstance(found, list) or not found or not all(isinstance(digest, str) for digest in found):
        raise DatasetError(f"{path} is damaged: it does not describe shards; write them again")
    return found


def _name(number: int) -> str:
    return f"shard-{number:03d}"


def _owners(lengths: np.ndarray, shards: int) -> np.ndarray:
    """Which shard each episode goes to: in turn where all are as long, else to the smallest so far."""
    if len(np.unique(lengths)) == 1:
        return np.arange(len(lengths)) % shards
    owners, sizes = np.zeros(len(lengths), np.int64), np.zeros(shards, np.int64)
    for episode, length in enumerate(lengths):
        owners[episode] = np.argmin(sizes)
        sizes[owners[episode]] += length - 1
    return owners


def _episodes(experience: Experience, chosen: np.ndarray) -> Iterator[dict[str, np.ndarray]]:
    begins = experience.ends + 1 - experience.lengths
    arrays = {name: getattr(experience, name) for name in FIELDS}
    for begin, length in zip(begins[chosen], experience.lengths[chosen], strict=True):
        rows = slice(int(begin), int(begin + length))
        yield {name: np.array(array[rows]) for name, array in arrays.items() if array is not None}


def _clear(folder: Path) -> None:
    """A folder to write shards to: a new or empty one, or one in which writing them was interrupted."""
    visible = [name for name in names_in(folder) if not name.startswith(".")]
    ours = (folder / UNFINISHED).is_file()
    if is_sharded(folder) and not ours:
        raise StorageError(f"{folder} holds shards already; delete it, or name another folder with --out")
    earlier = [name for name in visible if ours and (name == MANIFEST or name.startswith("shard-"))]
    if foreign := [name for name in visible if name not in earlier]:
        raise StorageError(f"{folder} is not empty (it holds {foreign[0]}); name another folder with --out")
    make_folder(folder)
    write_bytes(folder / UNFINISHED, b"")
    remove(folder / MANIFEST)
    for name in names_in(folder):
        if name.startswith("shard-"):
            remove_tree(folder / name)
