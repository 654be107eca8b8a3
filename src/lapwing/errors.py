"""The errors of lapwing. Each message names the field, its value and the remedy, in one sentence."""

import difflib
import inspect
import warnings
from collections.abc import Iterable


class LapwingError(Exception):
    """Base class of all expected errors; the command line prints the message and exits with 2."""


class ConfigError(LapwingError, ValueError):
    """A setting, a target or an option that cannot be used as given."""


class MazeError(ConfigError):
    """An invalid text maze."""


class DatasetError(LapwingError, ValueError):
    """Experience that cannot be learned from: shapes, types, NaN, or too short."""


class CheckpointError(LapwingError):
    """A saved file that is damaged, incomplete, or of another version."""


class StorageError(LapwingError, OSError):
    """A folder or disk that cannot be read or written."""


class NonFiniteError(LapwingError, ArithmeticError):
    """Learning produced NaN or infinity; the message names the step."""


class HostsError(LapwingError, ConnectionError):
    """Processes of a job that cannot connect to each other, or that were lost."""


class LapwingWarning(UserWarning):
    """A caveat about a result that could be computed."""


class LapwingNote(LapwingWarning):
    """What is good to know before a long computation; nothing is wrong."""


_BETWEEN = ("lapwing", "contextlib", "functools", "beartype", "jaxtyping")
"""The packages of lapwing itself and of its decorators."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called lapwing, however deep within it the cause is."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def close_to(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest, or None if none is near.

    Example:
        >>> close_to("FourRom", ["OneRoom", "FourRoom"])
        'FourRoom'
    """
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=1)
    return folded[close[0]] if close else None


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or all of them if none is near.

    Example:
        >>> nearest("FourRom", ["OneRoom", "FourRoom"])
        'did you mean FourRoom?'
    """
    names = list(known)
    close = close_to(word, names)
    return f"known: {', '.join(names)}" if close is None else f"did you mean {close}?"
