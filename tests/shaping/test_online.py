"""φ learned beside an agent: which pairs it learns from, its steps, and the reward that it gives."""

import dataclasses
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from lapwing.envs.arena import EPISODE_LENGTH
from lapwing.laplacian.encoders import MLP, EncoderSpec, Linear, init_encoder
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.sampling import sample_recent_pairs
from lapwing.settings.learn import PRESETS, LearnSettings
from lapwing.shaping.online import LAM_FINAL, OnlinePhi, PhiLearner
from lapwing.shaping.rewards import Goal, GoalReward

# Which pairs


def horizons_of(lengths: list[int]) -> np.ndarray:
    """How many steps follow each place of a replay whose episodes have so many steps."""
    return np.concatenate([np.arange(length, 0, -1) for length in lengths])


def discarded(horizons: np.ndarray, lam: float) -> np.ndarray:
    """p(t, τ) ∝ λ^(τ-1) · 1[τ ≤ horizon(t)], number by number: (places, τ - 1)."""
    weights = np.zeros((len(horizons), horizons.max()))
    for place, horizon in enumerate(horizons):
        for tau in range(1, horizon + 1):
            weights[place, tau - 1] = lam ** (tau - 1)
    return weights / weights.sum()


DRAWS = 40_000


@jax.jit
def drawn(horizons, filled, lam, key):
    return sample_recent_pairs(lambda place: horizons[place], filled, lam, DRAWS, key=key)


def counts(horizons: np.ndarray, lam: float, seed: int = 0) -> np.ndarray:
    """How often each place and each τ was drawn."""
    room = jnp.asarray(np.pad(horizons, (0, EPISODE_LENGTH - len(horizons))))  # compiled once, for any
    place, tau = drawn(room, len(horizons), jnp.float32(lam), jax.random.key(seed))
    found = np.zeros((len(horizons), horizons.max()), int)
    np.add.at(found, (np.asarray(place), np.asarray(tau) - 1), 1)
    return found


def strangeness(observed: np.ndarray, expected: np.ndarray) -> float:
    """The probability of so large a χ², rare cells put together; tiny where the law is another."""
    observed, wanted = observed.ravel(), expected.ravel() * observed.sum()
    rare = wanted < 5
    observed = np.append(observed[~rare], observed[rare].sum())
    wanted = np.append(wanted[~rare], wanted[rare].sum())
    if wanted[-1] == 0:
        assert observed[-1] == 0, "a pair that cannot be"
        observed, wanted = observed[:-1], wanted[:-1]
    return float(chi2.sf(np.sum((observed - wanted) ** 2 / wanted), len(wanted) - 1))


RAGGED = [5, 5, 3, 1, 4]


class TestPairs:
    @pytest.mark.parametrize("lam", [1e-6, 0.3, 0.5])
    def test_are_those_that_remain_when_others_are_discarded(self, lam):
        """Time and place are drawn again, so late places are rarer; redrawing τ alone is told apart."""
        horizons = horizons_of(RAGGED)
        found = counts(horizons, lam)
        assert strangeness(found, discarded(horizons, lam)) > 1e-4
        if lam > 0.1:
            by_place = discarded(horizons, lam)
            by_place = by_place / by_place.sum(axis=1, keepdims=True) / len(horizons)
            assert strangeness(found, by_place) < 1e-9
            assert strangeness(found, discarded(horizons, 0.9 * lam)) < 1e-9

    @pytest.mark.parametrize(
        "lam", [0.95, 0.99, 0.999], ids=["annealed", "as for the Point", "as for the Ant"]
    )
    def test_are_those_in_the_episodes_of_an_arena_too(self, lam):
        """The laws of τ, of the place, and of how many steps are left after the pair, each by itself."""
        horizons = np.arange(EPISODE_LENGTH, 0, -1)
        found, expected = counts(horizons, lam) / DRAWS, discarded(horizons, lam)
        left = horizons[:, None] - 1 - np.arange(EPISODE_LENGTH)
        assert not found[left < 0].any()
        laws = {
            name: [np.bincount(by.ravel(), p.ravel()) for p in (found, expected)]
            for name, by in (
                ("τ", np.indices(found.shape)[1]),
                ("places", np.indices(found.shape)[0]),
                ("what is left", np.maximum(left, 0)),
            )
        }
        for name, (one, other) in laws.items():
            apart = 0.5 * np.abs(one - other).sum()
            ends = [law[0] for law in laws["what is left"]]
            assert apart < 0.06, (
                f"the law of {name} is another, by {apart:.2f}: a share of {ends[0]:.2f} of the pairs ends "
                f"with the episode, not {ends[1]:.2f}"
            )

    @settings(max_examples=60)
    @given(st.integers(1, 9), st.integers(1, 40), st.floats(0.001, 0.9999), st.integers(0, 2**31))
    def test_stay_within_their_episode_and_in_what_there_is(self, length, filled, lam, seed):
        """Of a replay that is still being filled."""
        place, tau = within_episodes(length, filled, jnp.float32(lam), jax.random.key(seed))
        place, tau = np.asarray(place), np.asarray(tau)
        assert (place >= 0).all()
        assert (tau >= 1).all()
        last = place + tau - 1
        assert (last < filled).all()
        np.testing.assert_array_equal(last // length, place // length)

    def test_the_key_decides_and_a_number_is_as_good_as_an_array(self):
        horizons = horizons_of(RAGGED)
        assert np.array_equal(counts(horizons, 0.5, seed=3), counts(horizons, 0.5, seed=3))
        assert not np.array_equal(counts(horizons, 0.5, seed=3), counts(horizons, 0.5, seed=4))

        @jax.jit
        def both(key):
            return [
                sample_recent_pairs(lambda place: 9 - place % 9, 45, lam, 64, key=key)
                for lam in (0.75, jnp.float32(0.75))
            ]

        for first, second in zip(*both(jax.random.key(0)), strict=True):
            np.testing.assert_array_equal(first, second)


@jax.jit
def within_episodes(length, filled, lam, key):
    def horizon(place):
        return jnp.minimum(length - place % length, filled - place)

    return sample_recent_pairs(horizon, filled, lam, 64, key=key)


class TestRecipes:
    def test_the_numbers_are_those_of_the_paper_or_others(self):
        assert PhiLearner.of(PRESETS["paper-control"]) == PhiLearner(2.0, 0.1, 0.99, 0.95, 128, 1e-3)
        assert PhiLearner.of(PRESETS["paper-shaping"]) == PhiLearner(5.0, 0.05, 0.9, 0.95, 128, 1e-3)
        assert LAM_FINAL == 0.95
        recipe = LearnSettings(beta=3.0, delta=0.7, lam=0.5, batch=17, learning_rate=0.25)
        assert PhiLearner.of(recipe, 0.125) == PhiLearner(3.0, 0.7, 0.5, 0.125, 17, 0.25)

    def test_lam_is_annealed_linearly(self):
        learner = PhiLearner.of(PRESETS["paper-control"])
        found = [float(learner.annealed_lam(progress)) for progress in (0.0, 0.25, 1.0)]
        assert found == pytest.approx([0.99, 0.98, 0.95], abs=1e-6)
        assert learner.annealed_lam(jnp.int32(1) / 2).dtype == jnp.float32
        rising = PhiLearner(1.0, 1.0, 0.1, 0.5, 2, 0.1)
        assert float(rising.annealed_lam(0.5)) == pytest.approx(0.3)


def loss_by_hand(u: np.ndarray, v: np.ndarray, beta: float, delta: float) -> tuple[float, float, float]:
    """The whole, graph drawing and penalty, pair by pair of states that were not drawn together."""
    drawing = 0.5 * np.mean([np.sum((one - other) ** 2) for one, other in zip(u, v, strict=True)])
    products = [
        (one @ other) ** 2
        for i in range(len(u))
        for j in range(len(u))
        if i != j
        for one in (u[i], v[i])
        for other in (u[j], v[j])
    ]
    squares = np.mean([each @ each for each in (*u, *v)])
    penalty = np.mean(products) - 2 * delta * squares + delta**2 * u.shape[1]
    return drawing + beta * penalty, drawing, penalty


def through(encoder: MLP, inputs) -> np.ndarray:
    values = (np.asarray(inputs, float) - np.asarray(encoder.shift)) / np.asarray(encoder.scale)
    for place, layer in enumerate(encoder.layers):
        values = np.maximum(values, 0) if place else values
        values = values @ np.asarray(layer.weight, float).T + np.asarray(layer.bias, float)
    return values


def mlp(inputs: int, seed: int = 0) -> MLP:
    spec = EncoderSpec("mlp", (inputs,), 3, hidden=(8,))
    encoder: Any = init_encoder(
        spec,
        np.full(inputs, 0.5, np.float32),
        np.full(inputs, 2.0, np.float32),
        1.0,
        key=jax.random.key(seed),
    )
    return encoder


class TestSteps:
    LEARNER = PhiLearner(beta=2.0, delta=0.3, lam=0.9, lam_final=0.5, batch=16, learning_rate=0.01)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        u = rng.normal(size=(16, 2)).astype(np.float32)
        return u, u + 0.1 * rng.normal(size=(16, 2)).astype(np.float32)

    def test_the_loss_on_fixed_pairs_goes_down(self):
        u, v = self.pairs()
        state, encoder = self.LEARNER.init(mlp(2)), mlp(2)
        step, losses = (
            eqx.filter_jit(lambda state: self.LEARNER.update(state, jnp.asarray(u), jnp.asarray(v))),
            [],
        )
        for count in range(60):
            before = state.encoder
            state, metrics = step(state)
            losses.append(float(metrics["phi/loss"]))
            if count in (0, 50):
                expected = loss_by_hand(through(before, u), through(before, v), 2.0, 0.3)
                names = ("phi/loss", "phi/graph_drawing", "phi/penalty")
                assert [float(metrics[name]) for name in names] == pytest.approx(expected, rel=1e-3, abs=1e-5)
            if count == 0:
                moved = np.abs(np.asarray(state.encoder.layers[0].weight) - encoder.layers[0].weight)
                assert np.all(np.isclose(moved, 0.01, rtol=0.02) | (moved < 1e-9)), "a step of Adam"
                assert (moved > 0.009).any()
        assert losses[-1] < losses[20] < losses[0]
        after = loss_by_hand(through(state.encoder, u), through(state.encoder, v), 2.0, 0.3)[0]
        assert after < losses[0]
        np.testing.assert_array_equal(state.encoder.shift, encoder.shift)
        np.testing.assert_array_equal(state.encoder.scale, encoder.scale)

    def test_a_walk_on_a_path_gives_its_eigenvectors(self):
        """Six places in a row, a step into the end stays: the k-th eigenvector is cos(kπ(i + ½)/6)."""
        places, length, steps, dim = 6, 30, 6_000, 3
        learner = PhiLearner(beta=5.0, delta=0.2, lam=0.6, lam_final=0.2, batch=64, learning_rate=0.02)
        rng, walk, at = np.random.default_rng(0), [], 0
        for step in range(steps):
            at = rng.integers(places) if step % length == 0 else at
            there = int(np.clip(at + rng.choice([-1, 1]), 0, places - 1))
            walk.append((at, there))
            at = there
        here, there = (jnp.asarray(column) for column in np.array(walk).T)
        start = learner.init(Linear(places, dim, key=jax.random.key(0)))
        _, static = eqx.partition(start, eqx.is_array)

        def one(arrays, number):
            place, tau = sample_recent_pairs(
                lambda place: length - place % length,
                steps,
                learner.annealed_lam(number / 800),
                learner.batch,
                key=jax.random.fold_in(jax.random.key(1), number),
            )
            state, _ = learner.update(eqx.combine(arrays, static), here[place], there[place + tau - 1])
            return eqx.filter(state, eqx.is_array), None

        run = jax.jit(lambda arrays: jax.lax.scan(one, arrays, jnp.arange(800))[0])
        found = np.asarray(eqx.combine(run(eqx.filter(start, eqx.is_array)), static).encoder.weight, float)
        exact = np.cos(np.pi * np.outer(np.arange(places) + 0.5, np.arange(dim)) / places)
        exact /= np.linalg.norm(exact, axis=0)

        def angle(functions: np.ndarray) -> float:
            basis = np.linalg.qr(functions)[0]
            return float(np.arccos(np.linalg.svd(basis.T @ exact, compute_uv=False).min().clip(-1, 1)))

        assert angle(np.asarray(start.encoder.weight, float)) > 0.5
        assert angle(found) < 0.2


SEEN = 5


@cache
def whole_goal() -> np.ndarray:
    return np.array([0.5, -1.0, 0.3, 0.0, 0.2], np.float32)


def first_two(observations: Any) -> Any:
    return observations[..., :2]


def goal_in(space: str) -> Goal:
    state = whole_goal() if space == "states" else None
    return Goal(z=whole_goal()[:2], radius=0.4, h=first_two, state=state)


def some_observations() -> np.ndarray:
    """At the goal, within its ball, on the other side, and anywhere."""
    seen = np.random.default_rng(0).normal(size=(8, SEEN)).astype(np.float32)
    seen[0] = whole_goal()
    seen[1, :2] = whole_goal()[:2] + np.float32([0.2, -0.2])
    seen[2, :2] = whole_goal()[:2]
    return seen


class TestRewards:
    @pytest.mark.parametrize("form", ["mix", "laplacian"])
    @pytest.mark.parametrize("space", ["goals", "states"])
    def test_are_those_of_a_representation_with_the_same_encoder(self, form, space):
        goal, seen = goal_in(space), some_observations()
        inputs = 2 if space == "goals" else SEEN
        encoder, untrained = mlp(inputs), mlp(inputs, 1)
        online = OnlinePhi(PhiLearner.of(PRESETS["paper-control"]), untrained, form, goal)
        found = np.asarray(eqx.filter_jit(online.rewards)(encoder, jnp.asarray(seen), jnp.asarray(seen)))
        assert found.shape == (8,)
        spec = EncoderSpec("mlp", (inputs,), 3, hidden=(8,))
        fixed = Representation(encoder, spec, np.arange(3.0), np.ones((4, 3)), np.ones((2, 3)), 1.0)
        expected = GoalReward(form, goal, fixed, "soft")(np.zeros_like(seen), seen)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        # And by hand.
        at, wanted = (seen[:, :2], whole_goal()[:2]) if space == "goals" else (seen, whole_goal())
        latent = np.linalg.norm(through(encoder, at) - through(encoder, wanted[None]), axis=1)
        reached = np.linalg.norm(seen[:, :2] - whole_goal()[:2], axis=1) <= 0.4
        assert 3 <= reached.sum() < 8
        by_hand = -latent if form == "laplacian" else -0.5 * latent - 0.5 * ~reached
        np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-5)
        assert found[0] == 0
        # Above those of standing still.
        gaining = dataclasses.replace(online, gamma=0.9)
        before = jnp.asarray(seen[::-1])
        gained = np.asarray(gaining.rewards(encoder, before, jnp.asarray(seen)))
        share = 1.0 if form == "laplacian" else 0.5
        expected = by_hand + share * (latent + (latent[::-1] - latent) / (1 - 0.9))
        np.testing.assert_allclose(gained, expected, rtol=1e-3, atol=1e-4)

    def test_what_phi_sees(self):
        seen, learner = some_observations(), PhiLearner.of(PRESETS["paper-control"])
        of_goals = OnlinePhi(learner, mlp(2), "mix", goal_in("goals"))
        np.testing.assert_array_equal(of_goals.sees(seen), seen[:, :2])
        of_states = OnlinePhi(learner, mlp(SEEN), "mix", goal_in("states"))
        np.testing.assert_array_equal(of_states.sees(seen), seen)
