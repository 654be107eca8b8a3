"""From rows to the cells of a table."""

import math

from lapwing.figures.grid import Measure, Measured, Row, Run, rows_of
from lapwing.figures.statistics import mean_interval
from lapwing.figures.tables import (
    RANGES,
    by_seed,
    interval,
    last_evaluation,
    markdown_table,
    mean,
    values_by_step,
)

RUN = Run("fig3", "FourRoom", "default", "position", 1_000, 20, 1.0, None, 0, "quick", '{"dim": 20}')


def row(**changed) -> Row:
    (one,) = rows_of(RUN, Measured([Measure("gap", 0.5)], 2.0))
    return one | changed


def test_a_cell_is_of_the_rows_that_were_asked_for():
    wanted = {"metric": "gap", "method": "default", "n": 1_000, "beta": 1.0}
    rows = [row(seed=seed, value=float(seed)) for seed in range(5)]
    others = ({"n": 7}, {"metric": "rank"}, {"method": "graph-drawing"}, {"beta": None})
    rows += [row(seed=seed, value=100.0, seconds=7.0, **other) for seed in range(5) for other in others]
    assert by_seed(rows, **wanted) == {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}
    assert list(by_seed(rows[::-1], **wanted)) == [0, 1, 2, 3, 4]
    assert interval(rows, **wanted) == mean_interval([0.0, 1.0, 2.0, 3.0, 4.0])
    assert (mean(rows, **wanted), mean(rows, "seconds", **wanted)) == (2.0, 2.0)
    nothing = wanted | {"n": 8}
    assert by_seed(rows, **nothing) == {}
    assert interval(rows, **nothing) is None
    assert mean(rows, **nothing) is None


def test_an_interval_stays_within_the_range_of_its_metric():
    """Success of 0.8 and 1 would be 0.9 [-0.37, 2.17], a gap of 1 and 3 be 2 [-10.7, 14.7]."""
    success = [row(seed=seed, metric="success", value=value) for seed, value in enumerate((0.8, 1.0))]
    gaps = [row(seed=seed, value=value) for seed, value in enumerate((1.0, 3.0))]
    assert str(interval(success)) == "0.9 [0, 1.00]"
    assert str(interval(gaps)) == "2.00 [0, 14.7]"
    assert str(interval(gaps, within=(-math.inf, 4.0))) == "2.00 [-10.7, 4.00]"
    assert RANGES["success"] == (0.0, 1.0)


def test_the_last_evaluation_is_that_of_the_longest_run():
    rows = [row(seed=seed, step=step) for seed, step in ((0, 500), (0, 1_000), (1, 500), (2, 1_000))]
    assert [(one["seed"], one["step"]) for one in last_evaluation(rows)] == [(0, 1_000), (2, 1_000)]
    assert [one["step"] for one in last_evaluation(rows, seed=1)] == [500]
    assert last_evaluation(rows, seed=9) == []


def test_the_values_of_a_cell_come_in_the_order_of_their_steps():
    rows = [row(seed=seed, step=step, value=step / 2) for seed in (0, 1) for step in (3, 1, 2)]
    assert values_by_step(rows, seed=0).tolist() == [0.5, 1.0, 1.5]
    assert values_by_step(rows, seed=9).size == 0


def test_a_table_in_markdown():
    assert markdown_table(["n", "gap"], [["100", 0.5], ["1,000", None]]) == [
        "| n | gap |",
        "|---|---|",
        "| 100 | 0.5 |",
        "| 1,000 | – |",
    ]
