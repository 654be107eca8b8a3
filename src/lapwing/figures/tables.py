"""From rows of results to the cells of a table, to learning speeds and curves, and to Markdown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapwing.figures.grid import Row
from lapwing.figures.statistics import ANYTHING, Interval, Range, below_each, mean_interval
from lapwing.plots import Curve

RANGES = {
    **dict.fromkeys(("success", "greedy_success", "flat", "astray"), (0.0, 1.0)),
    **dict.fromkeys(("gate", "gate_l2", "correlation"), (-1.0, 1.0)),
    **dict.fromkeys(("gap", "distance", "local_optima", "lookahead", "contrast"), (0.0, np.inf)),
    "best_return": (-np.inf, 0.0),
}
"""What the mean of a metric can be: no interval reaches beyond."""
BASELINES = ("sparse", "l2", "rawmix")
ABOUT_NEVER = (
    "A run that never gets there counts with all its steps; how many did is in brackets. A cell without an "
    "interval has one seed."
)
_ABOUT_RATIO = (
    "How many times fewer steps than the best of sparse, l2 and rawmix, by the means. In brackets whether "
    "they are fewer, by the 95 % t-intervals of the paired differences (same seed): yes if fewer than each "
    "baseline's, no if more than any baseline's, else level."
)
Count = Callable[[np.ndarray, np.ndarray], int | None]
"""From steps and values at each evaluation to how many steps it took; None: never."""


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


def values_by_step(rows: list[Row], **wanted: Any) -> np.ndarray:
    """The values of a cell in the order of their steps."""
    return np.array([row["value"] for row in sorted(select(rows, **wanted), key=lambda row: row["step"])])


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


@dataclass(frozen=True)
class Speed:
    """How many steps each seed took."""

    steps: dict[int, float]
    """By seed; those of the whole run if it never got there."""
    never: int
    """How many seeds never got there."""
    trained: float
    """How many steps the longest run has."""

    @property
    def interval(self) -> Interval:
        """Of the mean; it lies within the steps of a run."""
        return mean_interval(list(self.steps.values()), within=(0.0, self.trained))

    def __str__(self) -> str:
        """As a table shows it."""
        found = self.interval
        words = f"{found.mean:,.0f}" + (f" [{found.low:,.0f}, {found.high:,.0f}]" if found.count > 1 else "")
        return words + (f" ({self.never} of {found.count} never)" if self.never else "")


def speed_of(rows: list[Row], count: Count) -> Speed | None:
    """The speed of runs that differ in their seed alone, from the rows of one metric; None without any."""
    steps: dict[int, float] = {}
    never, trained = 0, 0.0
    for seed in sorted({row["seed"] for row in rows}):
        curve = sorted((row["step"], row["value"]) for row in select(rows, seed=seed))
        at, values = (np.array(column) for column in zip(*curve, strict=True))
        taken = count(at, values)
        steps[seed] = float(at[-1] if taken is None else taken)
        never, trained = never + (taken is None), max(trained, float(at[-1]))
    return Speed(steps, never, trained) if steps else None


def speeds_of(cells: Mapping[str, list[Row]], count: Count) -> dict[str, Speed]:
    """The speed of each cell that has been run."""
    return {name: speed for name, cell in cells.items() if (speed := speed_of(cell, count))}


Speeds = Mapping[str, Mapping[str, Speed]]
"""By target and reward; what has not been run is left out."""


def speed_tables(speeds: Speeds, labels: Mapping[str, str], shaped: Sequence[str]) -> list[str]:
    """Steps, then how many times fewer than the best baseline's.

    Args:
        speeds: a column for each target.
        labels: what the rewards are called, a line for each.
        shaped: the rewards that are compared with the baselines.
    """
    header = ["reward", *speeds]
    steps = [[label, *(found.get(reward) for found in speeds.values())] for reward, label in labels.items()]
    ratios = [
        [labels[reward], *(_times_fewer(found, reward) for found in speeds.values())] for reward in shaped
    ]
    return [*markdown_table(header, steps), "", _ABOUT_RATIO, "", *markdown_table(header, ratios)]


def _times_fewer(speeds: Mapping[str, Speed], reward: str) -> str | None:
    ours, others = speeds.get(reward), [speeds[name] for name in BASELINES if name in speeds]
    if ours is None or not others:
        return None
    verdict = below_each(ours.steps, [other.steps for other in others]) or "no seed in common"
    best = min(other.interval.mean for other in others)
    return f"{best / ours.interval.mean:.2f} ({verdict})"


def curve_of(rows: list[Row], within: Range | None = None) -> Curve | None:
    """The mean over the seeds at each evaluation, from the rows of one metric; None without any."""
    steps = sorted({row["step"] for row in rows})
    return Curve.of({step: interval(rows, step=step, within=within) for step in steps}) if steps else None


def curves_of(cells: Mapping[str, list[Row]], within: Range | None = None) -> dict[str, Curve]:
    """The curve of each cell that has been run."""
    return {name: curve for name, cell in cells.items() if (curve := curve_of(cell, within))}
