"""`rep.plot()`: which picture, over what."""

import dataclasses

import numpy as np
import pytest
from matplotlib.figure import Figure

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.representation import Representation
from lapwing.mazes import parse_maze
from tests.support.representations import random_representation

MAZE = "#####\n#..G#\n#.#.#\n#####\n"
OVER_A_MAZE = {"maze": MAZE, "target": "bend", "settings": {"observation": "position"}}


def vectors(features: int = 2, **config) -> Representation:
    rep = random_representation(EncoderSpec("mlp", (features,), 3, None, (4,), 0))
    return dataclasses.replace(rep, config=config)


def titles(figure: Figure) -> list[str]:
    return [title for axis in figure.axes if (title := axis.get_title())]


def test_a_maze_needs_no_observations():
    rep, world = vectors(**OVER_A_MAZE), GridWorld(parse_maze(MAZE, name="bend"))
    figure = rep.plot()
    assert len(titles(figure)) == 3  # of four eigenfunctions, without the constant
    shown = np.ma.masked_invalid(np.asarray(figure.axes[0].get_images()[-1].get_array(), float))
    expected = rep.eigenfunctions(world.observations("position"))[:, 1]
    np.testing.assert_allclose(shown.compressed(), expected, rtol=1e-6)
    named = " ".join(titles(rep.plot(kind="distances")))
    assert all(name in named for name in ("steps", *rep.distances))


def test_states_of_data_are_given():
    rep, states = vectors(features=4), np.random.default_rng(0).standard_normal((50, 4))
    for kind in ("eigenfunctions", "distances"):
        figure = rep.plot(states, kind)
        points = np.asarray(figure.axes[0].collections[0].get_offsets())
        assert len(points) == 50
        assert {tuple(row) for row in points.T.tolist()} <= {tuple(row) for row in states.T.tolist()}
    assert len(titles(rep.plot(states))) == 3
    assert len(rep.plot(states, "embedding").axes[0].collections[0].get_offsets()) == 50


def test_without_anything_to_draw_over_it_is_the_embedding():
    rep = vectors()
    points = np.asarray(rep.plot().axes[0].collections[0].get_offsets())
    np.testing.assert_allclose(points, rep.reference[:, 1:3])
    for kind in ("eigenfunctions", "distances"):
        with pytest.raises(ConfigError, match=rf"{kind}.*observations"):
            rep.plot(kind=kind)


def test_images_have_no_features():
    rep = random_representation(EncoderSpec("conv", (5, 5, 3), 3))
    images = np.zeros((6, 5, 5, 3), np.uint8)
    assert len(rep.plot(images).axes[0].collections[0].get_offsets()) == 6
    with pytest.raises(ConfigError, match="distances"):
        rep.plot(images, "distances")


def test_a_single_dimension_has_a_spectrum_alone():
    rep = vectors()
    columns = {"coefficients": rep.coefficients[:, :1], "reference": rep.reference[:, :1]}
    single = dataclasses.replace(rep, eigenvalues=rep.eigenvalues[:1], **columns)
    assert single.plot().axes[0].get_ylabel()
    with pytest.raises(ConfigError, match="dim"):
        single.plot(kind="embedding")
