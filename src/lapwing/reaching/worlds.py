"""Where a reacher is evaluated: starts, goals, and many episodes stepped at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import numpy as np

from lapwing.envs.arena import EPISODE_LENGTH, Arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.ogbench import PointMaze
from lapwing.envs.plane import GOAL_RADIUS, Plane
from lapwing.envs.simulator import Simulator

MAZE_STEPS = 1_000
"""Steps of an episode in a point maze of OGBench, and at most elsewhere."""
PLACE_NOISE = 0.25
"""OGBench's starts and goals are this share of a cell, at most, from its middle along each axis."""
TASKS = 5


class Episodes(NamedTuple):
    """What evaluation gives."""

    starts: np.ndarray
    goals: np.ndarray
    """As observations."""
    reached: np.ndarray
    """Whether each goal was reached."""
    steps: np.ndarray
    """After how many steps; all of them where it was not."""
    paths: np.ndarray
    """Observations over time, (steps + 1, episodes, …); an episode that is over stays where it is."""


@runtime_checkable
class World(Protocol):
    """Many episodes at the same step."""

    steps: int
    """How long an episode is at most."""

    def begin(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """What is seen at the starts, and the goals, as observations."""
        ...

    def step(self, active: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """What is seen by the episodes with these numbers after an action each."""
        ...

    def there(self, active: np.ndarray) -> np.ndarray:
        """Which of them are at their goals."""
        ...


class PointMazeWorld:
    """The five tasks of one of OGBench's point mazes, as the benchmark evaluates them."""

    steps = MAZE_STEPS

    def __init__(self, size: str):
        """Build the maze."""
        self._maze = PointMaze(size)

    def begin(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Starts and goals near the middle of the cells of the tasks; the first share is of task 1."""
        self._generator = generator
        task = np.arange(count) * TASKS // count
        starts, goals = (self._near(cells[task]) for cells in self._maze.tasks)
        self._points, self._goals = self._maze.points_at(starts), goals
        self._seen = starts
        return starts.astype(np.float32), goals.astype(np.float32)

    def _near(self, cells: np.ndarray) -> np.ndarray:
        noise = self._generator.uniform(-1, 1, (len(cells), 2)) * PLACE_NOISE * self._maze.unit
        return self._maze.centres(cells) + noise

    def step(self, active: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Move; where one enters a teleport, what is seen is the place that was left."""
        self._points[active] = self._maze.step(self._points[active], np.clip(actions, -1, 1))
        self._seen = self._points[:, :2].copy()
        for episode in active[self._maze.taken_in(self._seen[active])]:
            exit_ = self._generator.integers(len(self._maze.exits))
            self._points[episode] = self._maze.points_at(self._maze.exits[exit_])
        return self._seen[active].astype(np.float32)

    def there(self, active: np.ndarray) -> np.ndarray:
        """Within the benchmark's radius."""
        apart = np.linalg.norm(self._seen[active] - self._goals[active], axis=1)
        return apart <= self._maze.goal_radius


class PlaneWorld:
    """Random starts and goals all over a plane."""

    steps = MAZE_STEPS

    def __init__(self, plane: Plane):
        """Of this plane."""
        self._plane = plane

    def begin(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Uniform over the floor."""
        self._positions = self._plane.sample_starts(count, generator)
        self._goals = self._plane.sample_starts(count, generator)
        return self._positions.astype(np.float32), self._goals.astype(np.float32)

    def step(self, active: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Move, unless a wall is in the way."""
        self._positions[active] = self._plane.step(self._positions[active], actions)
        return self._positions[active].astype(np.float32)

    def there(self, active: np.ndarray) -> np.ndarray:
        """As near as the environment asks for."""
        apart = np.linalg.norm(self._positions[active] - self._goals[active], axis=1)
        return apart / self._plane.cell <= GOAL_RADIUS


class ArenaWorld:
    """Random starts and goals all over an arena; a goal is the body at rest there."""

    steps = EPISODE_LENGTH

    def __init__(self, arena: Arena, *, whole: bool):
        """`whole` says whether the whole state is seen, or (x, y)."""
        self._arena, self._simulator, self._whole = arena, Simulator(arena), whole

    def begin(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Uniform over the floor."""
        starts, goals = (self._arena.random_positions(count, generator) for _ in range(2))
        self._rows, self._goals = self._simulator.at_rest(starts, generator), goals
        return self._observe(self._rows), self._observe(self._simulator.at_rest(goals))

    def _observe(self, rows: np.ndarray) -> np.ndarray:
        seen = self._simulator.observe(rows)
        return seen if self._whole else seen[:, :2]

    def step(self, active: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Move the bodies."""
        self._rows[active] = self._simulator.step(self._rows[active], actions)
        return self._observe(self._rows[active])

    def there(self, active: np.ndarray) -> np.ndarray:
        """Within the arena's radius."""
        apart = np.linalg.norm(self._rows[active, 1:3] - self._goals[active], axis=1)
        return apart <= self._arena.goal_radius


class MazeWorld:
    """Random starts and goals among the states of a maze."""

    def __init__(self, world: GridWorld, observations: np.ndarray):
        """`observations` has one for each state."""
        self._world, self._table = world, observations
        self.steps = 4 * world.n_states

    def begin(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Any states; a start may be the goal."""
        self._states, self._goals = generator.integers(self._world.n_states, size=(2, count))
        return self._table[self._states], self._table[self._goals]

    def step(self, active: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Move, unless a wall is in the way."""
        self._states[active] = self._world.next_state[self._states[active], actions]
        return self._table[self._states[active]]

    def there(self, active: np.ndarray) -> np.ndarray:
        """In the goal's state."""
        return self._states[active] == self._goals[active]


@dataclass(eq=False)
class GymWorld:
    """Episodes of a Gymnasium environment that has goals: a copy of it for each."""

    make: Any
    """Makes an environment."""
    part: Any
    """From an observation to what the reacher sees of it."""
    steps: int = MAZE_STEPS

    def begin(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """As the environment begins; its goal is `desired_goal`, or `info["goal"]`."""
        self._envs: list[gymnasium.Env] = [self.make() for _ in range(count)]
        self._there, self._over = np.zeros(count, bool), np.zeros(count, bool)
        begun = [env.reset(seed=int(generator.integers(2**31))) for env in self._envs]
        goals = [np.asarray(goal_of(seen, info)) for seen, info in begun]
        self._seen = np.stack([self.part(seen) for seen, _ in begun])
        return self._seen.copy(), np.stack(goals)

    def step(self, active: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Step each of them; one whose episode has ended stays where it is."""
        for episode, action in zip(active.tolist(), actions, strict=True):
            if not self._over[episode]:
                self._step(episode, action)
        return self._seen[active]

    def _step(self, episode: int, action: np.ndarray) -> None:
        env = self._envs[episode]
        seen, reward, terminated, truncated, info = env.step(_of_space(env.action_space, action))
        there = info.get("success", info.get("is_success", terminated and float(reward) >= 0))
        self._there[episode], self._over[episode] = bool(there), terminated or truncated
        self._seen[episode] = self.part(seen)

    def there(self, active: np.ndarray) -> np.ndarray:
        """As the environment says: `success` or `is_success`."""
        return self._there[active]


def goal_of(observation: Any, info: dict[str, Any]) -> np.ndarray | None:
    """The goal that an environment gives, if it does."""
    if isinstance(observation, dict) and "desired_goal" in observation:
        return np.asarray(observation["desired_goal"])
    return np.asarray(info["goal"]) if "goal" in info else None


def _of_space(space: gymnasium.Space, action: np.ndarray) -> Any:
    if isinstance(space, gymnasium.spaces.Box):
        return np.clip(action, space.low, space.high).astype(space.dtype)
    return action


def roll_out(
    policy: Any,
    world: World,
    count: int,
    seed: int,
    *,
    outside: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Episodes:
    """Episodes of a policy, from (observations, goals) to actions, until each is at its goal.

    Args:
        policy: a reacher's `act`.
        world: where.
        count: how many episodes.
        seed: of starts, goals and chance.
        outside: says which goals the policy would refuse; such an episode fails where it starts.
    """
    starts, goals = world.begin(count, np.random.default_rng([seed, 3]))
    refused = np.zeros(count, bool) if outside is None else outside(goals)
    reached, taken = world.there(np.arange(count)).copy(), np.full(count, world.steps)
    taken[reached] = 0
    seen, paths = starts.copy(), [starts]
    for step in range(1, world.steps + 1):
        active = np.flatnonzero(~reached & ~refused)
        if not len(active):
            break
        seen = seen.copy()
        seen[active] = world.step(active, np.asarray(policy(seen[active], goals[active])))
        paths.append(seen)
        arrived = active[world.there(active)]
        reached[arrived], taken[arrived] = True, step
    return Episodes(starts, goals, reached, taken, np.stack(paths))
