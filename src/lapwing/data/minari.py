"""Reading Minari data sets that may come from anyone, without Minari.

Minari rebuilds the environment of a data set that does not carry its spaces, and so imports whatever module
the data set names. Here the spaces must be in the metadata, and no environment is ever made. Whatever is
wrong ends in a `DatasetError`.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces

from lapwing.data.archives import MOST_BYTES
from lapwing.data.hdf5 import Column, check_together, child, opened
from lapwing.data.observations import View, view_of
from lapwing.errors import ConfigError, DatasetError, LapwingWarning, nearest
from lapwing.storage import file_sha256

_METADATA, _DATA = "metadata.json", "main_data.hdf5"
_MOST_METADATA = 2**26
_SPACES = ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Text", "Dict", "Tuple")
_DTYPES = tuple(np.dtype(code).name for code in "?bBhHiIqQefd")
_JPEG_SIDE = 32
_AGAIN = "download or collect it again"


@dataclass(frozen=True)
class MinariData:
    """A Minari data set on disk, whose metadata and numbering have been checked.

    Args:
        name: the id or path that it was opened by.
        path: its folder.
        observation_space: as its metadata describes it.
        n_episodes: how many there are.
        n_steps: how many steps they have in all, by the metadata.
        jpeg_encoding: whether images of 32 by 32 pixels or more are kept as JPEG.
    """

    name: str
    path: Path
    observation_space: gymnasium.Space
    n_episodes: int
    n_steps: int
    jpeg_encoding: bool

    def episodes(self, key: str | None = None) -> Iterator[Any]:
        """The observations of each episode, one more than its steps: an array, or a dict or tuple of them.

        Args:
            key: of Dict observations the one part to read; the others are never looked at.
        """
        space = self._space_of(key)
        if self.jpeg_encoding and _holds_jpeg(space):
            warnings.warn(
                f"minari:{self.name} keeps images as JPEG, which loses detail: they are not quite what the "
                "agent saw; write it with jpeg_encoding=False to keep them exactly",
                LapwingWarning,
                stacklevel=2,
            )
        return self._read(space)

    def read(self, key: str | None = None) -> tuple[View, np.ndarray, np.ndarray]:
        """How φ sees the observations, all of them one a row as the space has them, and episodes' lengths.

        Args:
            key: of Dict observations the part that φ sees.
        """
        view = view_of(self.observation_space, key)
        picked: list[np.ndarray] = []
        held = 0
        for episode in self.episodes(key):
            picked.append(np.asarray(view.pick(episode)))
            held += picked[-1].nbytes
            if held > MOST_BYTES:
                raise DatasetError(
                    f"minari:{self.name} holds more than {MOST_BYTES / 2**30:.0f} GiB of observations; write "
                    "them to a folder with lapwing.save_episodes, which need not fit into memory"
                )
        return view, np.concatenate(picked), np.array([len(episode) for episode in picked])

    def digest(self) -> str:
        """A SHA-256 that stands for the metadata and the data."""
        paths = [_file_in(self.path, name) for name in (_METADATA, _DATA)]
        lines = [f"{path.name} {file_sha256(path)}\n" for path in paths]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def _space_of(self, key: str | None) -> gymnasium.Space:
        space = self.observation_space
        if key is None:
            return space
        known = space.spaces if isinstance(space, spaces.Dict) else {}
        if key not in known:
            hint = nearest(key, known) if known else f"they are {type(space).__name__}, which has no parts"
            raise ConfigError(f"the observations of minari:{self.name} have no part {key!r}; {hint}")
        return spaces.Dict({key: known[key]})

    def _read(self, space: gymnasium.Space) -> Iterator[Any]:
        with opened(_file_in(self.path, _DATA)) as file:
            for number in range(self.n_episodes):
                where = f"minari:{self.name}, episode {number}"
                columns = self._columns(child(file, f"episode_{number}/observations", where), space, where)
                check_together(where, jax.tree.leaves(columns))
                yield jax.tree.map(Column.read, columns)

    def _columns(self, node: Any, space: gymnasium.Space, where: str) -> Any:
        """The columns that the space asks for, nested as it is."""
        if isinstance(space, spaces.Dict):
            return {
                key: self._columns(child(node, key, where), part, f"{where}, part {key!r}")
                for key, part in space.spaces.items()
            }
        if isinstance(space, spaces.Tuple):
            return tuple(
                self._columns(child(node, f"_index_{index}", where), part, f"{where}, part {index}")
                for index, part in enumerate(space.spaces)
            )
        return Column(node, space, where, self.jpeg_encoding and _is_jpeg(space))


def open_minari(name: str) -> MinariData:
    """Open a Minari data set; nothing in it is run, and no environment is made.

    Args:
        name: an id such as `point/umaze-v0`, looked up in MINARI_DATASETS_PATH or ~/.minari/datasets, or
            the path of a data set's folder, which begins with `./` or is absolute.

    Example:
        >>> open_minari("point/../../umaze-v0")
        Traceback (most recent call last):
        lapwing.errors.DatasetError: minari:point/../../umaze-v0 is neither an id nor a path; ...
    """
    name = name.removeprefix("minari:")
    try:
        return _open(name, _folder(name))
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go round in a circle
        raise DatasetError(f"minari:{name} cannot be read ({error}); check the path") from error


def _open(name: str, folder: Path) -> MinariData:
    path = _file_in(folder, _METADATA)
    metadata = _read_metadata(path)
    _check_metadata(name, path, metadata)
    try:
        space = space_from_json(metadata["observation_space"])
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from error
    counts = metadata["total_episodes"], metadata["total_steps"]
    _check_numbering(name, _file_in(folder, _DATA), counts[0])
    return MinariData(name, folder, space, *counts, bool(metadata.get("jpeg_encoding", True)))


def _folder(name: str) -> Path:
    if Path(name).is_absolute() or name.startswith("./"):
        if not Path(name).is_dir():
            raise DatasetError(f"minari:{name} is not a folder; check the path")
        return Path(name)
    if "\\" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise DatasetError(
            f"minari:{name} is neither an id nor a path; an id is like point/umaze-v0, "
            "and a path is absolute or begins with ./"
        )
    root = Path(os.environ.get("MINARI_DATASETS_PATH") or "~/.minari/datasets").expanduser()
    if not (root / name).is_dir():
        found = [path.parent.parent.relative_to(root).as_posix() for path in root.rglob(f"data/{_METADATA}")]
        hint = nearest(name, sorted(found)) if found else "there is none; minari download fetches one"
        raise DatasetError(f"no Minari data set {name!r} in {root}; {hint}")
    return root / name


def _file_in(folder: Path, name: str) -> Path:
    """A file of the data set, in the folder `data` of its own or, if that was given, there."""
    data = folder / "data" if (folder / "data").is_dir() else folder
    path = data / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DatasetError(f"{path} is a link that leaves the data set's folder; put the file itself there")
    if path.is_file():
        return path
    if (data / _DATA).is_file():
        raise DatasetError(f"{path} is missing; save the data set again with Minari 0.5 or later")
    raise DatasetError(f"{path} is missing, and so {folder} is no Minari data set; check its name")


def _read_metadata(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST_METADATA:
        raise DatasetError(f"{path} has {path.stat().st_size:,} bytes, too many for metadata; {_AGAIN}")
    try:
        metadata = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(metadata, dict):
        raise DatasetError(f"{path} is damaged: it is not a JSON object; {_AGAIN}")
    return metadata


def _check_metadata(name: str, path: Path, metadata: dict[str, Any]) -> None:
    if metadata.get("data_format") != "hdf5":
        raise DatasetError(
            f"minari:{name} has the data_format {metadata.get('data_format')!r}, and lapwing reads 'hdf5'; "
            "write it again with minari.create_dataset_from_buffers(..., data_format='hdf5')"
        )
    if metadata.get("observation_space") is None:
        raise DatasetError(
            f"{path} has no observation_space, and lapwing never makes the environment to ask for it, since "
            "that would run what the data set names; save the data set with observation_space"
        )
    if not isinstance(metadata["observation_space"], str):
        raise DatasetError(f"{path} is damaged: observation_space is not text; {_AGAIN}")
    for key in ("total_episodes", "total_steps"):
        if type(metadata.get(key)) is not int or metadata[key] < 0:
            raise DatasetError(f"{path} is damaged: {key} is {metadata.get(key)!r}; {_AGAIN}")
    if not metadata["total_episodes"]:
        raise DatasetError(f"minari:{name} holds no episodes; collect some first")


def _check_numbering(name: str, path: Path, n_episodes: int) -> None:
    with opened(path) as file:
        names = set(file)
    for number in range(n_episodes):
        if f"episode_{number}" not in names:
            raise DatasetError(
                f"minari:{name} has no episode_{number}, though its metadata counts {n_episodes:,}; {_AGAIN}"
            )
    if len(names) > n_episodes:
        surplus = min(names - {f"episode_{number}" for number in range(n_episodes)})
        raise DatasetError(
            f"minari:{name} holds {surplus!r} beside the {n_episodes:,} episodes of its metadata; {_AGAIN}"
        )


def space_from_json(text: str) -> gymnasium.Space:
    """The space that Minari's `serialize_space` wrote; only the kinds in `_SPACES` are made.

    Example:
        >>> space_from_json('{"type": "Discrete", "dtype": "int64", "start": 0, "n": 4}')
        Discrete(4)
    """
    try:
        return _space(json.loads(text))
    except DatasetError:
        raise
    except Exception as error:  # Gymnasium asserts, numpy and json raise
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)[:200]
        raise DatasetError(f"its observation_space is damaged ({reason})") from error


def _space(described: dict[str, Any]) -> gymnasium.Space:
    match described["type"]:
        case "Box":
            return _box(described, _dtype(described))
        case "Discrete":
            return spaces.Discrete(described["n"], start=described["start"])
        case "MultiDiscrete":
            dtype = _dtype(described)
            counts, start = (np.array(described[name], dtype) for name in ("nvec", "start"))
            return spaces.MultiDiscrete(counts, dtype.type, start=start)
        case "MultiBinary":
            return spaces.MultiBinary(described["n"])
        case "Text":
            lengths = described["max_length"], described["min_length"]
            return spaces.Text(lengths[0], min_length=lengths[1], charset=described["charset"])
        case "Dict":
            return spaces.Dict({key: _space(part) for key, part in described["subspaces"].items()})
        case "Tuple":
            return spaces.Tuple([_space(part) for part in described["subspaces"]])
    raise DatasetError(
        f"its observation_space has the type {described['type']!r}, and lapwing reads {', '.join(_SPACES)}; "
        "save the observations as one of these"
    )


def _box(described: dict[str, Any], dtype: np.dtype) -> gymnasium.Space:
    low, high = (np.array(described[bound], dtype) for bound in ("low", "high"))
    if not list(low.shape) == list(high.shape) == described["shape"]:
        raise ValueError(f"bounds of shape {low.shape} and {high.shape} for {described['shape']}")
    return spaces.Box(low, high, low.shape, dtype.type)


def _dtype(described: dict[str, Any]) -> np.dtype:
    if described["dtype"] not in _DTYPES:
        raise ValueError(f"dtype {described['dtype']!r}")
    return np.dtype(described["dtype"])


def _is_jpeg(space: gymnasium.Space) -> bool:
    """Whether Minari takes it for an image, as its `is_image_space` does, and so would store it as JPEG."""
    return (
        isinstance(space, spaces.Box)
        and space.dtype == np.uint8
        and len(space.shape) in (2, 3)
        and min(space.shape[:2]) >= _JPEG_SIDE
        and bool((space.low == 0).all())
        and bool((space.high == 255).all())
    )


def _holds_jpeg(space: gymnasium.Space) -> bool:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return any(map(_holds_jpeg, parts))
    return _is_jpeg(space)
