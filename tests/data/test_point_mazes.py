"""The recipe of OGBench's data: what is made is what its environments do when they are given the actions."""

from functools import cache

import numpy as np
import pytest

from lapwing.data.point_mazes import ACTION_NOISE, CELLS_AWAY, walk
from lapwing.envs.ogbench import SIZES, PointMaze, import_ogbench


@cache
def maze_of(size: str) -> PointMaze:
    return PointMaze(size)


@cache
def walks_of(size: str, kind: str):
    return walk(maze_of(size), kind, 4, 201, seed=3)


def assert_replayed(size: str, observations: np.ndarray, actions: np.ndarray) -> int:
    """Give the actions to the environment itself; the number of teleports is returned.

    Observations are kept in single precision, in which the environment would drift: it is set to each.
    """
    env = import_ogbench().make_maze_env("point", "maze", maze_type=size, terminate_at_goal=False)
    env.reset(seed=0)
    maze, teleports = maze_of(size), 0
    for here, action, there in zip(observations[:-1], actions, observations[1:], strict=False):
        if maze.taken_in(here[None].astype(float))[0]:  # it saw where it left, and acted where it came out
            teleports += 1
            out = maze.exits[np.argmin(np.linalg.norm(maze.exits - there, axis=1))]
            env.set_xy(out)
        else:
            env.set_xy(here.astype(float))
        seen, *_ = env.step(action.astype(float))
        np.testing.assert_allclose(seen, there, atol=1e-5)
    return teleports


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["navigate", "stitch"])
def test_the_environment_does_the_same(size, kind):
    walks = walks_of(size, kind)
    teleports = sum(assert_replayed(size, *episode) for episode in zip(*walks, strict=True))
    assert size == "teleport" or not teleports


def test_teleports_happen():
    walks = walk(maze_of("teleport"), "navigate", 8, 301, seed=0)
    assert sum(assert_replayed("teleport", *episode) for episode in zip(*walks, strict=True)) > 2


def test_actions_are_unit_vectors_along_the_way_with_noise():
    """For `stitch`, whose goal can be told from where a point stays: towards the next cell's middle."""
    maze, (seen, actions) = maze_of("medium"), walk(maze_of("medium"), "stitch", 400, 201, seed=1)
    start = maze.number[tuple(np.moveaxis(maze.cells_at(seen[:, 0].astype(float)), -1, 0))]
    goal = maze.number[tuple(np.moveaxis(maze.cells_at(seen[:, -1].astype(float)), -1, 0))]
    away = maze.steps_between[start, goal]
    far = (maze.steps_between == CELLS_AWAY).any(axis=1)[start]
    assert (away[far] == CELLS_AWAY).mean() > 0.99
    way = maze.centres(maze.cells[maze.next_cell[start, goal]]) - seen[:, 0]
    noise = actions[:, 0] - way / np.linalg.norm(way, axis=1, keepdims=True)
    inside = (np.abs(actions[:, 0]) < 1).all(axis=1) & far
    assert inside.sum() > 50
    assert np.abs(actions).max() == 1
    # Actions are cut off at 1, which for a unit vector cuts off half of the noise along the way; across it
    # hardly any.
    across = np.take_along_axis(noise, np.argmin(np.abs(way), axis=1)[:, None], axis=1)
    assert across[far].std() == pytest.approx(ACTION_NOISE, rel=0.2)


def test_navigate_goes_from_goal_to_goal_all_over_the_maze():
    maze = maze_of("medium")
    seen = walk(maze, "navigate", 20, 1_001, seed=0).observations
    for episode in seen:
        cells = maze.number[tuple(np.moveaxis(maze.cells_at(episode.astype(float)), -1, 0))]
        assert len(np.unique(cells)) > len(maze.cells) / 2
    starts = seen[:, 0].astype(float)
    assert (np.abs(starts - maze.centres(maze.cells_at(starts))) <= 1).all()


def test_an_episode_depends_on_its_number_and_the_seed_alone():
    asked = ((2, 0), (4, 0), (2, 1))
    few, more, other = (walk(maze_of("large"), "navigate", count, 50, seed) for count, seed in asked)
    for name in ("observations", "actions"):
        np.testing.assert_array_equal(getattr(more, name)[:2], getattr(few, name))
        assert (getattr(few, name) != getattr(other, name)).any(axis=2).all()


def test_progress():
    told = []
    walk(maze_of("medium"), "stitch", 3, 45, 0, lambda *pair: told.append(pair))
    assert told == [(0, 132), (60, 132), (120, 132), (132, 132)]
