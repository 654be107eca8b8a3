"""Drawings of arenas and of agents in them, against the text of the maze; and what is shown of a run."""

import dataclasses
import io

import jax
import matplotlib.image
import numpy as np
import optax
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from PIL import Image
from rich.console import Console

from lapwing import plots
from lapwing.agents import ddpg
from lapwing.agents.agent import ControlAgent
from lapwing.agents.evaluation import EvaluationEpisodes, evaluate_policy
from lapwing.cli import agent_report as report
from lapwing.cli.agent_report import control_table, draw_control, filmed
from lapwing.envs.arena import Arena, make_arena, open_arena
from lapwing.envs.simulator import Simulator
from lapwing.mazes import parse_maze
from lapwing.plots import Curve, OnlinePanel, arena_column
from lapwing.plots.reaching import draw_arena
from lapwing.plots.representations import WALL
from lapwing.runs.folder import FIGURES
from lapwing.runs.train_ddpg import ControlOutcome
from lapwing.settings.agents import ControlSettings
from tests.support.representations import Known

U_MAZE = open_arena("PointUMaze")
CROOKED = make_arena(U_MAZE.body, parse_maze("..#G\n.#..\n...#\n", name="Crooked"), cell=1.5)


@pytest.fixture(autouse=True)
def no_gl(monkeypatch):
    """Films are drawn, whatever this machine has."""
    monkeypatch.setenv("MUJOCO_GL", "off")


def drawn(figure: Figure) -> np.ndarray:
    """The picture; to draw it warns of nothing."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    buffer.seek(0)
    return matplotlib.image.imread(buffer)


def centre(arena: Arena, row: int, column: int) -> tuple[float, float]:
    """(x, y) of a cell, the first line on top and the middle of the text at (0, 0)."""
    height, width = len(arena.maze.lines), len(arena.maze.lines[0])
    return arena.cell * (column - (width - 1) / 2), arena.cell * ((height - 1) / 2 - row)


def cells(arena: Arena, *, floor: bool) -> list[tuple[float, float]]:
    """Centres of the floor cells, or of the wall cells that touch one."""
    marks = {(r, c): mark for r, line in enumerate(arena.maze.lines) for c, mark in enumerate(line)}
    inside = {cell for cell, mark in marks.items() if mark != "#"}
    around = {(r + i, c + j) for r, c in inside for i in (-1, 0, 1) for j in (-1, 0, 1)} - inside
    return [centre(arena, *cell) for cell in (inside if floor else around)]


def patches(axis, kind) -> list:
    return [patch for patch in axis.patches if isinstance(patch, kind)]


def covering(axis, point: tuple[float, float]) -> list[Rectangle]:
    """The walls that are drawn over a point."""
    return [
        box
        for box in patches(axis, Rectangle)
        if box.get_x() < point[0] < box.get_x() + box.get_width()
        and box.get_y() < point[1] < box.get_y() + box.get_height()
    ]


def assert_arena(axis, arena: Arena, goal: tuple[float, float], radius: float) -> None:
    for cell in cells(arena, floor=False):
        (box,) = covering(axis, cell)
        assert same_color(box.get_facecolor(), WALL)
    for cell in cells(arena, floor=True):
        assert covering(axis, cell) == []
        assert axis.get_xlim()[0] < cell[0] - arena.cell / 2
        assert axis.get_xlim()[1] > cell[0] + arena.cell / 2
        assert axis.get_ylim()[0] < cell[1] - arena.cell / 2
        assert axis.get_ylim()[1] > cell[1] + arena.cell / 2
    (ring,) = patches(axis, Circle)
    assert ring.center == pytest.approx(goal)
    assert ring.radius == pytest.approx(radius)
    assert axis.get_aspect() == 1


def test_walls_and_goal_are_drawn_in_place():
    figure = Figure()
    first, second = figure.subplots(1, 2)
    draw_arena(first, U_MAZE)
    draw_arena(second, CROOKED)
    assert_arena(first, U_MAZE, (-2, -2), 0.6)
    assert_arena(second, CROOKED, (2.25, 1.5), 0.6)
    drawn(figure)


def shown_at(axis, points: np.ndarray) -> np.ndarray:
    """What an image shows at (x, y), by its pixels and where its edges are."""
    (image,) = axis.get_images()
    values = np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)
    left, right, bottom, top = image.get_extent()
    assert image.origin == "lower"
    column = np.floor((points[:, 0] - left) / (right - left) * values.shape[1]).astype(int)
    row = np.floor((points[:, 1] - bottom) / (top - bottom) * values.shape[0]).astype(int)
    return values[row, column]


@pytest.mark.parametrize("arena", [U_MAZE, CROOKED], ids=lambda arena: arena.name)
def test_a_number_is_drawn_where_its_point_is(arena):
    values = np.random.default_rng(0).standard_normal(len(arena.points))
    figure = plots.draw_arena_maps(arena, {"some": values, "minus": -values}, cmap="RdBu_r")
    maps = [axis for axis in figure.axes if axis.get_title()]
    assert [axis.get_title() for axis in maps] == ["some", "minus"]
    for axis, sign in zip(maps, (1, -1), strict=True):
        np.testing.assert_array_equal(shown_at(axis, arena.points), sign * values)
        (image,) = axis.get_images()
        assert np.isfinite(np.ma.filled(image.get_array(), np.nan)).sum() == len(values)
        assert image.get_cmap().name == "RdBu_r"
        assert_arena(axis, arena, tuple(arena.goal), arena.goal_radius)
    drawn(figure)


def curve(*means: float) -> Curve:
    x = [1_000.0 * (k + 1) for k in range(len(means))]
    return Curve(x, list(means), [m - 0.1 for m in means], [m + 0.1 for m in means])


def assert_curve(axis, line, band, expected: Curve) -> None:
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack([expected.x, expected.mean]))
    ends = band.get_paths()[0].vertices
    assert ends[:, 1].min() == pytest.approx(min(expected.low))
    assert ends[:, 1].max() == pytest.approx(max(expected.high))
    assert (ends[:, 0].min(), ends[:, 0].max()) == (min(expected.x), max(expected.x))


def test_each_arena_is_a_column_of_maps_above_its_curves():
    zeros, ones = np.zeros(len(U_MAZE.points)), np.ones(len(U_MAZE.points))
    given = {"mix": curve(0.2, 0.5), "l2": curve(0.1, 0.1)}
    panels = {
        "first": arena_column(U_MAZE, {"one": zeros, "two": ones}, given),
        "second": arena_column(CROOKED, {}, {"l2": curve(0.3)}),
    }
    figure = plots.draw_reaching(panels)
    axes = {axis.get_title(): axis for axis in figure.axes if axis.get_title()}
    assert set(axes) == {"first", "second", "first: one", "first: two"}
    grid = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    assert len(grid) == 2 * 3
    assert len(figure.axes) - len(grid) == 2
    assert_arena(axes["first: two"], U_MAZE, (-2, -2), 0.6)
    np.testing.assert_array_equal(shown_at(axes["first: two"], U_MAZE.points), ones)
    *lines, wanted = axes["first"].get_lines()
    for line, band, one in zip(lines, axes["first"].collections, given.values(), strict=True):
        assert_curve(axes["first"], line, band, one)
    assert set(wanted.get_ydata()) == {0.9}
    assert axes["first"].get_ylim() == (-0.02, 1.02)
    (only, _) = axes["second"].get_lines()
    assert only.get_color() == lines[1].get_color() != lines[0].get_color()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["mix", "l2", "90 %"]
    drawn(figure)
    figure = plots.draw_reaching({"only": arena_column(U_MAZE, {}, {"mix": curve(0.5)})})
    assert len(figure.axes) == 1, "curves without maps are one row"


def test_online_and_pretrained_are_side_by_side_with_the_best_there_is():
    given = {"pretrained": curve(0.2, 0.5), "online": curve(0.1, 0.9)}
    figure = plots.draw_online(
        {
            "arena": OnlinePanel(given, "success", 1.0),
            "maze": OnlinePanel({"pretrained": curve(-40.0)}, "mean return", -11.0),
        }
    )
    arena, maze = figure.axes
    *lines, best = arena.get_lines()
    for line, band, one in zip(lines, arena.collections, given.values(), strict=True):
        assert_curve(arena, line, band, one)
    assert set(best.get_ydata()) == {1.0}
    assert set(maze.get_lines()[-1].get_ydata()) == {-11.0}
    assert (maze.get_title(), maze.get_ylabel()) == ("maze", "mean return")
    drawn(figure)


def test_success_over_the_steps():
    (axis,) = plots.draw_success([160, 320], [0.25, 0.75]).axes
    success, wanted = axis.get_lines()
    np.testing.assert_array_equal(success.get_xydata(), [[160, 0.25], [320, 0.75]])
    assert set(wanted.get_ydata()) == {0.9}
    drawn(axis.figure)


def test_paths_are_green_where_they_reach_the_goal_and_red_where_not():
    paths = np.zeros((3, 2, 2))
    paths[:, 0] = [[2, -2], [0, -2], [-2, -2]]
    paths[:, 1] = [[-2, 2], [-1, 2], [0, 2]]
    figure = plots.draw_paths(U_MAZE, paths, np.array([True, False]))
    (axis,) = figure.axes
    assert_arena(axis, U_MAZE, (-2, -2), 0.6)
    lines = axis.get_lines()
    assert len(lines) == 4
    for start, line in enumerate(lines[::2]):
        np.testing.assert_array_equal(line.get_xydata(), paths[:, start])
    for start, dot in enumerate(lines[1::2]):
        np.testing.assert_array_equal(dot.get_xydata(), paths[:1, start])
    red, green = (np.array(matplotlib.colors.to_rgb(line.get_color())) for line in (lines[2], lines[0]))
    assert red.argmax() == 0
    assert green.argmax() == 1
    assert axis.get_title() == "from 2 starts; 50% reach the goal"
    drawn(figure)


@pytest.mark.parametrize(
    ("frames", "more", "shown"), [(61, {}, 6), (61, {"count": 3}, 3), (4, {}, 4), (1, {}, 1)]
)
def test_a_strip_has_as_many_pictures_as_asked_for_or_as_there_are(frames, more, shown):
    film = [np.full((4, 5, 3), number, np.uint8) for number in range(frames)]
    figure = plots.draw_strip(film, **more)
    numbers = [int(image.get_array()[0, 0, 0]) for axis in figure.axes for image in axis.get_images()]
    assert len(figure.axes) == len(numbers) == shown
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    assert numbers[-1] == frames - 1
    drawn(figure)


def untrained(arena: Arena) -> ControlAgent:
    simulator = Simulator(arena)
    specs = ddpg.network_specs(simulator.n_observations, simulator.n_actions, (8,))
    seen = simulator.some_states(50, 0)
    optimisers = ddpg.Optimisers(optax.sgd(0.1), optax.sgd(0.1))
    learner = ddpg.init_learner(specs, seen, optimisers, key=jax.random.key(0))
    return ControlAgent(learner.online.actor, specs[0], {"target": arena.name})


@pytest.fixture(scope="module")
def by_hand() -> ControlOutcome:
    """A policy that was never trained, and measures that are made up."""
    arena = open_arena("PointUMaze", fast=True)
    agent = untrained(arena)
    result = {
        "target": "PointUMaze",
        "reward": "mix",
        "success": 0.5,
        "final_distance": 3.25,
        "steps_to_success": None,
        "evaluated_at": [2_000, 4_000],
        "successes": [0.25, 0.5],
        "train_seconds": 12.345,
        "settings": dataclasses.asdict(ControlSettings(preset="quick", filter="soft")),
    }
    return ControlOutcome(agent, result, arena, None, evaluate_policy(Simulator(arena), agent.act))


def written(table) -> dict[str, list[str]]:
    """The value and the note of each measure, as a console shows them."""
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    lines = [line.split("  ") for line in console.file.getvalue().splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    return {first: rest for first, *rest in cells}


def test_the_table_of_a_run_tells_its_measures(by_hand):
    table = control_table(by_hand)
    assert all(word in str(table.title) for word in ("PointUMaze", "mix", "quick"))
    told = written(table)
    assert told["success"][0] == "50%"
    assert told["distance left"][0] == "3.25"
    assert told["steps to 90 %"][0] == "never"
    assert told["training, s"] == ["12.3"]
    assert "φ's distance" not in told
    more = {"gate": 0.91, "gate_l2": 0.123, "steps_to_success": 24_000, "success": 1.0}
    told = written(control_table(by_hand._replace(result=by_hand.result | more)))
    assert told["φ's distance"][0] == "0.910"
    assert "0.123" in told["φ's distance"][1]
    assert told["steps to 90 %"][0] == "24,000"
    assert told["success"][0] == "100%"


def episodes_at(arena: Arena, starts: list, ends: list, steps: int = 300) -> EvaluationEpisodes:
    """Paths that stand at their starts, and are at their ends from half the time on."""
    paths = np.repeat(np.array(starts, float)[None], steps + 1, axis=0)
    paths[steps // 2 :] = ends
    reached = np.linalg.norm(np.array(ends) - arena.goal, axis=1) <= arena.goal_radius
    left, upright = arena.path_lengths(np.array(ends, float)), np.zeros(len(ends), bool)
    return EvaluationEpisodes(paths, reached, left, upright)


@pytest.fixture
def camera(monkeypatch):
    """In place of pictures, films are made of (x, y) of the body."""

    class Camera:
        open = 0

        def __init__(self, simulator: Simulator):
            Camera.open += 1

        def __call__(self, row: np.ndarray) -> np.ndarray:
            return row[1:3].copy()

        def close(self) -> None:
            Camera.open -= 1

    monkeypatch.setattr(report, "TopView", Camera)
    yield
    assert Camera.open == 0, "a renderer was not given back"


@pytest.mark.parametrize(
    ("reaching", "start"),
    [((), 0), ((1, 2), 1), ((2,), 2), ((0, 1, 2), 0)],
    ids=["none", "two", "one", "all"],
)
def test_a_film_begins_at_the_start_that_is_farthest_of_those_that_lead_to_the_goal(
    by_hand, camera, reaching, start
):
    """The ways from (-2, 2), (2, 2) and (0, -2) are of falling length; if none leads there, all count."""
    starts = [[-2, 2], [2, 2], [0, -2]]
    ends = [[-2, -2] if number in reaching else place for number, place in enumerate(starts)]
    frames = filmed(by_hand._replace(episodes=episodes_at(by_hand.arena, starts, ends, 10)))
    assert frames[0].tolist() == starts[start]


@pytest.mark.parametrize(("end", "pictures"), [([-2, -2], (150 + 10) // 2 + 1), ([2, 2], 300 // 5 + 1)])
def test_a_film_ends_soon_after_the_goal_and_has_about_sixty_pictures(by_hand, camera, end, pictures):
    episodes = episodes_at(by_hand.arena, [[2, 2]], [end], 300)
    assert len(filmed(by_hand._replace(episodes=episodes))) == pictures


def test_the_film_shows_what_the_policy_did(by_hand, camera):
    """Simulated anew from the same start, the body goes the same way."""
    paths = by_hand.episodes.paths
    moved = np.linalg.norm(paths[-1] - paths[0], axis=1)
    chosen = np.arange(49) == moved.argmax()
    elsewhere = paths.copy()
    elsewhere[1:] = 2.0  # as if it never came near the goal, so that the film is of a whole episode
    frames = filmed(by_hand._replace(episodes=by_hand.episodes._replace(reached=chosen, paths=elsewhere)))
    assert moved.max() > 0.5
    np.testing.assert_allclose(frames, paths[::5, chosen][:, 0], atol=1e-3)


def test_a_run_with_phi_has_every_picture_and_its_folder_knows_them(by_hand, tmp_path, monkeypatch):
    """Or --overwrite would leave them behind."""
    drawn_maps = []
    draw = plots.draw_arena_maps
    monkeypatch.setattr(
        plots, "draw_arena_maps", lambda *given, **more: drawn_maps.append(given) or draw(*given, **more)
    )
    monkeypatch.setattr(report, "FILM_FRAMES", 5)
    phi = Known({"soft": lambda states: 7 * np.abs(states[:, 0])})
    files = draw_control(by_hand._replace(representation=phi), tmp_path / "figures")
    assert [path.name for path in files] == [
        *("success.png", "goal.png", "paths.png", "strip.png"),
        "film.gif",
    ]
    assert {path.stem for path in (tmp_path / "figures").iterdir()} <= set(FIGURES)
    short = episodes_at(by_hand.arena, [[-2, 2], [2, 0]], [[-2, 2], [-2, -2]], 10)
    plain = draw_control(by_hand._replace(episodes=short), tmp_path / "plain")
    assert [path.name for path in plain] == [path.name for path in files if path.name != "goal.png"]
    for path in files[:-1]:
        pixels = matplotlib.image.imread(path)
        assert min(pixels.shape[:2]) > 200
        assert pixels.std() > 0
        assert path.with_suffix(".svg").is_file()
    with Image.open(files[-1]) as film:
        assert film.n_frames > 1
        assert max(film.size) == 360
    ((arena, maps),) = drawn_maps
    assert list(maps) == ["φ's distance to the goal, soft"]
    np.testing.assert_allclose(*maps.values(), 7 * np.abs(arena.points[:, 0]), rtol=1e-6)
    (goal,) = phi.asked
    np.testing.assert_array_equal(goal, [-2, -2])
