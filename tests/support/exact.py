"""Mazes and their spectra, computed here from the text files alone, to hold lapwing's against."""

from collections import deque
from functools import cache
from importlib import resources

import numpy as np
from hypothesis import strategies as st

FILES = {
    "OneRoom": "one_room.txt",
    "TwoRoom": "two_room.txt",
    "HardMaze": "hard_maze.txt",
    "FourRoom": "four_room.txt",
}
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
"""Up, down, left, right, stay."""


def text_of(name: str) -> str:
    """The drawing of a built-in maze."""
    return resources.files("lapwing.mazes").joinpath(FILES[name]).read_text("utf-8")


def free_cells(text: str) -> list[tuple[int, int]]:
    """The cells of a drawing that are no wall, in reading order."""
    lines = text.split()
    return [(r, c) for r, line in enumerate(lines) for c, mark in enumerate(line) if mark != "#"]


def goal_of(text: str) -> int:
    """Which free cell is marked G."""
    return "".join(text.split()).replace("#", "").index("G")


def moves(text: str, *, stay: bool = False) -> list[list[int]]:
    """Where each action leads from each free cell of a drawing; into a wall is to stay."""
    free = free_cells(text)
    number = {cell: state for state, cell in enumerate(free)}
    steps = STEPS if stay else STEPS[:4]
    return [
        [number.get((row + down, column + right), here) for down, right in steps]
        for here, (row, column) in enumerate(free)
    ]


def fewest_moves(table: list[list[int]], goal: int) -> list[int]:
    """From each state to the goal, breadth first; every move can be undone, so the way back is as long."""
    fewest, frontier = {goal: 0}, deque([goal])
    while frontier:
        here = frontier.popleft()
        for there in table[here]:
            if there not in fewest:
                fewest[there] = fewest[here] + 1
                frontier.append(there)
    return [fewest[state] for state in range(len(table))]


@st.composite
def small_mazes(draw, *, height: int = 4, width: int = 4) -> str:
    """Drawings with one goal, of floor that is connected."""
    height, width = draw(st.integers(1, height)), draw(st.integers(1, width))
    every = [(row, column) for row in range(height) for column in range(width)]
    goal = draw(st.sampled_from(every))
    open_cells = {cell for cell in every if draw(st.sampled_from("..#")) == "."}
    kept, frontier = {goal}, [goal]
    while frontier:
        row, column = frontier.pop()
        near = {(row + down, column + right) for down, right in STEPS} & open_cells - kept
        kept |= near
        frontier += near
    marks = dict.fromkeys(kept, ".") | {goal: "G"}
    return "\n".join("".join(marks.get((r, c), "#") for c in range(width)) for r in range(height)) + "\n"


@cache
def cells(name: str) -> list[tuple[int, int]]:
    """The free cells in reading order."""
    return free_cells(text_of(name))


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
