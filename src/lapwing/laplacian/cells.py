"""Exact eigenvectors of the chain between cells, constant on each cell: a reference for a smooth φ."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

from lapwing.data.experience import Experience
from lapwing.laplacian.chain import empirical_chain

CELLS = 2_000
_HALVINGS = 20


@dataclass(frozen=True, eq=False)
class CellPhi:
    """f/√λ of the cell whose middle is nearest to an observation."""

    middles: np.ndarray
    """(cells, k), of cells that were visited."""
    values: np.ndarray
    """(cells, d)."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """(observations, d)."""
        return self.values[np.asarray(self._tree.query(observations)[1])]

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.middles)


def cell_phi(experience: Experience, dim: int, most: int = CELLS) -> CellPhi:
    """φ of the finest square lattice that has at most so many cells with data in them.

    Args:
        experience: vectors of a few dimensions.
        dim: how many eigenfunctions, the constant among them.
        most: so many cells.
    """
    cells, ids = _lattice(np.asarray(experience.observations, np.float64), most)
    middles = cells.astype(np.float32)
    chain = empirical_chain(Experience(ids, experience.lengths, middles))
    eigenvalues, functions = chain.eigenpairs(dim)
    slow = functions[:, 1:] / np.sqrt(np.maximum(eigenvalues[1:], 1e-9))
    return CellPhi(middles, slow.astype(np.float32))


def _lattice(rows: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The middles of the cells, and in which one each row is."""
    low, extent = rows.min(axis=0), float(np.ptp(rows, axis=0).max())
    coarse, fine = extent * 1.001, extent / most
    for _ in range(_HALVINGS):
        side = (coarse * fine) ** 0.5
        count = len(np.unique(np.floor((rows - low) / side).astype(np.int64), axis=0))
        coarse, fine = (side, fine) if count <= most else (coarse, side)
    cells, ids = np.unique(np.floor((rows - low) / coarse).astype(np.int64), axis=0, return_inverse=True)
    return low + (cells + 0.5) * coarse, ids.reshape(-1)
