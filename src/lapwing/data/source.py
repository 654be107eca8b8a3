"""Sources to learn from, by name or as objects: mazes, arenas, planes, environments, data sets, arrays."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from lapwing.data.experience import Experience
from lapwing.data.files import FILE_SUFFIXES, load_experience
from lapwing.data.folders import MANIFEST, is_data_folder, without_manifest
from lapwing.data.minari import MinariData, open_minari
from lapwing.data.ogbench import PREFIX as OGBENCH
from lapwing.data.ogbench import OGBenchData, Progress, open_ogbench
from lapwing.envs.arena import Arena, open_arena, parse_arena
from lapwing.envs.make import Env, env_name, refuse_vec_env
from lapwing.envs.plane import Plane, open_plane, parse_plane
from lapwing.errors import CheckpointError, ConfigError, DatasetError, nearest
from lapwing.mazes import MAZES, Maze, arena_names, is_arena, is_plane, parse_maze, plane_names, read_maze
from lapwing.storage import file_sha256


@dataclass(frozen=True)
class DataFile:
    """An .npz or HDF5 file of experience, or a folder of .npy files."""

    path: Path


@dataclass(frozen=True)
class GymEnv:
    """A Gymnasium environment by its id."""

    env_id: str


_SCHEMES = ("gym", "minari", "ogbench")
_PICKLE = "a pickle, which lapwing never opens, for to open one can run any code in it"
_FOREIGN = {
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".pth", ".joblib"), _PICKLE),
    **dict.fromkeys((".csv", ".json", ".jsonl"), "a text file without shapes"),
    **dict.fromkeys((".mat", ".parquet", ".arrow", ".zarr", ".tfrecord"), "of no format that lapwing reads"),
}
"""Files that data comes in, and why lapwing does not read them."""
_SAVE_AS = (
    "load it in Python and save its arrays, numpy.savez('data.npz', observations=..., ends=...), or give "
    "episodes to lapwing.learn as they are"
)

DataSet = DataFile | MinariData | OGBenchData
Source = Maze | Arena | Plane | DataSet | GymEnv | Env | Experience


def read_source(source: str | Path | Source | Iterable[Any]) -> Source:
    """What a name means, or what is given; an unknown name is refused with the nearest.

    Example:
        >>> read_source("gym:CartPole-v1")
        GymEnv(env_id='CartPole-v1')
        >>> read_source([np.zeros((3, 2)), np.ones((4, 2))]).n_transitions
        5
    """
    if isinstance(source, Experience):
        folder = _folder_of(source)
        return source if folder is None else DataFile(folder)
    if isinstance(source, Source):
        return source
    if isinstance(source, str | Path):
        return _named(str(source), Path(source))
    refuse_vec_env(source)
    if isinstance(source, Iterable) and not isinstance(source, np.ndarray | dict | bytes):
        return Experience.from_episodes(source)
    if isinstance(source, type) and issubclass(source, gymnasium.Env):
        raise ConfigError(f"{source.__name__} is a class; give an environment, {source.__name__}()")
    raise ConfigError(
        f"a target must be a name, a path, an environment, episodes or an Experience, not "
        f"{type(source).__name__}; make arrays an Experience with lapwing.Experience.from_episodes([...])"
    )


def _folder_of(experience: Experience) -> Path | None:
    """Where experience on disk comes from, if it is all of a folder: it need not be copied to be kept."""
    filename = getattr(experience.observations, "filename", None)
    if not experience.on_disk or filename is None or not is_data_folder(Path(filename).parent):
        return None
    folder = Path(filename).parent
    same = np.load(filename, mmap_mode="r", allow_pickle=False).shape == experience.observations.shape
    same = same and np.array_equal(np.load(folder / "lengths.npy", allow_pickle=False), experience.lengths)
    for name in ("actions", "rewards"):
        array, there = getattr(experience, name), (folder / f"{name}.npy").is_file()
        same = same and there == (array is not None) and (not there or _is_in(array, folder))
    return folder if same else None


def _is_in(array: np.ndarray, folder: Path) -> bool:
    filename = getattr(array, "filename", None)
    return filename is not None and Path(filename).parent == folder


def _named(text: str, path: Path) -> Source:
    if text.startswith("gym:"):
        return GymEnv(text.removeprefix("gym:"))
    if text.startswith("minari:"):
        return open_minari(text)
    if text.startswith(OGBENCH):
        found = open_ogbench(text)
        return found if isinstance(found, OGBenchData) else DataFile(found)
    if text in MAZES:
        return read_maze(text)
    if is_arena(text):
        return open_arena(text)
    if is_plane(text):
        return open_plane(text)
    if path.suffix == ".py" or ".py:" in text:
        raise ConfigError(f"an environment in a file of your own is named gym:FILE.py:NAME, not {text}")
    if path.suffix.lower() in _FOREIGN:
        raise ConfigError(f"{path} is {_FOREIGN[path.suffix.lower()]}; {_SAVE_AS}")
    if _is_file(path):
        return DataFile(path) if path.suffix in (*FILE_SUFFIXES, ".npy") else read_maze(path)
    if _is_file(path / MANIFEST):
        return DataFile(path)
    if _is_file(path / "config.json"):
        raise ConfigError(
            f"{text} is a run folder; lapwing evaluate {text} measures it, "
            f"lapwing learn TARGET --out {text} --resume resumes it"
        )
    if text and _is_folder(path):
        raise ConfigError(without_manifest(path))
    if path.suffix in FILE_SUFFIXES:
        raise ConfigError(f"no data file {path}; check the path")
    raise _UnknownTargetError(
        f"unknown target {text!r}: it is neither a maze nor a file; "
        f"{_environment_meant(text) or nearest(text, (*MAZES, *plane_names(), *arena_names()))} "
        "(or give the path of a maze .txt or a data .npz or .hdf5, gym:ENV_ID, minari:NAME, or ogbench:NAME)"
    )


class _UnknownTargetError(ConfigError):
    """A name that means nothing."""


def _environment_meant(text: str) -> str | None:
    """A hint, if a name without gym: is that of an environment, as PACKAGE:ENV_ID is.

    Example:
        >>> _environment_meant("gymnasium_robotics:PointMaze_UMaze-v3")
        'did you mean gym:gymnasium_robotics:PointMaze_UMaze-v3?'
    """
    scheme, _, name = text.partition(":")
    if scheme.casefold() in _SCHEMES:
        return f"did you mean {scheme.casefold()}:{name}?"
    packaged = re.fullmatch(r"[A-Za-z_][\w.]*:[\w/.-]+-v\d+", text)
    return f"did you mean gym:{text}?" if packaged or text in gymnasium.registry else None


def read_data(name: str | Path) -> DataSet:
    """The data set that a name means; other targets are refused."""
    try:
        found = read_source(name)
    except _UnknownTargetError:
        found = None
    if not isinstance(found, DataSet):
        raise ConfigError(
            f"{name} is not a data set; name an .npz or .hdf5 file, a folder of data, minari:NAME or "
            "ogbench:NAME"
        )
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no file can have such a name
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # no folder can have such a name
        return False


def describe(source: Source, on_progress: Progress | None = None) -> dict[str, Any]:
    """A source as config.json names it, in full: a maze by its text, data by its SHA-256.

    Args:
        source: as `read_source` returns it.
        on_progress: called with (done, all) where data has to be made to know its digest.
    """
    if isinstance(source, Maze):
        return {"kind": "maze", "name": source.name, "text": source.text}
    if isinstance(source, Arena):
        return {"kind": "arena"} | source.description()
    if isinstance(source, Plane):
        return {"kind": "plane"} | source.description()
    if isinstance(source, GymEnv):
        return {"kind": "gym", "env_id": source.env_id}
    if isinstance(source, Env):
        return {"kind": "env", "name": env_name(source)}
    if isinstance(source, MinariData):
        path = source.name.startswith("./")  # found again from any folder
        name = str(source.path.resolve()) if path else source.name
        return {"kind": "minari", "name": name, "sha256": source.digest()}
    if isinstance(source, OGBenchData):
        made = {"name": source.name, "seed": source.seed, "episodes": source.episodes}
        return {"kind": "ogbench"} | made | {"sha256": source.read(on_progress).sha256()}
    if isinstance(source, DataFile):
        path = source.path.resolve()
        return {"kind": "data", "path": str(path), "sha256": _identity(path)}
    return {"kind": "experience", "sha256": source.sha256()}


def recall(description: dict[str, Any], collected: Path) -> Source:
    """The source that `describe` described; `collected` is where a run keeps what cannot be had again."""
    try:
        return _recalled(description, collected)
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{collected.parent} does not say in full what it was learned from ({error})"
        ) from error


def recall_to_collect(description: dict[str, Any], collected: Path, named: Source | None) -> Source:
    """The source as `recall` gives it, to be collected from again if `collected` is gone.

    A run folder may come from anyone: code that it alone names, a file or a module, is never run.

    Args:
        description: what the run folder says.
        collected: where the run keeps what it collected.
        named: the environment, if the user has named it.
    """
    source = recall(description, collected)
    if named is not None and not isinstance(source, GymEnv):
        raise ConfigError(f"{collected.parent} was not learned from gym:ENV_ID; leave --env out")
    if not isinstance(source, GymEnv):
        return source
    if named is not None:
        _check_same_env(source, named)
        return named
    if ":" in source.env_id and not collected.is_file():
        raise ConfigError(
            f"{collected} is missing, and to collect it again would run {source.env_id}, which only the run "
            f"folder names; if you trust that code, name it yourself: lapwing evaluate {collected.parent} "
            f"--env gym:{source.env_id}"
        )
    return source


def _check_same_env(recorded: GymEnv, named: Source) -> None:
    """Refuse another environment; a file may have moved."""
    same = isinstance(named, GymEnv) and named.env_id.rpartition(":")[2] == recorded.env_id.rpartition(":")[2]
    if not same:
        raise ConfigError(f"env must name the environment of the run, gym:{recorded.env_id}")


def _recalled(description: dict[str, Any], collected: Path) -> Source:
    kind = description.get("kind")
    if kind == "maze":
        return parse_maze(description["text"], name=description["name"])
    if kind == "arena":
        return parse_arena(description)
    if kind == "plane":
        return parse_plane(description)
    if kind == "gym":
        if not isinstance(description["env_id"], str):
            raise TypeError("env_id is not text")
        return GymEnv(description["env_id"])
    if kind in ("experience", "env"):
        return load_experience(collected)
    if kind == "minari":
        data = open_minari(description["name"])
        if data.digest() != description["sha256"]:
            raise DatasetError(
                f"minari:{description['name']} is no longer the data set that was learned from; "
                "put it back to evaluate the run"
            )
        return data
    if kind == "ogbench":
        made = OGBenchData(*(description[field] for field in ("name", "seed", "episodes")))
        if made.read().sha256() != description["sha256"]:
            raise DatasetError(
                f"ogbench:{made.name} as it is made here is not what was learned from; evaluate the run with "
                "the versions of ogbench and mujoco that it was learned with"
            )
        return made
    if kind != "data":
        raise ConfigError(
            f"the run was learned from a target of kind {kind!r}, which this lapwing cannot open"
        )
    path = Path(description["path"])
    there = path.is_file() or is_data_folder(path)
    if not there or _identity(path) != description["sha256"]:
        raise DatasetError(
            f"{path} is no longer the file that was learned from; put it back to evaluate the run"
        )
    return DataFile(path)


def _identity(path: Path) -> str:
    """Of a folder the digest of its manifest, which holds that of its data."""
    return file_sha256(path / MANIFEST if path.is_dir() else path)


def kind_of(source: Source) -> str:
    """What a source is, with its article."""
    if isinstance(source, Maze | Arena | Plane):
        return "an arena" if isinstance(source, Arena) else f"a {type(source).__name__.lower()}"
    return "an environment" if isinstance(source, GymEnv | Env) else "data"
