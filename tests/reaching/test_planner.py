import numpy as np

from lapwing.reaching.graph import Graph
from lapwing.reaching.planner import Planner, usual_ahead


def line(count: int, *, steps: float = 2.0, ahead: float = 5.0) -> Planner:
    """Landmarks at 0, 1, …, joined to their neighbours both ways."""
    here = np.arange(count - 1)
    begins, ends = np.append(here, here + 1), np.append(here + 1, here)
    graph = Graph(count, begins, ends, np.full(len(begins), steps, np.float32))
    return Planner(graph, np.arange(count, dtype=np.float32)[:, None], ahead)


def test_a_way_point_is_a_little_ahead_on_the_way():
    planner = line(20)
    here, goals = np.array([[3.0], [12.2]]), np.array([[15.0], [2.0]])
    np.testing.assert_array_equal(planner.way_points(here, goals), [6, 9])


def test_near_the_goal_it_aims_at_the_goal_itself():
    assert line(20).way_points(np.array([[3.0]]), np.array([[4.0]]))[0] == -1


def test_a_way_takes_as_many_steps_as_its_edges():
    planner = line(20)
    np.testing.assert_allclose(planner.ways(np.array([[3.0]]), np.array([[15.0]])).steps, [24.0])
    assert planner.route(np.array([3.0]), np.array([6.0])) == [3, 4, 5, 6]


def test_where_no_way_leads_there_is_no_route():
    graph = Graph(10, np.arange(4), np.arange(1, 5), np.ones(4, np.float32))
    planner = Planner(graph, np.arange(10, dtype=np.float32)[:, None], 3.0)
    assert planner.route(np.array([0.0]), np.array([9.0])) is None
    assert np.isinf(planner.ways(np.array([[0.0]]), np.array([[9.0]])).steps[0])
    assert planner.way_points(np.array([[0.0]]), np.array([[9.0]]))[0] == -1


def test_how_far_ahead_goes_with_the_steps_between_landmarks():
    assert usual_ahead(line(9, steps=3.0).graph) == 6.0


def test_a_state_past_its_landmark_is_not_sent_back_to_it():
    """Four landmarks lie close together behind it, and the next is far: its way begins at the nearest."""
    at = np.array([-1.5, -1.0, -0.5, 0.0, 10.0, 20.0, 20.5, 21.0, 21.5])
    here = np.arange(len(at) - 1)
    begins, ends = np.append(here, here + 1), np.append(here + 1, here)
    graph = Graph(len(at), begins, ends, np.tile(2 * np.diff(at), 2).astype(np.float32))
    planner = Planner(graph, at[:, None], ahead=5.0)
    assert planner.way_points(np.array([[3.0]]), np.array([[20.0]]))[0] == 4
