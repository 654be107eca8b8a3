"""Diffusion and cover times against closed forms on a ring, and against a walk that is simulated plainly."""

import numpy as np
import pytest

from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import read_maze
from lapwing.options.eigenoptions import eigenoptions
from lapwing.options.table import OptionTable, no_options, paths
from lapwing.options.walk import cover_times, diffusion_time, goals_of


def ring(size: int) -> np.ndarray:
    """A state's neighbours on a circle."""
    here = np.arange(size)
    return np.column_stack([(here - 1) % size, (here + 1) % size])


def round_trip(size: int) -> OptionTable:
    """An option that goes right for ever."""
    begins = np.ones((1, size), bool)
    return OptionTable(np.ones((1, size), np.int64), begins, ~begins, ("round",))


def test_diffusion_time_of_a_ring_has_a_closed_form():
    size = 11  # the hitting time over a distance of k is k (N - k), so the mean is N (N + 1) / 6
    found = diffusion_time(ring(size), no_options(size), None)
    assert found.decisions == pytest.approx(size * (size + 1) / 6)
    assert found.steps == pytest.approx(found.decisions)


def test_cover_time_of_a_ring_has_a_closed_form():
    size = 8  # N (N - 1) / 2
    times = cover_times(ring(size), no_options(size), None, seeds=4_000, most=10_000, seed=1)
    spread = times.std() / np.sqrt(len(times))
    assert times.mean() == pytest.approx(size * (size - 1) / 2, abs=5 * spread)


def test_an_option_that_never_ends_is_cut():
    size, longest = 9, 4
    found = paths(ring(size), round_trip(size), longest)
    assert found.cut.all()
    assert (found.lengths == longest).all()
    np.testing.assert_array_equal(found.ends[0], (np.arange(size) + longest) % size)
    assert np.isfinite(diffusion_time(ring(size), round_trip(size), 0.5, longest=longest)).all()


def test_an_option_alone_passes_every_state():
    """With all decisions an option round the ring, the goal is passed in the first one."""
    size = 9
    found = diffusion_time(ring(size), round_trip(size), 1.0, longest=size)
    assert found.decisions == pytest.approx(1)
    assert found.steps == pytest.approx(size / 2)
    times = cover_times(ring(size), round_trip(size), 1.0, seeds=5, most=100, longest=size)
    assert (times == size - 1).all()


def simulated(next_state, table, share, goal, start, rng) -> tuple[int, int]:
    """Decisions and steps until the goal, one walk, with nothing precomputed."""
    here, decisions, steps = start, 0, 0
    while here != goal:
        decisions += 1
        able = np.flatnonzero(table.begins[:, here])
        n_actions = next_state.shape[1]
        chance = len(able) / (len(able) + n_actions) if share is None else share * (len(able) > 0)
        if rng.random() >= chance:
            here, steps = next_state[here, rng.integers(n_actions)], steps + 1
            continue
        option = rng.choice(able)
        while here != goal and not table.stops[option, here]:
            here, steps = next_state[here, table.actions[option, here]], steps + 1
    return decisions, steps


@pytest.mark.parametrize("share", [None, 0.3])
def test_diffusion_time_with_options_is_that_of_simulated_walks(share):
    world = GridWorld(read_maze("GridMaze-7"))
    rng = np.random.default_rng(5)
    table = eigenoptions(world.next_state, rng.standard_normal((world.n_states, 3)), 6, gamma=0.9)
    goal = 3
    exact = diffusion_time(world.next_state, table, share, goals=np.array([goal]))
    starts = [state for state in range(world.n_states) if state != goal]
    walks = [
        simulated(world.next_state, table, share, goal, start, rng) for start in starts for _ in range(400)
    ]
    spread = np.std(walks, axis=0) / np.sqrt(len(walks))
    np.testing.assert_array_less(np.abs(np.mean(walks, axis=0) - exact), 5 * spread)


def test_walks_that_take_too_long_count_as_given_up():
    size = 30
    assert (cover_times(ring(size), no_options(size), None, seeds=6, most=35) <= 35).all()
    assert cover_times(ring(size), no_options(size), None, seeds=6, most=28).tolist() == [28] * 6


def test_a_large_maze_has_some_goals():
    assert len(goals_of(300)) == 300
    assert len(goals_of(1_088)) == 40
