"""Tasks of reaching a goal, with a few actions each, so that one DQN can be trained in all of them."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

import lapwing
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.plane import GOAL_RADIUS, open_plane
from lapwing.mazes import read_maze


@dataclass(frozen=True)
class Task:
    """An environment with discrete actions, and what is to be reached in it."""

    make: Callable[[], gymnasium.Env]
    steps: int
    """That an agent is trained for."""
    goal: Any = None
    """As `lapwing.LaplacianReward` takes it."""
    radius: float | None = None
    learn: dict[str, Any] = field(default_factory=dict)
    """How φ is learned, beside the defaults."""
    policy: Callable[[int], Callable] | None = None
    """By which the data of φ is collected, made of a seed; None: uniformly random actions."""


class Directions(gymnasium.Wrapper):
    """Eight directions in place of two forces or displacements, each held for some steps."""

    def __init__(self, env: gymnasium.Env, held: int = 1):
        super().__init__(env)
        self.held, angles = held, np.arange(8) * np.pi / 4
        self._moves = np.stack([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
        self.action_space = gymnasium.spaces.Discrete(8)

    def step(self, action):
        for _ in range(self.held):
            step = self.env.step(self._moves[action])
            if step[2] or step[3]:
                break
        return step


class EndsAtGoal(gymnasium.Wrapper):
    """Terminates where the goal of a `lapwing.LaplacianReward` inside it is reached."""

    def step(self, action):
        observation, reward, _, truncated, info = self.env.step(action)
        return observation, reward, info["goal_reached"], truncated, info


def held_actions(seed: int) -> Callable:
    """Random actions of three that are held for 20 steps in the mean: they go where single ones never do."""
    rng, action = np.random.default_rng(seed), 0

    def policy(observation):
        nonlocal action
        if rng.random() < 1 / 20:
            action = int(rng.integers(3))
        return action

    return policy


def maze_task(name: str, steps: int, limit: int) -> Task:
    """A gridworld, seen as positions; episodes begin anywhere and end by a time limit.

    Where the maze has no goal it is the end of the first row.
    """
    world = GridWorld(read_maze(name))
    first_row = np.flatnonzero(world.cells[:, 0] == world.cells[0, 0])
    goal = world.observations("position")[world.goal_state or first_row[-1]]
    return Task(lambda: gymnasium.make(f"lapwing/{name}-v0", max_episode_steps=limit), steps, goal)


def plane_task(name: str, steps: int, limit: int) -> Task:
    plane = open_plane(name)
    return Task(
        lambda: Directions(gymnasium.make(f"lapwing/{name}-v0", max_episode_steps=limit)),
        steps,
        np.asarray(plane.goal, np.float32),
        GOAL_RADIUS * plane.cell,
    )


def _point_maze() -> gymnasium.Env:
    """gymnasium-robotics' U-shaped maze, from anywhere to one end of it."""
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    rows = ("11111", "1grr1", "111r1", "1rrr1", "11111")
    cells = [[1 if cell == "1" else cell for cell in row] for row in rows]
    return Directions(gymnasium.make("PointMaze_UMaze-v3", maze_map=cells, max_episode_steps=400), held=4)


def _mountain_car() -> gymnasium.Env:
    return gymnasium.wrappers.RescaleObservation(gymnasium.make("MountainCar-v0"), -1, 1)


def ending(task: Task) -> Task:
    """The same task in an environment that terminates at the goal."""

    def make() -> gymnasium.Env:
        inner = lapwing.LaplacianReward(task.make(), goal=task.goal, radius=task.radius, form="sparse")
        return EndsAtGoal(inner)

    return dataclasses.replace(task, make=make)


def _top(observation: np.ndarray) -> np.ndarray:
    """How far to the right a car is, up to the flag."""
    return np.minimum(observation[..., :1], 8 / 9)


TASKS = {
    "TwoRoom": maze_task("TwoRoom", 2_400, 50),
    "FourRoom": maze_task("FourRoom", 2_400, 50),
    "HardMaze": maze_task("HardMaze", 4_200, 100),
    "PlaneTwoRoom": plane_task("PlaneTwoRoom", 3_000, 100),
    "PlaneHardMaze": plane_task("PlaneHardMaze", 4_200, 150),
    "PointMaze_UMaze": Task(_point_maze, 3_000, radius=0.45, learn={"observation_key": "achieved_goal"}),
    "MountainCar": Task(
        _mountain_car,
        4_800,
        lapwing.Goal(np.array([8 / 9]), 1e-3, _top, state=np.array([8 / 9, 0.5], np.float32)),
        learn={"past_termination": True},
        policy=held_actions,
    ),
}
"""At 8/9 of the way from the middle to the right end is MountainCar's flag."""
