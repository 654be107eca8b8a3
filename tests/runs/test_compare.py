"""Rewards side by side: which are audited, in what order, of which φ, and what is refused."""

import dataclasses
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import lapwing
from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, LapwingWarning
from lapwing.laplacian.distances import measure_of
from lapwing.laplacian.representation import Representation
from lapwing.mazes import parse_maze, read_maze
from lapwing.runs.compare import Comparison, compare_rewards
from lapwing.shaping.audit import audit
from lapwing.shaping.tasks import default_scale, exact_embedding
from tests.support import exact
from tests.support.small_runs import SMALL

FILTERS = ["soft", "unit", "commute", "biharmonic", "heat", "hitting"]
GOAL = (13, 1)
"""For FourRoom, which has none of its own."""


@cache
def hard_maze() -> Comparison:
    return compare_rewards("HardMaze")


def names(comparison: Comparison) -> list[str]:
    return [one.name for one in comparison.audits]


def by_name(comparison: Comparison) -> dict:
    return {one.name: one for one in comparison.audits}


def same_audits(first: Comparison, second: Comparison) -> bool:
    return [one.as_json() for one in first.audits] == [one.as_json() for one in second.audits]


class TestNames:
    def test_what_is_audited_by_default(self):
        """First what uses no φ, then each form under each filter."""
        shaped = [f"{form}, {filter}" for form in ("mix", "potential") for filter in FILTERS]
        assert names(hard_maze()) == ["sparse", "l2", "rawmix", *shaped]
        assert hard_maze().sources == {"φ1": "the chain's own eigenvectors"}

    def test_forms_in_the_order_they_are_given(self):
        found = compare_rewards("HardMaze", forms=["laplacian", "l2", "mix", "sparse"])
        shaped = [f"{form}, {filter}" for form in ("laplacian", "mix") for filter in FILTERS]
        assert names(found) == ["l2", "sparse", *shaped]

    def test_several_representations_are_told_apart(self, four_room, four_room_run):
        found = compare_rewards(["FourRoom", four_room, four_room_run], goal=GOAL, forms=["sparse", "mix"])
        shaped = [f"mix, {filter}, φ{number}" for number in (1, 2, 3) for filter in FILTERS]
        assert names(found) == ["sparse", *shaped]
        assert found.sources == {
            "φ1": "the chain's own eigenvectors",
            "φ2": repr(four_room),
            "φ3": str(four_room_run),
        }
        audits = by_name(found)
        for filter in FILTERS:
            given, loaded = (audits[f"mix, {filter}, φ{number}"].as_json() for number in (2, 3))
            assert given | {"name": ""} == loaded | {"name": ""}

    def test_a_representation_whose_columns_stay_as_learned_has_one_filter(self, four_room):
        settings = four_room.config["settings"] | {"rotate": False}
        phi = dataclasses.replace(four_room, config=four_room.config | {"settings": settings})
        found = compare_rewards(phi, goal=GOAL, forms=["mix", "potential"])
        assert names(found) == ["mix, soft", "potential, soft"]

    def test_a_representation_of_one_dimension_has_one_filter(self, four_room):
        phi = dataclasses.replace(
            four_room,
            eigenvalues=four_room.eigenvalues[:1],
            coefficients=four_room.coefficients[:, :1],
            reference=four_room.reference[:, :1],
        )
        assert names(compare_rewards(phi, goal=GOAL, forms=["mix"])) == ["mix, soft"]

    def test_representations_that_look_alike_are_all_audited(self, alike):
        assert repr(alike[0]) == repr(alike[1])
        assert alike[0].sha256() != alike[1].sha256()
        found = compare_rewards(alike, forms=["mix"])
        assert names(found) == [f"mix, {filter}, φ{number}" for number in (1, 2) for filter in FILTERS]
        assert list(found.sources) == ["φ1", "φ2"]


@pytest.fixture(scope="module")
def alike() -> list[Representation]:
    """Learned from the same chain with two seeds, to the same eigenvalues."""
    return [
        lapwing.learn(
            "HardMaze", true_chain=True, observation="index", dim=2, learning_rate=0.03, steps=600, seed=seed
        )
        for seed in (0, 1)
    ]


class TestTargets:
    def test_a_maze_by_name_by_file_and_as_it_is(self, tmp_path):
        (tmp_path / "mine.txt").write_text(exact.text_of("HardMaze"))
        for target in (
            read_maze("HardMaze"),
            tmp_path / "mine.txt",
            str(tmp_path / "mine.txt"),
            ["HardMaze"],
        ):
            assert same_audits(compare_rewards(target), hard_maze())

    def test_a_representation_its_file_and_its_run(self, four_room, four_room_run, tmp_path):
        four_room.save(tmp_path / "phi.safetensors")
        first = compare_rewards(four_room, goal=GOAL)
        assert first.sources == {"φ1": repr(four_room)}
        for target in (four_room_run, str(four_room_run), tmp_path / "phi.safetensors"):
            found = compare_rewards(target, goal=GOAL)
            assert same_audits(found, first)
            assert found.sources == {"φ1": str(target)}

    def test_the_task(self, four_room):
        task, _, _ = compare_rewards(four_room, goal=GOAL, episode_length=31, forms=["sparse"])
        assert task.goal_cell == GOAL
        assert task.episode_length == 31
        assert task.world.maze.text == exact.text_of("FourRoom")
        assert task.world.maze.name == "FourRoom"


class TestMeasures:
    def test_each_is_the_audit_of_its_form_and_filter(self):
        task = hard_maze().task
        audits = by_name(hard_maze())
        for form in ("sparse", "l2", "rawmix"):
            assert audits[form].as_json() == audit(task, form, task.distances(), gamma=0.98).as_json()
        for form in ("mix", "potential"):
            for filter in FILTERS:
                embedded = exact_embedding(task.world, filter)
                scale = default_scale(task, form, filter, embedded)
                to = task.distances(embedded, scale, measure_of(filter))
                name = f"{form}, {filter}"
                assert audits[name].as_json() == audit(task, form, to, gamma=0.98, name=name).as_json()

    def test_exact_against_learned(self):
        """φ as it is learned to the end from the true chain comes to what its eigenvectors say."""
        with pytest.warns(LapwingWarning, match="dimensions survive"):
            soft = lapwing.learn(
                "TwoRoom",
                true_chain=True,
                observation="index",
                dim=20,
                lam=0.9,
                beta=5.0,
                delta=0.05,
                learning_rate=0.03,
                steps=1_000,
                oversample=0,
                rotate=False,
            )
        found = by_name(compare_rewards(["TwoRoom", soft], forms=["mix", "laplacian"]))
        for form in ("mix", "laplacian"):
            chain, learned = (found[f"{form}, soft, φ{number}"] for number in (1, 2))
            assert learned.correlation == pytest.approx(chain.correlation, abs=2e-3)
            assert learned.contrast == pytest.approx(chain.contrast, rel=1e-2)
            assert abs(learned.lookahead - chain.lookahead) <= 1
            np.testing.assert_allclose(learned.landing, chain.landing, atol=0.01)

    def test_another_goal_is_another_task(self):
        found = compare_rewards("HardMaze", goal=(1, 1), forms=["l2"])
        assert found.task.goal_cell == (1, 1)
        cells, steps = exact.cells("HardMaze"), exact.steps_to("HardMaze", 0)
        as_the_crow_flies = [np.hypot(row - 1, column - 1) for row, column in cells]
        expected = spearmanr(as_the_crow_flies, steps).statistic
        assert found.audits[0].correlation == pytest.approx(expected, abs=1e-3)
        assert found.audits[0].correlation != hard_maze().audits[1].correlation

    def test_the_discount(self):
        """A short-sighted agent gets less from `l2`, which leads it into corners."""
        found = compare_rewards("HardMaze", forms=["l2"], gamma=0.5)
        task = found.task
        expected = audit(task, "l2", task.distances(), gamma=0.5).as_json()
        assert found.audits[0].as_json() == expected
        assert found.audits[0].best_return < compare_rewards("HardMaze", forms=["l2"]).audits[0].best_return

    def test_the_length_of_an_episode(self):
        """In one step, only what begins beside the goal, or on it, gets there."""
        (found,) = compare_rewards("HardMaze", forms=["sparse"], episode_length=1).audits
        steps = exact.steps_to("HardMaze", exact.goal_of(exact.text_of("HardMaze")))
        assert found.greedy_success == pytest.approx(np.mean(steps <= 1))
        assert found.best_return == pytest.approx(-np.mean(steps > 1))


class TestRefused:
    def test_nothing(self):
        with pytest.raises(ConfigError, match="name a maze or a run to audit"):
            compare_rewards([])

    def test_several_mazes(self, four_room, four_room_run):
        with pytest.raises(ConfigError, match=r"TwoRoom .* OneRoom"):
            compare_rewards(["OneRoom", "TwoRoom"])
        with pytest.raises(ConfigError, match=r"four_room .* TwoRoom"):
            compare_rewards(["TwoRoom", four_room_run])
        with pytest.raises(ConfigError, match="HardMaze"):
            compare_rewards([four_room, "HardMaze"], goal=GOAL)

    def test_a_representation_that_was_not_learned_in_a_maze(self, tmp_path):
        line = np.abs(np.arange(60) % 14 - 7)
        settings = {name: value for name, value in SMALL.items() if name != "transitions"}
        phi = lapwing.learn(Experience(line, [60]), **(settings | {"steps": 2, "dim": 3}))
        phi.save(tmp_path / "line.safetensors")
        for target in (phi, tmp_path / "line.safetensors"):
            with pytest.raises(ConfigError, match="not learned in a maze"):
                compare_rewards(target)

    def test_what_is_no_maze(self, tmp_path, four_room_run):
        Experience(np.zeros((5, 2), np.float32), [5]).save(tmp_path / "walk.npz")
        out = Path(shutil.copytree(four_room_run, tmp_path / "run"))
        for name in ("result.json", "representation.safetensors"):
            (out / name).unlink()
        for target, words in [
            (tmp_path / "walk.npz", r"walk\.npz is no maze"),
            ("gym:CartPole-v1", "CartPole-v1 is no maze"),
            ("TwoRom", "'TwoRom'.* TwoRoom"),
            (tmp_path, "is not a run folder"),
            (out, "unfinished"),
        ]:
            with pytest.raises(ConfigError, match=words):
                compare_rewards(target, goal=GOAL)

    @pytest.mark.parametrize(
        ("goal", "message"),
        [
            (None, "FourRoom .*--goal"),
            ((0, 0), r"goal \(0,0\)"),
            ((1, 40), r"goal \(1,40\)"),
        ],
    )
    def test_goals(self, four_room, goal, message):
        for target in ("FourRoom", four_room):
            with pytest.raises(ConfigError, match=message):
                compare_rewards(target, goal=goal)

    def test_a_goal_that_cannot_be_reached(self):
        with pytest.warns(LapwingWarning, match="cannot be reached"):
            maze = parse_maze("..#.\n.G##\n", name="sealed")
        with pytest.raises(ConfigError, match=r"goal \(0,3\) cannot be reached"):
            compare_rewards(maze, goal=(0, 3))

    def test_a_discount(self):
        with pytest.raises(ConfigError, match=r"gamma .* 2\.0"):
            compare_rewards("HardMaze", gamma=2.0)
