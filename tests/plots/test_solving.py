"""The drawing of a solved reward."""

import numpy as np

from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import parse_maze
from lapwing.plots import draw_solution

WORLD = GridWorld(parse_maze("####\n#..#\n#..#\n####\n", name="square"))


def test_reward_value_moves_and_path():
    rewards, values = np.array([0.0, 0.0, -1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    figure = draw_solution(WORLD, rewards, values, np.array([1, 1, 3, 1]), [0, 2, 3])
    left, right = figure.axes[:2]
    np.testing.assert_array_equal(left.images[-1].get_array().compressed(), rewards)
    np.testing.assert_array_equal(right.images[-1].get_array().compressed(), values)
    assert left.images[-1].get_clim() == (-2, 2)
    path = left.lines[0]
    np.testing.assert_array_equal(
        np.transpose([path.get_ydata(), path.get_xdata()]), [[1, 1], [2, 1], [2, 2]]
    )
    (arrows,) = [one for one in right.collections if hasattr(one, "U")]
    np.testing.assert_array_equal(arrows.U, [0, 0, 1, 0])
    np.testing.assert_array_equal(arrows.V, [1, 1, 0, 1])


def test_no_reward_at_all_can_be_drawn():
    zeros = np.zeros(4)
    assert draw_solution(WORLD, zeros, zeros, np.zeros(4, int), [0]).axes
