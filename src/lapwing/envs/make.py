"""Gymnasium environments by name: a registered id, a module that registers it, or a class in a file."""

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import gymnasium
from gymnasium.vector import SyncVectorEnv, VectorEnv

from lapwing.errors import ConfigError, close_to, nearest
from lapwing.settings.checks import check_size

Env = gymnasium.Env | VectorEnv
AnyEnv = TypeVar("AnyEnv", bound=Env)
_ROBOTICS = ("PointMaze_", "AntMaze_", "Fetch", "Hand", "AdroitHand", "FrankaKitchen")
_PACKAGES = {
    "MiniGrid": "minigrid",
    "BabyAI": "minigrid",
    "ALE/": "ale_py",
    **dict.fromkeys(_ROBOTICS, "gymnasium_robotics"),
    "dm_control/": "shimmy",
}
"""Which package registers names that begin so; Gymnasium loads none by itself."""


def env_name(env: Env) -> str:
    """The id that an environment is registered by, or else the name of its class."""
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def make_env(env_id: str) -> gymnasium.Env:
    """A Gymnasium environment by its id; an unknown one is refused with the nearest.

    Args:
        env_id: a registered id; `module:ID`, where importing the module registers it; or `file.py:NAME`, a
            class, or a function that returns an environment.
    """
    return _maker(env_id)()


def make_envs(
    env_id: str, num_envs: int | None, wrap: Callable[[gymnasium.Env], gymnasium.Env] | None = None
) -> Env:
    """Several of them at once; None is 16 where the environment has a vector form of its own, else 1.

    Args:
        env_id: as for `make_env`.
        num_envs: how many.
        wrap: what each is wrapped in; a vector form of the environment's own is then not used.
    """
    make = _maker(env_id)  # first, for it may register the environment
    if wrap is not None:
        return _several(lambda: wrap(make()), num_envs or 1)
    spec = gymnasium.registry.get(env_id.rpartition(":")[2])
    own = spec is not None and spec.vector_entry_point is not None
    wanted = num_envs or (16 if own else 1)
    if spec is None or not own or wanted == 1:
        return _several(make, wanted)
    check_size("num_envs", 1024 * wanted)
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
    return _several(make, wanted)


def _several(make: Callable[[], gymnasium.Env], num_envs: int) -> Env:
    check_size("num_envs", 1024 * num_envs)
    return make() if num_envs == 1 else SyncVectorEnv([make] * num_envs)


def _maker(env_id: str) -> Callable[[], gymnasium.Env]:
    """What makes the environment, as often as it is called; a file is run once for all of them."""
    check_env_id(env_id)
    module, _, name = env_id.rpartition(":")
    if module.endswith(".py"):
        return partial(_made, env_id, _maker_in(Path(module), name))
    return partial(_made, env_id, partial(gymnasium.make, name))


def check_env_id(env_id: str) -> None:
    """Refuse an id that is not registered, nor by the module before it, or a file that is not there.

    A file is not run, so whether it has what is named is not known yet.
    """
    module, _, name = env_id.rpartition(":")
    if env_id.endswith(".py"):
        raise ConfigError(f"name the class or function too: gym:{env_id}:NAME")
    if module.endswith(".py"):
        check_file(Path(module))
        return
    if module and Path(f"{module}.py").is_file():  # rather than a package that happens to be called so
        raise ConfigError(f"an environment in a file of your own is named gym:{module}.py:{name}")
    if module:
        import_module(module)
    if name not in gymnasium.registry:
        _register_where_installed(name)
    if name not in gymnasium.registry:
        close = close_to(name, gymnasium.registry)
        hint = "gymnasium.pprint_registry() lists them" if close is None else f"did you mean {close}?"
        remedy = "" if module else f" (if a package registers it, name that too: gym:PACKAGE:{name})"
        raise ConfigError(f"unknown Gymnasium environment {env_id!r}; {hint}{remedy}")


def _made(env_id: str, make: Callable[[], AnyEnv]) -> AnyEnv:
    try:
        env = make()
    except Exception as error:  # an environment's constructor may raise anything
        remedy = (
            "; it is called without arguments, so give them defaults" if "() missing" in str(error) else ""
        )
        raise ConfigError(f"cannot make {env_id}: {error}{remedy}") from error
    refuse_vec_env(env)
    if not isinstance(env, Env):
        raise ConfigError(f"{env_id} gives {type(env).__name__}, not an environment; return a gymnasium.Env")
    return env


def refuse_vec_env(env: object) -> None:
    """Refuse a `VecEnv` of Stable-Baselines3, whose `reset` and `step` are not those of Gymnasium."""
    if any(
        kind.__module__.startswith("stable_baselines3.") and kind.__name__ == "VecEnv"
        for kind in type(env).__mro__
    ):
        raise ConfigError(
            f"{type(env).__name__} is a VecEnv of Stable-Baselines3; give lapwing one environment, or a "
            "vector of Gymnasium's (gymnasium.make_vec), and wrap what the VecEnv is made of: "
            "make_vec_env(..., wrapper_class=lapwing.LaplacianReward)"
        )


def _register_where_installed(name: str) -> None:
    """Import the package that registers environments of such names."""
    module = next((module for prefix, module in _PACKAGES.items() if name.startswith(prefix)), None)
    if module is not None:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ConfigError(
                f"{name} comes with the package {module}, which is not installed; "
                f"pip install {_distribution(module)}"
            ) from error


def _distribution(module: str) -> str:
    """What installs a module: most are named alike."""
    return module.replace("_", "-")


def import_module(module: str) -> ModuleType:
    """A module by its name, which the user gave."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        install = _distribution(missing.partition(".")[0])
        raise ConfigError(
            f"the module {module!r} cannot be imported, for {missing} is not installed; check its name, or "
            f"pip install {install}"
        ) from error
    except Exception as error:  # a module may raise anything
        raise ConfigError(f"the module {module!r} cannot be imported ({error}); check its name") from error


def _maker_in(path: Path, name: str) -> Callable[[], gymnasium.Env]:
    """An environment's class in a user's own file, which is run for it, or a function that makes one."""
    module = run_file(path)
    own = {found: value for found, value in vars(module).items() if _is_own(value, module)}
    makers = {found: value for found, value in own.items() if not _wants_env(value)}
    if name in own and name not in makers:
        raise ConfigError(
            f"{name} of {path} is a wrapper, which needs an environment; name that, and --wrap {path}:{name}"
        )
    if not makers:
        raise ConfigError(
            f"{path} defines no environment; derive {name} from gymnasium.Env, or let a function {name} "
            "return one"
        )
    if name not in makers:
        public = [found for found in makers if not found.startswith("_")]
        raise ConfigError(f"{path} has no environment {name!r}; {nearest(name, public)}")
    return makers[name]


def _is_own(value: object, module: ModuleType) -> bool:
    """Whether it may be meant: what the file itself defines, not what it imports."""
    if getattr(value, "__module__", None) != module.__name__:
        return False
    return issubclass(value, gymnasium.Env) if isinstance(value, type) else callable(value)


def _wants_env(value: object) -> bool:
    """Whether it is a wrapper that has to be given an environment; some make their own."""
    if not (isinstance(value, type) and issubclass(value, gymnasium.Wrapper)):
        return False
    try:
        inspect.signature(value).bind()
    except TypeError:
        return True
    return False


def check_file(path: Path) -> None:
    """Refuse a user's own file that is not there."""
    if not path.is_file():
        raise ConfigError(f"no file {path}; name a class or a function in a file as FILE.py:NAME")


def run_file(path: Path) -> ModuleType:
    """The module that a user's own file is, which is run for it."""
    check_file(path)
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
