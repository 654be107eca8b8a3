"""What episodes that were not learned from say, against closed forms and SciPy on counts."""

import dataclasses
from functools import partial

import equinox as eqx
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import lapwing
from lapwing.data.experience import Experience
from lapwing.errors import DatasetError
from lapwing.integrations.online_learner import OnlineLearner
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.held_out import AGREEMENT, CLEARLY, OVER_FITTED, held_out_measures
from lapwing.laplacian.representation import Representation, embed_batch
from lapwing.laplacian.ritz import moments_of_experience, rayleigh_ritz
from tests.support.representations import random_representation

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
    """Also where the parts are of different size, and where one episode is cut in two."""
    learned_from, held_out = walks([50] * 40, seed=0), walks(lengths, seed=1)
    found = measured(ONE_HOT, learned_from, held_out)
    first, second = quarters(held_out)
    seen_values, saved, _ = counted(learned_from)
    everything = joined([*first, *second])
    _, _, rho = counted(everything)
    np.testing.assert_allclose(found["eigenvalues"], quotients_by_counting(saved, everything), atol=1e-5)
    np.testing.assert_allclose(found["eigenvalues_learned"], seen_values, atol=1e-5)
    halves = [quotients_by_counting(saved, joined(half)) for half in (first, second)]
    np.testing.assert_allclose(found["spread"], np.abs(halves[0] - halves[1]) / 2, atol=1e-5)
    error = np.linalg.norm(saved.T @ (rho[:, None] * saved) - np.eye(DIM)) / np.sqrt(DIM)
    assert found["orthonormality_error"] == pytest.approx(error, rel=1e-4)
    drawing, moment = projected(saved, everything)[0], projected(saved, joined([learned_from, everything]))[1]
    values = scipy.linalg.eigh(drawing, moment, eigvals_only=True)
    np.testing.assert_allclose(found["terms"], values, atol=1e-5)
    assert found["objective"] == pytest.approx(values.sum(), rel=1e-4)
    bounds = stability_by_counting(learned_from, [*first, *second])
    assert np.all(np.array(found["agreement"]) <= bounds + 1e-4)
    assert set(found["trusted"]) <= set(np.flatnonzero(bounds >= AGREEMENT))
    assert found["transitions"] == sum(lengths) - len(lengths)


def quotients_by_counting(functions: np.ndarray, experience: Experience) -> np.ndarray:
    """Half the mean squared change of each function in a step, over its mean square at both ends."""
    drawing, second = projected(functions, experience)
    return np.diag(drawing) / np.diag(second)


def projected(functions: np.ndarray, experience: Experience) -> tuple[np.ndarray, np.ndarray]:
    """(A, B) of functions, given by their values at the states."""
    inside = np.setdiff1d(np.arange(len(experience.observations)), experience.ends)
    u, v = (functions[experience.observations[at]] for at in (inside, inside + 1))
    count = 2 * len(inside)
    return (u - v).T @ (u - v) / count, (u.T @ u + v.T @ v) / count


def stability_by_counting(learned_from: Experience, parts: list[Experience]) -> np.ndarray:
    """By how much each part, added to what was learned from, turns the functions; scaled and averaged."""
    _, saved, _ = counted(learned_from)
    turns = []
    for part in parts:
        _, other, rho = counted(joined([learned_from, part]))
        sizes = np.sqrt(np.sum(rho[:, None] * saved**2, axis=0))
        cosines = np.abs(np.sum(rho[:, None] * saved * other, axis=0)) / sizes
        scale = 1 + learned_from.n_transitions / part.n_transitions
        turns.append(scale * (1 / np.minimum(cosines, 1) ** 2 - 1))
    return 1 / np.sqrt(1 + np.mean(turns, axis=0))


def quarters(experience: Experience) -> list[list[Experience]]:
    """Both parts of both halves: a cut loses the transition across it."""
    return [list(half.split(0.5)) for half in experience.split(0.5)]


def joined(parts: list[Experience]) -> Experience:
    """All of them."""
    lengths = np.concatenate([part.lengths for part in parts])
    return Experience(np.concatenate([part.observations for part in parts]), lengths, np.arange(N))


def test_functions_of_other_episodes_are_not_trusted():
    """Where another path is walked, the eigenfunctions are others."""
    learned_from = walks([50] * 40, seed=0)
    mirrored = Experience(PERMUTED[learned_from.observations], learned_from.lengths, np.arange(N))
    found = measured(ONE_HOT, learned_from, mirrored)
    assert found["agreement"][0] == pytest.approx(1)
    assert found["agreement"][1] < AGREEMENT
    assert found["trusted"] == [0]
    assert measured(ONE_HOT, learned_from, learned_from)["trusted"] == list(range(DIM))


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
    assert set(found["trusted"]) <= set(range(DIM))


def test_the_saved_coefficients_are_what_is_measured():
    """Not what Rayleigh-Ritz would make of φ: saved functions that are no eigenfunctions are reported."""
    learned_from, held_out = walks([50] * 40, seed=0), walks([50] * 40, seed=1)
    right = fitted(ONE_HOT, learned_from)
    wrong = dataclasses.replace(right, coefficients=2 * right.coefficients[:, [0, 3, 2, 1]])
    found, expected = (held_out_measures(rep, learned_from, held_out) for rep in (wrong, right))
    assert (found["trusted"], expected["trusted"]) == ([0, 2], [0, 1, 2, 3]), (
        "each on its own, not the first few"
    )
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
    assert many["trusted"] == list(range(6))
    assert len(few["trusted"]) < len(some["trusted"]) < 6
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
    assert len(found[100]["trusted"]) <= 2
    assert len(found[10_000]["trusted"]) >= 5
    first = {
        transitions: one["eigenvalues_learned"][1] / one["eigenvalues"][1]
        for transitions, one in found.items()
    }
    assert first[100] < 0.1
    assert first[10_000] == pytest.approx(1, abs=0.2)


def of_waves(waves: Representation, shortest: float, longest: float) -> Representation:
    """The same of other frequencies."""
    rng = np.random.default_rng(1)
    angles, sizes = rng.uniform(0, 2 * np.pi, 60), rng.uniform(shortest, longest, 60)
    directions = sizes[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    net = eqx.tree_at(lambda net: net.directions, waves.encoder, directions.astype(np.float32))
    return dataclasses.replace(waves, encoder=net)


def test_what_phi_lacks_the_reference_has(waves, held_out):
    """Waves that are all too short have stable eigenfunctions among them, which are none of the rectangle."""
    learned_from = plane(10_000, seed=3)
    poor = measured(of_waves(waves, 14, 16), learned_from, held_out, 6)
    good = measured(waves, learned_from, held_out, 6)
    assert poor["objective"] > 1.5 * poor["objective_reference"]
    assert good["objective"] < CLEARLY * good["objective_reference"]
    assert max(poor["agreement_reference"][1:]) < AGREEMENT < min(good["agreement_reference"])
    assert (poor["trusted"], good["trusted"]) == ([0], list(range(6)))


def test_an_eigenvalue_that_holds_on_its_own_episodes_alone_is_not_trusted(waves):
    """However well the function agrees with others that were fitted to the same few episodes."""
    found = measured(waves, plane(150, seed=0), plane(4_000, seed=5), 6)
    ratio = np.array(found["eigenvalues"][1:]) / found["eigenvalues_learned"][1:]
    assert ratio.max() > OVER_FITTED
    assert not set(1 + np.flatnonzero(ratio > 1.01 * OVER_FITTED)) & set(found["trusted"])


def test_a_reference_that_lacks_a_function_does_not_judge_it():
    """The states of three clusters are scattered over the numbers that the reference sees."""
    size, rng = 300, np.random.default_rng(0)
    members = rng.permutation(size).reshape(3, -1)

    def scattered(seed: int) -> Experience:
        rng = np.random.default_rng(seed)
        clusters, walk = rng.integers(3, size=400), []
        for _ in range(51):
            walk.append(members[clusters, rng.integers(size // 3, size=400)])
            clusters = np.where(rng.random(400) < 0.05, rng.integers(3, size=400), clusters)
        return Experience(np.stack(walk, axis=1).reshape(-1), [51] * 400, np.arange(size))

    flat = random_representation(EncoderSpec("linear", (), size, size))
    one_hot = dataclasses.replace(
        flat, encoder=eqx.tree_at(lambda net: net.weight, flat.encoder, np.eye(size, dtype=np.float32))
    )
    found = measured(one_hot, scattered(1), scattered(2), 3)
    assert found["objective"] < 0.5 * found["objective_reference"]
    assert found["reference_lacks"] == [1, 2]
    assert found["trusted"] == [0, 1, 2]


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_agreement_is_a_cosine_on_any_data(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 30, size=rng.integers(5, 12)).tolist()
    found = measured(ONE_HOT, walks(lengths, seed), walks(lengths[::-1], seed + 1))
    for name in ("agreement", "agreement_reference"):
        assert all(0 <= cosine <= 1 for cosine in found[name])
    assert found["trusted"] == sorted(set(found["trusted"]) & set(range(DIM)))
    assert all(found["agreement"][index] >= AGREEMENT for index in found["trusted"])


def test_independent_observations_have_no_function_to_trust():
    draws = np.random.default_rng(0).normal(size=(2_000, 3)).astype(np.float32)
    rep = lapwing.learn(Experience(draws, [20] * 100), dim=6)
    assert rep.config["trusted"] == [0]
    assert min(rep.config["held_out"]["eigenvalues"][1:]) > 0.8
