"""Rewards of mazes as text."""

import numpy as np
import pytest

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, MazeError
from lapwing.mazes import parse_maze
from lapwing.solving.painted import painted_reward, read_reward

WORLD = GridWorld(parse_maze("#####\n#...#\n##.##\n#####\n", name="mine"))


def test_cells_and_their_rewards_add_up():
    found = read_reward(WORLD, "goal=1,1 -0.5=2,2  2=1,1 1e-1=1,3")
    np.testing.assert_allclose(found, [3.0, 0.0, 0.1, -0.5])


def test_a_painted_map(tmp_path):
    path = tmp_path / "map.txt"
    path.write_text("#####\n#G9i#\n##a##\n#####\n")
    np.testing.assert_array_equal(read_reward(WORLD, str(path)), [1, 9, -9, -1])


def test_marks_in_walls_do_not_matter():
    found = painted_reward(WORLD, ".....\n.1.2.\n..0..\n.....\n", "bare")
    np.testing.assert_array_equal(found, [1, 0, 2, 0])


@pytest.mark.parametrize("text", ["goal=0,0", "goal=9,9", "goal=-1,2", "goal=1,1 goal=2,1"])
def test_a_goal_that_is_no_floor(text):
    with pytest.raises(ConfigError, match="goal"):
        read_reward(WORLD, text)


@pytest.mark.parametrize("text", ["goal=1", "goal=1,1,1", "x=1,1", "nan=1,1", "inf=1,1", "=1,1", "goal=1;2"])
def test_words_that_are_no_reward(text):
    with pytest.raises(ConfigError, match="reward"):
        read_reward(WORLD, text)


@pytest.mark.parametrize("text", ["", "#####\n#...#\n##.##\n", "#####\n#...#\n##.###\n#####\n"])
def test_a_map_of_another_size(text):
    with pytest.raises(MazeError, match=r"map\.txt"):
        painted_reward(WORLD, text, "map.txt")


@pytest.mark.parametrize("mark", ["#", "x", "j", " "])
def test_a_mark_without_a_reward_is_found(mark):
    with pytest.raises(MazeError, match="line 2, column 3"):
        painted_reward(WORLD, f"#####\n#.{mark}.#\n##.##\n#####\n", "map.txt")


def test_a_map_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="gone"):
        read_reward(WORLD, str(tmp_path / "gone.txt"))
