"""What a policy does without noise, from a fixed set of starts all over an arena."""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array

from lapwing.agents import ddpg
from lapwing.envs.arena import EPISODE_LENGTH
from lapwing.envs.simulator import Simulator
from lapwing.laplacian.encoders import MLP

EVALUATION_STARTS = 48
"""About so many, spread evenly over the floor; in a maze of more cells, one in the middle of each."""


class Attempts(NamedTuple):
    """What the policy without noise does from the fixed starts."""

    paths: np.ndarray
    """(x, y) over time: (steps + 1, starts, 2)."""
    reached: np.ndarray
    """Whether the goal was ever reached, from each start."""
    left: np.ndarray
    """How long the way to the goal is at the end."""


def attempt(simulator: Simulator, actor: MLP) -> Attempts:
    """Follow the policy without noise from the fixed starts, for an episode."""
    arena = simulator.arena
    cells = int(arena.maze.floor.sum())
    starts = arena.stratified_positions(max(1, round(EVALUATION_STARTS / cells)))
    rows, paths = simulator.at_rest(starts), [starts]
    for _ in range(EPISODE_LENGTH):
        rows = simulator.step(rows, np.asarray(act_now(actor, simulator.observe(rows))))
        paths.append(rows[:, 1:3])
    paths = np.stack(paths)
    reached = np.linalg.norm(paths - arena.goal, axis=-1) <= arena.goal_radius
    return Attempts(paths, reached.any(axis=0), arena.path_lengths(paths[-1]))


@eqx.filter_jit
def act_now(actor: MLP, observations) -> Array:
    """μ(s) of a batch, compiled."""
    return ddpg.act(actor, observations)
