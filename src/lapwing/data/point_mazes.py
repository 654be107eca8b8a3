"""The procedure of OGBench's point-maze data: noisy walks along shortest paths.

A point starts in a random cell and heads for the middle of the next cell on the shortest path to its goal,
with Gaussian noise on every action. `navigate` draws a new goal whenever one is reached, among the cells that
are not straight corridors; `stitch` has one goal, four cells away, and stays there. The procedure is that of
the benchmark's authors (Park et al., OGBench, 2025). The random numbers are lapwing's own, one stream per
episode, so that an episode does not depend on the number of episodes.

An observation is what the environment returned; at a teleport this is the position before it.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from lapwing.envs.ogbench import PointMaze

Kind = Literal["navigate", "stitch"]
Progress = Callable[[int, int], None]
ACTION_NOISE = 0.5
CELLS_AWAY = 4
"""How far the goal of `stitch` is."""
PLACE_NOISE = 0.25
"""Starts and goals are this share of a cell, at most, from its middle along each axis."""
STEPS_BETWEEN_REPORTS = 20


class Walks(NamedTuple):
    """Episodes of equal length, (episodes, observations, 2): what was seen, and the action taken there."""

    observations: np.ndarray
    actions: np.ndarray


def walk(
    maze: PointMaze,
    kind: Kind,
    episodes: int,
    length: int,
    seed: int,
    on_progress: Progress | None = None,
) -> Walks:
    """Episodes of `length` observations each.

    Args:
        maze: where.
        kind: what the goals are.
        episodes: how many; fewer are the first of more.
        length: observations in an episode.
        seed: of all random numbers.
        on_progress: called with (done, all) transitions.
    """
    walkers = _Walkers(maze, kind, episodes, length, seed)
    walks = Walks(*(np.empty((episodes, length, 2), np.float32) for _ in range(2)))
    for step in range(length):
        walks.observations[:, step] = walkers.seen
        walks.actions[:, step] = walkers.step(step)
        if on_progress and (step % STEPS_BETWEEN_REPORTS == 0 or step == length - 1):
            on_progress(step * episodes, (length - 1) * episodes)
    return walks


class _Walkers:
    """All episodes at the same step."""

    def __init__(self, maze: PointMaze, kind: Kind, episodes: int, length: int, seed: int):
        self.maze, self.kind = maze, kind
        self.generators = [np.random.default_rng([seed, episode]) for episode in range(episodes)]
        self.noise = np.stack([each.normal(0.0, ACTION_NOISE, (length, 2)) for each in self.generators])
        starts = [int(each.integers(len(maze.cells))) for each in self.generators]
        self.seen = np.stack([self._place(*pair) for pair in enumerate(starts)])
        self.points = maze.points_at(self.seen)
        goals = [self._goal(*pair) for pair in enumerate(starts)]
        self.goal_cells = np.array(goals)
        self.goals = np.stack([self._place(*pair) for pair in enumerate(goals)])

    def step(self, step: int) -> np.ndarray:
        """The actions that are taken; each point then has moved, and `seen` is what it saw."""
        actions = np.clip(self._directions() + self.noise[:, step], -1.0, 1.0)
        self.points = self.maze.step(self.points, actions)
        self.seen = self.points[:, :2].copy()
        if self.kind == "navigate":
            there = np.linalg.norm(self.seen - self.goals, axis=1) <= self.maze.goal_radius
            for episode in np.flatnonzero(there).tolist():
                goal = self._goal(episode)
                self.goal_cells[episode], self.goals[episode] = goal, self._place(episode, goal)
        for episode in np.flatnonzero(self.maze.taken_in(self.seen)).tolist():
            exit_ = self.generators[episode].integers(len(self.maze.exits))
            self.points[episode] = self.maze.points_at(self.maze.exits[exit_])
        return actions

    def _directions(self) -> np.ndarray:
        """Unit vectors towards the middle of the next cell on the way."""
        positions, maze = self.points[:, :2], self.maze
        here = maze.number[tuple(maze.cells_at(positions).T)]
        away = maze.centres(maze.cells[maze.next_cell[here, self.goal_cells]]) - positions
        return away / (np.linalg.norm(away, axis=1, keepdims=True) + 1e-6)

    def _goal(self, episode: int, start: int = 0) -> int:
        """The index of a goal's cell; for `stitch` the start itself, if none is four cells away."""
        if self.kind == "navigate":
            choices = self.maze.junctions
        else:
            choices = np.flatnonzero(self.maze.steps_between[start] == CELLS_AWAY)
        return int(self.generators[episode].choice(choices)) if len(choices) else start

    def _place(self, episode: int, cell: int) -> np.ndarray:
        """A position in a cell, not far from its middle."""
        noise = self.generators[episode].uniform(-1.0, 1.0, 2) * PLACE_NOISE * self.maze.unit
        return self.maze.centres(self.maze.cells[cell]) + noise
