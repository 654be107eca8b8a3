"""Goals where data is missing are found, and no others."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from lapwing.errors import LapwingWarning
from lapwing.integrations.goals import RewardShaper
from lapwing.laplacian.coverage import FEWEST, Coverage
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.representation import Representation
from tests.support.representations import random_representation

SPACE = spaces.Box(-9, 9, (2,), np.float32)
FAR = np.array([7.0, 7.0], np.float32)


@pytest.fixture(scope="module")
def learned() -> Representation:
    """One that saw states between -1 and 1 alone."""
    rep = random_representation(EncoderSpec("mlp", (2,), 4, None, (8,)))
    seen = np.random.default_rng(0).uniform(-1, 1, (400, 2)).astype(np.float32)
    return replace(rep, reference=rep.eigenfunctions(seen))


@pytest.mark.parametrize("filter", ["commute", "biharmonic", "hitting"])
def test_a_goal_far_from_the_data_is_warned_of_once(learned, filter):
    with pytest.warns(LapwingWarning, match="thinly sampled"):
        shaper = RewardShaper(SPACE, learned, FAR, form="laplacian", filter=filter)
    shaper.set_goal(FAR)  # warnings are errors: it is not repeated


@pytest.mark.parametrize("past_termination", [False, True])
def test_the_remedy_is_not_what_was_done(learned, past_termination):
    rep = replace(learned, config={"settings": {"past_termination": past_termination}})
    with pytest.warns(LapwingWarning) as warned:
        RewardShaper(SPACE, rep, FAR, form="laplacian")
    assert ("past_termination" in str(warned[0].message)) != past_termination


def test_a_goal_among_the_data_is_not(learned):
    shaper = RewardShaper(SPACE, learned, np.zeros(2, np.float32), form="laplacian")
    with pytest.warns(LapwingWarning, match="thinly sampled"):
        shaper.set_goal(FAR)


def test_states_of_the_data_are_not_thinly_sampled(learned):
    goals = np.random.default_rng(1).uniform(-0.9, 0.9, (100, 2)).astype(np.float32)
    coverage = Coverage.of(learned, "commute")
    assert coverage is not None
    assert coverage.times_too_far(learned.embed(goals, "commute")) is None
    assert coverage.times_too_far(learned.embed(FAR, "commute")) > 3


def test_a_solitary_state_of_the_data_does_not_hide_a_hole():
    """Unless many goals are asked after, of which some are such by chance."""
    rng = np.random.default_rng(0)
    coverage = Coverage(np.concatenate([rng.uniform(-1, 1, (500, 2)), [[5.0, 5.0]]]))
    goal = np.array([2.0, 2.0])
    assert coverage.times_too_far(goal) > 3
    assert coverage.times_too_far(goal, of_many=True) is None
    assert coverage.times_too_far(np.array([9.0, 9.0]), of_many=True) > 3


def test_sparseness_is_that_of_the_nearest_states():
    """Against all distances, sorted; a state that recurs counts once."""
    rng = np.random.default_rng(0)
    states, points = rng.normal(size=(80, 3)), rng.normal(size=(7, 3))
    own = np.sort(np.linalg.norm(states[:, None] - states, axis=2))[:, 5]
    away = np.sort(np.linalg.norm(points[:, None] - states, axis=2))[:, 4]
    coverage = Coverage(np.concatenate([states, states[:40]]))
    np.testing.assert_allclose(coverage.sparseness(points), away / np.median(own), rtol=1e-6)
    np.testing.assert_allclose(coverage.largest, own.max() / np.median(own), rtol=1e-6)


@pytest.mark.parametrize("count", [FEWEST - 1, 2 * FEWEST])
def test_nothing_is_judged_by_few_states_or_by_equal_ones(learned, count):
    few = replace(learned, reference=np.ones((count, 4), np.float32))
    assert Coverage.of(few, "commute") is None


def test_the_soft_distance_is_not_judged(learned):
    assert Coverage.of(learned, "soft") is None


def test_a_goal_outside_of_the_space_may_be_no_state(learned):
    """And no data will come there, however it is collected."""
    with pytest.warns(LapwingWarning, match="feature 1") as warned:
        RewardShaper(SPACE, learned, np.array([0.0, 40.0], np.float32), form="laplacian")
    assert len(warned) == 1
    assert "past_termination" not in str(warned[0].message)


def test_a_goal_far_beyond_the_data_may_be_no_state_where_the_space_has_no_bounds(learned):
    endless, kept = spaces.Box(-np.inf, np.inf, (2,), np.float32), [[-1.0, 1.0], [-1.0, 1.0]]
    with pytest.warns(LapwingWarning, match="feature 0"):
        RewardShaper(
            endless, replace(learned, config=learned.config | {"ranges": kept}), FAR, form="laplacian"
        )
