import io
import xml.etree.ElementTree

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from lapwing import plots
from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import read_maze

WORLD = GridWorld(read_maze("TwoRoom"))


def heat_maps(figure: Figure) -> list[np.ndarray]:
    """The data of the maps over the maze; behind each lies a picture of the walls."""
    images = [image.get_array() for axis in figure.axes for image in axis.get_images()]
    return [image for image in images if image.ndim == 2]


def test_a_figure_is_written_as_png_and_svg(tmp_path):
    figure = plots.draw_spectrum(np.array([0.0, 0.1]), None, None)
    png, svg = plots.save_figure(figure, tmp_path / "new" / "spectrum")
    assert matplotlib.image.imread(png).shape[2] == 4
    assert xml.etree.ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    contents = []
    for name in ("a", "b"):
        figure = plots.draw_spectrum(np.array([0.0, 0.1]), np.array([0.0, 0.2]), "true chain")
        contents.append([path.read_bytes() for path in plots.save_figure(figure, tmp_path / name)])
    assert contents[0] == contents[1]


@pytest.mark.parametrize(("dim", "maps"), [(2, 1), (6, 5), (30, 12)])
def test_eigenfunctions_lie_on_the_floor_and_the_constant_is_left_out(dim, maps):
    functions = np.random.default_rng(0).standard_normal((WORLD.n_states, dim))
    drawn = heat_maps(plots.draw_eigenfunctions(WORLD, functions, np.linspace(0, 1, dim)))
    assert len(drawn) == maps
    for index, image in enumerate(drawn):
        np.testing.assert_allclose(image[WORLD.maze.floor], functions[:, index + 1])
        assert np.isnan(np.ma.filled(image, np.nan)[~WORLD.maze.floor]).all()


def test_distances_are_drawn_one_map_each_with_the_goal():
    steps = WORLD.steps_to(WORLD.goal_state)
    figure = plots.draw_distances(WORLD, {"steps": steps, "half": steps / 2}, WORLD.goal_state)
    first, second = heat_maps(figure)
    np.testing.assert_allclose(first[WORLD.maze.floor], steps)
    np.testing.assert_allclose(second[WORLD.maze.floor], steps / 2)
    row, column = WORLD.cells[WORLD.goal_state]
    marks = [line.get_xydata()[0] for axis in figure.axes[:2] for line in axis.get_lines()]
    np.testing.assert_array_equal(marks, [[column, row]] * 2)


def test_the_spectrum_may_have_fewer_learned_than_exact_eigenvalues():
    figure = plots.draw_spectrum(np.array([0.0, 0.1]), np.array([0.0, 0.1, 0.2, 0.3]), "true chain")
    exact, learned = figure.axes[0].get_lines()
    np.testing.assert_array_equal(exact.get_xdata(), [1, 2, 3, 4])
    np.testing.assert_array_equal(learned.get_ydata(), [0.0, 0.1])


def test_learning_curves_show_the_loss_and_its_parts():
    rows = [{"step": s, "loss": 3.0 / s, "graph_drawing": 1.0, "penalty": 2.0} for s in (1, 2, 3)]
    lines = plots.draw_learning(rows).axes[0].get_lines()
    assert [line.get_label() for line in lines] == ["loss", "graph drawing G", "orthonormality penalty"]
    np.testing.assert_allclose(lines[0].get_ydata(), [3.0, 1.5, 1.0])


def test_states_without_a_maze_are_a_scatter_of_two_eigenfunctions():
    functions = np.random.default_rng(1).standard_normal((50, 4))
    figure = plots.draw_scatter(functions, np.array([0.0, 0.1, 0.2, 0.3]))
    np.testing.assert_allclose(figure.axes[0].collections[0].get_offsets(), functions[:, 1:3])
    figure.savefig(io.BytesIO(), format="png")


def test_two_eigenfunctions_are_enough_to_draw():
    functions = np.random.default_rng(1).standard_normal((50, 2))
    plots.draw_scatter(functions, np.array([0.0, 0.1])).savefig(io.BytesIO(), format="png")
