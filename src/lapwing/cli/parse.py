"""Parsing the command line into a command with validated options."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import tyro

from lapwing._version import __version__
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
from lapwing.cli.flags import COMMANDS, check_flags
from lapwing.cli.help import ABOUT, SUMMARIES, grouped_help
from lapwing.cli.values import check_values, is_number, whole
from lapwing.errors import ConfigError, nearest
from lapwing.mazes import is_arena
from lapwing.settings.agents import CONTROL_PRESETS
from lapwing.settings.learn import PRESETS

_NUMBERS = tyro.constructors.ConstructorRegistry()


@_NUMBERS.primitive_rule
def _whole_numbers(info: tyro.constructors.PrimitiveTypeInfo):
    """Whole numbers may be written as 100000, 100_000 or 1e5."""
    if info.type is not int:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: whole(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda number: [str(number)],
    )


def parse(arguments: list[str]) -> Any:
    """The command that the words name, an instance of one of `cli.arguments`."""
    if "--version" in arguments:
        print(f"lapwing {__version__}")
        raise SystemExit(0)
    _check_command(arguments)
    _check_data(arguments)
    command, target = (arguments or [""])[0], ""
    if command in _TARGETED:
        target, arguments = _target_first(arguments)
    if command in COMMANDS:
        check_flags(arguments[1:], _kinds(command, target))
    preset = _preset_in(arguments, PRESETS, "default") if command == "learn" else "default"
    default = Learn(**vars(PRESETS[preset]))
    about: dict[str, Any] = {} if command in COMMANDS else SUMMARIES
    learn = _subcommand("learn", Learn, about, default=default)
    data = _subcommand("data", Data, about)
    evaluate = _subcommand("evaluate", Evaluate, about)
    explore = _subcommand("explore", Explore, about)
    audit = _subcommand("audit", Audit, about)
    solve = _subcommand("solve", Solve, about)
    train = _train_options(target if command == "train" else "", arguments, about)
    reach = _subcommand("reach", Reach, about)
    options = _subcommand("options", Options, about)
    reproduce = _subcommand("reproduce", Reproduce, about)
    if command in COMMANDS:  # after presets, which have a hint of their own
        check_values(arguments[1:], _kinds(command, target), command)
    with grouped_help(command):
        return tyro.cli(
            learn | data | evaluate | explore | audit | solve | train | reach | options | reproduce,  # type: ignore[arg-type]
            prog="lapwing",
            description=ABOUT,
            args=arguments,
            config=(tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff),
            registry=_NUMBERS,
        )


def _subcommand(name: str, kind: type, about: Mapping[str, str], **options: Any) -> Any:
    """A command; in the list of all of them it has one line of description, alone all of its docstring."""
    return Annotated[kind, tyro.conf.subcommand(name, description=about.get(name), **options)]


def _kinds(command: str, target: str) -> tuple[type, ...]:
    """The dataclasses whose options a command with this target may have."""
    if command != "train" or not target:
        return COMMANDS[command]
    return (TrainInArena,) if is_arena(target) else (Train,)


def _check_command(arguments: list[str]) -> None:
    if arguments and arguments[0] in ("completion", "completions"):
        raise ConfigError(
            f"unknown command {arguments[0]!r}; lapwing --tyro-print-completion bash (or zsh) prints what "
            "the shell needs"
        )
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise ConfigError(f"unknown command {arguments[0]!r}; {nearest(arguments[0], COMMANDS)}")


def _check_data(arguments: list[str]) -> None:
    """`lapwing data` takes what to do first, and then the data."""
    words = [word for word in arguments[1:] if not word.startswith("-")]
    if arguments[:1] != ["data"] or {"-h", "--help"} & set(arguments):
        return
    if not words or words[0] not in ("inspect", "shard"):
        example = words[-1] if words else "data.npz"
        raise ConfigError(f"data takes inspect or shard, and then the data: lapwing data inspect {example}")
    if len(words) == 1:
        raise ConfigError(f"name the data too: lapwing data {words[0]} data.npz")


def _train_options(target: str, arguments: list[str], about: Mapping[str, str]) -> Any:
    """An agent in an arena has other settings than one in a maze."""
    if not is_arena(target):
        return _subcommand("train", Train, about)
    preset = CONTROL_PRESETS[_preset_in(arguments, CONTROL_PRESETS, "quick")]
    default = TrainInArena(**vars(preset))
    return _subcommand("train", TrainInArena, about, default=default)


def _target_first(arguments: list[str]) -> tuple[str, list[str]]:
    """The target, and the words with it right after the command; "" if there is none.

    A list such as that of `--hidden` ends where its values do: left in place, it would take in the target.

    Example:
        >>> _target_first(["train", "--resume", "--hidden", "8", "1e2", "--out", "PointUMaze", "HardMaze"])
        ('HardMaze', ['train', 'HardMaze', '--resume', '--hidden', '8', '1e2', '--out', 'PointUMaze'])
    """
    command, words = arguments[0], arguments[1:]
    hints = {name: hint for kind in _TARGETED[command] for name, hint in _hints(kind).items()}
    flags, position = {name for name, hint in hints.items() if hint is bool} | {"help", "h"}, 0
    while position < len(words):
        word = words[position]
        if not word.startswith("-"):
            return word, [command, word, *words[:position], *words[position + 1 :]]
        option, equals, _ = word.partition("=")
        name = option.lstrip("-").replace("-", "_")
        position += 1 if equals or name.removeprefix("no_") in flags else 2
        while name in _LISTS and position < len(words) and _LISTS[name](words[position]):
            position += 1
    return "", arguments


def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)  # a plain bool is a flag, an annotated one takes a value


_TARGETED: dict[str, tuple[type, ...]] = {
    "learn": (Learn,),
    "solve": (Solve,),
    "train": (Train, TrainInArena),
    "reach": (Reach,),
    "options": (Options,),
    "reproduce": (Reproduce,),
}
"""The commands with one target, and their options."""
_LISTS: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(("hidden", "bumps", "bump_width", "slowness", "cutoff"), is_number),
    **dict.fromkeys(("only", "keys"), lambda word: "=" in word and ":" not in word),
    "log": lambda word: word in ("tensorboard", "wandb"),
    "wrap": lambda word: ":" in word and not word.startswith(("-", "gym:")),
}
"""The options that take a list, and what is a value in it."""


def _preset_in(arguments: list[str], presets: Mapping[str, Any], default: str) -> str:
    """The preset sets the defaults that `--help` shows, so it is looked up first."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--preset":
            value = value if equals else (arguments[position + 1 :] or [default])[0]
            if value not in presets:
                raise ConfigError(f"unknown preset {value!r}; {nearest(value, presets)}")
            return value
    return default
