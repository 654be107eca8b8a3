"""The time of a training in an arena: a round is a step of every body, and the replay keeps each."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lapwing.envs.arena import EPISODE_LENGTH
from lapwing.errors import ConfigError
from lapwing.settings.control import ResolvedControl


class Replay(NamedTuple):
    """Transitions s, a, r, s': (rounds, bodies, …)."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    next_observations: np.ndarray


@dataclass(frozen=True)
class Rounds:
    """How steps are counted: a round is a step of every body."""

    settings: ResolvedControl

    @property
    def random(self) -> int:
        """Rounds of random actions."""
        return self.settings.random_steps // self.settings.envs

    @property
    def all(self) -> int:
        """Rounds in all."""
        return self.random + self.settings.steps // self.settings.envs

    @cached_property
    def evaluations(self) -> np.ndarray:
        """After how many of the agent's steps it is evaluated."""
        every, steps = self.settings.evaluate_every, self.settings.steps
        return np.union1d(np.arange(every, steps + 1, every), steps)

    def elapsed(self, round_, body):
        """How far each body is into its episode when a round begins."""
        return (round_ + body * EPISODE_LENGTH // self.settings.envs) % EPISODE_LENGTH

    def episode_lengths(self) -> np.ndarray:
        """How many observations each episode has, body by body."""
        rounds, lengths = np.arange(self.all), []
        for body in range(self.settings.envs):
            begins = np.flatnonzero((self.elapsed(rounds, body) == 0) | (rounds == 0))
            lengths.append(np.diff(np.append(begins, self.all)))
        return np.concatenate(lengths)


def empty_replay(rounds: Rounds, n_observations: int, n_actions: int) -> Replay:
    """Room for every step of a training; where there is none, that is told."""
    shape = (rounds.all, rounds.settings.envs)
    try:
        return Replay(
            np.zeros((*shape, n_observations), np.float32),
            np.zeros((*shape, n_actions), np.float32),
            np.zeros(shape, np.float32),
            np.zeros((*shape, n_observations), np.float32),
        )
    except MemoryError as error:
        steps = rounds.all * rounds.settings.envs
        gib = 4 * steps * (2 * n_observations + n_actions + 1) / 2**30
        raise ConfigError(
            f"a replay of {steps:,} steps takes {gib:,.1f} GiB of memory, more than there is; lower --steps"
        ) from error
