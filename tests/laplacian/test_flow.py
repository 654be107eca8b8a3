"""How much of the flow has no way back, and how many parts there are, of chains where both are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lapwing.data.experience import Experience
from lapwing.laplacian.flow import CELLS, cell_counts, connected_parts, irreversibility, sampled_flow


def walk_on_circle(steps: int, seed: int, forwards: float, size: int = 20) -> np.ndarray:
    """Ids of a walk that goes forwards with this probability, else backwards."""
    rng = np.random.default_rng(seed)
    return np.cumsum(np.where(rng.random(steps) < forwards, 1, -1)) % size


def as_points(ids: np.ndarray, seed: int, size: int = 20) -> np.ndarray:
    """The same on a circle in the plane, with some noise."""
    angles = 2 * np.pi * ids / size
    noise = np.random.default_rng(seed).normal(0, 0.02, (len(ids), 2))
    return (np.stack([np.cos(angles), np.sin(angles)], axis=1) + noise).astype(np.float32)


@pytest.mark.parametrize(("forwards", "expected"), [(0.5, 0.0), (0.75, 0.5), (1.0, 1.0)])
def test_a_walk_on_a_circle(forwards, expected):
    """The net flow is 2p - 1 of all; of enumerated states and of points."""
    ids = walk_on_circle(60_000, 0, forwards)
    enumerated = Experience(ids, [len(ids)], np.arange(20))
    continuous = Experience(as_points(ids, 1), [len(ids)])
    for experience in (enumerated, continuous):
        found = sampled_flow(experience)
        assert found.irreversibility == pytest.approx(expected, abs=0.1)
        assert found.parts == 1


@given(st.integers(0, 2**16), st.integers(2, 8))
def test_counts_that_are_symmetric_have_a_way_back(seed, size):
    counts = np.random.default_rng(seed).integers(0, 50, (size, size))
    assert irreversibility(sparse.csr_array(counts + counts.T)) == 0


@given(st.integers(0, 2**16), st.integers(2, 8))
def test_it_is_a_share_and_the_same_in_reverse(seed, size):
    counts = sparse.csr_array(np.random.default_rng(seed).integers(0, 500, (size, size)))
    found = irreversibility(counts)
    assert 0 <= found <= 1
    assert irreversibility(sparse.csr_array(counts.T)) == pytest.approx(found)


def test_chance_alone_does_not_count():
    """Of few visits every second pair of states has been walked one way alone."""
    ids = walk_on_circle(200, 3, 0.5, size=100)
    assert irreversibility(sparse.csr_array(pairs(ids, 100))) < 0.02


def pairs(ids: np.ndarray, size: int) -> np.ndarray:
    counts = np.zeros((size, size))
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    return counts


def test_parts_are_counted():
    first, second = as_points(walk_on_circle(5_000, 0, 0.5), 0), as_points(walk_on_circle(5_000, 1, 0.5), 1)
    apart = Experience(np.concatenate([first, second + 10]), [5_000, 5_000])
    together = Experience(np.concatenate([first, second]), [5_000, 5_000])
    assert (sampled_flow(apart).parts, sampled_flow(together).parts) == (2, 1)
    counts = sparse.csr_array(np.kron(np.diag([1, 1, 1]), np.ones((2, 2))))
    assert connected_parts(counts) == 3


def test_states_that_were_never_visited_are_no_parts():
    ids = np.array([0, 1, 0, 1, 5, 6, 5])
    assert sampled_flow(Experience(ids, [4, 3], np.arange(10))).parts == 2


@pytest.mark.parametrize(
    "observations",
    [
        np.zeros((40, 2), np.float32),
        np.repeat(np.arange(4, dtype=np.float32), 10)[:, None],
        np.random.default_rng(0).normal(size=(40, 100)).astype(np.float32),
        np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8),
    ],
    ids=["constant", "duplicated", "a hundred dimensions", "images"],
)
def test_any_data_has_a_flow(observations):
    for lengths in ([40], [2] * 20):
        found = sampled_flow(Experience(observations, lengths))
        assert 0 <= found.irreversibility <= 1
        assert found.parts >= 1


def test_cells_are_no_more_than_the_data_can_fill():
    points = np.random.default_rng(0).normal(size=(20_000, 3)).astype(np.float32)
    assert cell_counts(Experience(points, [20_000])).shape == (CELLS, CELLS)
    assert cell_counts(Experience(points[:1_000], [1_000])).shape[0] <= 10
    assert cell_counts(Experience(points, [20_000])).sum() == 19_999
