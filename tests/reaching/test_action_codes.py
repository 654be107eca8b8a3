import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lapwing.errors import ConfigError
from lapwing.reaching.action_codes import ActionCodes

NUMBERS = st.floats(-10, 10, width=32)


@given(arrays.arrays(np.float32, st.tuples(st.integers(2, 8), st.integers(1, 3)), elements=NUMBERS))
def test_vectors_come_back(actions):
    codes = ActionCodes.of(actions)
    np.testing.assert_allclose(codes.decode(codes.encode(actions)), actions, atol=1e-4)


@given(arrays.arrays(np.int32, st.integers(1, 8), elements=st.integers(-3, 3)))
def test_choices_come_back(actions):
    codes = ActionCodes.of(actions)
    np.testing.assert_array_equal(codes.decode(codes.encode(actions)), actions)


def test_no_action_is_beyond_those_of_the_data():
    codes = ActionCodes.of(np.array([[-1.0], [3.0]], np.float32))
    np.testing.assert_allclose(codes.decode(np.array([[-9.0], [9.0]])), [[-1.0], [3.0]])


def test_noise_draws_other_choices_as_often_as_it_says():
    codes = ActionCodes.of(np.arange(4))
    outputs = np.tile([[9.0, 0.0, 0.0, 0.0]], (4_000, 1))
    drawn = codes.decode(codes.disturb(outputs, 0.4, np.random.default_rng(0)))
    assert 0.25 < np.mean(drawn != 0) < 0.35
    np.testing.assert_array_equal(codes.disturb(outputs, 0.0, np.random.default_rng(0)), outputs)


@pytest.mark.parametrize(
    ("actions", "space"),
    [
        (np.arange(4), spaces.Discrete(3)),
        (np.arange(4), spaces.Box(-1, 1, (4,))),
        (np.zeros((2, 3), np.float32), spaces.Box(-1, 1, (2,))),
        (np.zeros((2, 3), np.float32), spaces.Discrete(3)),
    ],
)
def test_an_environment_with_other_actions_is_refused(actions, space):
    with pytest.raises(ConfigError, match="environment"):
        ActionCodes.of(actions).check_space(space)


def test_an_environment_with_these_actions_is_not():
    ActionCodes.of(np.arange(4)).check_space(spaces.Discrete(4))
    ActionCodes.of(np.zeros((2, 3), np.float32)).check_space(spaces.Box(-1, 1, (3,)))
