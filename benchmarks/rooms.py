"""MiniGrid's FourRooms with one layout for all episodes, seen from above.

As MiniGrid has it, every episode has walls and a goal of its own, so that the slowest functions tell episodes
apart and not places. `lapwing learn gym:benchmarks/rooms.py:SeenFromAbove` learns from one layout.
"""

from typing import Any

import gymnasium
import numpy as np
from minigrid.envs import FourRoomsEnv
from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper

LAYOUT = 0
"""The seed of walls, doors and goal."""
HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))


class FixedRooms(FourRoomsEnv):
    """The rooms of one seed; the agent starts anywhere in them."""

    def _gen_grid(self, width: int, height: int) -> None:
        own, self._np_random = self.np_random, np.random.default_rng(LAYOUT)
        super()._gen_grid(width, height)
        self._np_random = own
        self.place_agent()


class SeenFromAbove(gymnasium.Wrapper):
    """All cells of the grid as (19, 19, 3) bytes."""

    def __init__(self) -> None:
        super().__init__(ImgObsWrapper(FullyObsWrapper(FixedRooms())))


def states_and_flow(episode_length: int = 100) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The image of each (cell, heading), the matrix of a random step, and how often each is left."""
    env = SeenFromAbove()
    env.reset(seed=0)
    inner: Any = env.unwrapped
    cells = [(x, y) for x in range(inner.width) for y in range(inner.height) if _is_free(inner, x, y)]
    states = [(*cell, heading) for cell in cells for heading in range(4)]
    index = {state: number for number, state in enumerate(states)}
    images, transition = [], np.zeros((len(states), len(states)))
    for number, (x, y, heading) in enumerate(states):
        inner.agent_pos, inner.agent_dir = np.array([x, y]), heading
        images.append(env.env.observation(env.env.env.observation(inner.gen_obs())))
        ahead = x + HEADINGS[heading][0], y + HEADINGS[heading][1]
        forward = (*ahead, heading) if _is_free(inner, *ahead) else states[number]
        turns = [(x, y, (heading + turn) % 4) for turn in (-1, 1)]
        for following in (*turns, forward, *[states[number]] * 4):  # four of seven actions do nothing
            transition[number, index[following]] += 1 / 7
    at_goal = np.array([inner.grid.get(x, y) is not None for x, y, _ in states])
    return np.array(images), transition, _mean_visits(transition, at_goal, episode_length)


def _is_free(inner: Any, x: int, y: int) -> bool:
    cell = inner.grid.get(x, y)
    return cell is None or cell.can_overlap()


def _mean_visits(transition: np.ndarray, ends: np.ndarray, steps: int) -> np.ndarray:
    """How often a state is left in episodes from a uniform start, which end at the goal."""
    now, visits = ~ends / (~ends).sum(), np.zeros(len(ends))
    for _ in range(steps):
        visits += now * ~ends
        now = (now * ~ends) @ transition
    return visits / visits.sum()
