"""The words that make a run again: one line for a shell, and a few of Python."""

import shlex
from pathlib import Path
from typing import Any

from lapwing.exploring.opening import Opened
from lapwing.mazes import ARENAS, MAZES
from lapwing.settings.learn import PRESETS, LearnSettings
from lapwing.settings.reach import ReachSettings


def target_name(source: dict[str, Any]) -> str | None:
    """What names a target on the command line; None for arrays that were in memory only."""
    kind, name = source.get("kind"), str(source.get("name", ""))
    if kind == "maze":
        return name if name in MAZES else f"{name}.txt"
    if kind == "plane":
        return f"Plane{name}" if name in MAZES else f"Plane:{name}.txt"
    if kind == "arena":
        body = str(source.get("body", "Point"))
        return f"{body}{name}" if name in ARENAS else f"{body}:{name}.txt"
    if kind == "gym":
        return f"gym:{source.get('env_id')}"
    if kind == "ogbench":
        options = [f"{key}={source[key]}" for key in ("seed", "episodes") if source.get(key)]
        return ",".join([f"ogbench:{name}", *options])
    if kind == "minari":
        return f"minari:{name}"
    return str(source.get("path")) if kind == "data" else None


def changed_settings(opened: Opened) -> dict[str, Any]:
    """The settings that are not their preset's own."""
    given = opened.settings
    if opened.command == "reach":
        usual: dict[str, Any] = ReachSettings().as_json()
    else:
        usual = PRESETS.get(str(given.get("preset", "default")), LearnSettings()).as_json()
    changed = {name: value for name, value in given.items() if name in usual and value != usual[name]}
    if given.get("preset", "default") != "default":
        changed["preset"] = given["preset"]
    return changed


def command_line(opened: Opened) -> str | None:
    """What makes the run again in a shell; None where its data was in memory only."""
    target = target_name(opened.source)
    if target is None:
        return None
    words = ["lapwing", opened.command, target]
    for name, value in changed_settings(opened).items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif value is not None:
            values = value if isinstance(value, list | tuple) else [value]
            words += [f"--{option}", *map(str, values)]
    if opened.path is not None:
        words += ["--out", str(opened.path)]
    return shlex.join(words)


def python_lines(opened: Opened) -> str:
    """What makes the run again in Python, and loads it."""
    target, name = target_name(opened.source), "rep" if opened.command == "learn" else "reacher"
    lines = ["import lapwing", ""]
    if target is not None:
        options = "".join(f", {key}={_literal(value)}" for key, value in changed_settings(opened).items())
        out = "" if opened.path is None else f", out={str(opened.path)!r}"
        lines.append(f"{name} = lapwing.{opened.command}({target!r}{options}{out})")
    if opened.path is not None:
        path = Path(opened.path)
        read = (
            f"lapwing.load({str(path)!r})"
            if opened.command == "learn"
            else f"lapwing.load_reacher({str(path / 'reacher.safetensors')!r})"
        )
        lines.append(f"{name} = {read}  # or as it is")
    lines.append(f"{name}.distance(state, goal)")
    return "\n".join(lines)


def _literal(value: Any) -> str:
    return repr(tuple(value) if isinstance(value, list) else value)
