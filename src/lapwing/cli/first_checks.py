"""What can be refused at once: it is checked before anything that is slow to import."""

from pathlib import Path
from typing import Any

from lapwing.cli.arguments import (
    Data,
    Evaluate,
    Explore,
    Learn,
    Options,
    Reach,
    RunOptions,
    Train,
    TrainInArena,
)
from lapwing.envs.make import check_env_id
from lapwing.envs.wrap import check_wrappers
from lapwing.errors import ConfigError
from lapwing.runs.taken import check_free, check_there, is_run
from lapwing.settings.agents import check_for_environment

_NAME_A_TARGET: dict[type, str] = {
    Learn: "lapwing learn FourRoom, a maze .txt, a data .npz or .hdf5, gym:ENV_ID, minari:NAME, or "
    "ogbench:NAME",
    Train: "lapwing train HardMaze, a maze .txt, or gym:ENV_ID",
    TrainInArena: "lapwing train PointUMaze",
    Reach: "lapwing reach ogbench:pointmaze-medium-navigate, PlaneHardMaze, data.npz",
    Options: "lapwing options FourRoom, PlaneFourRoom, gym:MountainCar-v0",
}


_TO_LEARN_FROM = (".py", ".npz", ".hdf5", ".h5", ".txt")


def check_first(command: Any) -> None:
    """Refuse a command that lacks a target, or whose settings, folders or environment cannot be used."""
    if isinstance(command, Evaluate | Explore):
        _check_learned(command.run)
        check_there(command.run)
    if isinstance(command, Data):
        _check_data(command.source)
    if isinstance(command, RunOptions):
        _check_run(command)


def _check_run(command: Any) -> None:
    target = command.target
    if not target:
        raise ConfigError(f"name a target: {_NAME_A_TARGET[type(command)]}")
    if isinstance(command, Train) and target.startswith("gym:"):  # before a goal is refused that is no cell
        check_for_environment(command, command.representation)
    command.settings()
    if command.resume and command.out is None:
        raise ConfigError("resume needs --out, the folder of the run to resume")
    if not isinstance(command, Learn) and is_run(Path(target)):
        raise ConfigError(
            f"{target} is a run folder; name what its data comes from, and --representation {target} to use "
            "its φ"
        )
    if command.out is not None and getattr(command, "hosts", None) is None:
        check_free(command.out, overwrite=command.overwrite, resume=command.resume)
    if target.startswith("gym:"):
        check_env_id(target.removeprefix("gym:"))
        check_wrappers(getattr(command, "wrap", ()))
    else:
        _check_source(target)


def _check_source(name: str) -> None:
    """Refuse a name that is no source, or data that is not there."""
    from lapwing.data.source import read_source  # which takes longer than all that is imported for --help

    read_source(name)


def _check_data(name: str) -> None:
    """Refuse what is no data set, or is not there."""
    from lapwing.data.source import read_data

    read_data(name)


def _check_learned(path: Path) -> None:
    """Refuse what is to be learned from in the place of what was learned."""
    if path.suffix in _TO_LEARN_FROM:
        target = f"gym:{path}:NAME" if path.suffix == ".py" else path
        raise ConfigError(
            f"{path} is what a run may be learned from, and a run is wanted; lapwing learn {target} makes one"
        )
