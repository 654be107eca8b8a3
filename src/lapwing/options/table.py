"""Options of a finite maze as tables, and their outcome from every state."""

from typing import NamedTuple

import numpy as np


class OptionTable(NamedTuple):
    """Some options; each array is (options, states)."""

    actions: np.ndarray
    """The action of each option in each state."""
    begins: np.ndarray
    """Where an option may be chosen."""
    stops: np.ndarray
    """Where it ends."""
    names: tuple[str, ...]

    def first(self, count: int) -> "OptionTable":
        """The first `count` of them."""
        some = slice(count)
        return OptionTable(self.actions[some], self.begins[some], self.stops[some], self.names[some])


def no_options(states: int) -> OptionTable:
    """None at all: what primitive actions are measured with."""
    empty = np.zeros((0, states), bool)
    return OptionTable(empty.astype(np.int64), empty, empty, ())


class Paths(NamedTuple):
    """Where options lead; each array is (options, states)."""

    following: np.ndarray
    """The next state under each option; itself where it stops."""
    ends: np.ndarray
    """Where an option that is begun here ends."""
    lengths: np.ndarray
    """After how many steps."""
    cut: np.ndarray
    """Whether it would go on there, and was cut for its length."""


def paths(next_state: np.ndarray, table: OptionTable, longest: int) -> Paths:
    """Follow every option from every state, for no more than `longest` steps.

    Args:
        next_state: the table of a deterministic maze, (states, actions).
        table: the options.
        longest: an option that has not ended after so many steps is cut.
    """
    here = np.broadcast_to(np.arange(len(next_state)), table.actions.shape)
    following = np.where(table.stops, here, next_state[here, table.actions])
    ends, lengths = here.copy(), np.zeros(here.shape, np.int64)
    moving = ~table.stops
    for _ in range(longest):
        if not moving.any():
            break
        ends = np.where(moving, np.take_along_axis(following, ends, axis=1), ends)
        lengths += moving
        moving &= ~np.take_along_axis(table.stops, ends, axis=1)
    return Paths(following, ends, lengths, moving)
