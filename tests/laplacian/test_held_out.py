"""What episodes that were not learned from say, against closed forms and SciPy on counts."""

import dataclasses
from functools import partial

import equinox as eqx
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.data.experience import Experience
from lapwing.errors import DatasetError
from lapwing.integrations.online_learner import OnlineLearner
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.held_out import AGREEMENT, NEARLY_SAME, agreements, held_out_measures
from lapwing.laplacian.representation import Representation, embed_batch
from lapwing.laplacian.ritz import Ritz, moments_of_experience, rayleigh_ritz
from tests.support.representations import random_representation

# Agreement of two sets of functions


def functions(columns: np.ndarray, eigenvalues) -> Ritz:
    return Ritz(np.asarray(eigenvalues, float), columns, len(columns))


def turned(first: int, second: int, angle: float, size: int = 5) -> np.ndarray:
    """The rotation by an angle in the plane of two axes."""
    matrix = np.eye(size)
    matrix[first, first] = matrix[second, second] = np.cos(angle)
    matrix[second, first] = np.sin(angle)
    matrix[first, second] = -np.sin(angle)
    return matrix


def orthonormal_under(second: np.ndarray) -> np.ndarray:
    """Columns w with wᵀ B w = 1."""
    return np.linalg.inv(np.linalg.cholesky(second)).T


@st.composite
def moments(draw) -> np.ndarray:
    """Some B."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    half = rng.standard_normal((8, 5))
    return half.T @ half / 8 + 0.1 * np.eye(5)


@given(moments(), st.floats(0, np.pi / 2), st.integers(1, 3), st.integers(0, 2**16))
def test_a_rotation_between_two_eigenspaces_costs_its_cosine(second, angle, first, seed):
    """Whatever B is, and whatever the length and the sign of functions."""
    apart = [0.0, 0.1, 0.2, 0.4, 0.8]
    columns = orthonormal_under(second)
    scales = np.random.default_rng(seed).uniform(0.5, 2, 5) * np.array([1, -1, 1, -1, 1])
    one = functions(columns * scales, apart)
    other = functions(columns @ turned(first, first + 1, angle), apart)
    expected = np.ones(5)
    expected[[first, first + 1]] = np.cos(angle)
    np.testing.assert_allclose(agreements(one, other, second), expected, atol=1e-9)
    np.testing.assert_allclose(agreements(other, one, second), expected, atol=1e-9)


@given(moments(), st.floats(0, np.pi / 2), st.floats(0, 0.99 * NEARLY_SAME))
def test_a_repeated_eigenvalue_is_one_eigenspace(second, angle, difference):
    """Any basis of it is as good as another, also where the two eigenvalues differ a little."""
    columns = orthonormal_under(second)
    eigenvalues = [0.0, 0.1, 0.3 * (1 - difference), 0.3, 0.8]
    one = functions(columns, eigenvalues)
    other = functions(columns @ turned(2, 3, angle), eigenvalues)
    np.testing.assert_allclose(agreements(one, other, second), 1, atol=1e-9)


def test_functions_that_change_places_agree_only_within_an_eigenspace():
    swapped = np.eye(3)[:, [0, 2, 1]]
    for eigenvalues, expected in (([0, 0.1, 0.2], [1, 0, 0]), ([0, 0.1, 0.105], [1, 1, 1])):
        one, other = functions(np.eye(3), eigenvalues), functions(swapped, eigenvalues)
        np.testing.assert_allclose(agreements(one, other, np.eye(3)), expected, atol=1e-12)


def test_a_function_that_vanishes_agrees_with_nothing():
    gone = np.eye(3)
    gone[2, 2] = 0
    found = agreements(functions(gone, [0, 0.1, 0.2]), functions(np.eye(3), [0, 0.1, 0.2]), np.eye(3))
    np.testing.assert_allclose(found, [1, 1, 0], atol=1e-12)


def test_walks_that_never_meet_share_the_eigenvalue_0():
    """Any combination of the constants of the two parts is an eigenfunction, and 0 comes with rounding."""
    mixed = turned(0, 1, 0.7, 3)
    one, other = functions(np.eye(3), [0, 3e-9, 0.2]), functions(mixed, [1e-13, 2e-10, 0.2])
    np.testing.assert_allclose(agreements(one, other, np.eye(3)), 1)


def test_fewer_functions_on_one_side():
    whole, part = functions(np.eye(3), [0, 0.1, 0.2]), functions(np.eye(3)[:, :2], [0, 0.1])
    np.testing.assert_allclose(agreements(part, whole, np.eye(3)), [1, 1, 0])
    np.testing.assert_allclose(agreements(whole, part, np.eye(3)), [1, 1])


N, DIM = 8, 4
PATH = np.array([[max(state - 1, 0), min(state + 1, N - 1)] for state in range(N)])
FLAT = random_representation(EncoderSpec("linear", (), N, N))
ONE_HOT: Representation = dataclasses.replace(
    FLAT, encoder=eqx.tree_at(lambda net: net.weight, FLAT.encoder, np.eye(N, dtype=np.float32))
)
"""φ separates every state, so Rayleigh-Ritz over it is the whole eigenproblem."""


def fitted(rep: Representation, experience: Experience, dim: int = DIM) -> Representation:
    """The same φ with the eigenfunctions of this experience."""
    ritz = rayleigh_ritz(*moments_of_experience(experience, partial(embed_batch, rep.encoder)), dim)
    coefficients = ritz.coefficients.astype(np.float32)
    return dataclasses.replace(rep, eigenvalues=ritz.eigenvalues, coefficients=coefficients)


def measured(rep: Representation, learned_from: Experience, held_out: Experience, dim: int = DIM) -> dict:
    """What held-out episodes say of eigenfunctions that were fitted on the others."""
    return held_out_measures(fitted(rep, learned_from, dim), learned_from, held_out)


def walks(lengths: list[int], seed: int) -> Experience:
    """Walks along the path, of so many observations."""
    rng, episodes = np.random.default_rng(seed), []
    for length in lengths:
        states = [rng.integers(N)]
        for _ in range(length - 1):
            states.append(PATH[states[-1], rng.integers(2)])
        episodes.append(np.array(states))
    return Experience(np.concatenate(episodes), lengths, np.arange(N))


def counted(experience: Experience) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, eigenfunctions and ρ of the walked chain, made reversible."""
    counts = np.zeros((N, N))
    begin = 0
    for length in experience.lengths:
        states = experience.observations[begin : begin + length]
        np.add.at(counts, (states[:-1], states[1:]), 1.0)
        begin += length
    joint = (counts + counts.T) / 2 / counts.sum()
    rho = joint.sum(axis=1)
    values, vectors = scipy.linalg.eigh(np.diag(rho) - joint, np.diag(rho))
    return values[:DIM], vectors[:, :DIM], rho


@pytest.mark.parametrize("lengths", [[40] * 20, [30, 200, 25, 60, 150, 10, 2, 90, 33], [500], [300, 7]])
def test_every_number_by_counting(lengths):
    """Also where the two halves are of different size, and where one episode is cut in two."""
    learned_from, held_out = walks([50] * 40, seed=0), walks(lengths, seed=1)
    found = measured(ONE_HOT, learned_from, held_out)
    seen_values, saved, _ = counted(learned_from)
    _, other, rho = counted(joined(held_out))
    np.testing.assert_allclose(
        found["eigenvalues"], quotients_by_counting(saved, joined(held_out)), atol=1e-5
    )
    np.testing.assert_allclose(found["eigenvalues_learned"], seen_values, atol=1e-5)
    halves = [quotients_by_counting(saved, half) for half in held_out.split(0.5)]
    np.testing.assert_allclose(found["spread"], np.abs(halves[0] - halves[1]) / 2, atol=1e-5)
    error = np.linalg.norm(saved.T @ (rho[:, None] * saved) - np.eye(DIM)) / np.sqrt(DIM)
    assert found["orthonormality_error"] == pytest.approx(error, rel=1e-4)
    sizes = np.sqrt(np.sum(rho[:, None] * saved**2, axis=0))
    cosines = np.abs(np.sum(rho[:, None] * saved * other, axis=0)) / sizes
    np.testing.assert_allclose(found["agreement"], cosines, atol=1e-5)
    assert found["trusted"] == next((i for i, c in enumerate(cosines) if c < AGREEMENT), DIM)
    assert found["transitions"] == sum(lengths) - len(lengths)


def quotients_by_counting(functions: np.ndarray, experience: Experience) -> np.ndarray:
    """Half the mean squared change of each function in a step, over its mean square at both ends."""
    inside = np.setdiff1d(np.arange(len(experience.observations)), experience.ends)
    u, v = (functions[experience.observations[at]] for at in (inside, inside + 1))
    return np.mean((u - v) ** 2, axis=0) / np.mean(u**2 + v**2, axis=0)


def joined(experience: Experience) -> Experience:
    """What both halves hold together: a cut loses the transition across it."""
    first, second = experience.split(0.5)
    lengths = [*first.lengths, *second.lengths]
    return Experience(np.concatenate([first.observations, second.observations]), lengths, np.arange(N))


def test_functions_are_trusted_from_the_first_on():
    """Where the second does not come out again, no later one counts."""
    learned_from = walks([50] * 40, seed=0)
    mirrored = Experience(PERMUTED[learned_from.observations], learned_from.lengths, np.arange(N))
    found = measured(ONE_HOT, learned_from, mirrored)
    assert found["agreement"][0] == pytest.approx(1)
    assert found["agreement"][1] < AGREEMENT
    assert found["trusted"] == 1
    assert measured(ONE_HOT, learned_from, learned_from)["trusted"] == DIM


PERMUTED = np.array([0, 4, 1, 5, 2, 6, 3, 7])
"""Another path through the same states."""


def test_orthonormality_comes_with_data():
    errors = [
        np.mean(
            [
                measured(ONE_HOT, walks([50] * count, 0), walks([50] * 800, seed))["orthonormality_error"]
                for seed in range(1, 6)
            ]
        )
        for count in (8, 80, 800)
    ]
    assert errors[0] > 2 * errors[1]
    assert errors[1] > 1.4 * errors[2]


@pytest.mark.parametrize("lengths", [[2], [3]])
def test_too_little_to_be_halved(lengths):
    with pytest.raises(DatasetError) as caught:
        measured(ONE_HOT, walks([50] * 8, 0), walks(lengths, 1))
    assert f"{lengths[0]} held-out observations" in str(caught.value)


@pytest.mark.parametrize("lengths", [[4], [2, 2], [2, 3], [3, 2], [2] * 5])
def test_the_least_that_can_be_halved(lengths):
    found = measured(ONE_HOT, walks([50] * 8, 0), walks(lengths, 1))
    assert np.isfinite(found["eigenvalues"]).all()
    assert found["trusted"] <= DIM


def test_the_saved_coefficients_are_what_is_measured():
    """Not what Rayleigh-Ritz would make of φ: saved functions that are no eigenfunctions are reported."""
    learned_from, held_out = walks([50] * 40, seed=0), walks([50] * 40, seed=1)
    right = fitted(ONE_HOT, learned_from)
    wrong = dataclasses.replace(right, coefficients=2 * right.coefficients[:, [0, 3, 2, 1]])
    found, expected = (held_out_measures(rep, learned_from, held_out) for rep in (wrong, right))
    assert (found["trusted"], expected["trusted"]) == (1, DIM)
    for name in ("eigenvalues", "eigenvalues_learned"):
        np.testing.assert_allclose(found[name], np.array(expected[name])[[0, 3, 2, 1]], rtol=1e-5, atol=1e-7)
    assert found["orthonormality_error"] > 2 > expected["orthonormality_error"]


@pytest.mark.parametrize(("config", "said"), [({"fitted_on_held_out": False}, False), ({}, True)])
def test_it_says_whether_coefficients_were_fitted_on_held_out_episodes(config, said):
    """Those of a file that does not say, as earlier versions wrote it, may have been."""
    episodes = walks([50] * 8, seed=0)
    rep = dataclasses.replace(fitted(ONE_HOT, episodes), config=config)
    assert held_out_measures(rep, episodes, episodes)["fitted_on_held_out"] is said


def plane(transitions: int, seed: int, length: int = 10) -> Experience:
    """A walk in a rectangle, whose sides keep eigenvalues apart."""
    rng = np.random.default_rng(seed)
    episodes = max(1, transitions // length)
    at = rng.uniform(0, [3, 2], (episodes, 2))
    places = [at]
    for _ in range(length):
        at = at + rng.normal(0, 0.2, at.shape)
        at = np.abs(at)
        at = np.array([3, 2]) - np.abs(np.array([3, 2]) - at)  # reflected at the sides
        places.append(at)
    return Experience.from_episodes(np.stack(places, axis=1).astype(np.float32))


@pytest.fixture(scope="module")
def held_out() -> Experience:
    return plane(10_000, seed=99)


@pytest.fixture(scope="module")
def waves() -> Representation:
    """Many short random waves in the plane, and nothing learned: Rayleigh-Ritz alone can over-fit."""
    rep = random_representation(EncoderSpec("fourier", (2,), 60, None, (), 60))
    net = eqx.tree_at(lambda net: (net.shift, net.scale), rep.encoder, (np.array([1.5, 1.0]), np.ones(2)))
    rng = np.random.default_rng(0)
    net = eqx.tree_at(lambda net: net.directions, net, rng.normal(0, 4.0, (60, 2)).astype(np.float32))
    return dataclasses.replace(rep, encoder=net)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_much_data_all_is_trusted_and_with_little_the_constant_alone(waves, held_out, seed):
    few, some, many = (measured(waves, plane(count, seed), held_out, 6) for count in (100, 500, 10_000))
    assert (few["trusted"], many["trusted"]) == (1, 6)
    assert few["trusted"] < some["trusted"] < many["trusted"]
    # Over-fitted: smoother along the walks that it was fitted to than along others.
    assert few["eigenvalues_learned"][-1] < 0.8 * few["eigenvalues"][-1]
    np.testing.assert_allclose(many["eigenvalues_learned"], many["eigenvalues"], rtol=0.15, atol=1e-6)


def test_little_held_out_data_has_a_wide_spread(waves, held_out):
    """The spread says how far eigenvalues on held-out episodes can be believed."""
    learned_from = plane(10_000, seed=1)
    little = measured(waves, learned_from, plane(500, seed=98), 6)
    much = measured(waves, learned_from, held_out, 6)
    assert np.sum(little["spread"]) > 2 * np.sum(much["spread"])
    assert little["orthonormality_error"] > 2 * much["orthonormality_error"]


@pytest.mark.slow
def test_a_learned_phi_that_has_seen_little_is_not_trusted(held_out):
    found = {}
    for transitions in (100, 10_000):
        learned_from = plane(transitions, seed=2)
        learner = OnlineLearner(dim=6, steps=300, hidden=(64,), lam=0.9, lam_final=0.9, learning_rate=1e-3)
        episodes = np.split(learned_from.observations, learned_from.ends[:-1] + 1)
        for _ in range(2):
            learner.update(episodes)
        found[transitions] = held_out_measures(learner.representation, learned_from, held_out)
    assert found[100]["trusted"] <= 2
    assert found[10_000]["trusted"] >= 5
    first = {
        transitions: one["eigenvalues_learned"][1] / one["eigenvalues"][1]
        for transitions, one in found.items()
    }
    assert first[100] < 0.1
    assert first[10_000] == pytest.approx(1, abs=0.2)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_agreement_is_a_cosine_on_any_data(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 30, size=rng.integers(5, 12)).tolist()
    found = measured(ONE_HOT, walks(lengths, seed), walks(lengths[::-1], seed + 1))
    assert all(0 <= cosine <= 1 for cosine in found["agreement"])
    assert 0 <= found["trusted"] <= DIM
    assert all(cosine >= AGREEMENT for cosine in found["agreement"][: found["trusted"]])
