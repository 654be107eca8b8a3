"""Evaluation of policies: the schedule, evaluation episodes in an arena, and when they succeed."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lapwing.envs.arena import EPISODE_LENGTH
from lapwing.envs.simulator import Simulator

EVALUATION_STARTS = 48
"""About so many, spread evenly over the floor; in a maze of more cells, one in the middle of each."""
SUCCESS_RATE = 0.9
"""The share of starts from which the goal must be reached for an agent to count as trained."""


class EvaluationEpisodes(NamedTuple):
    """Episodes of a policy without noise, one from each of the fixed starts."""

    paths: np.ndarray
    """(x, y) over time: (steps + 1, starts, 2)."""
    reached: np.ndarray
    """Whether the goal was ever reached, from each start."""
    left: np.ndarray
    """The length of the shortest path to the goal at the end,"""
    overturned: np.ndarray
    """and whether the body then lies on its back."""

    def measures(self) -> dict[str, float]:
        """Shares of starts that reach the goal, and that end overturned; the mean distance left."""
        return {
            "success": float(self.reached.mean()),
            "distance": float(self.left.mean()),
            "overturned": float(self.overturned.mean()),
        }


def evaluate_policy(
    simulator: Simulator, policy: Callable[[np.ndarray], Any], *, steps: int | None = None
) -> EvaluationEpisodes:
    """Follow a policy, from observations to actions, from the fixed starts: an episode, or so many steps."""
    arena = simulator.arena
    cells = int(arena.maze.floor.sum())
    starts = arena.stratified_positions(max(1, round(EVALUATION_STARTS / cells)))
    rows, paths = simulator.at_rest(starts), [starts]
    for _ in range(EPISODE_LENGTH if steps is None else steps):
        rows = simulator.step(rows, np.asarray(policy(simulator.observe(rows))))
        paths.append(rows[:, 1:3])
    paths = np.stack(paths)
    reached = np.linalg.norm(paths - arena.goal, axis=-1) <= arena.goal_radius
    left = arena.path_lengths(paths[-1])
    return EvaluationEpisodes(paths, reached.any(axis=0), left, simulator.overturned(rows))


def evaluation_steps(steps: int, every: int) -> np.ndarray:
    """After how many steps the policy is evaluated: at regular times, and at the end.

    Example:
        >>> evaluation_steps(100, 40)
        array([ 40,  80, 100])
    """
    return np.union1d(np.arange(every, steps + 1, every), steps)


def steps_to_success(evaluated_at: np.ndarray, success: np.ndarray) -> int | None:
    """After how many steps the goal was first reached from 90 % of the starts; None: never.

    Example:
        >>> steps_to_success(np.array([2000, 4000, 6000]), np.array([0.5, 0.92, 0.8]))
        4000
    """
    return first_step(evaluated_at, success >= SUCCESS_RATE)


def steps_to_stay(evaluated_at: np.ndarray, success: np.ndarray) -> int | None:
    """From which evaluation on the goal was reached from 90 % of the starts at all; None: not at the last.

    Example:
        >>> steps_to_stay(np.array([2000, 4000, 6000, 8000]), np.array([0.92, 0.8, 0.9, 1.0]))
        6000
    """
    return first_step(evaluated_at, np.logical_and.accumulate((success >= SUCCESS_RATE)[::-1])[::-1])


def first_step(evaluated_at: np.ndarray, good: np.ndarray) -> int | None:
    """After how many steps an evaluation was good for the first time; None: never."""
    return int(evaluated_at[np.argmax(good)]) if good.any() else None
