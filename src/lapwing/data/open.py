"""Experience from a source: data is loaded, environments are stepped according to the settings."""

from functools import partial
from pathlib import Path

import gymnasium
import jax
import numpy as np
from gymnasium.vector import VectorEnv

from lapwing.data.collect import OnView, Policy, Progress, collect, collect_walks, experience_of
from lapwing.data.experience import Experience
from lapwing.data.files import as_keys, load_experience
from lapwing.data.minari import MinariData
from lapwing.data.ogbench import OGBenchData
from lapwing.data.source import DataFile, GymEnv, Source, kind_of
from lapwing.envs.arena import Arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.make import Env, make_envs
from lapwing.envs.plane import Plane, random_walks
from lapwing.envs.simulator import Simulator, random_episodes
from lapwing.envs.wrap import PastTermination, wrapped
from lapwing.errors import ConfigError
from lapwing.mazes import Maze
from lapwing.settings.learn import PRESETS, LearnSettings

_APPLIES_TO = {
    "transitions": (Maze, Arena, Plane, GymEnv, gymnasium.Env, VectorEnv),
    "episode_length": (Maze, Plane),
    "stay": (Maze,),
    "observation": (Maze, Arena),
    "num_envs": (GymEnv,),
    "wrap": (GymEnv,),
    "past_termination": (GymEnv, gymnasium.Env),
    "keys": (DataFile,),
    "observation_key": (GymEnv, MinariData, gymnasium.Env, VectorEnv),
}
"""The kinds of source that a setting works with."""
_KINDS = {
    Maze: "mazes",
    Arena: "arenas",
    Plane: "planes",
    GymEnv: "environments by name",
    DataFile: "data files",
    MinariData: "Minari data sets",
    gymnasium.Env: "environments",
}


def open_experience(
    source: Source,
    settings: LearnSettings,
    *,
    policy: Policy | None = None,
    collected: Path | None = None,
    on_progress: Progress | None = None,
    on_view: OnView | None = None,
) -> Experience:
    """The experience that a source holds, or that is collected from it.

    Args:
        source: as `read_source` returns it.
        settings: what to observe and how much to collect.
        policy: what acts in an environment; None is random.
        collected: where an earlier start of the same run may have saved what it collected.
        on_progress: called with (done, all) while steps are taken.
        on_view: called with what φ will see of an environment, before it is stepped.
    """
    if isinstance(source, Experience):
        return source
    if isinstance(source, DataFile):
        return load_experience(source.path, as_keys(settings.keys))
    if isinstance(source, MinariData):
        return experience_of(*source.read(settings.observation_key))
    if isinstance(source, OGBenchData):
        return source.read(on_progress)
    if collected is not None and collected.is_file():
        return load_experience(collected)
    if isinstance(source, Maze):
        return _from_maze(source, settings)
    if isinstance(source, Arena):
        return _from_arena(source, settings, on_progress)
    if isinstance(source, Plane):
        steps = settings.transitions, settings.episode_length
        return _of_equal_length(*random_walks(source, *steps, settings.seed, on_progress))
    return _from_env(source, settings, policy, on_progress, on_view)


def check_settings(source: Source, settings: LearnSettings, policy: Policy | None) -> None:
    """Refuse what the source has no use for: an option that would do nothing is a misunderstanding."""
    if settings.true_chain and not isinstance(source, Maze):
        raise ConfigError("true_chain needs a maze, and this target is none; leave --true-chain out")
    if isinstance(source, Arena) and settings.observation not in ("position", "state"):
        raise ConfigError(
            f"observation must be position or state in an arena, not {settings.observation!r}; "
            "position is (x, y), state all positions and velocities"
        )
    if isinstance(source, Maze) and settings.observation == "state":
        raise ConfigError(
            "observation 'state' only works with arenas; of a maze φ sees index, position or image"
        )
    if policy is not None and not isinstance(source, GymEnv | Env):
        raise ConfigError(
            "policy only works with Gymnasium environments, and this target is none; leave it out"
        )
    for name, kinds in _APPLIES_TO.items():
        value = getattr(settings, name)
        if not isinstance(source, kinds) and value != getattr(PRESETS[settings.preset], name):
            raise ConfigError(
                f"{name}={value!r} only works with {_listed(kinds)}, not with {kind_of(source)}; leave it out"
            )


def _listed(kinds: tuple[type, ...]) -> str:
    """Kinds of sources in words.

    Example:
        >>> _listed((Maze, GymEnv, gymnasium.Env)), _listed((GymEnv,))
        ('mazes and environments', 'environments by name')
    """
    by_name = gymnasium.Env not in kinds
    known = [_KINDS[kind] for kind in kinds if kind in _KINDS and (by_name or kind is not GymEnv)]
    return " and ".join([", ".join(known[:-1]), known[-1]] if len(known) > 1 else known)


def _from_maze(maze: Maze, settings: LearnSettings) -> Experience:
    return collect_walks(
        GridWorld(maze, settings.stay),
        settings.observation,
        settings.transitions,
        episode_length=settings.episode_length,
        key=jax.random.fold_in(jax.random.key(settings.seed), 0),
    )


def _from_arena(arena: Arena, settings: LearnSettings, on_progress: Progress | None) -> Experience:
    states, actions = random_episodes(Simulator(arena), settings.transitions, settings.seed, on_progress)
    return _of_equal_length(states[..., :2] if settings.observation == "position" else states, actions)


def _of_equal_length(episodes: np.ndarray, actions: np.ndarray) -> Experience:
    """Experience of episodes (episodes, observations, features), and of actions, one a transition."""
    count, length, features = episodes.shape
    taken = actions.reshape(-1, actions.shape[-1])
    return Experience(episodes.reshape(-1, features), np.full(count, length), actions=taken)


def _from_env(
    source: GymEnv | Env,
    settings: LearnSettings,
    policy: Policy | None,
    on_progress: Progress | None,
    on_view: OnView | None,
) -> Experience:
    named = isinstance(source, GymEnv)
    # A policy is written for one observation, unless a number of environments is asked for.
    num_envs = 1 if policy is not None and settings.num_envs is None else settings.num_envs
    wrap = partial(wrapped, names=settings.wrap) if settings.wrap else None
    if settings.past_termination and named:
        inner = wrap or (lambda env: env)
        env = make_envs(source.env_id, num_envs, lambda env: PastTermination(inner(env)))
    else:
        env = make_envs(source.env_id, num_envs, wrap) if named else source
    try:
        return collect(
            env,
            settings.transitions,
            policy=policy,
            observation_key=settings.observation_key,
            past_termination=settings.past_termination and not named,
            seed=settings.seed,
            image_size=settings.image_size,
            on_progress=on_progress,
            on_view=on_view,
        )
    finally:
        if named:
            env.close()
