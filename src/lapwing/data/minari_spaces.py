"""The spaces of Minari's metadata, made from JSON by a short list of kinds; nothing else is made of it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from lapwing.errors import DatasetError

_DTYPES = tuple(np.dtype(code).name for code in "?bBhHiIqQefd")
_IMAGE_SIDE = 32


def space_from_json(text: str) -> gymnasium.Space:
    """The space that Minari's `serialize_space` wrote.

    Example:
        >>> space_from_json('{"type": "Discrete", "dtype": "int64", "start": 0, "n": 4}')
        Discrete(4)
    """
    try:
        return _space(json.loads(text))
    except DatasetError:
        raise
    except Exception as error:  # Gymnasium asserts, numpy and json raise
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)[:200]
        raise DatasetError(f"its observation_space is damaged ({reason})") from error


def parts(space: gymnasium.Space) -> Iterator[gymnasium.Space]:
    """The spaces of numbers or text that a space is composed of; itself, if it is not.

    Example:
        >>> list(parts(spaces.Tuple([spaces.Discrete(2), spaces.Dict({"a": spaces.Discrete(3)})])))
        [Discrete(2), Discrete(3)]
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        for part in inner:
            yield from parts(part)
    else:
        yield space


def is_image(space: gymnasium.Space) -> bool:
    """Whether Minari takes it for an image, as its `is_image_space` does, and so would store it as JPEG."""
    return (
        isinstance(space, spaces.Box)
        and space.dtype == np.uint8
        and len(space.shape) in (2, 3)
        and min(space.shape[:2]) >= _IMAGE_SIDE
        and bool((space.low == 0).all())
        and bool((space.high == 255).all())
    )


def _space(described: dict[str, Any]) -> gymnasium.Space:
    kind = described["type"]
    if kind not in _READERS:
        raise DatasetError(
            f"its observation_space has the type {kind!r}, and lapwing reads {', '.join(_READERS)}; "
            "save the observations as one of these"
        )
    return _READERS[kind](described)


def _box(described: dict[str, Any]) -> gymnasium.Space:
    dtype = _dtype(described)
    low, high = (np.array(described[bound], dtype) for bound in ("low", "high"))
    if not list(low.shape) == list(high.shape) == described["shape"]:
        raise ValueError(f"bounds of shape {low.shape} and {high.shape} for {described['shape']}")
    return spaces.Box(low, high, low.shape, dtype.type)


def _discrete(described: dict[str, Any]) -> gymnasium.Space:
    return spaces.Discrete(described["n"], start=described["start"])


def _multi_discrete(described: dict[str, Any]) -> gymnasium.Space:
    dtype = _dtype(described)
    start = np.array(described["start"], dtype)
    return spaces.MultiDiscrete(np.array(described["nvec"], dtype), dtype.type, start=start)


def _multi_binary(described: dict[str, Any]) -> gymnasium.Space:
    return spaces.MultiBinary(described["n"])


def _text(described: dict[str, Any]) -> gymnasium.Space:
    charset = described["charset"]
    return spaces.Text(described["max_length"], min_length=described["min_length"], charset=charset)


def _dict(described: dict[str, Any]) -> gymnasium.Space:
    return spaces.Dict({key: _space(part) for key, part in described["subspaces"].items()})


def _tuple(described: dict[str, Any]) -> gymnasium.Space:
    return spaces.Tuple([_space(part) for part in described["subspaces"]])


def _dtype(described: dict[str, Any]) -> np.dtype:
    if described["dtype"] not in _DTYPES:
        raise ValueError(f"dtype {described['dtype']!r}")
    return np.dtype(described["dtype"])


_READERS: dict[str, Callable[[dict[str, Any]], gymnasium.Space]] = {
    "Box": _box,
    "Discrete": _discrete,
    "MultiDiscrete": _multi_discrete,
    "MultiBinary": _multi_binary,
    "Text": _text,
    "Dict": _dict,
    "Tuple": _tuple,
}
