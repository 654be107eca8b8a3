"""Options where states cannot be listed: DQN on the intrinsic reward, one network for each option."""

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
from lapwing.laplacian.batches import embed_batch
from lapwing.laplacian.encoders import Encoder
from lapwing.laplacian.representation import Representation
from lapwing.options.eigenoptions import eigenoption_names
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
"""Of so many states of a random walk, this share, where f is largest, says what Q expects at the top."""


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
        raise ConfigError("exact goes with mazes, whose eigenvectors can be computed; leave it out")
    if settings.kind == "covering":
        raise ConfigError(
            "kind='covering' goes with mazes, whose states can be listed; leave it out, or name a maze"
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
    networks, margins, spec = [], [], None
    seen = random_states(make, settings.seed)
    names = eigenoption_names(2 * max(functions) - 2)
    chosen = [(function, sign) for function in functions for sign in (1, -1)][:count]
    for number, (function, sign) in enumerate(chosen):
        purpose = EigenPurpose(representation, function, sign)
        seeded = dataclasses.replace(agent, seed=(settings.seed + number) % 2**32)
        phase = within(f"option {number + 1} of {count}", on_progress)
        training, spec = train_on_env(make, seeded, reward=purpose, on_chunk=phase)
        networks.append(training.q)
        margins.append(margin_at_top(training.q, purpose, seen))
    assert spec is not None
    return NetworkOptions(
        networks=tuple(networks),
        spec=spec,
        margins=np.array(margins),
        names=tuple(names[2 * function - 4 + (sign < 0)] for function, sign in chosen),
        longest=settings.longest or LONGEST,
        first_state=starts.state,
    )


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


def margin_at_top(q: Encoder, purpose: EigenPurpose, seen: np.ndarray) -> float:
    """The most that Q expects to gain where f is largest: there is nothing, so it is the error of Q.

    Args:
        q: the network of an option.
        purpose: what it climbs.
        seen: observations, as φ and Q see them.
    """
    height = purpose.value(seen)
    top = seen[height >= np.quantile(height, 1 - TOP)]
    return float(np.asarray(embed_batch(q, top)).max())


def followed(
    make: Callable[[], gymnasium.Env],
    options: NetworkOptions,
    representation: Representation,
    settings: OptionsSettings,
) -> list[dict[str, Any]]:
    """Each option from the same starts: how far it climbs, beside random steps as long, and how it ends."""
    functions = functions_for(representation, len(options))
    rows = []
    for number, name in enumerate(options.names):
        purpose = EigenPurpose(representation, functions[number // 2], (1, -1)[number % 2])
        with closing(make()) as env:
            view = view_of(env.observation_space)
            rides = [_ride(env, options, number, settings.seed + start) for start in range(STARTS)]
            walks = [_ride(env, options, None, settings.seed + at, ride[2]) for at, ride in enumerate(rides)]
        gain, chance = (_mean_gain(purpose, view, group) for group in (rides, walks))
        rows.append(
            {
                "option": name,
                "gain": gain,
                "gain_random": chance,
                "length": float(np.mean([ride[2] for ride in rides])),
                "ended": float(np.mean([ride[3] for ride in rides])),
                "starts": [np.ravel(ride[0])[:2].tolist() for ride in rides],
                "ends": [np.ravel(ride[1])[:2].tolist() for ride in rides],
            }
        )
    return rows


Ride = tuple[Any, Any, int, bool]


def _mean_gain(purpose: EigenPurpose, view: View, rides: list[Ride]) -> float:
    return float(np.mean([purpose(view.one(start), view.one(end)) for start, end, *_ in rides]))


def _ride(env: gymnasium.Env, options: NetworkOptions, option: int | None, seed: int, steps: int = 0) -> Ride:
    """Where it began and ended, after how many steps, and whether by itself; random steps without option."""
    env.action_space.seed(seed)
    first = int(getattr(env.action_space, "start", 0))
    start = np.array(env.reset(seed=seed)[0])  # a copy: an environment may write its next one over it
    here, lasted, over = start, 0, False
    limit = options.longest if option is not None else steps
    while lasted < limit and not over:
        if option is not None and options.stops(option, here):
            over = True
            break
        move = env.action_space.sample() if option is None else first + options.act(option, here)
        here, _, terminated, truncated, _ = env.step(move)
        lasted, over = lasted + 1, bool(terminated)
        if truncated:
            break
    return start, np.array(here), lasted, over
