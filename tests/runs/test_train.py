"""`lapwing.train`: agents, their files and run folders, what is refused, and runs that go on."""

import dataclasses
import inspect
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lapwing
from lapwing import storage
from lapwing.agents.agent import Agent
from lapwing.data.experience import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import CheckpointError, ConfigError, LapwingWarning, StorageError
from lapwing.mazes import parse_maze, read_maze
from lapwing.runs.folder import RunFolder
from lapwing.runs.learn import reopen
from lapwing.runs.train_dqn import reopen_agent, shaped_task, steps_to_optimum, train_agent
from lapwing.settings.agents import AgentSettings
from lapwing.settings.learn import PRESETS, LearnSettings
from lapwing.shaping.tasks import grid_task
from tests.support import exact
from tests.support.environments import Line
from tests.support.folders import content, put, without_times
from tests.support.interruptions import Interrupted, stop_at
from tests.support.processes import ONE_THREAD, Zygote
from tests.support.small_runs import SMALL

QUICK = {"random_steps": 60, "steps": 40, "evaluate_every": 10, "hidden": (8,), "batch": 8}
L2 = QUICK | {"reward": "l2"}
SHAPED = QUICK | {"reward": "potential", "goal": "13,1"}
"""For FourRoom, which has no goal of its own."""
CARTPOLE = "gym:CartPole-v1"
RECIPE = LearnSettings.from_keywords(SMALL)
"""How φ is learned here; the numbers matter to no test."""


def train_shaped(out: Path | None, settings: dict[str, Any] = SHAPED, **how: Any):
    """An agent in FourRoom with a φ that is learned first."""
    return train_agent("FourRoom", AgentSettings(**settings), out, recipe=RECIPE, **how)


@pytest.mark.parametrize("near", [True, False])
def test_a_goal_that_phi_has_hardly_seen_is_warned_of(near):
    """φ of FourRoom knows all of its states, or is told that it saw those of the upper rooms alone."""
    phi = lapwing.learn("FourRoom", **SMALL)
    states = GridWorld(read_maze("FourRoom")).observations("position")
    known = states if near else np.repeat(states[states[:, 0] < 0], 2, axis=0)
    phi = dataclasses.replace(phi, reference=phi.eigenfunctions(known))
    goal = SHAPED | {"steps": 1, "evaluate_every": 1}
    with warnings.catch_warnings(record=True, action="always") as said:
        train_agent("FourRoom", AgentSettings(**goal), None, representation=phi)
    assert any("thinly sampled" in str(each.message) for each in said) is not near


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory) -> Path:
    """A finished run without φ; read it, do not change it."""
    out = tmp_path_factory.mktemp("runs") / "plain"
    lapwing.train("TwoRoom", out=out, **L2)
    return out


@pytest.fixture(scope="module")
def plain(plain_run) -> Agent:
    return lapwing.load_agent(plain_run)


@pytest.fixture(scope="module")
def shaped_run(tmp_path_factory) -> Path:
    """A finished run that learned its φ; read it, do not change it."""
    out = tmp_path_factory.mktemp("runs") / "shaped"
    train_shaped(out)
    return out


@pytest.fixture
def finished(plain_run, tmp_path) -> Path:
    return Path(shutil.copytree(plain_run, tmp_path / "run"))


def assert_same_run(first: Path, second: Path) -> None:
    """The same bits, and the same numbers but for times and the folder's name."""
    assert (first / "agent.safetensors").read_bytes() == (second / "agent.safetensors").read_bytes()
    one, other = RunFolder(first), RunFolder(second)
    assert without_times(one.result()) == without_times(other.result())
    assert without_times(one.metrics()) == without_times(other.metrics())


def positions() -> np.ndarray:
    """Of TwoRoom, from -1 to 1."""
    return 2 * np.array(exact.cells("TwoRoom"), np.float32) / 16 - 1


class TestAgent:
    def test_its_values_are_those_of_the_network_in_the_checkpoint(self, plain, tmp_path, often):
        with pytest.raises(Interrupted):
            lapwing.train("TwoRoom", out=tmp_path / "run", on_progress=stop_at("training", 40), **L2)
        tensors, manifest = storage.read_tensors(tmp_path / "run" / "checkpoint-000000040.safetensors")
        assert manifest["step"] == 40
        layer = "state.state.learner.q.layers[{}].{}".format
        hidden = positions() @ tensors[layer(0, "weight")].T + tensors[layer(0, "bias")]
        values = np.maximum(hidden, 0) @ tensors[layer(1, "weight")].T + tensors[layer(1, "bias")]
        assert values.shape == (len(positions()), 4)
        np.testing.assert_allclose(plain.values(positions()), values, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(plain.act(positions()), plain.values(positions()).argmax(axis=1))

    def test_one_observation_or_many(self, plain):
        many = positions()[:5]
        for row, one in enumerate(many):
            np.testing.assert_allclose(plain.values(one), plain.values(many)[row], rtol=1e-5)
            assert isinstance(plain.act(one), int)
            assert plain.act(one) == plain.act(many)[row]
        assert plain.act(np.zeros((0, 2))).shape == (0,)

    def test_observations_of_another_shape_are_refused(self, plain):
        for wrong in (np.zeros(3), np.zeros((4, 3)), np.zeros(()), np.zeros((1, 1, 2))):
            with pytest.raises(ConfigError, match=rf"{re.escape(str(wrong.shape))}.*\(2,\)"):
                plain.values(wrong)

    def test_indices(self):
        agent = lapwing.train("TwoRoom", **(L2 | {"observation": "index", "stay": True}))
        table = np.asarray(agent.q.weight)
        assert table.shape == (len(positions()), 5)
        np.testing.assert_array_equal(agent.values(np.arange(len(table))), table)
        assert agent.act(7) == table[7].argmax()
        for wrong in (len(table), -1):
            with pytest.raises(ConfigError, match=rf"index {wrong} .* {len(table) - 1}"):
                agent.act(wrong)
        with pytest.raises(ConfigError, match="float64"):
            agent.act(1.5)


class TestFile:
    def test_round_trip(self, plain, tmp_path):
        plain.save(tmp_path / "mine.safetensors")
        again = lapwing.load_agent(str(tmp_path / "mine.safetensors"))
        np.testing.assert_array_equal(again.values(positions()), plain.values(positions()))
        assert again.spec == plain.spec
        assert again.config == plain.config
        again.save(tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "mine.safetensors").read_bytes()

    @pytest.mark.parametrize("place", [0, 0.5, -1])
    def test_one_flipped_bit_is_noticed(self, finished, place):
        path = finished / "agent.safetensors"
        damaged = bytearray(path.read_bytes())
        damaged[int(place * len(damaged)) if isinstance(place, float) else place] ^= 1
        put(path, damaged)
        with pytest.raises(CheckpointError, match=r"agent\.safetensors"):
            lapwing.load_agent(path)

    def test_a_file_that_does_not_fit_its_description_is_refused(self, finished):
        path = finished / "agent.safetensors"
        tensors, manifest = storage.read_tensors(path)
        for wrong in (
            ({}, manifest),
            (tensors, manifest | {"encoder": manifest["encoder"] | {"dim": 5}}),
            (tensors, {name: value for name, value in manifest.items() if name != "encoder"}),
            (tensors, manifest | {"format": 0}),
        ):
            storage.write_tensors(path, *wrong)
            with pytest.raises(CheckpointError, match=r"agent\.safetensors"):
                lapwing.load_agent(path)

    def test_what_is_not_there(self, tmp_path):
        with pytest.raises(ConfigError, match="no trained agent"):
            lapwing.load_agent(tmp_path)
        with pytest.raises(StorageError, match=r"none\.safetensors"):
            lapwing.load_agent(tmp_path / "none.safetensors")

    def test_a_representation_is_no_agent(self, four_room_run):
        path = four_room_run / "representation.safetensors"
        with pytest.raises(CheckpointError, match=r"representation\.safetensors"):
            lapwing.load_agent(path)
        for read in (lapwing.load_agent, reopen_agent):
            with pytest.raises(ConfigError, match="four_room"):
                read(four_room_run)

    def test_an_agent_is_no_representation(self, plain_run):
        with pytest.raises(CheckpointError, match=r"agent\.safetensors"):
            lapwing.load(plain_run / "agent.safetensors")
        for read in (reopen, lapwing.load):
            with pytest.raises(ConfigError, match=r"plain holds (?!an unfinished)"):
                read(plain_run)

    def test_the_representation_of_a_shaped_agent_can_be_loaded(self, shaped_run, four_room):
        """With the settings of `four_room` it is the same one."""
        assert lapwing.load(shaped_run).sha256() == four_room.sha256()
        assert lapwing.load(shaped_run / "representation").sha256() == four_room.sha256()


class TestFolder:
    OWN = frozenset({"config.json", "metrics.jsonl", "agent.safetensors", "result.json"})

    def test_what_is_in_it(self, plain_run, shaped_run, four_room_run, four_room, tmp_path):
        """Without a representation, with one that was learned, and with one that was given."""
        assert set(content(plain_run)) == self.OWN
        inner = {f"representation/{name}" for name in content(four_room_run)}
        assert set(content(shaped_run)) == self.OWN | {"representation.safetensors"} | inner
        lapwing.train("FourRoom", representation=four_room, out=tmp_path / "run", **SHAPED)
        assert set(content(tmp_path / "run")) == self.OWN | {"representation.safetensors"}
        assert RunFolder(tmp_path / "run").config()["phi"] == {"sha256": four_room.sha256()}

    def test_the_configuration(self, plain_run, shaped_run):
        config = RunFolder(plain_run).config()
        assert (config["kind"], config["phi"], config["version"]) == ("agent", None, lapwing.__version__)
        assert config["target"] == {"kind": "maze", "name": "TwoRoom", "text": exact.text_of("TwoRoom")}
        assert AgentSettings.from_json(config["settings"]) == AgentSettings(**L2)
        assert LearnSettings.from_json(RunFolder(shaped_run).config()["phi"]) == RECIPE

    def test_the_result(self, plain_run):
        result = RunFolder(plain_run).result()
        assert (result["target"], result["reward"], result["goal"]) == ("TwoRoom", "l2", [9, 15])
        assert result["evaluated_at"] == [10, 20, 30, 40]
        assert result["return"] == result["returns"][-1]
        assert result["returns"] == [row["return"] for row in RunFolder(plain_run).metrics()]
        assert result["optimal_return"] == pytest.approx(-11.358, abs=5e-4)
        assert all(-50 <= each <= result["optimal_return"] for each in result["returns"])
        assert result["steps_to_optimum"] is None
        assert result["audit"]["name"] == "l2"
        assert result["run"] == str(plain_run)
        assert result["version"] == lapwing.__version__
        assert AgentSettings.from_json(result["settings"]) == AgentSettings(**L2)
        assert result["train_seconds"] > 0
        assert result["compile_seconds"] > 0

    def test_a_folder_changes_nothing_of_the_agent(self, plain, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        agent = lapwing.train("TwoRoom", **L2)
        np.testing.assert_array_equal(agent.values(positions()), plain.values(positions()))
        assert agent.config == plain.config
        assert repr(agent) == "Agent(TwoRoom: 4 actions, mlp network)"
        assert list(tmp_path.iterdir()) == []

    def test_progress_is_told(self):
        calls = []
        train_shaped(None, on_progress=lambda *call: calls.append(call))
        phases = list(dict.fromkeys(phase for phase, *_ in calls))
        assert phases.index("learning") < phases.index("training")
        told = [(done, total) for phase, done, total, _ in calls if phase == "training"]
        assert told == [(step, 40) for step in (0, 10, 20, 30, 40)]
        assert all("return" in row for phase, done, _, row in calls if phase == "training" and done)


@pytest.mark.parametrize("name", ["plain_run", "shaped_run"])
def test_a_reopened_run_is_the_same(name, request):
    out = request.getfixturevalue(name)
    outcome = reopen_agent(out)
    assert outcome.result == storage.read_checked_json(out / "result.json")
    agent = lapwing.load_agent(out)
    seen = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    np.testing.assert_array_equal(outcome.agent.values(seen), agent.values(seen))
    assert outcome.shaped is not None
    assert list(outcome.shaped.task.goal_cell) == outcome.result["goal"]
    assert outcome.shaped.audit.as_json() == outcome.result["audit"]


def test_an_unfinished_run_is_not_reopened(finished):
    (finished / "result.json").unlink()
    with pytest.raises(ConfigError, match="unfinished"):
        reopen_agent(finished)


class TestShaped:
    @pytest.mark.parametrize(
        ("filter", "scale"), [(None, None), ("heat", None), ("hitting", None), ("soft", 2.5)]
    )
    def test_rewards_are_those_of_the_formula(self, four_room, filter, scale):
        """sparse + γΦ(s') - Φ(s); by default the distance of `commute`, with a mean change of 1 a move."""
        settings = AgentSettings(reward="potential", gamma=0.9, filter=filter, scale=scale)
        world = GridWorld(read_maze("FourRoom"))
        shaped = shaped_task(grid_task(world, (13, 1)), settings, four_room)
        table = np.array(exact.moves(exact.text_of("FourRoom")))
        cells = exact.cells("FourRoom")
        seen, goal = 2 * np.array(cells, np.float32) / 14 - 1, cells.index((13, 1))
        distance = four_room.distance(seen, seen[goal], filter or "commute").astype(float)
        moved = table != np.arange(len(table))[:, None]
        step = np.abs(distance[table] - distance[:, None])[moved].mean()
        distance *= scale or 1 / step
        expected = (table == goal) - 1.0 - 0.9 * distance[table] + distance[:, None]
        np.testing.assert_allclose(shaped.rewards, expected, rtol=1e-3, atol=1e-3)

    def test_a_representation_or_its_path(self, four_room, four_room_run, shaped_run, tmp_path):
        """Or one that is learned to the same bits."""
        four_room.save(tmp_path / "phi.safetensors")
        expected = (shaped_run / "agent.safetensors").read_bytes()
        forms = (four_room, four_room_run, str(tmp_path / "phi.safetensors"), shaped_run)
        for number, representation in enumerate(forms):
            out = tmp_path / str(number)
            lapwing.train("FourRoom", representation=representation, out=out, **SHAPED)
            assert (out / "agent.safetensors").read_bytes() == expected
        configs = [RunFolder(tmp_path / str(number)).config() for number in range(4)]
        assert all(config == configs[0] for config in configs)

    @pytest.mark.parametrize("preset", ["default", "paper"])
    def test_how_a_representation_is_learned_where_none_is_given(self, tmp_path, preset):
        """It sees what the agent sees, from as much data as the paper's."""

        def stop(*call):
            raise Interrupted

        chosen = {"observation": "index", "stay": True, "episode_length": 30, "seed": 5}
        with pytest.raises(Interrupted):
            lapwing.train(
                "TwoRoom", preset=preset, out=tmp_path / "run", on_progress=stop, **(QUICK | chosen)
            )
        config = RunFolder(tmp_path / "run").config()
        assert config["settings"]["reward"] == "potential"
        phi = LearnSettings.from_json(config["phi"])
        recipe = PRESETS["default" if preset == "default" else "paper-shaping"]
        assert phi == dataclasses.replace(recipe, transitions=30_000, **chosen)
        other = {"default": "paper", "paper": "default"}[preset]
        with pytest.raises(ConfigError, match=r"was begun with \w+ = "):
            lapwing.train("TwoRoom", preset=other, out=tmp_path / "run", resume=True, **(QUICK | chosen))


class TestStepsToOptimum:
    @given(st.lists(st.integers(-50, 0), min_size=1, max_size=12), st.integers(-20, 0))
    def test_is_the_first_that_is_good(self, returns, optimum):
        at = np.arange(1, len(returns) + 1) * 5
        good = [step for step, value in zip(at, returns, strict=True) if value >= optimum - 2]
        found = steps_to_optimum(at, np.array(returns, float), float(optimum))
        assert found == (good[0] if good else None)
        json.dumps(found)


class TestEnvironments:
    def test_a_run(self, tmp_path):
        out = tmp_path / "run"
        agent = lapwing.train(CARTPOLE, out=out, **QUICK)
        assert set(content(out)) == {"config.json", "metrics.jsonl", "agent.safetensors", "result.json"}
        assert agent.act(np.zeros(4)) in (0, 1)
        assert repr(agent) == "Agent(CartPole-v1: 2 actions, mlp network)"
        outcome = reopen_agent(out)
        assert outcome.shaped is None
        assert outcome.result["target"] == "CartPole-v1"
        assert outcome.result["reward"] is None
        assert outcome.result["evaluated_at"] == [10, 20, 30, 40]
        assert outcome.result["returns"] == [row["return"] for row in RunFolder(out).metrics()]
        np.testing.assert_array_equal(outcome.agent.values(np.ones(4)), agent.values(np.ones(4)))

    @pytest.mark.parametrize(
        "changed",
        [
            *({"reward": "sparse"}, {"filter": "heat"}, {"scale": 2.0}, {"goal": "1,1"}),
            *({"observation": "index"}, {"stay": True}, {"episode_length": 7}),
        ],
        ids=str,
    )
    def test_what_is_for_mazes_is_refused(self, tmp_path, changed):
        ((name, value),) = changed.items()
        with pytest.raises(ConfigError, match=f"{name}={value!r}"):
            lapwing.train(CARTPOLE, out=tmp_path / "run", **(QUICK | changed))
        assert list(tmp_path.iterdir()) == []

    def test_a_representation_is_refused(self, tmp_path, four_room):
        with pytest.raises(ConfigError, match=r"representation .*LaplacianReward"):
            lapwing.train(CARTPOLE, representation=four_room, out=tmp_path / "run", **QUICK)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("target", "message"),
        [("gym:CartPool-v1", "'CartPool-v1'.* CartPole-v1"), ("gym:Pendulum-v1", "Discrete action")],
    )
    def test_an_environment_that_cannot_be_used_is_refused_before_anything_is_written(
        self, finished, tmp_path, target, message
    ):
        before = content(tmp_path)
        with pytest.raises(ConfigError, match=message):
            lapwing.train(target, out=tmp_path / "new", **QUICK)
        assert not (tmp_path / "new").exists()
        with pytest.raises(ConfigError, match=message):
            lapwing.train(target, out=finished, overwrite=True, **QUICK)
        assert content(tmp_path) == before

    @pytest.mark.parametrize("offset", ["first_action", "first_place"])
    def test_an_agent_acts_where_spaces_do_not_begin_at_zero(self, offset):
        gymnasium.register("Offset-v0", partial(Line, **{offset: 3}), max_episode_steps=5)
        try:
            agent = lapwing.train("gym:Offset-v0", **(QUICK | {"evaluate_every": 40}))
            env = gymnasium.make("Offset-v0")
        finally:
            gymnasium.registry.pop("Offset-v0")
        observation, _ = env.reset(seed=0)
        action = agent.act(observation)
        assert env.action_space.contains(action)
        env.step(action)


SEALED = "######\n#..#.#\n#.G###\n######\n"


@pytest.fixture
def unchecked_types(monkeypatch) -> None:
    """Take away the type checks that only the tests have: settings answer for themselves."""
    monkeypatch.setattr(AgentSettings, "__init__", inspect.unwrap(AgentSettings.__init__))


class TestRefused:
    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"step": 10}, r"'step'.* steps\?"),
            ({"reward": "potental"}, "reward .* potential"),
            ({"filter": "comute"}, "filter .* commute"),
            ({"observation": "pixel"}, "observation .* image"),
            ({"goal": "8,1"}, r"goal \(8,1\) is a wall"),
            ({"goal": "99,1"}, r"goal \(99,1\) lies outside"),
            ({"goal": "here"}, "goal .* 'here'"),
            ({"steps": 0}, "steps .* 0"),
            ({"gamma": 1.0}, "gamma .* 1.0"),
            ({"epsilon": 1.5}, "epsilon .* 1.5"),
            ({"scale": -1.0}, "scale .* -1.0"),
        ],
        ids=str,
    )
    def test_settings(self, unchecked_types, tmp_path, changed, words):
        with pytest.raises(ConfigError, match=words):
            lapwing.train("TwoRoom", out=tmp_path / "run", **(L2 | changed))
        assert list(tmp_path.iterdir()) == []

    def test_a_preset(self, tmp_path):
        with pytest.raises(ConfigError, match=r"'papr'.* paper"):
            inspect.unwrap(lapwing.train)("TwoRoom", preset="papr", out=tmp_path / "run")
        assert list(tmp_path.iterdir()) == []

    def test_a_goal_may_be_a_pair(self):
        """As `lapwing.compare_rewards` takes it."""
        pair, text = (lapwing.train("TwoRoom", **(L2 | {"goal": goal})) for goal in ((9, 14), "9,14"))
        assert pair.config == text.config

    def test_a_goal_that_cannot_be_reached(self, tmp_path):
        with pytest.warns(LapwingWarning, match="cannot be reached"):
            maze = parse_maze(SEALED, name="sealed")
        with pytest.raises(ConfigError, match=r"goal \(1,4\) .* sealed"):
            lapwing.train(maze, out=tmp_path / "run", **(L2 | {"goal": "1,4"}))
        assert list(tmp_path.iterdir()) == []

    def test_a_maze_without_a_goal(self, tmp_path):
        for settings in (L2, QUICK):
            with pytest.raises(ConfigError, match=r"FourRoom .*--goal"):
                lapwing.train("FourRoom", out=tmp_path / "run", **settings)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("target", "changed", "message"),
        [
            ("TwoRoom", {"reward": "mix"}, "learned on FourRoom, .* TwoRoom"),
            ("FourRoom", SHAPED | {"observation": "index"}, "sees position, not index"),
            ("FourRoom", SHAPED | {"reward": "l2"}, "'l2'.* representation"),
            ("FourRoom", {}, "FourRoom .*--goal"),
            ("FourRoom", SHAPED | {"goal": "0,0"}, "is a wall of FourRoom"),
        ],
    )
    def test_representations(self, tmp_path, four_room, target, changed, message):
        with pytest.raises(ConfigError, match=message):
            lapwing.train(target, representation=four_room, out=tmp_path / "run", **(QUICK | changed))
        assert list(tmp_path.iterdir()) == []

    def test_files_that_hold_no_representation(self, tmp_path, plain_run):
        wrong = (plain_run / "agent.safetensors", tmp_path / "none.safetensors")
        for path, error in zip(wrong, (CheckpointError, StorageError), strict=True):
            with pytest.raises(error, match=path.name):
                lapwing.train("FourRoom", representation=path, out=tmp_path / "run", **SHAPED)
        assert list(tmp_path.iterdir()) == []

    def test_a_filter_that_the_papers_recipe_does_not_have(self, tmp_path):
        with pytest.raises(ConfigError, match="'heat'"):
            lapwing.train("TwoRoom", preset="paper", out=tmp_path / "run", **(QUICK | {"filter": "heat"}))
        assert list(tmp_path.iterdir()) == []

    def test_data(self, tmp_path):
        Experience(np.zeros((5, 2), np.float32), [5]).save(tmp_path / "walk.npz")
        before = content(tmp_path)
        with pytest.raises(ConfigError, match=r"OneRoom, .* gym:ENV_ID"):
            lapwing.train(tmp_path / "walk.npz", out=tmp_path / "run", **L2)
        with pytest.raises(ConfigError, match=r"'TwoRom'.* TwoRoom"):
            lapwing.train("TwoRom", out=tmp_path / "run", **L2)
        assert content(tmp_path) == before

    @pytest.mark.parametrize(
        ("target", "changed", "message"),
        [
            ("TwoRoom", {"hidden": (9,)}, r"hidden = \[8\], not \[9\]"),
            ("TwoRoom", {"goal": "1,1"}, "goal = None, not '1,1'"),
            ("OneRoom", {}, "name = 'TwoRoom', not 'OneRoom'"),
        ],
    )
    def test_other_settings_for_a_run_that_goes_on(self, finished, target, changed, message):
        (finished / "result.json").unlink()
        before = content(finished)
        with pytest.raises(ConfigError, match=message):
            lapwing.train(target, out=finished, resume=True, **(L2 | changed))
        assert content(finished) == before

    def test_a_run_of_another_kind(self, finished, four_room_run, tmp_path):
        learned = Path(shutil.copytree(four_room_run, tmp_path / "learned"))
        before = content(tmp_path)
        with pytest.raises(ConfigError, match="was begun with"):
            lapwing.train("FourRoom", out=learned, resume=True, **SHAPED)
        with pytest.raises(ConfigError, match="was begun with"):
            lapwing.learn("TwoRoom", out=finished, resume=True, **SMALL)
        assert content(tmp_path) == before

    def test_what_is_refused_loses_nothing_of_a_run_to_be_replaced(self, finished, four_room):
        before = content(finished)
        for wrong in (
            {"goal": "0,0"},
            {"reward": "mix", "representation": four_room},
            {"representation": four_room},
        ):
            with pytest.raises(ConfigError):
                lapwing.train("TwoRoom", out=finished, overwrite=True, **(L2 | wrong))
        assert content(finished) == before


class TestOverwriting:
    def test_removes_the_runs_own_files_and_no_others(self, shaped_run, plain_run, tmp_path):
        out = Path(shutil.copytree(shaped_run, tmp_path / "run"))
        mine = {"notes.txt": b"1", "figures/poster.png": b"2"}
        stale = ("figures/policy.gif", "figures/returns.png", "figures/reward.svg", "figures/policy.png")
        for name, text in (mine | dict.fromkeys(stale, b"old")).items():
            (out / name).parent.mkdir(exist_ok=True)
            (out / name).write_bytes(text)
        lapwing.train("TwoRoom", out=out, overwrite=True, **L2)
        assert_same_run(out, plain_run)
        assert set(content(out)) == set(content(plain_run)) | set(mine)
        assert not (out / "representation").exists()

    def test_a_users_notes_beside_the_representation_stay(self, shaped_run, tmp_path):
        out = Path(shutil.copytree(shaped_run, tmp_path / "run"))
        mine = {"representation/notes.txt": b"1", "representation/figures/poster.png": b"2"}
        for name, text in mine.items():
            (out / name).parent.mkdir(exist_ok=True)
            (out / name).write_bytes(text)
        train_shaped(out, overwrite=True)
        assert_same_run(out, shaped_run)
        assert set(content(out)) == set(content(shaped_run)) | set(mine)
        lapwing.train("TwoRoom", out=out, overwrite=True, **L2)
        left = {name: text for name, text in content(out).items() if name.startswith("representation/")}
        assert left == mine

    @pytest.mark.parametrize("text", ['{"model": "gpt"}', "[]", "{"])
    @pytest.mark.parametrize("work", [lapwing.learn, lapwing.train])
    def test_a_foreign_configuration_inside_is_refused_before_any_work(self, plain_run, tmp_path, work, text):
        out = Path(shutil.copytree(plain_run, tmp_path / "run"))
        (out / "representation").mkdir()
        (out / "representation" / "config.json").write_text(text)
        before, calls = content(out), []
        with pytest.raises((ConfigError, CheckpointError), match=r"representation.*config\.json.*--out"):
            work("TwoRoom", out=out, overwrite=True, on_progress=lambda *call: calls.append(call))
        assert {phase for phase, *_ in calls} <= {"opening"}
        assert content(out) == before

    def test_a_representation_is_learned_anew(self, shaped_run, tmp_path):
        out = Path(shutil.copytree(shaped_run, tmp_path / "run"))
        train_shaped(out, SHAPED | {"seed": 1}, overwrite=True)
        assert RunFolder(out / "representation").config()["settings"]["seed"] == 1
        assert lapwing.load(out).sha256() != lapwing.load(shaped_run).sha256()


class TestGoingOn:
    def test_in_training(self, often, plain_run, tmp_path):
        out, seen = tmp_path / "run", []
        with pytest.raises(Interrupted):
            lapwing.train("TwoRoom", out=out, on_progress=stop_at("training", 20), **L2)
        assert not RunFolder(out).finished
        with pytest.raises(ConfigError, match=r"unfinished run.* --resume"):
            lapwing.train("TwoRoom", out=out, **L2)
        lapwing.train(
            "TwoRoom",
            out=out,
            resume=True,
            on_progress=lambda phase, done, *rest: seen.append((phase, done)),
            **L2,
        )
        assert [done for phase, done in seen if phase == "training" and done] == [30, 40]
        assert_same_run(out, plain_run)
        assert set(content(out)) == set(content(plain_run))

    def test_while_the_representation_is_learned(self, often, shaped_run, tmp_path):
        out, seen = tmp_path / "run", []
        with pytest.raises(Interrupted):
            train_shaped(out, on_progress=stop_at("learning", 31))
        assert not (out / "representation" / "result.json").exists()
        train_shaped(out, resume=True, on_progress=lambda phase, done, *rest: seen.append((phase, done)))
        assert min(done for phase, done in seen if phase == "learning" and done) == 32
        assert_same_run(out, shaped_run)
        assert set(content(out)) == set(content(shaped_run))

    def test_in_an_environment(self, often, tmp_path):
        lapwing.train(CARTPOLE, out=tmp_path / "whole", **QUICK)
        out = tmp_path / "run"
        with pytest.raises(Interrupted):
            lapwing.train(CARTPOLE, out=out, on_progress=stop_at("training", 30), **QUICK)
        assert any(out.glob("checkpoint*"))
        lapwing.train(CARTPOLE, out=out, resume=True, **QUICK)
        assert_same_run(out, tmp_path / "whole")

    def test_a_finished_run_is_only_read(self, finished):
        before, phases = content(finished), []
        agent = lapwing.train(
            "TwoRoom", out=finished, resume=True, on_progress=lambda *call: phases.append(call), **L2
        )
        np.testing.assert_array_equal(
            agent.values(positions()), lapwing.load_agent(finished).values(positions())
        )
        assert phases == []
        assert content(finished) == before


def kill_when(zygote: Zygote, arguments: list[str], due) -> None:
    """Start the command, and kill it with -9 as soon as something is there."""
    child = zygote.start(arguments)
    while not due():
        assert not select.select([zygote.stdout], [], [], 0.002)[0], Path(zygote.log.name).read_text()
    os.kill(child, signal.SIGKILL)
    assert int(zygote.stdout.readline()) == signal.SIGKILL


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see that it may fork")
def test_kill_9_and_resume_gives_the_same_bits(tmp_path):
    command = ["train", "TwoRoom", "--observation", "index", "--random-steps", "1000", "--batch", "16"]
    command += ["--steps", "60000", "--evaluate-every", "100", "--out"]
    out, whole = tmp_path / "killed", tmp_path / "whole"
    straight = subprocess.run(
        [sys.executable, "-m", "lapwing", *command, str(whole)],
        capture_output=True,
        text=True,
        env=os.environ | ONE_THREAD,
    )
    assert straight.returncode == 0, straight.stderr

    def evaluations() -> int:
        metrics = out / "metrics.jsonl"
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    moments = [
        (out / "config.json").exists,
        (out / "representation" / "config.json").exists,
        lambda: any((out / "representation").glob("checkpoint*")),
        (out / "representation.safetensors").exists,
        lambda: any(out.glob("checkpoint*")),
        lambda: evaluations() > 200,
        lambda: evaluations() > 400,
    ]
    zygote = Zygote(tmp_path)
    try:
        for due in moments:
            kill_when(zygote, [*command, str(out), "--resume"], due)
            assert not RunFolder(out).finished
        assert zygote.run([*command, str(out), "--resume"])
    finally:
        zygote.close()
    assert_same_run(out, whole)
    assert (out / "representation.safetensors").read_bytes() == (
        whole / "representation.safetensors"
    ).read_bytes()
    assert set(content(out)) == set(content(whole))
