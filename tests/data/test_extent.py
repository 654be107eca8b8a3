"""Which part of a space data comes to, and which states are outside of it."""

import numpy as np
import pytest
from gymnasium import spaces

from lapwing.data.extent import bounds_of, extent_of, far_outside, ranges_of, why_no_state
from lapwing.data.observations import view_of

UNIT = ((0.0, 1.0), (0.0, 1.0))


def test_bounds_are_those_of_the_space_and_huge_ones_are_none():
    largest = np.finfo(np.float32).max
    low, high = np.array([-1, -largest], np.float32), np.array([2, largest], np.float32)
    assert bounds_of(spaces.Box(low, high)) == ((-1.0, 2.0), (-np.inf, np.inf))
    assert bounds_of(spaces.Discrete(5)) is None
    assert bounds_of(spaces.Box(0, 1, (500,))) is None
    assert view_of(spaces.Box(0, 1, (2,), np.float32)).bounds == UNIT


def test_ranges_are_those_of_each_feature():
    rows = np.random.default_rng(0).normal(size=(1_000, 3)).astype(np.float32)
    np.testing.assert_allclose(ranges_of(rows), np.stack([rows.min(axis=0), rows.max(axis=0)], axis=1))
    assert ranges_of(np.zeros((4, 8, 8, 3), np.uint8)) is None


def test_the_share_of_a_space_that_data_comes_to():
    """A band over 3 of 10 rows of cells, by a uniform draw that leaves no cell of it empty."""
    rows = np.random.default_rng(0).uniform([0, 0], [1, 0.2999], (5_000, 2))
    found = extent_of(rows, UNIT)
    assert found["covered"] == pytest.approx(0.3)
    assert found["ranges"][1][1] == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    ("count", "bounds"),
    [(100, UNIT), (5_000, ((0.0, 1.0), (-np.inf, np.inf))), (5_000, ((0.0, 1.0), (1.0, 1.0)))],
)
def test_nothing_is_said_of_the_share_where_it_cannot_be_counted(count, bounds):
    found = extent_of(np.random.default_rng(0).uniform(size=(count, 2)), bounds)
    assert found["covered"] is None
    assert len(found["ranges"]) == 2


def test_only_states_far_outside_are_far_outside():
    ranges = [[0.0, 1.0], [3.0, 3.0]]
    unseen = np.random.default_rng(0).uniform(-0.5, 1.5, (100, 2))
    assert far_outside(unseen, ranges) is None
    assert far_outside([[0.5, 3.0], [5.0, 3.0]], ranges) == 0


def test_a_goal_within_the_bounds_may_be_a_state_however_little_was_seen():
    little = [[0.0, 0.1], [0.0, 0.1]]
    assert why_no_state([0.9, 0.9], little, UNIT) is None
    assert "feature 1" in why_no_state([0.5, 1.5], little, UNIT)
    assert "feature 0" in why_no_state([0.9, 0.0], little)
    assert "feature 0" in why_no_state([0.9, 0.0], little, ((-np.inf, np.inf), (0.0, 1.0)))
    assert why_no_state([0.15, 0.0], little) is None
