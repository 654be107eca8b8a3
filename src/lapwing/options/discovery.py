"""The online loop: walk, compute the slowest eigenfunction of the visited states, add its options, continue.

Only what the walk has visited is known: an action that was never taken counts as staying. The eigenfunction
is that of the steps so far, the limit of a φ learned from them.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from lapwing.laplacian.chain import Chain
from lapwing.options.eigenoptions import eigenoption
from lapwing.options.table import OptionTable, no_options


class Walked(NamedTuple):
    """A walk, and the options that it found on the way."""

    states: np.ndarray
    """Where it was after each step, the start first."""
    options: OptionTable


def walk_and_discover(
    next_state: np.ndarray,
    *,
    rounds: int,
    steps: int,
    share: float,
    gamma: float = 0.95,
    discover: bool = True,
    seed: int = 0,
) -> Walked:
    """One walk of `rounds` times `steps` steps from a random state, with two options more after each round.

    Args:
        next_state: the table of a deterministic maze, which the walk finds out by and by.
        rounds: how often options are looked for.
        steps: of a round.
        share: of decisions that take an option, where one begins.
        gamma: the discount of the intrinsic reward.
        discover: whether options are looked for at all; without, it is a random walk.
        seed: of the walk.
    """
    n_states, n_actions = next_state.shape
    rng = np.random.default_rng(seed)
    known = np.broadcast_to(np.arange(n_states)[:, None], next_state.shape).copy()
    states, table, current = [int(rng.integers(n_states))], no_options(n_states), None
    for _ in range(rounds):
        for _ in range(steps):
            here = states[-1]
            if current is None:
                able = np.flatnonzero(table.begins[:, here]) if rng.random() < share else ()
                current = int(rng.choice(able)) if len(able) else None
            action = int(rng.integers(n_actions)) if current is None else int(table.actions[current, here])
            there = int(next_state[here, action])
            known[here, action] = there
            states.append(there)
            if current is not None and table.stops[current, there]:
                current = None
        if discover and len(np.unique(states)) > 2:
            table, current = with_slowest(table, known, np.array(states), gamma), None
    return Walked(np.array(states), table)


def with_slowest(table: OptionTable, known: np.ndarray, states: np.ndarray, gamma: float) -> OptionTable:
    """The options, and two more: up and down the slowest eigenfunction of a walk.

    Args:
        table: the options so far.
        known: where each action leads, as far as it was seen; else where it is taken.
        states: where the walk was after each step.
        gamma: the discount of the intrinsic reward.
    """
    slowest = seen_chain(states, len(known)).eigenpairs(2)[1][:, 1]
    visited = np.isin(np.arange(len(known)), states)
    found = [eigenoption(known, sign * slowest, gamma) for sign in (1, -1)]
    actions, stops = np.array([one[0] for one in found]), np.array([one[1] | ~visited for one in found])
    number = 1 + len(table.names) // 2
    return OptionTable(
        np.concatenate([table.actions, actions]),
        np.concatenate([table.begins, ~stops]),
        np.concatenate([table.stops, stops]),
        (*table.names, f"r{number}+", f"r{number}-"),
    )


def seen_chain(states: np.ndarray, n_states: int) -> Chain:
    """The chain of the steps of a walk, each as often as its way back."""
    entries = (np.ones(len(states) - 1), (states[:-1], states[1:]))
    counts = sparse.coo_array(entries, shape=(n_states, n_states)).tocsr()
    return Chain((counts + counts.T) / (2 * counts.sum()), "steps of a walk")
