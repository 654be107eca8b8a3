"""DDPG (Lillicrap et al., 2016) in pure functions: networks, the two losses, one update, and the noise.

`agents.ddpg_arena` trains it on robots in an arena.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray, Scalar

from lapwing.laplacian.encoders import MLP, EncoderSpec, embed, init_encoder


class Transitions(NamedTuple):
    """s, a, r, s'; a time limit alone ends episodes, so values count through it."""

    observations: Any
    actions: Any
    rewards: Any
    next_observations: Any


class Networks(NamedTuple):
    """The policy μ and the critic Q."""

    actor: MLP
    critic: MLP


class Learner(NamedTuple):
    """What an update changes."""

    online: Networks
    target: Networks
    optimisers: tuple[optax.OptState, optax.OptState]
    """Of the actor and of the critic."""


class Optimisers(NamedTuple):
    """Adam, with a step size of its own for each network."""

    actor: optax.GradientTransformation
    critic: optax.GradientTransformation


def network_specs(
    n_observations: int, n_actions: int, hidden: tuple[int, ...]
) -> tuple[EncoderSpec, EncoderSpec]:
    """The actor s → a and the critic (s, a) → Q."""
    actor = EncoderSpec("mlp", (n_observations,), n_actions, hidden=hidden)
    return actor, EncoderSpec("mlp", (n_observations + n_actions,), 1, hidden=hidden)


def init_learner(
    specs: tuple[EncoderSpec, EncoderSpec],
    observations: np.ndarray,
    optimisers: Optimisers,
    *,
    key: PRNGKeyArray,
) -> Learner:
    """Untrained networks that standardise what they see like these observations; actions stay as they are."""
    actor_spec, critic_spec = specs
    shift = observations.mean(axis=0)
    scale = np.maximum(observations.std(axis=0), 1e-3)
    actor_key, critic_key = jax.random.split(key)
    plain = np.zeros(actor_spec.dim, np.float32)
    actor = init_encoder(actor_spec, shift, scale, 1.0, key=actor_key)
    critic = init_encoder(
        critic_spec, np.append(shift, plain), np.append(scale, plain + 1), 1.0, key=critic_key
    )
    online = Networks(actor, critic)  # pyright: ignore[reportArgumentType] (both are MLP)
    states = tuple(
        optimiser.init(eqx.filter(network, eqx.is_inexact_array))
        for optimiser, network in zip(optimisers, online, strict=True)
    )
    return Learner(online, online, states)  # pyright: ignore[reportArgumentType] (two of them)


def act(actor: MLP, observations: Float[Array, "batch k"]) -> Float[Array, "batch a"]:
    """μ(s), each number in [-1, 1]."""
    return jnp.tanh(jax.vmap(embed, in_axes=(None, 0))(actor, observations))


@eqx.filter_jit
def act_now(actor: MLP, observations: Any) -> Array:
    """μ(s) of a batch, compiled."""
    return act(actor, observations)


def q_values(
    critic: MLP, observations: Float[Array, "batch k"], actions: Float[Array, "batch a"]
) -> Float[Array, " batch"]:
    """Q(s, a)."""
    pairs = jnp.concatenate([observations, actions], axis=1)
    return jax.vmap(embed, in_axes=(None, 0))(critic, pairs)[:, 0]


def critic_loss(
    critic: MLP, target: Networks, batch: Transitions, gamma: float
) -> tuple[Float[Scalar, ""], dict[str, Float[Scalar, ""]]]:
    """The mean squared error of Q(s, a) against r + γ Q'(s', μ'(s'))."""
    following = q_values(target.critic, batch.next_observations, act(target.actor, batch.next_observations))
    wanted = jax.lax.stop_gradient(batch.rewards + gamma * following)
    values = q_values(critic, batch.observations, batch.actions)
    loss = jnp.mean((values - wanted) ** 2)
    return loss, {"critic/loss": loss, "critic/q": jnp.mean(values), "critic/q_highest": jnp.max(values)}


def actor_loss(
    actor: MLP, critic: MLP, batch: Transitions
) -> tuple[Float[Scalar, ""], dict[str, Float[Scalar, ""]]]:
    """-E Q(s, μ(s)), the deterministic policy gradient."""
    loss = -jnp.mean(q_values(critic, batch.observations, act(actor, batch.observations)))
    return loss, {"actor/loss": loss}


def update(
    learner: Learner, optimisers: Optimisers, batch: Transitions, gamma: float, target_rate: float
) -> tuple[Learner, dict[str, Float[Scalar, ""]]]:
    """One step of Adam for the critic and for the actor, and a small one of their targets."""
    actor, critic = learner.online
    critic_gradient, critic_metrics = eqx.filter_grad(critic_loss, has_aux=True)(
        critic, learner.target, batch, gamma
    )
    actor_gradient, actor_metrics = eqx.filter_grad(actor_loss, has_aux=True)(actor, critic, batch)
    networks, states = [], []
    for network, gradient, optimiser, state in zip(
        learner.online, (actor_gradient, critic_gradient), optimisers, learner.optimisers, strict=True
    ):
        updates, state = optimiser.update(gradient, state)
        networks.append(eqx.apply_updates(network, updates))
        states.append(state)
    online = Networks(*networks)
    target = moved_target(online, learner.target, target_rate)
    return Learner(online, target, (states[0], states[1])), critic_metrics | actor_metrics


def moved_target(online: Networks, target: Networks, rate: float) -> Networks:
    """The target networks a little nearer to the online ones."""
    new, old = (eqx.filter(networks, eqx.is_inexact_array) for networks in (online, target))
    moved: Any = optax.incremental_update(new, old, rate)
    return eqx.combine(moved, target)


def next_noise(noise: np.ndarray, settle: float, spread: float, generator: np.random.Generator) -> np.ndarray:
    """A step of the Ornstein-Uhlenbeck process, which wanders about 0 and forgets by `settle` a step."""
    return (1 - settle) * noise + spread * generator.normal(size=noise.shape)
