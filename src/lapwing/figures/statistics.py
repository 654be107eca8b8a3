"""Intervals and tests over seeds, by Student's t; paired if runs share their seeds.

A t-interval covers 95 % if the values are normal, for any number of seeds from two on. Steps to a goal are
skewed, and a run that never reaches it counts with all its steps. They are not transformed, so that a mean of
steps stays one. Its interval then covers less: 91 % for log-normal steps with σ = 0.5. The paired differences
of such steps, which decide, have 94 %. Values that are all equal give a width of 0: these seeds agree, which
does not mean that every seed would.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
Range = tuple[float, float]
ANYTHING: Range = (-np.inf, np.inf)


@dataclass(frozen=True)
class Interval:
    """A mean over seeds and the bounds of its interval, which are NaN for one seed."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        """As a table shows it."""
        if self.count == 1:
            return f"{in_few_digits(self.mean)} (1 seed)"
        return f"{in_few_digits(self.mean)} [{in_few_digits(self.low)}, {in_few_digits(self.high)}]"


def mean_interval(
    values: Sequence[float], *, within: Range = ANYTHING, confidence: float = CONFIDENCE
) -> Interval:
    """The t-interval of the mean.

    Args:
        values: one for each seed.
        within: the range that the mean must lie in, to which the interval is cut; that costs no coverage.
        confidence: the share of such intervals that hold the true mean.

    Example:
        >>> str(mean_interval([1.0, 2.0, 3.0]))
        '2.00 [-0.48, 4.48]'
        >>> mean_interval([1.0, 1.0, 1.0])
        Interval(mean=1.0, low=1.0, high=1.0, count=3)
        >>> mean_interval([1.0])
        Interval(mean=1.0, low=nan, high=nan, count=1)
    """
    sample = np.asarray(values, np.float64)
    mean, count = float(sample.mean()), len(sample)
    if count == 1:
        return Interval(mean, np.nan, np.nan, 1)
    if np.ptp(sample) == 0:
        return Interval(float(sample[0]), float(sample[0]), float(sample[0]), count)
    half = half_width(sample, confidence)
    low, high = np.clip([mean - half, mean + half], *within)
    return Interval(mean, float(low), float(high), count)


def half_width(values: np.ndarray, confidence: float = CONFIDENCE) -> np.ndarray:
    """Half the width of the t-interval of the mean, along the last axis."""
    quantile = stats.t.ppf((1 + confidence) / 2, values.shape[-1] - 1)
    return np.asarray(quantile * stats.sem(values, axis=-1))


def paired_interval(
    first: Mapping[int, float], second: Mapping[int, float], *, confidence: float = CONFIDENCE
) -> Interval | None:
    """The t-interval of the mean difference, first less second, over the seeds of both; None without any.

    Example:
        >>> paired_interval({0: 3.0, 1: 5.0}, {1: 4.0, 0: 2.0, 2: 9.0})
        Interval(mean=1.0, low=1.0, high=1.0, count=2)
    """
    differences = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    return mean_interval(differences, confidence=confidence) if differences else None


Comparison = Literal["yes", "no", "level", "1 seed"]


def below_each(ours: Mapping[int, float], others: Sequence[Mapping[int, float]]) -> Comparison | None:
    """Whether a mean is below each of the others, by the paired 95 % intervals; None if one shares no seed.

    Returns:
        `yes` if every interval is below 0, `no` if any is above 0, else `level`; `1 seed` if one has a single
        seed.
    """
    differences = [paired_interval(ours, other) for other in others]
    found = [one for one in differences if one is not None]
    if not found or len(found) < len(differences):
        return None
    if any(one.count == 1 for one in found):
        return "1 seed"
    if all(one.high < 0 for one in found):
        return "yes"
    return "no" if any(one.low > 0 for one in found) else "level"


Verdict = Literal["equivalent", "different", "undecided"]


def equivalence(first: Mapping[int, float], second: Mapping[int, float], margin: float) -> Verdict:
    """Whether two means are the same up to `margin`, by two one-sided paired t-tests (TOST).

    Returns:
        `equivalent` if both tests, at 5 %, say that the difference is smaller than the margin (its 90 %
        interval lies within); else `different` if its 95 % interval leaves out 0; else `undecided`.
    """
    inner = paired_interval(first, second, confidence=1 - 2 * (1 - CONFIDENCE))
    outer = paired_interval(first, second)
    if inner is None or outer is None:
        return "undecided"
    if -margin < inner.low and inner.high < margin:
        return "equivalent"
    return "different" if outer.low > 0 or outer.high < 0 else "undecided"


def in_few_digits(value: float) -> str:
    """Two or three digits that matter; what is rounding error is 0.

    Example:
        >>> in_few_digits(12.345), in_few_digits(0.0004321), in_few_digits(1234.5)
        ('12.3', '0.00043', '1,234')
        >>> in_few_digits(-1e-15)
        '0'
    """
    size = abs(value)
    if size < 1e-6:
        return "0"
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.2g}"
