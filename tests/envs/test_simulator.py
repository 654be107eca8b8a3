"""Bodies in arenas: MuJoCo's steps one by one and many at once, and what physics says without a simulator."""

import math
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.stats import kstest

from lapwing.envs.arena import BODIES, EPISODE_LENGTH, Arena, make_arena, open_arena
from lapwing.envs.simulator import Simulator, goal_observation, random_episodes
from lapwing.errors import ConfigError
from lapwing.mazes import parse_maze

CORRIDOR = parse_maze("#" * 32 + "\n#" + "." * 29 + "G#\n" + "#" * 32, name="Corridor")
POINT_STEP = 0.08
"""Seconds in a step of the environment."""


@cache
def simulator_of(name: str, fast: bool = False) -> Simulator:
    if name == "Corridor":
        return Simulator(make_arena(BODIES["Point"], CORRIDOR, fast=fast))
    return Simulator(open_arena(name, fast=fast))


def random_rows(simulator: Simulator, count: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return simulator.at_rest(simulator.arena.random_positions(count, generator), generator)


def on_floor(arena: Arena, points: np.ndarray) -> np.ndarray:
    """Whether the text has floor there."""
    height, width = len(arena.maze.lines), len(arena.maze.lines[0])
    column = np.floor(points[..., 0] / arena.cell + width / 2).astype(int)
    row = np.floor(height / 2 - points[..., 1] / arena.cell).astype(int)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    floor = np.array([[mark != "#" for mark in line] for line in arena.maze.lines])
    return inside & floor[row.clip(0, height - 1), column.clip(0, width - 1)]


def wall_contacts(simulator: Simulator) -> int:
    """How many of the simulator's contacts, after `step_one`, are with what has no name: a wall."""
    geoms = simulator.data.contact.geom
    first = simulator.model.geom("ground").id
    of_world = simulator.model.geom_bodyid[geoms] == 0
    return int((of_world & (geoms != first)).any(axis=1).sum()) if len(geoms) else 0


def away_from_walls(arena: Arena, points: np.ndarray) -> np.ndarray:
    """The distance to the nearest of the boxes that MuJoCo has for walls."""
    beyond = np.abs(points[..., None, :] - arena.walls[:, :2]) - arena.walls[:, 2:]
    return np.linalg.norm(np.maximum(beyond, 0), axis=-1).min(axis=-1)


class TestModel:
    @pytest.mark.parametrize("maze", ["UMaze", "HookMaze"])
    @pytest.mark.parametrize(("body", "seen", "pushed"), [("Point", 6, 2), ("Ant", 29, 8)])
    def test_numbers_seen_and_pushed(self, body, maze, seen, pushed):
        simulator = simulator_of(body + maze)
        assert (simulator.n_observations, simulator.n_actions) == (seen, pushed)
        rows = random_rows(simulator, 3)
        assert rows.shape == (3, 1 + seen)
        observed = simulator.observe(rows)
        assert observed.shape == (3, seen)
        assert observed.dtype == np.float32

    def test_the_point_is_what_its_arena_takes_it_for(self):
        model = simulator_of("PointUMaze").model
        assert model.geom("ball").size[0] == BODIES["Point"].radius
        assert model.body("torso").mass[0] == 1
        assert model.dof_damping[:2].tolist() == [1, 1]
        assert model.actuator_gear[:, 0].tolist() == [5, 5]

    @pytest.mark.parametrize("body", ["Point", "Ant"])
    def test_an_ordinary_step_and_a_fast_one_last_equally_long(self, body):
        """The fast integrator takes as many seconds as the other, if with another timestep."""
        ends = []
        for fast in (False, True):
            simulator = simulator_of(f"{body}UMaze", fast)
            rows = random_rows(simulator, 1)
            ends.append(simulator.step(rows, np.zeros((1, simulator.n_actions)))[0])
        assert ends[0][0] == pytest.approx({"Point": POINT_STEP, "Ant": 0.1}[body])
        assert ends[1][0] == pytest.approx(ends[0][0])
        assert (ends[0][1:3] != ends[1][1:3]).all(), "they are two integrators"
        np.testing.assert_allclose(ends[0][1:3], ends[1][1:3], atol=0.01)

    @pytest.mark.parametrize("name", ["PointUMaze", "AntHookMaze"])
    def test_walls_are_solid_boxes_where_the_arena_has_them(self, name):
        simulator = simulator_of(name)
        model = simulator.model
        boxes = np.array(
            [
                [*model.geom(i).pos[:2], *model.geom(i).size[:2]]
                for i in range(model.ngeom)
                if model.geom_type[i] == 6  # mjGEOM_BOX
            ]
        )
        np.testing.assert_allclose(boxes, simulator.arena.walls)
        for i in np.flatnonzero(model.geom_type == 6):
            assert model.geom(i).pos[2] == model.geom(i).size[2] > 0.3, "a wall stands on the ground"
            assert model.geom_contype[i] and model.geom_conaffinity[i]  # noqa: PT018

    def test_without_mujoco_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "mujoco", None)
        arena = open_arena("PointUMaze")
        with pytest.raises(ConfigError, match=r"lapwing\[mujoco\]"):
            Simulator(arena)
        with pytest.raises(ConfigError, match=r"lapwing\[mujoco\]"):
            goal_observation(arena, whole=True)
        assert goal_observation(arena, whole=False).tolist() == [-2, -2], "an arena alone does not need it"


class TestAtRest:
    @pytest.mark.parametrize("name", ["PointUMaze", "AntUMaze"])
    def test_without_a_generator_nothing_moves(self, name):
        simulator = simulator_of(name)
        places = np.array([[-2.0, 2.0], [2.5, 0.25]])
        rows = simulator.at_rest(places)
        np.testing.assert_array_equal(rows[:, 1:3], places)
        np.testing.assert_array_equal(rows[:, 0], 0)
        np.testing.assert_array_equal(rows[:, 1 + simulator.model.nq :], 0)
        np.testing.assert_array_equal(rows[0, 3:], rows[1, 3:])

    def test_an_ant_without_pushes_stands(self):
        simulator = simulator_of("AntUMaze")
        rows = simulator.at_rest(np.array([[-3.0, 3.0]]))
        for _ in range(30):
            rows = simulator.step(rows, np.zeros((1, 8)))
        assert np.abs(rows[0, 1:3] - [-3, 3]).max() < 0.05
        assert 0.3 < rows[0, 3] < 0.9
        assert rows[0, 4] > 0.99, "upright"

    @pytest.mark.parametrize("name", ["PointHookMaze", "AntHookMaze"])
    def test_a_generator_gives_small_deviations(self, name):
        simulator = simulator_of(name)
        places = simulator.arena.random_positions(400, np.random.default_rng(0))
        calm, rows = simulator.at_rest(places), simulator.at_rest(places, np.random.default_rng(1))
        nq = simulator.model.nq
        np.testing.assert_array_equal(rows[:, 1:3], places)
        apart = np.abs(rows - calm)[:, 3 : 1 + nq]
        # A quaternion is a little shorter or longer than 1 before it is normed.
        assert 0.08 < apart.max() < 0.15
        assert (apart.std(axis=0) > 0.01).sum() >= nq - 3
        assert rows[:, 1 + nq :].std() == pytest.approx(0.1, rel=0.1)
        again = simulator.at_rest(places, np.random.default_rng(1))
        np.testing.assert_array_equal(rows, again)
        if name == "AntHookMaze":
            np.testing.assert_allclose(np.linalg.norm(rows[:, 4:8], axis=1), 1, rtol=1e-14)

    @pytest.mark.parametrize("name", ["PointUMaze", "PointHookMaze", "AntUMaze", "AntHookMaze"])
    def test_the_goal_as_an_observation(self, name):
        arena = open_arena(name)
        place = {"UMaze": (-1, -1), "HookMaze": (2, -1)}[arena.maze.name]
        place = [arena.cell * place[0], arena.cell * place[1]]
        pose = [0] if arena.body.name == "Point" else [0.75, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1]
        still = [0] * (3 if arena.body.name == "Point" else 14)
        whole, part = (goal_observation(arena, whole=whole) for whole in (True, False))
        assert whole.dtype == part.dtype == np.float32
        assert part.tolist() == place
        assert whole.tolist() == [*place, *pose, *still]


class TestStep:
    @pytest.mark.parametrize(
        ("name", "fast", "count", "steps"),
        [
            ("PointUMaze", False, 6, 200),
            ("PointUMaze", True, 6, 200),
            ("AntUMaze", False, 2, 150),
            ("AntUMaze", True, 2, 200),
        ],
    )
    def test_many_at_once_are_the_same_bits_as_one_by_one(self, name, fast, count, steps):
        """Each body keeps pushing one way for a while, so that it runs into walls."""
        simulator = simulator_of(name, fast)
        generator = np.random.default_rng(3)
        together = random_rows(simulator, count, seed=2)
        if name == "AntUMaze":  # slow, so a leg is at the wall from the start: turned by 45 degrees
            together[:, 1:3] = [[3.6, 0.0], [3.6, 3.6]]
            together[:, 4:8] = [math.cos(math.pi / 8), 0, 0, math.sin(math.pi / 8)]
        apart, contacts = together.copy(), 0
        for step in range(steps):
            if step % 20 == 0:
                actions = np.sign(generator.uniform(-1, 1, (count, simulator.n_actions)))
            together = simulator.step(together, actions)
            for body in range(count):
                apart[body] = simulator.step_one(apart[body], actions[body])
                contacts += wall_contacts(simulator)
            np.testing.assert_array_equal(together, apart)
        assert contacts >= 10

    @pytest.mark.parametrize("name", ["PointUMaze", "AntUMaze"])
    def test_what_is_given_is_not_changed(self, name):
        simulator = simulator_of(name)
        rows = random_rows(simulator, 2)
        kept, actions = rows.copy(), np.full((2, simulator.n_actions), 3.0)
        simulator.step(rows, actions)
        simulator.step_one(rows[0], actions[0])
        simulator.observe(rows)
        np.testing.assert_array_equal(rows, kept)
        np.testing.assert_array_equal(actions, 3.0)

    @pytest.mark.parametrize("name", ["PointUMaze", "AntUMaze"])
    def test_actions_beyond_one_are_clipped(self, name):
        simulator = simulator_of(name)
        rows = random_rows(simulator, 4)
        within = np.random.default_rng(0).choice([-1.0, 0.25, 1.0], (4, simulator.n_actions))
        beyond = np.where(np.abs(within) == 1, 7 * within, within)
        expected = simulator.step(rows, within)
        np.testing.assert_array_equal(simulator.step(rows, beyond), expected)
        np.testing.assert_array_equal(simulator.step(rows, beyond.astype(np.float32)), expected)
        np.testing.assert_array_equal(simulator.step_one(rows[0], beyond[0]), expected[0])
        assert (simulator.step(rows, within / 2)[:, 1:] != expected[:, 1:]).any(axis=1).all()

    @given(st.floats(-60, 60))
    @example(math.pi)
    @example(3 * math.pi)
    def test_a_heading_is_seen_between_minus_pi_and_pi(self, heading):
        simulator = simulator_of("PointUMaze")
        rows = simulator.at_rest(np.array([[2.0, 0.5]]))
        rows[0, 3] = heading
        seen = simulator.observe(rows)[0]
        assert seen[[0, 1, 3, 4, 5]].tolist() == [2, 0.5, 0, 0, 0]
        assert abs(seen[2]) <= np.float32(np.pi)  # which is a little above π itself
        assert math.cos(seen[2]) == pytest.approx(math.cos(heading), abs=1e-6)
        assert math.sin(seen[2]) == pytest.approx(math.sin(heading), abs=1e-6)

    def test_a_body_is_overturned_if_its_torso_points_down(self):
        """As SciPy turns the vertical; a Point has no back to lie on."""
        simulator, turns = simulator_of("AntUMaze"), Rotation.random(40, rng=np.random.default_rng(0))
        rows = simulator.at_rest(np.zeros((40, 2)))
        assert not simulator.overturned(rows).any()
        rows[:, 4:8] = turns.as_quat(scalar_first=True)
        expected = turns.apply([0, 0, 1])[:, 2] < 0
        assert 10 < expected.sum() < 30
        np.testing.assert_array_equal(simulator.overturned(rows), expected)
        point = simulator_of("PointUMaze")
        assert not point.overturned(random_rows(point, 5)).any()

    def test_the_numbers_of_an_ant_are_seen_as_they_are(self):
        simulator = simulator_of("AntUMaze")
        rows = random_rows(simulator, 3)
        rows[:, 3] = 9.0  # a height, not a heading
        np.testing.assert_array_equal(simulator.observe(rows), rows[:, 1:].astype(np.float32))


class TestPoint:
    @pytest.mark.parametrize("fast", [False, True])
    def test_a_full_push_tends_to_five_units_a_second(self, fast):
        """Mass 1, damping 1, force 5: v(t) = 5 (1 - exp(-t)), and x(t) its integral.

        The fast integrator solves v' = 5 - v by implicit Euler in steps of 0.04: after n of them v is
        5 (1 - 1.04^-n), and x the sum of 0.04 v.
        """
        simulator = simulator_of("Corridor", fast)
        rows = simulator.at_rest(np.array([[-28.0, 0.0], [28.0, 0.0]]))
        pushes = np.array([[1.0, 0.0], [-1.0, 0.0]])
        for step in range(1, 101):
            rows = simulator.step(rows, pushes)
            t = step * POINT_STEP
            speed, way = 5 * (1 - math.exp(-t)), 5 * (t - 1 + math.exp(-t))
            if fast:
                speeds = 5 * (1 - 1.04 ** -np.arange(1.0, 2 * step + 1))
                assert speeds[-1] == pytest.approx(speed, rel=0.04)
                speed, way = speeds[-1], 0.04 * speeds.sum()
            assert rows[:, 0] == pytest.approx(t)
            np.testing.assert_allclose(rows[:, 4], [speed, -speed], rtol=1e-6)
            np.testing.assert_allclose(rows[:, 1], [way - 28, 28 - way], atol=1e-6)
            np.testing.assert_array_equal(rows[:, [2, 3, 5, 6]], 0)
        assert rows[0, 4] == pytest.approx(5, abs=0.01)

    @pytest.mark.parametrize("fast", [False, True])
    @pytest.mark.parametrize("name", ["PointUMaze", "PointHookMaze", "Corridor", "Open"])
    def test_no_wall_is_ever_gone_through(self, name, fast):
        """Full force in one direction each, from everywhere; in the corridor at the highest speed."""
        if name == "Open":  # nothing but what closes the edge of the text
            maze = parse_maze("..\n.G\n", name="Open")
            simulator = Simulator(make_arena(BODIES["Point"], maze, fast=fast))
        else:
            simulator = simulator_of(name, fast)
        arena, count = simulator.arena, 48
        rows = simulator.at_rest(arena.random_positions(count, np.random.default_rng(0)))
        angles = 2 * np.pi * np.arange(count) / count
        pushes = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        pushes /= np.abs(pushes).max(axis=1, keepdims=True)
        nearest = np.inf
        for _ in range(EPISODE_LENGTH):
            rows = simulator.step(rows, pushes)
            assert on_floor(arena, rows[:, 1:3]).all()
            nearest = min(nearest, away_from_walls(arena, rows[:, 1:3]).min())
        assert 0.1 < nearest < 0.3, "walls were met"
        assert (away_from_walls(arena, rows[:, 1:3]) < 0.31).all(), "all are at a wall in the end"
        speeds = np.linalg.norm(rows[:, 4:6], axis=1)
        assert np.median(speeds) < 0.01, "most are stopped by a wall"


class TestEpisodes:
    @pytest.mark.parametrize(
        ("transitions", "shape"), [(1, (1, 2, 6)), (70, (1, 71, 6)), (300, (1, 301, 6)), (601, (3, 301, 6))]
    )
    def test_whole_episodes_of_at_least_so_many_steps(self, transitions, shape):
        simulator = simulator_of("PointUMaze", fast=True)
        seen, actions = random_episodes(simulator, transitions, seed=0)
        assert seen.shape == shape
        assert seen.dtype == actions.dtype == np.float32
        assert np.isfinite(seen).all()
        assert actions.shape == (shape[0], shape[1] - 1, 2)

    def test_more_than_any_machine_holds(self):
        with pytest.raises(ConfigError, match="transitions"):
            random_episodes(simulator_of("PointUMaze"), 10**13, seed=0)

    def test_the_seed_decides(self):
        simulator = simulator_of("PointUMaze")
        first, actions = random_episodes(simulator, 40, seed=5)
        again, same_actions = random_episodes(Simulator(simulator.arena), 40, seed=5)
        np.testing.assert_array_equal(again, first)
        np.testing.assert_array_equal(same_actions, actions)
        other, _ = random_episodes(simulator, 40, seed=6)
        assert (first[:, :, :2] != other[:, :, :2]).all()

    def test_more_than_are_simulated_at_once_with_progress_and_all_different(self):
        simulator = simulator_of("PointUMaze", fast=True)
        told = []
        seen, _ = random_episodes(simulator, 127 * 300 + 1, 0, lambda done, of: told.append((done, of)))
        assert told == [(64 * 300, 128 * 300), (128 * 300, 128 * 300)]
        assert seen.shape == (128, 301, 6)
        assert len(np.unique(seen[:, 0, 0])) == len(np.unique(seen[:, -1, 0])) == 128
        assert on_floor(simulator.arena, seen[:, :, :2].astype(float)).all()
        cells = simulator.arena.cell_at(seen[:, 0, :2])
        assert len(np.unique(cells, axis=0)) == 7, "starts in every cell"

    def test_pushes_are_uniform(self):
        """Away from walls a step is solved by hand, so the push can be read off the speeds."""
        arena = open_arena("PointHookMaze")
        seen, actions = (array.astype(float) for array in random_episodes(Simulator(arena), 1_200, seed=0))
        free = away_from_walls(arena, seen[..., :2]) > 0.8
        free = free[:, :-1] & free[:, 1:]
        kept = math.exp(-POINT_STEP)
        pushes = (seen[:, 1:, 3:5] - kept * seen[:, :-1, 3:5]) / (5 * (1 - kept))
        pushes = pushes[free]
        assert len(pushes) > 100
        np.testing.assert_allclose(pushes, actions[free], atol=1e-4)
        assert -1 - 1e-5 <= pushes.min() < -0.97
        assert 0.97 < pushes.max() <= 1 + 1e-5
        for axis in (0, 1):
            assert kstest(pushes[:, axis], "uniform", args=(-1, 2)).pvalue > 1e-4
        assert abs(np.corrcoef(pushes.T)[0, 1]) < 0.3

    def test_an_ant_mostly_stays_upright_and_in_the_maze(self):
        simulator = simulator_of("AntUMaze")
        seen = random_episodes(simulator, EPISODE_LENGTH * 5, seed=0)[0].astype(float)
        up = 1 - 2 * (seen[..., 4] ** 2 + seen[..., 5] ** 2)  # z of the torso's own z axis
        assert (up > 0.7).mean() > 0.95
        assert ((seen[..., 2] > 0.25) & (seen[..., 2] < 1.2)).all()
        assert on_floor(simulator.arena, seen[..., :2]).all()
        assert away_from_walls(simulator.arena, seen[..., :2]).min() > 0.25
        gone = np.linalg.norm(seen[:, -1, :2] - seen[:, 0, :2], axis=1)
        assert gone.mean() > 0.3, "and gets somewhere"

    @pytest.mark.parametrize("name", ["PointUMaze", "AntUMaze"])
    def test_some_states_are_all_over_the_arena_and_in_motion(self, name):
        simulator = simulator_of(name)
        seen = simulator.some_states(64, seed=0)
        assert seen.shape == (64, simulator.n_observations)
        assert seen.dtype == np.float32
        assert on_floor(simulator.arena, seen[:, :2].astype(float)).all()
        assert len(np.unique(simulator.arena.cell_at(seen[:, :2]), axis=0)) == 7
        speeds = np.abs(seen[:, simulator.model.nq :]).max(axis=1)
        assert speeds.min() > 0.01
        assert speeds.mean() > 0.3
        np.testing.assert_array_equal(simulator.some_states(64, seed=0), seen)
        assert (simulator.some_states(64, seed=1)[:, 0] != seen[:, 0]).all()
