"""Collecting experience: gridworlds through their tables, Gymnasium environments by stepping them."""

import math
from collections.abc import Callable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import PRNGKeyArray

from lapwing.data.experience import Experience
from lapwing.data.observations import View, view_of, warn_of_form
from lapwing.data.rollouts import Policy, Progress, step_single, step_vector, stored_dtype, stored_shape
from lapwing.data.shrink import as_numbers
from lapwing.envs.grid_walks import random_walks
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.make import refuse_vec_env
from lapwing.envs.wrap import PastTermination
from lapwing.errors import ConfigError
from lapwing.settings.checks import check_size, checked

OnView = Callable[[View], object]
"""Called with what φ will see."""


def collect_walks(
    world: GridWorld,
    observation: str,
    transitions: int,
    *,
    episode_length: int = 50,
    policy: np.ndarray | None = None,
    key: PRNGKeyArray,
) -> Experience:
    """Walk through a gridworld's tables: episodes from uniform starts, the last one perhaps shorter.

    Args:
        world: the finite MDP.
        observation: what the representation will see.
        transitions: how many moves in all.
        episode_length: moves in an episode.
        policy: probabilities of the actions in each state; None is uniform.
        key: a typed random key.
    """
    transitions = checked("transitions", transitions, whole=True, least=1, below=2**31)
    check_size("transitions", 9 * transitions)  # states, a copy, and actions
    episode_length = min(episode_length, transitions)
    episodes = -(-transitions // episode_length)
    walk = jax.jit(random_walks, static_argnames=("episodes", "length"))
    states, actions = walk(
        jnp.asarray(world.next_state),
        None if policy is None else jnp.asarray(policy),
        episodes=episodes,
        length=episode_length,
        key=key,
    )
    lengths = np.full(episodes, episode_length + 1)
    surplus = episodes * episode_length - transitions
    lengths[-1] -= surplus
    kept = np.asarray(states).reshape(-1)[: lengths.sum()]
    taken = np.asarray(actions).reshape(-1)[:transitions]
    return Experience(kept, lengths, world.observations(observation), actions=taken)


def collect(
    env: gymnasium.Env | VectorEnv,
    transitions: int,
    *,
    policy: Policy | None = None,
    observation_key: str | None = None,
    past_termination: bool = False,
    seed: int = 0,
    image_size: int = 0,
    on_progress: Progress | None = None,
    on_view: OnView | None = None,
) -> Experience:
    """Step a Gymnasium environment, or several at once, for `transitions` steps in all.

    Args:
        env: an environment, or a vector of them in any autoreset mode; its observations are Box, Discrete,
            MultiDiscrete, MultiBinary, or a Dict with such an entry.
        transitions: the total number of steps.
        policy: maps an observation (for a vector, a batch of them) to an action; None draws uniformly from
            the action space.
        observation_key: the entry of Dict observations to learn from.
        past_termination: continue an episode after the environment terminates it, until truncation.
        seed: for the environment and the random actions.
        image_size: larger images are averaged to at most this many pixels each way; 0 keeps all.
        on_progress: called regularly with (done, all).
        on_view: called with the observation view of φ, before the first step.

    Example:
        >>> import gymnasium
        >>> experience = collect(gymnasium.make("CartPole-v1"), 500, policy=lambda s: int(s[2] > 0))
        >>> experience.n_transitions, experience.observation_shape
        (500, (4,))
    """
    transitions = checked("transitions", transitions, whole=True, least=1, below=2**31)
    seed = checked("seed", seed, whole=True, least=0, below=2**32)
    refuse_vec_env(env)
    for name in ("observation_space", "action_space"):
        if getattr(env, name, None) is None:
            raise ConfigError(f"the environment has no {name}; give a gymnasium.Env with both spaces")
    if policy is not None and not callable(policy):
        raise ConfigError(f"policy must be a function of the observation, not {policy!r}")
    if past_termination:
        env = _past_termination(env)
    if isinstance(env, VectorEnv):
        view, stepped = view_of(env.single_observation_space, observation_key), step_vector
    else:
        view, stepped = view_of(env.observation_space, observation_key), step_single
    view = view.shrunk(image_size)
    check_size("transitions", transitions * math.prod(stored_shape(view)) * stored_dtype(view).itemsize)
    if on_view:
        on_view(view)
    with np.errstate(over="ignore"):  # a number too large for the space's type is infinite, and refused
        rollout = stepped(env, view, transitions, policy, seed, on_progress)  # type: ignore[arg-type]
    if on_progress:
        on_progress(transitions, transitions)
    return _of_seen(view, *rollout) if view.kind == "image" else experience_of(view, *rollout)


def _past_termination(env: gymnasium.Env | VectorEnv) -> gymnasium.Env:
    if isinstance(env, VectorEnv):
        raise ConfigError(
            "past_termination only works with a single environment, for a vector of them resets itself; "
            "wrap each in lapwing.PastTermination"
        )
    return PastTermination(env)


def experience_of(
    view: View,
    picked: np.ndarray,
    lengths: np.ndarray,
    actions: np.ndarray | None = None,
    rewards: np.ndarray | None = None,
) -> Experience:
    """Experience of what `view` picked, one raw observation a row, and of what followed."""
    if view.kind == "vector":
        warn_of_form(picked.reshape(len(picked), -1))
    return _of_seen(view, view.seen(picked), lengths, actions, rewards)


def _of_seen(
    view: View,
    seen: np.ndarray,
    lengths: np.ndarray,
    actions: np.ndarray | None,
    rewards: np.ndarray | None,
) -> Experience:
    table = None if view.n_states is None else np.arange(view.n_states, dtype=np.int32)
    shrunk = as_numbers(view.shrinking)
    return Experience(seen, lengths, table, actions=actions, rewards=rewards, shrunk=shrunk)
