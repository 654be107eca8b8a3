"""Steps (s, a, s') with discrete actions, from an experience or from a maze itself."""

from dataclasses import dataclass

import numpy as np

from lapwing.data.experience import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, DatasetError

MOST_STEPS = 20_000
"""Of data whose states are not enumerated so many steps are used."""
MOST_ACTIONS = 1_000


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps as rows of `observations`: `action[i]` led from `here[i]` to `there[i]`."""

    observations: np.ndarray
    here: np.ndarray
    action: np.ndarray
    there: np.ndarray
    enumerated: bool
    """Whether `observations` has one row a state; else one row for each end of a step."""

    @property
    def n_actions(self) -> int:
        """How many actions there are, as far as the steps tell."""
        return int(self.action.max()) + 1


def maze_steps(world: GridWorld, states: np.ndarray) -> Steps:
    """Every move of a maze once; `states` has the observation of each state."""
    here, action = np.indices(world.next_state.shape).reshape(2, -1)
    return Steps(states, here, action, world.next_state.reshape(-1), True)


def experienced_steps(experience: Experience, *, most: int = MOST_STEPS, seed: int = 0) -> Steps:
    """The steps of an experience: all where its states are enumerated, else `most` at random."""
    actions = discrete_actions(experience)
    if experience.table is not None:
        indices = np.flatnonzero(experience.horizons > 0)
        ids = experience.observations
        return Steps(experience.table, ids[indices], actions[indices], ids[indices + 1], True)
    count = min(most, experience.n_transitions)
    chosen = np.random.default_rng(seed).choice(experience.n_transitions, count, replace=False)
    indices = experience.transitions(np.sort(chosen))
    ends = np.concatenate([experience.observe(indices), experience.observe(indices + 1)])
    return Steps(ends, np.arange(count), actions[indices], count + np.arange(count), False)


def discrete_actions(experience: Experience) -> np.ndarray:
    """The actions, one an observation; what has none, or others than numbers from 0 on, is refused."""
    actions = experience.actions
    if actions is None:
        raise DatasetError(
            "the data has no actions, so nothing says what leads where: φ can be learned from it, and no "
            "policy; give data with actions"
        )
    if actions.ndim != 1 or actions.dtype.kind not in "iu":
        raise ConfigError(
            f"actions of shape {actions.shape[1:]} and type {actions.dtype} are not discrete, and a reward "
            "is solved for discrete actions only; number a few actions from 0 on, and record steps with them"
        )
    if actions.min() < 0 or actions.max() >= MOST_ACTIONS:
        raise ConfigError(
            f"actions range from {actions.min()} to {actions.max()}; number them from 0 to at most "
            f"{MOST_ACTIONS - 1}"
        )
    return actions
