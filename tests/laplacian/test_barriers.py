"""Thin walls in walks that are simulated here."""

import numpy as np
import pytest

import lapwing
from lapwing.data.experience import Experience
from lapwing.laplacian.barriers import find_barriers, has_walls

STEP, DOOR = 0.06, 0.2
WIDE = {"dim": 6, "bumps": (20,), "bump_width": (2.0,), "slowness": (0.0,), "held_out": 0.0}
"""Bumps as wide as a quarter of the square: no wall is resolved by them."""


def walks(wall: bool, side: bool = False, step: float = STEP) -> Experience:
    """A point in the unit square, with a wall of no width at x = 0.5 that has a door; and on which side."""
    rng = np.random.default_rng(0)
    at = rng.random((600, 2))
    seen = [at]
    for _ in range(100):
        there = np.clip(at + rng.uniform(-step, step, at.shape), 0, 1)
        through = ((there[:, 0] > 0.5) != (at[:, 0] > 0.5)) & (there[:, 1] > DOOR) & wall
        at = np.where(through[:, None], at, there)
        seen.append(at)
    rows = np.stack(seen, axis=1).reshape(-1, 2)
    if side:
        rows = np.column_stack([rows, rows[:, 0] > 0.5])
    return Experience(rows.astype(np.float32), [101] * 600)


def test_a_thin_wall_is_found_and_wide_bumps_pass_through_it():
    experience = walks(wall=True)
    found = find_barriers(lapwing.learn(experience, **WIDE), experience)
    assert found is not None
    assert found["walls"] >= 3
    assert has_walls(found)
    assert found["contrast"] < 3


def test_states_that_pile_up_at_the_border_are_compared_all_the_same():
    """With such long steps most neighbours of a wall may lie at the border, none beyond their median."""
    experience = walks(wall=True, step=0.12)
    found = find_barriers(lapwing.learn(experience, **WIDE), experience)
    assert found is not None
    assert found["walls"] >= 3
    assert found["contrast"] is not None
    assert np.isfinite(found["contrast"])


@pytest.mark.parametrize(("wall", "side"), [(False, False), (True, True)])
def test_where_there_is_none_or_states_on_either_side_differ_nothing_is(wall, side):
    experience = walks(wall, side)
    found = find_barriers(lapwing.learn(experience, **WIDE), experience)
    assert found is not None
    assert found["places"] > 100
    assert found["walls"] == 0
    assert not has_walls(found)


def test_enumerated_states_and_many_numbers_are_not_looked_at(four_room):
    steps = np.random.default_rng(0).standard_normal((300, 5)).cumsum(axis=0).astype(np.float32)
    assert find_barriers(four_room, Experience(steps, [300])) is None
    table = np.array([[0.0, 0.0], [0.0, 1.0]], np.float32)
    assert find_barriers(four_room, Experience(np.array([0, 1, 0]), [3], table)) is None
