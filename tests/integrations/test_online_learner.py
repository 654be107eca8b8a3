"""φ learned from episodes as they come, against the spectrum of the chain that was walked."""

import dataclasses
from typing import Any

import equinox as eqx
import gymnasium
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import lapwing
from lapwing.errors import ConfigError, DatasetError, NonFiniteError
from lapwing.integrations.online_learner import OnlineLearner, Update, drift
from lapwing.integrations.wrappers import LaplacianReward
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.representation import Representation
from tests.support import exact
from tests.support.representations import random_representation
from tests.support.rounding import to_rounding

TEXT = exact.text_of("TwoRoom")
MOVES, CELLS = np.array(exact.moves(TEXT)), np.array(exact.cells("TwoRoom"))
POSITIONS = (2 * CELLS / 16 - 1).astype(np.float32)
UPPER = CELLS[:, 0] < 8
"""The upper of the two rooms."""
LENGTH = 50


def walks(moves: np.ndarray, episodes: int, seed: int, length: int = LENGTH, starts=None) -> np.ndarray:
    """Random walks, one a row, as states."""
    rng = np.random.default_rng(seed)
    state = rng.choice(np.arange(len(moves)) if starts is None else starts, episodes)
    states = [state]
    for _ in range(length):
        state = moves[state, rng.integers(moves.shape[1], size=episodes)]
        states.append(state)
    return np.stack(states, axis=1)


def walked_spectrum(states: np.ndarray, n_states: int) -> np.ndarray:
    """Every eigenvalue of I - P of the chain that walks count, made reversible: (D - S) x = λ D x."""
    counts = np.zeros((n_states, n_states))
    np.add.at(counts, (states[:, :-1].ravel(), states[:, 1:].ravel()), 1.0)
    symmetric = (counts + counts.T) / 2
    seen = symmetric.sum(axis=1) > 0
    symmetric = symmetric[np.ix_(seen, seen)]
    degrees = np.diag(symmetric.sum(axis=1))
    return scipy.linalg.eigh(degrees - symmetric, degrees, eigvals_only=True)


ROOMS = {"dim": 4, "steps": 150, "hidden": (64,), "learning_rate": 1e-3, "lam": 0.95, "lam_final": 0.95}
"""Four functions, for a gap in the spectrum follows the fourth."""


@pytest.fixture(scope="module")
def rooms() -> tuple[OnlineLearner, list[Update], np.ndarray]:
    """Eight updates from one kind of walk, and all that was walked."""
    states = walks(MOVES, 400, seed=0)
    learner = OnlineLearner(**ROOMS)
    return learner, [learner.update(POSITIONS[part]) for part in np.split(states, 8)], states


def test_eigenvalues_come_down_to_those_of_the_walked_chain(rooms):
    """No functions have less: each is above its like by the min-max principle, and nearer every time."""
    _, updates, states = rooms
    above = []
    for count, update in enumerate(updates, 1):
        expected = walked_spectrum(states[: 50 * count], len(CELLS))
        assert (update.eigenvalues >= expected[:4] - 1e-6).all()
        assert update.eigenvalues[0] == pytest.approx(0, abs=1e-6)
        above.append(update.eigenvalues[1:] / expected[1:4])
    assert (above[-1] < above[0] / 1.4).all()
    assert (above[-1] < 1.6).all()
    assert (above[-1][1:] < 1.25).all()


def test_drift_falls_while_the_walks_stay_the_same(rooms):
    _, updates, _ = rooms
    drifts = [update.drift for update in updates]
    assert drifts[0] == np.pi / 2
    assert max(drifts[-3:]) < 0.15
    assert max(drifts[-3:]) < drifts[1] < 1


def test_what_an_update_says(rooms):
    learner, updates, _ = rooms
    assert [update.number for update in updates] == list(range(1, 9))
    assert [update.transitions for update in updates] == list(range(2_500, 20_001, 2_500))
    for update in updates:
        # Of the draws (t, τ), those that end within 50 steps, summed one by one.
        kept = np.mean([1 - 0.95**steps for steps in range(1, LENGTH + 1)])
        assert update.surviving_share == pytest.approx(kept)
        assert update.loss == to_rounding(update.graph_drawing + update.penalty, update.graph_drawing)
    assert updates[-1].loss < updates[0].loss
    assert repr(learner) == "OnlineLearner(8 updates, 20000 transitions kept)"


def test_drift_jumps_when_the_walks_change():
    """At first in the upper room alone, then through both."""
    inside = np.where(UPPER[MOVES], MOVES, np.arange(len(MOVES))[:, None])
    confined = walks(inside, 160, seed=1, starts=np.flatnonzero(UPPER))
    learner = OnlineLearner(**ROOMS, capacity=8_000)
    before = [learner.update(POSITIONS[part]).drift for part in np.split(confined, 4)]
    after = [learner.update(POSITIONS[part]).drift for part in np.split(walks(MOVES, 200, seed=2), 5)]
    assert before[-1] < 0.4
    assert after[0] > 1
    assert after[-1] < 0.4


def test_the_representation_is_one_like_any_other(rooms, tmp_path):
    """It is saved and loaded, its functions are orthonormal over what was walked, and it shapes rewards."""
    learner, _, states = rooms
    rep = learner.representation
    rep.save(tmp_path / "phi.safetensors")
    again = lapwing.load(tmp_path / "phi.safetensors")
    assert again.sha256() == rep.sha256()
    assert again.config == rep.config
    settings = rep.config["settings"]
    assert (settings["lam"], settings["lam_final"], settings["learning_rate"]) == (0.95, 0.95, 1e-3)
    functions = np.asarray(rep.eigenfunctions(POSITIONS[states].reshape(-1, 2)), np.float64)
    # E over both ends of transitions counts the first and the last observation of an episode half.
    weights = np.tile(np.r_[0.5, np.ones(LENGTH - 1), 0.5], len(states))
    moment = functions.T @ (weights[:, None] * functions) / weights.sum()
    np.testing.assert_allclose(moment, np.eye(4), atol=1e-3)
    rewards = []
    for one in (rep, again):
        env = LaplacianReward(gymnasium.make("lapwing/TwoRoom-v0"), one, POSITIONS[0], form="laplacian")
        env.reset(seed=0)
        rewards.append([env.step(action)[1] for action in (0, 1, 2, 3, 1, 1)])
    np.testing.assert_array_equal(*rewards)
    assert len(set(rewards[0])) > 2


PATH = np.array([[max(state - 1, 0), min(state + 1, 7)] for state in range(8)])
"""Eight states in a row, whose eigenvalues lie well apart."""


def test_indices_are_learned_to_the_spectrum():
    """P of a walk along a path: λ_k = 1 - cos(πk/n)."""
    states = walks(PATH, 300, seed=0)
    learner = OnlineLearner(dim=4, n_states=8, steps=200, lam=0.5, lam_final=0.5, learning_rate=3e-3)
    for part in np.split(states, 6):
        update = learner.update(part)
    expected = walked_spectrum(states, 8)[:4]
    np.testing.assert_allclose(update.eigenvalues, expected, rtol=0.05, atol=1e-6)
    assert (update.eigenvalues >= expected - 1e-6).all()
    np.testing.assert_allclose(expected, 1 - np.cos(np.pi * np.arange(4) / 8), rtol=0.1, atol=1e-6)
    assert learner.representation.spec.n_states == 8
    functions = learner.representation.eigenfunctions(np.arange(8))
    assert ((functions[1:, 1] - functions[:-1, 1]) * np.sign(functions[-1, 1]) > 0).all(), "from end to end"


TINY: dict[str, Any] = {"dim": 2, "n_states": 8, "steps": 3, "batch": 4, "oversample": 1}


def some_walks(episodes: int = 3, length: int = 5, seed: int = 0) -> list[np.ndarray]:
    return list(walks(PATH, episodes, seed, length))


def test_lam_falls_over_the_updates_and_stays():
    learner = OnlineLearner(**TINY, lam=0.9, lam_final=0.5, anneal_updates=5)
    found = [learner.update(some_walks()).lam for _ in range(7)]
    assert found == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.5])
    assert found[-1] == 0.5
    at_once = OnlineLearner(**TINY, lam=0.9, lam_final=0.5, anneal_updates=1)
    assert [at_once.update(some_walks()).lam for _ in range(3)] == [0.9, 0.5, 0.5]
    default = OnlineLearner(**TINY)
    assert default.update(some_walks()).lam == 0.99
    assert default.update(some_walks()).lam == pytest.approx(0.99 - 0.04 / 99)


def test_the_oldest_episodes_are_dropped():
    """Of 5 transitions each, with room for 12 transitions: the last two, whatever the update they came in."""
    learner = OnlineLearner(**TINY, capacity=12)
    assert learner.update(some_walks(3)).transitions == 10
    assert learner.update(some_walks(1, 4)).transitions == 9
    assert learner.update(some_walks(1, 3)).transitions == 12
    # An episode longer than all the room there is comes alone.
    assert learner.update(some_walks(1, 40)).transitions == 40
    assert learner.update(some_walks(1, 2)).transitions == 2
    assert repr(learner) == "OnlineLearner(5 updates, 2 transitions kept)"


def bits(seed: int, updates: int = 2) -> list[str]:
    learner = OnlineLearner(**TINY, seed=seed)
    digests = []
    for number in range(updates):
        learner.update(some_walks(seed=number))
        digests.append(learner.representation.sha256())
    return digests


def test_the_same_seed_gives_the_same_bits():
    assert bits(3) == bits(3)
    assert len({*bits(3), *bits(4)}) == 4


def test_what_was_learned_before_is_not_forgotten_by_a_snapshot():
    """`representation` does not change under whoever holds it."""
    learner = OnlineLearner(**TINY)
    learner.update(some_walks())
    first = learner.representation
    digest = first.sha256()
    learner.update(some_walks(seed=1))
    assert first.sha256() == digest != learner.representation.sha256()


def test_large_observations_are_laid_out_in_pieces(monkeypatch):
    """The same steps, whether all pairs are laid out at once or a few steps at a time."""
    whole, pieces = OnlineLearner(**TINY), OnlineLearner(**TINY)
    first = whole.update(some_walks())
    monkeypatch.setattr("lapwing.integrations.online_learner.PAIR_BYTES", 2 * 4 * 4)
    second = pieces.update(some_walks())
    found, expected = (each.representation.phi(np.arange(8)) for each in (pieces, whole))
    assert found == to_rounding(expected)
    assert second.loss == to_rounding(first.loss, first.graph_drawing)


@pytest.mark.slow
def test_images_are_learned_from():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (8, 6, 5, 3)).astype(np.uint8)
    learner = OnlineLearner(dim=2, steps=2, batch=4, oversample=0)
    learner.update([frames[episode] for episode in some_walks()])
    assert learner.representation.spec.name == "conv"
    assert learner.representation.eigenfunctions(frames).shape == (8, 2)


def test_nothing_is_known_before_the_first_update():
    with pytest.raises(ConfigError, match=r"update\(episodes\)"):
        OnlineLearner(**TINY).representation  # noqa: B018


@pytest.mark.parametrize(
    ("episodes", "words"),
    [
        ([np.zeros((3, 2)), np.array([[0.0, 0.0], [np.nan, 1.0], [1.0, 1.0]])], "episode 1, step 1"),
        ([], "no episodes"),
        ([np.zeros((1, 2))], "at least 2"),
        ([np.zeros((3, 2)), np.zeros((3, 3))], r"episode 1 .*\(3,\).*\(2,\)"),
    ],
)
def test_episodes_that_cannot_be_learned_from(episodes, words):
    learner = OnlineLearner(dim=2, steps=2, batch=4, hidden=(4,))
    with pytest.raises(DatasetError, match=words):
        learner.update(episodes)
    assert repr(learner) == "OnlineLearner(0 updates, 0 transitions kept)"


def test_episodes_of_another_kind_than_before():
    learner = OnlineLearner(**TINY)
    learner.update(some_walks())
    digest = learner.representation.sha256()
    with pytest.raises(DatasetError, match=r"\(2,\) and float32.*\(\) and int32"):
        learner.update([np.zeros((3, 2))])
    with pytest.raises(ConfigError, match=r"up to 8; .*n_states"):
        learner.update([np.array([7, 8])])
    assert repr(learner) == "OnlineLearner(1 updates, 15 transitions kept)"
    assert learner.representation.sha256() == digest


def test_indices_need_their_number_and_nothing_else_has_one():
    for settled, episodes, words in [
        ({}, some_walks(), "n_states.* None"),
        ({"n_states": 8}, [np.zeros((3, 2))], r"n_states=8.*\(2,\)"),
        ({"encoder": "conv"}, [np.zeros((3, 2))], r"\(2,\)"),
    ]:
        with pytest.raises(ConfigError, match=words):
            OnlineLearner(dim=2, **settled).update(episodes)


def test_an_update_that_fails_changes_nothing():
    """Steps so long that the loss overflows; the learner stays as if nothing had been."""
    wild = OnlineLearner(**(TINY | {"steps": 40}), learning_rate=1e30)
    for _ in range(2):
        with pytest.raises(NonFiniteError, match=r"update 1; .*learning_rate"):
            wild.update(some_walks())
        assert repr(wild) == "OnlineLearner(0 updates, 0 transitions kept)"


def test_settings_that_cannot_be_meant():
    wrong = dict.fromkeys(("dim", "steps", "capacity", "anneal_updates", "n_states"), 0)
    wrong |= {"batch": 1, "oversample": -1, "seed": -1, "lam": 1.0, "lam_final": -0.1}
    wrong |= {"beta": 0.0, "delta": np.nan, "learning_rate": -1e-3, "hidden": (0,), "encoder": "bumps"}
    for name, value in wrong.items():
        with pytest.raises(ConfigError, match=f"^{name} "):
            OnlineLearner(**{name: value})


STATES = 12
FLAT = random_representation(EncoderSpec("linear", (), STATES, STATES))


def of_columns(columns: np.ndarray) -> Representation:
    """A representation whose eigenfunctions, over the states, are these columns."""
    weight = np.zeros((STATES, STATES), np.float32)
    weight[:, : columns.shape[1]] = columns
    encoder = eqx.tree_at(lambda net: net.weight, FLAT.encoder, weight)
    picked = np.vstack([np.zeros(columns.shape[1]), np.eye(STATES)[:, : columns.shape[1]]])
    return dataclasses.replace(
        FLAT,
        encoder=encoder,
        eigenvalues=np.arange(columns.shape[1], dtype=float),
        coefficients=picked.astype(np.float32),
    )


def orthonormal(seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((STATES, STATES)))[0]


ALL = np.arange(STATES)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**16), angle=st.floats(0, np.pi / 2), dim=st.integers(1, 5))
def test_drift_is_the_largest_angle_between_spans(seed, angle, dim):
    """One direction of the span is turned out of it; bases and scales of columns do not matter."""
    basis, rng = orthonormal(seed), np.random.default_rng(seed + 1)
    before = basis[:, :dim]
    after = before.copy()
    after[:, -1] = np.cos(angle) * basis[:, dim - 1] + np.sin(angle) * basis[:, dim]
    rotation = np.linalg.qr(rng.standard_normal((dim, dim)))[0] * rng.uniform(0.5, 2, dim)
    found = drift(of_columns(before), of_columns(after @ rotation), ALL)
    assert found == pytest.approx(angle, abs=2e-3)
    assert found == pytest.approx(drift(of_columns(after @ rotation), of_columns(before), ALL), abs=2e-3)
    # Where one span holds the other, every direction of the smaller one is still there.
    assert drift(of_columns(before), of_columns(basis[:, : dim + 2]), ALL) == pytest.approx(0, abs=2e-3)
