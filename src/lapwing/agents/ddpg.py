"""DDPG (Lillicrap et al., 2016) in pure functions: networks, the two losses, one update, and the noise.

With a second critic it is clipped double Q-learning with target policy smoothing (Fujimoto et al., 2018).
`agents.ddpg_arena` trains it on robots in an arena, `agents.ddpg_gym` on any Gymnasium environment.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray, Scalar

from lapwing.laplacian.encoders import MLP, EncoderSpec, embed, init_encoder

SATURATED = 2.65
"""An actor's output from which on tanh is within 0.01 of 1."""
SMOOTHING, SMOOTHING_LIMIT = 0.2, 0.5
"""Standard deviation of target policy smoothing, and where it is cut (Fujimoto et al., 2018)."""


class Transitions(NamedTuple):
    """s, a, r, s'."""

    observations: Any
    actions: Any
    rewards: Any
    next_observations: Any


class Networks(NamedTuple):
    """The policy μ and the critic Q."""

    actor: MLP
    critics: tuple[MLP, ...]
    """Q; or two, of which the lower value is a target."""


class Learner(NamedTuple):
    """What an update changes."""

    online: Networks
    target: Networks
    optimisers: tuple[optax.OptState, optax.OptState]
    """Of the actor and of the critics."""


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
    n_critics: int = 1,
    key: PRNGKeyArray,
) -> Learner:
    """Untrained networks that standardise what they see like these observations; actions stay as they are."""
    actor_spec, critic_spec = specs
    shift = observations.mean(axis=0)
    scale = np.maximum(observations.std(axis=0), 1e-3)
    actor_key, critic_key = jax.random.split(key)
    plain = np.zeros(actor_spec.dim, np.float32)
    actor = init_encoder(actor_spec, shift, scale, 1.0, key=actor_key)
    keys = [critic_key, *(jax.random.fold_in(critic_key, number) for number in range(1, n_critics))]
    critics = tuple(
        init_encoder(critic_spec, np.append(shift, plain), np.append(scale, plain + 1), 1.0, key=key)
        for key in keys
    )
    online = Networks(actor, critics)  # pyright: ignore[reportArgumentType] (all are MLP)
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


def lowest_q_values(
    critics: tuple[MLP, ...], observations: Float[Array, "batch k"], actions: Float[Array, "batch a"]
) -> Float[Array, " batch"]:
    """min_i Q_i(s, a), which over-estimates less than one Q does."""
    return jnp.min(jnp.stack([q_values(critic, observations, actions) for critic in critics]), axis=0)


def critic_loss(
    critics: tuple[MLP, ...],
    target: Networks,
    batch: Transitions,
    gamma: float | Float[Array, " batch"],
    smoothing: Float[Array, "batch a"] | None = None,
) -> tuple[Float[Scalar, ""], dict[str, Float[Scalar, ""]]]:
    """The mean squared error of each Q(s, a) against r + γ min_i Q'_i(s', a'), summed over the critics.

    a' is μ'(s'), or with smoothing μ'(s') + ε within [-1, 1]: similar actions have similar values. γ may be
    one number for each transition, 0 where the episode terminated.
    """
    following = act(target.actor, batch.next_observations)
    if smoothing is not None:
        following = jnp.clip(following + smoothing, -1, 1)
    lowest = lowest_q_values(target.critics, batch.next_observations, following)
    wanted = jax.lax.stop_gradient(batch.rewards + gamma * lowest)
    values = jnp.stack([q_values(critic, batch.observations, batch.actions) for critic in critics])
    loss = jnp.sum(jnp.mean((values - wanted) ** 2, axis=1))
    return loss, {"critic/loss": loss, "critic/q": jnp.mean(values), "critic/q_highest": jnp.max(values)}


def actor_loss(
    actor: MLP, critic: MLP, batch: Transitions, action_penalty: float = 0.0
) -> tuple[Float[Scalar, ""], dict[str, Float[Scalar, ""]]]:
    """-E Q(s, μ(s)), the deterministic policy gradient, + penalty · E[u²] where μ = tanh(u).

    Without the penalty u may grow until tanh is flat: actions are then all or nothing, and no gradient
    comes through to change them.
    """
    outputs = jax.vmap(embed, in_axes=(None, 0))(actor, batch.observations)
    loss = -jnp.mean(q_values(critic, batch.observations, jnp.tanh(outputs)))
    if action_penalty:
        loss = loss + action_penalty * jnp.mean(outputs**2)
    saturated = jnp.mean(jnp.abs(outputs) > SATURATED)
    return loss, {"actor/loss": loss, "actor/saturated": saturated}


def update(
    learner: Learner,
    optimisers: Optimisers,
    batch: Transitions,
    gamma: float | Float[Array, " batch"],
    target_rate: float,
    *,
    smoothing: Float[Array, "batch a"] | None = None,
    action_penalty: float = 0.0,
) -> tuple[Learner, dict[str, Float[Scalar, ""]]]:
    """One step of Adam for the critics and for the actor, and a small one of their targets."""
    actor, critics = learner.online
    critic_gradient, critic_metrics = eqx.filter_grad(critic_loss, has_aux=True)(
        critics, learner.target, batch, gamma, smoothing
    )
    actor_gradient, actor_metrics = eqx.filter_grad(actor_loss, has_aux=True)(
        actor, critics[0], batch, action_penalty
    )
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


def smoothing_noise(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """ε of target policy smoothing: normal, cut off at a limit."""
    noise = SMOOTHING * generator.normal(size=shape)
    return np.clip(noise, -SMOOTHING_LIMIT, SMOOTHING_LIMIT).astype(np.float32)
