"""Which part of a space data comes to: ranges of features, beside the bounds that the space declares."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from lapwing.data.memory_map import chunks

MOST_FEATURES = 64
"""Of longer vectors no ranges are kept."""
UNBOUNDED = 1e30
"""Larger bounds are as good as none: Gymnasium's environments have the largest float32 among them."""
FAR, WELL_BEYOND = 1.0, 2.0
"""A state is far outside if it is beyond the range of a feature by this many times the range; beyond the
second, it may not be a state at all."""
CELLS, MOST_AXES, IN_A_CELL = 10, 3, 10
"""A space of at most so many features is divided into so many cells each way, if there is data for them."""

Range = Sequence[float]
"""Least and largest value of a feature."""


def bounds_of(space: gymnasium.Space) -> tuple[tuple[float, float], ...] | None:
    """The bounds of each feature of a Box, infinite where it has none; None for other or longer spaces.

    Example:
        >>> bounds_of(gymnasium.spaces.Box(0.0, 1.0, (2,)))
        ((0.0, 1.0), (0.0, 1.0))
    """
    if not isinstance(space, gymnasium.spaces.Box) or not 0 < np.prod(space.shape) <= MOST_FEATURES:
        return None
    low, high = (np.ravel(end).astype(np.float64) for end in (space.low, space.high))
    low, high = np.where(low < -UNBOUNDED, -np.inf, low), np.where(high > UNBOUNDED, np.inf, high)
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def ranges_of(observations: np.ndarray) -> list[list[float]] | None:
    """The least and the largest value of each feature of vectors; None for anything else.

    Example:
        >>> ranges_of(np.array([[0.0, 1.0], [2.0, 1.0]]))
        [[0.0, 2.0], [1.0, 1.0]]
    """
    if observations.ndim != 2 or observations.shape[1] > MOST_FEATURES:
        return None
    ends = [(chunk.min(axis=0), chunk.max(axis=0)) for _, chunk in chunks(observations)]
    low, high = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
    return np.stack([low, high], axis=1).astype(np.float64).tolist()


def far_outside(observations: Any, ranges: Sequence[Range], by: float = FAR) -> int | None:
    """The first feature by which one of the observations is far outside of the ranges; None if none is.

    A feature that never changed is not judged, for it has no scale.

    Args:
        observations: one or several vectors.
        ranges: of each feature in the data.
        by: which share of its range a feature must be beyond it.

    Example:
        >>> far_outside([0.5, 5.0], [(0.0, 1.0), (0.0, 1.0)])
        1
        >>> far_outside([0.5, 1.2], [(0.0, 1.0), (0.0, 1.0)]) is None
        True
    """
    low, high = np.array(ranges, np.float64).T
    return _first_beyond(observations, low, high, np.where(high > low, by * (high - low), np.inf))


def _first_beyond(observations: Any, low: np.ndarray, high: np.ndarray, by: np.ndarray) -> int | None:
    rows = np.asarray(observations, np.float64).reshape(-1, len(low))
    beyond = ((rows < low - by) | (rows > high + by)).any(axis=0)
    return int(np.argmax(beyond)) if beyond.any() else None


def why_no_state(
    goal: Any, ranges: Sequence[Range] | None, bounds: Sequence[Range] | None = None
) -> str | None:
    """What speaks against a goal being a state at all; None if nothing does.

    Inside of a space's bounds anything may be a state, however little the data saw of them. Only of a feature
    without bounds the data decides.

    Args:
        goal: one observation, or several.
        ranges: of the data.
        bounds: of the observation space.

    Example:
        >>> why_no_state([0.5, 5.0], [(0.0, 0.1)] * 2, [(0.0, 1.0)] * 2)
        'feature 1 of it is 5, and the observation space has 0 to 1'
    """
    if bounds is not None:
        low, high = np.array(bounds, np.float64).T
        span = np.where(np.isfinite(high - low), high - low, 0.0)
        feature = _first_beyond(goal, low, high, 1e-3 * span + 1e-6)
        if feature is not None:
            return _beyond(goal, feature, bounds, "the observation space has")
    if ranges is None:
        return None
    judged = [
        (-np.inf, np.inf) if bounds is not None and np.isfinite(bounds[feature]).all() else pair
        for feature, pair in enumerate(ranges)
    ]
    feature = far_outside(goal, judged, WELL_BEYOND)
    return None if feature is None else _beyond(goal, feature, ranges, "the data has")


def _beyond(goal: Any, feature: int, ends: Sequence[Range], whose: str) -> str:
    values = np.asarray(goal, np.float64).reshape(-1, len(ends))[:, feature]
    low, high = ends[feature]
    worst = values[np.argmax(np.maximum(low - values, values - high))]
    return f"feature {feature} of it is {worst:.3g}, and {whose} {low:.3g} to {high:.3g}"


def extent_of(seen: np.ndarray, bounds: Sequence[Range] | None) -> dict[str, Any] | None:
    """Ranges beside bounds, and which share of a coarse lattice over the space the data comes to.

    Args:
        seen: the observations, or the different ones among them.
        bounds: of the space, as `bounds_of` gives them.

    Returns:
        `ranges` and `bounds`, an infinite bound as None, and `covered`, None where the space is not bounded,
        or has too many features for the data to fill a lattice; or None, if there are no bounds to compare
        with.
    """
    ranges = ranges_of(seen) if bounds else None
    if ranges is None or bounds is None or len(bounds) != len(ranges):
        return None
    told = [[end if np.isfinite(end) else None for end in pair] for pair in bounds]
    return {"ranges": ranges, "bounds": told, "covered": _covered(seen, np.array(bounds, np.float64))}


def _covered(observations: np.ndarray, bounds: np.ndarray) -> float | None:
    low, high = bounds.T
    axes, cells = len(bounds), CELLS ** len(bounds)
    few = axes > MOST_AXES or len(observations) < IN_A_CELL * cells
    if few or not np.isfinite(bounds).all() or not (high > low).all():
        return None
    found = np.zeros(cells, bool)
    for _, chunk in chunks(observations):
        places = np.clip(((chunk - low) / (high - low) * CELLS).astype(int), 0, CELLS - 1)
        found[np.ravel_multi_index(tuple(places.T), (CELLS,) * axes)] = True
    return float(found.mean())
