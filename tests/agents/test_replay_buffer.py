"""The replay buffer, against a list of all transitions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.agents.replay_buffer import ReplayBuffer, Stored, Transitions
from lapwing.errors import ConfigError

CONTINUES, TERMINATES, IS_CUT = range(3)


def some_transitions(ends: list[int]) -> list[tuple[Transitions, bool]]:
    """Transitions whose observations are all different, and whether each is cut off."""
    found, seen = [], 0
    for number, end in enumerate(ends):
        here, there = (np.array([value, value + 0.5], np.float32) for value in (seen, seen + 1))
        seen += 1 if end == CONTINUES else 2
        terminated = end == TERMINATES
        found.append((Transitions(here, number % 3, -float(number), there, terminated), end == IS_CUT))
    return found


def filled(ends: list[int], capacity: int | None = None) -> ReplayBuffer:
    buffer = ReplayBuffer(capacity or len(ends), (2,), np.float32)
    for transition, cut in some_transitions(ends):
        buffer.store(transition, cut=cut)
    return buffer


def check_same(found: Transitions, expected: list[Transitions]) -> None:
    """What follows a terminal state does not matter."""
    for row, transition in enumerate(expected):
        for name in ("observations", "actions", "rewards", "terminated"):
            np.testing.assert_array_equal(getattr(found, name)[row], getattr(transition, name))
        if not transition.terminated:
            np.testing.assert_array_equal(found.next_observations[row], transition.next_observations)


ENDS = st.lists(st.sampled_from([CONTINUES, CONTINUES, TERMINATES, IS_CUT]), min_size=1, max_size=40)


@given(ENDS, st.integers(0, 9))
def test_every_transition_is_there_as_it_was_stored(ends, more):
    buffer = filled(ends, len(ends) + more)
    assert len(buffer) == len(ends)
    check_same(buffer.at(np.arange(len(ends))), [each for each, _ in some_transitions(ends)])


@given(ENDS, st.integers(0, 40))
def test_another_buffer_takes_the_content_over_and_both_can_be_filled_further(ends, until):
    until = min(until, len(ends))
    first = filled(ends[:until], len(ends))
    second = ReplayBuffer(len(ends), (2,), np.float32)
    content = Stored(*(np.array(array) for array in first.content()))
    for array in content:
        array.setflags(write=False)  # as it is read from a file
    second.fill(content)
    for transition, cut in some_transitions(ends)[until:]:
        second.store(transition, cut=cut)
    check_same(second.at(np.arange(len(ends))), [each for each, _ in some_transitions(ends)])


@pytest.mark.parametrize(("shape", "dtype"), [((), np.int32), ((3,), np.float32), ((4, 5, 3), np.uint8)])
def test_content_holds_each_observation_once_and_nothing_that_is_not_filled(shape, dtype):
    buffer = ReplayBuffer(1_000, shape, dtype)
    for _ in range(10):
        seen: Any = np.ones(shape, dtype)
        buffer.store(Transitions(seen, 1, 0.0, seen, False), cut=False)
    content = buffer.content()
    assert content.observations.shape == (11, *shape)
    assert content.observations.dtype == dtype
    assert content.followed.shape == (0, *shape)
    assert {len(array) for array in content[1:5]} == {10}
    for array, empty in zip(content, buffer.empty(), strict=True):
        assert (empty.shape, empty.dtype) == ((0, *array.shape[1:]), array.dtype)


class TestSamples:
    def test_are_of_what_is_stored_and_uniform(self):
        batch = filled([CONTINUES] * 10, 100).sample(10_000, np.random.default_rng(1))
        counts = np.bincount(batch.observations[:, 0].astype(int), minlength=10)
        assert np.all(np.abs(counts - 1_000) < 5 * np.sqrt(10_000 * 0.1 * 0.9))

    def test_do_not_change_when_the_buffer_does(self):
        buffer = filled([CONTINUES, IS_CUT, CONTINUES], 10)
        batch = buffer.sample(20, np.random.default_rng(2))
        before = [array.copy() for array in batch]
        for array in buffer.content():
            array[:] = 0
        for array, copy in zip(batch, before, strict=True):
            np.testing.assert_array_equal(array, copy)

    def test_the_generator_decides(self):
        buffer = filled([CONTINUES] * 50)
        first, again, other = (buffer.sample(20, np.random.default_rng(seed)).rewards for seed in (3, 3, 4))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)


def test_more_than_there_is_memory():
    with pytest.raises(ConfigError, match="steps"):
        ReplayBuffer(2**30, (2**12, 2**12, 3), np.uint8)
