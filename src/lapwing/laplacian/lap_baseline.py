"""The Laplacian features that zero-shot RL compares with, by their literal loss.

Touati, Rapin and Ollivier ("Does Zero-Shot Reinforcement Learning Exist?", ICLR 2023) call them `Lap`, and
later work took them over. For a batch of one-step pairs, with φ scaled to ‖φ(s)‖ = √d at each state, it is

    mean((φ - φ')²) - 2 · mean(diag(φφᵀ)) + mean(offdiag(φφᵀ)²).

It differs from graph drawing in three ways. The first term is a mean over dimensions, and the last is not:
for independent states of an isotropic φ it is d, so what is smooth weighs little beside it. The diagonal is
d whatever φ is, for φ is scaled. And steps are single ones. φ has no order and no eigenvalues.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Scalar

from lapwing.errors import ConfigError
from lapwing.laplacian.encoders import Encoder, EncoderSpec, default_encoder, embed, fit_encoder
from lapwing.laplacian.objectives.drawing import Phi
from lapwing.laplacian.target import Target

HIDDEN = (256, 256)


def lap_loss(phi_u: Phi, phi_v: Phi) -> Float[Scalar, ""]:
    """The loss over one-step pairs (u, v), φ being scaled already."""
    inner = phi_u @ phi_u.T
    batch = len(inner)
    diagonal = jnp.diagonal(inner)
    off_diagonal = (jnp.sum(inner**2) - jnp.sum(diagonal**2)) / (batch * (batch - 1))
    return jnp.mean((phi_u - phi_v) ** 2) - 2 * jnp.mean(diagonal) + off_diagonal


def scaled(phi: Float[Array, "... d"]) -> Float[Array, "... d"]:
    """φ with ‖φ‖ = √d."""
    size = jnp.linalg.norm(phi, axis=-1, keepdims=True)
    return jnp.sqrt(phi.shape[-1]) * phi / jnp.maximum(size, 1e-6)


def lap_features(
    target: Target,
    dim: int,
    *,
    steps: int = 5_000,
    batch: int = 512,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> np.ndarray:
    """φ of every enumerated state, learned by Adam from the one-step pairs of an experience.

    Args:
        target: experience over enumerated states.
        dim: how many functions.
        steps: of Adam.
        batch: pairs in a step.
        learning_rate: of Adam.
        seed: of the encoder and of the batches.
    """
    experience, states = target.experience, target.states
    if experience is None or states is None:
        raise ConfigError(f"{target.name} has no transitions between enumerated states to learn from")
    key = jax.random.key(seed)
    begins = np.flatnonzero(experience.horizons > 0)
    encoder = _untrained(states, dim, jax.random.fold_in(key, 1))
    ids = jnp.asarray(experience.observations)
    trained = _trained(
        encoder, jnp.asarray(states), ids[begins], ids[begins + 1], key, steps, batch, learning_rate
    )
    return np.asarray(scaled(jax.vmap(embed, in_axes=(None, 0))(trained, jnp.asarray(states))), np.float64)


def _untrained(states: np.ndarray, dim: int, key) -> Encoder:
    name = default_encoder(states.shape[1:])
    hidden = HIDDEN if len(states.shape) == 2 else ()
    spec = EncoderSpec(name, states.shape[1:], dim, n_states=len(states), hidden=hidden)
    return fit_encoder(spec, states, standardise=True, bandwidth=None, key=key)


@eqx.filter_jit
def _trained(encoder, states, here, there, key, steps: int, batch: int, learning_rate: float) -> Encoder:
    optimiser = optax.adam(learning_rate)
    learned, fixed = eqx.partition(encoder, eqx.is_inexact_array)

    def loss(learned, pairs):
        phi = [
            scaled(jax.vmap(embed, in_axes=(None, 0))(eqx.combine(learned, fixed), states[end[pairs]]))
            for end in (here, there)
        ]
        return lap_loss(*phi)

    def step(carry, number):
        learned, state = carry
        pairs = jax.random.randint(jax.random.fold_in(key, number), (batch,), 0, len(here))
        gradient = jax.grad(loss)(learned, pairs)
        updates, state = optimiser.update(gradient, state)
        return (eqx.apply_updates(learned, updates), state), None

    (learned, _), _ = jax.lax.scan(step, (learned, optimiser.init(learned)), jnp.arange(steps))
    return eqx.combine(learned, fixed)
