"""Coordinates: φ where it tells states apart, features where it does not."""

import dataclasses

import numpy as np
import pytest

from lapwing.data.experience import Experience
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.reaching.geometry import Places
from tests.support.representations import random_representation


def flat_beyond(rows: np.ndarray) -> np.ndarray:
    """A φ that ends at x = 1, as the slowest functions do in a dead end."""
    return np.minimum(rows[:, :1], 1.0).astype(np.float32)


@pytest.fixture
def walks():
    rng = np.random.default_rng(0)
    seen = np.cumsum(rng.normal(0, 0.1, (20, 60, 2)), axis=1).astype(np.float32)
    return Experience(seen.reshape(-1, 2), [60] * 20)


def test_where_phi_is_flat_the_features_tell_what_is_near(walks):
    places = Places.of(walks, flat_beyond, "phi")
    coordinates = places(np.array([[2.0, 0.0], [2.5, 0.0], [6.0, 0.0]], np.float32))[0]
    apart = np.linalg.norm(coordinates - coordinates[0], axis=1)
    assert 0 < apart[1] < apart[2]


def test_features_count_half_of_what_phi_does_over_a_few_steps(walks):
    places = Places.of(walks, lambda rows: rows, "phi")
    coordinates, features = places(walks.observations)
    later = walks.horizons >= 10
    moved = [
        np.sqrt(np.mean(np.sum((one[np.flatnonzero(later) + 10] - one[later]) ** 2, axis=1)))
        for one in (coordinates[:, :2], coordinates[:, 2:])
    ]
    assert moved[1] == pytest.approx(moved[0] / 2, rel=1e-4)
    np.testing.assert_allclose(coordinates[:, 2:], places.local * features, rtol=1e-5)


def test_the_observation_alone_is_taken_as_it_is(walks):
    coordinates, features = Places.of(walks, None, "observation")(walks.observations)
    np.testing.assert_array_equal(coordinates, features)


@pytest.mark.parametrize(("second", "weighs"), [(1e-9, 1e-9), (0.02, 0.02), (0.0, None)])
def test_a_function_that_tells_parts_apart_does_not_outweigh_the_others(second, weighs):
    phi = random_representation(EncoderSpec("mlp", (2,), 4, None, (8,)))
    phi = dataclasses.replace(phi, eigenvalues=np.array([0.0, second, 0.03, 0.05]), config={})
    seen = np.random.default_rng(0).normal(size=(9, 2)).astype(np.float32)
    found = Places((2,), phi, np.zeros(2), np.ones(2)).coordinates(seen)
    assert np.isfinite(found).all()
    if weighs is None:
        return
    as_they_are = phi.embed(seen, "commute")
    expected = np.sqrt(weighs / max(weighs, 0.3 * 0.03))
    np.testing.assert_allclose(found[:, 0], expected * as_they_are[:, 0], rtol=1e-4)
    np.testing.assert_allclose(found[:, 1:], as_they_are[:, 1:], rtol=1e-5)
