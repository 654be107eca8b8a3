"""From rows of results to the cells of a table, and to Markdown."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lapwing.figures.grid import Row
from lapwing.figures.statistics import ANYTHING, Interval, Range, mean_interval

RANGES = {
    **dict.fromkeys(("success", "greedy_success", "flat", "astray"), (0.0, 1.0)),
    **dict.fromkeys(("gate", "gate_l2", "correlation"), (-1.0, 1.0)),
    **dict.fromkeys(("gap", "distance", "local_optima", "lookahead", "contrast"), (0.0, np.inf)),
    "best_return": (-np.inf, 0.0),
}
"""What the mean of a metric can be: no interval reaches beyond."""


def select(rows: list[Row], **wanted: Any) -> list[Row]:
    """The rows that have these values in these columns."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def by_seed(rows: list[Row], column: str = "value", **wanted: Any) -> dict[int, float]:
    """The values of a cell that has one row a seed."""
    return {row["seed"]: row[column] for row in sorted(select(rows, **wanted), key=lambda row: row["seed"])}


def mean(rows: list[Row], column: str = "value", **wanted: Any) -> float | None:
    """The mean over the seeds of a cell; None if no run of it has been done."""
    values = by_seed(rows, column, **wanted)
    return float(np.mean(list(values.values()))) if values else None


def interval(rows: list[Row], *, within: Range | None = None, **wanted: Any) -> Interval | None:
    """The t-interval over the seeds of a cell; None if no run of it has been done.

    Args:
        rows: results.
        within: what the mean can be, if that is less than the range of the metric.
        wanted: values of columns, which leave one row a seed.
    """
    cell = select(rows, **wanted)
    if not cell:
        return None
    return mean_interval(
        list(by_seed(cell).values()), within=within or RANGES.get(cell[0]["metric"], ANYTHING)
    )


def last_evaluation(rows: list[Row], **wanted: Any) -> list[Row]:
    """The rows of a cell at the last step that any of its runs was evaluated at."""
    cell = select(rows, **wanted)
    return select(cell, step=max(row["step"] for row in cell)) if cell else []


def markdown_table(header: Sequence[str], lines: Sequence[Sequence[object]]) -> list[str]:
    """A table; what is None is shown as a dash."""
    cells = [["–" if cell is None else str(cell) for cell in line] for line in lines]
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(line) + " |" for line in cells),
    ]
