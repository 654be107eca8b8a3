"""`lapwing solve`: a reward in a maze, its policy, and a comparison with the optimum."""

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lapwing.compilation import kept_programs
from lapwing.data.source import read_source
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import Target, open_target
from lapwing.mazes import Maze
from lapwing.progress import OnProgress
from lapwing.runs.learn import reopen_target
from lapwing.runs.solve import maze_of, target_steps
from lapwing.settings.learn import LearnSettings
from lapwing.solving.dynamic_programming import checked_gamma, optimal_values, policy_values
from lapwing.solving.embedding import Embedding
from lapwing.solving.files import load_policy
from lapwing.solving.model import ActionModel, Policy, fit_model
from lapwing.solving.painted import read_reward


class Solved(NamedTuple):
    """A reward in a maze and its policy, as tables over the maze's states."""

    world: GridWorld
    policy: Policy
    rewards: np.ndarray
    values: np.ndarray
    """What the policy expects."""
    actions: np.ndarray
    path: list[int]
    """The states that it goes through from the start, until it stays or comes back."""
    result: dict[str, Any]


@kept_programs()
def solve_maze(
    target: str,
    reward: str,
    *,
    gamma: float = 0.98,
    dim: int | None = None,
    start: tuple[int, int] | None = None,
    on_progress: OnProgress | None = None,
) -> Solved:
    """Learn φ of a maze, or take that of a run, and solve a reward by it.

    Args:
        target: a maze, or the folder of a run that was learned in one.
        reward: as `solving.painted.read_reward` takes it.
        gamma: the discount.
        dim: how many eigenfunctions are learned; None is 50, or the number of states where that is less.
        start: the cell where the path begins; None is the one from which the policy expects the least.
        on_progress: called with (phase, done, all, metrics).
    """
    checked_gamma(gamma)
    if Path(target).is_dir():
        if dim is not None:
            raise ConfigError(
                f"dim={dim} only works with a maze, and {target} is a run that has its own; leave it out"
            )
        representation, opened = reopen_target(Path(target))
        world = _world_of(target, opened)
        rewards, begin = read_reward(world, reward), _begin(world, start)
    else:
        maze = _maze(target)
        rewards, begin = read_reward(GridWorld(maze), reward), _begin(GridWorld(maze), start)
        representation, opened = _learned(maze, dim, on_progress)
        world = _world_of(target, opened)
    policy, seconds = _timed(fit_model(Embedding(representation), target_steps(opened)), rewards, gamma)
    return _measured(policy, representation.dim, world, opened.states, rewards, seconds, begin)


@kept_programs()
def reopen_solved(folder: Path) -> Solved:
    """What `lapwing solve` saved, measured again; states that its data did not visit have reward 0."""
    loaded = load_policy(folder)
    model = loaded.model
    phi = model.embed.representation if isinstance(model.embed, Embedding) else None
    if phi is None or phi.config.get("maze") is None or model.states is None:
        raise ConfigError(f"{folder} holds a policy of data, which is not known to be that of a maze")
    world, states = maze_of(phi)
    rewards = np.zeros(len(states))
    rewards[model.states] = loaded.rewards
    policy, seconds = _timed(model, rewards, loaded.gamma)
    return _measured(policy, phi.dim, world, states, rewards, seconds, None)


def _maze(target: str) -> Maze:
    source = read_source(target)
    if not isinstance(source, Maze):
        raise ConfigError(
            f"{target} is no maze; lapwing solve draws mazes, and lapwing.solve in Python takes any data "
            "with discrete actions"
        )
    return source


def _world_of(target: str, opened: Target) -> GridWorld:
    if opened.world is None:
        raise ConfigError(
            f"{target} was not learned in a maze; lapwing.solve({target!r}, reward) in Python takes any run "
            "whose data has discrete actions"
        )
    return opened.world


def _begin(world: GridWorld, start: tuple[int, int] | None) -> int | None:
    return None if start is None else world.check_cell(start, "start")


def _learned(maze: Maze, dim: int | None, on_progress: OnProgress | None) -> tuple[Representation, Target]:
    states = GridWorld(maze).n_states
    settings = LearnSettings(dim=min(50, states) if dim is None else dim)
    collecting = on_progress and (lambda done, total: on_progress("collecting", done, total, {}))
    opened = open_target(maze, settings, on_progress=collecting)
    return learn_target(opened, settings, on_progress=on_progress), opened


def _timed(model: ActionModel, rewards: np.ndarray, gamma: float) -> tuple[Policy, float]:
    began = time.perf_counter()
    policy = model.solve(rewards, gamma)
    return policy, time.perf_counter() - began


def _measured(
    policy: Policy,
    dim: int,
    world: GridWorld,
    states: np.ndarray | None,
    rewards: np.ndarray,
    seconds: float,
    begin: int | None,
) -> Solved:
    """The policy's return beside the best there is; `states` has what is observed in each."""
    gamma, q = policy.gamma, policy.q(states)
    actions, values = q.argmax(axis=1), q.max(axis=1)
    path = walk(world, actions, int(values.argmin()) if begin is None else begin)
    reached = float(policy_values(world, actions, rewards, gamma).mean())
    best = float(optimal_values(world, rewards, gamma).mean())
    result = {
        "maze": world.maze.name,
        "states": world.n_states,
        "dim": dim,
        "gamma": gamma,
        "return": reached,
        "optimal_return": best,
        "share": reached / best if best > 0 else None,
        "milliseconds": 1_000 * seconds,
        "path": world.cells[path].tolist(),
    }
    return Solved(world, policy, rewards, values, actions, path, result)


def walk(world: GridWorld, actions: np.ndarray, start: int) -> list[int]:
    """The states that a policy goes through, until one comes again."""
    path = [start]
    while (there := int(world.next_state[path[-1], actions[path[-1]]])) not in path:
        path.append(there)
    return path
