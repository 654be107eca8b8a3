"""A browser for all tests of pages, and the page of a small run."""

import numpy as np
import pytest

from lapwing.envs.gridworld import GridWorld
from lapwing.exploring.explore import explore
from lapwing.exploring.opening import Opened
from lapwing.exploring.scenes import of_maze
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.mazes import read_maze
from lapwing.reaching.action_codes import ActionCodes
from lapwing.reaching.geometry import Places
from lapwing.reaching.graph import Graph
from lapwing.reaching.neighbours import Neighbours
from lapwing.reaching.reacher import Landmarks, Reacher
from tests.support import browser
from tests.support.representations import random_representation


@pytest.fixture(scope="session")
def driver():
    started = browser.start()
    browser.resize(started, browser.DESK)
    yield started
    started.quit()


@pytest.fixture(scope="session")
def page(four_room_run, tmp_path_factory):
    return explore(four_room_run, out=tmp_path_factory.mktemp("page") / "four_room.html", show=False)


@pytest.fixture
def reach_run() -> Opened:
    """A reacher in a maze whose plan has as many edges as a page may have."""
    rep = random_representation(EncoderSpec("mlp", (2,), 3, None, (8,)))
    scene = of_maze(GridWorld(read_maze("FourRoom")), "position")
    rng, count = np.random.default_rng(0), len(scene.points)
    places = Places((2,), rep, np.full(2, 0.1), np.array([1.0, 1.5]), local=0.4)
    landmarks = Landmarks(scene.observations, *places(scene.observations), np.ones(count))
    edges = rng.permutation(count**2)[:20_000]
    graph = Graph(count, edges // count, edges % count, rng.uniform(1, 9, len(edges)))
    codes, here = ActionCodes.of(np.arange(4)), landmarks.coordinates
    controller = Neighbours(landmarks.features, here, here, np.eye(4)[rng.integers(4, size=count)], 1.0)
    return Opened(rep, scene, reacher=Reacher(places, landmarks, graph, 2.0, codes, controller))
