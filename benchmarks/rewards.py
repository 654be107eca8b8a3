"""Any reward in a maze, by `lapwing.solve`: the share of the best return, how it depends on d, and what else.

The share is (J - J_random) / (J_best - J_random), with J the mean return over all starts of the policy, of
random moves, and of value iteration on the true maze: 0 is random, 1 is the best there is.
"""

import time
from functools import cache, partial

import numpy as np

from benchmarks.rows import Row
from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import Target, open_target
from lapwing.mazes import ARENAS, MAZES, read_maze
from lapwing.runs.solve import embedding, target_steps
from lapwing.settings.learn import LearnSettings
from lapwing.solving.dynamic_programming import optimal_values, policy_values, random_values
from lapwing.solving.model import fit_model
from lapwing.solving.steps import Steps

GAMMA = 0.98
DIM = 50
REWARDS = 100
DIMS = (2, 5, 10, 20, 50)
FEW = 12
"""So many rewards where only differences between methods are looked at."""
NOISE = 0.2
"""By so much of a cell positions are disturbed, as a standard deviation."""


def measure() -> list[Row]:
    return rows({name: measure_maze(name) for name in (*MAZES, *ARENAS)})


def measure_maze(name: str) -> dict[str, float]:
    """The shares of a maze, by what they are of."""
    representation, target = _learned(name)
    steps, drawn = target_steps(target), random_rewards(target.world, REWARDS, seed=1)
    found = _solved(representation, target, steps, drawn)
    for dim in DIMS:
        found[f"d = {dim}"] = _disturbed(representation, target, steps, drawn[:FEW], dim)
    return found


def rows(measured: dict[str, dict[str, float]]) -> list[Row]:
    """The claims, from what was measured in each maze."""
    by_what = {
        what: {name: one[what] for name, one in measured.items()} for what in next(iter(measured.values()))
    }
    shares, slowest = by_what["share"], by_what["milliseconds"]
    return [
        Row(
            f"share of the best return, d = {DIM}, {REWARDS} rewards, lowest of {len(shares)} mazes",
            min(shares.values()),
            0.95,
            note="; ".join(f"{name} {value:.3f}" for name, value in shares.items()),
        ),
        Row("… J / J_best alone, lowest", min(by_what["plain"].values()), 0.95),
        Row(
            "milliseconds a reward, slowest",
            max(slowest.values()),
            100,
            at_most=True,
            note=max(slowest, key=lambda name: slowest[name]),
        ),
        *(
            mean_row(f"positions disturbed, first {dim} functions, mean share", by_what[f"d = {dim}"])
            for dim in DIMS
        ),
    ]


def random_rewards(world: GridWorld, count: int, seed: int) -> np.ndarray:
    """Goals, painted regions and mixed signs in turn, one row each."""
    rng, steps = np.random.default_rng(seed), world.steps_to(np.arange(world.n_states))
    draw = (_goal, _region, _mixed)
    return np.array([draw[number % 3](steps, rng) for number in range(count)])


def _goal(steps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (np.arange(len(steps)) == rng.integers(len(steps))).astype(float)


def _region(steps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (steps[rng.integers(len(steps))] <= rng.integers(1, 5)).astype(float)


def _mixed(steps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A goal, and some regions of either sign."""
    signs = rng.choice([-1.0, 1.0], rng.integers(2, 6)) * rng.uniform(0.2, 1.0)
    return _goal(steps, rng) + sum(sign * _region(steps, rng) for sign in signs)


def share(world: GridWorld, actions: np.ndarray, rewards: np.ndarray) -> tuple[float, float]:
    """Of the way from random to best; and of the best return alone."""
    reached = float(policy_values(world, actions, rewards, GAMMA).mean())
    lowest, best = _bounds(world, rewards.tobytes())
    return (reached - lowest) / (best - lowest), reached / best if best > 0 else np.nan


@cache
def _bounds(world: GridWorld, rewards: bytes) -> tuple[float, float]:
    """The mean return of random moves, and of the best."""
    values = np.frombuffer(rewards)
    return float(random_values(world, values, GAMMA).mean()), float(best_values(world, rewards).mean())


@cache
def best_values(world: GridWorld, rewards: bytes) -> np.ndarray:
    """`optimal_values`, computed once for each reward."""
    return optimal_values(world, np.frombuffer(rewards), GAMMA)


def _learned(name: str, **settings) -> tuple[Representation, Target]:
    """φ of a maze by the defaults, from a million random steps."""
    maze = read_maze(name)
    chosen = LearnSettings(dim=min(DIM, GridWorld(maze).n_states), **settings)
    target = open_target(maze, chosen)
    return learn_target(target, chosen), target


def _solved(
    representation: Representation, target: Target, steps: Steps, drawn: np.ndarray
) -> dict[str, float]:
    model = fit_model(partial(embedding, representation), steps)
    found, seconds = [], []
    for rewards in drawn:
        began = time.process_time()
        policy = model.solve(rewards, GAMMA)
        seconds.append(time.process_time() - began)
        found.append(share(target.world, policy.act(target.states), rewards))
    shares, plain = np.array(found).T
    means = {"share": float(shares.mean()), "plain": float(np.nanmean(plain))}
    return means | {"milliseconds": 1_000 * max(seconds)}


def _disturbed(
    representation: Representation, target: Target, steps: Steps, drawn: np.ndarray, dim: int
) -> float:
    """The share where positions are disturbed, and only the first functions tell where one is."""
    model = fit_model(lambda seen: embedding(representation, seen)[:, : max(dim - 1, 1)], steps)
    cell = 2 / np.maximum(np.array(target.world.maze.floor.shape) - 1, 1)
    noise = NOISE * cell * np.random.default_rng(0).normal(size=target.states.shape)
    seen = (target.states + noise).astype(np.float32)
    return float(
        np.mean([share(target.world, model.solve(rewards, GAMMA).act(seen), rewards)[0] for rewards in drawn])
    )


def mean_row(claim: str, found: dict[str, float]) -> Row:
    note = "; ".join(f"{name} {value:.2f}" for name, value in found.items())
    return Row(claim, float(np.mean(list(found.values()))), note=note)
