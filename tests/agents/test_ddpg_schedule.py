"""The time of a training in an arena, against bodies whose steps are counted one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.agents import ddpg
from lapwing.agents.ddpg import Schedule, empty_replay
from lapwing.errors import ConfigError
from lapwing.settings.agents import ResolvedControl
from tests.support.training import counted, episodes


def rounds_of(envs: int, random: int, agents: int, every: int = 1) -> Schedule:
    """With so many rounds of random actions, of the agent's, and between evaluations."""
    return Schedule(
        ResolvedControl(
            envs=envs, random_steps=random * envs, steps=agents * envs, evaluate_every=every * envs
        )
    )


def test_how_many_rounds_there_are():
    rounds = rounds_of(4, 10, 20)
    assert (rounds.random, rounds.all) == (10, 30)


@pytest.mark.parametrize(
    ("agents", "every", "expected"),
    [(20, 5, [20, 40, 60, 80]), (20, 8, [32, 64, 80]), (20, 30, [80]), (20, 20, [80]), (3, 1, [4, 8, 12])],
)
def test_evaluations_come_at_regular_times_and_at_the_end(agents, every, expected):
    assert rounds_of(4, 10, agents, every).evaluations.tolist() == expected


@given(st.integers(1, 20), st.integers(1, 60), st.integers(1, 70))
def test_every_evaluation_comes_after_a_whole_round_and_none_twice(envs, agents, every):
    at = rounds_of(envs, 1, agents, every).evaluations
    assert at[-1] == agents * envs
    assert (np.diff(at) > 0).all()
    assert (at % envs == 0).all()
    assert set(at.tolist()) == {k * every * envs for k in range(1, agents // every + 1)} | {agents * envs}


class TestEpisodes:
    @given(st.integers(1, 12), st.integers(1, 9), st.integers(1, 40))
    def test_bodies_are_as_far_as_counting_says(self, length, envs, all_rounds):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ddpg, "EPISODE_LENGTH", length)
            rounds = rounds_of(envs, 1, all_rounds)
            found = rounds.elapsed(np.arange(rounds.all)[:, None], np.arange(envs))
        np.testing.assert_array_equal(found.T, counted(length, envs, all_rounds + 1))

    @given(st.integers(1, 12), st.integers(1, 9), st.integers(1, 40))
    def test_their_lengths_are_those_counted_and_add_up_to_all_observations(self, length, envs, all_rounds):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ddpg, "EPISODE_LENGTH", length)
            found = rounds_of(envs, 1, all_rounds).episode_lengths()
        bodies = counted(length, envs, all_rounds + 1)
        assert found.tolist() == [steps for times in bodies for steps in episodes(times)]
        assert found.sum() == (all_rounds + 1) * envs
        assert found.max() <= length


def test_the_replay_has_room_for_every_step_of_every_body():
    replay = empty_replay(rounds_of(4, 10, 20), n_observations=6, n_actions=2)
    assert [array.shape for array in replay] == [(30, 4, 6), (30, 4, 2), (30, 4), (30, 4, 6)]
    assert {array.dtype for array in replay} == {np.dtype(np.float32)}


def test_a_replay_for_which_there_is_no_memory():
    with pytest.raises(ConfigError, match="steps"):
        empty_replay(rounds_of(2**4, 2**25, 2**25), n_observations=2**12, n_actions=2)
