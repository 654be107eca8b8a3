"""The Laplacian features that zero-shot RL uses as a baseline, with their literal loss.

Touati, Rapin and Ollivier ("Does Zero-Shot Reinforcement Learning Exist?", ICLR 2023) call them `Lap`, and
later work adopted them. For a batch of one-step pairs, with φ scaled to ‖φ(s)‖ = √d at each state, the loss
is

    mean((φ - φ')²) - 2 · mean(diag(φφᵀ)) + mean(offdiag(φφᵀ)²).

It differs from graph drawing in three ways. The first term is a mean over dimensions, and the last is not:
for independent states of an isotropic φ it is d, so smoothness has little weight beside it. The diagonal is
always d, because φ is scaled. And steps are single ones. φ has no order and no eigenvalues.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Scalar

from lapwing.errors import ConfigError
from lapwing.laplacian.batches import embed_batch
from lapwing.laplacian.encoders import Encoder, EncoderSpec, default_encoder, embed, fit_encoder
from lapwing.laplacian.objectives.drawing import Phi
from lapwing.laplacian.target import Target
from lapwing.settings.learn import EncoderName

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


@dataclass(frozen=True, eq=False)
class LapPhi:
    """φ of a batch of observations, scaled to ‖φ‖ = √d."""

    encoder: Encoder

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """(observations, d)."""
        return np.asarray(scaled(jnp.asarray(embed_batch(self.encoder, observations))))


def lap_phi(
    target: Target,
    dim: int,
    *,
    steps: int = 5_000,
    batch: int = 512,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> LapPhi:
    """φ, learned by Adam from the one-step pairs of an experience.

    Vectors that are not enumerated have a fully connected network, as where these features are used.

    Args:
        target: experience.
        dim: how many functions.
        steps: of Adam.
        batch: pairs in a step.
        learning_rate: of Adam.
        seed: of the encoder and of the batches.
    """
    experience, states = target.experience, target.states
    if experience is None:
        raise ConfigError(f"{target.name} has no transitions to learn from")
    key = jax.random.key(seed)
    begins = np.flatnonzero(experience.horizons > 0)
    indices = np.arange(len(experience.observations)) if states is None else experience.observations
    table = experience.observations if states is None else states
    name = "mlp" if states is None else default_encoder(table.shape[1:])
    encoder = _untrained(name, table, dim, jax.random.fold_in(key, 1))
    here, there = jnp.asarray(indices[begins]), jnp.asarray(indices[begins + 1])
    return LapPhi(_trained(encoder, jnp.asarray(table), here, there, key, steps, batch, learning_rate))


def lap_features(target: Target, dim: int, **how: Any) -> np.ndarray:
    """φ of every enumerated state; `how` is as for `lap_phi`."""
    if target.states is None:
        raise ConfigError(f"{target.name} has no enumerated states")
    return lap_phi(target, dim, **how)(target.states).astype(np.float64)


def _untrained(name: EncoderName, states: np.ndarray, dim: int, key) -> Encoder:
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
