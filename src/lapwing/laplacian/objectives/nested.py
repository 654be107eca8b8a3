"""Nested low-rank approximation: eigenfunctions whose norms encode their eigenvalues."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.laplacian.objectives.batch import Batch, Matrix, prefix_weights
from lapwing.laplacian.objectives.drawing import Loss


@dataclass(frozen=True)
class NestedLowRank:
    """-2 tr C + ‖M‖² with M = E[φφᵀ], C = E[φ(u)φ(v)ᵀ], averaged over the prefixes of the dimensions.

    Up to a constant the squared distance of D from Σ_k φ_k φ_kᵀ, so of each prefix the best approximation of
    that rank: "Operator SVD with Neural Networks via Nested Low-Rank Approximation" (Ryu et al., 2024), with
    their joint nesting. At the minimum φ_k = √μ_k f_k, μ_k = 1 - λ_k; a dimension with μ_k ≤ 0 vanishes.
    """

    def init(self, d: int) -> tuple[()]:
        """Nothing but φ is learned."""
        return ()

    def loss(self, state: tuple[()], batch: Batch) -> Loss:
        """The squares are products of the moments of two samples."""
        one, other = batch.samples()
        first, second = one.moment(), other.moment()
        weights = prefix_weights(len(first))
        gain = jnp.diag(weights) @ jnp.diag(one.correlation() + other.correlation())
        loss = jnp.sum(weights * first * second) - gain
        drawing = jnp.sum(one.drawing() + other.drawing()) / 2
        return loss, {"loss": loss, "graph_drawing": drawing}

    def update(self, state: tuple[()], batch: Batch) -> tuple[()]:
        """Nothing."""
        return state

    def eigenvalues(self, state: tuple[()], moment: Matrix) -> Float[Array, " d"]:
        """λ_k = 1 - E[φ_k²]."""
        return 1 - jnp.diag(moment)
