"""Landmarks: how they are spread, and how they share what lies between them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import KDTree

from lapwing.solving.landmarks import shares, spread

seeds = st.integers(0, 10_000)


@given(seeds, st.integers(1, 12))
def test_each_landmark_is_the_farthest_from_those_before(seed, count):
    points = np.random.default_rng(seed).normal(size=(20, 3))
    chosen = spread(points, count)
    assert len(set(chosen.tolist())) == count
    for place in range(1, count):
        apart = np.linalg.norm(points[:, None] - points[chosen[:place]], axis=2).min(axis=1)
        assert apart[chosen[place]] >= apart.max() - 1e-12


def test_equal_points_are_one_landmark():
    assert spread(np.array([[1.0], [1.0], [2.0], [2.0]]), 4).tolist() == [0, 2]


@given(seeds, st.integers(1, 9))
def test_shares_are_an_average(seed, neighbours):
    """Of as many landmarks as asked for, and no value leaves its range."""
    rng = np.random.default_rng(seed)
    landmarks, points, values = rng.normal(size=(6, 2)), rng.normal(size=(10, 2)), rng.normal(size=6)
    found = shares(KDTree(landmarks), points, neighbours)
    np.testing.assert_allclose(np.asarray(found.sum(axis=1)).ravel(), 1.0)
    assert (np.diff(found.indptr) == min(neighbours, 6)).all()
    assert values.min() - 1e-12 <= (found @ values).min() <= (found @ values).max() <= values.max() + 1e-12


def test_a_landmark_stands_for_itself():
    landmarks = np.random.default_rng(0).normal(size=(7, 3))
    np.testing.assert_allclose(shares(KDTree(landmarks), landmarks, 4).toarray(), np.eye(7), atol=1e-12)


def test_the_middle_of_two_is_shared_equally():
    found = shares(KDTree(np.array([[0.0], [1.0], [9.0]])), np.array([[0.5]]), 2)
    np.testing.assert_allclose(found.toarray(), [[0.5, 0.5, 0.0]])
