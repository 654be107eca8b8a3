"""Graph drawing: the paper's objective, and the default."""

from dataclasses import dataclass

from lapwing.laplacian.objectives.batch import Batch, Matrix
from lapwing.laplacian.objectives.drawing import Loss


@dataclass(frozen=True)
class GraphDrawing:
    """G + β Σ_jk (E[φ_j φ_k] - δ·1[j=k])² (Wu, Tucker and Nachum, 2019, Eq. 6).

    Its minimum is the span of the first eigenfunctions: any rotation of it is as good, so Rayleigh-Ritz
    finds the single ones.
    """

    beta: float = 1.0
    delta: float = 1.0

    def init(self, d: int) -> tuple[()]:
        """Nothing but φ is learned."""
        return ()

    def loss(self, state: tuple[()], batch: Batch) -> Loss:
        """By the estimate of each estimator that has the least noise."""
        return batch.graph_drawing(self.beta, self.delta)

    def update(self, state: tuple[()], batch: Batch) -> tuple[()]:
        """Nothing."""
        return state

    def eigenvalues(self, state: tuple[()], moment: Matrix) -> None:
        """None: a rotation has none."""
        return
