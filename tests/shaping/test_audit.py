"""The shaping audit, against mazes worked out by hand, exact chances of ties, and depth-first search."""

import dataclasses
import json
import math
from fractions import Fraction
from functools import cache
from statistics import pstdev

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.mazes import parse_maze, read_maze
from lapwing.shaping.audit import Audit, audit, greedy_policy, ranking
from lapwing.shaping.rewards import FORMS, ToGoal
from lapwing.shaping.tasks import GridTask, default_scale, exact_embedding, grid_task
from tests.support import exact

MAZES = ("OneRoom", "TwoRoom", "HardMaze")
# A corridor that bends back: from its far end the goal is two cells away through the wall, six by foot.
BENT = ".#G\n.#.\n...\n"


def task_of(text: str, episode_length: int = 50, *, stay: bool = False) -> GridTask:
    return grid_task(GridWorld(parse_maze(text, name="mine"), stay), None, episode_length)


def built_in(name: str) -> GridTask:
    return grid_task(GridWorld(read_maze(name)))


def far(distance) -> ToGoal:
    """States that are so far from the goal, the first at 0 being the goal."""
    distance = np.array(distance, float)
    return ToGoal(np.full(len(distance), np.nan), distance == 0, distance)


def audited(text: str, form: str, *, length: int = 50, gamma: float = 0.5, stay: bool = False) -> Audit:
    task = task_of(text, length, stay=stay)
    return audit(task, form, task.distances(), gamma=gamma)


class TestCorridor:
    """Five cells in a row: what is near is near on foot."""

    def test_l2_leads_straight_to_the_goal(self):
        found = audited("G....\n", "l2")
        assert found.correlation == pytest.approx(1)
        assert (found.local_optima, found.flat, found.astray) == (0, 0, 0)
        assert found.greedy_success == 1
        assert found.lookahead == 1
        assert found.best_return == pytest.approx(-(0 + 0 + 1 + 2 + 3) / 5)
        np.testing.assert_allclose(found.landing, [0, -0.5, -1, -1.5, -2])
        assert found.optima.size == 0


class TestBent:
    """Distances through the wall: 2, √5, √8, √5, 2, 1, 0 along the way of 6, 5, 4, 3, 2, 1, 0 steps."""

    def test_l2(self):
        found = audited(BENT, "l2")
        # The far end, where the only way out looks worse; the maze's states are in reading order.
        assert found.local_optima == 1
        assert found.optima.tolist() == [0]
        assert found.flat == 0
        # The cell before it goes there, the corner as often as not; the far end itself stays.
        assert found.astray == pytest.approx((1 + 1 / 2) / 6)
        assert found.greedy_success == pytest.approx((0 + 0 + 1 / 2 + 1 + 1 + 1 + 1) / 7)
        # Ranks 3.5, 5.5, 7, 5.5, 3.5, 2, 1 against 7, 6, 5, 4, 3, 2, 1.
        assert found.correlation == pytest.approx(18 / math.sqrt(27 * 28))

    @pytest.mark.parametrize(("gamma", "reaches"), [(0.1, False), (0.98, True)])
    def test_whoever_is_patient_leaves_the_local_optimum(self, gamma, reaches):
        """At γ = .1 what is beyond the hill counts for nothing, so the best policy waits before it."""
        found = audited(BENT, "l2", gamma=gamma)
        optimum = -(5 + 4 + 3 + 2 + 1 + 0 + 0) / 7
        assert (found.best_return == pytest.approx(optimum)) == reaches
        assert (found.lookahead is not None) == reaches

    def test_staying_is_no_way_out(self):
        assert audited(BENT, "l2", stay=True).optima.tolist() == [0]


def test_a_maze_of_one_cell():
    found = audited("G\n", "sparse")
    assert (found.local_optima, found.flat, found.astray, found.greedy_success) == (0, 0, 0, 1)
    assert (found.lookahead, found.best_return, found.correlation) == (1, 0, 0)


class ByHand:
    """The audit of landing values in a drawing, in plain Python, with exact chances."""

    def __init__(self, text: str, landing: list):
        self.table, self.goal = exact.moves(text), exact.goal_of(text)
        self.steps = exact.fewest_moves(self.table, self.goal)
        self.landing = landing
        self.others = [state for state in range(len(self.table)) if state != self.goal]

    def best(self, state: int) -> list[int]:
        """Where the moves lead that look best, ties all kept."""
        values = [self.landing[there] for there in self.table[state]]
        return [there for there, value in zip(self.table[state], values, strict=True) if value == max(values)]

    def neighbours(self, state: int) -> list[int]:
        return [there for there in self.table[state] if there != state]

    def optima(self) -> list[int]:
        return [s for s in self.others if all(self.landing[n] < self.landing[s] for n in self.neighbours(s))]

    def flat(self) -> list[int]:
        return [s for s in self.others if max(self.landing[n] for n in self.neighbours(s)) == self.landing[s]]

    def contrast(self, rewards: list[list]) -> float:
        """Rewards are those of each action in each state."""
        stands_out = [max(rewards[s]) - Fraction(sum(rewards[s])) / len(rewards[s]) for s in self.others]
        spread = pstdev([float(reward) for row in rewards for reward in row])
        return float(sum(stands_out) / len(stands_out)) / spread if spread else 0.0

    def astray(self) -> Fraction:
        away = Fraction(0)
        for state in self.others:
            best = self.best(state)
            away += Fraction(sum(self.steps[there] > self.steps[state] for there in best), len(best))
        return away / len(self.others)

    def success(self, length: int) -> Fraction:
        @cache
        def reached(state: int, left: int) -> Fraction:
            if state == self.goal:
                return Fraction(1)
            if left == 0:
                return Fraction(0)
            best = self.best(state)
            return sum((reached(there, left - 1) for there in best), Fraction(0)) / len(best)

        return sum((reached(s, length) for s in range(len(self.table))), Fraction(0)) / len(self.table)


@st.composite
def rewarded_mazes(draw):
    """A drawing, a whole number for the distance of each state, and the length of an episode."""
    text = draw(exact.small_mazes())
    size, goal = len(exact.free_cells(text)), exact.goal_of(text)
    distance = draw(st.lists(st.integers(1, 6), min_size=size, max_size=size))
    distance[goal] = 0
    assume(size > 1)
    return text, distance, draw(st.integers(1, 12))


@settings(max_examples=150)
@given(rewarded_mazes())
def test_what_a_greedy_agent_meets(case):
    text, distance, length = case
    by_hand = ByHand(text, [-value for value in distance])
    found = audit(task_of(text, length), "laplacian", far(distance), gamma=0.5)
    others = len(by_hand.others)
    assert found.optima.tolist() == by_hand.optima()
    assert found.local_optima == len(by_hand.optima())
    assert found.flat == pytest.approx(len(by_hand.flat()) / others)
    assert found.astray == pytest.approx(float(by_hand.astray()))
    assert found.greedy_success == pytest.approx(float(by_hand.success(length)))
    assert found.landing.tolist() == [-value for value in distance]
    rewards = [[-distance[there] for there in row] for row in by_hand.table]
    assert found.contrast == pytest.approx(by_hand.contrast(rewards))


@settings(max_examples=60)
@given(rewarded_mazes())
def test_mix_and_potential_climb_to_the_goal_alike(case):
    """Their landing values are 1[not reached] more than a multiple of the distance."""
    text, distance, length = case
    task = task_of(text, length)
    landing = {
        "mix": [-Fraction(d) / 2 - Fraction(d > 0, 2) for d in distance],
        "potential": [-Fraction(d) / 2 - (d > 0) for d in distance],
        "sparse": [-Fraction(d > 0) for d in distance],
    }
    for form, values in landing.items():
        found = audit(task, form, far(distance), gamma=0.5)
        by_hand = ByHand(text, values)
        np.testing.assert_allclose(found.landing, [float(value) for value in values])
        assert found.optima.tolist() == by_hand.optima()
        assert found.astray == pytest.approx(float(by_hand.astray()))
        assert found.greedy_success == pytest.approx(float(by_hand.success(length)))
        expected = (
            spearmanr([-value for value in values], by_hand.steps).statistic if len(distance) > 1 else 0
        )
        assert found.correlation == pytest.approx(expected)


def planned_lookahead(
    text: str, rewards: list[list[float]], gamma: float, length: int, deepest: int
) -> int | None:
    """The least depth of search whose first best action comes within 2 of the best possible mean return."""
    table, goal = exact.moves(text), exact.goal_of(text)
    states = range(len(table))

    @cache
    def best_from(state: int, depth: int) -> float:
        return max(action_values(state, depth)) if depth else 0.0

    def action_values(state: int, depth: int) -> list[float]:
        return [
            reward + gamma * best_from(there, depth - 1)
            for reward, there in zip(rewards[state], table[state], strict=True)
        ]

    @cache
    def possible(state: int, left: int) -> int:
        return max((there == goal) - 1 + possible(there, left - 1) for there in table[state]) if left else 0

    def walked(depth: int) -> int:
        total = 0
        for start in states:
            here = start
            for _ in range(length):
                values = action_values(here, depth)
                here = table[here][values.index(max(values))]
                total += (here == goal) - 1
        return total

    wanted = sum(possible(state, length) for state in states) - 2 * len(table)
    for depth in range(1, deepest + 1):
        total = walked(depth)
        # As good as wanted to the last digit: rounding of the mean decides.
        assume(total != wanted)
        if total > wanted:
            return depth
    return None


@settings(max_examples=60)
@given(rewarded_mazes(), st.sampled_from(["laplacian", "sparse", "mix", "potential"]))
def test_lookahead_is_the_depth_of_search_that_it_takes(case, form):
    """γ = ½ and whole distances make every value exact, so that ties are ties."""
    text, distance, length = case
    length += 5
    task = task_of(text, length)
    cost = [float(d > 0) for d in distance]
    reward = {
        "laplacian": lambda s, there: -float(distance[there]),
        "sparse": lambda s, there: -cost[there],
        "mix": lambda s, there: -(distance[there] + cost[there]) / 2,
        "potential": lambda s, there: -cost[there] - distance[there] / 2 + distance[s],
    }[form]
    rewards = [[reward(s, there) for there in row] for s, row in enumerate(exact.moves(text))]
    expected = planned_lookahead(text, rewards, 0.5, length, deepest=40)
    assert audit(task, form, far(distance), gamma=0.5).lookahead == expected


@settings(max_examples=60)
@given(exact.small_mazes(), st.integers(1, 20), st.booleans(), st.sampled_from([0.5, 0.9]))
def test_true_steps_are_a_perfect_reward(text, length, stay, gamma):
    table = exact.moves(text, stay=stay)
    assume(len(table) > 1)
    steps = exact.fewest_moves(table, exact.goal_of(text))
    task = task_of(text, length, stay=stay)
    found = audit(task, "laplacian", far(steps), gamma=gamma)
    assert found.correlation == pytest.approx(1)
    assert (found.local_optima, found.flat, found.astray) == (0, 0, 0)
    assert found.lookahead == 1
    assert found.greedy_success == pytest.approx(np.mean([step <= length for step in steps]))
    assert found.best_return == pytest.approx(task.optimal_return)


@settings(max_examples=60)
@given(rewarded_mazes(), st.sampled_from([0.5, 0.9]))
def test_no_potential_changes_the_best_policy(case, gamma):
    text, distance, length = case
    task = task_of(text, length)
    for form in ("sparse", "potential"):
        found = audit(task, form, far(distance), gamma=gamma)
        assert found.best_return == pytest.approx(task.optimal_return)


class TestGreedyPolicy:
    def test_ties_share(self):
        policy = greedy_policy(np.array([[1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0], [5.0, 1.0, 1.0, 1.0]]))
        np.testing.assert_allclose(policy, [[0, 0.5, 0.5, 0], [0.25] * 4, [1, 0, 0, 0]])

    def test_rounding_is_no_difference_and_a_thousandth_is(self):
        policy = greedy_policy(np.array([[1.0, 1.0 + 1e-9], [1.0, 1.001], [0.0, 2.0]]))
        np.testing.assert_allclose(policy, [[0.5, 0.5], [0, 1], [0, 1]])


@pytest.fixture(scope="module", params=MAZES)
def maze(request) -> GridTask:
    return built_in(request.param)


class TestPapersMazes:
    def test_every_reward_of_a_potential_and_the_sparse_one_lead_to_the_published_optimum(self, maze):
        published = {"OneRoom": -13.004, "TwoRoom": -11.358, "HardMaze": -18.980}[maze.world.maze.name]
        embedded = exact_embedding(maze.world, "commute")
        to = maze.distances(embedded, maze.one_step_scale(embedded))
        for form in ("sparse", "potential"):
            assert audit(maze, form, to, gamma=0.98).best_return == pytest.approx(published, abs=5e-4)

    def test_l2(self, maze):
        """Ties, optima and ways astray by Euclid's distance on the drawing."""
        text = exact.text_of(maze.world.maze.name)
        cells, goal = exact.free_cells(text), exact.goal_of(text)
        # Squares of whole numbers, so that ties are exact.
        squares = [(r - cells[goal][0]) ** 2 + (c - cells[goal][1]) ** 2 for r, c in cells]
        by_hand = ByHand(text, [-square for square in squares])
        found = audit(maze, "l2", maze.distances(), gamma=0.98)
        assert found.optima.tolist() == by_hand.optima()
        assert found.flat == pytest.approx(len(by_hand.flat()) / len(by_hand.others))
        assert found.astray == pytest.approx(float(by_hand.astray()))
        assert found.greedy_success == pytest.approx(float(by_hand.success(50)))
        assert found.correlation == pytest.approx(spearmanr(squares, by_hand.steps).statistic, abs=1e-3)

    def test_commute_distances_lead_to_the_goal_from_everywhere(self, maze):
        found = audit(maze, "laplacian", maze.distances(exact_embedding(maze.world, "commute")), gamma=0.98)
        assert (found.local_optima, found.greedy_success, found.lookahead) == (0, 1, 1)

    @pytest.mark.parametrize(
        ("name", "beta", "learned_in"),
        [
            # Thousands of steps until DQN came within 2 of the optimum in the authors' later curves, where
            # the weight of the penalty was 5, 5 and 1, that is twice β.
            ("OneRoom", 2.5, {"mix": 1, "rawmix": 2, "l2": 1, "sparse": 11}),
            ("TwoRoom", 2.5, {"mix": 9, "rawmix": 13, "l2": 25, "sparse": 15}),
            ("HardMaze", 0.5, {"mix": 12, "rawmix": 21, "l2": 26, "sparse": 30}),
        ],
    )
    def test_the_ranking_is_the_order_in_which_agents_learned(self, name, beta, learned_in):
        task = built_in(name)
        to = task.distances(exact_embedding(task.world, "soft", beta=beta))
        ranked = ranking([audit(task, form, to, gamma=0.98) for form in learned_in])
        looked = [one.lookahead for one in ranked]
        assert looked == sorted(looked)
        # Rewards that must be looked at equally far ahead may come in either order.
        order = sorted(ranked, key=lambda one: (one.lookahead, learned_in[one.name]))
        thousands = [learned_in[one.name] for one in order]
        assert thousands == sorted(thousands)
        assert (ranked[0].name, ranked[0].lookahead) == ("mix", 1)


@pytest.fixture(scope="module")
def some_audit() -> Audit:
    return audited(BENT, "l2")


def test_numbers_go_to_json_and_maps_stay(some_audit):
    numbers = json.loads(json.dumps(some_audit.as_json()))
    assert numbers["local_optima"] == 1
    assert numbers["astray"] == pytest.approx(0.25)
    assert set(numbers) == {field.name for field in dataclasses.fields(Audit)} - {"landing", "optima"}


def test_ranking_by_lookahead_then_by_what_stands_out(some_audit):
    rows = [("never", None, 9.0), ("far", 30, 5.0), ("faint", 3, 0.2), ("clear", 3, 0.8), ("near", 1, 0.1)]
    audits = [
        dataclasses.replace(some_audit, name=name, lookahead=lookahead, contrast=contrast)
        for name, lookahead, contrast in rows
    ]
    for order in (audits, audits[::-1], audits[2:] + audits[:2]):
        assert [one.name for one in ranking(order)] == ["near", "clear", "faint", "far", "never"]
    assert ranking([]) == []


def test_a_form_that_lacks_its_embedding():
    with pytest.raises(ConfigError, match=r"'mix'.* representation"):
        audited(BENT, "mix")


def test_every_form_can_be_audited():
    task = built_in("HardMaze")
    embedded = exact_embedding(task.world, "commute")
    for form in FORMS:
        to = task.distances(embedded, default_scale(task, form, "commute", embedded))
        found = audit(task, form, to, gamma=0.98)
        assert found.name == form
        assert np.isfinite([found.correlation, found.astray, found.contrast, found.best_return]).all()
