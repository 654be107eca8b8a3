"""The literal `lap` loss of zero-shot RL."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError
from lapwing.laplacian.lap_baseline import lap_features, lap_loss, lap_phi, scaled
from lapwing.laplacian.target import Target, open_target
from lapwing.settings.learn import LearnSettings


def by_hand(u: np.ndarray, v: np.ndarray) -> float:
    """The loss as it is written down, one pair after another."""
    batch, d = u.shape
    drawing = np.mean([(u[i, k] - v[i, k]) ** 2 for i in range(batch) for k in range(d)])
    diagonal = np.mean([u[i] @ u[i] for i in range(batch)])
    others = np.mean([(u[i] @ u[j]) ** 2 for i in range(batch) for j in range(batch) if i != j])
    return drawing - 2 * diagonal + others


@settings(max_examples=10)
@given(st.integers(0, 1_000))
def test_the_loss_is_its_formula(seed):
    u, v = np.random.default_rng(seed).normal(size=(2, 5, 3))
    assert float(lap_loss(jnp.asarray(u), jnp.asarray(v))) == pytest.approx(by_hand(u, v), rel=1e-4, abs=1e-4)


def test_scaled_to_the_root_of_d():
    phi = np.random.default_rng(0).normal(size=(4, 9))
    found = np.asarray(scaled(jnp.asarray(phi)))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 3, rtol=1e-5)
    np.testing.assert_allclose(
        found / phi, (3 / np.linalg.norm(phi, axis=1))[:, None] * np.ones(9), rtol=1e-5
    )


@pytest.fixture(scope="module")
def ring() -> Target:
    """A walk around eight states."""
    steps = np.random.default_rng(0).choice([-1, 1], (200, 20))
    walks = np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1) % 8
    experience = Experience(walks.reshape(-1), [21] * 200, np.arange(8, dtype=np.int32))
    return Target("ring", experience, states=np.arange(8, dtype=np.int32))


def test_on_a_ring_three_functions_are_the_constant_and_the_first_waves(ring):
    """(1, √2 cos, √2 sin) has ‖φ‖ = √3 everywhere and is isotropic, and nothing isotropic is smoother."""
    phi = lap_features(ring, 3, steps=1_500, batch=64, learning_rate=0.01)
    np.testing.assert_allclose(np.linalg.norm(phi, axis=1), np.sqrt(3), rtol=1e-5)
    angle = np.pi * np.arange(8) / 4
    known = np.stack([np.full(8, 0.5**0.5), np.cos(angle), np.sin(angle)], axis=1) / 2
    basis = np.linalg.qr(phi)[0]
    assert np.mean(np.sum((basis.T @ known) ** 2, axis=0)) > 0.95


def test_vectors_that_are_not_enumerated_have_a_network():
    """Of a walk along an interval; the end that is far is farther in φ than a neighbour."""
    moves = np.random.default_rng(0).uniform(-0.2, 0.2, (100, 50, 1))
    walks = np.clip(np.cumsum(moves, axis=1), -1, 1).astype(np.float32)
    target = Target("interval", Experience(walks.reshape(-1, 1), [50] * 100))
    phi = lap_phi(target, 3, steps=200, batch=64)
    ends = phi(np.array([[-0.9], [-0.8], [0.9]], np.float32))
    np.testing.assert_allclose(np.linalg.norm(ends, axis=1), np.sqrt(3), rtol=1e-4)
    assert np.linalg.norm(ends[1] - ends[0]) < np.linalg.norm(ends[2] - ends[0])


def test_the_seed_decides(ring):
    first, again, other = (lap_features(ring, 2, steps=20, batch=16, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01


def test_there_must_be_transitions():
    target = open_target("FourRoom", LearnSettings(true_chain=True))
    with pytest.raises(ConfigError, match="FourRoom"):
        lap_features(target, 4)
