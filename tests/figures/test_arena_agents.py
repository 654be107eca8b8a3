"""Runs of agents in arenas for figures 5 and 8: what they are made of, and a tiny one for real."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import spearmanr

from lapwing import load_agent
from lapwing.envs.arena import open_arena
from lapwing.envs.simulator import Simulator
from lapwing.figures import arena_agents
from lapwing.figures.arena_agents import PANELS, Panel, arena_run
from lapwing.figures.grid import Measured, Run
from lapwing.laplacian.representation import load_representation
from lapwing.runs import train_ddpg
from lapwing.settings.agents import CONTROL_PRESETS, ControlSettings
from tests.support.small_runs import TINY_PHI

POINT, HOOK, ANT, ANT_HOOK = PANELS
REWARDS = ("sparse", "l2", "rawmix", "mix", "fullmix")
TINY = Panel("PointUMaze", "commute", 640, 320, 160)
"""A run of PointUMaze that takes seconds: its numbers matter to no test."""


def settings_of(run: Run) -> ControlSettings:
    return ControlSettings.from_keywords(run.settings["agent"])


def point_run(reward: str = "mix", seed: int = 0, *, panel: Panel = POINT, **more) -> Run:
    return arena_run("fig5", more.pop("preset", "paper"), panel, reward, seed, **more)


def test_the_arenas_and_rewards_that_are_compared():
    arenas = ["PointUMaze", "PointHookMaze", "AntUMaze", "AntHookMaze"]
    assert [panel.arena for panel in PANELS] == arenas
    assert [panel.filter for panel in PANELS] == ["soft", "commute", "commute", "commute"]
    assert arena_agents.REWARDS == REWARDS


@pytest.mark.parametrize(("preset", "steps"), [("paper", 2_000_000), ("quick", 300_000)])
def test_the_preset_says_how_long_agents_learn(preset, steps):
    assert ANT.steps_of(preset) == steps
    assert settings_of(arena_run("fig5", preset, ANT, "mix", 0)).steps == steps
    assert POINT.steps_of(preset) == 60_000


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.arena)
@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_the_columns_of_a_run_say_what_its_recipe_does(panel, preset):
    for reward in REWARDS:
        run = arena_run("fig5", preset, panel, reward, 3)
        settings = settings_of(run)
        assert (run.figure, run.environment, run.method) == ("fig5", panel.arena, "ddpg")
        assert (settings.reward, settings.seed, settings.preset) == (run.reward, run.seed, run.preset)
        assert (run.reward, run.seed, run.preset) == (reward, 3, preset)
        assert settings.evaluate_every == panel.evaluate_every
        assert settings.filter == (panel.filter if reward in ("mix", "fullmix") else None)
        assert run.input == ("state" if reward == "fullmix" else "position")
        assert not settings.online


def test_the_preset_paper_has_the_papers_settings():
    """FACTS: DDPG, and φ, of the paper's continuous train_ddpg."""
    for panel in PANELS:
        for reward in REWARDS:
            run = arena_run("fig5", "paper", panel, reward, 0)
            agent = settings_of(run)
            assert (agent.hidden, agent.batch, agent.gamma) == ((400, 300), 100, 0.995)
            assert (agent.actor_rate, agent.target_rate, agent.fast) == (1e-4, 1e-3, False)
            assert (agent.random_steps, run.settings["more"]["random_steps"]) == (None, 10_000)
            if reward in ("mix", "fullmix"):
                lam = 0.999 if panel in (ANT, ANT_HOOK) else 0.99
                assert (run.n, run.d, run.beta, run.lam) == (576_000, 20, 2.0, lam)
            else:
                assert (run.n, run.d, run.beta, run.lam) == (0, 0, None, None)


def test_every_difference_that_matters_gives_another_key():
    runs = [
        point_run(),
        point_run(seed=1),
        point_run("fullmix"),
        point_run("rawmix"),
        point_run("rawmix", preset="quick"),
        point_run(preset="quick"),
        point_run(online=True),
        point_run(panel=HOOK),
        point_run(panel=dataclasses.replace(POINT, filter="commute")),
        point_run(panel=dataclasses.replace(POINT, steps=30_000)),
        point_run(panel=dataclasses.replace(POINT, evaluate_every=4_000)),
    ]
    assert len({run.key for run in runs}) == len(runs)
    quick, online = runs[5], point_run(online=True, panel=HOOK)
    assert (quick.n, quick.d, quick.beta, quick.lam) == (300_000, 20, 2.0, 0.99)
    assert (online.method, online.n, online.d, online.beta, online.lam) == ("ddpg online", 0, 20, 2.0, 0.99)
    assert (settings_of(online).online, settings_of(online).filter) == (True, None)


@pytest.mark.parametrize(
    "change", [{"hidden": (64, 64)}, {"fast": False}, {"gamma": 0.99}, {"batch": 64}, {"random_steps": 1_600}]
)
def test_a_run_is_known_by_what_its_preset_sets(monkeypatch, change):
    """Rows of an older preset of the same name do not count as done."""
    before = point_run("sparse", preset="quick").key
    changed = dataclasses.replace(CONTROL_PRESETS["quick"], **change)
    monkeypatch.setitem(CONTROL_PRESETS, "quick", changed)
    assert point_run("sparse", preset="quick").key != before


def test_a_run_is_known_by_the_data_of_its_phi(monkeypatch):
    before = point_run(preset="quick").key
    monkeypatch.setattr(train_ddpg, "QUICK_PHI", train_ddpg.QUICK_PHI | {"transitions": 200_000})
    assert point_run(preset="quick").key != before


def test_who_asks_does_not_matter():
    asked = [
        arena_run(figure, "quick", panel, reward, 2)
        for figure in ("fig5", "fig8")
        for panel in PANELS
        for reward in REWARDS
    ]
    half = len(asked) // 2
    assert [run.key for run in asked[:half]] == [run.key for run in asked[half:]]
    assert len({run.key for run in asked}) == half == 20


def test_the_text_says_what_the_preset_makes_of_the_paper_s_settings():
    text = "\n".join(arena_agents.about_preset("quick"))
    assert text.startswith("Shortened")
    quick, paper = train_ddpg.QUICK_PHI, train_ddpg.PRESETS["paper-control"]
    for number in (quick["transitions"], quick["steps"], paper.transitions, paper.steps):
        assert f"{number:,}" in text
    assert "128 x 128, not 400 x 300" in text
    assert "implicitfast, not RK4" in text
    assert "Shortened" not in "\n".join(arena_agents.about_preset("paper"))


class Done(NamedTuple):
    run: Run
    folder: Path
    measured: Measured
    phases: list[str]

    def values(self, metric: str) -> dict[int | None, float]:
        return {one.step: one.value for one in self.measured.measures if one.metric == metric}


@contextlib.contextmanager
def all_tiny() -> Iterator[None]:
    """Let the preset quick be quicker still."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_ddpg, "QUICK_PHI", TINY_PHI)
        quicker = dataclasses.replace(CONTROL_PRESETS["quick"], random_steps=1_600)
        patch.setitem(CONTROL_PRESETS, "quick", quicker)
        yield


def executed(reward: str, folder: Path) -> Done:
    phases: dict[str, None] = {}
    with all_tiny():
        run = arena_run("fig5", "quick", TINY, reward, 0)
        measured = arena_agents.execute(run, folder, lambda phase, *_: phases.setdefault(phase))
    return Done(run, folder, measured, list(phases))


def executed_again(run: Run, folder: Path) -> Measured:
    with all_tiny():
        return arena_agents.execute(run, folder, lambda *_: pytest.fail("worked again"))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> Done:
    return executed("mix", tmp_path_factory.mktemp("reaching") / "mix")


@pytest.fixture(scope="module")
def sparse(tmp_path_factory) -> Done:
    return executed("sparse", tmp_path_factory.mktemp("reaching") / "sparse")


slow = pytest.mark.slow
untaught = pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")
"""So short a φ does not lead to the goal, and may lack eigenfunctions."""


@slow
@untaught
def test_a_run_gives_both_its_curves(mixed):
    assert mixed.phases[-1] == "training"
    assert {"collecting", "learning"} <= set(mixed.phases)
    success, left = mixed.values("success"), mixed.values("distance")
    assert list(success) == list(left) == [160, 320]
    starts = 7 * 7  # of about 48, as many in each of the seven cells
    for share in success.values():
        assert share * starts == pytest.approx(round(share * starts), abs=starts * 1e-4)
    assert all(0 <= way < 13 for way in left.values())  # the longest way is some 11
    assert mixed.measured.seconds > 0
    assert mixed.measured.measures[-1].metric == "compile_seconds"


@slow
@untaught
def test_the_gate_of_l2_is_spearmans_correlation_with_the_way(mixed):
    """Over states all over the arena, drawn by the seed."""
    arena = open_arena("PointUMaze", fast=True)
    states = Simulator(arena).some_states(1_000, 0)[:, :2]
    ways = arena.path_lengths(states)
    straight = np.linalg.norm(states - [-2, -2], axis=1)
    assert mixed.values("gate_l2") == {None: pytest.approx(spearmanr(straight, ways).statistic)}
    phi = load_representation(mixed.folder / "representation.safetensors")
    goal = np.array([-2, -2], np.float32)
    embedded, there = phi.embed(states, "commute"), phi.embed(goal, "commute")
    distances = np.linalg.norm(embedded - there, axis=1)
    assert mixed.values("gate") == {None: pytest.approx(spearmanr(distances, ways).statistic, abs=1e-3)}


@slow
@untaught
def test_the_map_of_seed_0_is_the_distance_to_the_goal_from_each_point(mixed):
    arena, found = open_arena("PointUMaze"), mixed.values("map")
    phi = load_representation(mixed.folder / "representation.safetensors")
    points = arena.points.astype(np.float32)
    embedded, there = phi.embed(points, "commute"), phi.embed(np.array([-2, -2], np.float32), "commute")
    assert list(found) == list(range(len(points)))
    np.testing.assert_allclose(
        list(found.values()), np.linalg.norm(embedded - there, axis=1), atol=1e-4, rtol=1e-3
    )


@slow
@untaught
def test_a_run_that_is_finished_gives_the_same_again(mixed):
    """A worker may be killed between the end of a run and its answer."""
    assert executed_again(mixed.run, mixed.folder) == mixed.measured


@slow
@untaught
def test_other_seeds_give_no_map(mixed):
    other = dataclasses.replace(mixed.run, seed=1)  # the recipe is that of seed 0, which is done
    again = executed_again(other, mixed.folder)
    assert [one for one in mixed.measured.measures if one.metric != "map"] == again.measures


@slow
def test_a_reward_without_phi_has_neither_gate_nor_map(sparse):
    metrics = {one.metric for one in sparse.measured.measures}
    assert metrics == {"success", "distance", "compile_seconds"}
    assert "learning" not in sparse.phases
    assert "training" in sparse.phases
    assert load_agent(sparse.folder).act(np.zeros(6)).shape == (2,)
