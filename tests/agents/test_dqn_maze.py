"""DQN over a maze, against value iteration, the moves of the drawing, and walks simulated here."""

import dataclasses
from functools import cache
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from lapwing.agents.dqn import Training
from lapwing.agents.dqn_maze import AgentState, train_on_maze
from lapwing.errors import NonFiniteError
from lapwing.settings.agents import AgentSettings
from tests.support import exact
from tests.support.training import MAZE, TINY, Interrupted, Kept, task_of


def sparse_rewards(stay: bool = False) -> np.ndarray:
    table, goal = exact.moves(MAZE, stay=stay), exact.goal_of(MAZE)
    return np.array([[float(there == goal) - 1 for there in row] for row in table])


def trained(settings: AgentSettings = TINY, rewards: np.ndarray | None = None, **how: Any) -> Training:
    rewards = sparse_rewards(settings.stay) if rewards is None else rewards
    return train_on_maze(task_of(settings), rewards, settings, **how)[0]


@cache
def whole() -> tuple[Training, Kept]:
    """An uninterrupted run."""
    kept = Kept()
    return trained(checkpoints=kept, on_chunk=lambda *call: kept.calls.append(call)), kept


def bits(training: Training) -> list[bytes]:
    weights = jax.tree.leaves(eqx.filter(training.q, eqx.is_array))
    return [np.asarray(leaf).tobytes() for leaf in weights]


def optimal_values(table: np.ndarray, rewards: np.ndarray, gamma: float) -> np.ndarray:
    """Q* by value iteration."""
    values = np.zeros(rewards.shape)
    for _ in range(1_000):
        values = rewards + gamma * values.max(axis=1)[table]
    return values


CONVERGING = dataclasses.replace(
    TINY,
    epsilon=1.0,
    random_steps=1_000,
    steps=8_000,
    evaluate_every=8_000,
    batch=128,
    learning_rate=0.003,
    target_every=5,
    target_rate=1.0,
)


@pytest.fixture(scope="module", params=[False, True], ids=["moves", "and stay"])
def converged(request) -> tuple[AgentSettings, Training, AgentState]:
    settings, kept = dataclasses.replace(CONVERGING, stay=request.param), Kept()
    return settings, trained(settings, checkpoints=kept), kept.at(8_000).state


def chi_square(values: np.ndarray, kinds: int) -> float:
    """How far counts are from equal ones, in standard deviations of χ²."""
    counts, expected = np.bincount(values, minlength=kinds), len(values) / kinds
    return float((np.sum((counts - expected) ** 2 / expected) - (kinds - 1)) / np.sqrt(2 * (kinds - 1)))


class TestConverged:
    def test_a_table_of_values_is_the_optimal_one(self, converged):
        """Over episodes of 7 steps, to the values of a task without end: a time limit ends nothing."""
        settings, training, _ = converged
        table = np.array(exact.moves(MAZE, stay=settings.stay))
        expected = optimal_values(table, sparse_rewards(settings.stay), settings.gamma)
        np.testing.assert_allclose(training.q.weight, expected, atol=0.02)

    def test_its_policy_is_the_best(self, converged):
        settings, training, _ = converged
        table, goal = exact.moves(MAZE, stay=settings.stay), exact.goal_of(MAZE)
        steps = np.array(exact.fewest_moves(table, goal))
        # The goal is in a corner, so one can stay there; before that each step but the last costs 1.
        assert training.returns.tolist() == [pytest.approx(-np.maximum(steps - 1, 0).mean())]

    def test_every_action_is_explored_as_often(self, converged):
        settings, _, state = converged
        actions = np.asarray(state.actions)
        for part in (actions[: settings.random_steps], actions[settings.random_steps :]):
            assert chi_square(part, 4 + settings.stay) < 5

    def test_episodes_begin_anywhere(self, converged):
        settings, _, state = converged
        states, n_states = np.asarray(state.states), len(exact.moves(MAZE))
        for part in (states[: settings.random_steps], states[settings.random_steps :]):
            assert chi_square(part[:: settings.episode_length], n_states) < 5


@pytest.mark.parametrize(
    ("observation", "kind", "shape", "rate"),
    [
        ("position", "mlp", (2,), 0.01),
        pytest.param("image", "conv", (3, 4, 3), 0.003, marks=pytest.mark.slow),
    ],
)
def test_networks_learn_the_best_policy_too(observation, kind, shape, rate):
    settings = dataclasses.replace(
        TINY,
        observation=observation,
        epsilon=1.0,
        random_steps=500,
        steps=800,
        evaluate_every=800,
        learning_rate=rate,
        hidden=(32, 32),
    )
    task = task_of(settings)
    training, spec = train_on_maze(task, sparse_rewards(), settings)
    assert (spec.name, spec.dim, spec.shape) == (kind, 4, shape)
    assert training.returns[-1] == pytest.approx(task.optimal_return)


class TestReplay:
    def test_every_step_is_legal_and_episodes_have_their_length(self, converged):
        settings, _, final = converged
        table = np.array(exact.moves(MAZE, stay=settings.stay))
        states, actions = np.asarray(final.states), np.asarray(final.actions)
        assert states.shape == actions.shape == (9_000,)
        for first, last in ((0, 1_000), (1_000, 9_000)):
            led_to = table[states[first : last - 1], actions[first : last - 1]]
            follows = states[first + 1 : last] == led_to
            at_limit = np.arange(1, last - first) % 7 == 0
            assert follows[~at_limit].all()
            # A fresh start among eleven cells is where the last step led now and then.
            assert 0.02 < follows[at_limit].mean() < 0.2
        assert int(final.state) == table[states[-1], actions[-1]]

    def test_it_grows_and_what_is_in_it_stays(self):
        _, kept = whole()
        first, final = kept.first.state, kept.at(120).state
        for name in ("states", "actions"):
            np.testing.assert_array_equal(getattr(first, name)[:50], getattr(final, name)[:50])
            np.testing.assert_array_equal(getattr(kept.at(40).state, name)[:90], getattr(final, name)[:90])
            assert not np.asarray(getattr(kept.at(40).state, name)[90:]).any()
        assert int(kept.at(40).state.state) == int(final.states[90])

    def test_the_first_update_learns_from_what_there_is(self):
        """One random step, one update: Adam moves one value by the learning rate, towards its target."""
        settings, kept = dataclasses.replace(TINY, random_steps=1, steps=1), Kept()
        training = trained(settings, checkpoints=kept)
        first = kept.first.state
        before = np.asarray(first.learner.q.weight)
        state, action = int(first.states[0]), int(first.actions[0])
        there = exact.moves(MAZE)[state][action]
        target = float(there == exact.goal_of(MAZE)) - 1 + 0.9 * before[there].max()
        expected = np.zeros(before.shape)
        expected[state, action] = 0.05 * np.sign(target - before[state, action])
        np.testing.assert_allclose(np.asarray(training.q.weight) - before, expected, atol=1e-6)
        assert kept.rows[0]["loss"] == pytest.approx((target - before[state, action]) ** 2, rel=1e-4)

    def test_without_exploration_steps_are_greedy(self):
        """Values that hardly change: each of the agent's steps takes the best."""
        settings = dataclasses.replace(TINY, epsilon=0.0, learning_rate=1e-9)
        kept = Kept()
        trained(settings, checkpoints=kept)
        final = kept.at(120).state
        best = np.asarray(final.learner.q.weight).argmax(axis=1)
        np.testing.assert_array_equal(final.actions[50:], best[final.states[50:]])


class TestTargetNetwork:
    def test_its_values_are_kept_up(self):
        """max_a Q of the target network in each state, at every checkpoint."""
        _, kept = whole()
        for (state, _), _, _ in [(kept.first, 0, 0.0), *kept.states]:
            np.testing.assert_array_equal(
                state.target_values, np.asarray(state.learner.target.weight).max(axis=1)
            )

    def test_it_moves_in_time_and_by_the_rate(self):
        _, kept = whole()
        before = np.asarray(kept.first.state.learner.target.weight)
        for step in range(5, 121, 5):
            learner = kept.at(step).state.learner
            target, q = np.asarray(learner.target.weight), np.asarray(learner.q.weight)
            if step % 10:
                np.testing.assert_array_equal(target, before)
            else:
                np.testing.assert_allclose(target, 0.3 * q + 0.7 * before, atol=1e-6)
                assert np.abs(target - before).max() > 0.01
            before = target


def simulated_return(values: np.ndarray, length: int) -> float:
    """The mean over all starts of what the greedy policy gets."""
    table, goal, total = exact.moves(MAZE), exact.goal_of(MAZE), 0
    for start in range(len(table)):
        state = start
        for _ in range(length):
            state = table[state][int(values[state].argmax())]
            total -= state != goal
    return total / len(table)


def test_the_return_is_that_of_the_greedy_policy_at_that_time():
    training, kept = whole()
    at = list(range(5, 121, 5))
    expected = [simulated_return(np.asarray(kept.at(step).state.learner.q.weight), 7) for step in at]
    assert len(set(expected)) > 2
    assert training.evaluated_at.tolist() == at
    assert training.returns.tolist() == pytest.approx(expected)
    assert kept.states[-1][0].returns.tolist() == pytest.approx(expected)
    assert [row["return"] for row in kept.rows] == pytest.approx(expected)
    greedy = np.asarray(training.q.weight).argmax(axis=1)
    assert training.returns[-1] == task_of(TINY).mean_return(greedy)


def test_the_return_counts_the_sparse_reward_whatever_is_learned_from():
    training = trained(rewards=-sparse_rewards())
    assert training.returns[-1] == pytest.approx(simulated_return(np.asarray(training.q.weight), 7))
    assert training.returns[-1] < 0


class TestBits:
    def test_the_same_seed_gives_the_same(self):
        assert bits(trained()) == bits(whole()[0])

    def test_different_seeds_differ(self):
        other, kept = Kept(), whole()[1]
        training = trained(dataclasses.replace(TINY, seed=1), checkpoints=other)
        assert bits(training) != bits(whole()[0])
        for of in (lambda k: k.first.state, lambda k: k.at(120).state):
            assert not np.array_equal(of(other).states, of(kept).states)
            assert not np.array_equal(of(other).actions, of(kept).actions)
        assert not np.array_equal(other.first.state.learner.q.weight, kept.first.state.learner.q.weight)

    @pytest.mark.parametrize("every", [1, 1_000])
    def test_how_often_is_evaluated_does_not_matter(self, every):
        training = trained(dataclasses.replace(TINY, evaluate_every=every))
        assert bits(training) == bits(whole()[0])
        assert training.returns[-1] == whole()[0].returns[-1]

    def test_an_interrupted_run_goes_on_to_the_same(self):
        cut = Kept(until=75)
        with pytest.raises(Interrupted):
            trained(checkpoints=cut)
        assert cut.states[-1][1] == 75
        assert not any(cut.last)
        going_on = Kept(states=list(cut.states))
        training = trained(checkpoints=going_on)
        assert bits(training) == bits(whole()[0])
        np.testing.assert_array_equal(training.returns, whole()[0].returns)
        assert [row["step"] for row in going_on.rows] == list(range(80, 121, 5))

    def test_a_finished_run_is_not_trained_further(self):
        training, kept = whole()
        again = Kept(states=list(kept.states))
        second = trained(checkpoints=again)
        assert bits(second) == bits(training)
        np.testing.assert_array_equal(second.returns, training.returns)
        assert again.rows == []
        assert second.seconds == training.seconds


class TestNotFinite:
    def test_is_told_and_nothing_is_kept(self):
        kept = Kept()
        with pytest.raises(NonFiniteError, match=r"step 5;.*--learning-rate"):
            trained(rewards=1e30 * sparse_rewards(), checkpoints=kept)
        assert kept.rows == []
        assert kept.states == []

    def test_is_told_where_only_the_values_are(self):
        """After one step the loss was still finite, and the values are no more."""
        settings = dataclasses.replace(TINY, observation="position", learning_rate=1e30, steps=1)
        with pytest.raises(NonFiniteError, match="step 1;"):
            trained(settings)
