"""Landmarks: some states of the data, spread over where it went; and which one each state is nearest to."""

from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from lapwing.laplacian.bases import spread_centres

SOME = 20_000
"""So many states are clustered."""
PER_LANDMARK = 20
"""At least so many states there are for each."""
AT_ONCE = 16_384


class Nearest(NamedTuple):
    """Of each state, its nearest landmark and how far that is."""

    landmark: np.ndarray
    distance: np.ndarray


def choose_landmarks(coordinates: np.ndarray, count: int, seed: int) -> np.ndarray:
    """The indices of at most `count` states of the data, spread in these coordinates.

    They are the states nearest to the centres of clusters. Clusters follow the data where it is dense, but
    not in proportion: in two dimensions as the root of the density. Enumerated states are all landmarks, if
    they are not more than `count`.
    """
    rows = len(coordinates)
    drawn = np.sort(np.random.default_rng(seed).choice(rows, min(rows, SOME), replace=False))
    distinct = np.unique(coordinates[drawn], axis=0, return_index=True)[1]
    if len(distinct) <= count and PER_LANDMARK * len(distinct) <= len(drawn):
        return drawn[np.sort(distinct)]
    count = max(2, min(count, len(distinct), rows // PER_LANDMARK))
    centres, _ = spread_centres(coordinates[drawn].astype(np.float64), count, seed)
    return np.unique(drawn[KDTree(coordinates[drawn]).query(centres)[1]])


def squared_distances(coordinates: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    """(states, landmarks), not below 0."""
    squares = np.sum(coordinates**2, axis=1)[:, None] + np.sum(landmarks**2, axis=1)
    squares -= 2 * coordinates @ landmarks.T
    return np.maximum(squares, 0.0, out=squares)


def nearest_landmarks(coordinates: np.ndarray, landmarks: np.ndarray) -> Nearest:
    """The nearest landmark of each state, in bounded memory."""
    found, distance = np.empty(len(coordinates), np.int64), np.empty(len(coordinates), np.float32)
    for begin in range(0, len(coordinates), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        squares = squared_distances(coordinates[part], landmarks)
        found[part] = squares.argmin(axis=1)
        distance[part] = np.sqrt(squares.min(axis=1))
    return Nearest(found, distance)
