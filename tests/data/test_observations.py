"""What φ sees of observations: the same of one and of many, for each space that can be embedded."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from lapwing.data.observations import MOST_STATES, view_of
from lapwing.errors import ConfigError, DatasetError

BYTES = {"low": 0, "high": 255, "dtype": np.uint8}
SEEN = [
    (spaces.Discrete(5), "index", (), np.int32),
    (spaces.Discrete(5, start=-2), "index", (), np.int32),
    (spaces.MultiDiscrete([[3, 4], [5, 6]]), "vector", (4,), np.float32),
    (spaces.MultiBinary((2, 3)), "vector", (6,), np.float32),
    (spaces.Box(-1, 1, (4,), np.float64), "vector", (4,), np.float32),
    (spaces.Box(-9, 9, (4,), np.int64), "vector", (4,), np.float32),
    (spaces.Box(-1, 1, (), np.float32), "vector", (1,), np.float32),
    (spaces.Box(-1, 1, (2, 3), np.float32), "vector", (6,), np.float32),
    (spaces.Box(shape=(128,), **BYTES), "vector", (128,), np.float32),
    (spaces.Box(shape=(8, 9), **BYTES), "image", (8, 9, 1), np.uint8),
    (spaces.Box(shape=(8, 9, 3), **BYTES), "image", (8, 9, 3), np.uint8),
    (spaces.Box(shape=(3, 8, 9), **BYTES), "image", (8, 9, 3), np.uint8),
    (spaces.Box(shape=(4, 84, 84), **BYTES), "image", (84, 84, 4), np.uint8),
    (spaces.Box(shape=(1, 8, 9), **BYTES), "image", (8, 9, 1), np.uint8),
    (spaces.Box(shape=(3, 8, 4), **BYTES), "image", (3, 8, 4), np.uint8),
    (spaces.Box(0, 1, (8, 9, 3), np.float32), "image", (8, 9, 3), np.float32),
    (spaces.Box(0, 1, (3, 8, 9), np.float64), "image", (8, 9, 3), np.float32),
]


def samples(space: gymnasium.Space, count: int) -> list:
    space.seed(0)
    return [space.sample() for _ in range(count)]


@pytest.mark.parametrize(("space", "kind", "shape", "dtype"), SEEN, ids=lambda value: str(value)[:60])
class TestSeen:
    def test_kind_and_shape(self, space, kind, shape, dtype):
        view = view_of(space)
        assert (view.kind, view.shape) == (kind, shape)
        (one,) = (view.one(observation) for observation in samples(space, 1))
        assert (one.shape, one.dtype) == (shape, dtype)

    def test_one_by_one_is_what_a_batch_is(self, space, kind, shape, dtype):
        view, observations = view_of(space), samples(space, 7)
        many = view.many(np.stack(observations))
        assert (many.shape, many.dtype) == ((7, *shape), dtype)
        np.testing.assert_array_equal(many, np.stack([view.one(one) for one in observations]))

    def test_no_number_is_lost_or_changed(self, space, kind, shape, dtype):
        """Whatever the order of the axes, the same numbers are there."""
        (observation,) = samples(space, 1)
        start = getattr(space, "start", 0) if kind == "index" else 0
        before, after = np.ravel(observation) - start, np.ravel(view_of(space).one(observation))
        np.testing.assert_array_equal(np.sort(before.astype(np.float32)), np.sort(after.astype(np.float32)))

    def test_as_a_part_of_a_dict(self, space, kind, shape, dtype):
        whole = spaces.Dict({"other": spaces.Text(5), "mine": space})
        view = view_of(whole, "mine")
        (observation,) = samples(space, 1)
        assert (view.kind, view.shape, view.key) == (kind, shape, "mine")
        np.testing.assert_array_equal(
            view.one({"other": "x", "mine": observation}), view_of(space).one(observation)
        )


class TestImages:
    def test_channels_that_come_first_are_put_last(self):
        image = np.arange(3 * 8 * 9, dtype=np.uint8).reshape(3, 8, 9)
        seen = view_of(spaces.Box(shape=(3, 8, 9), **BYTES)).one(image)
        for channel in range(3):
            np.testing.assert_array_equal(seen[:, :, channel], image[channel])
        last, grey = np.arange(8 * 9 * 3, dtype=np.uint8).reshape(8, 9, 3), image[0]
        np.testing.assert_array_equal(view_of(spaces.Box(shape=(8, 9, 3), **BYTES)).one(last), last)
        np.testing.assert_array_equal(view_of(spaces.Box(shape=(8, 9), **BYTES)).one(grey)[..., 0], grey)


class TestIndices:
    @given(st.integers(-(2**62), 2**62), st.integers(1, 1_000), st.data())
    def test_they_count_from_zero_wherever_the_space_begins(self, start, n, data):
        view = view_of(spaces.Discrete(n, start=start))
        state = data.draw(st.integers(0, n - 1))
        assert view.one(np.int64(start + state)) == view.one(start + state) == state
        assert view.n_states == n

    def test_too_many_for_a_table(self):
        assert view_of(spaces.Discrete(MOST_STATES)).n_states == MOST_STATES
        with pytest.raises(ConfigError, match="10,000,001"):
            view_of(spaces.Discrete(MOST_STATES + 1))


NODES = spaces.Box(0, 1, (2,))


class TestRefused:
    @pytest.mark.parametrize(
        ("space", "key", "words"),
        [
            (spaces.Text(5), None, "Text"),
            (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3)]), None, "Tuple"),
            (spaces.Dict({"a": spaces.Sequence(NODES)}), "a", "Sequence"),
            (spaces.Box(0, 1, (8, 0, 3)), None, r"\(8, 0, 3\)"),
            (spaces.MultiDiscrete(np.zeros(0, int)), None, r"\(0,\)"),
            (spaces.Box(shape=(4, 8, 8, 3), **BYTES), None, r"\(4, 8, 8, 3\)"),
            (spaces.Dict({"pixels": NODES, "state": NODES}), None, "observation_key.* pixels, state"),
            (spaces.Dict({"pixels": NODES, "state": NODES}), "pixel", r"'pixel'.* pixels\?"),
            (NODES, "pixels", "observation_key='pixels'.* Box"),
            (spaces.Dict({"inner": spaces.Dict({"state": NODES})}), "inner", "'inner'.* Dict"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_what_cannot_be_embedded(self, space, key, words):
        with pytest.raises(ConfigError, match=words):
            view_of(space, key)

    @pytest.mark.parametrize(
        ("space", "observation"),
        [
            (NODES, np.zeros(3)),
            (NODES, np.zeros((1, 2))),
            (NODES, 0.0),
            (spaces.Discrete(3), np.zeros(1, int)),
            (spaces.Box(0, 1, (2, 3)), np.zeros(6)),
        ],
    )
    def test_an_observation_of_another_shape(self, space, observation):
        with pytest.raises(DatasetError) as caught:
            view_of(space).one(observation)
        for shape in (np.shape(observation), space.shape):
            assert f"{shape}" in str(caught.value)


def test_numbers_beyond_float32_become_infinite_without_a_warning():
    """And what learns from them refuses them, with their place."""
    view = view_of(spaces.Box(-np.inf, np.inf, (2,), np.float64))
    assert view.one(np.array([1e300, 1.0])).tolist() == [np.inf, 1.0]
