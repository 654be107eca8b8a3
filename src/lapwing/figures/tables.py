"""Means over seeds with bootstrap intervals, and Markdown made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapwing.figures.grid import Row

RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        """As a table shows it."""
        if self.count == 1:
            return f"{_brief(self.mean)} (1 seed)"
        return f"{_brief(self.mean)} [{_brief(self.low)}, {_brief(self.high)}]"


def bootstrap(values: Sequence[float]) -> Interval:
    """The mean, and the quantiles of the means of resamples with replacement (the same ones every time).

    Example:
        >>> bootstrap([1.0, 1.0, 1.0])
        Interval(mean=1.0, low=1.0, high=1.0, count=3)
    """
    sample = np.asarray(values, np.float64)
    generator = np.random.default_rng(0)
    means = sample[generator.integers(len(sample), size=(RESAMPLES, len(sample)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(sample.mean()), float(low), float(high), len(sample))


def select(rows: list[Row], **wanted: Any) -> list[Row]:
    """The rows that have these values in these columns."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def interval(rows: list[Row], column: str = "value", **wanted: Any) -> Interval | None:
    """The interval over the seeds of a cell; None if no run of it has been done."""
    values = [row[column] for row in sorted(select(rows, **wanted), key=lambda row: row["seed"])]
    return bootstrap(values) if values else None


def difference(rows: list[Row], first: dict[str, Any], second: dict[str, Any]) -> Interval | None:
    """The interval of one cell's values less another's, seed by seed; None if they share no seed."""
    values = [{row["seed"]: row["value"] for row in select(rows, **cell)} for cell in (first, second)]
    shared = sorted(values[0].keys() & values[1].keys())
    return bootstrap([values[0][seed] - values[1][seed] for seed in shared]) if shared else None


def markdown_table(header: Sequence[str], lines: Sequence[Sequence[object]]) -> list[str]:
    """A table; what is None is shown as a dash."""
    cells = [["–" if cell is None else str(cell) for cell in line] for line in lines]
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(line) + " |" for line in cells),
    ]


def _brief(value: float) -> str:
    """Two or three digits that matter; what is rounding error is 0.

    Example:
        >>> _brief(12.345), _brief(0.0004321), _brief(1234.5)
        ('12.3', '0.00043', '1234')
        >>> _brief(-1e-15)
        '0'
    """
    size = abs(value)
    if size < 1e-6:
        return "0"
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.2g}"
