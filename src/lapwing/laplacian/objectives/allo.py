"""ALLO: ordered eigenfunctions by an augmented Lagrangian with stop-gradients."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from lapwing.laplacian.objectives.batch import Batch, Matrix, Sample
from lapwing.laplacian.objectives.drawing import Loss


class AlloState(NamedTuple):
    """What is learned besides φ."""

    duals: Matrix
    """One for each constraint, in the lower triangle."""
    barrier: Float[Scalar, ""]
    squares: Matrix
    """A running mean of the squared errors, which the barrier grows by."""


@dataclass(frozen=True)
class Allo:
    """min_φ max_duals E‖φ(u) - φ(v)‖² + Σ_{k≤j} dual_jk e_jk + barrier · Σ_{k≤j} e_jk².

    e_jk = E[φ_j ⟦φ_k⟧] - δ·1[j=k], and ⟦·⟧ stops the gradient, so that a dimension is orthogonal to those
    before it and not the other way round: "Proper Laplacian representation learning" (Gomez et al., 2024).
    Duals and barrier follow their gradients, one small step for each of φ. As in the authors' code, the first
    term is 2G (the paper has G), and the barrier grows by a running mean of the squared errors.

    The authors' configuration has a barrier rate of 1, and their scripts try 0 to 10. With 1 the barrier of a
    large maze grows until its noise hides small differences of eigenvalues: after 200,000 steps the cosine in
    GridMaze-26 is 0.69, and 0.993 with 0.01 (docs/mazes12.md).
    """

    barrier: float = 2.0
    """What it begins with."""
    delta: float = 1.0
    dual_rate: float = 1e-4
    barrier_rate: float = 0.01
    squares_rate: float = 0.1
    largest_dual: float = 100.0
    largest_barrier: float = 1e4

    def init(self, d: int) -> AlloState:
        """No dual pulls yet."""
        return AlloState(jnp.zeros((d, d)), jnp.asarray(self.barrier, float), jnp.zeros((d, d)))

    def loss(self, state: AlloState, batch: Batch) -> Loss:
        """The squares are products of the errors of two samples."""
        samples = batch.samples()
        first, second = (self._errors(sample) for sample in samples)
        drawing = sum(jnp.sum(sample.drawing()) for sample in samples) / 2
        squares = jnp.sum(first * second)
        loss = 2 * drawing + jnp.sum(state.duals * (first + second)) / 2 + state.barrier * squares
        metrics = {"graph_drawing": drawing, "penalty": squares, "barrier": state.barrier}
        return loss, {"loss": loss} | metrics

    def update(self, state: AlloState, batch: Batch) -> AlloState:
        """One step of gradient ascent."""
        first, second = (self._errors(sample) for sample in batch.samples())
        duals = state.duals + self.dual_rate * (first + second) / 2
        rate = jnp.where(jnp.any(state.squares != 0), self.squares_rate, 1.0)
        squares = state.squares + rate * (first * second - state.squares)
        barrier = state.barrier + self.barrier_rate * jnp.mean(jnp.maximum(squares, 0))
        return AlloState(
            jnp.clip(duals, -self.largest_dual, self.largest_dual),
            jnp.minimum(barrier, self.largest_barrier),
            squares,
        )

    def eigenvalues(self, state: AlloState, moment: Matrix) -> Float[Array, " d"]:
        """λ_k = -dual_kk / 4, where 4 L φ_k + dual_kk φ_k is 0."""
        return -jnp.diag(state.duals) / 4

    def _errors(self, sample: Sample) -> Matrix:
        inner = sample.phi.T @ (sample.weights[:, None] * jax.lax.stop_gradient(sample.phi))
        return jnp.tril(inner - self.delta * jnp.eye(len(inner)))
