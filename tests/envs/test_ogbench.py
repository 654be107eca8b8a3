"""OGBench's point mazes, many points at once: the same bits as the environment itself, one at a time."""

from functools import cache

import numpy as np
import pytest

from lapwing.envs.ogbench import SIZES, PointMaze, import_ogbench
from lapwing.errors import ConfigError


@cache
def maze_of(size: str) -> PointMaze:
    return PointMaze(size)


def env_of(size: str):
    env = import_ogbench().make_maze_env("point", "maze", maze_type=size, terminate_at_goal=False)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("size", SIZES)
def test_a_step_is_that_of_the_environment_to_the_last_bit(size):
    """Along walls, into corners and freely; several points at once, each against its own environment."""
    maze, rng = maze_of(size), np.random.default_rng(0)
    cells = rng.integers(len(maze.cells), size=4)
    envs, points = [env_of(size) for _ in cells], maze.points_at(maze.centres(maze.cells[cells]))
    for env, point in zip(envs, points, strict=True):
        env.set_xy(point[:2])
    touching = teleported = 0
    held = np.zeros((len(cells), 2))
    for step in range(300):
        if step % 20 == 0:  # a push that is held leads to a wall, and along it
            held = rng.uniform(-1, 1, held.shape)
        actions = held if step % 100 < 60 else rng.uniform(-1, 1, held.shape)
        touching += maze._touch(points[:, :2] + 0.2 * actions).sum()
        points = maze.step(points, actions)
        for i, env in enumerate(envs):
            seen, *_ = env.step(actions[i])
            assert seen.tobytes() == points[i, :2].tobytes(), (step, i)
            left = maze.taken_in(points[i : i + 1, :2])[0]
            assert left == (not np.array_equal(env.get_xy(), seen))
            if left:
                teleported += 1
                assert (maze.exits == env.get_xy()).all(axis=1).any()
                points[i] = maze.points_at(env.get_xy())
    assert touching > 100
    assert (teleported > 0) == (size == "teleport")


@pytest.mark.parametrize("size", SIZES)
def test_the_way_is_that_of_the_oracle(size):
    maze, env = maze_of(size), env_of(size)
    count = len(maze.cells)
    rng = np.random.default_rng(0)
    for here, goal in rng.integers(count, size=(200, 2)):
        start, end = (maze.centres(maze.cells[cell]) + rng.uniform(-1, 1, 2) for cell in (here, goal))
        told, _ = env.get_oracle_subgoal(start, end)
        np.testing.assert_array_equal(maze.centres(maze.cells[maze.next_cell[here, goal]]), told)
        np.testing.assert_array_equal(maze.cells_at(start), env.xy_to_ij(start))
        np.testing.assert_array_equal(maze.centres(maze.cells[here]), env.ij_to_xy(maze.cells[here]))


@pytest.mark.parametrize("size", SIZES)
def test_junctions_are_all_but_straight_corridors(size):
    maze = maze_of(size)
    wall = ~maze.floor
    expected = []
    for index, (row, column) in enumerate(maze.cells):
        beside = [wall[row - 1, column], wall[row + 1, column], wall[row, column - 1], wall[row, column + 1]]
        if beside not in ([False, False, True, True], [True, True, False, False]):
            expected.append(index)
    assert maze.junctions.tolist() == expected


def test_steps_between_cells():
    """Medium: one maze, all of it connected; teleport: one exit is in a cell that one cannot walk out of."""
    steps = maze_of("medium").steps_between
    assert np.isfinite(steps).all()
    assert (steps == steps.T).all()
    assert (np.diag(steps) == 0).all()
    maze = maze_of("teleport")
    shut = maze.number[tuple(maze.cells_at(maze.exits[:1])[0])]
    assert np.isinf(maze.steps_between[shut]).sum() == len(maze.cells) - 1
    assert (maze.next_cell[shut] == shut).all()


def test_no_such_maze():
    with pytest.raises(ConfigError, match="huge"):
        PointMaze("huge")


def test_ogbench_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ogbench.locomaze", None)
    with pytest.raises(ConfigError, match=r"lapwing\[ogbench\]"):
        import_ogbench()
