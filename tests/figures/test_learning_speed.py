"""How soon agents learn, from rows made by hand whose numbers are known by hand."""

import random

import pytest

from lapwing.agents.evaluation import steps_to_stay, steps_to_success
from lapwing.figures.grid import Measure, Measured, Row, Run, rows_of
from lapwing.figures.tables import Speed, curve_of, speed_of, speed_tables

RUN = Run("fig5", "PointUMaze", "ddpg", "position", 0, 0, None, None, 0, "quick", "{}", "mix")
BASELINES = ("sparse", "l2", "rawmix")


def curve(seed: int, values: list[float]) -> list[Row]:
    """Rows of a run that was evaluated every 2,000 steps."""
    measures = [Measure("success", value, 2_000 * (k + 1)) for k, value in enumerate(values)]
    return [row | {"seed": seed} for row in rows_of(RUN, Measured(measures, 1.0))]


def shuffled(*curves: list[Row]) -> list[Row]:
    rows = [row for one in curves for row in one]
    random.Random(0).shuffle(rows)
    return rows


def speed(*steps: float, never: int = 0) -> Speed:
    return Speed({seed: float(one) for seed, one in enumerate(steps)}, never, 8_000.0)


def test_steps_are_to_the_first_evaluation_of_nine_in_ten():
    rows = shuffled(
        curve(0, [0.2, 0.9, 0.5, 1.0]),
        curve(1, [0.2, 0.8999, 0.5, 0.9]),
        curve(2, [0.2, 0.89, 0.5]),
        curve(3, [1.0]),
    )
    found = speed_of(rows, steps_to_success)
    assert found == Speed({0: 4_000.0, 1: 8_000.0, 2: 6_000.0, 3: 2_000.0}, never=1, trained=8_000.0)
    assert list(found.steps) == [0, 1, 2, 3]
    assert speed_of([], steps_to_success) is None


def test_steps_to_stay_are_to_the_evaluation_after_the_last_failure():
    rows = shuffled(
        curve(0, [0.95, 0.5, 0.9, 1.0]),
        curve(1, [0.9, 0.9]),
        curve(2, [1.0, 1.0, 0.8999]),
        curve(3, [0.0, 0.9]),
    )
    found = speed_of(rows, steps_to_stay)
    assert found == Speed({0: 6_000.0, 1: 2_000.0, 2: 6_000.0, 3: 4_000.0}, never=1, trained=8_000.0)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (speed(4_000), "4,000"),
        (speed(8_000, never=1), "8,000 (1 of 1 never)"),
        (speed(4_000, 4_000, 4_000), "4,000 [4,000, 4,000]"),
        (speed(3_000, 4_000, 5_000), "4,000 [1,516, 6,484]"),
        (speed(2_000, 6_000), "4,000 [0, 8,000]"),
        (speed(8_000, 8_000, 8_000, never=3), "8,000 [8,000, 8,000] (3 of 3 never)"),
    ],
)
def test_steps_in_a_table(found, words):
    """An interval lies within the steps of a run, and one seed has none."""
    assert str(found) == words


def ratio(reward: str = "mix", **steps: Speed) -> str:
    lines = speed_tables({"maze": steps}, {name: name for name in steps}, [reward])
    return lines[-1].strip("| ").split(" | ")[1]


def baselines(*steps: int) -> dict[str, Speed]:
    return dict.fromkeys(BASELINES, speed(*steps))


def test_there_is_a_line_for_each_reward_and_a_ratio_for_the_shaped():
    speeds = {"one": {"l2": speed(4_000), "mix": speed(2_000)}, "two": {"mix": speed(2_000)}}
    labels = {"sparse": "sparse", "l2": "plain distance", "mix": "half of each"}
    steps, (*_, ratios) = speed_tables(speeds, labels, ["mix"])[:5], speed_tables(speeds, labels, ["mix"])
    assert steps[0] == "| reward | one | two |"
    assert steps[2:] == [
        "| sparse | – | – |",
        "| plain distance | 4,000 | – |",
        "| half of each | 2,000 | 2,000 |",
    ]
    assert ratios == "| half of each | 2.00 (1 seed) | – |"


@pytest.mark.parametrize(
    ("mix", "others", "words"),
    [
        ((2_000, 2_000, 2_000), (8_000, 8_000, 8_000), "4.00 (yes)"),
        ((4_000, 4_000, 4_000), (2_000, 2_000, 2_000), "0.50 (no)"),
        ((2_000, 2_000, 8_000), (6_000, 6_000, 6_000), "1.50 (level)"),
        ((4_000, 4_000), (4_000, 4_000), "1.00 (level)"),
        ((2_000, 4_000, 6_000), (4_000, 6_000, 8_000), "1.50 (yes)"),
        ((2_000,), (8_000,), "4.00 (1 seed)"),
    ],
)
def test_the_verdict_is_by_differences_of_the_same_seed(mix, others, words):
    """In the last but one both spread over the whole range, and yet each seed is sooner by 2,000."""
    assert ratio(**baselines(*others), mix=speed(*mix)) == words


def test_three_seeds_that_all_were_sooner_may_still_be_level():
    """As fullmix against sparse in PointUMaze: sooner by 14,000, 8,000 and 20,000 steps."""
    sparse, ours = speed(32_000, 20_000, 30_000), speed(18_000, 12_000, 10_000)
    assert ratio(sparse=sparse, mix=ours) == "2.05 (level)"


def test_the_best_baseline_is_that_of_the_fewest_steps_in_the_mean():
    others = {
        "sparse": speed(8_000, 8_000),
        "l2": speed(4_000, 8_000),
        "rawmix": speed(8_000, 8_000, never=2),
    }
    assert ratio(**others, mix=speed(2_000, 2_000)) == "3.00 (level)"


def test_a_target_is_compared_with_the_baselines_that_it_has():
    assert ratio(sparse=speed(8_000, 8_000), l2=speed(6_000, 6_000), mix=speed(2_000, 2_000)) == "3.00 (yes)"
    assert ratio(mix=speed(2_000, 2_000)) == "–"
    assert ratio("fullmix", **baselines(2_000), fullmix=speed(2_000)) == "1.00 (1 seed)"


def test_seeds_that_are_not_done_yet_are_left_out_of_the_differences():
    assert ratio(**baselines(8_000, 8_000, 2_000), mix=speed(2_000, 2_000)) == "3.00 (yes)"
    apart = Speed({7: 2_000.0}, 0, 8_000.0)
    assert ratio(**baselines(8_000), mix=apart) == "4.00 (no seed in common)"


def test_a_curve_is_of_the_means_at_each_evaluation():
    rows = shuffled(curve(0, [0.0, 0.5, 1.0]), curve(1, [0.5, 0.5]))
    found = curve_of(rows)
    assert (found.x, found.mean) == ([2_000, 4_000, 6_000], [0.25, 0.5, 1.0])
    assert (found.low[:2], found.high[:2]) == ([0.0, 0.5], [1.0, 0.5])
    assert found.low[2] != found.low[2], "one seed has no interval"
    assert curve_of(rows, within=(0.0, 0.75)).high[0] == 0.75
    assert curve_of([]) is None
