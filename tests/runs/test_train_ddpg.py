"""Agents in arenas from end to end: their runs and files, what is refused, and runs that go on."""

import dataclasses
import inspect
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

import lapwing
from lapwing import storage
from lapwing.agents import ddpg_arena, evaluation
from lapwing.agents.agent import ControlAgent
from lapwing.agents.evaluation import steps_to_stay, steps_to_success
from lapwing.envs.arena import BODIES, open_arena
from lapwing.envs.simulator import Simulator
from lapwing.errors import CheckpointError, ConfigError
from lapwing.laplacian.encoders import EncoderSpec, init_encoder
from lapwing.laplacian.representation import Representation
from lapwing.mazes import read_maze
from lapwing.runs import train_ddpg
from lapwing.runs.folder import RunFolder
from lapwing.runs.train_ddpg import (
    ControlOutcome,
    control_recipe,
    reopen_control,
    train_control,
)
from lapwing.settings.agents import ControlSettings
from tests.support.folders import content, without_times
from tests.support.interruptions import Interrupted, stop_at

TINY = {
    "envs": 4,
    "random_steps": 40,
    "steps": 80,
    "evaluate_every": 40,
    "batch": 8,
    "hidden": (8,),
    "gamma": 0.9,
    "actor_rate": 0.01,
    "critic_rate": 0.01,
    "target_rate": 0.1,
}
"""As in test_continuous, so that what is compiled there will do."""
LENGTH, STATES = 20, 200
QUICK_PHI = dict(train_ddpg.QUICK_PHI)
"""What it is when nobody shortens it."""
pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")


@pytest.fixture(autouse=True, scope="module")
def shortened():
    """Episodes, and a φ that is next to untrained: its numbers matter to no test."""
    tiny = {"transitions": 600, "steps": 20, "hidden": (8,), "dim": 3, "batch": 8}
    with pytest.MonkeyPatch.context() as patch:
        for module in (ddpg_arena, evaluation):
            patch.setattr(module, "EPISODE_LENGTH", LENGTH)
        patch.setattr(train_ddpg, "QUICK_PHI", tiny)
        patch.setattr(train_ddpg, "GATE_STATES", STATES)
        yield


def settings_of(**changed: Any) -> ControlSettings:
    return ControlSettings.from_keywords(TINY | changed)


def train(out: Path | None, changed: dict[str, Any], **how: Any) -> ControlOutcome:
    return train_control(open_arena("PointUMaze"), settings_of(**changed), out, **how)


PLAIN, SHAPED = {"reward": "l2"}, {"reward": "mix"}
ONLINE = SHAPED | {"online": True}


class Finished:
    """A finished run; read it, do not change it."""

    def __init__(self, folder: Path, changed: dict[str, Any]):
        self.out, self.calls = folder / "run", []
        self.outcome = train(self.out, changed, on_progress=lambda *call: self.calls.append(call))


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Finished:
    return Finished(tmp_path_factory.mktemp("plain"), PLAIN)


@pytest.fixture(scope="module")
def shaped(tmp_path_factory) -> Finished:
    return Finished(tmp_path_factory.mktemp("shaped"), SHAPED)


@pytest.fixture(scope="module")
def online(tmp_path_factory) -> Finished:
    return Finished(tmp_path_factory.mktemp("online"), ONLINE)


@pytest.fixture(params=["plain", "shaped", "online"])
def any_run(request) -> Finished:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def phi(shaped) -> Representation:
    return lapwing.load(shaped.out)


@pytest.fixture
def handed_over(monkeypatch) -> list[tuple]:
    """What training would begin with: simulator, settings and reward; it is stopped there."""
    found: list[tuple] = []

    def stop(*given, **how):
        found.append(given)
        raise Interrupted

    monkeypatch.setattr(train_ddpg, "train_in_arena", stop)
    return found


def some_observations(count: int = 9) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 6)).astype(np.float32)


def policy(agent: ControlAgent, seen: np.ndarray) -> np.ndarray:
    """μ(s) in NumPy."""
    first, second = agent.actor.layers
    values = (seen - np.asarray(agent.actor.shift)) / np.asarray(agent.actor.scale)
    values = np.maximum(values @ np.asarray(first.weight).T + np.asarray(first.bias), 0)
    return np.tanh(values @ np.asarray(second.weight).T + np.asarray(second.bias))


def agent_bytes(out: Path) -> bytes:
    return (out / "agent.safetensors").read_bytes()


class TestRuns:
    OWN = frozenset({"config.json", "metrics.jsonl", "agent.safetensors", "result.json"})

    def test_what_is_in_the_folder(self, plain, shaped, online):
        inner = (
            "config.json",
            "metrics.jsonl",
            "result.json",
            "experience.npz",
            "representation.safetensors",
        )
        assert set(content(plain.out)) == self.OWN
        assert set(content(online.out)) == self.OWN | {"representation.safetensors"}
        assert set(content(shaped.out)) == self.OWN | {"representation.safetensors"} | {
            f"representation/{name}" for name in inner
        }

    def test_the_result(self, any_run):
        result, outcome = RunFolder(any_run.out).result(), any_run.outcome
        assert result == outcome.result
        gate = set() if result["reward"] == "l2" else {"gate", "gate_l2"}
        assert set(result) == gate | {
            *("target", "reward", "success", "final_distance", "steps_to_success", "evaluated_at"),
            *("successes", "final_distances", "train_seconds", "compile_seconds", "settings"),
            *("version", "run"),
        }
        assert (result["target"], result["evaluated_at"]) == ("PointUMaze", [40, 80])
        assert result["version"] == lapwing.__version__
        assert result["run"] == str(any_run.out)
        rows = RunFolder(any_run.out).metrics()
        assert result["successes"] == [row["success"] for row in rows]
        assert result["final_distances"] == [row["distance"] for row in rows]
        assert result["success"] == result["successes"][-1] == outcome.episodes.reached.mean()
        assert result["final_distance"] == result["final_distances"][-1]
        assert result["final_distance"] == pytest.approx(outcome.episodes.left.mean())
        assert result["steps_to_success"] is None
        assert result["train_seconds"] > 0
        assert result["compile_seconds"] > 0

    def test_the_settings_have_nothing_left_open(self, plain, shaped, online):
        for run, filter_ in ((plain, None), (shaped, "commute"), (online, "soft")):
            settings = run.outcome.result["settings"]
            assert settings["filter"] == filter_
            assert (settings["critic_rate"], settings["steps"], settings["evaluate_every"]) == (0.01, 80, 40)
            assert (settings["fast"], settings["preset"], settings["hidden"]) == (True, "quick", [8])
            assert run.outcome.agent.config["settings"] == settings

    def test_the_configuration(self, plain, shaped, online):
        for run in (plain, shaped, online):
            config = RunFolder(run.out).config()
            assert config["kind"] == "agent"
            arena = {"name": "UMaze", "text": read_maze("UMaze").text, "body": "Point", "cell": 2.0}
            assert config["target"] == arena | {"kind": "arena", "goal": [3, 1], "fast": True}
            assert config["settings"] == run.outcome.result["settings"]
        assert RunFolder(plain.out).config()["phi"] is None
        for run in (shaped, online):
            recipe = RunFolder(run.out).config()["phi"]
            assert (recipe["transitions"], recipe["steps"], recipe["lam"]) == (600, 20, 0.99)

    def test_progress_is_told(self, any_run):
        told = [(done, total) for phase, done, total, _ in any_run.calls if phase == "training"]
        assert list(dict.fromkeys(told)) == [(0, 80), (40, 80), (80, 80)]
        rows = [row for phase, done, _, row in any_run.calls if phase == "training" and done]
        assert rows == RunFolder(any_run.out).metrics()
        learned = any(phase == "learning" for phase, *_ in any_run.calls)
        assert learned == (any_run.outcome.result["settings"]["filter"] == "commute")
        assert all(("phi/loss" in row) == any_run.outcome.result["settings"]["online"] for row in rows)

    def test_a_folder_changes_nothing_of_the_agent(self, shaped, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        agent = lapwing.train("PointUMaze", **TINY, **SHAPED)
        assert isinstance(agent, ControlAgent)
        assert agent.config == shaped.outcome.agent.config
        np.testing.assert_array_equal(
            agent.act(some_observations()), shaped.outcome.agent.act(some_observations())
        )
        outcome = train(None, SHAPED)
        assert without_times(outcome.result) == without_times(shaped.outcome.result)
        assert outcome.representation.sha256() == shaped.outcome.representation.sha256()
        assert list(tmp_path.iterdir()) == []

    def test_a_representation_that_is_given_is_used(self, shaped, phi, tmp_path):
        """To the same agent as one that was learned, whether as it is or by its path."""
        train(tmp_path / "run", SHAPED, representation=phi)
        assert agent_bytes(tmp_path / "run") == agent_bytes(shaped.out)
        assert RunFolder(tmp_path / "run").config()["phi"] == {"sha256": phi.sha256()}
        assert lapwing.load(tmp_path / "run").sha256() == phi.sha256()
        assert not (tmp_path / "run" / "representation").exists()

    def test_rewards_are_those_of_phi(self, phi, handed_over):
        """Half the distance in the embedding, half whether the goal is reached."""
        with pytest.raises(Interrupted):
            train(None, SHAPED | {"relative_values": False}, representation=phi)
        *_, reward = handed_over[0]
        seen = some_observations(20)
        seen[0, :2], seen[1, :2] = (-2, -2), (-2.3, -2.3)
        latent = phi.distance(seen[:, :2], np.float32([-2, -2]), "commute")
        away = np.linalg.norm(seen[:, :2] - [-2, -2], axis=1) > 0.6
        assert 0 < away.sum() < 20
        found = reward(np.full_like(seen, np.nan), seen)
        np.testing.assert_allclose(found, -0.5 * latent - 0.5 * away, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [({}, True), ({"online": True}, False), ({"online": True, "relative_values": True}, True)],
    )
    def test_values_are_not_relative_where_phi_changes_unless_asked_for(self, asked, expected):
        for preset, quick in (("quick", True), ("paper", False)):
            settings = ControlSettings.from_keywords({"preset": preset} | asked)
            assert settings.has_relative_values == (expected and (quick or "relative_values" in asked))

    def test_relative_values_are_of_what_a_step_gains(self, phi, handed_over):
        with pytest.raises(Interrupted):
            train(None, SHAPED | {"relative_values": True}, representation=phi)
        *_, reward = handed_over[0]
        before, after = np.split(some_observations(20), 2)
        after[0, :2] = -2
        here, there = (phi.distance(seen[:, :2], np.float32([-2, -2]), "commute") for seen in (before, after))
        away = np.linalg.norm(after[:, :2] - [-2, -2], axis=1) > 0.6
        gained = 0.5 * (here - there) / (1 - 0.9)
        np.testing.assert_allclose(reward(before, after), gained - 0.5 * away, rtol=1e-3, atol=1e-4)

    def test_hitting_has_the_mean_of_the_other_distances(self, phi, handed_over):
        """In steps it would drown what reaching the goal is worth."""
        changed = {"reward": "laplacian", "filter": "hitting", "relative_values": False}
        with pytest.raises(Interrupted):
            train(None, SHAPED | changed, representation=phi)
        seen = some_observations(20)
        steps = phi.distance(seen[:, :2], np.float32([-2, -2]), "hitting")
        scale = phi.soft_distance / np.sum(1 / phi.eigenvalues[1:])
        found = handed_over[0][-1](seen, seen)
        np.testing.assert_allclose(found, -scale * steps, rtol=1e-3, atol=1e-4 * np.abs(found).max())


class TestGoingOn:
    def test_a_finished_run_is_only_read(self, any_run):
        before = content(any_run.out)
        settings = any_run.outcome.result["settings"]
        outcome = train(
            any_run.out, {"reward": settings["reward"], "online": settings["online"]}, resume=True
        )
        assert content(any_run.out) == before
        assert outcome.result == any_run.outcome.result
        np.testing.assert_array_equal(outcome.episodes.paths, any_run.outcome.episodes.paths)

    @pytest.mark.parametrize(("phase", "step"), [("learning", 10), ("training", 40)])
    def test_an_unfinished_run_goes_on_to_the_same(self, shaped, often, tmp_path, phase, step):
        out = tmp_path / "run"
        with pytest.raises(Interrupted):
            train(out, SHAPED, on_progress=stop_at(phase, step))
        assert not RunFolder(out).finished
        for read in (reopen_control, lapwing.load):
            with pytest.raises(ConfigError, match=f"{out} .*unfinished"):
                read(out)
        phases = []
        train(out, SHAPED, resume=True, on_progress=lambda phase, done, *_: phases.append((phase, done)))
        assert agent_bytes(out) == agent_bytes(shaped.out)
        assert without_times(RunFolder(out).result()) == without_times(shaped.outcome.result)
        assert without_times(RunFolder(out).metrics()) == without_times(RunFolder(shaped.out).metrics())
        assert set(content(out)) == set(content(shaped.out))
        learned, trained = (
            [done for named, done in phases if named == each and done] for each in ("learning", "training")
        )
        assert learned == (list(range(11, 21)) if phase == "learning" else [])
        assert trained == [40, 80]

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"reward": "laplacian"}, "reward = 'mix', not 'laplacian'"),
            ({"filter": "heat"}, "filter = 'commute', not 'heat'"),
            ({"goal": "1,1"}, r"goal = \[3, 1\], not \[1, 1\]"),
            ({"cell": 3.0}, r"cell = 2\.0, not 3\.0"),
            ({"online": True}, "filter = 'commute', not 'soft'"),
        ],
        ids=str,
    )
    def test_other_settings_are_refused_by_name(self, shaped, tmp_path, changed, message):
        out = Path(shutil.copytree(shaped.out, tmp_path / "run"))
        (out / "result.json").unlink()
        before = content(out)
        with pytest.raises(ConfigError, match=message):
            train(out, SHAPED | changed, resume=True)
        assert content(out) == before

    def test_another_body_another_phi_and_another_recipe_too(self, shaped, phi, tmp_path, monkeypatch):
        out = Path(shutil.copytree(shaped.out, tmp_path / "run"))
        (out / "result.json").unlink()
        with pytest.raises(ConfigError, match="body = 'Point', not 'Ant'"):
            train_control(open_arena("AntUMaze"), settings_of(**SHAPED), out, resume=True)
        with pytest.raises(ConfigError, match=r"sha256 = None, not '\w+'"):
            train(out, SHAPED, representation=phi, resume=True)
        monkeypatch.setattr(train_ddpg, "QUICK_PHI", train_ddpg.QUICK_PHI | {"steps": 21})
        with pytest.raises(ConfigError, match="steps = 20, not 21"):
            train(out, SHAPED, resume=True)

    @pytest.mark.parametrize(
        ("file", "left"),
        [
            ("experience.npz", b"PK"),
            ("result.json", b"{"),
            ("config.json", b"{}"),
            ("config.json", None),
            ("representation.safetensors", b"\0" * 99),
            ("representation.safetensors", None),
        ],
        ids=str,
    )
    def test_a_damaged_run_of_phi_is_told_with_what_to_delete(
        self, shaped, tmp_path, handed_over, file, left
    ):
        out = Path(shutil.copytree(shaped.out, tmp_path / "run"))
        (out / "result.json").unlink()
        inner = out / "representation"
        (inner / file).unlink()
        if left is not None:
            (inner / file).write_bytes(left)
        remedy = "delete that file" if file == "experience.npz" else f"delete the folder {inner}"
        with pytest.raises(lapwing.errors.LapwingError, match=f"{file}.*{remedy}"):
            train(out, SHAPED, resume=True)
        if file == "experience.npz":
            (inner / file).unlink()
        else:
            shutil.rmtree(inner)
        with pytest.raises(Interrupted):
            train(out, SHAPED, resume=True)
        assert lapwing.load(inner).sha256() == shaped.outcome.representation.sha256()
        assert handed_over, "and the agent goes on"


class TestReopened:
    def test_it_is_the_same(self, any_run):
        found, outcome = reopen_control(any_run.out), any_run.outcome
        assert found.result == storage.read_checked_json(any_run.out / "result.json")
        assert found.arena == outcome.arena
        for one, other in zip(found.episodes, outcome.episodes, strict=True):
            np.testing.assert_array_equal(one, other)
        seen = some_observations()
        np.testing.assert_array_equal(found.agent.act(seen), outcome.agent.act(seen))
        if outcome.representation is None:
            assert found.representation is None
        else:
            assert found.representation.sha256() == outcome.representation.sha256()
            np.testing.assert_array_equal(found.goal_map(), outcome.goal_map())

    def test_the_policy_is_measured_and_not_looked_up(self, plain, tmp_path):
        out = Path(shutil.copytree(plain.out, tmp_path / "run"))
        result = storage.read_checked_json(out / "result.json")
        wrong = result | {"success": 0.123, "final_distance": -1.0}
        storage.write_checked_json(out / "result.json", wrong)
        assert reopen_control(out).result == result

    @pytest.mark.parametrize("lost", [["successes"], ["settings", "evaluated_at"], None], ids=str)
    def test_a_result_that_lacks_something_is_told(self, plain, tmp_path, lost):
        out = Path(shutil.copytree(plain.out, tmp_path / "run"))
        result = storage.read_checked_json(out / "result.json")
        kept = {name: value for name, value in result.items() if name not in lost} if lost else {}
        storage.write_checked_json(out / "result.json", kept)
        with pytest.raises(CheckpointError, match=rf"result\.json .*{lost[-1] if lost else 'target'}"):
            reopen_control(out)
        (out / "result.json").unlink()
        assert without_times(train(out, PLAIN, resume=True).result) == without_times(plain.outcome.result)


class TestPhi:
    def test_it_can_be_loaded_from_the_run(self, shaped, online):
        for run in (shaped, online):
            found = lapwing.load(run.out)
            assert found.sha256() == run.outcome.representation.sha256()
            assert (found.spec.shape, found.dim, found.config["target"]) == ((2,), 3, "PointUMaze")
            assert found.config["arena"] == run.outcome.arena.description()
        assert lapwing.load(shaped.out / "representation").sha256() == lapwing.load(shaped.out).sha256()

    def test_a_run_without_one_is_told(self, plain):
        with pytest.raises(ConfigError, match=r"no φ; lapwing\.load_agent"):
            lapwing.load(plain.out)

    @pytest.mark.parametrize(("name", "filter_"), [("shaped", "commute"), ("online", "soft")])
    def test_the_gate_is_its_rank_correlation_with_the_way_to_the_goal(self, name, filter_, request):
        run = request.getfixturevalue(name)
        result, arena = run.outcome.result, run.outcome.arena
        states = Simulator(arena).some_states(STATES, 0)[:, :2]
        ways, goal = arena.path_lengths(states), np.float32([-2, -2])
        distance = run.outcome.representation.distance(states, goal, filter_)
        assert result["gate"] == pytest.approx(spearmanr(distance, ways).statistic, abs=1e-6)
        straight = np.linalg.norm(states - goal, axis=1)
        assert result["gate_l2"] == pytest.approx(spearmanr(straight, ways).statistic, abs=1e-3)

    def test_that_of_an_online_run_was_learned(self, online):
        """By the paper's recipe with λ annealed, from the untrained one."""
        config = online.outcome.representation.config
        assert (config["settings"]["lam"], config["settings"]["lam_final"]) == (0.99, 0.95)
        assert (config["settings"]["beta"], config["settings"]["delta"]) == (2.0, 0.1)
        assert config["provenance"]["transitions"] == 4 * 30 - 9, "thirty rounds of four bodies, 9 episodes"

    def test_of_the_whole_state(self, phi):
        """The reward fullmix: bodies at rest on the map, and a goal at rest."""
        spec = EncoderSpec("mlp", (6,), 3, hidden=(8,))
        encoder: Any = init_encoder(
            spec, np.zeros(6, np.float32), np.ones(6, np.float32), 1.0, key=jax.random.key(0)
        )
        of_states = dataclasses.replace(otherwise(phi, observation="state"), encoder=encoder, spec=spec)
        outcome = train(None, {"reward": "fullmix", "filter": "soft"}, representation=of_states)
        assert outcome.result["reward"] == "fullmix"
        arena, found = outcome.arena, outcome.goal_map()
        states = np.pad(arena.points.astype(np.float32), ((0, 0), (0, 4)))
        goal = np.float32([-2, -2, 0, 0, 0, 0])
        expected = np.linalg.norm(of_states.phi(states) - of_states.phi(goal), axis=1)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        moving = Simulator(arena).some_states(STATES, 0)
        distance = of_states.distance(moving, goal, "soft")
        gate = spearmanr(distance, arena.path_lengths(moving[:, :2])).statistic
        assert outcome.result["gate"] == pytest.approx(gate, abs=1e-6)

    @pytest.mark.parametrize(
        ("gate", "straight", "warned"),
        [(0.9, 0.5, False), (0.85, 0.85, False), (0.84, 0.5, True), (0.9, 0.95, True), (-0.2, 0.1, True)],
    )
    def test_one_that_does_not_lead_to_the_goal_is_warned_of(
        self, phi, handed_over, monkeypatch, gate, straight, warned
    ):
        monkeypatch.setattr(train_ddpg, "path_correlations", lambda *_: {"commute": gate, "l2": straight})
        with warnings.catch_warnings(record=True, action="always") as said, pytest.raises(Interrupted):
            train(None, SHAPED, representation=phi)
        words = [str(each.message) for each in said if "rank correlation" in str(each.message)]
        assert len(words) == warned
        assert all(f"{gate:.2f}" in each and f"{straight:.2f}" in each for each in words)

    @pytest.mark.parametrize("near", [True, False])
    def test_one_that_has_hardly_seen_the_goal_is_warned_of(self, phi, handed_over, near):
        """A φ that knows states all over the arena, or those of a corner alone."""
        corner = np.random.default_rng(0).uniform(1, 2, (400, 2)).astype(np.float32)
        seen = Simulator(open_arena("PointUMaze")).some_states(400, 0)[:, :2] if near else corner
        known = dataclasses.replace(phi, reference=phi.eigenfunctions(seen))
        with warnings.catch_warnings(record=True, action="always") as said, pytest.raises(Interrupted):
            train(None, SHAPED, representation=known)
        assert any("thinly sampled" in str(each.message) for each in said) is not near


class TestAgent:
    def test_it_acts_as_its_network_says(self, any_run):
        agent = lapwing.load_agent(any_run.out)
        assert isinstance(agent, ControlAgent)
        seen = some_observations()
        found = agent.act(seen)
        np.testing.assert_allclose(found, policy(agent, seen), atol=1e-5)
        np.testing.assert_array_equal(found, any_run.outcome.agent.act(seen))
        assert (np.abs(found) <= 1).all()
        assert found.std(axis=0).min() > 0

    def test_one_observation_or_many(self, plain):
        agent, many = plain.outcome.agent, some_observations()
        for row, one in enumerate(many):
            assert agent.act(one).shape == (2,)
            np.testing.assert_allclose(agent.act(one), agent.act(many)[row], atol=1e-6)
        assert agent.act(many.tolist()).shape == (9, 2)
        assert agent.act(np.zeros((0, 6))).shape == (0, 2)

    def test_observations_of_another_shape_are_refused(self, plain):
        for wrong in (np.zeros(5), np.zeros((4, 7)), np.zeros(()), np.zeros((1, 1, 6))):
            with pytest.raises(ConfigError, match=rf"{re.escape(str(wrong.shape))}.*\(6,\)"):
                plain.outcome.agent.act(wrong)

    def test_what_the_environment_gives_will_do(self, plain):
        agent, many = plain.outcome.agent, some_observations()
        given = {"observation": many, "achieved_goal": many[:, :2], "desired_goal": many[:, :2]}
        np.testing.assert_array_equal(agent.act(given), agent.act(many))
        np.testing.assert_array_equal(agent.act({"observation": many[0]}), agent.act(many[0]))
        with pytest.raises(ConfigError, match="achieved_goal; observation is missing"):
            agent.act({"achieved_goal": many[0]})

    def test_what_is_no_number_is_refused(self, plain):
        seen = some_observations(3)
        seen[1, 4] = np.nan
        with pytest.raises(lapwing.errors.DatasetError, match="observation 1 "):
            plain.outcome.agent.act(seen)

    def test_round_trip(self, plain, tmp_path):
        plain.outcome.agent.save(tmp_path / "mine.safetensors")
        again = lapwing.load_agent(str(tmp_path / "mine.safetensors"))
        assert (again.spec, again.config) == (plain.outcome.agent.spec, plain.outcome.agent.config)
        again.save(tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == agent_bytes(plain.out)

    def test_a_file_that_does_not_fit_its_description_is_refused(self, plain, tmp_path):
        path = tmp_path / "agent.safetensors"
        tensors, manifest = storage.read_tensors(plain.out / "agent.safetensors")
        for wrong in (
            ({}, manifest),
            (tensors, manifest | {"encoder": manifest["encoder"] | {"dim": 5}}),
            (tensors, manifest | {"kind": "agent"}),
            (tensors, {name: value for name, value in manifest.items() if name != "config"}),
        ):
            storage.write_tensors(path, *wrong)
            with pytest.raises(CheckpointError, match=r"agent\.safetensors"):
                lapwing.load_agent(path)


class TestDefaults:
    @pytest.mark.parametrize(("body", "lam", "rate"), [("Point", 0.99, 1e-3), ("Ant", 0.999, 1e-4)])
    @pytest.mark.parametrize("reward", ["mix", "fullmix"])
    def test_the_papers_phi(self, body, lam, rate, reward):
        recipe = control_recipe(BODIES[body], ControlSettings(reward=reward, seed=3))
        assert (recipe.lam, recipe.learning_rate, recipe.beta, recipe.delta) == (lam, rate, 2.0, 0.1)
        assert (recipe.dim, recipe.steps, recipe.batch) == (20, 50_000, 128)
        assert (recipe.hidden, recipe.transitions) == ((256, 256, 256), 576_000)
        assert (recipe.schedule, recipe.past_end, recipe.seed) == ("constant", "discard", 3)
        assert recipe.observation == ("state" if reward == "fullmix" else "position")

    @pytest.mark.parametrize("body", ["Point", "Ant"])
    def test_a_quick_phi_is_the_same_with_fewer_data_and_steps(self, monkeypatch, body):
        monkeypatch.setattr(train_ddpg, "QUICK_PHI", QUICK_PHI)
        papers, quick = (
            control_recipe(BODIES[body], ControlSettings.from_keywords({"preset": preset}))
            for preset in ("paper", "quick")
        )
        assert quick == dataclasses.replace(papers, transitions=300_000, steps=20_000)

    @pytest.mark.parametrize(
        ("name", "preset", "expected"),
        [
            ("PointUMaze", "paper", (60_000, 2_000, 1e-3, 1e-4, 100, (400, 300), False)),
            ("PointHookMaze", "quick", (60_000, 2_000, 1e-3, 1e-4, 100, (128, 128), True)),
            ("AntUMaze", "paper", (1_000_000, 20_000, 1e-4, 1e-4, 100, (400, 300), False)),
            ("AntUMaze", "quick", (300_000, 20_000, 1e-3, 1e-4, 100, (128, 128), True)),
        ],
    )
    def test_the_agents_settings(self, handed_over, name, preset, expected):
        with pytest.raises(Interrupted):
            lapwing.train(name, preset=preset, reward="sparse")
        simulator, settings, _ = handed_over[0]
        names = ("steps", "evaluate_every", "critic_rate", "actor_rate", "batch", "hidden", "fast")
        assert tuple(getattr(settings, each) for each in names) == expected
        quick = preset == "quick"
        assert (settings.filter, settings.gamma) == (None, 0.995)
        assert (settings.target_rate, settings.action_penalty) == ((0.005, 0.1) if quick else (0.001, 0.0))
        assert (settings.twin_critics, settings.has_relative_values) == (quick, quick)
        assert (settings.noise_settle, settings.noise_spread) == (0.15, 0.2)
        assert (settings.envs, settings.random_steps, settings.preset) == (16, 10_000, preset)
        assert simulator.arena == open_arena(name, fast=expected[-1])

    @pytest.mark.parametrize(
        ("envs", "expected"),
        [(16, (10_000, 60_000, 2_000)), (32, (10_016, 60_000, 2_016)), (7, (10_003, 60_004, 2_002))],
    )
    def test_steps_that_lapwing_chooses_are_whole_rounds(self, handed_over, envs, expected):
        with pytest.raises(Interrupted):
            lapwing.train("PointUMaze", reward="sparse", envs=envs)
        _, settings, _ = handed_over[0]
        assert (settings.random_steps, settings.steps, settings.evaluate_every) == expected

    @pytest.mark.parametrize("goal", ["1,1", (1, 1), [1, 1]])
    def test_a_goal(self, handed_over, goal):
        with pytest.raises(Interrupted):
            lapwing.train("PointUMaze", goal=goal, cell=3.0, **TINY, **PLAIN)
        simulator, _, reward = handed_over[0]
        assert simulator.arena == open_arena("PointUMaze", goal=(1, 1), cell=3.0, fast=True)
        with pytest.raises(Interrupted):
            lapwing.train(simulator.arena, **TINY, **PLAIN)
        assert handed_over[1][0].arena == simulator.arena, "as it is given"
        at = np.float32([[-3, 3, 0, 0, 0, 0]])
        assert reward(at, at).tolist() == [0]

    def test_a_maze_without_a_goal_is_given_one(self, handed_over, tmp_path):
        """As the message says that refuses it without."""
        (tmp_path / "mine.txt").write_text("#####\n#...#\n#####\n")
        target = f"Point:{tmp_path / 'mine.txt'}"
        with pytest.raises(ConfigError, match=r"mine .*--goal"):
            lapwing.train(target, **TINY, **PLAIN)
        with pytest.raises(Interrupted):
            lapwing.train(target, goal="1,1", **TINY, **PLAIN)
        assert handed_over[0][0].arena.goal_cell == (1, 1)

    @pytest.mark.parametrize("kind", [str, Path])
    def test_a_maze_of_ones_own(self, handed_over, tmp_path, kind):
        (tmp_path / "mine.txt").write_text("#####\n#.G.#\n#####\n")
        with pytest.raises(Interrupted):
            lapwing.train(kind(f"Point:{tmp_path / 'mine.txt'}"), **TINY, **PLAIN)
        assert handed_over[0][0].arena.name == "Pointmine"


class TestStepsToSuccess:
    @given(st.lists(st.integers(0, 49), min_size=1, max_size=12))
    def test_is_the_first_that_is_good_and_the_first_from_which_on_all_are(self, reached):
        at, success = np.arange(1, len(reached) + 1) * 16, np.array(reached) / 49
        good = [share >= 0.9 for share in success]
        first = [int(at[i]) for i in range(len(at)) if good[i]]
        for_good = [int(at[i]) for i in range(len(at)) if all(good[i:])]
        found = steps_to_success(at, success), steps_to_stay(at, success)
        assert found == (first[0] if first else None, for_good[0] if for_good else None)
        json.dumps(found)


@pytest.fixture
def unchecked_types(monkeypatch) -> None:
    """Take away the type checks that only the tests have: settings answer for themselves."""
    monkeypatch.setattr(ControlSettings, "__init__", inspect.unwrap(ControlSettings.__init__))


def elsewhere(phi: Representation, **changed: Any) -> Representation:
    """The same φ, said to be of another arena."""
    arena = phi.config["arena"] | changed
    return dataclasses.replace(phi, config=phi.config | {"arena": arena})


def otherwise(phi: Representation, **changed: Any) -> Representation:
    """The same φ, said to be learned with other settings."""
    settings = phi.config["settings"] | changed
    return dataclasses.replace(phi, config=phi.config | {"settings": settings})


class TestRefused:
    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"step": 10}, r"'step'.* steps\?"),
            ({"reward": "fullmax"}, "reward .* fullmix"),
            ({"reward": "potential"}, "reward .*'potential'"),
            ({"reward": "mix", "filter": "comute"}, "filter .* commute"),
            ({"steps": 81}, "steps must be a multiple of envs, which is 4, not 81"),
            ({"random_steps": 42}, "random_steps .* 4, not 42"),
            ({"evaluate_every": 2}, "evaluate_every .* 4, not 2"),
            ({"envs": 0}, "envs .* 0"),
            ({"gamma": 1.0}, "gamma .* 1.0"),
            ({"noise_settle": 1.5}, "noise_settle .* 1.5"),
            ({"critic_rate": 0.0}, "critic_rate .* 0.0"),
            ({"goal": "2,1"}, r"goal \(2,1\) is a wall"),
            ({"goal": "9,1"}, r"goal \(9,1\) lies outside"),
            ({"goal": "there"}, "goal .* 'there'"),
            ({"cell": 1e200}, r"cell .* 1e\+200"),
            ({"cell": 0.5}, "0.5 .* Point"),
            ({"reward": "sparse", "filter": "soft"}, "'sparse'.* --filter"),
            ({"reward": "sparse", "online": True}, "'sparse'.* --online"),
            (ONLINE | {"filter": "commute"}, "'commute'.* --filter"),
        ],
        ids=str,
    )
    def test_settings(self, unchecked_types, tmp_path, changed, words):
        with pytest.raises(ConfigError, match=words):
            lapwing.train("PointUMaze", out=tmp_path / "run", **(TINY | PLAIN | changed))
        assert list(tmp_path.iterdir()) == []

    def test_a_preset_or_an_arena(self, tmp_path):
        for wrong, hint in (("quik", "quick"), ("default", "paper, quick")):
            with pytest.raises(ConfigError, match=f"preset {wrong!r}.*{hint}"):
                inspect.unwrap(lapwing.train)("PointUMaze", preset=wrong, out=tmp_path / "run")
        with pytest.raises(ConfigError, match=r"'PointUMase'.* PointUMaze"):
            lapwing.train("PointUMase", out=tmp_path / "run", **TINY)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"body": "Ant"}, "body: Ant, not Point; .*lapwing learn PointUMaze"),
            ({"name": "HookMaze", "text": read_maze("HookMaze").text}, "maze: HookMaze, not UMaze"),
            ({"cell": 3.0}, r"cell: 3\.0, not 2\.0"),
        ],
        ids=str,
    )
    def test_phi_of_another_arena(self, phi, tmp_path, changed, message):
        with pytest.raises(ConfigError, match=message):
            train(tmp_path / "run", SHAPED, representation=elsewhere(phi, **changed))
        assert list(tmp_path.iterdir()) == []

    def test_phi_of_another_maze_than_that_of_a_file(self, phi, tmp_path, monkeypatch):
        """The command names the file as it was named here."""
        monkeypatch.chdir(tmp_path)
        Path("mine.txt").write_text("#####\n#.G.#\n#####\n")
        with pytest.raises(ConfigError, match=r"maze: UMaze, not mine; .*lapwing learn Point:\./mine\.txt$"):
            lapwing.train("Point:./mine.txt", representation=phi, **TINY, **SHAPED)

    def test_phi_for_cells_of_another_width(self, phi):
        """Which `lapwing learn` has no setting for."""
        with pytest.raises(ConfigError, match=r"cell: 2\.0, not 1\.5; leave --representation out"):
            train(None, SHAPED | {"cell": 1.5}, representation=phi)

    @pytest.mark.parametrize("changed", [{"goal": [1, 1]}, {"fast": False}], ids=str)
    def test_phi_for_another_goal_or_of_the_other_integrator_is_welcome(self, phi, handed_over, changed):
        """It depends on no goal, and next to nothing on how time is cut into steps."""
        with pytest.raises(Interrupted):
            train(None, SHAPED, representation=elsewhere(phi, **changed))
        assert handed_over

    def test_phi_of_a_gridworld(self, phi, tmp_path):
        of_maze = dataclasses.replace(phi, config={"target": "FourRoom", "maze": "...", "settings": {}})
        with pytest.raises(ConfigError, match=r"FourRoom.* lapwing learn PointUMaze"):
            train(tmp_path / "run", SHAPED, representation=of_maze)
        assert list(tmp_path.iterdir()) == []

    def test_phi_that_sees_something_else_or_would_not_be_used(self, phi, tmp_path):
        whole = otherwise(phi, observation="state")
        for changed, learned, words in [
            ({"reward": "fullmix"}, phi, "sees position, .*'fullmix' needs state"),
            (SHAPED, whole, "sees state, .*'mix' needs position"),
            ({"reward": "sparse"}, phi, "'sparse'.* --representation"),
            (ONLINE, phi, "online .*--representation"),
            (SHAPED | {"filter": "heat"}, otherwise(phi, rotate=False), "'heat'"),
        ]:
            with pytest.raises(ConfigError, match=words):
                train(tmp_path / "run", changed, representation=learned)
        assert list(tmp_path.iterdir()) == []

    def test_phi_without_single_eigenfunctions_is_taken_as_it_was_learned(self, phi, handed_over):
        """As in mazes: `lapwing learn --preset paper` gives one, and no filter was asked for."""
        with pytest.raises(Interrupted):
            train(None, SHAPED, representation=otherwise(phi, rotate=False))
        assert handed_over[0][1].filter == "soft"


def test_an_online_run_may_end_just_after_an_episode_began():
    """One observation of it is in the replay, and no transition; all that was trained is lost otherwise."""
    changed = {"random_steps": 40, "steps": 4 * 11, "evaluate_every": 4 * 11}  # 21 rounds, episodes of 20
    outcome = train(None, ONLINE | changed)
    assert outcome.representation is not None
