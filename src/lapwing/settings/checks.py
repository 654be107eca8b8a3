"""Shared by all settings: conversion to JSON and back, and validation.

The command line's parser accepts nan, inf and negative numbers, so every number is checked.
"""

import dataclasses
import math
import numbers
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import tyro

from lapwing.errors import ConfigError, nearest
from lapwing.storage import memory_bytes

MOST_STEPS = 2**31
"""Steps are counted by 32-bit integers in compiled loops."""
_NUMBER: Any = numbers.Real


class SavedSettings:
    """Base of the settings dataclasses: conversion to JSON and back, and construction from keywords."""

    def as_json(self) -> dict[str, Any]:
        """The settings as JSON-serialisable values."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Any:
        """The settings that `as_json` wrote."""
        fields = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        return cls(**fields)


def from_preset(presets: Mapping[str, Any], default: str, values: Mapping[str, Any]) -> Any:
    """The preset that `values` names, updated with the other values; unknown names raise an error."""
    check_known(values, presets[default])
    preset = values.get("preset", default)
    if not isinstance(preset, str) or preset not in presets:
        raise ConfigError(f"unknown preset {preset!r}; {nearest(str(preset), presets)}")
    return dataclasses.replace(presets[preset], **values)


def check_known(values: Mapping[str, Any], settings: Any) -> None:
    """Raise an error for names that are not fields of the settings."""
    known = [field.name for field in dataclasses.fields(settings)]
    for name in values:
        if name not in known:
            raise ConfigError(f"unknown setting {name!r}; {nearest(name, known)}")


def checked(
    name: str,
    value: Any,
    *,
    whole: bool = False,
    least: int | float | None = None,
    above: int | float | None = None,
    below: int | float | None = None,
    most: int | float | None = None,
) -> Any:
    """The value as a Python number, for JSON; 1e6 and NumPy's numbers are accepted."""
    bounds = [
        f"{words} {bound:,}"
        for words, bound in (("at least", least), ("above", above), ("below", below), ("at most", most))
        if bound is not None
    ]
    right_type: bool = isinstance(value, _NUMBER) and not isinstance(value, bool)
    right_type = right_type and is_finite(value) and (not whole or value == int(value))
    if (
        not right_type
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (below is not None and value >= below)
        or (most is not None and value > most)
    ):
        wanted = "a whole number" if whole else "a number"
        raise ConfigError(f"{name} must be {wanted} {' and '.join(bounds)}, not {value!r}")
    return int(value) if whole else float(value)


def is_finite(value: Any) -> bool:
    """Whether a number is finite, and not too large for a float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def checked_hidden(value: Any) -> tuple[int, ...]:
    """The widths of hidden layers."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ConfigError(f"hidden must be a list of widths such as (256, 256), not {value!r}")
    return tuple(checked("hidden", width, whole=True, least=1) for width in value)


def check_network(settings: Any) -> None:
    """Check `hidden`, and that the weights and the activations of a batch fit into the machine's memory."""
    if settings.hidden is not None:
        object.__setattr__(settings, "hidden", checked_hidden(settings.hidden))
    hidden = settings.hidden or ()
    weights = sum(inputs * outputs for inputs, outputs in pairwise((1, *hidden, 1)))
    check_size("hidden", 12 * weights)  # with Adam's two moments
    check_size("batch", 4 * settings.batch * max(hidden, default=1))


def check_size(name: str, least: int) -> None:
    """Raise an error for a setting that needs more bytes than the machine's memory.

    Args:
        name: of the setting.
        least: how many bytes it takes, or more.
    """
    if least > memory_bytes():
        raise ConfigError(
            f"{name} takes at least {least >> 30:,} GiB of memory, and this machine has "
            f"{memory_bytes() >> 30:,} GiB; lower it"
        )


def check_kinds(settings: Any) -> None:
    """Raise an error for None, text and booleans that the annotations of a dataclass do not allow."""
    for name, annotation in get_type_hints(type(settings)).items():
        value, parts = getattr(settings, name), (annotation, *get_args(annotation))
        words = [word for part in parts for word in get_args(part) if isinstance(word, str)]
        if value is None:
            if type(None) not in parts:
                raise ConfigError(f"{name} must not be None; leave it out to have lapwing's default")
        elif words and not (isinstance(value, str) and value in words):
            raise ConfigError(
                f"{name} must be one of {', '.join(words)}, not {value!r}; {nearest(str(value), words)}"
            )
        elif bool in parts:
            if not isinstance(value, bool | np.bool_):
                raise ConfigError(f"{name} must be True or False, not {value!r}")
            object.__setattr__(settings, name, bool(value))
        elif (of := _elements(parts)) is not None:
            if name == "hidden":  # `checked_hidden` says more of it
                continue
            if not isinstance(value, tuple | list) or (of is str and not _are_text(value)):
                raise ConfigError(f"{name} must be a list of {_KINDS[of]}, not {value!r}")
            object.__setattr__(settings, name, tuple(value))
        elif str in parts and not isinstance(value, str):
            raise ConfigError(f"{name} must be text, not {value!r}")


_KINDS = {str: "texts", int: "whole numbers", float: "numbers"}


def _elements(parts: tuple[Any, ...]) -> type | None:
    """The type of a list field's elements, or None if it is not a list."""
    lists = [part for part in parts if get_origin(part) is tuple]  # the field itself, or a part of a union
    return get_args(lists[0])[0] if lists and get_args(lists[0])[0] in _KINDS else None


def _are_text(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def chosen_by_lapwing(what: str) -> Any:
    """The `--help` text for the default of a setting that lapwing chooses."""
    return tyro.conf.arg(help_behavior_hint=lambda value: f"(default: {what if value == 'None' else value})")


def check_fields(settings: Any, *names: str, **bounds: Any) -> None:
    """Validate the numbers of a frozen dataclass that are not None, and convert them to Python numbers."""
    for name in names:
        if getattr(settings, name) is not None:
            object.__setattr__(settings, name, checked(name, getattr(settings, name), **bounds))
