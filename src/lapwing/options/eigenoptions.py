"""Eigenoptions (Machado et al. 2017): climb an eigenfunction, and stop where no action has a positive value.

The intrinsic reward of a step is f(s') - f(s), and stopping gives 0. By partial summation Σ_t γ^t (f(s_{t+1})
- f(s_t)) = Σ_t γ^t (1-γ) f(s_{t+1}) - f(s_0). So the optimal policy is that of the reward (1-γ) f on arrival,
with an action that stays instead of stopping, and the value of an option at s is the value of this reward
minus f(s). In a set of states that a policy would visit for ever, nothing is gained at the one where f is
largest, so every eigenoption ends.
"""

from collections.abc import Iterable

import numpy as np
from scipy import sparse

from lapwing.options.table import OptionTable
from lapwing.solving.dynamic_programming import value_iteration

PAYS = 1e-5
"""An action pays if it gains more than this share of the largest |f|; value iteration errs by a tenth."""


def eigenoption(next_state: np.ndarray, f: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """The action and whether the option stops, in each state.

    Args:
        next_state: the table of a deterministic maze, (states, actions).
        f: an eigenfunction, times the sign of the option.
        gamma: the discount of the intrinsic reward.

    Example:
        >>> corridor = np.array([[0, 1], [0, 2], [1, 3], [2, 3]])  # left, right
        >>> actions, stops = eigenoption(corridor, np.array([0.0, 1.0, 2.0, 3.0]), gamma=0.9)
        >>> actions[:3].tolist(), stops.tolist()
        ([1, 1, 1], [False, False, False, True])
    """
    states, actions = next_state.shape
    moves = np.column_stack([next_state, np.arange(states)])
    rows = np.arange(moves.size)
    entries = (np.ones(moves.size), (rows, moves.T.ravel()))
    transition = sparse.coo_array(entries, shape=(moves.size, states)).tocsr()
    q = value_iteration(transition, (1 - gamma) * f, gamma, np.ones(moves.shape, bool))[:, :actions]
    return q.argmax(axis=1), q.max(axis=1) - f <= PAYS * np.abs(f).max()


def eigenoptions(next_state: np.ndarray, functions: np.ndarray, count: int, gamma: float) -> OptionTable:
    """The first `count` options: up and down the second eigenfunction, up and down the third, and so on.

    Args:
        next_state: the table of a deterministic maze.
        functions: the eigenfunctions without the constant, (states, functions).
        count: how many options.
        gamma: the discount of the intrinsic reward.
    """
    climbs = up_and_down(range(2, 2 + functions.shape[1]), count)
    found = [eigenoption(next_state, sign * functions[:, function - 2], gamma) for function, sign in climbs]
    actions, stops = (np.array(part) for part in zip(*found, strict=True))
    return OptionTable(actions, ~stops, stops, tuple(eigenoption_name(*climb) for climb in climbs))


def up_and_down(functions: Iterable[int], count: int) -> tuple[tuple[int, int], ...]:
    """Which eigenfunction each of the first `count` options takes, and its sign.

    Example:
        >>> up_and_down([2, 5], 3)
        ((2, 1), (2, -1), (5, 1))
    """
    return tuple((function, sign) for function in functions for sign in (1, -1))[:count]


def eigenoption_name(function: int, sign: int) -> str:
    """Such as f2+, up the second eigenfunction; the constant is f1.

    Example:
        >>> eigenoption_name(3, -1)
        'f3-'
    """
    return f"f{function}{'+' if sign > 0 else '-'}"
