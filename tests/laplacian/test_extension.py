import dataclasses

import numpy as np
import pytest
from scipy import sparse

from lapwing.laplacian import extension as module
from lapwing.laplacian.chain import graph_chain
from lapwing.laplacian.extension import Extension, extended_encoder, extended_ritz, extension_of, kept_scale
from lapwing.laplacian.representation import embed_batch
from lapwing.laplacian.target import Target

pytestmark = pytest.mark.numeric
COUNT = 400


def path_weights(count: int) -> sparse.csr_array:
    """States in a row."""
    step = sparse.diags_array(np.ones(count - 1), offsets=1, shape=(count, count))
    return sparse.csr_array(step + step.T)


def spiral(along: np.ndarray) -> np.ndarray:
    """Points of a plane, as they lie along a spiral; each arm is nearer to the next than to its own end."""
    angle = 3 + 9 * along
    return np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1)


def cosines(along: np.ndarray, count: int = 4) -> np.ndarray:
    """The eigenfunctions of a path of many steps, without the constant."""
    return np.sqrt(2) * np.cos(np.pi * np.outer(along, np.arange(1, count + 1)))


def on_spiral(count: int = COUNT, noise: int = 0, seed: int = 0) -> Extension:
    along = (np.arange(count) + 0.5) / count
    others = np.random.default_rng(seed).standard_normal((count, noise))
    states = np.hstack([spiral(along), others]).astype(np.float32)
    return Extension(states, graph_chain(path_weights(count)), cosines(along), seed)


def r_squared(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return 1 - np.sum((found - expected) ** 2, axis=0) / np.sum(
        (expected - expected.mean(axis=0)) ** 2, axis=0
    )


@pytest.mark.parametrize("count", [60, COUNT, 2_000])
def test_functions_are_extended_to_points_between_the_states(count):
    extension = on_spiral(count)
    combined = extension.fit(*extension.choose()[0].choice)
    between = np.linspace(0.01, 0.99, 333)
    found = combined(extension.reduction(spiral(between)))
    assert (r_squared(found, cosines(between)) > 0.999).all()
    assert (r_squared(combined(extension.vectors), extension.functions) > 0.999).all()


def test_features_that_say_nothing_are_passed_over():
    extension = on_spiral(1_000, noise=6)
    combined = extension.fit(*extension.choose()[0].choice)
    between = np.linspace(0.01, 0.99, 333)
    others = np.random.default_rng(1).standard_normal((333, 6))
    found = combined(extension.reduction(np.hstack([spiral(between), others])))
    assert (r_squared(found, cosines(between)) > 0.97).all()


def test_the_score_is_the_error_at_states_left_out():
    extension = on_spiral()
    chance = dataclasses.replace(extension, functions=np.random.default_rng(0).standard_normal((COUNT, 3)))
    scores = [trial.score for trial in chance.choose()]
    assert scores == sorted(scores)
    assert scores[0] > 0.9, "what is chance cannot be foretold where it was not seen"
    assert extension.choose()[0].score < 1e-3


def test_no_state_is_both_fitted_to_and_left_out(monkeypatch):
    monkeypatch.setattr(module, "SOME_STATES", 100)
    fitted, left_out = on_spiral().parts
    assert (len(fitted), len(left_out)) == (80, 20)
    assert not set(fitted) & set(left_out)


def test_few_states_have_few_principal_components():
    rng = np.random.default_rng(0)
    states = rng.standard_normal((100, 30)).astype(np.float32)
    extension = Extension(states, graph_chain(path_weights(100)), cosines(np.arange(100) / 100), 0)
    assert extension.vectors.shape == (100, 5)


@pytest.mark.parametrize("count", [3, 4, 7])
def test_a_handful_of_states_is_enough(count):
    extension = on_spiral(count)
    combined = extension.fit(*extension.choose()[0].choice)
    assert np.isfinite(combined(extension.vectors)).all()


def test_the_encoder_holds_the_constant_and_the_functions_times_their_scale():
    target = Target("spiral", None, states=on_spiral().states, graph=path_weights(COUNT))
    values, functions = target.eigenpairs(4)
    scale = kept_scale(values, lam=0.9, beta=1.0, delta=1.0)
    extension = extension_of(target, 4, seed=0)
    encoder, spec = extended_encoder(extension, extension.choose()[0].choice, scale)
    assert target.states is not None
    phi = np.asarray(embed_batch(encoder, target.states), np.float64)
    assert spec.dim == 4
    np.testing.assert_allclose(phi[:, 0], scale[0], rtol=1e-5)
    ritz = extended_ritz(values, scale, 3)
    found = ritz.coefficients[0] + phi @ ritz.coefficients[1:]
    np.testing.assert_allclose(found, functions[:, :3], atol=0.05)
    np.testing.assert_array_equal(ritz.eigenvalues, values[:3])


def test_no_function_is_lost_however_large_its_eigenvalue():
    scale = kept_scale(np.array([0.0, 1.0, 2.0]), lam=0.0, beta=1.0, delta=1.0)
    np.testing.assert_allclose(scale[:2], [1, np.sqrt(0.5)])
    assert 0 < scale[2] < 0.01
