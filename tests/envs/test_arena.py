"""The geometry of an arena, against the text of its maze and distances worked out by hand."""

import itertools
import json
import math
import re
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from lapwing.envs.arena import BODIES, NARROWEST, Arena, make_arena, open_arena, parse_arena
from lapwing.errors import ConfigError
from lapwing.mazes import Maze, arena_names, is_arena, parse_maze

NAMES = ("PointUMaze", "PointHookMaze", "AntUMaze", "AntHookMaze")
# Open at the border, with a dead end and two floor cells that touch only at a corner.
CROOKED = parse_maze("..#G\n.#..\n...#\n", name="Crooked")
MAZES = st.integers(2, 5).flatmap(
    lambda width: st.lists(st.text("#..", min_size=width, max_size=width), min_size=1, max_size=4)
)


def arena_of(name: str) -> Arena:
    if name == "hall":
        return hall(9)
    return make_arena(BODIES["Point"], CROOKED) if name == "Crooked" else open_arena(name)


def arena_from(lines: list[str], body: str = "Point", goal: tuple[int, int] | None = None) -> Arena:
    """An arena of any lines: a first one is put above them that has two cells of floor."""
    maze = parse_maze("\n".join([".." + "#" * (len(lines[0]) - 2), *lines]), name="random")
    return make_arena(BODIES[body], maze, goal=goal or floor_cells(maze)[0])


def hall(width: int) -> Arena:
    """A square of floor without a wall in it."""
    lines = ["." * width] * (width - 1) + ["." * (width - 1) + "G"]
    return make_arena(BODIES["Point"], parse_maze("\n".join(lines), name="hall"))


def floor_cells(maze: Maze) -> list[tuple[int, int]]:
    return [(r, c) for r, line in enumerate(maze.lines) for c, mark in enumerate(line) if mark != "#"]


def near_walls(maze: Maze) -> set[tuple[int, int]]:
    """Cells that are no floor and touch some, be it at a corner; those round the text count as walls."""
    floor = set(floor_cells(maze))
    around = {(r + i, c + j) for r, c in floor for i in (-1, 0, 1) for j in (-1, 0, 1)}
    return around - floor


def at(arena: Arena, row: float, column: float) -> tuple[float, float]:
    """(x, y) with the middle of the text at (0, 0) and the first line on top."""
    height, width = len(arena.maze.lines), len(arena.maze.lines[0])
    return arena.cell * (column - (width - 1) / 2), arena.cell * ((height - 1) / 2 - row)


def away_from_walls(arena: Arena, points: np.ndarray) -> np.ndarray:
    """The distance to the nearest square of a wall cell, one cell at a time."""
    nearest = np.full(points.shape[:-1], np.inf)
    for cell in near_walls(arena.maze):
        beyond = np.maximum(np.abs(points - at(arena, *cell)) - arena.cell / 2, 0)
        nearest = np.minimum(nearest, np.hypot(beyond[..., 0], beyond[..., 1]))
    return nearest


def on_floor(arena: Arena, points: np.ndarray) -> np.ndarray:
    return np.any(
        [
            np.abs(points - at(arena, *cell)).max(axis=-1) <= arena.cell / 2
            for cell in floor_cells(arena.maze)
        ],
        axis=0,
    )


def anywhere(arena: Arena, count: int, seed: int = 0) -> np.ndarray:
    """Points over the text and two and a half cells beyond it."""
    extent = arena.cell * (np.array([len(arena.maze.lines[0]), len(arena.maze.lines)]) / 2 + 2.5)
    return np.random.default_rng(seed).uniform(-extent, extent, (count, 2))


class TestPlaces:
    @pytest.mark.parametrize(
        ("name", "goal", "first", "size"),
        [
            ("PointUMaze", [-2, -2], [-2, 2], 6),
            ("AntUMaze", [-3, -3], [-3, 3], 9),
            ("PointHookMaze", [4, -2], [-4, 2], 10),
            ("AntHookMaze", [6, -3], [-6, 3], 15),
        ],
    )
    def test_the_goal_the_first_cell_and_the_size(self, name, goal, first, size):
        arena = open_arena(name)
        assert arena.name == name
        assert arena.goal.tolist() == goal
        assert arena.centre(np.array([1, 1])).tolist() == first
        assert arena.size == size
        assert arena.goal_radius == pytest.approx(size / 10)

    def test_size_is_that_of_the_floor_and_not_of_the_text(self):
        maze = parse_maze("#######\n#######\n#.G####\n#.#####\n#.#####\n", name="tall")
        assert make_arena(BODIES["Point"], maze, cell=1.5).size == 4.5

    @settings(max_examples=50)
    @given(MAZES, st.sampled_from(["Point", "Ant"]), st.floats(-0.49, 0.49), st.floats(-0.49, 0.49))
    @pytest.mark.filterwarnings("ignore:maze random")
    def test_a_cell_is_found_again_from_anywhere_in_it(self, lines, body, right, up):
        arena = arena_from(lines, body)
        cells = np.array(list(np.ndindex(len(arena.maze.lines), len(lines[0]))))
        centres = arena.centre(cells)
        np.testing.assert_allclose(centres, [at(arena, *cell) for cell in cells], atol=1e-12)
        np.testing.assert_array_equal(arena.cell_at(centres), cells)
        np.testing.assert_array_equal(arena.cell_at(centres + arena.cell * np.array([right, up])), cells)


class TestWalls:
    @settings(max_examples=50)
    @given(MAZES)
    @pytest.mark.filterwarnings("ignore:maze random")
    def test_boxes_cover_the_wall_cells_at_the_floor_and_nothing_else(self, lines):
        arena = arena_from(lines)
        parts = np.arange(-3, max(arena.maze.floor.shape) + 3, 0.25) + 0.125 - 0.5
        walls = near_walls(arena.maze)
        grid = np.array(list(itertools.product(parts, parts)))
        points = np.array([at(arena, *place) for place in grid])
        expected = [tuple(np.rint(place).astype(int).tolist()) in walls for place in grid]
        low, high = arena.walls[:, :2] - arena.walls[:, 2:], arena.walls[:, :2] + arena.walls[:, 2:]
        inside = ((points[:, None] > low) & (points[:, None] < high)).all(axis=-1).sum(axis=1)
        np.testing.assert_array_equal(inside, np.array(expected, int))  # not in two boxes either

    def test_a_row_of_wall_is_one_box(self):
        """Nothing to be caught on: a seam between boxes can stop a sliding body."""
        walls = open_arena("PointUMaze").walls
        assert [0, 4, 5, 1] in walls.tolist()
        assert len(walls) == 8


class TestRoom:
    @pytest.mark.parametrize("name", [*NAMES, "Crooked", "hall"])
    def test_room_is_floor_away_from_the_nearest_wall_cell(self, name):
        arena = arena_of(name)
        points = anywhere(arena, 4_000)
        away = away_from_walls(arena, points)
        assert (away == 0).mean() > 0.1
        expected = on_floor(arena, points) & (away >= arena.body.radius)
        assert 0.01 < expected.mean() < 0.9
        np.testing.assert_array_equal(arena.has_room(points), expected)

    def test_no_room_beyond_the_walls(self):
        arena = open_arena("PointUMaze")
        far = np.array([[50.0, 0.0], [0.0, -50.0], [-7.0, 7.0], [1e6, 1e6]])
        assert not arena.has_room(far).any()

    def test_a_large_maze_asks_for_little_memory(self):
        """Each of 100,000 points with each of 240 walls would take 400 MB at once."""
        arena = hall(120)
        points = arena.centre(np.random.default_rng(0).uniform(0, 119, (100_000, 2)))
        arena.walls.sum()
        tracemalloc.start()
        arena.has_room(points)
        assert tracemalloc.get_traced_memory()[1] < 100e6
        tracemalloc.stop()


class TestStarts:
    @pytest.mark.parametrize("name", ["PointUMaze", "AntHookMaze", "Crooked"])
    def test_random_positions_are_uniform_where_there_is_room(self, name):
        """Counted in quarters of cells, whose free areas a fine grid gives."""
        arena = arena_of(name)
        found = arena.random_positions(20_000, np.random.default_rng(0))
        assert found.shape == (20_000, 2)
        assert on_floor(arena, found).all()
        assert (away_from_walls(arena, found) >= arena.body.radius).all()
        parts = (np.arange(20) + 0.5) / 40
        fine = arena.cell * np.stack(np.meshgrid(parts, parts), axis=-1).reshape(-1, 2)
        free, counts = [], []
        for cell in floor_cells(arena.maze):
            for side in itertools.product((-1, 1), repeat=2):
                inside = away_from_walls(arena, at(arena, *cell) + side * fine) >= arena.body.radius
                free.append(inside.mean())
                towards = side * (found - at(arena, *cell))
                counts.append(((towards >= 0) & (towards < arena.cell / 2)).all(axis=1).sum())
        assert sum(counts) == 20_000
        expected = 20_000 * np.array(free) / np.sum(free)
        assert expected.min() > 100
        # Once in ten thousand seeds, and the grid's own error of a few per cent of an area.
        statistic = np.sum((counts - expected) ** 2 / (expected + (0.02 * expected) ** 2))
        assert statistic < chi2.isf(1e-4, len(free) - 1)

    def test_random_positions_follow_their_generator(self):
        arena = open_arena("AntUMaze")
        first, again, other = (arena.random_positions(50, np.random.default_rng(seed)) for seed in (3, 3, 4))
        np.testing.assert_array_equal(first, again)
        assert (first != other).all()
        for count in (0, 1, 17):
            assert arena.random_positions(count, np.random.default_rng(count)).shape == (count, 2)

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("per_cell", [1, 2, 8, 13])
    def test_stratified_positions_are_so_many_in_each_cell(self, name, per_cell):
        arena = open_arena(name)
        starts = arena.stratified_positions(per_cell)
        cells = floor_cells(arena.maze)
        expected = np.repeat([at(arena, *cell) for cell in cells], per_cell, axis=0)
        assert starts.shape == expected.shape
        assert (np.abs(starts - expected) <= arena.cell / 2 - arena.body.radius + 1e-9).all()
        assert len(np.unique(starts.round(9), axis=0)) == len(starts)
        assert arena.has_room(starts).all()
        np.testing.assert_array_equal(open_arena(name).stratified_positions(per_cell), starts)

    @pytest.mark.parametrize("name", NAMES)
    def test_stratified_positions_reach_every_quarter_of_a_cell(self, name):
        arena = open_arena(name)
        starts = arena.stratified_positions(8).reshape(-1, 8, 2)
        for cell, inside in zip(floor_cells(arena.maze), starts, strict=True):
            assert len(np.unique(inside > at(arena, *cell), axis=0)) == 4


def round_the_corner(arena: Arena) -> float:
    """From one end of the UMaze to the other: a taut string, kept a radius away from two corners.

    The wall between ends at (cell/2, ±cell/2). A tangent to the circle round the upper corner, an arc of it,
    a cell's length straight down, and the same again.
    """
    cell, radius = arena.cell, arena.body.radius
    along, up = -1.5 * cell, 0.5 * cell  # the first cell, as seen from the upper corner
    far = math.hypot(along, up)
    tangent = math.sqrt(far**2 - radius**2)
    touches = math.atan2(up, along) - math.acos(radius / far)
    return 2 * (tangent + radius * touches) + cell


def assert_about(lengths: np.ndarray, expected: np.ndarray, arena: Arena) -> None:
    """Within 3 % (a grid with moves in 16 directions is up to 2.7 % too long) and two of its steps."""
    assert lengths.shape == expected.shape
    assert (np.abs(lengths - expected) <= 0.03 * expected + arena.cell / 6).all()


class TestWays:
    def test_in_an_open_room_it_is_the_distance_in_every_direction(self):
        arena = make_arena(
            BODIES["Point"], parse_maze("\n".join(["." * 7] * 3 + ["...G..."] + ["." * 7] * 3), name="room")
        )
        angles = np.linspace(0, 2 * np.pi, 100, endpoint=False)
        ring = 6.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        assert_about(arena.path_lengths(ring), np.full(100, 6.0), arena)

    @pytest.mark.parametrize("name", ["PointUMaze", "AntUMaze"])
    def test_round_the_corner_it_is_a_taut_string(self, name):
        arena = open_arena(name)
        by_hand = round_the_corner(arena)
        assert by_hand == pytest.approx({"PointUMaze": 9.103, "AntUMaze": 14.479}[name], abs=1e-3)
        assert arena.path_lengths(arena.centre(np.array([[1, 1]])))[0] == pytest.approx(by_hand, rel=0.04)

    @pytest.mark.parametrize("name", [*NAMES, "Crooked"])
    def test_it_is_never_below_the_distance(self, name):
        arena = arena_of(name)
        starts = arena.random_positions(2_000, np.random.default_rng(2))
        lengths = arena.path_lengths(starts)
        assert np.isfinite(lengths).all()
        assert (lengths >= np.linalg.norm(starts - arena.goal, axis=1) - 1e-9).all()
        assert arena.path_lengths(arena.goal[None])[0] == pytest.approx(0, abs=arena.cell / 12)

    @pytest.mark.parametrize("name", ["PointUMaze", "AntUMaze"])
    def test_in_the_narrowest_maze_it_still_leads_round_the_corner(self, name):
        """Whatever is not refused for want of room must be measured right."""
        arena = open_arena(name, cell=NARROWEST * open_arena(name).body.radius)
        found = arena.path_lengths(arena.centre(np.array([[1.0, 1.0]])))[0]
        assert found == pytest.approx(round_the_corner(arena), rel=0.1)

    def test_in_a_large_maze_it_takes_seconds(self):
        """40 x 40 cells, one way to and fro through all of them: 20 rows of 38 cells and 19 ways down."""
        rows = ["#" * 40]
        for row in range(1, 40):
            gap = "#" * 37 + "." if row % 4 == 2 else "." + "#" * 37
            rows.append(f"#{'.' * 38 if row % 2 else gap}#")
        rows[1] = rows[1].replace(".", "G", 1)
        arena = make_arena(BODIES["Point"], parse_maze("\n".join(rows), name="snake"))
        began = time.process_time()
        last = arena.path_lengths(arena.centre(np.array([[39.0, 38.0], [39.0, 1.0]])))
        assert time.process_time() - began < 20
        straight = arena.cell * (20 * 37 + 19 * 2)
        assert last.max() == pytest.approx(straight, rel=0.06)

    @pytest.mark.parametrize("name", NAMES)
    def test_points_are_all_over_the_arena_and_have_room(self, name):
        arena = open_arena(name)
        assert (
            on_floor(arena, arena.points) & (away_from_walls(arena, arena.points) >= arena.body.radius)
        ).all()
        for cell in floor_cells(arena.maze):
            assert (np.abs(arena.points - at(arena, *cell)).max(axis=1) < arena.cell / 2).sum() > 30


class TestNames:
    def test_what_an_arena_is_called(self):
        assert sorted(arena_names()) == sorted(NAMES)
        assert all(map(is_arena, [*NAMES, "Point:mine.txt", "Ant:UMaze"]))
        assert not any(map(is_arena, ["UMaze", "FourRoom", "mine.txt", "Points", "C:\\maze.txt", ""]))

    @pytest.mark.parametrize("body", ["Point", "Ant"])
    def test_a_text_file(self, body, tmp_path):
        path = tmp_path / "mine.txt"
        path.write_text("####\n#.G#\n####\n")
        arena = open_arena(f"{body}:{path}")
        assert (arena.name, arena.body.name) == (f"{body}mine", body)
        assert arena.maze.lines == ("####", "#.G#", "####")
        assert arena.goal_cell == (1, 2)
        assert arena.size == 2 * arena.cell

    def test_it_is_named_as_lapwing_learn_would_open_it(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("UMaze.txt").write_text("####\n#.G#\n####\n")
        for name in ("PointUMaze", "AntHookMaze", "Point:TwoRoom", "Point:UMaze.txt", "Ant:./UMaze.txt"):
            arena = open_arena(name)
            assert arena.target == name
            assert open_arena(arena.target) == arena
        assert open_arena("Ant:HookMaze") == open_arena("AntHookMaze")
        assert open_arena("Ant:HookMaze").target == "AntHookMaze"

    @pytest.mark.parametrize("goal", [[1, 1], np.array([1, 1]), np.array([1, 1], np.uint8)], ids=repr)
    def test_a_goal_as_a_list_or_an_array(self, goal):
        arena = open_arena("PointUMaze", goal=goal)
        assert arena == open_arena("PointUMaze", goal=(1, 1))
        json.dumps(arena.description())

    def test_another_goal_and_another_width(self):
        arena = open_arena("PointUMaze", goal=(1, 1), cell=3.5, fast=True)
        assert arena.goal.tolist() == [-3.5, 3.5]
        assert (arena.cell, arena.size, arena.fast) == (3.5, 10.5, True)
        assert make_arena(BODIES["Point"], CROOKED, goal=(0, 0)).goal_cell == (0, 0)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_description_can_be_written_and_read(self, name):
        arena = open_arena(name)
        assert parse_arena(json.loads(json.dumps(arena.description()))) == arena
        special = open_arena(name, goal=(1, 3), cell=4.25, fast=True)
        read = parse_arena(json.loads(json.dumps(special.description())))
        assert read == special != arena
        np.testing.assert_array_equal(read.walls, special.walls)


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "near"),
        [
            ("PointUMaz", "PointUMaze"),
            ("anthookmaze", "AntHookMaze"),
            ("PointFourRoom", "Point:"),
            ("zzz", NAMES[3]),
        ],
    )
    def test_an_unknown_name_gets_the_nearest(self, name, near):
        with pytest.raises(ConfigError, match=f"'{name}'.*{near}"):
            open_arena(name)

    def test_a_file_that_is_not_there(self, tmp_path):
        for path in (tmp_path / "nowhere.txt", tmp_path):
            with pytest.raises(ConfigError, match=f"'{path}'"):
                open_arena(f"Point:{path}")

    @pytest.mark.parametrize(
        ("goal", "words"), [((2, 1), "wall"), ((5, 1), "outside UMaze of 5 x 5"), ((1, -1), "outside")]
    )
    def test_a_goal_in_a_wall_or_outside(self, goal, words):
        with pytest.raises(ConfigError, match=rf"goal \({goal[0]},{goal[1]}\).*{words}"):
            open_arena("PointUMaze", goal=goal)

    def test_no_goal_in_the_maze_and_none_named(self):
        with pytest.raises(ConfigError, match=r"FourRoom.*--goal"):
            open_arena("Point:FourRoom")
        assert open_arena("Point:FourRoom", goal=(1, 1)).goal_cell == (1, 1)

    @pytest.mark.parametrize(
        ("name", "cell"),
        [
            ("PointUMaze", 0.6),
            ("AntUMaze", 1.5),
            ("AntUMaze", -3.0),
            ("AntUMaze", math.nan),
            ("PointUMaze", 1e200),
        ],
    )
    def test_cells_too_narrow_for_the_body_or_too_wide(self, name, cell):
        with pytest.raises(ConfigError, match=f"cell.* {re.escape(f'{cell:g}')}"):
            open_arena(name, cell=cell)

    def test_a_maze_that_is_all_goal(self):
        with pytest.raises(ConfigError, match=r"dot.* goal"):
            make_arena(BODIES["Point"], parse_maze("###\n#G#\n###\n", name="dot"))
