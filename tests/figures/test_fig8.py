"""Figure 8: its grid, which is partly that of figures 4 and 5, and its picture and text."""

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest

from lapwing.figures import arena_agents, fig4, fig5, fig8, maze_agents
from lapwing.figures.grid import Measure, Measured, Row, Run, rows_of
from lapwing.settings.agents import AgentSettings, ControlSettings
from lapwing.settings.learn import LearnSettings

OPTIMUM = -11.358490566037736  # TwoRoom, FACTS: -11.358


POINTS = ("PointUMaze", "PointHookMaze")
ARENAS = {"quick": (*POINTS, "AntUMaze", "AntHookMaze"), "paper": POINTS}
"""By the paper's settings the Ant takes hours."""


def run_of(method: str, preset: str = "quick", environment: str | None = None) -> Run:
    """The run of seed 0, in PointUMaze or TwoRoom unless told otherwise."""
    where = environment or ("PointUMaze" if method.startswith("ddpg") else "TwoRoom")
    (run,) = [one for one in fig8.runs(preset, 1) if (one.method, one.environment) == (method, where)]
    return run


def rows_with(curves: dict[tuple[str, int], list[float]], preset: str = "quick") -> list[Row]:
    """Success in PointUMaze every 2,000 steps, or the return every 500, by method and seed."""
    rows = []
    for run in fig8.runs(preset, 5):
        if run.environment not in ("PointUMaze", "TwoRoom"):
            continue
        metric, every = ("success", 2_000) if run.method.startswith("ddpg") else ("return", 500)
        values = curves.get((run.method, run.seed), [])
        measures = [Measure(metric, value, every * (k + 1)) for k, value in enumerate(values)]
        rows += rows_of(run, Measured(measures, 1.0))
    return rows


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_each_seed_is_every_arena_and_a_maze_pretrained_and_online(preset):
    runs = fig8.runs(preset, 3)
    cells = [(run.environment, run.method, run.reward, run.seed) for run in runs]
    expected = [*((arena, "ddpg") for arena in ARENAS[preset]), ("TwoRoom", "dqn")]
    expected += [(target, f"{method} online") for target, method in expected]
    assert cells == [(*cell, "mix", seed) for seed in range(3) for cell in expected]
    assert len({run.key for run in runs}) == len(runs)
    assert {(run.figure, run.preset) for run in runs} == {("fig8", preset)}


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_pretrained_runs_are_those_of_figures_4_and_5(preset):
    four = {run.key: run for run in fig4.runs(preset, 3)}
    five = {run.key: run for run in fig5.runs(preset, 3)}
    for run in fig8.runs(preset, 3):
        lender = {"dqn": four, "ddpg": five}.get(run.method, {})
        assert (run.key in lender) == ("online" not in run.method)
        if run.key in lender:
            assert dataclasses.replace(run, figure=lender[run.key].figure) == lender[run.key]
    online = {run.key for run in fig8.runs(preset, 3) if "online" in run.method}
    assert not online & (four.keys() | five.keys())


def test_online_in_the_maze_is_the_same_agent_with_phi_beside_it():
    before, online = run_of("dqn", "paper"), run_of("dqn online", "paper")
    assert online.settings["phi"] is None
    assert online.settings["agent"] == before.settings["agent"] | {"online": True}
    settings = AgentSettings(**online.settings["agent"])
    assert (settings.online, settings.reward, settings.steps) == (True, "mix", 30_000)
    assert (online.n, online.d, online.beta, online.lam) == (0, 20, 5.0, 0.9)
    assert (before.n, before.d, before.beta, before.lam) == (30_000, 20, 5.0, 0.9)


@pytest.mark.parametrize(("preset", "arena"), [(name, one) for name, some in ARENAS.items() for one in some])
def test_online_in_an_arena_is_the_same_agent_with_phi_beside_it(preset, arena):
    before, online = (run_of(method, preset, arena) for method in ("ddpg", "ddpg online"))
    told = before.settings["agent"]
    assert told.pop("filter") == ("soft" if arena == "PointUMaze" else "commute")
    assert online.settings["agent"] == told | {"online": True}
    assert ControlSettings.from_keywords(online.settings["agent"]).online
    relative = {"relative_values": True} if preset == "quick" else {}
    assert online.settings["more"] | relative == before.settings["more"]


def test_a_run_is_done_as_its_own_figure_does_it(monkeypatch, tmp_path):
    done = []
    for module in (arena_agents, maze_agents):
        name = module.__name__.rsplit(".", 1)[1]
        monkeypatch.setattr(
            module,
            "execute",
            lambda run, *_, name=name: done.append((run.method, name)) or Measured([], 0.0),
        )
    for run in fig8.runs("quick", 1):
        fig8.execute(run, tmp_path, lambda *_: None)
    before = [("ddpg", "arena_agents")] * len(ARENAS["quick"]) + [("dqn", "maze_agents")]
    assert done == before + [(f"{method} online", name) for method, name in before]


class AskedError(Exception):
    """What training was asked for."""


def asked_of(monkeypatch, run: Run, folder: Path) -> tuple:
    """Target, settings and folder that a run hands to training, and what else it says by name."""

    def ask(target, settings, out, **more):
        raise AskedError(target, settings, out, more)

    monkeypatch.setattr(arena_agents, "train_control", ask)
    monkeypatch.setattr(maze_agents, "train_agent", ask)
    with pytest.raises(AskedError) as caught:
        fig8.execute(run, folder, lambda *_: None)
    return caught.value.args


def test_online_runs_ask_for_agents_that_learn_phi_beside(monkeypatch, tmp_path):
    arena, maze = run_of("ddpg online"), run_of("dqn online")
    target, settings, out, more = asked_of(monkeypatch, arena, tmp_path)
    assert (target.name, settings.online, settings.reward, out) == ("PointUMaze", True, "mix", tmp_path)
    assert (settings.preset, settings.hidden, settings.steps) == ("quick", (128, 128), 60_000)
    assert more["resume"] is False
    (tmp_path / "config.json").touch()
    target, settings, _, more = asked_of(monkeypatch, maze, tmp_path)
    assert (target, settings.online, settings.reward) == ("TwoRoom", True, "mix")
    assert (settings.hidden, settings.steps, settings.filter) == ((64, 64), 40_000, None)
    assert more["recipe"] == LearnSettings()
    assert more["resume"] is True, "what was begun goes on"


def drawn(figure) -> None:
    figure.savefig(io.BytesIO(), format="png")


def test_curves_are_drawn_as_they_are_with_the_best_there_is():
    rows = rows_with(
        {
            ("ddpg", 0): [0.5, 1.0],
            ("ddpg", 1): [0.25, 1.0],
            ("ddpg online", 0): [0.25, 0.5, 0.75],
            ("dqn", 0): [-40.0, -12.0],
        }
    )
    figure = fig8.draw(rows, "quick")
    arena, maze = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["PointUMaze (quick)", "TwoRoom (quick)"]
    assert [axis.get_ylabel() for axis in figure.axes] == ["success", "return"]
    before, online, best = arena.get_lines()
    np.testing.assert_allclose(before.get_xydata(), [[2_000, 0.375], [4_000, 1.0]])
    np.testing.assert_allclose(online.get_xydata(), [[2_000, 0.25], [4_000, 0.5], [6_000, 0.75]])
    assert set(best.get_ydata()) == {1.0}
    before, best = maze.get_lines()
    np.testing.assert_allclose(before.get_xydata(), [[500, -40.0], [1_000, -12.0]])
    np.testing.assert_allclose(best.get_ydata(), OPTIMUM)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["pretrained", "online", "the best there is"]
    drawn(figure)


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_the_figure_can_be_drawn_before_anything_is_done(preset):
    figure = fig8.draw([], preset)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == [f"{name} ({preset})" for name in (*ARENAS[preset], "TwoRoom")]
    drawn(figure)


def table(rows: list[Row], number: int) -> dict[tuple[str, str], list[str]]:
    """The cells of one of the tables, by target and the second column."""
    lines = [line for line in fig8.describe(rows, "quick") if line.startswith("|")]
    starts = [place for place, line in enumerate(lines) if line.startswith("| target ")]
    chosen = lines[starts[number] + 2 : (*starts, len(lines))[number + 1]]
    cells = [line.strip("| ").split(" | ") for line in chosen]
    return {(target, what): rest for target, what, *rest in cells}


def test_without_any_run_the_tables_are_dashes_and_margins():
    assert table([], 0) == {
        (target, phi): ["–", "–"]
        for target in (*ARENAS["quick"], "TwoRoom")
        for phi in ("pretrained", "online")
    }
    margins = {(arena, "last success"): "0.05" for arena in ARENAS["quick"]}
    margins |= {(arena, "steps to 90 % success"): "2,000" for arena in POINTS}
    margins |= {(arena, "steps to 90 % success"): "20,000" for arena in ARENAS["quick"][2:]}
    margins |= {("TwoRoom", "last return"): "1", ("TwoRoom", "steps to within 2 of the optimum"): "500"}
    assert table([], 1) == {measure: ["–", margin, "–"] for measure, margin in margins.items()}


def test_the_table_tells_how_good_at_the_end_and_how_soon():
    rows = rows_with(
        {
            ("ddpg", 0): [0.5, 0.9, 1.0],
            ("ddpg", 1): [0.95, 0.5, 0.75],
            ("ddpg online", 0): [0.5, 0.5, 0.5],
            ("dqn", 0): [-40.0, OPTIMUM - 1.9, OPTIMUM],
            ("dqn online", 0): [-40.0, -40.0, OPTIMUM - 2.1],
        }
    )
    found = {measure: cells for measure, cells in table(rows, 0).items() if cells != ["–", "–"]}
    assert found == {
        ("PointUMaze", "pretrained"): ["0.88 [0, 1.00]", "3,000 [0, 6,000]"],
        ("PointUMaze", "online"): ["0.5 (1 seed)", "6,000 (1 of 1 never)"],
        ("TwoRoom", "pretrained"): ["-11.4 (1 seed)", "1,000"],
        ("TwoRoom", "online"): ["-13.5 (1 seed)", "1,500 (1 of 1 never)"],
    }
    assert table(rows, 1)["TwoRoom", "last return"] == ["-2.10 (1 seed)", "1", "undecided"]


@pytest.mark.parametrize(
    ("before", "online", "cells"),
    [
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], ["0 [0, 0]", "0.05", "equivalent"]),
        ([0.5, 0.75, 1.0], [0.5, 0.75, 0.99], ["-0.0033 [-0.018, 0.011]", "0.05", "equivalent"]),
        ([0.5, 0.75, 1.0], [0.25, 0.5, 0.75], ["-0.25 [-0.25, -0.25]", "0.05", "different"]),
        ([0.75, 0.75, 0.75], [0.5, 0.75, 1.0], ["0 [-0.62, 0.62]", "0.05", "undecided"]),
    ],
)
def test_equivalence_is_of_the_last_evaluation_with_a_named_margin(before, online, cells):
    """In the last case the intervals overlap, which is no sign that the two are alike."""
    curves = {("ddpg", seed): [0.25, value] for seed, value in enumerate(before)}
    curves |= {("ddpg online", seed): [0.25, value] for seed, value in enumerate(online)}
    assert table(rows_with(curves), 1)["PointUMaze", "last success"] == cells
    only_before = {name: values for name, values in curves.items() if name[0] == "ddpg"}
    assert table(rows_with(only_before), 1)["PointUMaze", "last success"] == ["–", "0.05", "–"]


def test_speeds_are_equivalent_within_one_evaluation():
    before = {("dqn", seed): [-40.0] * (1 + seed) + [OPTIMUM] * 9 for seed in range(3)}
    same = {("dqn online", seed): values for (_, seed), values in before.items()}
    later = {("dqn online", seed): [-40.0] * 2 + values[:-2] for (_, seed), values in before.items()}
    name = ("TwoRoom", "steps to within 2 of the optimum")
    assert table(rows_with(before | same), 1)[name] == ["0 [0, 0]", "500", "equivalent"]
    assert table(rows_with(before | later), 1)[name] == ["1,000 [1,000, 1,000]", "500", "different"]


def test_runs_that_never_get_there_are_not_called_equally_fast():
    rows = rows_with({(method, seed): [0.5, 0.5] for method in ("ddpg", "ddpg online") for seed in range(3)})
    assert table(rows, 1)["PointUMaze", "steps to 90 % success"] == ["–", "2,000", "–"]
    assert table(rows, 1)["PointUMaze", "last success"][-1] == "equivalent"
