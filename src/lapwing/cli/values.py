"""The values of options, refused in a sentence before the parser gets them, which draws a box around one."""

import math
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from lapwing.errors import ConfigError, close_to

ONE_TARGET = ("learn", "solve", "train", "reach", "options", "reproduce", "evaluate", "explore")
"""The commands that are given one name or folder."""


def check_values(words: Sequence[str], kinds: Sequence[type], command: str) -> None:
    """Refuse an option without its value, a value that cannot be read, and a second target.

    Args:
        words: the target, and then the options; all of these are known.
        kinds: the dataclasses of the options.
        command: the name of the command, for the hint.

    Example:
        >>> from lapwing.cli.arguments import Learn
        >>> check_values(["FourRoom", "--dim", "ten"], [Learn], "learn")
        Traceback (most recent call last):
        lapwing.errors.ConfigError: --dim must be a whole number, such as 20 or 1e5, not 'ten'; ...
    """
    hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind, include_extras=True).items()}
    help_ = f"lapwing {command} --help describes it"
    position, targets = 0, []
    while position < len(words):
        option, equals, value = words[position].partition("=")
        position += 1
        if not option.startswith("-"):
            targets.append(words[position - 1])
        hint = hints.get(option.removeprefix("--").replace("-", "_")) if option.startswith("--") else None
        if hint is None or hint is bool:  # of a plain bool the name is all there is
            continue
        kind, many = _kind(hint)
        following = _following(words, position) if many or not equals else []
        following = following if many else following[:1]
        position += len(following)
        values = [value, *following] if equals else following
        if not values and not many:
            raise ConfigError(f"{option} needs a value; {help_}")
        for each in values:
            _check(option, each, kind, help_)
    if command in ONE_TARGET and len(targets) > 1:
        raise ConfigError(f"{command} takes one target, not {' and '.join(targets)}; call it for each")


def _following(words: Sequence[str], position: int) -> list[str]:
    """The words up to the next option; a number may be negative."""
    end = position
    while end < len(words) and (not words[end].startswith("-") or is_number(words[end])):
        end += 1
    return list(words[position:end])


def _kind(hint: Any) -> tuple[Any, bool]:
    """The type of a value, and whether an option takes several.

    Example:
        >>> _kind(int | None), _kind(tuple[float, ...])
        ((<class 'int'>, False), (<class 'float'>, True))
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _kind(parts[0])
    if origin in (Union, UnionType):
        given = [part for part in parts if part is not NoneType]
        return _kind(given[0]) if len(given) == 1 else (str, False)
    return (_kind(parts[0])[0], True) if origin is tuple else (hint, False)


def _check(option: str, word: str, kind: Any, help_: str) -> None:
    if kind is int:
        try:
            whole(word)
        except ValueError:
            raise ConfigError(
                f"{option} must be a whole number, such as 20 or 1e5, not {word!r}; {help_}"
            ) from None
    if kind is float and not is_number(word):
        raise ConfigError(f"{option} must be a number, such as 0.5 or 1e-3, not {word!r}; {help_}")
    if get_origin(kind) is Literal and word not in get_args(kind):
        choices, close = ", ".join(map(repr, get_args(kind))), close_to(word, get_args(kind))
        hint = help_ if close is None else f"did you mean {close}?"
        raise ConfigError(f"{option} must be one of {choices}, not {word!r}; {hint}")


def whole(word: str) -> int:
    """A whole number, which may be written as 100000, 100_000 or 1e5."""
    try:
        return int(word)
    except ValueError:
        pass
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise ValueError(f"a whole number is wanted, such as 100000, 100_000 or 1e5, not {word!r}")
    return int(number)


def is_number(word: str) -> bool:
    """Whether a word can be read as a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True
