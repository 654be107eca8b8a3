"""The effect of options on a random walk: its diffusion time, exactly, and its cover time, by simulation.

The walk makes decisions. With probability `share` it takes one of the options available in its state,
uniformly, and follows it to its end; else, or if none is available, it takes one random action. With `share`
None all actions and options have equal probability, as in Machado et al. 2017. A state counts as reached when
the walk is in it, also within an option.
"""

from typing import NamedTuple

import numpy as np

from lapwing.options.table import OptionTable, paths

ALL_GOALS = 400
"""In a maze of up to so many states every state is a goal; in a larger one `SOME_GOALS`, evenly spread."""
SOME_GOALS = 40
MOST_STATES = 5_000
"""The diffusion time is measured in mazes of up to so many: it needs a dense matrix."""


class Diffusion(NamedTuple):
    """Between two random states: how many decisions, and how many steps."""

    decisions: float
    steps: float


def choice_probabilities(
    begins: np.ndarray, n_actions: int, share: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Of each single action and of each option that begins there, in every state."""
    available = begins.sum(axis=0)
    if share is None:
        each = 1 / (n_actions + available)
        return each, each
    some = available > 0
    return np.where(some, 1 - share, 1.0) / n_actions, np.where(some, share, 0.0) / np.maximum(available, 1)


def goals_of(states: int) -> np.ndarray:
    """The goals that the diffusion time is the mean over."""
    count = states if states <= ALL_GOALS else SOME_GOALS
    return np.unique(np.linspace(0, states - 1, count).astype(int))


def diffusion_time(
    next_state: np.ndarray,
    table: OptionTable,
    share: float | None,
    *,
    longest: int | None = None,
    goals: np.ndarray | None = None,
) -> Diffusion:
    """The mean over goals and starts of the expected time from one to the other: a linear system for each.

    Args:
        next_state: the table of a deterministic maze, (states, actions).
        table: the options.
        share: of decisions that take an option; None makes all actions and options alike.
        longest: an option is cut after so many steps; None is the number of states.
        goals: the states to reach; None is all, or some of a large maze.
    """
    states, n_actions = next_state.shape
    walked = paths(next_state, table, longest or states)
    single, option = choice_probabilities(table.begins, n_actions, share)
    chosen = np.where(table.begins, option, 0.0)
    here = np.arange(states)
    decide = np.zeros((states, states))
    for there in next_state.T:
        np.add.at(decide, (here, there), single)
    np.add.at(decide, (np.broadcast_to(here, chosen.shape), walked.ends), chosen)
    lasts = n_actions * single + np.sum(chosen * walked.lengths, axis=0)
    found = []
    for goal in goals_of(states) if goals is None else goals:
        after = steps_until(walked.following, walked.lengths, int(goal))
        which, where = np.nonzero((after > 0) & (chosen > 0))  # whose path leads over the goal
        transition, duration = decide.copy(), lasts.copy()
        weight = chosen[which, where]
        np.subtract.at(transition, (where, walked.ends[which, where]), weight)
        np.subtract.at(duration, where, weight * (walked.lengths - after)[which, where])
        others = here != goal
        remaining = np.eye(states - 1) - transition[np.ix_(others, others)]
        sides = np.column_stack([np.ones(states - 1), duration[others]])
        found.append(np.linalg.solve(remaining, sides).mean(axis=0))
    decisions, steps = np.mean(found, axis=0)
    return Diffusion(float(decisions), float(steps))


def steps_until(following: np.ndarray, lengths: np.ndarray, goal: int) -> np.ndarray:
    """After how many steps an option that is begun in a state comes to the goal, (options, states); 0: never.

    Args:
        following: the next state under each option.
        lengths: after how many steps it ends.
        goal: the state to come to; from itself the answer is 0.
    """
    after = np.zeros(following.shape, np.int64)
    reached = np.arange(following.shape[1]) == goal
    came = np.broadcast_to(reached, following.shape).copy()
    for step in range(1, int(lengths.max(initial=0)) + 1):
        came = np.take_along_axis(came, following, axis=1) & ~reached & (after == 0)
        if not came.any():
            break
        after[came] = step
    return np.where(after <= lengths, after, 0)


def cover_times(
    next_state: np.ndarray,
    table: OptionTable,
    share: float | None,
    *,
    seeds: int,
    most: int,
    longest: int | None = None,
    seed: int = 0,
) -> np.ndarray:
    """After how many steps each of some walks from random states has been in every state; at most `most`.

    Args:
        next_state: the table of a deterministic maze, (states, actions).
        table: the options.
        share: of decisions that take an option; None makes all actions and options alike.
        seeds: how many walks.
        most: a walk that is longer is given up, and counts as this long.
        longest: an option is cut after so many steps; None is the number of states.
        seed: of the random numbers.
    """
    (states, n_actions), generator = next_state.shape, np.random.default_rng(seed)
    longest = longest or states
    options = max(1, len(table.names))
    available = table.begins.sum(axis=0)
    begin_here = np.zeros((states, options), np.int64)
    for state in np.flatnonzero(available):
        begin_here[state, : available[state]] = np.flatnonzero(table.begins[:, state])
    takes_option = available * choice_probabilities(table.begins, n_actions, share)[1]
    moves = np.vstack([table.actions, np.zeros((1, states), np.int64)])  # the last is for none
    stops = np.vstack([table.stops, np.ones((1, states), bool)])
    none = len(stops) - 1
    walks = np.arange(seeds)
    state, current = generator.integers(states, size=seeds), np.full(seeds, none)
    lasted = np.zeros(seeds, np.int64)
    seen = np.zeros((seeds, states), bool)
    seen[walks, state] = True
    left, times = np.full(seeds, states - 1), np.full(seeds, most)
    times[left == 0] = 0
    for step in range(1, most + 1):
        if not left.any():
            break
        chance, which = generator.random((2, seeds))
        chooses = (current == none) & (chance < takes_option[state])
        chosen = begin_here[state, (which * available[state]).astype(np.int64)]
        current, lasted = np.where(chooses, chosen, current), np.where(chooses, 0, lasted + 1)
        action = np.where(current == none, generator.integers(n_actions, size=seeds), moves[current, state])
        state = next_state[state, action]
        current = np.where(stops[current, state] | (lasted + 1 >= longest), none, current)
        left = left - ~seen[walks, state]
        seen[walks, state] = True
        times = np.where((left == 0) & (times == most), step, times)
    return times
