"""Mazes and their spectra, computed here from the text files alone, to hold lapwing's against."""

from functools import cache
from importlib import resources

import numpy as np

FILES = {
    "OneRoom": "one_room.txt",
    "TwoRoom": "two_room.txt",
    "HardMaze": "hard_maze.txt",
    "FourRoom": "four_room.txt",
}


@cache
def cells(name: str) -> list[tuple[int, int]]:
    """The free cells in reading order."""
    lines = resources.files("lapwing.mazes").joinpath(FILES[name]).read_text("utf-8").split()
    return [(r, c) for r, line in enumerate(lines) for c, mark in enumerate(line) if mark != "#"]


@cache
def transition(name: str) -> np.ndarray:
    """P of the uniformly random policy over four moves; into a wall is to stay."""
    free = cells(name)
    number = {cell: state for state, cell in enumerate(free)}
    matrix = np.zeros((len(free), len(free)))
    for here, (row, column) in enumerate(free):
        for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            matrix[here, number.get((row + down, column + right), here)] += 0.25
    return matrix


@cache
def spectrum(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Every eigenvalue of L = I - P, ascending, and eigenfunctions with mean square 1.

    P is symmetric, so ρ is uniform and this is the paper's L.
    """
    matrix = transition(name)
    assert np.array_equal(matrix, matrix.T)
    values, vectors = np.linalg.eigh(np.eye(len(matrix)) - matrix)
    return values, vectors * np.sqrt(len(matrix))


def multi_step(eigenvalues: np.ndarray, lam: float) -> np.ndarray:
    """Eigenvalues of I - P_λ with P_λ = Σ (1-λ) λ^(τ-1) P^τ, summed term by term."""
    powers, total = 1 - eigenvalues, np.zeros_like(eigenvalues)
    for tau in range(1, 20_000):
        total += (1 - lam) * lam ** (tau - 1) * powers**tau
    return 1 - total


def steps_to(name: str, goal: int) -> np.ndarray:
    """The fewest moves from each state to `goal`, by breadth-first search."""
    near = (transition(name) > 0).astype(int)
    distance = np.full(len(near), -1)
    frontier, steps = np.arange(len(near)) == goal, 0
    while frontier.any():
        distance[frontier] = steps
        frontier, steps = (near @ frontier > 0) & (distance < 0), steps + 1
    return distance


def projection_lengths(functions: np.ndarray, name: str, dim: int) -> np.ndarray:
    """For each of the first functions, how much of it lies in the eigenspace that its index is in."""
    values, exact = spectrum(name)
    lengths = []
    for index in range(dim):
        space = exact[:, np.abs(values - values[index]) < 1e-9]
        function = functions[:, index].astype(np.float64)
        inner = space.T @ function / len(function)
        lengths.append(np.linalg.norm(inner) / np.sqrt(np.mean(function**2)))
    return np.array(lengths)
