"""A point in the floor of a maze, against exact geometry on its text; its chain, also without a lattice."""

import itertools
import json
import math
import re
from fractions import Fraction

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.sparse.linalg import eigsh
from scipy.stats import chi2

import lapwing  # noqa: F401 (registers the environments)
from lapwing.envs.gridworld import AGENT, GOAL, GROUND, WALL
from lapwing.envs.plane import Plane, PlaneEnv, open_plane, parse_plane, random_walks
from lapwing.errors import ConfigError, MazeError
from lapwing.mazes import BUILT_IN, Maze, is_plane, parse_maze, plane_names, read_maze

NAMES = ("PlaneOneRoom", "PlaneTwoRoom", "PlaneHardMaze", "PlaneFourRoom")
IDS = [*(f"lapwing/{name}-v0" for name in NAMES), "lapwing/PlaneMaze-v0"]
# Open at the border, with a dead end, walls that meet at a corner, and sides whose scale is a power of two.
CROOKED = parse_maze("..#.\n.#.G\n...#\n", name="Crooked")
TWO_ROOMS = parse_maze("...#...\n.......\n...#...\n", name="TwoRooms")
BOX = parse_maze("....\n" * 4, name="Box")


def make(env_id: str, **kwargs) -> gymnasium.Env:
    if env_id == "lapwing/PlaneMaze-v0":
        kwargs.setdefault("maze", CROOKED)
    return gymnasium.make(env_id, **kwargs)


def is_wall(maze: Maze, row: int, column: int) -> bool:
    inside = 0 <= row < len(maze.lines) and 0 <= column < len(maze.lines[0])
    return not inside or maze.lines[row][column] == "#"


def contact(maze: Maze, here, there) -> str:
    """How the closed segment between two points in cells meets the closed walls, in exact arithmetic.

    "none", "corner" if just one wall at just one of its corners, else "wall".
    """
    here, there = [[Fraction(x) for x in point] for point in (here, there)]
    touches = []
    low = [math.floor(min(a, b)) - 1 for a, b in zip(here, there, strict=True)]
    for row, column in itertools.product(range(low[0], low[0] + 3), range(low[1], low[1] + 3)):
        if is_wall(maze, row, column) and (times := times_in_square(here, there, (row, column))):
            touches.append((times, (row, column)))
    if not touches:
        return "none"
    (begin, end), square = touches[0]
    at = [a + begin * (b - a) for a, b in zip(here, there, strict=True)]
    just_once = len(touches) == 1 and (begin == end or here == there)
    at_corner = all(x in (s, s + 1) for x, s in zip(at, square, strict=True))
    return "corner" if just_once and at_corner else "wall"


def times_in_square(here, there, square) -> tuple[Fraction, Fraction] | None:
    """When, between 0 and 1, the way from `here` to `there` is in a closed unit square (Liang and Barsky)."""
    begin, end = Fraction(0), Fraction(1)
    for x, y, low in zip(here, there, square, strict=True):
        if x == y:
            if not low <= x <= low + 1:
                return None
            continue
        first, second = sorted(((low - x) / (y - x), (low + 1 - x) / (y - x)))
        begin, end = max(begin, first), min(end, second)
    return (begin, end) if begin <= end else None


def in_cells(plane: Plane, positions: np.ndarray) -> np.ndarray:
    """(row, column) in cells from the top left corner, by the words of the documentation."""
    height, width = len(plane.maze.lines), len(plane.maze.lines[0])
    return (np.asarray(positions, np.float64) * max(height, width) + [height, width]) / 2


def part_numbers(plane: Plane, positions: np.ndarray, fineness: int) -> np.ndarray:
    """Which of `points(fineness)` is the centre of the part that each position lies in."""

    def places(positions):
        return tuple(np.floor(in_cells(plane, positions) * fineness).astype(int).T)

    number = np.full(np.array(plane.maze.floor.shape) * fineness, -1)
    number[places(plane.points(fineness))] = np.arange(len(plane.points(fineness)))
    found = number[places(positions)]
    assert (found >= 0).all(), "a point is in a wall"
    return found


def chi_square_limit(freedom: int) -> float:
    """What a right table exceeds once in ten thousand seeds."""
    return float(chi2.isf(1e-4, freedom))


class TestNames:
    def test_what_a_plane_is_called(self):
        assert plane_names() == NAMES
        assert all(map(is_plane, [*NAMES, "Plane:mine.txt", "Plane:UMaze"]))
        others = ["FourRoom", "PlaneUMaze", "Plane", "mine.txt", "PointUMaze", "planeFourRoom", ""]
        assert not any(map(is_plane, others))

    @pytest.mark.parametrize("name", NAMES)
    def test_built_in(self, name):
        plane = open_plane(name)
        assert (plane.name, plane.reach) == (name, 0.7)
        assert plane.maze == read_maze(name.removeprefix("Plane"))

    def test_a_text_file(self, tmp_path):
        path = tmp_path / "mine.txt"
        path.write_text(CROOKED.text)
        plane = open_plane(f"Plane:{path}", reach=0.25, goal=(2, 0))
        assert (plane.name, plane.reach, plane.goal_cell) == ("Planemine", 0.25, (2, 0))
        assert plane.maze.lines == CROOKED.lines

    def test_a_maze(self):
        assert open_plane(CROOKED) == Plane(CROOKED)
        assert open_plane("Plane:FourRoom") == open_plane("PlaneFourRoom")

    @pytest.mark.parametrize("name", ["PlaneFourRom", "FourRoom", "planefourroom"])
    def test_an_unknown_name_gets_the_nearest(self, name):
        with pytest.raises(ConfigError, match=f"'{name}'.* PlaneFourRoom"):
            open_plane(name)

    def test_no_such_file(self):
        with pytest.raises(MazeError, match=r"nowhere\.txt"):
            open_plane("Plane:nowhere.txt")

    @pytest.mark.parametrize("plane", [open_plane("PlaneHardMaze"), Plane(CROOKED, 0.3, (2, 1)), Plane(BOX)])
    def test_a_description_survives_json(self, plane):
        again = parse_plane(json.loads(json.dumps(plane.description())))
        assert again == plane
        np.testing.assert_array_equal(again.points(2), plane.points(2))


class TestRefused:
    @pytest.mark.parametrize("reach", [0.0, 1.0, float("nan")])
    def test_reach(self, reach):
        for refuse in (lambda: Plane(CROOKED, reach), lambda: make("lapwing/PlaneFourRoom-v0", reach=reach)):
            with pytest.raises(ConfigError, match=f"reach.* {reach:g}"):
                refuse()

    @pytest.mark.parametrize(("goal", "words"), [((0, 2), "wall"), ((3, 0), "outside")])
    def test_a_goal_in_a_wall_or_outside(self, goal, words):
        with pytest.raises(ConfigError, match=rf"goal \({goal[0]},{goal[1]}\).*{words}"):
            open_plane(CROOKED, goal=goal)

    @pytest.mark.parametrize("fineness", [0, -1])
    def test_fineness(self, fineness):
        for reference in (Plane(CROOKED).points, Plane(CROOKED).transition_matrix):
            with pytest.raises(ConfigError, match=f"fineness.* {fineness}"):
                reference(fineness)

    @pytest.mark.parametrize(("transitions", "length"), [(0, 50), (100, 0), (-1, 50)])
    def test_no_walks(self, transitions, length):
        with pytest.raises(ConfigError, match=f"{transitions} and {length}"):
            random_walks(Plane(CROOKED), transitions, length, 0)

    @pytest.mark.parametrize(
        ("transitions", "length", "field"), [(10**13, 50, "transitions"), (10, 10**13, "episode_length")]
    )
    def test_walks_larger_than_any_machines_memory(self, transitions, length, field):
        with pytest.raises(ConfigError, match=field):
            random_walks(Plane(CROOKED), transitions, length, 0)


class TestPositions:
    def test_the_longer_side_spans_everything_and_rows_come_first(self):
        centres = Plane(parse_maze("....\n....\n", name="Wide")).points(1)
        rows, columns = (-0.25, 0.25), (-0.75, -0.25, 0.25, 0.75)
        np.testing.assert_allclose(centres, list(itertools.product(rows, columns)), atol=1e-15)

    @pytest.mark.parametrize("fineness", [1, 3])
    def test_points_are_the_centres_of_parts_of_the_floor(self, fineness):
        places = in_cells(Plane(CROOKED), Plane(CROOKED).points(fineness)) * fineness
        by_hand = [
            (row + 0.5, column + 0.5)
            for row in range(3 * fineness)
            for column in range(4 * fineness)
            if not is_wall(CROOKED, row // fineness, column // fineness)
        ]
        np.testing.assert_allclose(places, by_hand, atol=1e-12)

    def test_the_goal_is_the_centre_of_its_cell(self):
        np.testing.assert_allclose(in_cells(Plane(CROOKED), Plane(CROOKED).goal), [1.5, 3.5])
        np.testing.assert_allclose(
            Plane(CROOKED, goal_cell=(2, 0)).goal, Plane(CROOKED).scaled(np.array([2.5, 0.5]))
        )
        assert open_plane("PlaneFourRoom").goal is None

    def test_starts_are_uniform_on_the_floor(self):
        plane = Plane(CROOKED)
        counts = np.bincount(part_numbers(plane, plane.sample_starts(20_000, np.random.default_rng(0)), 4))
        expected = 20_000 / len(plane.points(4))
        assert len(counts) == len(plane.points(4))
        assert np.sum((counts - expected) ** 2 / expected) < chi_square_limit(len(counts) - 1)


class TestSteps:
    @settings(max_examples=400)
    @given(st.integers(0, 24), st.integers(0, 32), st.integers(-7, 7), st.integers(-7, 7))
    def test_exactly_the_paths_that_touch_no_wall_are_gone(self, row, column, down, right):
        """In eighths of a cell: on borders, along them and through corners, where nothing is rounded."""
        plane = Plane(CROOKED, reach=0.875)
        here = np.array([row, column]) / 8
        there = here + np.array([down, right]) / 8
        expected = there if contact(CROOKED, here, there) == "none" else here
        (moved,) = plane.step(plane.scaled(here)[None], np.array([[down, right]]) / 7)
        np.testing.assert_allclose(in_cells(plane, moved), expected, atol=1e-12)
        assert plane.on_floor(plane.scaled(here)[None])[0] == (contact(CROOKED, here, here) == "none")

    @settings(max_examples=60)
    @given(
        st.integers(1, 5).flatmap(
            lambda width: st.lists(st.text("#..", min_size=width, max_size=width), min_size=1, max_size=5)
        ),
        st.floats(0.05, 0.95),
        st.integers(0, 1_000),
    )
    @pytest.mark.filterwarnings("ignore:maze random")
    def test_no_path_crosses_a_wall(self, lines, reach, seed):
        maze = parse_maze("\n".join(["." + "#" * (len(lines[0]) - 1), *lines]), name="random")
        plane, generator = Plane(maze, reach), np.random.default_rng(seed)
        walls = np.pad([[mark == "#" for mark in line] for line in maze.lines], 1, constant_values=True)
        here = plane.sample_starts(20, generator)
        for _ in range(3):
            there = plane.step(here, generator.uniform(-1, 1, (20, 2)))
            along = np.linspace(0, 1, 1_000)[:, None, None]
            row, column = (
                np.floor(in_cells(plane, here + along * (there - here))).astype(int).reshape(-1, 2).T
            )
            assert not walls[row + 1, column + 1].any()
            here = there

    def test_actions_are_clipped(self):
        plane, generator = Plane(BOX), np.random.default_rng(0)
        here, actions = plane.sample_starts(100, generator), generator.uniform(-3, 3, (100, 2))
        np.testing.assert_array_equal(plane.step(here, actions), plane.step(here, np.clip(actions, -1, 1)))

    @pytest.mark.parametrize("place", [(0.5, 2.5), (0.0, 0.5), (1.0, 3.0), (-5.0, 0.5), (1.5, 99.0)])
    def test_nothing_moves_from_a_wall_or_outside(self, place):
        plane = Plane(CROOKED)
        here = np.repeat(plane.scaled(np.array([place])), 9, axis=0)
        actions = np.array(list(itertools.product((-1, 0, 1), repeat=2)))
        np.testing.assert_array_equal(plane.step(here, actions), here)
        assert not plane.on_floor(here).any()


class TestWalks:
    def test_same_seed_same_bits_and_others_differ(self):
        first, second, other = (random_walks(Plane(CROOKED), 1_000, 50, seed) for seed in (0, 0, 1))
        for again, before, elsewhere in zip(first, second, other, strict=True):
            np.testing.assert_array_equal(again, before)
            assert (again != elsewhere).any(axis=(1, 2)).all()

    def test_shape_steps_and_progress(self):
        told, plane = [], Plane(CROOKED)
        walks, actions = random_walks(plane, 95, 10, 0, lambda *pair: told.append(pair))
        assert (walks.shape, walks.dtype) == ((10, 11, 2), np.float32)
        assert (actions.shape, actions.dtype) == ((10, 10, 2), np.float32)
        moved = plane.step(walks[:, 0].astype(float), actions[:, 0].astype(float))
        np.testing.assert_allclose(moved, walks[:, 1], atol=1e-6)
        assert np.abs(np.diff(in_cells(plane, walks), axis=1)).max() <= 0.7 + 1e-6
        assert told == [(10 * step, 100) for step in range(1, 11)]
        np.testing.assert_array_equal(walks, random_walks(plane, 95, 10, 0)[0])

    @pytest.mark.parametrize("step", [1, 30])
    def test_they_stay_uniform(self, step):
        """Over parts of the floor of FourRoom, after some steps; episodes are independent."""
        plane = open_plane("PlaneFourRoom")
        counts = np.bincount(
            part_numbers(plane, random_walks(plane, 600_000, 30, 0)[0][:, step], 2), minlength=608
        )
        expected = 20_000 / 608
        assert np.sum((counts - expected) ** 2 / expected) < chi_square_limit(607)


def weights_by_hand(reach: float) -> dict[int, float]:
    """Equal weights but for the outermost, whose share gives the variance of a uniform displacement."""

    def variance(furthest, share):
        inner = sum(2 * i * i for i in range(1, furthest))
        return (inner + 2 * share * furthest**2) / (2 * furthest - 1 + 2 * share) - reach**2 / 3

    furthest = next(k for k in range(1, 100) if variance(k, 1.0) >= 0)
    share = brentq(lambda share: variance(furthest, share), 0, 1, xtol=1e-15)
    offsets = range(-furthest, furthest + 1)
    return {i: (share if abs(i) == furthest else 1) / (2 * furthest - 1 + 2 * share) for i in offsets}


def matrix_by_hand(maze: Maze, reach: float, fineness: int) -> np.ndarray:
    """P over parts of the floor in reading order, path by path in exact arithmetic."""
    places = [
        (Fraction(2 * row + 1, 2 * fineness), Fraction(2 * column + 1, 2 * fineness))
        for row in range(len(maze.lines) * fineness)
        for column in range(len(maze.lines[0]) * fineness)
        if not is_wall(maze, row // fineness, column // fineness)
    ]
    weights = weights_by_hand(reach * fineness)
    P = np.zeros((len(places), len(places)))
    for (i, here), (j, there) in itertools.permutations(enumerate(places), 2):
        down, right = ((b - a) * fineness for a, b in zip(here, there, strict=True))
        weight = weights.get(int(down), 0) * weights.get(int(right), 0)
        if weight:
            P[i, j] = weight * {"none": 1, "corner": 0.5, "wall": 0}[contact(maze, here, there)]
    return P + np.diag(1 - P.sum(axis=1))


def spectrum(plane: Plane, fineness: int, dim: int) -> np.ndarray:
    """Eigenvalues of I - P, ascending."""
    P = plane.transition_matrix(fineness)
    start = np.random.default_rng(0).standard_normal(P.shape[0])
    return np.sort(1 - eigsh(P, k=dim, which="LA", v0=start, return_eigenvectors=False))


def box_spectrum(side: int, reach: float, dim: int, waves: int = 28) -> np.ndarray:
    """Eigenvalues in an open box without any lattice: the Laplacian on products of cosines.

    There a path is clear if its ends are inside, so that <g, L g'> is a difference of two terms, and each
    is a product of one integral for the rows and one for the columns.
    """
    breaks = [0, reach, side - reach, side]
    nodes, node_weights = np.polynomial.legendre.leggauss(80)
    x = np.concatenate([(a + b + (b - a) * nodes) / 2 for a, b in itertools.pairwise(breaks)])
    w = np.concatenate([(b - a) / 2 * node_weights for a, b in itertools.pairwise(breaks)])
    low, high = np.maximum(x - reach, 0), np.minimum(x + reach, side)
    frequency = np.pi * np.arange(waves)[:, None] / side
    scale = np.where(np.arange(waves) == 0, 1, np.sqrt(2))[:, None] / np.sqrt(side)
    cosines = scale * np.cos(frequency * x)
    # The mean of a cosine over the displacements that stay inside, times their share.
    integrals = np.sin(frequency[1:] * high) / frequency[1:] - np.sin(frequency[1:] * low) / frequency[1:]
    moved = scale * np.concatenate([(high - low)[None], integrals]) / (2 * reach)
    leaving = (cosines * w * (high - low) / (2 * reach)) @ cosines.T
    arriving = (cosines * w) @ moved.T
    values = np.linalg.eigvalsh(np.kron(leaving, leaving) - np.kron(arriving, arriving))
    return values[:dim]


@pytest.fixture(scope="module")
def sixteenths():
    """P of two rooms, over sixteenths of cells."""
    return Plane(TWO_ROOMS).transition_matrix(16)


class TestReference:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("fineness", [1, 3])
    def test_symmetric_and_stochastic(self, name, fineness):
        plane = open_plane(name)
        P = plane.transition_matrix(fineness)
        assert P.shape == (len(plane.points(fineness)),) * 2
        assert abs(P - P.T).max() == 0
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
        assert P.data.min() > 0

    @pytest.mark.parametrize(
        ("reach", "fineness"), [(0.7, 1), (0.7, 2), (0.7, 3), (0.05, 2), (0.99, 2), (0.4, 3)]
    )
    def test_path_by_path(self, reach, fineness):
        P = Plane(CROOKED, reach).transition_matrix(fineness).toarray()
        np.testing.assert_allclose(P, matrix_by_hand(CROOKED, reach, fineness), atol=1e-14)

    @pytest.mark.parametrize("place", [(1.5, 1.5), (0.1, 0.1), (0.9, 2.8), (1.1, 3.9), (1.9, 3.5)])
    def test_rows_are_where_steps_lead(self, place, sixteenths):
        """In the open, in a corner and at a doorway: to which parts how often, and what functions become."""
        plane, generator, fineness, count = Plane(TWO_ROOMS), np.random.default_rng(0), 16, 100_000
        points = in_cells(plane, plane.points(fineness))
        part = np.argmin(np.abs(points - np.array(place)).max(axis=1))
        starts = points[part] + generator.uniform(-0.5, 0.5, (count, 2)) / fineness
        ends = plane.step(plane.scaled(starts), generator.uniform(-1, 1, (count, 2)))
        row = sixteenths[[part]].toarray()[0]
        frequencies = np.bincount(part_numbers(plane, ends, fineness), minlength=len(points)) / count
        assert np.abs(frequencies - row).sum() / 2 < 0.05
        assert frequencies[part] == pytest.approx(row[part], abs=0.006)
        for wave in itertools.product((0, 1, 2), repeat=2):
            seen = np.cos(in_cells(plane, ends) @ wave)
            assert seen.mean() == pytest.approx(row @ np.cos(points @ wave), abs=4 * seen.std() / 316 + 0.001)

    def test_in_an_open_box_eigenvalues_converge_to_those_without_a_lattice(self):
        plane, exact = Plane(BOX), box_spectrum(4, 0.7, 8)
        coarse, middle, fine = (spectrum(plane, fineness, 8) for fineness in (6, 8, 12))
        assert abs(fine[1] - middle[1]) < abs(middle[1] - coarse[1])
        errors = np.array([np.abs(values[1:] / exact[1:] - 1) for values in (coarse, middle, fine)])
        assert (np.diff(errors, axis=0) < 0).all()
        assert (errors[2] < 2e-3).all()
        assert errors[2, 0] < 5e-4
        for values in (coarse, middle, fine, exact):
            assert values[0] == pytest.approx(0, abs=1e-12)
            assert values[1] == pytest.approx(values[2], rel=1e-9)
            assert values[3] > 1.1 * values[2]


class TestEnv:
    def test_all_ids_are_tested_here(self):
        assert sorted(IDS) == sorted(name for name in gymnasium.registry if name.startswith("lapwing/Plane"))
        assert len(IDS) == len(BUILT_IN) + 1

    @pytest.mark.parametrize("env_id", IDS)
    def test_check_env_has_nothing_to_say(self, env_id):
        """Warnings are errors here, so the checker's advice would fail the test as well."""
        check_env(make(env_id, render_mode="rgb_array").unwrapped)

    @pytest.mark.parametrize("env_id", IDS)
    def test_fifty_steps_and_no_termination(self, env_id):
        env = make(env_id)
        env.reset(seed=0)
        ends = [env.step(env.action_space.sample())[2:4] for _ in range(50)]
        assert not any(terminated for terminated, _ in ends)
        assert [truncated for _, truncated in ends] == [False] * 49 + [True]

    def test_the_maze_that_any_maze_is_unless_told(self):
        assert gymnasium.make("lapwing/PlaneMaze-v0").unwrapped.plane == open_plane("PlaneFourRoom")

    def test_it_moves_as_the_plane_does(self):
        env = make("lapwing/PlaneHardMaze-v0", reach=0.5).unwrapped
        seen, info = env.reset(seed=0, options={"position": env.plane.points(1)[0]})
        position = env.plane.points(1)[:1]
        env.action_space.seed(0)
        for _ in range(200):
            np.testing.assert_array_equal(seen, position[0].astype(np.float32))
            assert info == {"cell": tuple(np.floor(in_cells(env.plane, position[0])).astype(int).tolist())}
            assert seen in env.observation_space
            action = env.action_space.sample()
            seen, *_, info = env.step(action)
            position = env.plane.step(position, action[None])

    def test_rewards_within_half_a_cell_of_the_goal(self):
        env = make("lapwing/PlaneOneRoom-v0", reach=0.6).unwrapped
        env.reset(options={"position": env.plane.scaled(np.array([14.3, 15.5]))})
        for action, reward in [((1, 0), -1), ((1, 0), 0), ((0, 0.75), 0), ((-1, 0), -1), ((0, 0.1), -1)]:
            _, *rest, info = env.step(np.array(action, np.float32))
            assert rest == [reward, False, False]
        assert info["cell"] == (14, 15)

    def test_a_corner_of_the_goals_cell_is_too_far(self):
        env = PlaneEnv(BOX, goal=(2, 2))
        for place, reward in [((2.5, 2.99), 0), ((2.9, 2.9), -1), ((2.8, 2.8), 0), ((2.5, 3.01), -1)]:
            env.reset(options={"position": env.plane.scaled(np.array(place))})
            assert env.step(np.zeros(2))[1] == reward

    def test_without_a_goal_the_reward_is_always_0(self):
        env = make("lapwing/PlaneFourRoom-v0")
        env.reset(seed=0)
        assert {env.step(env.action_space.sample())[1] for _ in range(50)} == {0.0}
        env = make("lapwing/PlaneFourRoom-v0", goal=(1, 1))
        env.reset(options={"position": (0.5, 0.5)})
        assert env.step(np.zeros(2))[1] == -1.0

    @pytest.mark.parametrize("position", [(0.0, 0.0), (1e300, 0.0), (np.nan, 0.5), 0.5, (0.5, 0.5, 0.5)])
    def test_where_one_cannot_start(self, position):
        with pytest.raises(ConfigError, match=f"{re.escape(str(position))}.* FourRoom"):
            make("lapwing/PlaneFourRoom-v0").unwrapped.reset(options={"position": position})

    @pytest.mark.parametrize("action", [(np.nan, 0.0), 0.5])
    def test_what_is_no_action(self, action):
        env = make("lapwing/PlaneFourRoom-v0").unwrapped
        env.reset(seed=0)
        with pytest.raises(ConfigError, match="action"):
            env.step(np.array(action))

    def test_an_unknown_render_mode(self):
        with pytest.raises(ConfigError, match=r"render_mode.*'human'"):
            PlaneEnv(CROOKED, render_mode="human")

    def test_a_picture(self):
        env = PlaneEnv(CROOKED, render_mode="rgb_array")
        env.reset(options={"position": env.plane.scaled(np.array([2.25, 0.5]))})
        picture = env.render()
        assert picture.shape == (48, 64, 3)
        seen = [tuple(picture[place]) for place in ((8, 40), (8, 8), (36, 8), (45, 8), (24, 56))]
        assert seen == [WALL, GROUND, AGENT, GROUND, GOAL]
        dots = np.argwhere((picture == AGENT).all(axis=-1)) + 0.5
        np.testing.assert_allclose(dots.mean(axis=0) / 16, [2.25, 0.5])
        assert len(dots) == pytest.approx(np.pi * 16, rel=0.1), "a radius of four pixels"
        assert PlaneEnv(CROOKED).render() is None

    def test_an_observation_is_the_callers_to_write_on(self):
        env = make("lapwing/PlaneOneRoom-v0")
        seen, _ = env.reset(options={"position": (0.25, 0.5)})
        seen[:] = 9
        np.testing.assert_allclose(env.step(np.zeros(2, np.float32))[0], [0.25, 0.5])

    @pytest.mark.parametrize("env_id", IDS)
    def test_its_spec_makes_the_same_environment_again(self, env_id):
        env = make(env_id, goal=(1, 2) if "Maze-v0" in env_id and "Hard" not in env_id else (1, 1), reach=0.4)
        again = gymnasium.make(env.spec)
        assert again.unwrapped.plane == env.unwrapped.plane
        np.testing.assert_array_equal(env.reset(seed=3)[0], again.reset(seed=3)[0])
