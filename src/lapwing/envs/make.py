"""Gymnasium environments by name: a registered id, a module that registers it, or a class in a file."""

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import gymnasium
from gymnasium.vector import SyncVectorEnv, VectorEnv

from lapwing.errors import ConfigError, nearest
from lapwing.settings.checks import check_size

Env = gymnasium.Env | VectorEnv
AnyEnv = TypeVar("AnyEnv", bound=Env)
_PACKAGES = {"MiniGrid": "minigrid", "BabyAI": "minigrid", "ALE/": "ale_py"}
"""Which package registers names that begin so; Gymnasium loads none by itself."""


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
    wanted = num_envs or (16 if own else 1)
    if wanted == 1:
        return make()
    check_size("num_envs", 1024 * wanted)
    if spec is not None and own:
        mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
        vector = _made(env_id, partial(gymnasium.make_vec, spec, wanted, mode))
        single = make()
        if vector.single_observation_space == single.observation_space:
            single.close()
            return vector
        vector.close()  # ALE's gives small grey images, four at a time, and not what the environment gives
        if num_envs is None:
            return single
        single.close()
    return SyncVectorEnv([make] * wanted)


def _maker(env_id: str) -> Callable[[], gymnasium.Env]:
    """What makes the environment, as often as it is called; a file is run once for all of them."""
    module, _, name = env_id.rpartition(":")
    if env_id.endswith(".py"):
        raise ConfigError(f"name the class too: gym:{env_id}:CLASS")
    if module.endswith(".py"):
        return partial(_made, env_id, _class_in(Path(module), name))
    if module:
        _import(module)
    if name not in gymnasium.registry:
        _register_where_installed(name)
    if name not in gymnasium.registry:
        hint = nearest(name, gymnasium.registry)
        hint = hint if hint.startswith("did") else "gymnasium.pprint_registry() lists them"
        raise ConfigError(f"unknown Gymnasium environment {env_id!r}; {hint}")
    return partial(_made, env_id, partial(gymnasium.make, name))


def _made(env_id: str, make: Callable[[], AnyEnv]) -> AnyEnv:
    try:
        return make()
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


def _run_file(path: Path) -> ModuleType:
    # Under a name that no other module has: one called random.py must not become `random`.
    name = f"lapwing_env_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for it
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # it may import what lies beside it, as when Python runs it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # it may raise anything
        del sys.modules[name]
        raise ConfigError(f"{path} cannot be run ({type(error).__name__}: {error}); fix it") from error
    finally:
        sys.path.remove(folder)
    return module
