"""Neighbour graphs, weighed pair by pair."""

import numpy as np

from lapwing.integrations.sklearn import FAINTEST


def distance_matrix(points: np.ndarray) -> np.ndarray:
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))


def by_brute_force(points: np.ndarray, k: int) -> np.ndarray:
    """The weights of the graph, pair by pair, of a cloud in one part."""
    distances = distance_matrix(points)
    order = np.argsort(distances, axis=1)
    scale = [distances[u, order[u, -(-k // 2)]] for u in range(len(points))]
    weights = np.zeros_like(distances)
    for u in range(len(points)):
        for v in order[u, 1 : k + 1]:
            exponent = distances[u, v] ** 2 / (scale[u] * scale[v])
            weights[u, v] = weights[v, u] = max(np.exp(-exponent), FAINTEST)
    return weights
