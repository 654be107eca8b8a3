"""DQN in pure functions: the network, the loss, one update, and the update of the target network.

`dqn_maze` runs them in one compiled loop over a maze, `dqn_gym` on any Gymnasium environment.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Scalar

from lapwing.errors import NonFiniteError
from lapwing.laplacian.encoders import Encoder, EncoderSpec, default_encoder, embed


class Learner(NamedTuple):
    """What an update changes."""

    q: Encoder
    target: Encoder
    optimiser: optax.OptState


class Training(NamedTuple):
    """What training gives."""

    q: Encoder
    evaluated_at: np.ndarray
    """After how many steps the greedy policy was evaluated,"""
    returns: np.ndarray
    """and its mean return."""
    seconds: float
    compile_seconds: float
    phi: Encoder | None = None
    """φ at the end, if it was learned online."""


def q_spec(
    shape: tuple[int, ...], n_states: int | None, n_actions: int, hidden: tuple[int, ...]
) -> EncoderSpec:
    """Q(s, ·): an MLP of positions and other vectors, a table of indices, the paper's ConvNet of images.

    Args:
        shape: of one observation.
        n_states: how many indices there are, if observations are indices.
        n_actions: how many values Q has in each state.
        hidden: widths of the MLP's hidden layers.
    """
    name = default_encoder(shape)
    if name == "fourier":
        return EncoderSpec("mlp", shape, n_actions, hidden=hidden)
    return EncoderSpec(name, shape, n_actions, n_states=n_states)


def q_values(q: Encoder, observations) -> Float[Array, "batch actions"]:
    """Q of a batch of observations."""
    return jax.vmap(embed, in_axes=(None, 0))(q, observations)


def td_targets(
    rewards: Float[Array, " batch"],
    next_values: Float[Array, " batch"],
    terminated: Bool[Array, " batch"],
    gamma: float,
) -> Float[Array, " batch"]:
    """R + γ max_a Q(s', a) of the target network; a time limit is no end, so values count through it."""
    return rewards + gamma * jnp.where(terminated, 0.0, next_values)


def td_loss(
    values: Float[Array, "batch actions"], actions: Int[Array, " batch"], targets: Float[Array, " batch"]
) -> Float[Scalar, ""]:
    """The mean squared error of Q(s, a)."""
    chosen = jnp.take_along_axis(values, actions[:, None], axis=1)[:, 0]
    return jnp.mean((chosen - targets) ** 2)


def init_learner(q: Encoder, optimiser: optax.GradientTransformation) -> Learner:
    """Q as its own target at first."""
    return Learner(q, q, optimiser.init(eqx.filter(q, eqx.is_inexact_array)))


def update(
    learner: Learner, optimiser: optax.GradientTransformation, loss_of
) -> tuple[Learner, Float[Scalar, ""], Any]:
    """One step of Adam on `loss_of(q) -> (loss, more)`."""
    (loss, more), gradient = eqx.filter_value_and_grad(loss_of, has_aux=True)(learner.q)
    updates, state = optimiser.update(gradient, learner.optimiser)
    return Learner(eqx.apply_updates(learner.q, updates), learner.target, state), loss, more


def moved_target(learner: Learner, rate: float) -> Learner:
    """The target network a little nearer to Q."""
    new, old = (eqx.filter(network, eqx.is_inexact_array) for network in (learner.q, learner.target))
    return learner._replace(target=eqx.combine(optax.incremental_update(new, old, rate), learner.target))


def epsilon_greedy(values: Float[Array, " actions"], epsilon: float, *, key: PRNGKeyArray) -> Int[Scalar, ""]:
    """The best action, or now and then any."""
    explore_key, action_key = jax.random.split(key)
    random = jax.random.randint(action_key, (), 0, len(values))
    return jnp.where(jax.random.uniform(explore_key) < epsilon, random, jnp.argmax(values))


def not_finite(step: int) -> NonFiniteError:
    """What to do when values run away."""
    return NonFiniteError(f"Q is not finite at step {step}; lower --learning-rate (or, in a maze, --scale)")
