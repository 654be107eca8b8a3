"""The names of options: unknown ones raise an error, and messages show them as typed."""

import dataclasses
import re
from collections.abc import Iterable

from lapwing.cli.arguments import (
    Audit,
    Data,
    Evaluate,
    Explore,
    Learn,
    Options,
    Reach,
    Reproduce,
    Solve,
    Train,
    TrainInArena,
)
from lapwing.errors import ConfigError, nearest

COMMANDS: dict[str, tuple[type, ...]] = {
    "learn": (Learn,),
    "data": (Data,),
    "evaluate": (Evaluate,),
    "audit": (Audit,),
    "explore": (Explore,),
    "solve": (Solve,),
    "reach": (Reach,),
    "options": (Options,),
    "train": (Train, TrainInArena),
    "reproduce": (Reproduce,),
}
"""The commands, and the dataclasses of their options."""
_POSITIONAL = ("target", "targets", "action", "source", "run", "figure")
_DEVICE = (
    "JAX chooses the device, a GPU if it finds one: JAX_PLATFORMS=cpu lapwing … keeps to the CPU, and "
    "docs/troubleshooting.md says what a GPU needs"
)
_ELSEWHERE = {
    **dict.fromkeys(("lr", "alpha", "step-size"), ("learning-rate", "critic-rate")),
    **dict.fromkeys(("batch-size", "batchsize", "minibatch"), ("batch",)),
    **dict.fromkeys(("epochs", "iterations", "iters", "train-steps", "total-timesteps"), ("steps",)),
    **dict.fromkeys(("d", "k", "n-components", "num-eigenfunctions", "embedding-dim"), ("dim",)),
    **dict.fromkeys(("n-envs", "envs"), ("num-envs", "envs")),
    **dict.fromkeys(("n-transitions", "samples", "timesteps"), ("transitions", "steps")),
    **dict.fromkeys(("discount",), ("gamma",)),
    **dict.fromkeys(("hidden-sizes", "net-arch", "layers"), ("hidden",)),
    **dict.fromkeys(("output", "output-dir", "outdir", "logdir", "save-dir", "dir"), ("out",)),
    **dict.fromkeys(("force",), ("overwrite",)),
    **dict.fromkeys(("obs-key", "key"), ("observation-key",)),
}
"""What others call an option, and what it may be called here, the first that the command has."""
_GOALS = (
    "a policy that lapwing reach makes takes any goal as it acts: "
    "lapwing.load_reacher(RUN).act(observation, goal) in Python"
)
_DEVICES = ("device", "gpu", "cuda", "cpu", "platform", "backend")
_IS_ABOUT = r"(?==| must | takes | needs | goes? with | has | names? | ')"


def flag_names(kinds: Iterable[type]) -> list[str]:
    """The options of a command, without the dashes before them."""
    fields = {field.name: field.type for kind in kinds for field in dataclasses.fields(kind)}
    return [name.replace("_", "-") for name in fields if name not in _POSITIONAL]


def check_flags(words: Iterable[str], kinds: tuple[type, ...]) -> None:
    """Refuse an option that none of these dataclasses has, with the one that may be meant.

    Example:
        >>> check_flags(["FourRoom", "--lr", "0.1"], (Learn,))
        Traceback (most recent call last):
        lapwing.errors.ConfigError: unknown option --lr; did you mean --learning-rate?
    """
    known = flag_names(kinds)
    for word in words:
        name = word.partition("=")[0].removeprefix("--").replace("_", "-")
        if not word.startswith("--") or name.removeprefix("no-") in (*known, "help", "help-verbose"):
            continue
        if not name.startswith("tyro-"):
            hint = _GOALS if name == "goal" and Reach in kinds else _meant(name, known)
            raise ConfigError(f"unknown option --{name}; {hint}")


def _meant(name: str, known: list[str]) -> str:
    if name in _DEVICES:
        return _DEVICE
    ours = next((option for option in _ELSEWHERE.get(name, ()) if option in known), None)
    if ours is not None:
        return f"did you mean --{ours}?"
    return nearest(f"--{name}", [f"--{option}" for option in known])


def as_typed(message: str) -> str:
    """A message about settings with their names as options of the command line.

    Example:
        >>> as_typed("observation_key='a' only works with environments")
        "--observation-key='a' only works with environments"
        >>> as_typed("dim must be at most 152, not 200")
        '--dim must be at most 152, not 200'
    """
    names = {name for kinds in COMMANDS.values() for name in flag_names(kinds)}
    longer = "|".join(sorted(name.replace("-", "_") for name in names if "-" in name))
    message = re.sub(rf"(?<![\w.'/])({longer})\b(?!\()", lambda found: _dashed(found[1]), message)
    return re.sub(rf"^({'|'.join(sorted(names))}){_IS_ABOUT}", lambda found: _dashed(found[1]), message)


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"
