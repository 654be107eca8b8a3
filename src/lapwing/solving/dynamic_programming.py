"""Value iteration over sparse transitions, and the exact returns of policies in mazes.

A reward is received at every arrival in a state: a step from s to s' gives r(s'), and so does a step into a
wall, which arrives where it was. Nothing ends an episode, so a goal is a state to return to or to stay at.
The return is Σ_t γ^t r(s_{t+1}).
"""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError

TOLERANCE = 1e-6
"""Sweeps end when no value changes by more than this share of the largest reward."""


def checked_gamma(gamma: float) -> float:
    """The discount, at least 0 and below 1."""
    if not 0 <= gamma < 1:
        raise ConfigError(f"gamma must be at least 0 and below 1, not {gamma!r}; 0.98 is usual")
    return float(gamma)


def value_iteration(
    transition: sparse.csr_array, rewards: np.ndarray, gamma: float, seen: np.ndarray
) -> np.ndarray:
    """Q (states, actions), with -∞ where an action was never seen; 0 for all where none was.

    Args:
        transition: P(s'|s, a), with row a · states + s.
        rewards: of arriving in each state.
        gamma: the discount.
        seen: whether an action is known in a state, (states, actions).
    """
    allowed = np.where(seen | ~seen.any(axis=1, keepdims=True), 0.0, -np.inf).T
    expected = (transition @ rewards).reshape(allowed.shape) + allowed
    values, change = np.zeros(len(rewards)), np.inf
    enough = TOLERANCE * np.abs(rewards).max(initial=0.0)
    while change > enough:
        following = (expected + gamma * (transition @ values).reshape(allowed.shape)).max(axis=0)
        change = np.abs(following - values).max()
        values = following
    return (expected + gamma * (transition @ values).reshape(allowed.shape)).T


def optimal_values(world: GridWorld, rewards: np.ndarray, gamma: float) -> np.ndarray:
    """The largest return from each state of a maze: that of the policy at which value iteration rests."""
    states, actions = world.next_state.shape
    rows = np.arange(states * actions)
    entries = (np.ones(len(rows)), (rows, world.next_state.T.ravel()))
    moves = sparse.coo_array(entries, shape=(len(rows), states)).tocsr()
    every = np.ones((states, actions), bool)
    best = value_iteration(moves, rewards, gamma, every).argmax(axis=1)
    return policy_values(world, best, rewards, gamma)


def policy_values(world: GridWorld, actions: np.ndarray, rewards: np.ndarray, gamma: float) -> np.ndarray:
    """The return from each state of a maze of a policy, which is an action for each: a linear system."""
    policy = np.eye(world.n_actions)[actions]
    moves = world.transition_matrix(policy)
    remaining = sparse.eye_array(world.n_states) - gamma * moves
    return splu(remaining.tocsc()).solve(moves @ rewards)


def random_values(world: GridWorld, rewards: np.ndarray, gamma: float) -> np.ndarray:
    """The return from each state of a maze of uniformly random actions."""
    moves = world.transition_matrix()
    remaining = sparse.eye_array(world.n_states) - gamma * moves
    return splu(remaining.tocsc()).solve(moves @ rewards)
