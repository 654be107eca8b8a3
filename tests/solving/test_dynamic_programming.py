"""Value iteration and exact returns, against dense tables swept here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.mazes import parse_maze
from lapwing.solving.dynamic_programming import (
    checked_gamma,
    optimal_values,
    policy_values,
    random_values,
    value_iteration,
)
from tests.support.exact import moves, small_mazes


def swept(table: list[list[int]], rewards: np.ndarray, gamma: float) -> np.ndarray:
    """The largest return from each state: one state after another, until nothing changes."""
    values = [0.0] * len(table)
    for _ in range(2_000):
        values = [max(rewards[there] + gamma * values[there] for there in row) for row in table]
    return np.array(values)


def walked(table: list[list[int]], actions: np.ndarray, rewards: np.ndarray, gamma: float) -> np.ndarray:
    """The return of a policy from each state, by walking until what is to come is nothing."""
    returns = []
    for start in range(len(table)):
        here, total = start, 0.0
        for step in range(700):
            here = table[here][actions[here]]
            total += gamma**step * rewards[here]
        returns.append(total)
    return np.array(returns)


@settings(max_examples=15)
@given(small_mazes(), st.integers(0, 1_000), st.sampled_from([0.0, 0.5, 0.9]))
def test_the_best_return_of_any_maze(text, seed, gamma):
    table, rng = moves(text), np.random.default_rng(seed)
    world, rewards = GridWorld(parse_maze(text, name="small")), rng.normal(size=len(table))
    np.testing.assert_allclose(optimal_values(world, rewards, gamma), swept(table, rewards, gamma), atol=1e-4)


@settings(max_examples=15)
@given(small_mazes(), st.integers(0, 1_000))
def test_the_return_of_any_policy(text, seed):
    table, rng = moves(text), np.random.default_rng(seed)
    world, rewards = GridWorld(parse_maze(text, name="small")), rng.normal(size=len(table))
    actions = rng.integers(0, 4, len(table))
    found = policy_values(world, actions, rewards, 0.95)
    np.testing.assert_allclose(found, walked(table, actions, rewards, 0.95), atol=1e-8)
    assert (found <= optimal_values(world, rewards, 0.95) + 1e-4).all()


def test_random_actions_by_hand():
    """Two cells in a row: three moves of four stay."""
    world = GridWorld(parse_maze("..", name="pair"))
    found = random_values(world, np.array([1.0, 0.0]), 0.5)
    # v0 = ¾(1 + ½v0) + ¼·½v1 and v1 = ¼(1 + ½v0) + ¾·½v1
    np.testing.assert_allclose(found, np.linalg.solve([[0.625, -0.125], [-0.125, 0.625]], [0.75, 0.25]))


def test_an_action_that_was_never_seen_is_never_best():
    transition = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]))
    seen = np.array([[True, False], [True, True]])
    q = value_iteration(transition, np.array([0.0, 1.0]), 0.5, seen)
    np.testing.assert_allclose(q, [[0.0, -np.inf], [2.0, 2.0]], atol=1e-5)


def test_after_a_state_that_was_never_left_there_is_nothing():
    transition = sparse.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]]))
    q = value_iteration(transition, np.array([0.0, 3.0]), 0.9, np.array([[True], [False]]))
    np.testing.assert_allclose(q, [[3.0], [0.0]])


@pytest.mark.parametrize("gamma", [-0.1, 1.0, 2.0, float("nan")])
def test_a_discount_that_is_none(gamma):
    with pytest.raises(ConfigError, match="gamma"):
        checked_gamma(gamma)
