"""Covering options against eigenvectors of the graph with the edges added, written out."""

import numpy as np
import pytest

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.laplacian.chain import true_chain
from lapwing.mazes import parse_maze, read_maze
from lapwing.options.covering import covering_options, covering_pairs
from lapwing.options.table import paths


def written_out(world: GridWorld, count: int) -> list[set[int]]:
    """Pairs by the Laplacian D - A of the graph of moves, with an edge more each time."""
    size = world.n_states
    edges = np.zeros((size, size))
    np.add.at(edges, (np.repeat(np.arange(size), world.n_actions), world.next_state.ravel()), 1.0)
    found = []
    for _ in range(count):
        fiedler = np.linalg.eigh(np.diag(edges.sum(axis=1)) - edges)[1][:, 1]
        low, high = int(fiedler.argmin()), int(fiedler.argmax())
        found.append({low, high})
        edges[low, high] += 1
        edges[high, low] += 1
    return found


def test_pairs_are_those_of_the_graph_with_the_edges_added():
    world = GridWorld(read_maze("HardMaze"))
    values, functions = true_chain(world.transition_matrix()).eigenpairs(world.n_states)
    weight = 1 / world.next_state.size
    pairs = covering_pairs(values[1:], functions[:, 1:], 4, weight)
    assert [set(pair) for pair in pairs] == written_out(world, 4)


def test_an_option_leads_from_one_end_to_the_other_by_a_shortest_path():
    world = GridWorld(read_maze("FourRoom"))
    values, functions = true_chain(world.transition_matrix()).eigenpairs(20)
    table = covering_options(world, values[1:], functions[:, 1:], 4)
    found = paths(world.next_state, table, world.n_states)
    for option in range(4):
        (begin,), (end,) = np.flatnonzero(table.begins[option]), np.flatnonzero(table.stops[option])
        assert found.ends[option, begin] == end
        assert found.lengths[option, begin] == world.steps_to(int(end))[begin]
    assert (table.begins[0] == table.stops[1]).all()


def test_more_than_there_are_pairs_is_refused():
    world = GridWorld(parse_maze("####\n#..#\n####\n", name="tiny"))
    values, functions = true_chain(world.transition_matrix()).eigenpairs(2)
    with pytest.raises(ConfigError, match="count"):
        covering_options(world, values[1:], functions[:, 1:], 4)
