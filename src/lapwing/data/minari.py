"""Reading untrusted Minari data sets, without Minari.

If a data set does not contain its spaces, Minari rebuilds its environment, and so imports whatever module the
data set names. Here the spaces must be in the metadata, and no environment is ever created. Every problem
ends in a `DatasetError`.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from lapwing.data.archives import MOST_BYTES
from lapwing.data.hdf5 import Column, check_together, child, holds, opened
from lapwing.data.minari_spaces import space_from_json
from lapwing.data.observations import View, view_of
from lapwing.errors import ConfigError, DatasetError, LapwingWarning, nearest, warn
from lapwing.storage import file_sha256

_METADATA, _DATA = "metadata.json", "main_data.hdf5"
_MOST_METADATA = 2**26
_KEPT_ACTIONS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
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
        action_space: as its metadata describes it, if actions of it can be kept: numbers, not words or parts.
    """

    name: str
    path: Path
    observation_space: gymnasium.Space
    n_episodes: int
    n_steps: int
    jpeg_encoding: bool
    action_space: gymnasium.Space | None = None

    def episodes(self, key: str | None = None) -> Iterator[Any]:
        """The observations of each episode, one more than its steps: an array, or a dict or tuple of them.

        Args:
            key: of Dict observations the one part to read; the others are never read.
        """
        space = self._space_of(key)
        self._warn_of_jpeg(space)
        return (episode.observations for episode in self._read(space, followed=False))

    def read(self, key: str | None = None) -> "Recorded":
        """All episodes: what φ sees of them, and the actions and rewards that there are.

        Args:
            key: of Dict observations the part that φ sees.
        """
        view, episodes, held = view_of(self.observation_space, key), [], 0
        self._warn_of_jpeg(self._space_of(key))
        for episode in self._read(self._space_of(key), followed=True):
            episodes.append(episode._replace(observations=np.asarray(view.pick(episode.observations))))
            held += sum(array.nbytes for array in episodes[-1] if array is not None)
            if held > MOST_BYTES:
                raise DatasetError(
                    f"minari:{self.name} holds more than {MOST_BYTES / 2**30:.0f} GiB of observations; write "
                    "them to a folder with lapwing.save_episodes, which need not fit into memory"
                )
        picked, actions, rewards = zip(*episodes, strict=True)
        lengths = np.array([len(episode) for episode in picked])
        return Recorded(view, np.concatenate(picked), lengths, _joined(actions), _joined(rewards))

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

    def _warn_of_jpeg(self, space: gymnasium.Space) -> None:
        if self.jpeg_encoding and _holds_jpeg(space):
            warn(
                f"minari:{self.name} keeps images as JPEG, which loses detail: they are not quite what the "
                "agent saw; write it with jpeg_encoding=False to keep them exactly",
                LapwingWarning,
            )

    def _read(self, space: gymnasium.Space, *, followed: bool) -> Iterator["_Episode"]:
        """The parts of observations that `space` has, with actions and rewards if they are asked for."""
        with opened(_file_in(self.path, _DATA)) as file:
            for number in range(self.n_episodes):
                where = f"minari:{self.name}, episode {number}"
                group = child(file, f"episode_{number}", where)
                columns = self._columns(child(group, "observations", where), space, where)
                leaves = list(_leaves(columns))
                check_together(where, leaves)
                episode = _Episode(_read_all(columns))
                if followed:
                    steps = len(leaves[0]) - 1
                    actions = _read_steps(group, "actions", self.action_space, steps, where)
                    rewards = _read_steps(group, "rewards", gymnasium.Space(()), steps, where)
                    episode = _Episode(episode.observations, actions, rewards)
                yield episode

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


def _leaves(columns: Any) -> Iterator[Column]:
    """The columns of a nest of dicts and tuples."""
    if isinstance(columns, Column):
        yield columns
        return
    for part in columns.values() if isinstance(columns, dict) else columns:
        yield from _leaves(part)


def _read_all(columns: Any) -> Any:
    """The arrays of a nest of columns, nested as these are."""
    if isinstance(columns, dict):
        return {key: _read_all(part) for key, part in columns.items()}
    return tuple(map(_read_all, columns)) if isinstance(columns, tuple) else columns.read()


class _Episode(NamedTuple):
    """One episode as it is stored."""

    observations: Any
    """An array, or a dict or tuple of them; one row more than steps."""
    actions: np.ndarray | None = None
    rewards: np.ndarray | None = None


class Recorded(NamedTuple):
    """All episodes of a data set."""

    view: View
    """How φ sees the observations."""
    picked: np.ndarray
    """What `view` picks of them, one a row as the space has them."""
    lengths: np.ndarray
    """How many observations each episode has."""
    actions: np.ndarray | None
    """One a transition, if all episodes have them."""
    rewards: np.ndarray | None


def _read_steps(
    group: Any, name: str, space: gymnasium.Space | None, steps: int, where: str
) -> np.ndarray | None:
    """What an episode holds one a step, or None."""
    if space is None or not holds(group, name):
        return None
    column = Column(child(group, name, where), space, f"{where}, {name},", jpeg=False)
    if len(column) != steps:
        raise DatasetError(f"{where} has {len(column)} {name} for {steps} steps; {_AGAIN}")
    return column.read()


def _joined(arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
    there = [array for array in arrays if array is not None]
    return np.concatenate(there) if len(there) == len(arrays) else None


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
    jpeg = bool(metadata.get("jpeg_encoding", True))
    return MinariData(name, folder, space, *counts, jpeg, _action_space(metadata.get("action_space")))


def _action_space(text: Any) -> gymnasium.Space | None:
    """The space of the actions, if they are numbers that can be kept one beside another."""
    if not isinstance(text, str):
        return None
    with suppress(DatasetError):
        space = space_from_json(text)
        return space if isinstance(space, _KEPT_ACTIONS) else None
    return None


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
