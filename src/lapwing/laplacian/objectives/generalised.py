"""Generalised graph drawing: ordered eigenfunctions by weights that decrease over the dimensions."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.laplacian.objectives.batch import Batch, Matrix, prefix_weights
from lapwing.laplacian.objectives.drawing import Loss


@dataclass(frozen=True)
class Generalised:
    """The graph drawing loss, averaged over the prefixes of the dimensions (Wang et al., 2021, "GGDO").

    Σ_k c_k G_k + β Σ_jk c_max(j,k) (E[φ_j φ_k] - δ·1[j=k])² with c_k = (d + 1 - k) / d and
    G_k = ½ E[(φ_k(u) - φ_k(v))²]. Their weights d, d - 1, …, 1 are these times d. At the minimum
    φ_k = a_k f_k, with the same a_k² = δ - λ_k / (2β) as graph drawing has.
    """

    beta: float = 1.0
    delta: float = 1.0

    def init(self, d: int) -> tuple[()]:
        """Nothing but φ is learned."""
        return ()

    def loss(self, state: tuple[()], batch: Batch) -> Loss:
        """The squares are products of the errors of two samples."""
        one, other = batch.samples()
        drawing = (one.drawing() + other.drawing()) / 2
        weights = prefix_weights(len(drawing))
        target = self.delta * jnp.eye(len(drawing))
        squares = (one.moment() - target) * (other.moment() - target)
        loss = jnp.diag(weights) @ drawing + self.beta * jnp.sum(weights * squares)
        return loss, {"loss": loss, "graph_drawing": jnp.sum(drawing), "penalty": jnp.sum(squares)}

    def update(self, state: tuple[()], batch: Batch) -> tuple[()]:
        """Nothing."""
        return state

    def eigenvalues(self, state: tuple[()], moment: Matrix) -> Float[Array, " d"]:
        """λ_k = 2β (δ - E[φ_k²]), by the size that the penalty leaves."""
        return 2 * self.beta * (self.delta - jnp.diag(moment))
