"""Covering options (Jinnai et al. 2019): connect the two extreme states of the slowest function.

An option from each to the other is an edge of the graph of a random walk. It increases the second eigenvalue,
and the next pair is that of the graph with this edge. In the basis of the first eigenfunctions an edge
between a and b adds w (φ(a) - φ(b)) (φ(a) - φ(b))ᵀ to the diagonal matrix of the eigenvalues, so φ is learned
only once. With all eigenfunctions this is exact.
"""

import numpy as np

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.options.table import OptionTable

MOST_ROUNDS = 20
"""So many edges are tried for each pair that is wanted; one that is found again is made heavier."""


def covering_pairs(
    eigenvalues: np.ndarray, functions: np.ndarray, count: int, weight: float
) -> list[tuple[int, int]]:
    """Pairs of states to join, the first the most urgent; fewer if no more differ.

    Args:
        eigenvalues: of the one-step Laplacian, without the constant's.
        functions: the eigenfunctions without the constant, (states, functions), E[f²] = 1.
        count: how many pairs.
        weight: of an edge, as that of a pair of neighbours in W: 1 / (states · actions).

    Example:
        >>> path = np.cos(np.pi * np.outer(np.arange(4) + 0.5, [1, 2, 3]) / 4)
        >>> covering_pairs(np.array([0.15, 0.5, 0.85]), np.sqrt(2) * path, 1, 1 / 8)
        [(3, 0)]
    """
    matrix, pairs = np.diag(np.asarray(eigenvalues, np.float64)), []
    for _ in range(MOST_ROUNDS * count):
        slowest = functions @ np.linalg.eigh(matrix)[1][:, 0]
        pair = int(slowest.argmin()), int(slowest.argmax())
        slowest_pair = pair if slowest[0] >= 0 else pair[::-1]  # the sign of a vector is chance
        if slowest_pair not in pairs and slowest_pair[::-1] not in pairs:
            pairs.append(slowest_pair)
        if len(pairs) == count:
            break
        apart = functions[pair[0]] - functions[pair[1]]
        matrix += weight * np.outer(apart, apart)
    return pairs


def covering_options(
    world: GridWorld, eigenvalues: np.ndarray, functions: np.ndarray, count: int
) -> OptionTable:
    """From one state of each pair to the other and back, by a shortest path; each begins at its state alone.

    Args:
        world: the maze.
        eigenvalues: without the constant's.
        functions: without the constant, (states, functions).
        count: how many options, two for a pair.
    """
    weight = 1 / world.next_state.size
    pairs = covering_pairs(eigenvalues, functions, (count + 1) // 2, weight)
    ways = [way for a, b in pairs for way in ((a, b), (b, a))][:count]
    if len(ways) < count:
        raise ConfigError(
            f"count={count} is more than the {len(ways)} covering options that differ in "
            f"{world.maze.name}; lower count"
        )
    to_ends = np.atleast_2d(world.steps_to(np.array([there for _, there in ways])))
    states = np.arange(world.n_states)
    return OptionTable(
        actions=np.array([steps[world.next_state].argmin(axis=1) for steps in to_ends]),
        begins=np.array([states == here for here, _ in ways]),
        stops=np.array([states == there for _, there in ways]),
        names=tuple(f"c{1 + number // 2}{'+-'[number % 2]}" for number in range(count)),
    )
