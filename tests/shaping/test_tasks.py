"""Goals in mazes, against exhaustive search, walks in the environment, closed forms and published numbers."""

from functools import cache

import gymnasium
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import lapwing  # noqa: F401 (registers the environments)
from lapwing.envs.gridworld import GridWorld, GridWorldEnv
from lapwing.errors import ConfigError, LapwingWarning
from lapwing.laplacian.distances import measure_of
from lapwing.mazes import parse_maze, read_maze
from lapwing.settings.learn import Filter
from lapwing.shaping.rewards import FORMS, Goal, GoalReward
from lapwing.shaping.tasks import GridTask, default_scale, embedded_states, exact_embedding, grid_task
from tests.support import exact

OPTIMAL = {"OneRoom": -13.004, "TwoRoom": -11.358, "HardMaze": -18.980}
ROOM = "...\n.G.\n...\n"
CORRIDOR = "............G\n"


def task_of(text: str, episode_length: int = 50, *, stay: bool = False) -> GridTask:
    return grid_task(GridWorld(parse_maze(text, name="mine"), stay), None, episode_length)


def built_in(name: str) -> GridTask:
    return grid_task(GridWorld(read_maze(name)))


@pytest.fixture(scope="module")
def four_rooms() -> GridTask:
    """FourRoom with a goal in a corner, for the learned representation."""
    return grid_task(GridWorld(read_maze("FourRoom")), (13, 1))


def best_return(table: list[list[int]], goal: int, state: int, steps: int) -> int:
    """By trying every sequence of actions."""
    if steps == 0:
        return 0
    return max((there == goal) - 1 + best_return(table, goal, there, steps - 1) for there in table[state])


class TestOptimalReturn:
    @pytest.mark.parametrize("name", OPTIMAL)
    def test_published(self, name):
        assert built_in(name).optimal_return == pytest.approx(OPTIMAL[name], abs=5e-4)

    @settings(max_examples=60)
    @given(exact.small_mazes(height=3, width=3), st.integers(0, 4), st.booleans())
    def test_every_sequence_of_actions(self, text, length, stay):
        table, goal = exact.moves(text, stay=stay), exact.goal_of(text)
        each = [best_return(table, goal, start, length) for start in range(len(table))]
        assert task_of(text, length, stay=stay).optimal_return == pytest.approx(np.mean(each))

    @given(exact.small_mazes(), st.integers(1, 30), st.booleans())
    def test_no_policy_is_better_and_the_shortest_ways_are_as_good(self, text, length, stay):
        task, table = task_of(text, length, stay=stay), exact.moves(text, stay=stay)
        steps = exact.fewest_moves(table, exact.goal_of(text))
        shortest = [min(range(len(row)), key=lambda a, row=row: steps[row[a]]) for row in table]
        assert task.mean_return(np.array(shortest)) == pytest.approx(task.optimal_return)
        anything = np.random.default_rng(length).integers(4, size=len(table))
        assert task.mean_return(anything) <= task.optimal_return + 1e-9


class TestPolicies:
    @settings(max_examples=40)
    @given(exact.small_mazes(), st.integers(1, 8), st.booleans(), st.integers(0, 2**32 - 1))
    def test_in_any_maze_for_any_length(self, text, length, stay, seed):
        task = task_of(text, length, stay=stay)
        env = GridWorldEnv(task.world.maze, stay=stay)
        policy = np.random.default_rng(seed).integers(4 + stay, size=task.world.n_states)
        walks, returns = self.simulated(env, policy, length)
        np.testing.assert_array_equal(task.walks(policy), walks)
        np.testing.assert_array_equal(task.returns(policy), returns)

    def test_another_goal(self):
        task = grid_task(GridWorld(read_maze("HardMaze")), (1, 1), 20)
        env = GridWorldEnv("HardMaze", goal=(1, 1))
        policy = np.random.default_rng(0).choice([0, 2], size=148)
        _, returns = self.simulated(env, policy, 20)
        np.testing.assert_array_equal(task.returns(policy), returns)
        assert returns.max() > -20

    def simulated(self, env: gymnasium.Env, policy: np.ndarray, length: int):
        walks, returns = [], []
        for cell in env.unwrapped.world.cells.tolist():
            _, info = env.reset(options={"cell": tuple(cell)})
            states, total = [info["state"]], 0.0
            for _ in range(length):
                _, reward, _, _, info = env.step(policy[states[-1]])
                states.append(info["state"])
                total += float(reward)
            walks.append(states)
            returns.append(total)
        return np.array(walks).T, np.array(returns)


class TestDistances:
    @given(exact.small_mazes(), st.booleans())
    def test_steps_in_any_maze(self, text, stay):
        fewest = exact.fewest_moves(exact.moves(text), exact.goal_of(text))
        np.testing.assert_array_equal(task_of(text, stay=stay).steps, fewest)

    def test_by_hand(self):
        """Positions go from -1 to 1, so a cell of three is 1 and a cell of five ½."""
        task = task_of("G....\n.....\n.....\n")
        to = task.distances()
        cells = [(r, c) for r in range(3) for c in range(5)]
        np.testing.assert_allclose(to.raw, [np.hypot(r, c / 2) for r, c in cells], atol=1e-6)
        assert to.reached.tolist() == [True] + [False] * 14
        assert np.isnan(to.latent).all()


class TestRewards:
    @pytest.mark.parametrize(("filter", "scale"), [("soft", 7.0), ("commute", 7.0), ("hitting", 0.01)])
    @pytest.mark.parametrize("form", FORMS)
    def test_the_table_is_the_reward_of_the_observations(self, four_rooms, four_room, form, filter, scale):
        embedded = embedded_states(four_rooms.world, "position", four_room, filter)
        to = four_rooms.distances(embedded, scale, measure_of(filter))
        rewards = four_rooms.rewards(form, to, 0.9)
        positions = four_rooms.world.observations("position")
        reward = GoalReward(
            form, Goal(positions[four_rooms.goal_state]), four_room, filter, gamma=0.9, scale=scale
        )
        table = np.array(exact.moves(exact.text_of("FourRoom")))
        assert rewards.shape == (152, 4)
        for action in range(4):
            expected = reward(positions, positions[table[:, action]])
            np.testing.assert_allclose(rewards[:, action], expected, atol=1e-4)

    @pytest.mark.parametrize("form", FORMS)
    @settings(max_examples=30)
    @given(exact.small_mazes(), st.integers(0, 2**32 - 1))
    def test_landing_is_what_the_next_state_decides(self, form, text, seed):
        """The actions of a state differ by where they land alone."""
        task, table = task_of(text), np.array(exact.moves(text))
        to = task.distances(np.random.default_rng(seed).normal(size=(len(table), 3)))
        rewards, landing = task.rewards(form, to, 0.9), task.landing(form, to, 0.9)
        left_over = rewards - landing[table]
        expected = to.latent if form == "potential" else np.zeros(len(table))
        np.testing.assert_allclose(left_over, np.repeat(expected[:, None], 4, axis=1), atol=1e-6)

    def test_forms_of_phi_need_an_embedding(self):
        task = task_of("G..\n")
        with pytest.raises(ConfigError, match=r"'mix'.* representation"):
            task.rewards("mix", task.distances(), 0.9)

    def test_gamma_must_be_a_discount(self):
        task = task_of("G..\n")
        with pytest.raises(ConfigError, match=r"gamma.* 1\.5"):
            task.rewards("sparse", task.distances(), 1.5)


class TestScales:
    @pytest.mark.parametrize("name", OPTIMAL)
    def test_steps_are_of_the_scale_of_steps(self, name):
        task = built_in(name)
        steps = exact.steps_to(name, task.goal_state)[:, None].astype(float)
        assert task.one_step_scale(steps) == pytest.approx(1)
        # Along a direction, far from the origin, in other units.
        turned = 7 + 0.25 * steps * np.array([[0.6, 0.0, 0.8]])
        assert task.one_step_scale(turned) == pytest.approx(4)

    @settings(max_examples=40)
    @given(exact.small_mazes(), st.booleans(), st.integers(0, 2**32 - 1))
    def test_one_step_in_any_maze(self, text, stay, seed):
        """The mean over all moves that change the distance; those into walls and staying do not."""
        table, goal = exact.moves(text, stay=stay), exact.goal_of(text)
        assume(len(table) > 1)
        embedded = np.random.default_rng(seed).normal(size=(len(table), 3))
        distance = [float(np.linalg.norm(row - embedded[goal])) for row in embedded]
        changes = [
            abs(distance[there] - distance[here])
            for here, row in enumerate(table)
            for there in row
            if there != here
        ]
        scale = task_of(text, stay=stay).one_step_scale(embedded)
        assert scale == pytest.approx(1 / np.mean(changes))

    def test_an_embedding_that_vanished_has_no_steps(self):
        with pytest.raises(ConfigError, match="the same everywhere"):
            task_of(ROOM).one_step_scale(np.ones((9, 4)))
        for form in ("mix", "potential"):
            assert default_scale(task_of(ROOM), form, "commute", np.ones((9, 4))) == 1.0

    @pytest.mark.parametrize("filter", ["soft", "unit", "commute", "biharmonic", "heat"])
    def test_a_potential_counts_steps_under_every_filter(self, filter):
        task = built_in("HardMaze")
        embedded = 5 * exact.steps_to("HardMaze", task.goal_state)[:, None].astype(float)
        assert default_scale(task, "potential", filter, embedded) == pytest.approx(0.2)

    def test_hitting_is_scaled_by_its_own_times(self):
        """A goal at 2 and states at 2, 0 and -1: the times are 0, 4 and 6, which change by 3 with a move."""
        task, embedded = task_of("G..\n"), np.array([[2.0], [0.0], [-1.0]])
        assert default_scale(task, "mix", "hitting", embedded) == pytest.approx(3 / 10)
        assert default_scale(task, "potential", "hitting", embedded) == pytest.approx(1 / 3)

    @pytest.mark.parametrize("form", ["laplacian", "mix"])
    def test_soft_stays_as_it_was_learned(self, form):
        embedded = np.random.default_rng(0).normal(size=(9, 2))
        assert default_scale(task_of(ROOM), form, "soft", embedded) == 1

    @pytest.mark.parametrize("form", ["laplacian", "mix"])
    @pytest.mark.parametrize("filter", ["unit", "commute", "biharmonic", "heat"])
    def test_other_filters_have_a_mean_distance_of_one(self, form, filter):
        task, embedded = task_of("G..\n"), np.array([[1.0], [4.0], [7.0]])
        assert default_scale(task, form, filter, embedded) == pytest.approx(1 / 3)
        assert default_scale(task, form, filter, np.ones((3, 1))) == 1


class TestGridTask:
    def test_the_mazes_own_goal_and_another(self):
        world = GridWorld(read_maze("HardMaze"))
        assert grid_task(world).goal_cell == (10, 10)
        other = grid_task(world, (1, 2), 7)
        assert (other.goal_cell, other.episode_length) == ((1, 2), 7)
        assert exact.cells("HardMaze")[other.goal_state] == (1, 2)
        assert other.steps[other.goal_state] == 0

    def test_no_goal(self):
        with pytest.raises(ConfigError, match=r"FourRoom.* --goal"):
            grid_task(GridWorld(read_maze("FourRoom")))
        assert grid_task(GridWorld(read_maze("FourRoom")), (1, 1)).goal_state == 0

    @pytest.mark.parametrize(
        ("goal", "words"), [((0, 2), "wall"), ((0, 4), "outside"), ((1, 3), "cannot be reached")]
    )
    def test_a_goal_that_cannot_be(self, goal, words):
        with pytest.warns(LapwingWarning, match="cannot be reached"):
            maze = parse_maze("..#.\n..#.\n", name="mine")
        with pytest.raises(ConfigError, match=rf"goal \({goal[0]},{goal[1]}\).*{words}"):
            grid_task(GridWorld(maze), goal)


class TestEmbeddedStates:
    @pytest.mark.parametrize("filter", ["soft", "unit", "commute", "biharmonic", "heat"])
    def test_every_state_is_embedded(self, four_room, filter):
        world = GridWorld(read_maze("FourRoom"))
        embedded = embedded_states(world, "position", four_room, filter)
        assert embedded.dtype == np.float64
        assert len(embedded) == 152
        for state in (0, 80, 151):
            row, column = exact.cells("FourRoom")[state]
            position = np.array([2 * row / 14 - 1, 2 * column / 14 - 1], np.float32)
            np.testing.assert_allclose(embedded[state], four_room.embed(position, filter), atol=1e-5)

    def test_another_maze(self, four_room):
        """The name does not count: the same cells by another name will do, others by this name not."""
        text = exact.text_of("FourRoom")
        same = parse_maze(text, name="mine")
        first, second = (
            embedded_states(GridWorld(maze), "position", four_room, "soft")
            for maze in (same, read_maze("FourRoom"))
        )
        np.testing.assert_array_equal(first, second)
        lines = text.split()
        lines[1] = "#.####.#......#"
        other = parse_maze("\n".join(lines), name="FourRoom")
        for maze in (other, read_maze("HardMaze")):
            with pytest.raises(ConfigError, match=f"learned on FourRoom.* {maze.name}"):
                embedded_states(GridWorld(maze), "position", four_room, "soft")

    def test_another_input(self, four_room):
        with pytest.raises(ConfigError, match="sees position, not image"):
            embedded_states(GridWorld(read_maze("FourRoom")), "image", four_room, "soft")


@cache
def embedding(name: str, filter: Filter, beta: float) -> np.ndarray:
    return exact_embedding(GridWorld(read_maze(name)), filter, beta=beta)


def pairwise(embedded: np.ndarray) -> np.ndarray:
    return np.linalg.norm(embedded[:, None] - embedded[None], axis=-1)


def shifted_gram(embedded: np.ndarray) -> np.ndarray:
    """Inner products about the mean state, in which distances are all that counts."""
    centred = embedded - embedded.mean(axis=0)
    return centred @ centred.T


class TestExactEmbedding:
    @pytest.mark.parametrize(
        ("filter", "beta", "published"),
        [
            ("unit", 5.0, {"OneRoom": 0.101, "TwoRoom": 0.244, "HardMaze": 0.372}),
            ("soft", 5.0, {"OneRoom": 0.622, "TwoRoom": 0.852, "HardMaze": 0.683}),
            ("soft", 2.5, {"OneRoom": 0.832, "TwoRoom": 0.878, "HardMaze": 0.808}),
            ("soft", 0.5, {"TwoRoom": 0.682, "HardMaze": 0.957}),
            ("commute", 5.0, {"OneRoom": 0.826, "TwoRoom": 0.812, "HardMaze": 0.992}),
            ("biharmonic", 5.0, {"OneRoom": 0.912, "TwoRoom": 0.815, "HardMaze": 0.970}),
        ],
    )
    def test_rank_correlations_with_true_steps(self, filter, beta, published):
        for name, correlation in published.items():
            goal = exact.goal_of(exact.text_of(name))
            embedded = embedding(name, filter, beta)
            distance = np.linalg.norm(embedded - embedded[goal], axis=1)
            found = spearmanr(distance, exact.steps_to(name, goal)).statistic
            assert found == pytest.approx(correlation, abs=0.002)

    @pytest.mark.parametrize(
        ("beta", "published"),
        [
            (5.0, {"OneRoom": 9, "TwoRoom": 11, "HardMaze": 15}),
            (2.5, {"OneRoom": 4, "TwoRoom": 4, "HardMaze": 9}),
            (0.5, {"OneRoom": 1, "TwoRoom": 2, "HardMaze": 3}),
        ],
    )
    def test_dimensions_that_survive_the_penalty(self, beta, published):
        """A survivor's mean square is its weight, δ - λ'_i/(2β) with λ' = λ_i/((1-λ) + λ·λ_i) of P_λ.

        The published numbers count the constant, which the embedding leaves out.
        """
        for name, survivors in published.items():
            embedded = embedding(name, "soft", beta)
            squares = np.mean(embedded**2, axis=0)
            assert embedded.shape[1] == 19
            assert np.sum(squares > 1e-12) == survivors - 1
            values = exact.spectrum(name)[0][1:20]
            weights = np.maximum(0.05 - values / (0.1 + 0.9 * values) / (2 * beta), 0)
            np.testing.assert_allclose(squares, weights, atol=1e-9)

    @pytest.mark.parametrize("filter", ["soft", "unit", "commute", "biharmonic", "heat"])
    def test_with_the_constant_alone_nothing_is_apart(self, filter):
        embedded = exact_embedding(task_of(CORRIDOR).world, filter, dim=1)
        assert not pairwise(embedded).any()
        assert exact_embedding(task_of(CORRIDOR).world, filter, dim=20).shape == (13, 12), "of 13 states"

    @pytest.mark.parametrize("name", OPTIMAL)
    def test_soft_is_a_function_of_the_laplacian(self, name):
        """Fewer than 20 survive, so no eigenspace is cut and inner products are those of the matrix."""
        values, functions = exact.spectrum(name)
        weights = np.maximum(0.03 - values / (0.2 + 0.8 * values) / 8, 0)
        assert np.sum(weights > 0) < 20
        embedded = exact_embedding(GridWorld(read_maze(name)), "soft", lam=0.8, beta=4.0, delta=0.03)
        expected = (functions[:, 1:] * weights[1:]) @ functions[:, 1:].T
        np.testing.assert_allclose(embedded @ embedded.T, expected, atol=1e-9)

    def test_commute_distance_in_a_corridor(self):
        """Its square is the resistance between two cells, which in a corridor is their distance."""
        world = task_of(CORRIDOR).world
        squares = pairwise(exact_embedding(world, "commute", dim=13)) ** 2
        apart = np.abs(np.subtract.outer(np.arange(13), np.arange(13)))
        np.testing.assert_allclose(squares, squares[0, 1] * apart, atol=1e-9)
        assert squares[0, 1] > 1e-3

    def test_hitting_times_in_a_corridor(self):
        """Counted by a linear solve: moves up and down stay, and so do those into the ends."""
        world = task_of(CORRIDOR).world
        P = 0.5 * np.eye(13) + 0.25 * (np.eye(13, k=1) + np.eye(13, k=-1))
        P[0, 0] = P[12, 12] = 0.75
        coordinates = exact_embedding(world, "hitting", dim=13)
        for goal in (0, 5, 12):
            others = np.delete(np.arange(13), goal)
            expected = np.linalg.solve(np.eye(12) - P[np.ix_(others, others)], np.ones(12))
            found = measure_of("hitting")(coordinates, coordinates[goal])
            np.testing.assert_allclose(found[others], expected, rtol=1e-8)
            assert found[goal] == 0

    def test_heat_spreads_along_a_corridor(self):
        """e^(-tL) with a tenth left of the quickest function: inner products are those of e^(-2tL)."""
        L = np.zeros((13, 13))
        for cell in range(12):
            L[cell : cell + 2, cell : cell + 2] += [[0.25, -0.25], [-0.25, 0.25]]
        values, vectors = np.linalg.eigh(L)
        spread = (vectors * np.exp(-2 * np.log(10) / values[-1] * values)) @ vectors.T
        expected = spread - 1 / 13
        found = shifted_gram(exact_embedding(task_of(CORRIDOR).world, "heat", dim=13))
        np.testing.assert_allclose(found / np.trace(found), expected / np.trace(expected), atol=1e-9)

    @pytest.mark.parametrize("filter", ["unit", "commute", "biharmonic", "heat"])
    def test_every_filter_has_the_mean_distance_of_soft(self, filter):
        world = GridWorld(read_maze("HardMaze"))
        soft, other = (pairwise(exact_embedding(world, name)).mean() for name in ("soft", filter))
        assert other == pytest.approx(soft)
