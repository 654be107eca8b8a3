"""Options if states cannot be enumerated: DQN on the intrinsic reward, one network per option."""

import dataclasses
from collections.abc import Callable
from contextlib import closing
from typing import Any

import gymnasium
import numpy as np

from lapwing.agents.dqn_gym import checked_starts, train_on_env
from lapwing.data.observations import View, view_of
from lapwing.data.source import GymEnv, Source
from lapwing.envs.make import make_env
from lapwing.envs.plane import Plane, PlaneEnv
from lapwing.errors import ConfigError
from lapwing.laplacian.representation import Representation
from lapwing.options.eigenoptions import up_and_down
from lapwing.options.option_set import NetworkOptions
from lapwing.options.purpose import EigenPurpose, functions_for, option_count
from lapwing.progress import OnProgress, within
from lapwing.settings.agents import AgentSettings
from lapwing.settings.options import OptionsSettings

COUNT, LONGEST, DIM = 4, 100, 10
RANDOM_STEPS = 5_000
"""Of the random policy, before DQN learns."""
STARTS = 40
"""From so many starts each option is followed, and a random walk as long as it."""
EPISODE = 100
"""An episode of a plane has so many steps."""
SAMPLED, TOP = 2_000, 0.05
"""An option ends among this share of so many states of a random walk, those where f is largest."""
FALL_SHORT = 0.2
"""Or lower, where this share of its own rides come."""


def env_maker(source: Source) -> Callable[[], gymnasium.Env]:
    """What makes the environment that options are learned in; others are refused."""
    if isinstance(source, Plane):
        how = {"maze": source.maze, "reach": source.reach, "goal": source.goal_cell, "discrete": True}
        return lambda: gymnasium.wrappers.TimeLimit(PlaneEnv(**how), EPISODE)
    if isinstance(source, GymEnv):
        return lambda: make_env(source.env_id)
    raise ConfigError(
        f"options are learned in a maze, a plane or gym:ENV_ID, where an agent can act, and not from "
        f"{type(source).__name__}; name one of these"
    )


def check_networks(make: Callable[[], gymnasium.Env], settings: OptionsSettings) -> None:
    """Refuse what DQN cannot make options of."""
    if settings.exact:
        raise ConfigError("exact only works with mazes, whose eigenvectors can be computed; leave it out")
    if settings.kind == "covering":
        raise ConfigError(
            "kind='covering' only works with mazes, whose states can be listed; leave it out, or name a maze"
        )
    checked_starts(make)


def network_options(
    make: Callable[[], gymnasium.Env],
    representation: Representation,
    settings: OptionsSettings,
    on_progress: OnProgress | None = None,
) -> NetworkOptions:
    """Train the options.

    Args:
        make: makes the environment.
        representation: φ of its observations.
        settings: how many options, and how DQN is trained.
        on_progress: called with (phase, done, all, metrics).
    """
    count = option_count(representation, settings.count, COUNT)
    functions, starts = functions_for(representation, count), checked_starts(make)
    agent = AgentSettings(
        steps=settings.steps,
        random_steps=min(RANDOM_STEPS, settings.steps),
        evaluate_every=settings.steps,
        gamma=settings.gamma,
        batch=settings.batch,
        hidden=settings.hidden,
    )
    networks, tops, spec = [], [], None
    seen = random_states(make, settings.seed)
    climbs = up_and_down(functions, count)
    for number, climb in enumerate(climbs):
        purpose = EigenPurpose(representation, *climb)
        seeded = dataclasses.replace(agent, seed=(settings.seed + number) % 2**32)
        phase = within(f"option {number + 1} of {count}", on_progress)
        training, spec = train_on_env(make, seeded, reward=purpose, on_chunk=phase)
        networks.append(training.q)
        tops.append(np.quantile(purpose.value(seen), 1 - TOP))
    assert spec is not None
    endless = NetworkOptions(
        networks=tuple(networks),
        spec=spec,
        representation=representation,
        climbs=climbs,
        levels=np.full(count, np.inf),
        longest=settings.longest or LONGEST,
        first_state=starts.state,
    )
    return dataclasses.replace(endless, levels=np.minimum(tops, within_reach(make, endless, settings.seed)))


def within_reach(make: Callable[[], gymnasium.Env], endless: NetworkOptions, seed: int) -> np.ndarray:
    """How high each option comes in all but a few of its rides, when the environment alone ends them.

    The starts are others than those of `followed`.
    """
    heights = []
    with closing(make()) as env:
        for option in range(len(endless)):
            rides = [_follow(env, endless, option, seed + start) for start in range(STARTS, 2 * STARTS)]
            cut = [path for path, ended in rides if not ended]
            highest = [max(endless.height(option, here) for here in path) for path in cut]
            heights.append(np.quantile(highest, FALL_SHORT) if cut else np.inf)
    return np.array(heights)


def random_states(make: Callable[[], gymnasium.Env], seed: int) -> np.ndarray:
    """Observations of a random walk, as φ and Q see them."""
    with closing(make()) as env:
        view, seen = view_of(env.observation_space), []
        env.action_space.seed(seed)
        observation, _ = env.reset(seed=seed)
        for _ in range(SAMPLED):
            seen.append(np.array(view.one(observation)))
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                observation, _ = env.reset()
    return np.array(seen)


def followed(
    make: Callable[[], gymnasium.Env],
    options: NetworkOptions,
    representation: Representation,
    settings: OptionsSettings,
) -> list[dict[str, Any]]:
    """Each option from the same starts: how far it climbs, beside random steps as long, and how it ends."""
    rows = []
    for number, (name, climb) in enumerate(zip(options.names, options.climbs, strict=True)):
        purpose = EigenPurpose(representation, *climb)
        with closing(make()) as env:
            view = view_of(env.observation_space)
            rides = [_follow(env, options, number, settings.seed + start) for start in range(STARTS)]
            lengths = [len(path) - 1 for path, _ in rides]
            walks = [_random_walk(env, settings.seed + start, lengths[start]) for start in range(STARTS)]
        rows.append(
            {
                "option": name,
                "gain": _mean_gain(purpose, view, [path for path, _ in rides]),
                "gain_random": _mean_gain(purpose, view, walks),
                "length": float(np.mean(lengths)),
                "ended": float(np.mean([ended for _, ended in rides])),
                "starts": [np.ravel(path[0])[:2].tolist() for path, _ in rides],
                "ends": [np.ravel(path[-1])[:2].tolist() for path, _ in rides],
            }
        )
    return rows


Path = list[np.ndarray]


def _mean_gain(purpose: EigenPurpose, view: View, paths: list[Path]) -> float:
    return float(np.mean([purpose(view.one(path[0]), view.one(path[-1])) for path in paths]))


def _follow(env: gymnasium.Env, options: NetworkOptions, option: int, seed: int) -> tuple[Path, bool]:
    """What an option sees from one start on, and whether it ended, by itself or with the episode's goal."""
    first = int(getattr(env.action_space, "start", 0))
    path = [np.array(env.reset(seed=seed)[0])]
    for _ in range(options.longest):
        if options.stops(option, path[-1]):
            break
        here, _, terminated, truncated, _ = env.step(first + options.act(option, path[-1]))
        path.append(np.array(here))  # a copy: an environment may write its next one over it
        if terminated or truncated:
            return path, bool(terminated) or options.stops(option, here)
    return path, options.stops(option, path[-1])


def _random_walk(env: gymnasium.Env, seed: int, steps: int) -> Path:
    """So many random steps from one start, or fewer where the episode ends."""
    env.action_space.seed(seed)
    path = [np.array(env.reset(seed=seed)[0])]
    for _ in range(steps):
        here, _, terminated, truncated, _ = env.step(env.action_space.sample())
        path.append(np.array(here))
        if terminated or truncated:
            break
    return path
