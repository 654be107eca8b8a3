"""Landmarks: representative states in φ, and the weights with which they represent other states."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

NEAR = 1e-9
"""A state that is nearer to a landmark than this share of the embedding's size is that landmark."""


def spread(points: np.ndarray, count: int) -> np.ndarray:
    """Indices of `count` points, or of all that differ, each the farthest from those before it.

    Example:
        >>> spread(np.array([[0.0], [0.1], [1.0], [0.5]]), 3).tolist()
        [0, 2, 3]
    """
    chosen = [0]
    apart = np.sum((points - points[0]) ** 2, axis=1)
    while len(chosen) < count and apart.max() > 0:
        chosen.append(int(apart.argmax()))
        np.minimum(apart, np.sum((points - points[chosen[-1]]) ** 2, axis=1), out=apart)
    return np.array(chosen)


def nearest(tree: KDTree, points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """How far the `count` nearest of a tree are from each point, and which they are: a row for each point."""
    query: Any = tree.query  # whose types do not know of a list
    apart, found = query(points, k=list(range(1, min(count, tree.n) + 1)))
    return apart, found


def shares(landmarks: KDTree, points: np.ndarray, neighbours: int) -> sparse.csr_array:
    """How much each landmark stands for each point: rows with sum 1 over the nearest ones.

    The weight is one over the squared distance, so a landmark stands for itself alone. Values that are
    interpolated in this way never leave their range, so value iteration over landmarks converges.

    Args:
        landmarks: their embedding.
        points: the embedding of some states.
        neighbours: how many of the nearest landmarks have a share.
    """
    apart, found = nearest(landmarks, points, neighbours)
    size = float(np.abs(landmarks.data).max(initial=0.0)) or 1.0
    apart = np.maximum(apart, NEAR * size)
    weights = (apart[:, :1] / apart) ** 2
    weights /= weights.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(len(points)), found.shape[1])
    entries = (weights.ravel(), (rows, found.ravel()))
    return sparse.csr_array(entries, shape=(len(points), landmarks.n))
