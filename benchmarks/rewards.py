"""Any reward in a maze, by `lapwing.solve`: the share of the best return, how it depends on d, and what else.

The share is (J - J_random) / (J_best - J_random), with J the mean return over all starts of the policy, of
random moves, and of value iteration on the true maze: 0 is random, 1 is the best there is.
"""

import time
from functools import cache, partial

import numpy as np

from benchmarks.rows import Row
from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.chain import true_chain
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
COMPARED = ("FourRoom", "HardMaze", "GridMaze-19", "GridMaze-26", "GridRoom-16")
LINEAR_DIMS = (20, 50, 100)


def measure() -> list[Row]:
    shares, slowest, plain = {}, {}, {}
    by_dim = {dim: {} for dim in DIMS}
    for name in (*MAZES, *ARENAS):
        representation, target = _learned(name)
        world, steps = target.world, target_steps(target)
        drawn = random_rewards(world, REWARDS, seed=1)
        shares[name], plain[name], slowest[name] = _solved(representation, target, steps, drawn)
        for dim in DIMS:
            by_dim[dim][name] = _disturbed(representation, target, steps, drawn[:FEW], dim)
    return [
        *_returns(shares, plain, slowest),
        *(_row(f"solve, first {dim} functions, positions disturbed", found) for dim, found in by_dim.items()),
        *_linear(),
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


def _solved(representation: Representation, target: Target, steps: Steps, drawn: np.ndarray):
    model = fit_model(partial(embedding, representation), steps)
    found, seconds = [], []
    for rewards in drawn:
        began = time.process_time()
        policy = model.solve(rewards, GAMMA)
        seconds.append(time.process_time() - began)
        found.append(share(target.world, policy.act(target.states), rewards))
    shares, plain = np.array(found).T
    return float(shares.mean()), float(np.nanmean(plain)), 1_000 * max(seconds)


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


def _returns(shares: dict, plain: dict, slowest: dict) -> list[Row]:
    each = "; ".join(f"{name} {value:.3f}" for name, value in shares.items())
    lowest, slow = min(shares, key=shares.get), max(slowest, key=slowest.get)
    return [
        Row(f"share of the best return, d = {DIM}, {REWARDS} rewards, lowest of {len(shares)} mazes",
            shares[lowest], 0.95, note=each),
        Row("… J / J_best alone, lowest", min(plain.values()), 0.95),
        Row("milliseconds a reward, slowest", slowest[slow], 100, at_most=True, note=slow),
    ]  # fmt: skip


def _row(claim: str, found: dict[str, float]) -> Row:
    note = "; ".join(f"{name} {value:.2f}" for name, value in found.items())
    return Row(claim, float(np.mean(list(found.values()))), note=note)


def _linear() -> list[Row]:
    """Policies that are linear in the exact eigenfunctions."""
    rows = []
    methods = {
        "value in the span of φ, true one-step look-ahead": best_value,
        "φ ⊗ a, the best fit to the true Q": best_q,
        "φ ⊗ a, least-squares policy iteration": lspi,
    }
    for title, method in methods.items():
        for dim in LINEAR_DIMS:
            found = {}
            for name in COMPARED:
                world = GridWorld(read_maze(name))
                chain = true_chain(world.transition_matrix())
                functions = chain.eigenpairs(min(dim, world.n_states))[1]
                drawn = random_rewards(world, FEW, seed=1)
                policies = [method(world, functions, rewards) for rewards in drawn]
                shares = [share(world, *one)[0] for one in zip(policies, drawn, strict=True)]
                found[name] = float(np.mean(shares))
            rows.append(_row(f"{title}, d = {dim}", found))
    return rows


def best_value(world: GridWorld, functions: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Greedy for the true optimal value, as far as the functions hold it."""
    values = best_values(world, rewards.tobytes())
    held = functions @ np.linalg.lstsq(functions, values, rcond=None)[0]
    return (rewards + GAMMA * held)[world.next_state].argmax(axis=1)


def best_q(world: GridWorld, functions: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Greedy for the true optimal Q, as far as functions times actions hold it."""
    q = (rewards + GAMMA * best_values(world, rewards.tobytes()))[world.next_state]
    return (functions @ np.linalg.lstsq(functions, q, rcond=None)[0]).argmax(axis=1)


def lspi(world: GridWorld, functions: np.ndarray, rewards: np.ndarray, *, rounds: int = 15) -> np.ndarray:
    """Least-squares policy iteration (Lagoudakis and Parr 2003) from every move of the maze once."""
    moves, size, actions = world.next_state, functions.shape[1], range(world.n_actions)
    fit = np.linalg.pinv(functions)
    immediate = (fit @ rewards[moves]).T
    policy = (functions @ immediate.T).argmax(axis=1)
    for _ in range(rounds):
        blocks = [
            [
                fit @ (functions[there] * (policy[there] == action)[:, None])
                for action in range(moves.shape[1])
            ]
            for there in moves.T
        ]
        system = (1 + 1e-9) * np.eye(size * len(actions)) - GAMMA * np.block(blocks)
        weights = np.linalg.solve(system, immediate.ravel()).reshape(immediate.shape)
        improved = (functions @ weights.T).argmax(axis=1)
        if (improved == policy).all():
            break
        policy = improved
    return policy
