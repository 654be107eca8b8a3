"""Figure 5: its grid, and its picture and text from rows made by hand."""

import io
import itertools
import random

import numpy as np
import pytest

from lapwing.envs.arena import open_arena
from lapwing.figures import fig5
from lapwing.figures.arena_agents import PANELS, arena_run
from lapwing.figures.fig5 import (
    final_tables,
    gate_table,
    goal_maps,
    mean_table,
    speed_table,
    success_curves,
)
from lapwing.figures.grid import Measure, Measured, Row, Run, rows_of
from lapwing.figures.reproduce import choose

POINT, HOOK, ANT, _ = PANELS
EVERY = 2_000

ARENAS = ("PointUMaze", "PointHookMaze", "AntUMaze", "AntHookMaze")
REWARDS = ("sparse", "l2", "rawmix", "mix", "fullmix")
COLUMNS = "| reward | PointUMaze | PointHookMaze | AntUMaze | AntHookMaze |"


def finished(preset: str = "quick", seeds: int = 2, **only: str) -> list[Row]:
    """Rows as if all runs, or those that `only` says, had been done; success grows with the seed."""
    rows = []
    for run in choose(fig5.runs(preset, seeds), tuple(f"{name}={value}" for name, value in only.items())):
        measures = [Measure("success", 0.25 * (k + run.seed), 2_000 * k) for k in (1, 2)]
        measures += [Measure("distance", 8.0 - k, 2_000 * k) for k in (1, 2)]
        if run.d:
            measures += [Measure("gate", 0.9), Measure("gate_l2", 0.5)]
        if run.d and run.seed == 0:
            points = len(open_arena(run.environment).points)
            measures += [Measure("map", float(place), place) for place in range(points)]
        rows += rows_of(run, Measured(measures, 1.0))
    return rows


POINTS = {(arena, reward, seed) for arena in ARENAS[:2] for reward in REWARDS for seed in range(5)}
GRIDS = {
    "quick": set(itertools.product(ARENAS, REWARDS, range(5))),
    "paper": POINTS | {("AntUMaze", "sparse", 0), ("AntUMaze", "mix", 0)},
}


@pytest.mark.parametrize("preset", GRIDS)
def test_the_grid_has_every_run_once(preset):
    """By the paper's settings the Ant takes hours: one arena, two rewards, one seed."""
    runs = fig5.runs(preset, 5)
    assert [len({run.key for run in runs}), len(runs)] == [len(GRIDS[preset])] * 2
    assert {(run.environment, run.reward, run.seed) for run in runs} == GRIDS[preset]
    assert {(run.figure, run.preset, run.method) for run in runs} == {("fig5", preset, "ddpg")}


def drawn(figure) -> None:
    figure.savefig(io.BytesIO(), format="png")


def by_title(figure) -> dict:
    return {axis.get_title(): axis for axis in figure.axes if axis.get_title()}


def test_each_arena_has_its_maps_and_its_curves():
    figure = fig5.draw(finished(), "quick")
    axes = by_title(figure)
    assert set(axes) == {
        "PointUMaze (quick)",
        "PointUMaze (quick): φ of (x, y), soft",
        "PointUMaze (quick): φ of the whole state, soft",
        "PointHookMaze (quick)",
        "PointHookMaze (quick): φ of (x, y), commute",
        "PointHookMaze (quick): φ of the whole state, commute",
        "AntUMaze (quick)",
        "AntUMaze (quick): φ of (x, y), commute",
        "AntUMaze (quick): φ of the whole state, commute",
        "AntHookMaze (quick)",
        "AntHookMaze (quick): φ of (x, y), commute",
        "AntHookMaze (quick): φ of the whole state, commute",
    }
    for arena in ARENAS:
        *lines, wanted = axes[f"{arena} (quick)"].get_lines()
        assert len(lines) == len(REWARDS)
        assert set(wanted.get_ydata()) == {0.9}
        for line in lines:
            np.testing.assert_allclose(line.get_xydata(), [[2_000, 0.375], [4_000, 0.625]])
    drawn(figure)


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_a_part_of_the_grid_can_be_drawn_or_nothing(preset):
    """Every run may have failed, for MuJoCo is not installed; the failures are yet to be told."""
    figure = fig5.draw(finished(preset, environment="PointHookMaze", reward="l2"), preset)
    assert list(by_title(figure)) == [f"PointHookMaze ({preset})"]
    drawn(figure)
    drawn(fig5.draw([], preset))


def test_the_text_has_every_table():
    text = fig5.describe(finished(), "quick")
    headings = [line for line in text if line.startswith("## ")]
    assert headings == [
        "## Does φ's distance lead to the goal?",
        "## Steps to 90 % success",
        "## Success over the whole run",
        "## After the last step",
    ]
    assert text[0].startswith("Shortened")
    assert "| PointHookMaze | the whole state | commute | 0.9 [0.9, 0.9] | 0.5 [0.5, 0.5] | yes |" in text
    never = "4,000 [4,000, 4,000] (2 of 2 never)"
    assert f"| sparse | {never} | {never} | {never} | {never} |" in text
    assert "| mix | 1.00 (level) | 1.00 (level) | 1.00 (level) | 1.00 (level) |" in text
    assert "| rawmix" + " | 0.62 [0, 1.00]" * 4 + " |" in text
    assert "| fullmix" + " | 6.00 [6.00, 6.00]" * 4 + " |" in text


@pytest.mark.parametrize("reward", REWARDS)
def test_the_text_can_be_written_of_any_part(reward):
    """As after `lapwing reproduce fig5 --only reward=…`."""
    text = fig5.describe(finished(reward=reward), "quick")
    assert any(line.startswith(f"| {reward} | 4,000 [4,000, 4,000] (2 of 2 never) |") for line in text)


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_without_any_run_the_tables_are_dashes(preset):
    text = fig5.describe([], preset)
    assert ("Shortened" in text[0]) == (preset == "quick")
    for reward in REWARDS:
        lines = [line for line in text if line.startswith(f"| {reward} |")]
        assert set(lines) == {f"| {reward} | – | – | – | – |"}
        assert len(lines) == (7 if reward in ("mix", "fullmix") else 5)


def rows_of_run(run: Run, measures: list[Measure]) -> list[Row]:
    return rows_of(run, Measured(measures, 1.0))


def curve(
    reward: str, seed: int, successes: list[float], *, panel=POINT, preset="quick", online=False
) -> list[Row]:
    """Rows of a run that was evaluated every 2,000 steps."""
    run = arena_run("fig5", preset, panel, reward, seed, online=online)
    return rows_of_run(run, [Measure("success", x, EVERY * (k + 1)) for k, x in enumerate(successes)])


def learned_at(step: int, last: int = 8_000) -> list[float]:
    """Success from `step` on."""
    return [1.0 if at >= step else 0.25 for at in range(EVERY, last + 1, EVERY)]


def curves(steps: dict[str, list[int]], **more) -> list[Row]:
    """By reward, at which step each seed learned; beyond 8,000 is never."""
    return [
        row
        for reward, by_seed in steps.items()
        for seed, step in enumerate(by_seed)
        for row in curve(reward, seed, learned_at(step), **more)
    ]


def line_of(lines: list[str], first: str, *, table: int = 0) -> list[str]:
    """The cells after the first in a line of one of the tables."""
    found = [line.strip("| ").split(" | ")[1:] for line in lines if line.startswith(f"| {first} |")]
    return found[table]


def test_the_speed_table_has_an_arena_a_column_and_a_reward_a_row():
    rows = curves({"mix": [4_000, 4_000], "sparse": [99_999]})
    rows += curves({"mix": [4_000]}, panel=ANT) + curves({"fullmix": [2_000]}, panel=HOOK)
    lines = speed_table(rows, "quick")
    assert COLUMNS in lines
    assert line_of(lines, "sparse") == ["8,000 (1 of 1 never)", "–", "–", "–"]
    assert line_of(lines, "mix") == ["4,000 [4,000, 4,000]", "–", "4,000", "–"]
    assert line_of(lines, "fullmix") == ["–", "2,000", "–", "–"]
    assert line_of(lines, "l2") == line_of(lines, "rawmix") == ["–"] * 4


def test_rows_of_the_other_preset_and_of_online_runs_do_not_count():
    rows = curves({"mix": [2_000]})
    rows += curves({"mix": [8_000]}, preset="paper") + curves({"mix": [8_000]}, online=True)
    assert line_of(speed_table(rows, "quick"), "mix")[0] == "2,000"
    assert line_of(speed_table(rows, "paper"), "mix")[0] == "8,000"


def test_both_ways_to_count_have_their_steps_and_their_ratios():
    """Mix is there at once and stays from 6,000 on; the baselines come at 4,000 and stay."""
    rows = curves({baseline: [4_000, 4_000] for baseline in ("sparse", "l2", "rawmix")})
    for seed in range(2):
        rows += curve("mix", seed, [1.0, 0.5, 0.9, 1.0])
    lines = speed_table(rows, "quick")
    told = [line_of(lines, "mix", table=table)[0] for table in range(4)]
    assert told == ["2,000 [2,000, 2,000]", "2.00 (yes)", "6,000 [6,000, 6,000]", "0.67 (no)"]
    assert line_of(lines, "l2") == line_of(lines, "l2", table=1) == ["4,000 [4,000, 4,000]", "–", "–", "–"]


def mean(rows: list[Row], reward: str = "mix", column: int = 0) -> str:
    return line_of(mean_table(rows, "quick"), reward)[column]


def flat(levels: dict[str, list[float]], **more) -> list[Row]:
    """By reward and seed, runs whose success rises a little, and is this in the mean."""
    return [
        row
        for reward, by_seed in levels.items()
        for seed, level in enumerate(by_seed)
        for row in curve(reward, seed, [level - 0.125, level, level + 0.125], **more)
    ]


def test_success_in_the_mean_is_over_all_evaluations_of_each_seed():
    rows = flat({"sparse": [0.25, 0.5]}) + curve("l2", 0, [0.0, 0.5, 1.0, 0.5])
    rows += flat({"sparse": [0.875]}, preset="paper") + flat({"l2": [0.875]}, panel=ANT)
    assert COLUMNS in mean_table(rows, "quick")
    assert mean(rows, "sparse") == "0.38 [0, 1.00]"
    assert line_of(mean_table(rows, "quick"), "l2") == ["0.5 (1 seed)", "–", "0.88 (1 seed)", "–"]
    assert line_of(mean_table(rows, "quick"), "mix") == ["–"] * 4
    assert mean(flat({"mix": [0.5, 0.5]})).startswith("0.5 [0.5, 0.5]"), "before any baseline is done"


@pytest.mark.parametrize(
    ("mix", "verdict"),
    [
        ([0.75, 0.75], "0.75 [0.75, 0.75] (yes)"),
        ([0.25, 0.25], "0.25 [0.25, 0.25] (no)"),
        ([0.25, 0.75], "0.5 [0, 1.00] (level)"),
        ([0.5, 0.5], "0.5 [0.5, 0.5] (level)"),
    ],
)
def test_more_success_than_every_baseline_is_told_of_shaped_rewards(mix, verdict):
    rows = flat({"sparse": [0.25, 0.25], "l2": [0.5, 0.5], "rawmix": [0.25, 0.25], "mix": mix})
    assert mean(rows) == verdict
    assert mean(rows, "l2") == "0.5 [0.5, 0.5]"


def gated(
    reward: str, gates: list[float], l2: list[float], *, panel=POINT, preset="quick", online=False
) -> list[Row]:
    rows = []
    for seed, (gate, other) in enumerate(zip(gates, l2, strict=True)):
        run = arena_run("fig5", preset, panel, reward, seed, online=online)
        rows += rows_of_run(run, [Measure("gate", gate), Measure("gate_l2", other)])
    return rows


def gates(rows: list[Row]) -> dict[tuple[str, str], list[str]]:
    """Filter, φ, l2 and passed, by arena and what φ sees."""
    cells = [line.strip("| ").split(" | ") for line in gate_table(rows)[4:]]
    return {(arena, sees): rest for arena, sees, *rest in cells}


def test_every_arena_and_phi_has_a_line_and_dashes_until_it_is_done():
    filters = dict.fromkeys(ARENAS, "commute") | {"PointUMaze": "soft"}
    assert gates([]) == {
        (arena, sees): [filters[arena], "–", "–", "–"]
        for arena in ARENAS
        for sees in ("(x, y)", "the whole state")
    }


def test_one_seed_has_no_interval():
    found = gates(gated("mix", [0.9], [0.25]))
    assert found["PointUMaze", "(x, y)"] == ["soft", "0.9 (1 seed)", "0.25 (1 seed)", "1 seed"]
    assert found["PointUMaze", "the whole state"] == ["soft", "–", "–", "–"]


@pytest.mark.parametrize(
    ("phi", "l2", "passed"),
    [
        ([0.9, 0.91, 0.92], [0.5, 0.5, 0.5], "yes"),
        ([0.9, 0.95], [0.5, 0.5], "no"),
        ([0.85, 0.85], [0.5, 0.5], "yes"),
        ([0.84, 0.84], [0.5, 0.5], "no"),
        ([0.9, 0.9], [0.95, 0.95], "no"),
        ([0.9, 0.9], [0.9, 0.9], "no"),
        ([0.8, 0.99, 0.99], [0.5, 0.5, 0.5], "no"),
        ([0.9, 0.9, 0.9], [0.1, 0.1, 0.95], "no"),
        ([0.9, 0.91, 0.92], [0.88, 0.89, 0.9], "yes"),
    ],
)
def test_phi_passes_if_its_whole_interval_is_high_enough_and_that_of_the_difference_above_0(phi, l2, passed):
    """0.9 and 0.95 are 0.92 [0.61, 1.24]; in the last φ is above l2 by 0.02 on each seed."""
    *_, told = gates(gated("fullmix", phi, l2))["PointUMaze", "the whole state"]
    assert told == passed


def test_the_gate_shows_means_and_intervals():
    rows = gated("mix", [0.9] * 3, [0.3, 0.4, 0.5], panel=ANT) + gated("mix", [0.1], [0.1], online=True)
    assert gates(rows)["AntUMaze", "(x, y)"] == ["commute", "0.9 [0.9, 0.9]", "0.4 [0.15, 0.65]", "yes"]
    assert gates(rows)["PointUMaze", "(x, y)"] == ["soft", "–", "–", "–"]


def test_the_last_evaluation_is_told_of_both_measures():
    run = arena_run("fig5", "quick", HOOK, "l2", 0)
    rows = curve("l2", 0, [0.1, 0.5], panel=HOOK) + curve("l2", 1, [0.9, 0.25], panel=HOOK)
    rows += rows_of_run(run, [Measure("distance", 9.0, 2_000), Measure("distance", 3.5, 4_000)])
    rows += curve("l2", 0, [1.0, 1.0], panel=HOOK, preset="paper")
    lines = final_tables(rows, "quick")
    assert lines[0] == "Success:"
    assert line_of(lines, "l2") == ["–", "0.38 [0, 1.00]", "–", "–"]
    assert line_of(lines, "l2", table=1) == ["–", "3.50 (1 seed)", "–", "–"]
    assert line_of(lines, "mix") == line_of(lines, "mix", table=1) == ["–"] * 4
    assert lines.index("The mean distance left to the goal:") > lines.index("Success:")
    assert lines[-1].startswith("|")


def test_curves_are_means_over_the_seeds_at_each_evaluation():
    rows = [*curve("mix", 0, [0.0, 0.5, 1.0]), *curve("mix", 1, [0.5, 0.5]), *curve("sparse", 0, [0.25])]
    rows += curve("mix", 0, [1.0] * 3, preset="paper") + curve("mix", 0, [1.0] * 3, panel=ANT)
    rows += curve("l2", 0, [1.0] * 3, online=True)
    random.Random(1).shuffle(rows)
    found = success_curves(rows, POINT, "quick")
    assert list(found) == ["sparse", "mix"]
    assert (found["mix"].x, found["mix"].mean) == ([2_000, 4_000, 6_000], [0.25, 0.5, 1.0])
    assert (found["sparse"].x, found["sparse"].mean) == ([2_000], [0.25])
    assert success_curves(rows, HOOK, "quick") == {}


def mapped(reward: str, values: np.ndarray, *, seed=0, panel=POINT, online=False) -> list[Row]:
    run = arena_run("fig5", "quick", panel, reward, seed, online=online)
    rows = rows_of_run(run, [Measure("map", float(value), place) for place, value in enumerate(values)])
    random.Random(2).shuffle(rows)
    return rows


def test_maps_are_in_the_order_of_places_and_of_seed_0():
    """By number, not by text: 9 comes before 10."""
    one, two = np.arange(12.0), 100 - np.arange(12.0)
    rows = [*mapped("fullmix", two), *mapped("mix", one), *mapped("mix", 7 * one, seed=1)]
    rows += mapped("mix", 9 * one, online=True) + mapped("mix", 8 * one, panel=HOOK)
    found = goal_maps(rows, POINT)
    assert list(found) == ["φ of (x, y), soft", "φ of the whole state, soft"]
    np.testing.assert_array_equal(found["φ of (x, y), soft"], one)
    np.testing.assert_array_equal(found["φ of the whole state, soft"], two)
    (only,) = goal_maps(rows, HOOK).items()
    assert only[0] == "φ of (x, y), commute"
    np.testing.assert_array_equal(only[1], 8 * one)
    assert goal_maps(rows, ANT) == {}


def test_the_rows_made_here_are_those_of_the_figure():
    """Or all of the above would be of rows that no run ever gives."""
    keys = {run.key for run in fig5.runs("quick", 2)}
    rows = curves({"mix": [2_000, 4_000], "rawmix": [2_000]}) + curves({"mix": [2_000]}, panel=ANT)
    assert {row["key"] for row in rows} <= keys
