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
    """From 12.2 landmark 10 is 4.4 steps away, and 9 is 6.4; of 4 and 6 steps the farther is taken."""
    planner = line(20)
    here, goals = np.array([[3.0], [12.2]]), np.array([[15.0], [2.0]])
    np.testing.assert_array_equal(planner.way_points(here, goals), [6, 10])


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


def test_a_way_point_is_not_beyond_a_long_edge():
    """Two steps an edge, but one of 20: what is beyond it is far from 5 steps ahead."""
    planner = line(20)
    steps = planner.graph.steps.copy()
    steps[planner.graph.begins + planner.graph.ends == 9 + 10] = 20.0
    planner = Planner(Graph(20, planner.graph.begins, planner.graph.ends, steps), planner.coordinates, 5.0)
    here, goals = np.array([[8.0], [9.0]]), np.array([[15.0], [15.0]])
    np.testing.assert_array_equal(planner.way_points(here, goals), [9, 10])


def test_a_state_past_the_first_landmark_of_its_way_is_not_sent_back_to_it():
    """It is between landmarks 0 and 1, and 2 is nearer to it; but from 2 the way leads by 0."""
    at = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 3.0], [-1.0, 1.0], [-1.0, 4.0], [20.0, 0.0], [30.0, 0.0]])
    begins, ends = np.array([0, 1, 5, 2, 3, 4]), np.array([1, 5, 6, 0, 0, 2])
    steps = 2 * np.linalg.norm(at[begins] - at[ends], axis=1).astype(np.float32)
    planner = Planner(Graph(len(at), begins, ends, steps), at, ahead=5.0)
    here, goal = np.array([[4.0, 2.9]]), np.array([[30.0, 0.0]])
    assert planner.ways(here, goal).begins[0] == 0
    assert planner.way_points(here, goal)[0] == 1


def test_a_landmark_farther_than_it_looks_ahead_is_not_passed_by():
    """A way around a square by its corners 0 to 3: inside, the state is past 0, and nearer to 2 than 1 is."""
    corners = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0]]
    behind, beyond = [[0.0, 1.0], [1.0, 0.0], [0.0, 2.0]], [[-1.0, 12.0], [1.0, 12.0], [0.0, 13.0]]
    at = np.array([*corners, *behind, *beyond])
    begins, ends = np.array([0, 1, 2, 4, 5, 6]), np.array([1, 2, 3, 0, 0, 0])
    steps = 2 * np.linalg.norm(at[begins] - at[ends], axis=1).astype(np.float32)
    planner = Planner(Graph(len(at), begins, ends, steps), at, ahead=5.0)
    here, goal = np.array([[4.0, 3.0]]), np.array([[0.0, 12.0]])
    assert planner.ways(here, goal).begins[0] == 0
    assert planner.way_points(here, goal)[0] == 1
