"""Eigenoptions against a plain stopping problem, solved state by state."""

import numpy as np
import pytest

from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import parse_maze, read_maze
from lapwing.options.eigenoptions import eigenoption, eigenoptions
from lapwing.options.table import paths

MAZE = parse_maze("#########\n#...#...#\n#.#...#.#\n#...#...#\n#########\n", name="small")


def stopping_values(next_state: np.ndarray, f: np.ndarray, gamma: float) -> np.ndarray:
    """V(s) = max(0, max_a f(s') - f(s) + γ V(s')), by many sweeps."""
    values = np.zeros(len(f))
    for _ in range(2_000):
        values = np.array(
            [
                max(0.0, *(f[there] - f[here] + gamma * values[there] for there in next_state[here]))
                for here in range(len(f))
            ]
        )
    return values


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95])
def test_the_policy_is_optimal_and_stops_where_nothing_pays(gamma):
    world = GridWorld(MAZE)
    f = np.random.default_rng(3).standard_normal(world.n_states)
    values = stopping_values(world.next_state, f, gamma)
    actions, stops = eigenoption(world.next_state, f, gamma)
    np.testing.assert_array_equal(stops, values < 1e-9)
    here = np.flatnonzero(~stops)
    there = world.next_state[here, actions[here]]
    gained = f[there] - f[here] + gamma * values[there]
    np.testing.assert_allclose(gained, values[here], atol=1e-4)


def test_every_eigenoption_ends_whatever_it_climbs():
    world = GridWorld(read_maze("HardMaze"))
    noise = np.random.default_rng(0).standard_normal((world.n_states, 5))
    table = eigenoptions(world.next_state, noise, 10, gamma=0.99)
    found = paths(world.next_state, table, world.n_states)
    assert not found.cut.any()
    assert table.stops[np.arange(10)[:, None], found.ends].all()


def test_both_signs_of_a_function_go_opposite_ways():
    world = GridWorld(parse_maze("#######\n#.....#\n#######\n", name="corridor"))
    ramp = np.arange(5.0)[:, None]
    table = eigenoptions(world.next_state, ramp, 2, gamma=0.9)
    assert table.names == ("f2+", "f2-")
    assert paths(world.next_state, table, 9).ends.tolist() == [[4] * 5, [0] * 5]
    assert paths(world.next_state, table, 9).lengths.tolist() == [[4, 3, 2, 1, 0], [0, 1, 2, 3, 4]]
