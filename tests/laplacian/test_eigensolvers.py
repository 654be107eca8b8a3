import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.spatial import KDTree

from lapwing.laplacian import eigensolvers
from lapwing.laplacian.eigensolvers import DENSE_EIGEN_LIMIT, dense, smallest

pytestmark = pytest.mark.numeric
SIZE = DENSE_EIGEN_LIMIT + 100


def normalised(weights) -> sparse.csr_array:
    """diag(ρ)^-½ W diag(ρ)^-½, whose largest eigenvalue is 1."""
    scale = sparse.diags_array(1 / np.sqrt(np.asarray(weights.sum(axis=1)).ravel()))
    return sparse.csr_array(scale @ weights @ scale)


def near_neighbours(points: np.ndarray, k: int = 10) -> sparse.csr_array:
    """A graph with an edge of weight 1 from each point to its nearest, and back."""
    _, near = KDTree(points).query(points, k=k + 1)
    here = np.repeat(np.arange(len(points)), k)
    edges = sparse.csr_array((np.ones(len(here)), (here, near[:, 1:].ravel())), shape=(len(points),) * 2)
    return edges.maximum(edges.T)


@pytest.fixture(scope="module")
def branching() -> sparse.csr_array:
    """Neighbours in six dimensions, where factors would fill up."""
    return normalised(near_neighbours(np.random.default_rng(0).standard_normal((SIZE, 6))))


def refuse(*arguments):
    raise AssertionError("not this way")


def test_a_graph_that_branches_is_multiplied_and_not_factorised(branching, monkeypatch):
    monkeypatch.setattr(eigensolvers, "_by_inversion", refuse)
    values, vectors = smallest(branching, 6)
    exact, exact_vectors = np.linalg.eigh(np.eye(SIZE) - dense(branching))
    np.testing.assert_allclose(values, exact[:6], atol=1e-12)
    assert subspace_angles(vectors, exact_vectors[:, :6]).max() < 1e-6
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-10)


@pytest.mark.parametrize("parts", [5, 12])
def test_none_of_many_equal_eigenvalues_is_missed(parts):
    whole = near_neighbours(np.random.default_rng(0).standard_normal((SIZE // parts + 1, 3)))
    values, _ = smallest(normalised(sparse.block_diag([whole] * parts)), parts + 1)
    assert (np.abs(values[:parts]) < 1e-9).all()
    assert values[parts] > 1e-4


def test_a_ring_has_the_eigenvalues_of_cosines():
    hops = range(1, 6)
    diagonals = [np.ones(SIZE - hop) for hop in hops] + [np.ones(hop) for hop in hops]
    half = sparse.diags_array(diagonals, offsets=[*hops, *(hop - SIZE for hop in hops)], shape=(SIZE, SIZE))
    values, _ = smallest(normalised(half + half.T), 7)
    frequencies = np.array([0, 1, 1, 2, 2, 3, 3])
    exact = [1 - np.mean(np.cos(2 * np.pi * k * np.arange(1, 6) / SIZE)) for k in frequencies]
    np.testing.assert_allclose(values, exact, atol=1e-11)


def test_a_dense_matrix_gives_the_same(branching):
    values, _ = smallest(dense(branching), 4)
    np.testing.assert_allclose(values, smallest(branching, 4)[0], atol=1e-9)
