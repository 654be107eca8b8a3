"""Rewards for reaching a goal, against their formulas, brute-force planning and a learned representation."""

import dataclasses
from itertools import pairwise
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import ConfigError
from lapwing.settings.learn import RewardForm
from lapwing.shaping.rewards import (
    FORMS,
    SHAPED_BY_PHI,
    Goal,
    GoalReward,
    Step,
    ToGoal,
    check_form,
    one_step_scale,
    relative,
)
from tests.support import exact

pytestmark = pytest.mark.numeric

GAMMA = 0.9
# Three steps: on the way, onto the goal, and on the way where the episode terminates.
HERE = ToGoal(raw=[3.0, 1.0, 3.0], reached=[False, False, False], latent=[4.0, 2.0, 4.0])
THERE = ToGoal(raw=[0.5, 0.25, 0.5], reached=[False, True, False], latent=[2.0, 0.5, 2.0])
TERMINATED = [False, False, True]
BY_HAND = {
    "sparse": [-1.0, 0.0, -1.0],
    "l2": [-0.5, -0.25, -0.5],
    "rawmix": [-0.75, -0.125, -0.75],
    "laplacian": [-2.0, -0.5, -2.0],
    "mix": [-1.5, -0.25, -1.5],
    "potential": [-1 - 0.9 * 2 + 4, 0 - 0.9 * 0.5 + 2, -1 + 4],
}


def steps_of(kind) -> Step:
    """The three steps as arrays that `kind` makes."""
    return Step(ToGoal(*map(kind, HERE)), ToGoal(*map(kind, THERE)), kind(TERMINATED), GAMMA)


class TestForms:
    def test_every_form_is_tested_here(self):
        assert set(BY_HAND) == set(FORMS) == set(get_args(RewardForm))
        assert set(SHAPED_BY_PHI) == {"laplacian", "mix", "potential"}

    @pytest.mark.parametrize("form", BY_HAND)
    def test_numbers_batches_and_compiled(self, form):
        for row, expected in enumerate(BY_HAND[form]):
            here, there = (ToGoal(*(values[row] for values in to)) for to in (HERE, THERE))
            reward = FORMS[form](Step(here, there, TERMINATED[row], GAMMA))
            assert isinstance(reward, float)
            assert reward == pytest.approx(expected)
        for kind, made in ((np.array, np.ndarray), (jnp.array, jax.Array)):
            rewards = FORMS[form](steps_of(kind))
            assert isinstance(rewards, made)
            np.testing.assert_allclose(rewards, BY_HAND[form], rtol=1e-6)
        np.testing.assert_allclose(jax.jit(FORMS[form])(steps_of(jnp.array)), BY_HAND[form], rtol=1e-6)

    @pytest.mark.parametrize("form", ["sparse", "l2", "rawmix", "laplacian", "mix"])
    def test_only_potential_looks_at_where_a_step_began_and_whether_it_ended(self, form):
        there = steps_of(np.array).there
        rewards = FORMS[form](Step(ToGoal(np.nan, np.nan, np.nan), there, np.nan, np.nan))
        np.testing.assert_allclose(rewards, BY_HAND[form])

    @pytest.mark.parametrize("form", ["sparse", "l2", "rawmix", "laplacian", "mix"])
    def test_values_above_those_of_standing_still(self, form):
        """In a random chain under a random policy: Q less the distance's share of r(s), for ever."""
        generator, states, actions = np.random.default_rng(3), 6, 3
        after = generator.integers(states, size=(states, actions))
        policy = generator.dirichlet(np.ones(actions), size=states)
        raw, latent = generator.uniform(0, 3, (2, states))
        to = ToGoal(raw, raw < 1, latent)
        assert 0 < to.reached.sum() < states
        here, there = (ToGoal(*(part[at] for part in to)) for at in (np.arange(states)[:, None], after))
        step = Step(here, there, False, GAMMA)

        def values(rewards):
            """Q, by the linear equations of Bellman."""
            flow = np.zeros((states * actions,) * 2)
            for pair, following in enumerate(after.ravel()):
                flow[pair, following * actions : (following + 1) * actions] = policy[following]
            solved = np.linalg.solve(np.eye(len(flow)) - GAMMA * flow, np.ravel(rewards))
            return solved.reshape(states, actions)

        far = {"sparse": 0 * raw, "l2": raw, "rawmix": raw / 2, "laplacian": latent, "mix": latent / 2}[form]
        above = values(FORMS[form](step)) + far[:, None] / (1 - GAMMA)
        np.testing.assert_allclose(values(relative(form, step)), above, atol=1e-9)

    @pytest.mark.parametrize("form", ["sparse", "l2", "rawmix"])
    def test_forms_without_phi_do_without_latent_distances(self, form):
        there = steps_of(np.array).there._replace(latent=np.full(3, np.nan))
        np.testing.assert_allclose(FORMS[form](Step(there, there)), BY_HAND[form])

    @given(st.floats(0, 100), st.floats(0, 100), st.floats(1e-6, 10), st.floats(0, 100), st.floats(0.01, 1))
    def test_the_mixes_are_half_and_half(self, raw, latent, radius, before, gamma):
        """r = -½ distance - ½ 1[‖h(s') - z_g‖ > ε], in either space."""
        there = ToGoal(raw, raw <= radius, latent)
        step = Step(ToGoal(before, before <= radius, before), there, False, gamma)
        cost = 1.0 if raw > radius else 0.0
        assert FORMS["rawmix"](step) == pytest.approx(-(raw + cost) / 2)
        assert FORMS["mix"](step) == pytest.approx(-(latent + cost) / 2)


def planned(table: np.ndarray, rewards: np.ndarray, gamma: float, terminal: int | None) -> np.ndarray:
    """Q* by sweeping until nothing changes; what follows a step onto `terminal` counts 0."""
    goes_on = np.ones(table.shape) if terminal is None else 1.0 * (table != terminal)
    q = np.zeros(table.shape)
    while True:
        swept = rewards + gamma * goes_on * q.max(axis=1)[table]
        if np.abs(swept - q).max() < 1e-12:
            return swept
        q = swept


@settings(max_examples=60)
@given(st.data(), exact.small_mazes(), st.sampled_from([0.5, 0.8, 0.95]), st.booleans())
def test_no_potential_changes_what_is_optimal(data, text, gamma, goal_ends):
    """Brute-force planning with and without shaping, whether or not the goal ends the episode."""
    table = np.array(exact.moves(text))
    goal = exact.goal_of(text)
    # Any function of the state is a potential, also one that is not 0 at the goal.
    size = len(table)
    latent = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), float)
    reached = np.arange(size) == goal
    here = ToGoal(latent[:, None], reached[:, None], latent[:, None])
    there = ToGoal(latent[table], reached[table], latent[table])
    terminated = goal_ends & reached[table]
    shaped = FORMS["potential"](Step(here, there, terminated, gamma))
    terminal = goal if goal_ends else None
    plain_q = planned(table, np.where(table == goal, 0.0, -1.0), gamma, terminal)
    shaped_q = planned(table, shaped, gamma, terminal)
    np.testing.assert_allclose(shaped_q, plain_q + latent[:, None], atol=1e-9)
    for plain_row, shaped_row in zip(plain_q, shaped_q, strict=True):
        np.testing.assert_array_equal(
            plain_row > plain_row.max() - 1e-8, shaped_row > shaped_row.max() - 1e-8
        )


@pytest.fixture(scope="module")
def positions() -> np.ndarray:
    """(row, column) of every cell of FourRoom, scaled to [-1, 1]."""
    return np.array([[2 * r / 14 - 1, 2 * c / 14 - 1] for r, c in exact.cells("FourRoom")], np.float32)


@pytest.fixture(scope="module")
def walk(positions) -> np.ndarray:
    """Positions along 40 random moves from the goal's neighbour, the goal being the first cell."""
    table, rng = exact.moves(exact.text_of("FourRoom")), np.random.default_rng(0)
    states = [1]
    for _ in range(40):
        states.append(table[states[-1]][rng.integers(4)])
    assert 0 in states, "the walk should meet the goal"
    return positions[states]


@pytest.fixture(scope="module")
def moving(walk) -> np.ndarray:
    """The states of the walk with a velocity, which is no part of the goal."""
    velocity = np.random.default_rng(1).normal(size=walk.shape)
    return np.concatenate([walk, velocity], axis=1).astype(np.float32)


def latent_distance(representation, at, goal, filter="commute") -> np.ndarray:
    """By default that of a reward which names no filter."""
    embedded = np.asarray(representation.embed(at, filter), np.float64)
    return np.linalg.norm(embedded - np.asarray(representation.embed(goal, filter), np.float64), axis=-1)


class TestGoalReward:
    @pytest.mark.parametrize("filter", ["soft", "unit", "commute", "biharmonic", "heat"])
    @pytest.mark.parametrize("form", BY_HAND)
    def test_batches_of_observations(self, four_room, walk, positions, form, filter):
        reward = GoalReward(form, Goal(positions[0]), four_room, filter, gamma=0.95, scale=3.0)
        raw = np.linalg.norm(walk - positions[0], axis=1)
        sparse = np.where((walk == positions[0]).all(axis=1), 0.0, -1.0)[1:]
        latent = 3 * latent_distance(four_room, walk, positions[0], filter)
        expected = {
            "sparse": sparse,
            "l2": -raw[1:],
            "rawmix": (sparse - raw[1:]) / 2,
            "laplacian": -latent[1:],
            "mix": (sparse - latent[1:]) / 2,
            "potential": sparse - 0.95 * latent[1:] + latent[:-1],
        }
        rewards = reward(walk[:-1], walk[1:])
        assert rewards.shape == (40,)
        np.testing.assert_allclose(rewards, expected[form], atol=1e-5)

    @pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
    def test_hitting_counts_from_a_state_to_the_goal(self, four_room, walk, positions, kind):
        """In steps of the data, if its scale is left alone; φ of the goal space and of whole states alike."""
        functions, there = (
            np.asarray(four_room.eigenfunctions(at), np.float64)[..., 1:] for at in (walk, positions[7])
        )
        expected = np.sum((there**2 - functions * there) / four_room.eigenvalues[1:], axis=1)
        for goal in (Goal(positions[7]), Goal(positions[7, 1:], h=column_of, state=positions[7])):
            for scale in (1.0, 0.1):
                reward = GoalReward("laplacian", goal, four_room, "hitting", scale=scale)
                found = reward.distances(kind(walk)).latent
                largest = scale * np.abs(expected).max()
                np.testing.assert_allclose(found, scale * expected, rtol=1e-4, atol=1e-4 * largest)
                np.testing.assert_allclose(reward(kind(walk), kind(walk)), -found, rtol=1e-6)
                assert reward.distances(kind(positions)).latent[7] == 0

    def test_without_a_filter_it_is_commute_or_soft(self, four_room, walk, positions):
        settings = four_room.config["settings"] | {"rotate": False}
        unrotated = dataclasses.replace(four_room, config=four_room.config | {"settings": settings})
        for phi, filter in ((four_room, "commute"), (unrotated, "soft")):
            found = GoalReward("mix", Goal(positions[0]), phi).distances(walk).latent
            np.testing.assert_allclose(found, latent_distance(phi, walk, positions[0], filter), atol=1e-5)

    @pytest.mark.parametrize("form", BY_HAND)
    def test_one_step_and_jax_and_mapped_give_the_same(self, four_room, walk, positions, form):
        reward = GoalReward(form, Goal(positions[0]), four_room, gamma=0.95)
        batch = reward(walk[:-1], walk[1:])
        one_by_one = [float(reward(*pair)) for pair in pairwise(walk)]
        np.testing.assert_allclose(one_by_one, batch, atol=1e-5)
        at_jax = reward(jnp.asarray(walk[:-1]), jnp.asarray(walk[1:]))
        assert isinstance(at_jax, jax.Array)
        np.testing.assert_allclose(at_jax, batch, atol=1e-5)
        for traced in (jax.vmap(reward), jax.jit(reward)):
            found = traced(jnp.asarray(walk[:-1]), jnp.asarray(walk[1:]))
            np.testing.assert_allclose(found, batch, atol=1e-5)

    @pytest.mark.parametrize("ends_for_good", [False, True])
    def test_shaping_telescopes_along_a_walk(self, four_room, walk, positions, ends_for_good):
        reward = GoalReward("potential", Goal(positions[0]), four_room, gamma=0.9, scale=10.0)
        sparse = GoalReward("sparse", Goal(positions[0]))
        terminated = np.arange(40) == (39 if ends_for_good else -1)
        shaping = reward(walk[:-1], walk[1:], terminated) - sparse(walk[:-1], walk[1:])
        potential = -10 * latent_distance(four_room, walk, positions[0])
        assert potential[-1] < -0.1, "a walk that ends at the goal would not tell the two ends apart"
        last = 0.0 if ends_for_good else 0.9**40 * potential[-1]
        assert np.sum(0.9 ** np.arange(40) * shaping) == pytest.approx(last - potential[0], abs=1e-4)

    def test_the_goal_itself(self, four_room, positions):
        """Staying there costs nothing under any form, and leaving does."""
        for form in FORMS:
            reward = GoalReward(form, Goal(positions[7]), four_room, gamma=0.9)
            assert reward(positions[7], positions[7]) == 0
            assert reward(positions[7], positions[8]) < -0.01

    @pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
    @pytest.mark.parametrize("size", [1, 3, 16, 67])
    def test_the_goal_is_at_distance_0_in_any_batch(self, four_room, positions, kind, size):
        """Rounding depends on the size of a batch and on the row, and must not show there."""
        goal, column = positions[7], Goal(positions[7, 1:], h=column_of, state=positions[7])
        for row in {0, size // 2, size - 1}:
            batch = positions[:size].copy()
            batch[row] = goal
            for one in (Goal(goal), column):
                to = GoalReward("mix", one, four_room, "commute").distances(kind(batch))
                assert (to.raw[row], to.latent[row]) == (0, 0)

    def test_the_radius_counts_as_reached_and_beyond_it_does_not(self):
        reward = GoalReward("sparse", Goal(np.array([1.0, 1.0]), radius=0.5))
        there = np.array([[1.0, 0.5], [1.5, 1.0], [1.0, 0.499], [0.6, 0.6], [1.0, 1.0]])
        assert reward(np.zeros((5, 2)), there).tolist() == [0, 0, -1, -1, 0]

    def test_the_default_radius_forgives_single_precision_and_no_more(self):
        exactly = np.array([2 * 3 / 14 - 1, 2 * 5 / 14 - 1])
        reward = GoalReward("sparse", Goal(exactly))
        assert (exactly.astype(np.float32) != exactly).any()
        assert reward(exactly, exactly.astype(np.float32)) == 0
        assert reward(exactly, exactly + np.array([1e-5, 0])) == -1

    def test_scale_is_that_of_the_embedding_alone(self, four_room, walk, positions):
        goal = Goal(positions[0])
        for form in ("sparse", "l2", "rawmix"):
            plain, scaled = GoalReward(form, goal, four_room), GoalReward(form, goal, four_room, scale=5.0)
            np.testing.assert_array_equal(plain(walk[:-1], walk[1:]), scaled(walk[:-1], walk[1:]))


def position_of(states):
    return states[..., :2]


def column_of(positions):
    return positions[..., 1:]


class TestGoalSpaces:
    """Where Z is not the state space, φ embeds either of the two."""

    @pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
    @pytest.mark.parametrize("form", BY_HAND)
    def test_phi_of_the_goal_space(self, four_room, walk, moving, positions, form, kind):
        """φ: Z → R^d, so that a state is rewarded as its position is."""
        goal = Goal(positions[0], h=position_of)
        rewards = GoalReward(form, goal, four_room, gamma=0.9)(kind(moving[:-1]), kind(moving[1:]))
        plain = GoalReward(form, Goal(positions[0]), four_room, gamma=0.9)
        np.testing.assert_allclose(rewards, plain(walk[:-1], walk[1:]), atol=1e-5)

    @pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
    def test_phi_of_whole_states(self, four_room, positions, kind):
        """φ: S → R^d with h⁻¹(z_g): the goal is a column, and the embedded goal one cell of it."""
        column, chosen = positions[0, 1:], positions[exact.cells("FourRoom").index((13, 1))]
        goal = Goal(column, h=column_of, state=chosen)
        to = GoalReward("mix", goal, four_room).distances(kind(positions))
        np.testing.assert_allclose(to.raw, np.abs(positions[:, 1] - column), atol=1e-6)
        np.testing.assert_array_equal(to.reached, [c == 1 for _, c in exact.cells("FourRoom")])
        np.testing.assert_allclose(to.latent, latent_distance(four_room, positions, chosen), atol=1e-5)
        assert to.latent[0] > 0.1, "(1,1) achieves the goal, but it is not the embedded state"

    def test_without_the_state_phi_is_given_the_goal_space_and_refuses_it(self, four_room, positions):
        reward = GoalReward("mix", Goal(positions[0, 1:], h=column_of), four_room)
        with pytest.raises(ConfigError, match=r"\(152, 1\)"):
            reward(positions, positions)


class TestSteps:
    """Distances in the embedding counted in steps."""

    @given(st.lists(st.integers(0, 30), min_size=2, max_size=20), st.floats(1e-3, 1e3))
    def test_true_steps_in_other_units(self, starts, unit):
        here = np.array(starts, float)
        there = np.abs(here - 1)
        assert one_step_scale(unit * here, unit * there) == pytest.approx(1 / unit)
        assert one_step_scale(unit * there, unit * here) == pytest.approx(1 / unit)

    @pytest.mark.parametrize("before", [1.0, 25.0])
    def test_hitting_in_steps(self, four_room, walk, positions, before):
        reward = GoalReward("potential", Goal(positions[0]), four_room, "hitting", gamma=0.9, scale=before)
        latent = reward.in_steps(walk[:-1], walk[1:]).distances(walk).latent
        change = np.abs(np.diff(np.asarray(latent, np.float64)))
        assert change[change > 0].mean() == pytest.approx(1, rel=1e-4)

    @pytest.mark.parametrize("filter", ["soft", "commute"])
    @pytest.mark.parametrize("before", [1.0, 25.0])
    def test_a_reward_in_steps(self, four_room, walk, positions, filter, before):
        """Whatever its scale was, the distance then changes by 1 in the mean of the moves that change it."""
        reward = GoalReward("potential", Goal(positions[0]), four_room, filter, gamma=0.9, scale=before)
        in_steps = reward.in_steps(walk[:-1], walk[1:])
        latent = latent_distance(four_room, walk, positions[0], filter)
        change = np.abs(np.diff(latent))
        moved = (walk[1:] != walk[:-1]).any(axis=1)
        assert 0 < moved.sum() < 40, "some moves should be into walls"
        assert in_steps.scale == pytest.approx(1 / change[moved].mean(), rel=1e-4)
        np.testing.assert_allclose(
            in_steps.distances(walk).latent, in_steps.scale * latent, rtol=1e-4, atol=1e-5 * in_steps.scale
        )
        unchanged = ("form", "goal", "representation", "filter", "gamma")
        assert all(getattr(in_steps, name) is getattr(reward, name) for name in unchanged)

    def test_a_distance_that_never_changes_has_no_steps(self, four_room, positions):
        reward = GoalReward("potential", Goal(positions[0]), four_room, gamma=0.9)
        for scale_of in (one_step_scale, reward.in_steps):
            with pytest.raises(ConfigError, match="the same everywhere"):
                scale_of(positions[:3], positions[:3])


class TestRefused:
    def refuse(self, words: str, form: str, representation, gamma: float | None) -> None:
        """By the check and by the reward alike."""
        with pytest.raises(ConfigError, match=words):
            check_form(form, has_representation=representation is not None, gamma=gamma)
        with pytest.raises(ConfigError, match=words):
            GoalReward(form, Goal(np.zeros(2)), representation, gamma=gamma)

    def test_an_unknown_form(self):
        with pytest.raises(ConfigError, match=r"unknown reward 'Potential'; did you mean potential\?"):
            check_form("Potential", has_representation=True, gamma=0.9)

    @pytest.mark.parametrize("form", SHAPED_BY_PHI)
    def test_a_form_that_lacks_its_representation(self, form):
        self.refuse(f"'{form}'.* representation", form, None, 0.9)

    def test_potential_without_gamma(self, four_room):
        self.refuse("'potential'.* gamma", "potential", four_room, None)

    @pytest.mark.parametrize("gamma", [0.0, -0.5, 1.001, np.inf, np.nan])
    def test_a_gamma_that_is_no_discount(self, four_room, gamma):
        for form in BY_HAND:
            self.refuse(f"gamma.* {gamma!r}", form, four_room, gamma)

    @pytest.mark.parametrize("scale", [0.0, np.inf, np.nan])
    def test_a_scale_that_is_none(self, scale):
        with pytest.raises(ConfigError, match=f"scale.* {scale!r}"):
            GoalReward("l2", Goal(np.zeros(2)), scale=scale)

    @pytest.mark.parametrize("z", [3, np.zeros((2, 2))])
    def test_a_goal_that_is_no_vector(self, z):
        with pytest.raises(ConfigError, match="goal z"):
            Goal(z)

    @pytest.mark.parametrize("radius", [-1.0, np.nan, np.inf])
    def test_a_radius_that_cannot_be(self, radius):
        with pytest.raises(ConfigError, match=f"radius.* {radius}"):
            Goal(np.zeros(2), radius)

    def test_observations_that_are_no_goal_vectors(self):
        with pytest.raises(ConfigError, match=r"h\(s\).*\(4,\).*\(2,\)"):
            GoalReward("l2", Goal(np.zeros(2)))(np.arange(4), np.arange(4))

    def test_only_a_distance_in_the_embedding_can_be_counted_in_steps(self):
        with pytest.raises(ConfigError, match=r"'l2'.* in_steps"):
            GoalReward("l2", Goal(np.zeros(2))).in_steps(np.zeros((2, 2)), np.ones((2, 2)))


def test_indices_reach_a_goal_through_h():
    positions = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    reward = GoalReward("rawmix", Goal(np.zeros(2), h=lambda index: positions[index], state=0))
    assert reward(np.array([1, 1, 1]), np.array([0, 1, 2])).tolist() == [0.0, -1.0, -1.5]


@pytest.mark.parametrize("form", ["l2", "rawmix"])
def test_the_gradient_at_the_goal_is_finite(form):
    reward = GoalReward(form, Goal(np.zeros(2)))
    gradient = jax.grad(lambda state: reward(state, state))(jnp.zeros(2))
    assert np.isfinite(gradient).all()
