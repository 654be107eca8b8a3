"""Spaces in Minari's metadata, which is untrusted: only a few kinds are accepted."""

import json
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from lapwing.errors import DatasetError

_SPACES = ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Text", "Dict", "Tuple")
_DTYPES = tuple(np.dtype(code).name for code in "?bBhHiIqQefd")


def space_from_json(text: str) -> gymnasium.Space:
    """The space that Minari's `serialize_space` wrote; only the kinds in `_SPACES` are made.

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


def _space(described: dict[str, Any]) -> gymnasium.Space:
    match described["type"]:
        case "Box":
            return _box(described, _dtype(described))
        case "Discrete":
            return spaces.Discrete(described["n"], start=described["start"])
        case "MultiDiscrete":
            dtype = _dtype(described)
            counts, start = (np.array(described[name], dtype) for name in ("nvec", "start"))
            return spaces.MultiDiscrete(counts, dtype.type, start=start)
        case "MultiBinary":
            return spaces.MultiBinary(described["n"])
        case "Text":
            lengths = described["max_length"], described["min_length"]
            return spaces.Text(lengths[0], min_length=lengths[1], charset=described["charset"])
        case "Dict":
            return spaces.Dict({key: _space(part) for key, part in described["subspaces"].items()})
        case "Tuple":
            return spaces.Tuple([_space(part) for part in described["subspaces"]])
    raise DatasetError(
        f"its observation_space has the type {described['type']!r}, and lapwing reads {', '.join(_SPACES)}; "
        "save the observations as one of these"
    )


def _box(described: dict[str, Any], dtype: np.dtype) -> gymnasium.Space:
    low, high = (np.array(described[bound], dtype) for bound in ("low", "high"))
    if not list(low.shape) == list(high.shape) == described["shape"]:
        raise ValueError(f"bounds of shape {low.shape} and {high.shape} for {described['shape']}")
    return spaces.Box(low, high, low.shape, dtype.type)


def _dtype(described: dict[str, Any]) -> np.dtype:
    if described["dtype"] not in _DTYPES:
        raise ValueError(f"dtype {described['dtype']!r}")
    return np.dtype(described["dtype"])
