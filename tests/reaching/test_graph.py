import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.reaching.graph import CHANCE, build_graph, with_chances
from lapwing.reaching.jumps import horizons_between
from lapwing.reaching.landmarks import Nearest, choose_landmarks, nearest_landmarks


def walks(step, states: int, *, episodes: int = 30, length: int = 200, seed: int = 0):
    """States of episodes, one after the other, and how many steps follow each."""
    rng = np.random.default_rng(seed)
    seen = np.empty((episodes, length), int)
    seen[:, 0] = rng.integers(states, size=episodes)
    for t in range(1, length):
        seen[:, t] = step(seen[:, t - 1], rng)
    return seen.ravel(), np.tile(np.arange(length)[::-1], episodes)


def graph_of(states, horizons, count):
    return build_graph(Nearest(states, np.zeros(len(states), np.float32)), horizons, count)


def test_a_line_that_is_walked_both_ways_has_its_own_distances():
    count = 9
    states, horizons = walks(lambda s, rng: np.clip(s + rng.choice([-1, 1], len(s)), 0, count - 1), count)
    graph = graph_of(states, horizons, count)
    np.testing.assert_array_equal(graph.distances, np.abs(np.subtract.outer(range(count), range(count))))
    assert len(set(graph.parts.tolist())) == 1


def test_edges_are_directed():
    count = 7
    states, horizons = walks(lambda s, rng: (s + (rng.random(len(s)) < 0.8)) % count, count)
    graph = graph_of(states, horizons, count)
    assert graph.distances[0, 1] < graph.distances[1, 0]
    assert graph.distances[1, 0] >= count - 1
    route = [2]
    while route[-1] != 1:
        route.append(int(graph.following[route[-1], 1]))
    assert len(route) <= count


def test_what_the_data_does_not_join_is_in_two_parts():
    def step(s, rng):
        return np.where(s < 4, rng.integers(0, 4, len(s)), rng.integers(4, 8, len(s)))

    graph = graph_of(*walks(step, 8), 8)
    assert len(set(graph.parts.tolist())) == 2
    assert np.isinf(graph.distances[0, 5])
    assert np.isfinite(graph.distances[0, 3])


def test_no_way_leads_through_a_landmark_that_lumps_two_ends_together():
    """The ends of a line belong to one landmark, which is at its beginning: its other end is no way there."""
    last = 9
    places, horizons = walks(lambda s, rng: np.clip(s + rng.choice([-1, 1], len(s)), 0, last), last + 1)
    lumped = places == last
    nearest = Nearest(np.where(lumped, 0, places), lumped.astype(np.float32))
    graph = build_graph(nearest, horizons, last)
    apart = np.abs(np.subtract.outer(range(last), range(last)))
    np.testing.assert_array_equal(graph.distances, apart)


def test_a_chance_is_a_last_resort_and_the_likelier_one_first():
    graph = graph_of(
        *walks(lambda s, rng: np.where(s < 2, rng.integers(0, 2, len(s)), 2 + rng.integers(0, 2, len(s))), 4),
        4,
    )
    landmark = np.array([0, 2, 0, 2, 0, 3, 0, 1])
    joined = with_chances(graph, landmark, np.array([0, 2, 4, 6]))
    assert joined.distances[0, 1] == graph.distances[0, 1]
    assert CHANCE < joined.distances[0, 2] < joined.distances[0, 3] + CHANCE
    assert np.isinf(joined.distances[2, 0])


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_horizons_stop_at_jumps(lengths, data):
    horizons = np.concatenate([np.arange(length)[::-1] for length in lengths])
    jumps = np.array(sorted(data.draw(st.sets(st.integers(0, len(horizons) - 1)))), int)
    found = horizons_between(horizons, jumps)
    for index, horizon in enumerate(found):
        within = range(index, index + horizons[index])
        assert horizon == next((k for k, at in enumerate(within) if at in jumps), horizons[index])


def test_nearest_landmarks_are_those_of_brute_force():
    rng = np.random.default_rng(1)
    points, landmarks = (
        rng.normal(size=(200, 3)).astype(np.float32),
        rng.normal(size=(9, 3)).astype(np.float32),
    )
    apart = np.linalg.norm(points[:, None].astype(float) - landmarks, axis=2)
    found = nearest_landmarks(points, landmarks)
    np.testing.assert_array_equal(found.landmark, apart.argmin(axis=1))
    np.testing.assert_allclose(found.distance, apart.min(axis=1), atol=1e-3)


@pytest.mark.parametrize("states", [10, 5_000])
def test_landmarks_are_all_states_or_spread_over_them(states):
    points = np.linspace(0, 1, states, dtype=np.float32)[
        np.random.default_rng(0).integers(states, size=5_000), None
    ]
    chosen = choose_landmarks(points, 50, seed=0)
    assert len(chosen) == min(states, len(chosen)) <= 50
    assert np.diff(np.sort(points[chosen, 0])).max() < 0.12
