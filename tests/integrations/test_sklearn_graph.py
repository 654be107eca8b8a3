import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from lapwing.integrations.sklearn import (
    FAINTEST,
    neighbour_distance,
    neighbour_graph,
    random_walks,
    shortest_bridges,
)
from lapwing.laplacian.chain import dense, graph_chain, true_chain
from tests.support.graphs import by_brute_force, distance_matrix


def cloud(count: int = 40, features: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, features))


def clumps(sizes, seed: int = 0) -> np.ndarray:
    """Clumps of these sizes, far from each other."""
    rng = np.random.default_rng(seed)
    centres = 100 * rng.standard_normal((len(sizes), 2))
    return np.concatenate([c + rng.standard_normal((n, 2)) for c, n in zip(centres, sizes, strict=True)])


@pytest.mark.parametrize("k", [1, 5, 39])
def test_the_graph_is_that_of_brute_force(k):
    points = np.arange(40.0)[:, None] ** 1.1 if k == 1 else cloud()
    weights, parts = neighbour_graph(points, k)
    expected = by_brute_force(points, k)
    assert parts == connected_components(sparse.csr_array(expected))[0]
    if parts == 1:
        np.testing.assert_allclose(weights.toarray(), expected, rtol=1e-9)
    else:
        found = np.where(expected > 0, weights.toarray(), 0)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert weights.nnz == np.count_nonzero(expected) + 2 * (parts - 1)


@given(st.integers(0, 10_000), st.integers(2, 60), st.integers(1, 12), st.integers(1, 4))
@example(0, 5, 10, 3)
def test_a_graph_is_symmetric_whole_and_without_loops(seed, count, k, features):
    points = np.round(cloud(count, features, seed) * 3) if seed % 2 else cloud(count, features, seed)
    points = np.unique(points, axis=0)
    if len(points) < 2:
        return
    weights, _ = neighbour_graph(points, k)
    written = weights.toarray()
    np.testing.assert_array_equal(written, written.T)
    assert connected_components(weights)[0] == 1
    assert not np.diag(written).any()
    assert ((written == 0) | ((written >= FAINTEST) & (written <= 1))).all()
    assert ((written > 0).sum(axis=1) >= min(k, len(points) - 1)).all()


def test_the_scale_of_a_graph_does_not_matter():
    points = cloud()
    small, large = neighbour_graph(points * 1e-6, 6)[0], neighbour_graph(points * 1e6, 6)[0]
    np.testing.assert_allclose(small.toarray(), large.toarray(), rtol=1e-9)


def test_an_outlier_next_to_a_dense_clump_is_not_cut_off():
    points = np.concatenate([1e-6 * cloud(30), [[1e3, 0, 0]]])
    weights, _ = neighbour_graph(points, 5)
    assert weights.toarray()[-1].max() == FAINTEST
    assert connected_components(weights)[0] == 1


@pytest.mark.parametrize("sizes", [(5, 5), (12, 3, 4), (2, 2, 2, 2, 2, 2), (30, 1, 1, 8)])
@pytest.mark.parametrize("seed", range(4))
def test_bridges_are_a_least_spanning_tree_of_the_parts(sizes, seed):
    points = clumps(sizes, seed)
    label = np.repeat(np.arange(len(sizes)), sizes)
    here, there = shortest_bridges(points, label)
    distances = distance_matrix(points)
    between = [
        [distances[np.ix_(label == a, label == b)].min() if a != b else 0 for b in range(len(sizes))]
        for a in range(len(sizes))
    ]
    assert len(here) == len(sizes) - 1
    assert distances[here, there].sum() == pytest.approx(minimum_spanning_tree(np.array(between)).sum())
    tree = sparse.coo_array((np.ones(len(here)), (label[here], label[there])), shape=(len(sizes),) * 2)
    assert connected_components(tree)[0] == 1


def test_parts_are_counted_and_joined():
    points = clumps((20, 15, 10))
    weights, parts = neighbour_graph(points, 4)
    label = np.repeat(np.arange(3), (20, 15, 10))
    assert parts == 3
    crossing = weights.toarray() * (label[:, None] != label[None])
    assert np.count_nonzero(crossing) == 4
    assert crossing.max() == FAINTEST


def test_the_chain_of_the_graph_is_that_of_steps_along_its_edges():
    weights, _ = neighbour_graph(cloud(), 6)
    written = weights.toarray()
    transition = written / written.sum(axis=1, keepdims=True)
    walk, expected = graph_chain(weights), true_chain(transition)
    np.testing.assert_allclose(walk.rho, expected.rho, rtol=1e-9)
    np.testing.assert_allclose(dense(walk.weights), dense(expected.weights), atol=1e-15)


def test_walks_have_the_frequencies_of_the_transition_matrix():
    weights, _ = neighbour_graph(cloud(12), 3)
    walks = random_walks(weights, 4_000, 25, np.random.default_rng(0))
    assert walks.shape == (4_000, 26)
    counts = np.zeros((12, 12))
    np.add.at(counts, (walks[:, :-1].ravel(), walks[:, 1:].ravel()), 1)
    expected = weights.toarray() / weights.sum()  # the joint distribution of a step from a stationary start
    assert not counts[expected == 0].any()
    deviation = np.sqrt(expected / counts.sum())
    assert (np.abs(counts / counts.sum() - expected) <= 12 * deviation).all()
    begin = np.bincount(walks[:, 0], minlength=12) / len(walks)
    np.testing.assert_allclose(begin, expected.sum(axis=1), atol=0.03)


def test_walks_come_from_the_generator_alone():
    weights, _ = neighbour_graph(cloud(), 3)
    first, again, other = (random_walks(weights, 9, 7, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("k", [1, 4, 100])
def test_the_distance_to_the_last_neighbour_is_in_standard_deviations(k):
    points = cloud(50) * [1.0, 1e3, 1e-3]
    distances = np.sort(distance_matrix(points / points.std(axis=0)), axis=1)
    assert neighbour_distance(points, k) == pytest.approx(np.median(distances[:, min(k, 49)]))


def test_a_feature_that_never_changes_is_left_out():
    points = cloud(50, 2)
    with_constant = np.column_stack([points, np.full(50, 7.0)])
    assert neighbour_distance(with_constant, 3) == pytest.approx(neighbour_distance(points, 3))
