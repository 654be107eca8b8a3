"""φ learned while an agent learns: one step of its own for each of the agent's, on pairs from the replay.

λ falls linearly over the agent's steps, for an agent that has learned moves faster (the paper).
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Scalar

from lapwing.laplacian.encoders import Encoder, embed
from lapwing.laplacian.objectives import pairwise_loss
from lapwing.laplacian.sampling import annealed_lam
from lapwing.settings.learn import LearnSettings

LAM_FINAL = 0.95
"""What λ is annealed to, in the paper."""


class PhiState(NamedTuple):
    """What a step of φ changes."""

    encoder: Encoder
    optimiser: optax.OptState


@dataclass(frozen=True)
class PhiLearner:
    """How φ is learned beside an agent."""

    beta: float
    delta: float
    lam: float
    lam_final: float
    batch: int
    learning_rate: float

    @classmethod
    def of(cls, recipe: LearnSettings, lam_final: float = LAM_FINAL) -> "PhiLearner":
        """The recipe that φ would be pretrained by, with λ annealed."""
        assert recipe.beta is not None
        assert recipe.lam is not None
        assert recipe.learning_rate is not None
        return cls(recipe.beta, recipe.delta, recipe.lam, lam_final, recipe.batch, recipe.learning_rate)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam."""
        return optax.adam(self.learning_rate)

    def init(self, encoder: Encoder) -> PhiState:
        """φ before its first step."""
        return PhiState(encoder, self.optimiser.init(eqx.filter(encoder, eqx.is_inexact_array)))

    def annealed_lam(self, progress) -> Float[Scalar, ""]:
        """λ after a share `progress` of the agent's steps."""
        return jnp.asarray(annealed_lam(self.lam, self.lam_final, progress), jnp.float32)

    def update(self, state: PhiState, u: Array, v: Array) -> tuple[PhiState, dict[str, Float[Scalar, ""]]]:
        """One step of Adam on pairs (u, v) of observations."""

        def loss_of(encoder: Encoder):
            phi = jax.vmap(embed, in_axes=(None, 0))(encoder, jnp.concatenate([u, v]))
            return pairwise_loss(*jnp.split(phi, 2), beta=self.beta, delta=self.delta)

        gradient, metrics = eqx.filter_grad(loss_of, has_aux=True)(state.encoder)
        updates, optimiser = self.optimiser.update(gradient, state.optimiser)
        metrics = {f"phi/{name}": value for name, value in metrics.items()}
        return PhiState(eqx.apply_updates(state.encoder, updates), optimiser), metrics
