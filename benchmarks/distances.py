"""How well each distance ranks states by the steps between them, with the exact eigenfunctions of mazes.

`python -m benchmarks.distances MAZE ...` prints a table of other mazes, built-in or text files.
"""

import sys
from typing import get_args

import numpy as np

from benchmarks.mazes import random_maze
from benchmarks.rows import Row
from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.chain import true_chain
from lapwing.laplacian.distances import BEST, measure_of
from lapwing.laplacian.evaluate import distance_correlation
from lapwing.mazes import parse_maze, read_maze
from lapwing.settings.learn import Distance
from lapwing.shaping.tasks import exact_embedding

DIM = 20
GOALS = 100
DIMS = (5, 10, 20, 40, 80, 160)
SLACK = 0.005
"""The default may be so much behind the best of the others in the mean over the mazes, and behind itself."""


def measure() -> list[Row]:
    worlds = {name: GridWorld(read_maze(name)) for name in ("OneRoom", "TwoRoom", "FourRoom", "HardMaze")}
    for seed in range(3):
        name = f"random 40 x 40 ({seed})"
        worlds[name] = GridWorld(parse_maze(random_maze(40, 0.3, seed), name=name))
    found = {maze: correlations(world) for maze, world in worlds.items()}
    return [*_means(found), *_over_dims(worlds["random 40 x 40 (0)"])]


def correlations(world: GridWorld, dim: int = DIM) -> dict[Distance, float]:
    """By distance, the rank correlation with the fewest steps to a goal, mean over up to 100 goals."""
    goals = np.unique(np.linspace(0, world.n_states - 1, GOALS).astype(int))
    last = true_chain(world.transition_matrix()).eigenpairs(min(dim, world.n_states))[0][-1]
    soft = {"lam": max(0.0, 1 - last), "beta": 1.0, "delta": 1.0}  # as `lapwing.learn` has them by default
    return {
        name: distance_correlation(
            world, exact_embedding(world, name, dim=dim, **soft), goals, measure_of(name)
        )
        for name in get_args(Distance)
    }


def _means(found: dict[str, dict[Distance, float]]) -> list[Row]:
    means = {name: float(np.mean([one[name] for one in found.values()])) for name in get_args(Distance)}
    others = max(value for name, value in means.items() if name != BEST)
    rows = []
    for name, value in means.items():
        wanted = others - SLACK if name == BEST else None
        each = "; ".join(f"{maze} {one[name]:.3f}" for maze, one in found.items())
        rows.append(Row(f"rank with true steps, d = {DIM}, {name}", value, wanted, note=each))
    return rows


def _over_dims(world: GridWorld) -> list[Row]:
    """What more eigenfunctions do to a distance."""
    by_dim = {dim: correlations(world, dim) for dim in DIMS}
    rows = []
    for name in ("commute", "biharmonic", "hitting"):
        each = {dim: one[name] for dim, one in by_dim.items()}
        lost, wanted = max(each.values()) - each[DIMS[-1]], SLACK if name == BEST else None
        note = ", ".join(f"d = {dim}: {value:.3f}" for dim, value in each.items())
        claim = f"random 40 x 40 (0): rank lost by d = {DIMS[-1]} against the best d, {name}"
        rows.append(Row(claim, lost, wanted, at_most=True, note=note))
    return rows


def table(mazes: list[str]) -> str:
    """A row for each maze, and their mean, in Markdown."""
    names = get_args(Distance)
    lines = [f"| maze | states | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    found = []
    for maze in mazes:
        world = GridWorld(read_maze(maze))
        found.append(list(correlations(world).values()))
        lines.append(_line(world.maze.name, f"{world.n_states:,}", found[-1]))
    lines.append(_line("mean", "", np.mean(found, axis=0)))
    lines.append(_line("lowest", "", np.min(found, axis=0)))
    return "\n".join(lines)


def _line(name: str, states: str, values) -> str:
    return f"| {name} | {states} | {' | '.join(f'{value:.3f}'.lstrip('0') for value in values)} |"


if __name__ == "__main__":
    print(table(sys.argv[1:]))
