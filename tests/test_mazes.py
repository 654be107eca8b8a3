"""Text mazes: what is read, what is refused, what is walled off."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingWarning, MazeError
from lapwing.mazes import MAZES, Maze, parse_maze, read_maze
from tests.support.folders import put

# From the drawings of the paper's environments: size, states, goal.
KNOWN = {
    "OneRoom": ((17, 17), 225, (15, 15)),
    "TwoRoom": ((17, 17), 212, (9, 15)),
    "HardMaze": ((16, 16), 148, (10, 10)),
    "FourRoom": ((15, 15), 152, None),
    # And those of the benchmark of Gomez et al. (2024), with a border of wall.
    "GridMaze-7": ((9, 11), 11, None),
    "GridMaze-9": ((11, 11), 13, None),
    "GridMaze-17": ((19, 21), 87, None),
    "GridMaze-19": ((21, 21), 161, None),
    "GridMaze-26": ((28, 34), 388, None),
    "GridMaze-32": ((34, 34), 456, None),
    "GridRoom-1": ((19, 19), 225, None),
    "GridRoom-4": ((15, 15), 104, None),
    "GridRoom-16": ((23, 23), 271, None),
    "GridRoom-32": ((43, 23), 544, None),
    "GridRoom-64": ((43, 43), 1088, None),
    "GridRoomSym-4": ((15, 15), 104, None),
}
FOUR_ROOM = """\
###############
#......#......#
#......#......#
#.............#
#.............#
#......#......#
#......#......#
###..#####..###
#......#......#
#......#......#
#.............#
#.............#
#......#......#
#......#......#
###############
"""


def flood(floor: np.ndarray) -> np.ndarray:
    """What can be reached from the first floor cell, by spreading until nothing changes."""
    reached = np.zeros_like(floor)
    reached[tuple(np.argwhere(floor)[0])] = True
    while True:
        padded = np.pad(reached, 1)
        near = padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
        spread = (reached | near) & floor
        if (spread == reached).all():
            return reached
        reached = spread


class TestBuiltIn:
    def test_every_built_in_is_known_here(self):
        assert set(MAZES) == set(KNOWN)

    @pytest.mark.parametrize("name", KNOWN)
    def test_size_states_goal_and_text(self, name):
        shape, states, goal = KNOWN[name]
        maze = read_maze(name)
        assert (maze.name, maze.floor.shape, maze.floor.sum(), maze.goal) == (name, shape, states, goal)
        assert parse_maze(maze.text, name=name) == maze
        assert maze.unreachable == frozenset()

    @pytest.mark.parametrize("name", KNOWN)
    def test_floor_is_connected_and_walled_in(self, name):
        floor = read_maze(name).floor
        np.testing.assert_array_equal(flood(floor), floor)
        border = floor.copy()
        border[1:-1, 1:-1] = False
        assert not border.any()

    @pytest.mark.parametrize("name", [name for name in KNOWN if KNOWN[name][2]])
    def test_goals_stand_beside_a_wall(self, name):
        """So that an agent without a stay action can wait there."""
        maze, (row, column) = read_maze(name), KNOWN[name][2]
        beside = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        assert any(not maze.floor[cell] for cell in beside)

    def test_four_room_is_the_drawing(self):
        assert read_maze("FourRoom").text == FOUR_ROOM


class TestReading:
    @pytest.mark.parametrize(("end", "encoding"), [("\n", "utf-8"), ("\r\n", "utf-8"), ("\n", "utf-8-sig")])
    def test_a_file_of_the_users_reads_like_a_built_in(self, tmp_path, end, encoding):
        path = tmp_path / "mine.txt"
        path.write_bytes(FOUR_ROOM.replace("\n", end).encode(encoding))
        for source in (path, str(path)):
            maze = read_maze(source)
            assert (maze.name, maze.lines) == ("mine", read_maze("FourRoom").lines)

    @pytest.mark.parametrize("text", ["#.G#\n", "#.G#", "\n\n#.G#\n\n", "#.G#  \r\n", "\r\n#.G#\r\n"])
    def test_blank_margins_and_line_ends_do_not_matter(self, text):
        assert parse_maze(text, name="small").lines == ("#.G#",)

    def test_floor_and_goal_by_hand(self):
        maze = parse_maze("#.#\n..G\n", name="small")
        np.testing.assert_array_equal(maze.floor, [[False, True, False], [True, True, True]])
        assert maze.goal == (1, 2)

    def test_a_maze_is_a_value(self):
        first, second = (Maze("same", ("#.#",)) for _ in range(2))
        assert first == second
        assert hash(first) == hash(second)


class TestRefused:
    @pytest.mark.parametrize("text", ["", "\n", "   \n", "###\n###\n"])
    def test_no_floor(self, text):
        with pytest.raises(MazeError, match="mine: no floor"):
            parse_maze(text, name="mine")

    def test_two_goals(self):
        with pytest.raises(MazeError, match="mine: 3 goals"):
            parse_maze("G.G\n..G\n", name="mine")

    @pytest.mark.parametrize("third", ["####", ""])
    def test_ragged_lines_name_the_line_and_both_widths(self, third):
        with pytest.raises(MazeError, match=rf"line 3 has {len(third)} cells and line 1 has 3"):
            parse_maze(f"###\n#.#\n{third}\n###\n", name="mine")

    @pytest.mark.parametrize("mark", ["g", " ", "█", "\t"])
    def test_unknown_mark_names_line_and_column(self, mark):
        with pytest.raises(
            MazeError, match=f"maze mine: unknown mark {re.escape(repr(mark))} in line 2, column 3;"
        ):
            parse_maze(f"####\n#.{mark}#\n####\n", name="mine")

    def test_unknown_name_gets_the_nearest(self):
        with pytest.raises(MazeError, match=r"no maze 'FourRom': did you mean FourRoom\?"):
            read_maze("FourRom")

    def test_unknown_name_near_to_none_gets_all(self):
        with pytest.raises(MazeError) as caught:
            read_maze("qqq")
        assert all(name in str(caught.value) for name in MAZES)

    def test_a_name_too_long_for_a_file(self):
        """A maze's text where its path should be."""
        with pytest.raises(MazeError, match="File name too long"):
            read_maze(FOUR_ROOM * 2)

    def test_a_folder_is_not_a_maze(self, tmp_path):
        with pytest.raises(MazeError, match="folder"):
            read_maze(tmp_path)

    @pytest.mark.parametrize("name", ["gone.txt", "mazes/gone"])
    def test_a_file_that_is_missing(self, name):
        with pytest.raises(MazeError, match=f"'{name}'.* no such file"):
            read_maze(name)

    def test_a_file_larger_than_any_maze(self, tmp_path):
        """Of 20 GiB; it is refused before it is read."""
        with (tmp_path / "huge.txt").open("wb") as file:
            file.truncate(20 * 2**30)
        with pytest.raises(MazeError, match=r"huge\.txt"):
            read_maze(tmp_path / "huge.txt")

    def test_the_file_is_known_and_does_not_matter(self, tmp_path):
        path = tmp_path / "mine.txt"
        path.write_text("#.G#\n")
        maze = read_maze(str(path))
        assert maze.file == str(path)
        assert maze == parse_maze("#.G#\n", name="mine")
        assert read_maze("FourRoom").file is None

    def test_a_file_that_is_no_maze_is_named(self, tmp_path):
        path = tmp_path / "picture.png"
        for content, name in ((b"\x89PNG\r\n\x1a\n\xff\xfe", r"picture\.png"), (b"#?#\n", "maze picture")):
            put(path, content)
            with pytest.raises(MazeError, match=name):
                read_maze(path)


class TestUnreachable:
    def test_the_largest_part_is_kept(self):
        with pytest.warns(LapwingWarning) as caught:
            maze = parse_maze("..#.\n..#.\n", name="mine")
        assert maze.lines == ("..##", "..##")
        (message,) = {str(warning.message) for warning in caught}
        assert message == (
            "maze mine: 2 floor cells cannot be reached from the rest: (0,3), (1,3); "
            "keeping the largest part, 4 cells"
        )

    def test_the_part_of_the_goal_is_kept_though_smaller(self):
        with pytest.warns(LapwingWarning, match=r"\(0,0\), \(0,1\), \(1,0\), \(1,1\);.* goal"):
            maze = parse_maze("..#G\n..#.\n", name="mine")
        assert maze.lines == ("###G", "###.")
        assert maze.goal == (0, 3)

    def test_many_cells_are_counted_not_listed(self):
        with pytest.warns(LapwingWarning, match=r"\(0,7\) and 2 more"):
            parse_maze("..........#G\n", name="mine")


@st.composite
def drawings(draw) -> list[list[str]]:
    """Rectangles of walls and floor with at least one floor cell and at most one goal."""
    height, width = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    marks = draw(st.lists(st.sampled_from("#.."), min_size=height * width, max_size=height * width))
    place = draw(st.integers(0, height * width - 1))
    marks[place] = draw(st.sampled_from(".G"))
    return [marks[row * width : (row + 1) * width] for row in range(height)]


@settings(max_examples=300)
@given(drawings())
def test_the_floor_kept_is_one_whole_part(drawing):
    text = "\n".join("".join(line) for line in drawing)
    before = np.array([[mark != "#" for mark in line] for line in drawing])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        maze = parse_maze(text, name="random")
    kept = maze.floor
    np.testing.assert_array_equal(flood(kept), kept)
    assert not (kept & ~before).any(), "a wall became floor"
    # Nothing that touches the kept part was thrown away, and a warning tells of whatever was.
    padded = np.pad(kept, 1)
    near = padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
    assert not (near & before & ~kept).any()
    assert len(caught) == int((before & ~kept).any())
    assert maze.unreachable == {(r, c) for r, c in np.argwhere(before & ~kept).tolist()}
    if "G" in text:
        assert maze.goal is not None
        assert drawing[maze.goal[0]][maze.goal[1]] == "G"
    else:
        left = before.copy()
        while left.any():
            part = flood(left)
            assert part.sum() <= kept.sum(), "a larger part was left out"
            left &= ~part
    again = parse_maze(maze.text, name="random")
    assert (again.lines, again.unreachable) == (maze.lines, frozenset())
