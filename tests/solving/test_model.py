"""Policies of any reward, against value iteration on the exact chain, written out here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.data.experience import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, DatasetError, LapwingWarning
from lapwing.mazes import parse_maze
from lapwing.solving.model import fit_model
from lapwing.solving.steps import experienced_steps, maze_steps
from tests.support.exact import moves, small_mazes

GAMMA = 0.9


def best(table: list[list[int]], rewards: np.ndarray) -> np.ndarray:
    """Q by sweeping a table."""
    q = np.zeros((len(table), 4))
    for _ in range(400):
        values = q.max(axis=1)
        q = np.array([[rewards[there] + GAMMA * values[there] for there in row] for row in table])
    return q


def as_floats(observations: np.ndarray) -> np.ndarray:
    """An embedding that tells states apart."""
    return np.asarray(observations, np.float64).reshape(len(observations), -1)


def walk(table: list[list[int]], steps: int, seed: int) -> Experience:
    """Random moves between indices, in episodes of ten."""
    rng, seen, actions = np.random.default_rng(seed), [], []
    for _ in range(steps // 10):
        here, episode = int(rng.integers(len(table))), []
        for _ in range(10):
            episode.append(here)
            actions.append(int(rng.integers(4)))
            here = table[here][actions[-1]]
        seen += [*episode, here]
    return Experience(np.array(seen), [11] * (steps // 10), np.arange(len(table)), actions=actions)


class TestEnumerated:
    @settings(max_examples=10)
    @given(small_mazes(), st.integers(0, 1_000))
    def test_from_the_maze_itself_q_is_that_of_the_chain(self, text, seed):
        world = GridWorld(parse_maze(text, name="small"))
        rewards = np.random.default_rng(seed).normal(size=world.n_states)
        states = world.observations("position")
        policy = fit_model(as_floats, maze_steps(world, states)).solve(rewards, GAMMA)
        expected = best(moves(text), rewards)
        np.testing.assert_allclose(policy.q(states), expected, atol=1e-3)
        np.testing.assert_allclose(policy.values(states), expected.max(axis=1), atol=1e-3)
        chosen = expected[np.arange(len(expected)), policy.act(states)]
        np.testing.assert_allclose(chosen, expected.max(axis=1), atol=1e-3)

    @settings(max_examples=6)
    @given(small_mazes(), st.integers(0, 1_000))
    def test_from_a_walk_that_saw_every_move_it_is_the_same(self, text, seed):
        table = moves(text)
        experience = walk(table, 100 * len(table), seed)
        rewards = np.random.default_rng(seed).normal(size=len(table))
        policy = fit_model(as_floats, experienced_steps(experience)).solve(rewards, GAMMA)
        np.testing.assert_allclose(policy.q(np.arange(len(table))), best(table, rewards), atol=1e-3)

    def test_one_observation_answers_like_a_batch(self):
        world = GridWorld(parse_maze("...\n..#\n", name="small"))
        states = world.observations("position")
        policy = fit_model(as_floats, maze_steps(world, states)).solve([0, 0, 1, 0, 0])
        assert policy.act(states[0]) == policy.act(states)[0] == 3
        assert isinstance(policy.act(states[0]), int)
        np.testing.assert_array_equal(policy.q(states[1]), policy.q(states)[1])
        assert np.shape(policy.values(states[0])) == ()

    def test_three_ways_to_give_a_reward(self):
        world = GridWorld(parse_maze("....", name="row"))
        states = world.observations("position")
        model = fit_model(as_floats, maze_steps(world, states))
        expected = np.array([0.0, 0.0, 2.0, 0.0])
        for reward in (expected, expected.tolist(), lambda x: 2.0 * (np.abs(x[:, 1] - 1 / 3) < 0.1)):
            np.testing.assert_array_equal(model.rewards(reward), expected)
        np.testing.assert_array_equal(model.rewards((states, expected)), expected)

    def test_labels_of_the_same_state_are_averaged_and_the_nearest_fills_in(self):
        world = GridWorld(parse_maze("....", name="row"))
        states = world.observations("position")
        model = fit_model(as_floats, maze_steps(world, states))
        labels = (states[[0, 0, 3]], [1.0, 3.0, -1.0])
        np.testing.assert_array_equal(model.rewards(labels), [2.0, 2.0, -1.0, -1.0])

    def test_states_that_were_never_seen_are_no_landmarks(self):
        experience = Experience([0, 1, 0, 1], [4], np.arange(5), actions=[3, 2, 3])
        policy = fit_model(as_floats, experienced_steps(experience)).solve([0, 1, 50, 50, 50.0])
        assert policy.q_table.shape == (2, 4)
        assert policy.act(np.array([0, 1])).tolist() == [3, 2]

    @pytest.mark.parametrize("rewarded", [2, 3])
    def test_a_reward_that_no_step_arrives_at_is_warned_of(self, rewarded):
        """State 2 is where an episode begins, state 3 was never seen."""
        experience = Experience([0, 1, 0, 2, 1], [3, 2], np.arange(4), actions=[3, 2, 1])
        model = fit_model(as_floats, experienced_steps(experience))
        with pytest.warns(LapwingWarning, match="same reward"):
            model.solve((np.arange(4) == rewarded) * 1.0)
        assert model.solve((np.arange(4) == 1) * 1.0).act(0) == 3

    def test_a_reward_moved_by_a_constant_has_the_same_policy(self):
        """For r + c adds c / (1 - γ) to every return."""
        world = GridWorld(parse_maze(".....\n.#.#.\n", name="comb"))
        model = fit_model(as_floats, maze_steps(world, world.observations("position")))
        rewards = np.random.default_rng(0).normal(size=world.n_states)
        first, second = model.solve(rewards, GAMMA), model.solve(rewards + 3, GAMMA)
        np.testing.assert_allclose(second.q_table, first.q_table + 3 / (1 - GAMMA), atol=1e-3)


@pytest.fixture(scope="module")
def interval():
    """A point on [0, 1] that actions move by 0.05 to the left, to the right, or not at all."""
    rng = np.random.default_rng(0)
    here, actions = rng.uniform(0, 1, 3_000), rng.integers(0, 3, 3_000)
    there = np.clip(here + np.array([-0.05, 0.05, 0.0])[actions], 0, 1)
    episodes = np.stack([here, there], axis=1).reshape(-1, 1)
    experience = Experience(episodes, [2] * 3_000, actions=actions)
    return fit_model(as_floats, experienced_steps(experience), landmarks=60)


class TestContinuous:
    def test_it_goes_to_a_goal_and_stays(self, interval):
        policy = interval.solve(lambda x: np.abs(x[:, 0] - 0.7) < 0.04)
        assert policy.act(np.array([[0.1], [0.4], [0.6]])).tolist() == [1, 1, 1]
        assert policy.act(np.array([[0.8], [0.95]])).tolist() == [0, 0]
        assert policy.act(np.array([0.7])) == 2

    def test_values_fall_with_the_steps_to_the_goal(self, interval):
        values = interval.solve(lambda x: x[:, 0] > 0.9, 0.95).values(np.linspace(0, 0.8, 9)[:, None])
        assert (np.diff(values) > 0).all()

    def test_it_flees_from_a_penalty_by_the_shorter_way(self, interval):
        policy = interval.solve(lambda x: -1.0 * (np.abs(x[:, 0] - 0.5) < 0.2))
        assert policy.act(np.array([[0.42], [0.58]])).tolist() == [0, 1]

    def test_an_array_over_states_is_refused(self, interval):
        with pytest.raises(ConfigError, match="reward"):
            interval.solve(np.zeros(60))


class TestRefused:
    WORLD = GridWorld(parse_maze("...", name="row"))
    MODEL = fit_model(as_floats, maze_steps(WORLD, WORLD.observations("position")))

    @pytest.mark.parametrize(
        "reward",
        [
            [0.0, np.nan, 0.0],
            [0.0, np.inf, 0.0],
            [0.0, 1.0],
            [[0.0, 1.0, 2.0]],
            ["a", "b", "c"],
            lambda x: x,
            lambda x: np.full(len(x), np.nan),
            lambda x: 1.0,
            (np.zeros((2, 2)), [1.0]),
            (np.zeros((2, 3)), [1.0, 2.0]),
            (np.zeros((0, 2)), []),
            (np.zeros((1, 2)), [np.nan]),
            (np.zeros((1, 2)), [0.0], [0.0]),
        ],
    )
    def test_a_reward_that_is_none(self, reward):
        with pytest.raises(ConfigError, match="reward"):
            self.MODEL.solve(reward)

    def test_data_without_actions(self):
        with pytest.raises(DatasetError, match="actions"):
            experienced_steps(Experience([0, 1, 0], [3], np.arange(2)))

    @pytest.mark.parametrize("actions", [[[0.5], [0.1]], [[0, 1], [1, 0]], [-1, 0], [0, 5_000]])
    def test_actions_that_are_not_numbered(self, actions):
        with pytest.raises(ConfigError, match="actions"):
            experienced_steps(Experience([0, 1, 0], [3], np.arange(2), actions=actions))
