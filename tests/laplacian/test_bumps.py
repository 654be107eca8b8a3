"""Bumps against their formula with SciPy's distances; the contract of encoders is in test_encoders."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lapwing.laplacian.bumps import Bumps, Stage
from lapwing.laplacian.encoders import embed

pytestmark = pytest.mark.numeric

SIZES = ((3, 11, 4), (2, 7, 5))


def filled(tree, seed: int = 0):
    """The same with random numbers in place of zeros."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.uniform(0.2, 1, leaf.shape), leaf.dtype), tree)


def in_float64(stage: Stage, x: np.ndarray) -> np.ndarray:
    numbers = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), stage)
    z = x @ numbers.projection
    bumps = np.exp(-cdist(z, numbers.centres, "sqeuclidean") / (2 * numbers.width**2))
    return np.hstack([z, bumps]) @ numbers.layer.weight.T + numbers.layer.bias


def of_all(bumps: Bumps, observations) -> np.ndarray:
    return np.asarray(jax.vmap(embed, in_axes=(None, 0))(bumps, jnp.asarray(observations)))


def test_stages_follow_each_other():
    bumps = filled(Bumps(np.zeros(6, np.float32), SIZES, key=jax.random.key(0)))
    seen = np.random.default_rng(1).standard_normal((20, 6)).astype(np.float32)
    expected = seen - np.asarray(bumps.shift, np.float64)
    for stage in bumps.stages:
        expected = in_float64(stage, expected)
    np.testing.assert_allclose(of_all(bumps, seen), expected, atol=1e-5 * np.abs(expected).max())


def test_a_bump_is_one_at_its_centre_and_falls_with_the_width():
    stage = filled(Stage(2, (2, 5, 3), key=jax.random.key(0)))
    stage = eqx.tree_at(lambda one: one.projection, stage, jnp.eye(2))
    for number, centre in enumerate(stage.centres):
        assert stage.features(centre)[2 + number] == 1
        beside = stage.features(centre + jnp.array([0.0, stage.width]))[2 + number]
        assert beside == pytest.approx(np.exp(-0.5), rel=1e-5)


def test_bytes_of_images_become_numbers_below_one_and_vectors_stay():
    for shape, unit in (((2, 3, 1), 255), ((6,), 1)):
        bumps = filled(Bumps(np.zeros(shape, np.float32), SIZES, key=jax.random.key(0)))
        whole = np.random.default_rng(1).integers(0, 256, (4, *shape), dtype=np.uint8)
        expected = of_all(bumps, (whole / unit).astype(np.float32))
        np.testing.assert_allclose(of_all(bumps, whole), expected, rtol=1e-5)
