"""OGBench's data sets by name: from a local file, or regenerated for the point mazes.

Regenerated data follows the procedure of the benchmark in its own environments, with other random numbers: it
is not the published data. It is stored in the user's cache folder, with a digest.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np

from lapwing.data.experience import Experience
from lapwing.data.files import load_experience
from lapwing.data.point_mazes import walk
from lapwing.envs.ogbench import SIZES, PointMaze
from lapwing.errors import ConfigError, DatasetError, LapwingWarning, StorageError, nearest, warn
from lapwing.settings.checks import check_size, checked
from lapwing.storage import make_folder, user_cache

Progress = Callable[[int, int], None]
PREFIX = "ogbench:"
KINDS = ("navigate", "stitch")
RECIPE = 1
"""Raised when what is made of a name and a seed changes."""
_NAMES = tuple(f"pointmaze-{size}-{kind}-v0" for size in SIZES for kind in KINDS)
_OPTIONS = ("seed", "episodes")


@dataclass(frozen=True)
class OGBenchData:
    """A point-maze data set of OGBench that is made again.

    Args:
        name: as OGBench has it, `pointmaze-giant-navigate-v0` for instance.
        seed: of all random numbers.
        episodes: how many; None is as many as OGBench has.
    """

    name: str
    seed: int = 0
    episodes: int | None = None

    def __post_init__(self):
        """Refuse what cannot be made; a name from elsewhere could lead out of the cache folder."""
        if self.name not in _NAMES:
            raise ConfigError(
                f"ogbench:{self.name} cannot be made again, only the data of the point mazes can; "
                f"{_hint(str(self.name))}"
            )
        checked("seed", self.seed, whole=True, least=0, below=2**32)
        if self.episodes is not None:
            checked("episodes", self.episodes, whole=True, least=1, below=2**32)

    @property
    def size(self) -> tuple[int, int]:
        """How many episodes there are, and observations in each."""
        _, maze, kind, _ = self.name.split("-")
        if kind == "stitch":
            episodes, length = 5_000, 201
        else:
            episodes, length = (500, 2_001) if maze == "giant" else (1_000, 1_001)
        return self.episodes or episodes, length

    @property
    def path(self) -> Path:
        """Where it is kept."""
        fewer = "" if self.episodes is None else f".episodes{self.episodes}"
        return user_cache() / f"ogbench-{RECIPE}" / f"{self.name}.seed{self.seed}{fewer}.npz"

    def read(self, on_progress: Progress | None = None) -> Experience:
        """The experience; made if it is not there, or if what is there is damaged.

        Args:
            on_progress: called with (done, all) transitions while it is made.
        """
        if self.path.is_file():
            try:
                return self._checked(load_experience(self.path))
            except DatasetError as error:
                warn(f"{error}; it is made again", LapwingWarning)
        return self._make(on_progress)

    def _checked(self, experience: Experience) -> Experience:
        episodes, length = self.size
        if not np.array_equal(experience.lengths, np.full(episodes, length)):
            raise DatasetError(f"{self.path} does not hold {episodes:,} episodes of {length:,} observations")
        return experience

    def _make(self, on_progress: Progress | None) -> Experience:
        _, maze, kind, _ = self.name.split("-")
        kind, (episodes, length) = cast(Literal["navigate", "stitch"], kind), self.size
        check_size("episodes", 32 * episodes * length)  # noise, observations and actions
        walks = walk(PointMaze(maze), kind, episodes, length, self.seed, on_progress)
        seen, actions = (array.reshape(-1, 2) for array in walks)
        experience = Experience(seen, np.full(episodes, length), actions=actions)
        try:
            make_folder(self.path.parent)
            experience.save(self.path)
        except StorageError as error:
            raise StorageError(f"{error}; LAPWING_CACHE names another folder for what is made") from error
        return experience


def open_ogbench(name: str) -> Path | OGBenchData:
    """What an `ogbench:` target names: the path of a local file, or data that is made again.

    Args:
        name: a data set of OGBench, `-v0` may be left out; with `,seed=1` or `,episodes=250` it is made
            again by these, even if there is a file.

    Example:
        >>> open_ogbench("ogbench:pointmaze-giant-navigate,seed=1,episodes=20")
        OGBenchData(name='pointmaze-giant-navigate-v0', seed=1, episodes=20)
    """
    dataset, *options = name.removeprefix(PREFIX).split(",")
    if dataset in {known.removesuffix("-v0") for known in _NAMES}:
        dataset += "-v0"
    given = _read_options(name, options)
    file = None if given else _local_file(dataset)
    if file is not None:
        return file
    if dataset not in _NAMES:
        raise ConfigError(
            f"no data set {dataset!r} of OGBench: it is not in {data_folder()} (OGBENCH_DATA names another "
            f"folder), and only the data of the point mazes can be made again; {_hint(dataset)}"
        )
    return OGBenchData(dataset, **given)


def _hint(dataset: str) -> str:
    """The nearest name; for another robot or task none is near, however it is spelled."""
    others = ("antmaze", "humanoidmaze", "antsoccer", "cube", "scene", "puzzle", "powderworld", "visual")
    meant = nearest(dataset.partition("-")[0], ("pointmaze", *others))
    other = meant.startswith("did") and "pointmaze" not in meant
    return "put its file there" if other else nearest(dataset, _NAMES)


def data_folder() -> Path:
    """Where the files of OGBench are looked for: `OGBENCH_DATA`, or where ogbench downloads them to."""
    return Path(os.environ.get("OGBENCH_DATA") or "~/.ogbench/data").expanduser()


def _local_file(dataset: str) -> Path | None:
    if not dataset or any(letter in dataset for letter in "/\\\0") or ".." in dataset:
        return None
    paths = (data_folder() / f"{name}.npz" for name in (dataset, f"{dataset}-v0"))
    return next((path for path in paths if path.is_file()), None)


def _read_options(name: str, options: list[str]) -> dict[str, int]:
    given: dict[str, int] = {}
    for option in options:
        key, _, value = option.partition("=")
        if key not in _OPTIONS or not value.isdecimal():
            raise ConfigError(
                f"{name} has {option!r}; after the name come seed=NUMBER and episodes=NUMBER, as in "
                f"{PREFIX}{_NAMES[-1]},seed=1,episodes=20"
            )
        given[key] = int(value)
    return given
