"""Whether a run folder is there, or free: questions that need nothing of what is in it."""

import json
from pathlib import Path
from typing import Any

from lapwing import storage
from lapwing.errors import ConfigError, close_to

CONFIG, RESULT = "config.json", "result.json"


def claims_to_be_ours(content: Any) -> bool:
    """Whether what is in a config.json looks like that of a run."""
    return isinstance(content, dict) and {"format", "version", "target"} <= content.keys()


def is_run(path: Path) -> bool:
    """Whether a run was begun there, as far as its configuration can be read."""
    try:
        return claims_to_be_ours(json.loads((path / CONFIG).read_bytes()))
    except (OSError, ValueError, RecursionError):
        return False


def check_there(path: Path) -> None:
    """Refuse a path that is neither a file nor a folder."""
    if not storage.is_file(path) and not storage.is_folder(path):
        raise ConfigError(f"there is no {path}; {_meant(path)}")


def _meant(path: Path) -> str:
    """The run of the nearest name, beside the path or in runs/; if none is near, that the path is wrong."""
    found = [each for folder in (Path("runs"), path.parent) for each in sorted(folder.glob("*"))]
    runs = {each.name: each for each in found if is_run(each)}
    near = close_to(path.name, runs)
    return "check the path of the run" if near is None else f"did you mean {runs[near]}?"


def check_exclusive(*, overwrite: bool, resume: bool) -> None:
    """Refuse to replace and to resume a run at once."""
    if overwrite and resume:
        raise ConfigError("overwrite and resume exclude each other; give one of them")


def check_free(path: Path, *, overwrite: bool, resume: bool) -> None:
    """Refuse the folder of another run that is to be neither replaced nor resumed."""
    check_exclusive(overwrite=overwrite, resume=resume)
    if not (overwrite or resume) and is_run(path):
        raise taken(path)


def taken(path: Path) -> ConfigError:
    """That a folder holds a run already."""
    finished = storage.is_file(path / RESULT)
    state, remedy = ("a finished", "") if finished else ("an unfinished", "resume it with --resume, ")
    return ConfigError(
        f"{path} holds {state} run; {remedy}choose another --out, or replace it with --overwrite"
    )
