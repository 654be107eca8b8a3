"""What can be refused at once: it is checked before anything that is slow to import."""

from pathlib import Path
from typing import Any

from lapwing.cli.arguments import Evaluate, Explore, Learn, Options, Reach, RunOptions, Train, TrainInArena
from lapwing.envs.make import check_registered
from lapwing.errors import ConfigError
from lapwing.runs.taken import check_free, check_there, is_run

_NAME_A_TARGET: dict[type, str] = {
    Learn: "lapwing learn FourRoom, a maze .txt, a data .npz or .hdf5, gym:ENV_ID, minari:NAME, or "
    "ogbench:NAME",
    Train: "lapwing train HardMaze, a maze .txt, or gym:ENV_ID",
    TrainInArena: "lapwing train PointUMaze",
    Reach: "lapwing reach ogbench:pointmaze-medium-navigate, PlaneHardMaze, data.npz",
    Options: "lapwing options FourRoom, PlaneFourRoom, gym:MountainCar-v0",
}


def check_first(command: Any) -> None:
    """Refuse a command that lacks a target, or whose settings, folders or environment cannot be used."""
    if isinstance(command, Evaluate | Explore):
        check_there(command.run)
    if isinstance(command, RunOptions):
        _check_run(command)


def _check_run(command: Any) -> None:
    target = command.target
    if not target:
        raise ConfigError(f"name a target: {_NAME_A_TARGET[type(command)]}")
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
        check_registered(target.removeprefix("gym:"))
