"""Options if states cannot be enumerated: DQN or DDPG on the intrinsic reward, one network per option."""

import dataclasses
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from lapwing.agents import ddpg_gym, dqn_gym
from lapwing.agents.player import starts_of
from lapwing.data.observations import View, view_of
from lapwing.data.source import GymEnv, Source
from lapwing.envs.arena import EPISODE_LENGTH, Arena
from lapwing.envs.arena_env import ControlEnv
from lapwing.envs.make import make_env
from lapwing.envs.plane import Plane, PlaneEnv
from lapwing.errors import ConfigError
from lapwing.laplacian.encoders import Encoder
from lapwing.laplacian.representation import Representation
from lapwing.options.eigenoptions import up_and_down
from lapwing.options.option_set import NetworkOptions
from lapwing.options.purpose import PLACE, EigenPurpose, functions_for, option_count, seen_in
from lapwing.progress import OnChunk, OnProgress, within
from lapwing.settings.agents import CONTROL_PRESETS, AgentSettings, ResolvedControl
from lapwing.settings.options import OptionsSettings

COUNT, LONGEST, DIM = 4, 100, 10
STEPS = {"DQN": 10_000, "DDPG": 20_000}
"""For each option."""
REWARD_SCALE = 10.0
"""Of DDPG's rewards, beside its penalty on large actions."""
RANDOM_STEPS = 5_000
"""Of the random policy, before networks learn."""
STARTS, DRAWN = 40, 24
"""From so many starts each option is followed, and a random walk as long as it; and so many points of a path
are kept for pictures."""
EPISODE = 100
"""An episode of a plane has so many steps."""
SAMPLED, TOP = 2_000, 0.05
"""An option ends among this share of so many states of a random walk, those where f is largest."""
FALL_SHORT = 0.2
"""Or lower, where this share of its own rides come."""


class EnvFactory(NamedTuple):
    """The environment that options are learned in."""

    make: Callable[[], gymnasium.Env]
    """Makes it, with the part of Dict observations that is seen in place of the whole."""
    key: str | None = None
    """Which part that is."""

    @property
    def continuous(self) -> bool:
        """Whether its actions are."""
        with closing(self.make()) as env:
            return isinstance(env.action_space, gymnasium.spaces.Box)


def factory_of(source: Source, observation_key: str | None = None) -> EnvFactory:
    """Of the environment that a target's options are learned in; where no agent can act, it is refused."""
    if isinstance(source, Plane):
        how = {"maze": source.maze, "reach": source.reach, "goal": source.goal_cell, "discrete": True}
        return EnvFactory(lambda: gymnasium.wrappers.TimeLimit(PlaneEnv(**how), EPISODE))
    if isinstance(source, Arena):
        body = {"body": source.body.name, "maze": source.maze, "cell": source.cell, "fast": True}
        return _part_of(
            lambda: gymnasium.wrappers.TimeLimit(ControlEnv(**body), EPISODE_LENGTH), "observation"
        )
    if isinstance(source, GymEnv):
        return _part_of(lambda: make_env(source.env_id), observation_key)
    raise ConfigError(
        f"options are learned in a maze, a plane, an arena or gym:ENV_ID, where an agent can act, and not "
        f"from {type(source).__name__}; name one of these"
    )


def _part_of(make: Callable[[], gymnasium.Env], key: str | None) -> EnvFactory:
    if key is None:
        return EnvFactory(make)

    def part() -> gymnasium.Env:
        env = make()
        view_of(env.observation_space, key)  # which refuses a part that is not there
        space = env.observation_space[key]  # pyright: ignore[reportIndexIssue]
        return gymnasium.wrappers.TransformObservation(env, lambda seen: seen[key], space)

    return EnvFactory(part, key)


def check_networks(factory: EnvFactory, settings: OptionsSettings, given: Representation | None) -> None:
    """Refuse what networks cannot make options of."""
    if settings.exact:
        raise ConfigError("exact only works with mazes, whose eigenvectors can be computed; leave it out")
    if settings.kind == "covering":
        raise ConfigError(
            "kind='covering' only works with mazes, whose states can be listed; leave it out, or name a maze"
        )
    with closing(factory.make()) as env:
        if isinstance(env.observation_space, gymnasium.spaces.Dict):
            view_of(env.observation_space)  # which says that a part must be chosen
        if isinstance(env.action_space, gymnasium.spaces.Box):
            ddpg_gym.checked_bounds(env)
            _ddpg_settings(settings, settings.seed)
        else:
            dqn_gym.space_spec(env, hidden=())
            _dqn_settings(settings, settings.seed)
        shape = view_of(env.observation_space).shape
        seen = (shape, PLACE) if isinstance(env.unwrapped, ControlEnv) else (shape,)
    if given is not None and given.shape not in seen:
        raise ConfigError(
            f"this representation takes observations of shape {given.shape}, and the environment gives "
            f"{shape}; learn φ from this environment"
        )


def network_options(
    factory: EnvFactory,
    representation: Representation,
    settings: OptionsSettings,
    on_progress: OnProgress | None = None,
) -> NetworkOptions:
    """Train the options.

    Args:
        factory: of the environment.
        representation: φ of its observations.
        settings: how many options, and how DQN or DDPG is trained.
        on_progress: called with (phase, done, all, metrics).
    """
    count = option_count(representation, settings.count, COUNT)
    climbs = up_and_down(functions_for(representation, count), count)
    learn = _actors if factory.continuous else _q_networks
    networks, policies = [], {}
    seen = seen_in(random_states(factory.make, settings.seed), representation.shape)
    tops = []
    for number, climb in enumerate(climbs):
        purpose = EigenPurpose(representation, *climb)
        seed = (settings.seed + number) % 2**32
        phase = within(f"option {number + 1} of {count}", on_progress)
        network, policies = learn(factory, purpose, settings, seed, phase)
        networks.append(network)
        tops.append(np.quantile(purpose.value(seen), 1 - TOP))
    endless = NetworkOptions(
        networks=tuple(networks),
        representation=representation,
        climbs=climbs,
        levels=np.full(count, np.inf),
        longest=settings.longest or LONGEST,
        key=factory.key,
        **policies,
    )
    reached = within_reach(factory.make, endless, settings.seed)
    return dataclasses.replace(endless, levels=np.minimum(tops, reached))


def steps_of(settings: OptionsSettings, learner: str) -> int:
    """How many steps each option is trained for."""
    return settings.steps or STEPS[learner]


Learned = tuple[Encoder, dict[str, Any]]
"""A network, and what is to be known of all of them."""


def _q_networks(
    factory: EnvFactory, purpose: EigenPurpose, settings: OptionsSettings, seed: int, phase: OnChunk | None
) -> Learned:
    """Q of an option, by DQN."""
    agent = _dqn_settings(settings, seed)
    training, spec = dqn_gym.train_on_env(factory.make, agent, reward=purpose, on_chunk=phase)
    with closing(factory.make()) as env:
        return training.q, {"spec": spec, "first_state": starts_of(env).state}


def _dqn_settings(settings: OptionsSettings, seed: int) -> AgentSettings:
    steps = steps_of(settings, "DQN")
    return AgentSettings(
        steps=steps,
        random_steps=min(RANDOM_STEPS, steps),
        evaluate_every=steps,
        gamma=settings.gamma,
        batch=settings.batch,
        hidden=settings.hidden,
        seed=seed,
    )


def _actors(
    factory: EnvFactory, purpose: EigenPurpose, settings: OptionsSettings, seed: int, phase: OnChunk | None
) -> Learned:
    """μ of an option, by DDPG."""
    agent, shape = _ddpg_settings(settings, seed), purpose.forward.shape

    def reward(here: Any, there: Any, terminated: Any) -> float:
        return REWARD_SCALE * purpose(seen_in(here, shape), seen_in(there, shape))

    actor, spec = ddpg_gym.train_on_env(factory.make, agent, reward=reward, on_chunk=phase)
    with closing(factory.make()) as env:
        return actor, {"spec": spec, "bounds": ddpg_gym.checked_bounds(env)}


def _ddpg_settings(settings: OptionsSettings, seed: int) -> ResolvedControl:
    """The preset quick, for rewards that have no goal."""
    quick = CONTROL_PRESETS["quick"]
    steps = quick.in_whole_rounds(steps_of(settings, "DDPG"))
    own = {
        "steps": steps,
        "evaluate_every": steps,
        "random_steps": quick.in_whole_rounds(min(RANDOM_STEPS, steps)),
        "gamma": settings.gamma,
        "batch": settings.batch,
        "hidden": settings.hidden,
        "relative_values": False,
        "seed": seed,
    }
    return ResolvedControl(**vars(quick) | own)


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
    """Observations of a random walk, as networks take them."""
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
                "ways": [_thinned(path) for path, _ in rides],
            }
        )
    return rows


Path = list[np.ndarray]


def _thinned(path: Path) -> list[list[float]]:
    """The first two features along a path, thinned out, from its start to its end."""
    kept = np.unique(np.linspace(0, len(path) - 1, DRAWN).round().astype(int))
    return [np.ravel(path[place])[:2].astype(float).tolist() for place in kept]


def _mean_gain(purpose: EigenPurpose, view: View, paths: list[Path]) -> float:
    shape = purpose.forward.shape
    ends = [[seen_in(view.one(path[at]), shape) for at in (0, -1)] for path in paths]
    return float(np.mean([purpose(here, there) for here, there in ends]))


def _follow(env: gymnasium.Env, options: NetworkOptions, option: int, seed: int) -> tuple[Path, bool]:
    """What an option sees from one start on, and whether it ended, by itself or with the episode's goal."""
    first = starts_of(env).action
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
