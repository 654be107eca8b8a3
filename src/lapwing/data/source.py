"""What can be learned from, by name or as it is: mazes, arenas, planes, environments, data sets, arrays."""

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv, VectorEnv

from lapwing.data.experience import Experience
from lapwing.data.files import MANIFEST, is_data_folder, load_experience, without_manifest
from lapwing.data.minari import open_minari
from lapwing.envs.arena import Arena, open_arena, parse_arena
from lapwing.envs.plane import Plane, open_plane, parse_plane
from lapwing.errors import CheckpointError, ConfigError, DatasetError, nearest
from lapwing.mazes import BUILT_IN, Maze, arena_names, is_arena, is_plane, parse_maze, plane_names, read_maze
from lapwing.storage import file_sha256


@dataclass(frozen=True)
class DataFile:
    """An .npz file of experience, or a folder of .npy files."""

    path: Path


@dataclass(frozen=True)
class MinariSet:
    """A Minari data set by its name, or by the path of its folder."""

    name: str


@dataclass(frozen=True)
class GymEnv:
    """A Gymnasium environment by its id."""

    env_id: str


_PACKAGES = {"MiniGrid": "minigrid", "BabyAI": "minigrid", "ALE/": "ale_py"}
"""Which package registers names that begin so; Gymnasium loads none by itself."""
Env = gymnasium.Env | VectorEnv
Source = Maze | Arena | Plane | DataFile | MinariSet | GymEnv | Env | Experience


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
    return folder if same else None


def _named(text: str, path: Path) -> Source:
    if text.startswith("gym:"):
        return GymEnv(text.removeprefix("gym:"))
    if text.startswith("minari:"):
        return MinariSet(text.removeprefix("minari:"))
    if text in BUILT_IN:
        return read_maze(text)
    if is_arena(text):
        return open_arena(text)
    if is_plane(text):
        return open_plane(text)
    if path.suffix == ".py" or ".py:" in text:
        raise ConfigError(f"an environment in a file of your own is named gym:FILE.py:CLASS, not {text}")
    if _is_file(path):
        return DataFile(path) if path.suffix in (".npz", ".npy") else read_maze(path)
    if _is_file(path / MANIFEST):
        return DataFile(path)
    if _is_file(path / "config.json"):
        raise ConfigError(
            f"{text} is a run folder; lapwing evaluate {text} measures it, "
            f"lapwing learn TARGET --out {text} --resume goes on with it"
        )
    if _is_file(path / "observations.npy"):
        raise ConfigError(without_manifest(path))
    if path.suffix == ".npz":
        raise ConfigError(f"no data file {path}; check the path")
    raise ConfigError(
        f"unknown target {text!r}: it is neither a maze nor a file; "
        f"{nearest(text, (*BUILT_IN, *plane_names(), *arena_names()))} "
        "(or give the path of a maze .txt or a data .npz, gym:ENV_ID, or minari:NAME)"
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no file can have such a name
        return False


def describe(source: Source) -> dict[str, Any]:
    """A source as config.json names it, in full: a maze by its text, data by its SHA-256."""
    if isinstance(source, Maze):
        return {"kind": "maze", "name": source.name, "text": source.text}
    if isinstance(source, Arena):
        return {"kind": "arena"} | source.description()
    if isinstance(source, Plane):
        return {"kind": "plane"} | source.description()
    if isinstance(source, GymEnv):
        return {"kind": "gym", "env_id": source.env_id}
    if isinstance(source, gymnasium.Env | VectorEnv):
        return {"kind": "env", "name": env_name(source)}
    if isinstance(source, MinariSet):
        data = open_minari(source.name)
        path = source.name.startswith("./")  # found again from any folder
        name = str(data.path.resolve()) if path else source.name
        return {"kind": "minari", "name": name, "sha256": data.digest()}
    if isinstance(source, DataFile):
        path = source.path.resolve()
        return {"kind": "data", "path": str(path), "sha256": _identity(path)}
    return {"kind": "experience", "sha256": source.sha256()}


def recall(description: dict[str, Any], collected: Path, named: Source | None = None) -> Source:
    """The source that `describe` described. No code runs that the description alone names.

    Args:
        description: of a run folder, which may come from anyone.
        collected: where a run keeps what cannot be had again.
        named: the environment, if the user has named it.
    """
    try:
        source = _recalled(description, collected)
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{collected.parent} does not say in full what it was learned from ({error})"
        ) from error
    if not isinstance(source, GymEnv):
        if named is not None:
            raise ConfigError(f"{collected.parent} was not learned from an environment; leave --env out")
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
        if open_minari(description["name"]).digest() != description["sha256"]:
            raise DatasetError(
                f"minari:{description['name']} is no longer the data set that was learned from; "
                "put it back to evaluate the run"
            )
        return MinariSet(description["name"])
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


def env_name(env: Env) -> str:
    """The id that an environment is registered by, or else the name of its class."""
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def make_env(env_id: str) -> gymnasium.Env:
    """A Gymnasium environment by its id; an unknown one is refused with the nearest.

    Args:
        env_id: a registered id; `module:ID`, where importing the module registers it; or `file.py:Class`.
    """
    return _maker(env_id)()


def make_envs(env_id: str, num_envs: int | None) -> Env:
    """Several of them at once; None is 16 where the environment has a vector form of its own, else 1."""
    make = _maker(env_id)  # first, for it may register the environment
    spec = gymnasium.registry.get(env_id.rpartition(":")[2])
    own = spec is not None and spec.vector_entry_point is not None
    if num_envs is None:
        num_envs = 16 if own else 1
    if num_envs == 1:
        return make()
    if spec is not None and own:
        with _made(env_id):
            return gymnasium.make_vec(spec, num_envs, gymnasium.VectorizeMode.VECTOR_ENTRY_POINT)
    return SyncVectorEnv([make] * num_envs)


def _maker(env_id: str) -> Callable[[], gymnasium.Env]:
    """What makes the environment, as often as it is called; a file is run once for all of them."""
    module, _, name = env_id.rpartition(":")
    if env_id.endswith(".py"):
        raise ConfigError(f"name the class too: gym:{env_id}:CLASS")
    if module.endswith(".py"):
        return partial(_made_of, env_id, _class_in(Path(module), name))
    if module:
        _import(module)
    if name not in gymnasium.registry:
        _register_where_installed(name)
    if name not in gymnasium.registry:
        raise ConfigError(f"unknown Gymnasium environment {env_id!r}; {_nearest_env(name)}")
    return partial(_made_of, env_id, partial(gymnasium.make, name))


def _made_of(env_id: str, make: Callable[[], gymnasium.Env]) -> gymnasium.Env:
    with _made(env_id):
        return make()


@contextmanager
def _made(env_id: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # an environment's constructor may raise anything
        raise ConfigError(f"Gymnasium cannot make {env_id}: {error}") from error


def _register_where_installed(name: str) -> None:
    """Import the package that registers environments of such names."""
    module = next((module for prefix, module in _PACKAGES.items() if name.startswith(prefix)), None)
    if module is not None:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ConfigError(
                f"{name} comes with the package {module}, which is not installed; pip install {module}"
            ) from error


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:  # a module may raise anything
        raise ConfigError(f"the module {module!r} cannot be imported ({error}); check its name") from error


def _class_in(path: Path, name: str) -> type[gymnasium.Env]:
    """An environment's class in a user's own file, which is run for it."""
    if not path.is_file():
        raise ConfigError(f"no file {path}; give gym:FILE.py:CLASS")
    module = _run_file(path)
    classes = {
        found: value
        for found, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, gymnasium.Env)
        and value.__module__ == module.__name__
    }
    if not classes:
        raise ConfigError(f"{path} defines no environment; derive {name} from gymnasium.Env")
    if name not in classes:
        raise ConfigError(f"{path} has no environment {name!r}; {nearest(name, classes)}")
    return classes[name]


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Let a file import what lies beside it, as it may when Python runs it."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _run_file(path: Path) -> ModuleType:
    # Under a name that no other module has: one called random.py must not become `random`.
    name = f"lapwing_env_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for it
    try:
        with _beside(path):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # it may raise anything
        del sys.modules[name]
        raise ConfigError(f"{path} cannot be run ({type(error).__name__}: {error}); mend it") from error
    return module


def _nearest_env(env_id: str) -> str:
    hint = nearest(env_id, gymnasium.registry)
    return hint if hint.startswith("did") else "gymnasium.pprint_registry() lists them"
