"""The way between points of a maze: shortest paths over a fine lattice of its floor."""

from math import gcd

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree
from scipy.stats import spearmanr

FINENESS = 8
"""Lattice points along the side of a cell."""
OFFSETS = [(row, column) for row in range(-3, 4) for column in range(-3, 4) if gcd(row, column) == 1]


def path_lengths(floor: np.ndarray, origin: np.ndarray, unit: float, goals, points) -> np.ndarray:
    """Lengths of shortest paths (goals, points); `origin` is the (x, y) of the middle of the first cell.

    x grows with the columns of `floor`, y with its rows.
    """
    fine = np.kron(floor, np.ones((FINENESS, FINENESS), bool))
    number = np.cumsum(fine).reshape(fine.shape) - 1
    places = np.argwhere(fine)
    heads, tails, lengths = [], [], []
    for offset in OFFSETS:
        straight = np.round(places[:, None] + np.linspace(0, 1, 9)[:, None] * offset).astype(int)
        inside = ((straight >= 0) & (straight < fine.shape)).all(axis=(1, 2))
        clear = np.flatnonzero(inside)
        clear = clear[fine[tuple(straight[clear].transpose(2, 0, 1))].all(axis=1)]
        heads.append(clear)
        tails.append(number[tuple(straight[clear, -1].T)])
        lengths.append(np.full(len(clear), np.hypot(*offset) * unit / FINENESS))
    edges = (np.concatenate(lengths), (np.concatenate(heads), np.concatenate(tails)))
    graph = sparse.csr_array(edges, shape=(len(places),) * 2)
    at = KDTree(origin + (places[:, ::-1] + 0.5) * unit / FINENESS - unit / 2)
    return dijkstra(graph, indices=at.query(goals)[1])[:, at.query(points)[1]]


def mean_rank(distances: np.ndarray, ways: np.ndarray) -> float:
    """The rank correlation with the length of the way, in the mean over goals, which are rows."""
    ranks = [spearmanr(*rows).statistic for rows in zip(distances, ways, strict=True)]
    return float(np.mean(np.asarray(ranks)))


def ranks(representation, goals: np.ndarray, points: np.ndarray, ways: np.ndarray) -> dict[str, float]:
    """Of each distance of a representation, and of the plain distance in the first two features."""
    found = {
        name: mean_rank(
            np.stack([representation.distance(points, goal, filter=name) for goal in goals]), ways
        )
        for name in ("biharmonic", "commute", "hitting")
    }
    plain = np.linalg.norm(points[None, :, :2] - goals[:, None, :2], axis=2)
    return found | {"euclid": mean_rank(plain, ways)}
