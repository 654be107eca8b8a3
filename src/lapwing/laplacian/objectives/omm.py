"""Orbital minimisation: orthonormal eigenfunctions without a constraint or a weight."""

from dataclasses import dataclass

import jax.numpy as jnp

from lapwing.laplacian.objectives.batch import Batch, Matrix, prefix_weights
from lapwing.laplacian.objectives.drawing import Loss


@dataclass(frozen=True)
class OrbitalMinimisation:
    """-2 tr C + tr(M C) with M = E[φφᵀ], C = E[φ Tφᵀ], averaged over the prefixes of the dimensions.

    The orbital minimisation method of electronic structure, for neural networks in "Revisiting Orbital
    Minimization Method" (Ryu et al., 2025), here with their joint nesting. It needs a T without negative
    eigenvalues, or it has no minimum: T is the lazy walk (I + P_λ) / 2, which has the same eigenfunctions. At
    the minimum E[φφᵀ] = I.
    """

    def init(self, d: int) -> tuple[()]:
        """Nothing but φ is learned."""
        return ()

    def loss(self, state: tuple[()], batch: Batch) -> Loss:
        """Each product takes its two factors from two samples."""
        one, other = batch.samples()
        moments = one.moment(), other.moment()
        ahead = one.lazy_correlation(), other.lazy_correlation()
        weights = prefix_weights(len(moments[0]))
        gain = jnp.diag(weights) @ jnp.diag(ahead[0] + ahead[1])
        overlap = jnp.sum(weights * (moments[0] * ahead[1].T + moments[1] * ahead[0].T)) / 2
        loss = overlap - gain
        drawing = jnp.sum(one.drawing() + other.drawing()) / 2
        identity = jnp.eye(len(weights))
        penalty = jnp.sum((moments[0] - identity) * (moments[1] - identity))
        return loss, {"loss": loss, "graph_drawing": drawing, "penalty": penalty}

    def update(self, state: tuple[()], batch: Batch) -> tuple[()]:
        """Nothing."""
        return state

    def eigenvalues(self, state: tuple[()], moment: Matrix) -> None:
        """None: φ is orthonormal, and nothing else is learned."""
        return
