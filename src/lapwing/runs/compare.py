"""Comparison of rewards before any agent is trained: `lapwing audit`, `lapwing.compare_rewards`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

from lapwing.compilation import kept_programs
from lapwing.data.source import read_source
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.laplacian.distances import measure_of
from lapwing.laplacian.representation import Representation
from lapwing.mazes import Maze, parse_maze
from lapwing.runs.folder import load
from lapwing.settings.learn import Distance, RewardForm
from lapwing.shaping.audit import Audit, audit
from lapwing.shaping.rewards import SHAPED_BY_PHI
from lapwing.shaping.tasks import GridTask, default_scale, embedded_states, exact_embedding, grid_task

BY_DEFAULT: tuple[RewardForm, ...] = ("sparse", "l2", "rawmix", "mix", "potential")


class Comparison(NamedTuple):
    """A goal in a maze, and the audit of each reward for reaching it."""

    task: GridTask
    audits: list[Audit]
    sources: dict[str, str]
    """What the φ of each name is."""


@kept_programs()
def compare_rewards(
    targets: str | Path | Maze | Representation | Sequence[str | Path | Maze | Representation],
    *,
    goal: tuple[int, int] | None = None,
    gamma: float = 0.98,
    forms: Sequence[RewardForm] = BY_DEFAULT,
    episode_length: int = 50,
) -> Comparison:
    """Audit rewards, those shaped by φ with every representation under every filter.

    Args:
        targets: a maze, for φ from the exact eigenvectors of the chain; representations or runs of `lapwing
            learn`; or several of them, all for one maze.
        goal: (row, column), instead of the maze's own.
        gamma: the agent's discount factor.
        forms: the forms to audit.
        episode_length: steps per episode.

    Example:
        >>> task, audits, _ = compare_rewards("HardMaze", forms=["l2", "mix"])
        >>> {one.name: one.lookahead for one in audits[:2]}
        {'l2': 26, 'mix, soft': 14}
    """
    if episode_length < 1:
        raise ConfigError(f"episode_length must be at least 1, not {episode_length}")
    single = isinstance(targets, str | Path | Maze | Representation)
    opened = [(str(target), _opened(target)) for target in ([targets] if single else targets)]
    if not opened:
        raise ConfigError("name a maze or a run to audit")
    mazes = [one if isinstance(one, Maze) else _maze_of(name, one) for name, one in opened]
    for (name, _), maze in zip(opened, mazes, strict=True):
        if maze.lines != mazes[0].lines:
            raise ConfigError(f"{name} is of another maze than {opened[0][0]}; audit one maze at a time")
    task = grid_task(GridWorld(mazes[0]), goal, episode_length)
    embedded, sources = {}, {}
    for number, (name, one) in enumerate(opened, 1):
        embedded[f"φ{number}"] = _embedded(task.world, one)
        sources[f"φ{number}"] = "the chain's own eigenvectors" if isinstance(one, Maze) else name
    return Comparison(task, _audits(task, embedded, forms, gamma), sources)


def _audits(
    task: GridTask,
    embedded: Mapping[str, Mapping[Distance, np.ndarray]],
    forms: Sequence[RewardForm],
    gamma: float,
) -> list[Audit]:
    audits = [audit(task, form, task.distances(), gamma=gamma) for form in forms if form not in SHAPED_BY_PHI]
    for name, by_filter in embedded.items():
        shaped: list[RewardForm] = [form for form in forms if form in SHAPED_BY_PHI]
        for form in shaped:
            for filter, values in by_filter.items():
                to = task.distances(values, default_scale(task, form, filter, values), measure_of(filter))
                named = f"{form}, {filter}" + (f", {name}" if len(embedded) > 1 else "")
                audits.append(audit(task, form, to, gamma=gamma, name=named))
    return audits


def _embedded(world: GridWorld, phi: Maze | Representation) -> dict[Distance, np.ndarray]:
    """Every state as every distance compares it; of a maze, as the eigenvectors of its chain give it."""
    if isinstance(phi, Maze):
        return {f: exact_embedding(world, f) for f in get_args(Distance)}
    return {f: embedded_states(world, phi.config["settings"]["observation"], phi, f) for f in phi.distances}


def _opened(target: str | Path | Maze | Representation) -> Maze | Representation:
    if isinstance(target, Maze | Representation):
        return target
    if Path(target).is_dir() or Path(target).suffix == ".safetensors":
        return load(target)
    source = read_source(target)
    if isinstance(source, Maze):
        return source
    raise ConfigError(f"{target} is no maze; rewards are audited in mazes, where true distances are known")


def _maze_of(name: str, representation: Representation) -> Maze:
    text = representation.config.get("maze")
    if text is None:
        raise ConfigError(
            f"{name} was not learned in a maze; rewards are audited where true distances are known"
        )
    return parse_maze(text, name=representation.config["target"])
