"""Tables and curves of figure 5, from rows made by hand whose numbers are known by hand."""

import random
import re

import numpy as np
import pytest

from lapwing.agents.evaluation import steps_to_stay
from lapwing.figures import fig5
from lapwing.figures.grid import Measure, Measured, Row, Run, rows_of
from lapwing.figures.reaching import PANELS, reaching_run
from lapwing.figures.reaching_speed import (
    final_tables,
    gate_table,
    goal_maps,
    in_words,
    mean_table,
    of_panel,
    speed_table,
    steps_taken,
    success_curves,
    success_over_steps,
)

POINT, HOOK, ANT = PANELS
BASELINES = ("sparse", "l2", "rawmix")
EVERY = 2_000


def rows_of_run(run: Run, measures: list[Measure]) -> list[Row]:
    return rows_of(run, Measured(measures, 1.0))


def curve(
    reward: str, seed: int, successes: list[float], *, panel=POINT, preset="quick", online=False
) -> list[Row]:
    """Rows of a run that was evaluated every 2,000 steps."""
    run = reaching_run("fig5", preset, panel, reward, seed, online=online)
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


# Steps to 90 % success


def test_steps_taken_are_to_the_first_evaluation_of_nine_in_ten():
    rows = [
        *curve("mix", 0, [0.2, 0.9, 0.5, 1.0]),
        *curve("mix", 1, [0.2, 0.8999, 0.5, 0.9]),
        *curve("mix", 2, [0.2, 0.89, 0.5]),
        *curve("mix", 3, [1.0]),
    ]
    random.Random(0).shuffle(rows)
    expected = {0: (4_000, True), 1: (8_000, True), 2: (6_000, False), 3: (2_000, True)}
    assert steps_taken(rows, "mix") == expected
    assert list(steps_taken(rows, "mix")) == [0, 1, 2, 3]
    assert steps_taken(rows, "sparse") == {}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([4_000], "4,000"),
        ([99_999], "8,000 (1 of 1 never)"),
        ([2_000, 6_000], "4,000 [2,000, 6,000]"),
        ([4_000, 4_000, 4_000], "4,000 [4,000, 4,000]"),
        ([4_000, 99_999], "6,000 [4,000, 8,000] (1 of 2 never)"),
        ([99_999] * 3, "8,000 [8,000, 8,000] (3 of 3 never)"),
    ],
)
def test_steps_in_words(steps, words):
    """Of two seeds the interval is both: a quarter of all resamples has only the one, or only the other."""
    assert in_words(curves({"mix": steps}), "mix") == words


def test_without_a_run_there_are_no_words():
    assert in_words(curves({"mix": [2_000]}), "l2") is None
    assert in_words([], "mix") is None


def test_the_speed_table_has_an_arena_a_column_and_a_reward_a_row():
    rows = curves({"mix": [2_000, 6_000], "sparse": [99_999]})
    rows += curves({"mix": [4_000]}, panel=ANT) + curves({"fullmix": [2_000]}, panel=HOOK)
    lines = speed_table(rows, "quick")
    assert "| reward | PointUMaze | PointHookMaze | AntUMaze |" in lines
    assert line_of(lines, "sparse") == ["8,000 (1 of 1 never)", "–", "–"]
    assert line_of(lines, "mix") == ["4,000 [2,000, 6,000]", "–", "4,000"]
    assert line_of(lines, "fullmix") == ["–", "2,000", "–"]
    assert line_of(lines, "l2") == line_of(lines, "rawmix") == ["–", "–", "–"]


def test_rows_of_the_other_preset_and_of_online_runs_do_not_count():
    rows = curves({"mix": [2_000]})
    rows += curves({"mix": [8_000]}, preset="paper") + curves({"mix": [8_000]}, online=True)
    assert line_of(speed_table(rows, "quick"), "mix")[0] == "2,000"
    assert line_of(speed_table(rows, "paper"), "mix")[0] == "8,000"
    assert in_words(of_panel(rows, POINT, "quick", "ddpg online"), "mix") == "8,000"


# How many times fewer


def ratio(rows: list[Row], reward: str = "mix", column: int = 0) -> str:
    return line_of(speed_table(rows, "quick"), reward, table=1)[column]


def baselines(*steps: int) -> dict[str, list[int]]:
    return {reward: list(steps) for reward in BASELINES}


def test_fewer_steps_than_every_baseline_on_every_seed_are_sure():
    assert ratio(curves(baselines(8_000, 8_000, 8_000) | {"mix": [2_000, 2_000, 2_000]})) == "4.00 (yes)"


def test_more_steps_than_a_baseline_are_sure_too():
    steps = baselines(8_000, 8_000, 8_000) | {"l2": [2_000, 2_000, 2_000], "mix": [4_000, 4_000, 4_000]}
    assert ratio(curves(steps)) == "0.50 (no)"


def test_what_the_seeds_do_not_agree_on_is_level():
    """The mean is 4,000 against 6,000, but one seed is slower."""
    assert ratio(curves(baselines(6_000, 6_000, 6_000) | {"mix": [2_000, 2_000, 8_000]})) == "1.50 (level)"
    assert ratio(curves(baselines(4_000, 4_000) | {"mix": [4_000, 4_000]})) == "1.00 (level)"


def test_differences_are_seed_by_seed():
    """Both spread over the whole range, and yet each seed is sooner by 2,000."""
    steps = baselines(4_000, 6_000, 8_000) | {"mix": [2_000, 4_000, 6_000]}
    assert ratio(curves(steps)) == "1.50 (yes)"


def test_the_best_baseline_is_that_of_the_fewest_steps_in_the_mean():
    steps = {"sparse": [8_000, 8_000], "l2": [4_000, 8_000], "rawmix": [99_999, 99_999]}
    assert ratio(curves(steps | {"mix": [2_000, 2_000], "fullmix": [8_000, 8_000]})) == "3.00 (yes)"
    assert ratio(curves(steps | {"fullmix": [8_000, 8_000]}), "fullmix") == "0.75 (level)"


def test_only_shaped_rewards_are_compared_with_the_baselines():
    lines = speed_table(curves(baselines(8_000) | {"mix": [2_000]}), "quick")
    second = next(number for number, line in enumerate(lines) if line.startswith("How many times fewer"))
    assert [line.split(" | ")[0] for line in lines[second + 4 : second + 7]] == ["| mix", "| fullmix", ""]


def test_the_ant_is_compared_with_the_baselines_that_it_has():
    rows = curves({"sparse": [8_000, 8_000], "l2": [6_000, 6_000], "mix": [2_000, 2_000]}, panel=ANT)
    assert ratio(rows, column=2) == "3.00 (yes)"
    assert (ratio(rows), ratio(rows, column=1), ratio(rows, "fullmix", column=2)) == ("–", "–", "–")


def test_without_a_baseline_or_a_run_there_is_no_ratio():
    assert ratio(curves({"mix": [2_000, 2_000]})) == "–"
    assert ratio(curves(baselines(2_000, 2_000))) == "–"


def test_of_one_seed_there_is_a_ratio_but_no_verdict():
    assert ratio(curves(baselines(8_000) | {"mix": [2_000]})) == "4.00 (1 seed)"
    assert ratio(curves(baselines(8_000, 8_000) | {"l2": [8_000], "mix": [2_000, 2_000]})) == "4.00 (1 seed)"


def test_seeds_that_no_baseline_has_give_no_verdict():
    """A grid of which parts are done: mix with seed 1 alone, the baselines with seed 0 alone."""
    rows = curves(baselines(8_000)) + curve("mix", 1, learned_at(2_000))
    assert not re.search("yes|no|level", ratio(rows))


def test_seeds_that_are_not_done_yet_are_left_out_of_the_differences():
    rows = curves(baselines(8_000, 8_000, 2_000) | {"mix": [2_000, 2_000]})
    assert ratio(rows) == "3.00 (yes)"


# From when success stays


def test_steps_to_stay_are_to_the_evaluation_after_the_last_failure():
    rows = [
        *curve("mix", 0, [0.95, 0.5, 0.9, 1.0]),
        *curve("mix", 1, [0.9, 0.9]),
        *curve("mix", 2, [1.0, 1.0, 0.8999]),
        *curve("mix", 3, [0.0, 0.9]),
    ]
    random.Random(3).shuffle(rows)
    expected = {0: (6_000, True), 1: (2_000, True), 2: (6_000, False), 3: (4_000, True)}
    assert steps_taken(rows, "mix", steps_to_stay) == expected


def test_both_ways_to_count_have_their_steps_and_their_ratios():
    """Mix is there at once and stays from 6,000 on; the baselines come at 4,000 and stay."""
    rows = curves(baselines(4_000, 4_000))
    for seed in range(2):
        rows += curve("mix", seed, [1.0, 0.5, 0.9, 1.0])
    lines = speed_table(rows, "quick")
    told = [line_of(lines, "mix", table=table)[0] for table in range(4)]
    assert told == ["2,000 [2,000, 2,000]", "2.00 (yes)", "6,000 [6,000, 6,000]", "0.67 (no)"]
    assert line_of(lines, "l2") == line_of(lines, "l2", table=1) == ["4,000 [4,000, 4,000]", "–", "–"]


# Over the whole run


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
    assert "| reward | PointUMaze | PointHookMaze | AntUMaze |" in mean_table(rows, "quick")
    assert mean(rows, "sparse") == "0.38 [0.25, 0.5]"
    assert line_of(mean_table(rows, "quick"), "l2") == ["0.5 (1 seed)", "–", "0.88 (1 seed)"]
    assert line_of(mean_table(rows, "quick"), "mix") == ["–", "–", "–"]


@pytest.mark.parametrize(
    ("mix", "verdict"),
    [
        ([0.75, 0.75], "0.75 [0.75, 0.75] (yes)"),
        ([0.25, 0.25], "0.25 [0.25, 0.25] (no)"),
        ([0.25, 0.75], "0.5 [0.25, 0.75] (level)"),
        ([0.5, 0.5], "0.5 [0.5, 0.5] (level)"),
    ],
)
def test_more_success_than_every_baseline_is_told_of_shaped_rewards(mix, verdict):
    rows = flat({"sparse": [0.25, 0.25], "l2": [0.5, 0.5], "rawmix": [0.25, 0.25], "mix": mix})
    assert mean(rows) == verdict
    assert mean(rows, "l2") == "0.5 [0.5, 0.5]"


def test_success_in_the_mean_of_one_seed_has_no_verdict():
    found = mean(flat({"sparse": [0.25], "l2": [0.25], "rawmix": [0.25], "mix": [0.75]}))
    assert found == "0.75 (1 seed)"


def test_success_in_the_mean_is_told_before_any_baseline_is_done():
    """As after `lapwing reproduce fig5 --only reward=mix`."""
    assert mean(flat({"mix": [0.5, 0.5]})).startswith("0.5 [0.5, 0.5]")


# Does φ lead there?


def gated(
    reward: str, gates: list[float], l2: list[float], *, panel=POINT, preset="quick", online=False
) -> list[Row]:
    rows = []
    for seed, (gate, other) in enumerate(zip(gates, l2, strict=True)):
        run = reaching_run("fig5", preset, panel, reward, seed, online=online)
        rows += rows_of_run(run, [Measure("gate", gate), Measure("gate_l2", other)])
    return rows


def gates(rows: list[Row]) -> dict[tuple[str, str], list[str]]:
    """Filter, φ, l2 and passed, by arena and what φ sees."""
    cells = [line.strip("| ").split(" | ") for line in gate_table(rows)[4:]]
    return {(arena, sees): rest for arena, sees, *rest in cells}


def test_every_arena_and_phi_has_a_line_and_dashes_until_it_is_done():
    assert gates([]) == {
        ("PointUMaze", "(x, y)"): ["soft", "–", "–", "–"],
        ("PointUMaze", "the whole state"): ["soft", "–", "–", "–"],
        ("PointHookMaze", "(x, y)"): ["commute", "–", "–", "–"],
        ("PointHookMaze", "the whole state"): ["commute", "–", "–", "–"],
        ("AntUMaze", "(x, y)"): ["commute", "–", "–", "–"],
    }


def test_one_seed_has_no_interval():
    found = gates(gated("mix", [0.9], [0.25]))
    assert found["PointUMaze", "(x, y)"] == ["soft", "0.9 (1 seed)", "0.25 (1 seed)", "yes"]
    assert found["PointUMaze", "the whole state"] == ["soft", "–", "–", "–"]


@pytest.mark.parametrize(
    ("phi", "l2", "passed"),
    [
        ([0.9, 0.95], [0.5, 0.5], "yes"),
        ([0.85, 0.85], [0.5, 0.5], "yes"),
        ([0.84, 0.84], [0.5, 0.5], "no"),
        ([0.9, 0.9], [0.95, 0.95], "no"),
        ([0.9, 0.9], [0.9, 0.9], "no"),
        ([0.8, 0.99, 0.99], [0.5, 0.5, 0.5], "no"),
        ([0.9, 0.9, 0.9], [0.1, 0.1, 0.95], "no"),
    ],
)
def test_phi_passes_if_its_whole_interval_is_high_enough_and_above_that_of_l2(phi, l2, passed):
    """Of three seeds one alone is drawn three times in 1 of 27 resamples, which is within the interval."""
    *_, told = gates(gated("fullmix", phi, l2))["PointUMaze", "the whole state"]
    assert told == passed


def test_the_gate_shows_means_and_intervals():
    rows = gated("mix", [0.875, 0.9], [0.25, 0.5], panel=ANT) + gated("mix", [0.1], [0.1], online=True)
    assert gates(rows)["AntUMaze", "(x, y)"] == ["commute", "0.89 [0.88, 0.9]", "0.38 [0.25, 0.5]", "yes"]
    assert gates(rows)["PointUMaze", "(x, y)"] == ["soft", "–", "–", "–"]


# At the end


def test_the_last_evaluation_is_told_of_both_measures():
    run = reaching_run("fig5", "quick", HOOK, "l2", 0)
    rows = curve("l2", 0, [0.1, 0.5], panel=HOOK) + curve("l2", 1, [0.9, 0.25], panel=HOOK)
    rows += rows_of_run(run, [Measure("distance", 9.0, 2_000), Measure("distance", 3.5, 4_000)])
    rows += curve("l2", 0, [1.0, 1.0], panel=HOOK, preset="paper")
    lines = final_tables(rows, "quick")
    assert lines[0] == "Success:"
    assert line_of(lines, "l2") == ["–", "0.38 [0.25, 0.5]", "–"]
    assert line_of(lines, "l2", table=1) == ["–", "3.50 (1 seed)", "–"]
    assert line_of(lines, "mix") == line_of(lines, "mix", table=1) == ["–"] * 3
    assert lines.index("The way left to the goal, in the mean:") > lines.index("Success:")
    assert lines[-1].startswith("|")


# Curves


def test_curves_are_means_over_the_seeds_at_each_evaluation():
    rows = [*curve("mix", 0, [0.0, 0.5, 1.0]), *curve("mix", 1, [0.5, 0.5]), *curve("sparse", 0, [0.25])]
    rows += curve("mix", 0, [1.0] * 3, preset="paper") + curve("mix", 0, [1.0] * 3, panel=ANT)
    rows += curve("l2", 0, [1.0] * 3, online=True)
    random.Random(1).shuffle(rows)
    found = success_curves(rows, POINT, "quick")
    assert list(found) == ["sparse", "mix"]
    assert (found["mix"].x, found["mix"].mean) == ([2_000, 4_000, 6_000], [0.25, 0.5, 1.0])
    assert (found["mix"].low, found["mix"].high) == ([0.0, 0.5, 1.0], [0.5, 0.5, 1.0])
    assert (found["sparse"].x, found["sparse"].mean) == ([2_000], [0.25])
    assert success_curves(rows, HOOK, "quick") == {}


def test_the_interval_at_an_evaluation_counts_its_seeds():
    found = success_over_steps([*curve("mix", 0, [0.5, 0.75]), *curve("mix", 1, [0.5])], "mix")
    assert {step: one.count for step, one in found.items()} == {2_000: 2, 4_000: 1}


def test_rewards_that_an_arena_does_not_have_are_not_drawn():
    rows = curve("rawmix", 0, [1.0], panel=ANT) + curve("l2", 0, [1.0], panel=ANT)
    assert list(success_curves(rows, ANT, "quick")) == ["l2"]


# Maps


def mapped(reward: str, values: np.ndarray, *, seed=0, panel=POINT, online=False) -> list[Row]:
    run = reaching_run("fig5", "quick", panel, reward, seed, online=online)
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
