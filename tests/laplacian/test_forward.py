import copy
import dataclasses
import pickle
import threading
from typing import get_args

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from lapwing.errors import ConfigError, DatasetError
from lapwing.laplacian.encoders import EncoderSpec, same_padding
from lapwing.laplacian.forward import Forward, What, check_what, checked_dtype
from tests.support.fitted import OBSERVATIONS, REPRESENTATIONS
from tests.support.representations import (
    answer,
    assert_same,
    by_hand,
    random_observations,
    random_representation,
    specifications,
)

pytestmark = pytest.mark.numeric

WHATS = get_args(What)


@pytest.fixture(params=list(REPRESENTATIONS))
def kind(request) -> str:
    return request.param


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("what", WHATS)
def test_numpy_says_what_jax_says(kind, what, dtype):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    forward, expected = Forward(rep, what, dtype), answer(rep, batch, what)
    many, singles = forward(batch), np.stack([forward(one) for one in batch])
    for found in (many, singles):
        assert found.dtype == dtype
        assert_same(found, expected)
    assert forward.dim == expected.shape[1]
    assert forward(batch[:1]).shape == (1, forward.dim)
    assert forward(batch[:0]).shape == (0, forward.dim)


@settings(max_examples=60)
@given(specification=specifications(), seed=st.integers(0, 2**16))
def test_encoders_of_any_size_are_their_formula(specification, seed):
    spec, rng = EncoderSpec(*specification), np.random.default_rng(seed)
    rep = random_representation(spec, seed)
    seen = random_observations(spec, 4, rng)
    phi = np.stack([by_hand(rep, one) for one in seen])
    functions = phi @ rep.coefficients[1:].astype(np.float64) + rep.coefficients[0]
    commute = functions[:, 1:] * rep.filter_weights("commute")
    for what, expected in (("phi", phi), ("eigenfunctions", functions[:, 1:]), ("commute", commute)):
        for dtype, within in ((np.float32, 1e-5), (np.float64, 1e-12)):
            forward, largest = Forward(rep, what, dtype), np.abs(expected).max()
            for found in (forward(seen), np.stack([forward(one) for one in seen])):
                np.testing.assert_allclose(found, expected, rtol=0, atol=within * largest)


@pytest.mark.parametrize("name", ["conv", "bumps of images"])
def test_images_are_bytes_or_whole_numbers_or_floats(name):
    rep, images = REPRESENTATIONS[name], OBSERVATIONS[name]
    expected = Forward(rep)(images)
    assert_same(Forward(rep)(images.astype(np.int64)), expected)
    assert_same(Forward(rep)(images / 255), expected)
    assert_same(Forward(rep)(images[2] / np.float32(255)), expected[2])


@pytest.mark.parametrize("name", ["mlp", "fourier", "bumps"])
def test_no_digits_are_lost_where_observations_lie_far_from_zero(name):
    """As metres of a map grid do: folding the shift into a bias would lose most of float32."""
    rep = random_representation(EncoderSpec(name, (2,), 6, None, (16,), 8, ((2, 8, 6),)))
    far = dataclasses.replace(rep, encoder=eqx.tree_at(lambda net: net.shift, rep.encoder, np.full(2, 5e4)))
    vectors = (50_000 + np.random.default_rng(0).uniform(-1, 1, (9, 2))).astype(np.float32)
    expected = np.stack([by_hand(far, one) for one in vectors])
    assert_same(np.stack([Forward(far)(one) for one in vectors]), expected)
    assert_same(Forward(far)(vectors), expected)


def test_no_digits_are_lost_where_bumps_lie_close_together():
    """|z|² + |c|² - 2zc would leave three digits of distances of a hundredth, ten from the origin."""
    spec, rng = EncoderSpec("bumps", (2,), 6, stages=((2, 8, 6),)), np.random.default_rng(0)
    rep = random_representation(spec)
    centres, vectors = (10 + 0.01 * rng.standard_normal((count, 2)) for count in (8, 9))
    numbers = [np.asarray(array, np.float32) for array in (np.zeros(2), np.eye(2), centres, 0.01)]

    def slots(net):
        return (net.shift, net.stages[0].projection, net.stages[0].centres, net.stages[0].width)

    net = eqx.tree_at(slots, rep.encoder, numbers)
    near, vectors = dataclasses.replace(rep, encoder=net), vectors.astype(np.float32)
    expected = np.stack([by_hand(near, one) for one in vectors])
    assert_same(Forward(near)(vectors), expected)
    assert_same(np.stack([Forward(near)(one) for one in vectors]), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=40)
@given(specification=specifications(), size=st.integers(1, 40), seed=st.integers(0, 2**16))
def test_a_row_is_the_same_in_any_batch(dtype, specification, size, seed):
    """To the last bit: alone, in a batch of any size, and in any row of it."""
    spec, rng = EncoderSpec(*specification), np.random.default_rng(seed)
    forward = Forward(random_representation(spec, seed), "commute", dtype)
    seen = random_observations(spec, size, rng)
    singles = np.stack([forward(one) for one in seen])
    np.testing.assert_array_equal(forward(seen), singles)
    np.testing.assert_array_equal(forward(seen[::-1])[::-1], singles)
    np.testing.assert_array_equal(forward(seen[size // 2 :]), singles[size // 2 :])


@pytest.mark.parametrize("size", [3, 255, 256, 257, 1_000])
@pytest.mark.parametrize("name", ["fourier", "bumps"])
def test_a_row_of_a_wide_network_is_the_same_in_any_batch(name, size):
    """Where BLAS would divide the product of matrices into blocks."""
    forward = Forward(
        random_representation(EncoderSpec(name, (5,), 14, None, (128, 128), 64, ((4, 64, 20), (20, 64, 14))))
    )
    batch = np.random.default_rng(0).standard_normal((size, 5)).astype(np.float32)
    np.testing.assert_array_equal(forward(batch), np.stack([forward(one) for one in batch]))


def test_lists_numbers_and_jax_arrays_are_taken():
    rep = REPRESENTATIONS["fourier"]
    expected = rep.phi(np.array([0.5, -0.5], np.float32))
    for given_ in ([0.5, -0.5], (0.5, -0.5), np.array([0.5, -0.5]), jnp.array([0.5, -0.5])):
        found = Forward(rep)(given_)
        assert type(found) is np.ndarray
        assert_same(found, expected)
    assert_same(Forward(rep)([[0, 1], [1, 0]]), rep.phi(np.array([[0, 1], [1, 0]])))
    row = np.asarray(REPRESENTATIONS["linear"].encoder.weight)[4]
    for index in (4, np.int64(4), np.uint8(4), np.array(4), jnp.array(4)):
        np.testing.assert_array_equal(Forward(REPRESENTATIONS["linear"])(index), row)


def test_the_answer_is_the_callers_to_change(kind):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    for what in WHATS:
        forward, seen = Forward(rep, what), batch.copy()
        first, many = forward(seen[1]), forward(seen)
        kept, kept_many = first.copy(), many.copy()
        first += 1
        many += 1
        np.testing.assert_array_equal(forward(seen[1]), kept)
        np.testing.assert_array_equal(forward(seen), kept_many)
        np.testing.assert_array_equal(seen, batch)


def test_it_can_be_copied_and_sent_elsewhere(kind):
    forward, batch = Forward(REPRESENTATIONS[kind], "heat"), OBSERVATIONS[kind]
    for other in (copy.copy(forward), copy.deepcopy(forward), pickle.loads(pickle.dumps(forward))):
        np.testing.assert_array_equal(other(batch), forward(batch))
        np.testing.assert_array_equal(other(batch[3]), forward(batch[3]))
    assert b"jax" not in pickle.dumps(forward)


def test_threads_can_share_it():
    forward, batch = Forward(REPRESENTATIONS["fourier"]), OBSERVATIONS["fourier"]
    expected, wrong = [forward(one) for one in batch], []

    def call(place: int) -> None:
        for _ in range(300):
            if not np.array_equal(forward(batch[place]), expected[place]):
                wrong.append(place)

    threads = [threading.Thread(target=call, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_rotation_no_column_is_the_constant_and_all_are_there():
    whole, batch = REPRESENTATIONS["mlp"], OBSERVATIONS["mlp"]
    rep = dataclasses.replace(whole, config={"settings": {"rotate": False}})
    assert_same(Forward(rep, "eigenfunctions")(batch), rep.eigenfunctions(batch))
    with pytest.raises(ConfigError, match="'unit'"):
        Forward(rep, "unit")


def test_it_says_what_it_is():
    assert repr(Forward(REPRESENTATIONS["fourier"], "unit")) == (
        "Forward(unit: 3 numbers of observations of shape (2,))"
    )


def words(call, *args) -> str:
    with pytest.raises((ConfigError, DatasetError)) as caught:
        call(*args)
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        *(("fourier", wrong) for wrong in (np.zeros(3), np.zeros((2, 2, 2)), np.zeros(()), 3)),
        *(("linear", wrong) for wrong in (-1, np.array([0, 9]), 1.0, True, np.zeros((3, 2), int))),
        *(
            ("conv", wrong)
            for wrong in (np.zeros((5, 5, 3)), np.full((5, 6, 3), 256), np.full((5, 6, 3), np.nan))
        ),
    ],
)
def test_what_is_wrong_is_said_as_the_representation_says_it(kind, wrong):
    rep = REPRESENTATIONS[kind]
    assert words(Forward(rep), wrong) == words(rep.phi, wrong)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["fourier", "mlp", "bumps"])
def test_nan_and_infinity_are_refused(kind, bad):
    rep, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind].copy()
    for place in range(batch.shape[1]):
        one = batch[3].copy()
        one[place] = bad
        assert words(Forward(rep), one) == words(rep.phi, one)
    batch[3, 1] = bad
    assert words(Forward(rep), batch) == words(rep.phi, batch)


def test_large_numbers_are_not_taken_for_infinity():
    assert np.isfinite(Forward(REPRESENTATIONS["mlp"])(np.full(5, 1e30))).all()


@pytest.mark.parametrize("what", ["commute", "biharmonic"])
def test_what_is_not_trusted_is_zero_unless_it_is_asked_for(kind, what):
    whole, batch = REPRESENTATIONS[kind], OBSERVATIONS[kind]
    rep = dataclasses.replace(whole, config=whole.config | {"trusted": [0, 1, 3]})
    found = Forward(rep, what)(batch)
    assert not found[:, 1].any()
    assert_same(found, rep.embed(batch, what))
    assert_same(Forward(rep, what, trusted_only=False)(batch), whole.embed(batch, what))
    assert_same(Forward(rep, "eigenfunctions")(batch), whole.eigenfunctions(batch)[:, 1:])


def test_what_is_unknown_is_refused():
    with pytest.raises(ConfigError, match=r"'comute'.* commute\?"):
        check_what("comute")
    with pytest.raises(ConfigError, match="'hitting'"):
        check_what("hitting")
    for dtype in (np.float16, np.int32, np.complex64):
        with pytest.raises(ConfigError, match=f"dtype.* {np.dtype(dtype)}"):
            checked_dtype(dtype)


def test_the_constant_alone_is_refused():
    whole = REPRESENTATIONS["mlp"]
    rep = dataclasses.replace(
        whole,
        eigenvalues=whole.eigenvalues[:1],
        coefficients=whole.coefficients[:, :1],
        reference=whole.reference[:, :1],
    )
    with pytest.raises(ConfigError, match=r"dim .* 1"):
        Forward(rep, "eigenfunctions")
    assert Forward(rep, "phi").dim == 6


@given(size=st.integers(1, 50), stride=st.integers(1, 4))
def test_padding_is_that_of_jax(size, stride):
    outputs, before, after = same_padding(size, 4, stride)
    assert [(before, after)] == list(jax.lax.padtype_to_pads((size,), (4,), (stride,), "SAME"))
    assert outputs == -(-size // stride)
