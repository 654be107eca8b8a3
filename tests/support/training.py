"""A small maze and settings to train on it, and checkpoints that are kept in memory."""

from typing import Any

import jax
import numpy as np

from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import parse_maze
from lapwing.settings.agents import AgentSettings
from lapwing.shaping.tasks import GridTask, grid_task
from tests.support.interruptions import Interrupted

MAZE = "...G\n.#..\n....\n"
TINY = AgentSettings(
    observation="index",
    episode_length=7,
    random_steps=50,
    steps=120,
    evaluate_every=5,
    gamma=0.9,
    epsilon=0.5,
    batch=16,
    learning_rate=0.05,
    hidden=(16,),
    target_every=10,
    target_rate=0.3,
)
"""Trained in a moment; 50 and 120 are no multiples of 7."""


class Kept:
    """Checkpoints in memory; the process is cut off at some step."""

    def __init__(self, until: int | None = None, states: list | None = None):
        self.until = until
        self.states = [] if states is None else states
        self.rows: list[dict] = []
        self.calls: list[tuple] = []
        self.first: Any = None
        self.last: list[bool] = []

    def restore(self, like: Any):
        self.first = like
        return self.states[-1] if self.states else None

    def record(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def keep(self, state: Any, step: int, seconds: float, *, last: bool) -> None:
        # Arrays of NumPy are written to in place as training continues.
        copied = jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, state)
        self.states.append((copied, step, seconds))
        self.last.append(last)
        if self.until is not None and step >= self.until:
            raise Interrupted

    def at(self, step: int) -> Any:
        """The state that was kept at a step."""
        return next(state for state, at, _ in self.states if at == step)


def task_of(settings: AgentSettings, text: str = MAZE) -> GridTask:
    return grid_task(GridWorld(parse_maze(text, name="mine"), settings.stay), None, settings.episode_length)


def counted(length: int, envs: int, rounds: int) -> list[list[int]]:
    """Body by body, how far each is into its episode when each round begins: staggered, then step by step."""
    bodies = []
    for body in range(envs):
        at, times = body * length // envs, []
        for _ in range(rounds):
            times.append(at)
            at += 1
            if at == length:
                at = 0
        bodies.append(times)
    return bodies


def episodes(times: list[int]) -> list[int]:
    """How many rounds each episode of a body has, the cut ones at both ends included."""
    lengths: list[int] = []
    for number, at in enumerate(times):
        if number == 0 or at == 0:
            lengths.append(0)
        lengths[-1] += 1
    return lengths
