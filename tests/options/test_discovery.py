"""The online loop: what it knows, what it finds, and that it is a random walk without."""

import numpy as np

from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import parse_maze, read_maze
from lapwing.options.discovery import seen_chain, walk_and_discover, with_slowest
from lapwing.options.table import no_options, paths

WORLD = GridWorld(read_maze("TwoRoom"))


def test_a_walk_goes_by_the_moves_of_the_maze():
    found = walk_and_discover(WORLD.next_state, rounds=4, steps=200, share=0.3, seed=2)
    assert len(found.states) == 801
    for here, there in zip(found.states, found.states[1:], strict=False):
        assert there in WORLD.next_state[here]
    assert len(found.options.names) == 8


def test_without_discovery_there_are_no_options():
    found = walk_and_discover(WORLD.next_state, rounds=2, steps=50, share=0.3, discover=False)
    assert found.options.names == ()


def test_options_lead_to_the_ends_of_what_was_seen_and_not_beyond():
    world = GridWorld(parse_maze("#########\n#.......#\n#########\n", name="corridor"))
    walk = np.array([1, 2, 3, 4, 3, 2, 1, 2, 3, 4])  # of 0 to 6; the ends were never seen
    known = np.repeat(np.arange(7)[:, None], 4, axis=1)
    known[1:4, 3], known[2:5, 2] = [2, 3, 4], [1, 2, 3]
    table = with_slowest(no_options(7), known, walk, gamma=0.9)
    ends = paths(world.next_state, table, 10).ends
    assert {int(ends[0, 2]), int(ends[1, 2])} == {1, 4}
    assert not table.begins[:, [0, 5, 6]].any()


def test_the_chain_of_a_walk_counts_steps_both_ways():
    weights = seen_chain(np.array([0, 1, 0, 1, 2]), 3).weights.toarray()
    np.testing.assert_allclose(weights, np.array([[0, 3, 0], [3, 0, 1], [0, 1, 0]]) / 8)
