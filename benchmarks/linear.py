"""What policies reach that are linear in the exact eigenfunctions: why `lapwing.solve` is not.

Shares are those of `benchmarks.rewards`.
"""

import numpy as np

from benchmarks.rewards import FEW, GAMMA, best_values, mean_row, random_rewards, share
from benchmarks.rows import Row
from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.chain import true_chain
from lapwing.mazes import read_maze

COMPARED = ("FourRoom", "HardMaze", "GridMaze-19", "GridMaze-26", "GridRoom-16")
LINEAR_DIMS = (20, 50, 100)


def measure() -> list[Row]:
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
            rows.append(mean_row(f"{title}, d = {dim}", found))
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
