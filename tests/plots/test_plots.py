import io
import xml.etree.ElementTree as ElementTree

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from lapwing import plots
from lapwing.cli.agent_report import audit_table
from lapwing.cli.report import draw_all, summary_table
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import StorageError
from lapwing.mazes import parse_maze, read_maze
from lapwing.runs.compare import compare_rewards
from lapwing.runs.folder import FIGURES
from lapwing.runs.learn import reopen
from lapwing.shaping.tasks import grid_task
from tests.support import exact

WORLD = GridWorld(parse_maze("#####\n#..G#\n#.#.#\n#####\n", name="bend"))


def images(figure: Figure) -> list[np.ma.MaskedArray]:
    """What the maps of a figure show, walls masked."""
    shown = []
    for axis in figure.axes:
        for image in axis.get_images():
            values = np.ma.masked_invalid(np.ma.asarray(image.get_array(), dtype=float))
            if values.ndim == 2:
                shown.append(values)
    return shown


def titles(figure: Figure) -> str:
    return " ".join(axis.get_title() for axis in figure.axes)


def drawn(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def test_each_eigenfunction_but_the_constant_is_a_map():
    functions = np.random.default_rng(0).standard_normal((5, 4))
    figure = plots.draw_eigenfunctions(WORLD, functions, np.array([0.0, 0.1, 0.25, 0.5]))
    maps = images(figure)
    assert len(maps) == 3
    for index, values in enumerate(maps, start=1):
        assert values.shape == (4, 5)
        np.testing.assert_array_equal(~np.ma.getmaskarray(values), WORLD.maze.floor)
        for state, (row, column) in enumerate(WORLD.cells):
            assert values[row, column] == functions[state, index]
    assert "0.1000" in titles(figure)
    assert "0.5000" in titles(figure)


@pytest.mark.parametrize(("dim", "shown"), [(2, 1), (6, 5), (40, 12)])
def test_at_most_twelve_eigenfunctions_are_drawn(dim, shown):
    world = GridWorld(read_maze("FourRoom"))
    values, functions = exact.spectrum("FourRoom")
    figure = plots.draw_eigenfunctions(world, functions[:, :dim], values[:dim])
    assert len(images(figure)) == shown
    assert drawn(figure)
    assert drawn(plots.draw_eigenfunctions(WORLD, np.zeros((5, 2)), np.zeros(2)))


def test_the_spectrum_shows_learned_and_exact_eigenvalues():
    learned, true = np.array([0.0, 0.11, 0.3]), np.array([0.0, 0.1, 0.25, 0.5])
    (axis,) = plots.draw_spectrum(learned, true, "true chain").axes
    lines = {line.get_label(): line.get_xydata() for line in axis.get_lines()}
    np.testing.assert_array_equal(lines["learned"], np.column_stack([[1, 2, 3], learned]))
    np.testing.assert_array_equal(lines["exact (true chain)"], np.column_stack([[1, 2, 3, 4], true]))
    (axis,) = plots.draw_spectrum(learned, None, None).axes
    assert [line.get_label() for line in axis.get_lines()] == ["learned"]


def test_many_distances_are_wrapped_and_empty_panels_blank():
    steps = WORLD.steps_to(0)
    figure = plots.draw_distances(WORLD, {f"distance {number}": steps for number in range(7)}, 0)
    assert len(images(figure)) == 7
    first, fifth = (figure.axes[index].get_subplotspec().colspan.start for index in (0, 4))
    assert first == fifth == 0
    assert drawn(figure)


def test_a_distance_below_zero_uses_all_colours():
    """As `hitting` can be; zero is in the middle of eigenfunctions alone."""
    points = np.random.default_rng(0).normal(size=(50, 2))
    away = np.linspace(-1, 20, 50)
    figure = plots.draw_distances_over_features(points, ("x", "y"), {"hitting": away}, 7)
    low, high = figure.axes[0].collections[0].get_clim()
    assert low == -1
    assert high > 15


def test_distances_are_maps_with_the_goal_marked():
    goal = WORLD.goal_state
    assert goal is not None
    steps = WORLD.steps_to(goal)
    figure = plots.draw_distances(WORLD, {"steps": steps, "distance, soft": 2 * steps}, goal)
    first, second = images(figure)
    assert first[1, 3] == 0
    np.testing.assert_array_equal(second, 2 * first)
    assert "steps" in titles(figure)
    assert "distance, soft" in titles(figure)
    for axis in figure.axes[:2]:
        (star,) = axis.get_lines()
        np.testing.assert_array_equal(star.get_xydata(), [[3, 1]])


@pytest.mark.parametrize("rows_and_columns", [False, True])
def test_distances_over_features_lead_to_the_star(rows_and_columns):
    points = np.random.default_rng(0).normal(size=(50, 2))
    away = np.linalg.norm(points - points[7], axis=1)
    figure = plots.draw_distances_over_features(
        points, ("x", "y"), {"one": away, "two": 2 * away}, 7, rows_and_columns=rows_and_columns
    )
    for axis, scale in zip(figure.axes[:2], (1, 2), strict=True):
        (dots,), (star,) = axis.collections, axis.get_lines()
        np.testing.assert_allclose(np.asarray(dots.get_array()), scale * away)
        (nearest,) = np.asarray(dots.get_offsets())[np.asarray(dots.get_array()) == 0]
        np.testing.assert_array_equal(star.get_xydata(), [nearest])
        np.testing.assert_array_equal(nearest, points[7, ::-1] if rows_and_columns else points[7])
        assert dots.get_clim()[0] == 0
    assert titles(figure).split() == ["one", "two"]


def test_eigenfunctions_over_features_have_zero_in_the_middle():
    values = np.random.default_rng(0).normal(size=(50, 4))
    figure = plots.draw_over_features(values[:, :2], ("x", "y"), values, np.array([0.0, 0.1, 0.2, 0.3]))
    for place, axis in enumerate(figure.axes[:3], start=1):
        (dots,) = axis.collections
        np.testing.assert_array_equal(np.asarray(dots.get_array()), values[:, place])
        low, high = dots.get_clim()
        assert low == -high


@pytest.mark.parametrize("sign", [1, -1])
def test_learning_shows_the_loss_and_its_parts(sign):
    """The sampled penalty is an estimate without bias, and so sometimes negative."""
    rows = [{"step": s, "loss": 3 / s, "graph_drawing": 2 / s, "penalty": sign / s} for s in (1, 2, 3)]
    figure = plots.draw_learning(rows)
    lines = figure.axes[0].get_lines()
    for line, scale in zip(lines, (3, 2, sign), strict=True):
        np.testing.assert_allclose(line.get_xydata(), [[s, scale / s] for s in (1, 2, 3)])
    assert drawn(figure)


@pytest.mark.parametrize("dim", [2, 3, 4, 9])
def test_states_without_a_maze_are_points(dim):
    functions = np.random.default_rng(0).standard_normal((50, dim))
    figure = plots.draw_scatter(functions, np.linspace(0, 0.5, dim))
    points = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_array_equal(points, functions[:, [1, min(2, dim - 1)]])
    assert drawn(figure)


def test_a_figure_is_saved_as_png_and_svg_always_the_same(tmp_path):
    figure = plots.draw_spectrum(np.array([0.0, 0.1]), None, None)
    written, again = (plots.save_figure(figure, tmp_path / name / "spectrum") for name in ("new", "other"))
    assert [path.name for path in written] == ["spectrum.png", "spectrum.svg"]
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    height, width, _ = matplotlib.image.imread(written[0]).shape
    assert 200 < height < width
    assert ElementTree.parse(written[1]).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file"):
        plots.save_figure(figure, tmp_path / "file" / "spectrum")


def test_every_figure_of_a_run_is_known_to_its_folder(four_room_run, tmp_path):
    """Or --overwrite would leave it behind."""
    outcome = reopen(four_room_run)
    (tmp_path / "metrics.jsonl").write_bytes((four_room_run / "metrics.jsonl").read_bytes())
    written = draw_all(outcome, tmp_path / "figures")
    assert {path.stem for path in written} == {"spectrum", "learning", "eigenfunctions", "distances"}
    assert {path.stem for path in (tmp_path / "figures").iterdir()} <= set(FIGURES)
    assert len(list((tmp_path / "figures").iterdir())) == 8


def test_the_table_holds_what_the_result_says(four_room_run):
    outcome = reopen(four_room_run)
    table = summary_table(outcome)
    cells = [cell for column in table.columns for cell in column.cells]
    for name in ("gap", "gap_floor", "gap_random", "cosine_mean"):
        assert f"{outcome.result[name]:.4g}" in cells
    assert "true chain" in str(table.title)


@pytest.fixture(scope="module")
def two_rooms():
    return compare_rewards("TwoRoom", forms=["sparse", "l2", "mix"])


def test_an_audit_is_a_map_with_its_optima_crossed_and_its_goal_starred(two_rooms):
    figure = plots.draw_audits(two_rooms.task, two_rooms.audits)
    panels = [axis for axis in figure.axes if axis.get_title()]
    assert len(panels) == len(two_rooms.audits) == 8
    l2 = panels[1]
    assert l2.get_title() == "l2: correlation 0.73"
    crosses, star = l2.lines
    assert (crosses.get_xdata().tolist(), crosses.get_ydata().tolist()) == ([15], [7])
    assert (star.get_xdata(), star.get_ydata()) == ([15], [9])
    assert drawn(figure)


def test_arrows_show_where_the_reward_leads(two_rooms):
    """Every arrow of l2 but that of its optimum leads nearer to the goal in the plane."""
    (quiver,) = plots.draw_audits(two_rooms.task, [two_rooms.audits[1]]).axes[0].collections
    here = np.column_stack([quiver.X, quiver.Y]).astype(float)
    goal = np.array([15, 9])
    away = np.linalg.norm(here - goal, axis=1)
    nearer = np.linalg.norm(here + 0.1 * np.column_stack([quiver.U, quiver.V]) - goal, axis=1)
    stuck = (here == [15, 7]).all(axis=1)
    assert stuck.sum() == 1
    assert (nearer[~stuck] < away[~stuck]).all()


def test_a_policy_is_drawn_and_animated(two_rooms, tmp_path):
    task = two_rooms.task
    values = -task.steps[task.world.next_state]
    assert drawn(plots.draw_policy(task, values))
    frames = plots.policy_frames(task, values.argmax(axis=1), held=3)
    longest = int(task.steps.max())
    assert len(frames) == longest + 1 + 3
    height, width = task.world.maze.floor.shape
    assert frames[0].shape == (16 * height, 16 * width, 3)
    row, column = task.goal_cell
    last = frames[-1][::16, ::16]
    empty = task.world.background()
    empty[row, column] = last[row, column]
    assert (last == empty).all()  # all of them are at the goal
    path = plots.save_animation(frames, tmp_path / "policy")
    with Image.open(path) as animation:
        assert (path.suffix, animation.n_frames) == (".gif", longest + 1)  # frames that are alike are one
    corridor = grid_task(GridWorld(parse_maze("####\n#.G#\n####", name="two")))
    up = plots.policy_frames(corridor, np.zeros(2, int), held=1)
    assert len(up) == 2, "into the wall: a policy that never moves is one frame"


def test_returns_are_drawn_with_the_optimum():
    (axis,) = plots.draw_returns([500, 1000], [-40.0, -20.0], -19.0).axes
    assert [line.get_label() for line in axis.lines] == ["greedy policy", "optimum"]
    (axis,) = plots.draw_returns([500], [10.0], None).axes
    assert len(axis.lines) == 1


def test_the_table_of_an_audit_is_in_the_order_that_is_expected(two_rooms):
    table = audit_table(two_rooms)
    names, *_, ahead, _, _ = ([*column.cells] for column in table.columns)
    assert names[-1] == "l2"
    assert [int(cell) for cell in ahead] == sorted(int(cell) for cell in ahead)
    assert "TwoRoom, goal (9,15)" in str(table.title)
