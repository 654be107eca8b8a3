"""How soon agents learn, from their evaluations: steps, how many times fewer than the baselines', curves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lapwing.figures.grid import Row
from lapwing.figures.statistics import Interval, Range, below_each, mean_interval
from lapwing.figures.tables import interval, markdown_table, select
from lapwing.plots import Curve

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
