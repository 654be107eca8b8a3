"""Arenas from above: what colour is where, drawn and, where there is GL, rendered."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from lapwing.envs.arena import BODIES, Arena, make_arena, open_arena
from lapwing.envs.gridworld import AGENT, GOAL, GROUND, WALL
from lapwing.envs.simulator import Simulator, TopView, gl_is_likely
from lapwing.mazes import parse_maze

NAMES = ("PointUMaze", "PointHookMaze", "AntUMaze", "AntHookMaze")


def at(arena: Arena, row: float, column: float) -> np.ndarray:
    """(x, y) of a place on the text."""
    height, width = len(arena.maze.lines), len(arena.maze.lines[0])
    return arena.cell * np.array([column - (width - 1) / 2, (height - 1) / 2 - row])


def pixel(arena: Arena, picture: np.ndarray, place: np.ndarray) -> tuple[int, int, int]:
    """The colour at (x, y) of a picture that shows the floor and half a cell of wall round it."""
    rows = [row for row, line in enumerate(arena.maze.lines) if set(line) != {"#"}]
    columns = [c for c in range(len(arena.maze.lines[0])) if {line[c] for line in arena.maze.lines} != {"#"}]
    left, top = at(arena, rows[0] - 1, columns[0] - 1)
    right, bottom = at(arena, rows[-1] + 1, columns[-1] + 1)
    height, width, _ = picture.shape
    x, y = place
    across, down = (x - left) / (right - left), (top - y) / (top - bottom)
    return tuple(picture[math.floor(down * height), math.floor(across * width)].tolist())


def drawn(arena: Arena, place: np.ndarray, **pose) -> np.ndarray:
    simulator = Simulator(arena)
    row = simulator.at_rest(np.asarray(place, float)[None])[0]
    for index, value in pose.get("changes", {}).items():
        row[index] = value
    return TopView(simulator, gl=False)(row)


def is_blue(colour: tuple[int, int, int]) -> bool:
    """The agent's colour, or a darker shade of it."""
    return any(np.abs(np.array(colour) - shade * np.array(AGENT)).max() <= 2 for shade in (1.0, 0.6))


class TestDrawn:
    @pytest.mark.parametrize(
        ("name", "shape"), [("PointUMaze", (360, 360, 3)), ("AntHookMaze", (240, 360, 3))]
    )
    def test_the_longer_side_is_360_pixels_and_the_body_lies_over_the_goal(self, name, shape):
        arena = open_arena(name)
        picture = drawn(arena, arena.goal)
        assert (picture.shape, picture.dtype) == (shape, np.uint8)
        assert is_blue(pixel(arena, picture, arena.goal))

    @pytest.mark.parametrize("name", NAMES)
    def test_every_cell_has_the_colour_of_its_mark(self, name):
        arena = open_arena(name)
        picture = drawn(arena, at(arena, 1, 1))
        beyond = 0.4  # of a cell, from its middle: still inside
        for row, line in enumerate(arena.maze.lines[1:-1], 1):
            for column, mark in enumerate(line[1:-1], 1):
                if (row, column) == (1, 1):
                    continue
                colour = {"#": WALL, ".": GROUND, "G": GOAL}[mark]
                assert pixel(arena, picture, at(arena, row, column)) == colour
                for aside in ((beyond, beyond), (-beyond, beyond), (beyond, -beyond), (-beyond, -beyond)):
                    colour = WALL if mark == "#" else GROUND
                    assert pixel(arena, picture, at(arena, row + aside[0], column + aside[1])) == colour
        assert pixel(arena, picture, at(arena, 0.4, 0.4)) == WALL, "the wall round it"
        for corner in picture[[0, 0, -1, -1], [0, -1, 0, -1]]:
            assert tuple(corner) == WALL

    @pytest.mark.parametrize("name", NAMES)
    def test_the_goal_is_a_disc_of_its_radius(self, name):
        arena = open_arena(name)
        picture = drawn(arena, at(arena, 1, 1))
        for angle in np.linspace(0, 2 * np.pi, 16, endpoint=False):
            towards = arena.goal_radius * np.array([np.cos(angle), np.sin(angle)])
            assert pixel(arena, picture, arena.goal + 0.94 * towards) == GOAL
            assert pixel(arena, picture, arena.goal + 1.06 * towards) in (GROUND, WALL)
        pixels_a_unit = 360 / (max(picture.shape) / 360 * (arena.size + arena.cell))
        area = (picture == GOAL).all(axis=-1).sum() / pixels_a_unit**2
        assert area == pytest.approx(math.pi * arena.goal_radius**2, rel=0.03)

    @pytest.mark.parametrize("name", ["PointUMaze", "PointHookMaze"])
    def test_a_point_is_a_ball_with_a_nose(self, name):
        arena = open_arena(name)
        place = at(arena, 1.1, 1.8)
        turned = drawn(arena, place, changes={3: np.pi / 2})
        for picture, nose in ((drawn(arena, place), 0.0), (turned, np.pi / 2)):
            for angle in np.linspace(0, 2 * np.pi, 8, endpoint=False):
                towards = np.array([np.cos(angle), np.sin(angle)])
                assert is_blue(pixel(arena, picture, place + 0.26 * towards))
                if angle != pytest.approx(nose):
                    assert pixel(arena, picture, place + 0.36 * towards) == GROUND
            sticks_out = place + 0.32 * np.array([np.cos(nose), np.sin(nose)])
            assert is_blue(pixel(arena, picture, sticks_out))

    @pytest.mark.parametrize("name", ["AntUMaze", "AntHookMaze"])
    def test_an_ant_is_a_ball_on_four_legs(self, name):
        """At rest its legs lie on the diagonals; turned by 45 degrees, on the axes."""
        arena = open_arena(name)
        place = at(arena, 1, 1.7)
        turned = drawn(arena, place, changes={4: math.cos(math.pi / 8), 7: math.sin(math.pi / 8)})
        for picture, first in ((drawn(arena, place), np.pi / 4), (turned, 0.0)):
            assert is_blue(pixel(arena, picture, place))
            for leg in range(4):
                along, between = (
                    np.array([np.cos(angle), np.sin(angle)])
                    for angle in (first + leg * np.pi / 2, first + (leg + 0.5) * np.pi / 2)
                )
                for way in (0.3, 0.5, 0.8):
                    assert pixel(arena, picture, place + way * along) == AGENT
                assert is_blue(pixel(arena, picture, place + 0.2 * between)), "the torso"
                assert pixel(arena, picture, place + 0.4 * between) == GROUND
                assert pixel(arena, picture, place + 1.1 * along) == GROUND

    def test_a_tall_maze_that_is_open_at_its_edge(self):
        arena = make_arena(BODIES["Point"], parse_maze("G.\n..\n..\n", name="tall"))
        picture = drawn(arena, at(arena, 2, 1))
        assert picture.shape == (360, 270, 3)
        assert pixel(arena, picture, at(arena, 0, 0)) == GOAL
        assert pixel(arena, picture, at(arena, 1, 1)) == GROUND
        assert is_blue(pixel(arena, picture, at(arena, 2, 1)))
        for outside in ((-0.7, 0.5), (2.7, 0.5), (1, -0.7), (1, 1.7)):
            assert pixel(arena, picture, at(arena, *outside)) == WALL

    def test_a_view_changes_neither_the_row_nor_the_simulator(self):
        simulator = Simulator(open_arena("AntUMaze"))
        row = simulator.at_rest(np.array([[0.0, 3.0]]))[0]
        kept, actions = row.copy(), np.ones((1, 8))
        expected = simulator.step(row[None], actions)
        view = TopView(simulator, gl=False)
        first = view(row)
        view(expected[0])
        np.testing.assert_array_equal(view(row), first)
        np.testing.assert_array_equal(row, kept)
        np.testing.assert_array_equal(simulator.step(row[None], actions), expected)
        view.close()


class TestGl:
    @pytest.mark.parametrize(
        ("platform", "variables", "likely"),
        [
            ("linux", {}, False),
            ("linux", {"DISPLAY": ":0"}, True),
            ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
            ("linux", {"DISPLAY": ""}, False),
            ("linux", {"MUJOCO_GL": "egl"}, True),
            ("linux", {"MUJOCO_GL": "", "DISPLAY": ":0"}, True),
            ("linux", {"MUJOCO_GL": "off", "DISPLAY": ":0"}, False),
            ("darwin", {}, True),
            ("win32", {}, True),
            ("darwin", {"MUJOCO_GL": "disable"}, False),
            ("win32", {"MUJOCO_GL": "0"}, False),
        ],
    )
    def test_what_the_environment_says(self, monkeypatch, platform, variables, likely):
        for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "platform", platform)
        assert gl_is_likely() is likely

    def test_without_gl_it_is_drawn(self, monkeypatch):
        monkeypatch.setenv("MUJOCO_GL", "off")
        simulator = Simulator(open_arena("PointUMaze"))
        assert TopView(simulator).gl is False
        with pytest.raises(RuntimeError, match="GL"):
            TopView(simulator, gl=True)

    def test_where_the_renderer_cannot_start_it_is_drawn(self, monkeypatch):
        import mujoco

        def refuse(*arguments):
            raise RuntimeError("no display")

        monkeypatch.setenv("MUJOCO_GL", "egl")
        monkeypatch.setattr(mujoco, "Renderer", refuse)
        simulator = Simulator(open_arena("PointUMaze"))
        view = TopView(simulator)
        assert view.gl is False
        assert tuple(view(simulator.at_rest(np.array([[2.0, 0.0]]))[0])[0, 0]) == WALL
        with pytest.raises(RuntimeError, match="needs GL"):
            TopView(simulator, gl=True)

    def test_rendered_and_drawn_pictures_show_the_same(self, rendered):
        for name in NAMES:
            arena, picture = open_arena(name), rendered[name]
            place = at(arena, 1, 2)
            by_hand = drawn(arena, place)
            assert picture.shape == by_hand.shape
            assert picture.dtype == np.uint8
            for angle in np.linspace(0, 2 * np.pi, 8, endpoint=False):
                towards = arena.goal_radius * np.array([np.cos(angle), np.sin(angle)])
                assert is_red(pixel(arena, picture, arena.goal + 0.9 * towards))
                assert not is_red(pixel(arena, picture, arena.goal + 1.1 * towards))
            red, blue, green = (picture[..., i].astype(int) for i in (0, 2, 1))
            reddish, bluish = red > blue + 60, blue > red + 25
            assert (reddish == (by_hand == GOAL).all(axis=-1)).mean() > 0.99
            agent = ~(by_hand[..., None, :] == np.array([WALL, GROUND, GOAL])).all(axis=-1).any(axis=-1)
            assert (bluish == agent).mean() > 0.99
            assert (bluish & agent).sum() > 0.5 * agent.sum()
            light = np.minimum(np.minimum(red, green), blue) > 180
            assert (light == (by_hand == GROUND).all(axis=-1)).mean() > 0.98


def is_red(colour: tuple[int, int, int]) -> bool:
    red, green, blue = colour
    return red > 150 and max(green, blue) < red - 80


RENDER = """
import sys
import mujoco, numpy as np
try:
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><light/></worldbody></mujoco>")
    mujoco.Renderer(model, 8, 8).render()
except Exception as error:
    print("no EGL:", error)
    sys.exit(77)
from lapwing.envs.arena import open_arena
from lapwing.envs.simulator import Simulator, TopView
pictures = {}
for name in sys.argv[2:]:
    simulator = Simulator(open_arena(name))
    view = TopView(simulator, gl=True)
    assert view.gl
    place = simulator.arena.centre(np.array([[1, 2]]))
    pictures[name] = view(simulator.at_rest(place)[0])
    view.close()
np.savez(sys.argv[1], **pictures)
"""


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """By MuJoCo's renderer, in a process of its own: without GL it may end it."""
    if sys.platform != "linux":
        pytest.skip("EGL is for Linux")
    path = tmp_path_factory.mktemp("rendered") / "pictures.npz"
    finished = subprocess.run(
        [sys.executable, "-c", RENDER, str(path), *NAMES],
        env=os.environ | {"MUJOCO_GL": "egl"},
        capture_output=True,
        text=True,
    )
    if finished.returncode == 77 or finished.returncode < 0:
        pytest.skip(f"no EGL here: {finished.stdout.strip() or finished.returncode}")
    assert finished.returncode == 0, finished.stderr
    with np.load(path) as pictures:
        return dict(pictures)
