"""DDPG on any Gymnasium environment with continuous actions: rounds of steps, then as many updates.

The losses are those of `agents.ddpg`; what differs from `agents.ddpg_arena` is that one environment takes the
steps, one by one, and that episodes may terminate.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax

from lapwing.agents import ddpg
from lapwing.agents.player import Player, Reward
from lapwing.agents.replay_buffer import ReplayBuffer, Transitions
from lapwing.data.action_spaces import Bounds
from lapwing.errors import ConfigError, NonFiniteError
from lapwing.laplacian.encoders import MLP, EncoderSpec
from lapwing.progress import OnChunk, report_begin
from lapwing.settings.agents import ResolvedControl

REPORTS = 50
"""Training reports about so often, all in all."""


def checked_bounds(env: gymnasium.Env) -> Bounds:
    """Those of an environment's actions; spaces that DDPG cannot take are refused by name."""
    seen, actions = env.observation_space, env.action_space
    if not isinstance(actions, gymnasium.spaces.Box) or len(actions.shape) != 1:
        raise ConfigError(
            f"DDPG needs actions that are a vector (a Box of one axis), not {actions}; wrap the environment"
        )
    if not np.issubdtype(actions.dtype, np.floating):
        raise ConfigError(
            f"DDPG needs actions that are real numbers, not {actions}; give the environment an action_space "
            "of float32"
        )
    with np.errstate(over="ignore"):
        widths = actions.high - actions.low
    if not np.isfinite(widths).all():
        raise ConfigError(
            f"DDPG needs bounded actions, not {actions}; wrap the environment in "
            "gymnasium.wrappers.TransformAction with a bounded action_space"
        )
    if not isinstance(seen, gymnasium.spaces.Box) or len(seen.shape) != 1:
        raise ConfigError(
            f"DDPG takes observations that are vectors, not {seen}; wrap the environment in "
            "gymnasium.wrappers.FlattenObservation"
        )
    return Bounds(actions.low, actions.high)


def train_on_env(
    make_env: Callable[[], gymnasium.Env],
    settings: ResolvedControl,
    *,
    reward: Reward | None = None,
    on_chunk: OnChunk | None = None,
) -> tuple[MLP, EncoderSpec]:
    """Train a DDPG agent on an environment; returned is its actor.

    Args:
        make_env: makes the environment.
        settings: of the agent. A round has `envs` steps; goal, φ, evaluation, `fast` and `relative_values`
            are an arena's, and are not looked at.
        reward: r(s, s', terminated), in place of the environment's own.
        on_chunk: called now and then with (step, last step, metrics).
    """
    with closing(make_env()) as env:
        return _train(env, settings, reward, on_chunk)


def _train(
    env: gymnasium.Env, settings: ResolvedControl, reward: Reward | None, on_chunk: OnChunk | None
) -> tuple[MLP, EncoderSpec]:
    bounds, shape = checked_bounds(env), env.observation_space.shape
    assert shape is not None
    n_actions, rounds = len(bounds.low), settings.steps // settings.envs
    buffer = ReplayBuffer(settings.random_steps + settings.steps, shape, np.float32, n_actions)
    player = Player(env, settings.seed, reward, take=bounds.scaled)
    generator = np.random.default_rng([settings.seed, 0])
    player.fill(buffer, settings.random_steps, lambda: generator.uniform(-1, 1, n_actions))
    optimisers = ddpg.Optimisers(optax.adam(settings.actor_rate), optax.adam(settings.critic_rate))
    specs = ddpg.network_specs(shape[0], n_actions, settings.hidden)
    learner = ddpg.init_learner(
        specs,
        buffer.observations(),
        optimisers,
        n_critics=2 if settings.twin_critics else 1,
        key=jax.random.fold_in(jax.random.key(settings.seed), 0),
    )
    learn = eqx.filter_jit(partial(_learn, optimisers, settings))
    noise, metrics = np.zeros(n_actions), {}
    report_begin(on_chunk, settings.steps)
    for number in range(rounds):
        generator = np.random.default_rng([settings.seed, 1, number])
        noise = _play_round(player, buffer, learner.online.actor, noise, settings, generator)
        indices = generator.integers(len(buffer), size=(settings.envs, settings.batch))
        smoothing = None
        if settings.twin_critics:
            smoothing = ddpg.smoothing_noise((settings.envs, settings.batch, n_actions), generator)
        learner, metrics = learn(learner, buffer.at(indices), smoothing)
        if on_chunk and ((number + 1) % -(-rounds // REPORTS) == 0 or number + 1 == rounds):
            told = {name: float(value) for name, value in metrics.items()}
            on_chunk((number + 1) * settings.envs, settings.steps, told)
    return learner.online.actor, specs[0]


def _play_round(
    player: Player,
    buffer: ReplayBuffer,
    actor: MLP,
    noise: np.ndarray,
    settings: ResolvedControl,
    generator: np.random.Generator,
) -> np.ndarray:
    """Store the steps of a round; returned is the noise at its end."""
    for _ in range(settings.envs):
        if player.over:
            player.begin()
            noise = np.zeros_like(noise)
        noise = ddpg.next_noise(noise, settings.noise_settle, settings.noise_spread, generator)
        chosen = np.asarray(ddpg.act_now(actor, np.asarray(player.observation, np.float32)[None]))[0]
        if not np.isfinite(chosen).all():
            raise NonFiniteError("the actor's output is not finite; give fewer --steps, or a larger --batch")
        transition = player.step(np.clip(chosen + noise, -1, 1))
        buffer.store(transition, cut=player.over and not transition.terminated)
    return noise


def _learn(
    optimisers: ddpg.Optimisers,
    settings: ResolvedControl,
    learner: ddpg.Learner,
    batches: Transitions,
    smoothing: Any,
) -> tuple[ddpg.Learner, dict[str, Any]]:
    """An update for each batch; the metrics are those of the last."""
    arrays, static = eqx.partition(learner, eqx.is_array)

    def one(arrays, given):
        batch, epsilon = given
        gamma = settings.gamma * (1 - jnp.asarray(batch.terminated, jnp.float32))
        learner, metrics = ddpg.update(
            eqx.combine(arrays, static),
            optimisers,
            ddpg.Transitions(*batch[:4]),
            gamma,
            settings.target_rate,
            smoothing=epsilon,
            action_penalty=settings.action_penalty,
        )
        return eqx.filter(learner, eqx.is_array), metrics

    arrays, metrics = jax.lax.scan(one, arrays, (batches, smoothing))
    return eqx.combine(arrays, static), {name: values[-1] for name, values in metrics.items()}
