"""Intervals and tests over seeds: against SciPy's own, and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from lapwing.figures.statistics import (
    Interval,
    below_each,
    equivalence,
    half_width,
    in_few_digits,
    mean_interval,
    paired_interval,
)

DRAWS = 20_000
SEEDS = (3, 5, 10)


def seeds(*values: float) -> dict[int, float]:
    return {seed: float(value) for seed, value in enumerate(values)}


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.4, 0.7, 1.5], [3.0, 3.1, 9.0], [-2.0, 2.0]])
def test_the_interval_is_that_of_students_t(values):
    found = mean_interval(values)
    test = stats.ttest_1samp(values, 0.0)
    assert (found.mean, found.count) == (pytest.approx(np.mean(values)), len(values))
    assert (found.low, found.high) == pytest.approx(tuple(test.confidence_interval(0.95)))
    wider = mean_interval(values, confidence=0.99)
    assert (wider.low, wider.high) == pytest.approx(tuple(test.confidence_interval(0.99)))


@pytest.mark.parametrize("value", [0.0, 0.1, -11.358490566037736])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_equal_values_give_an_interval_without_width(value, count):
    assert mean_interval([value] * count) == Interval(value, value, value, count)


def test_one_value_has_no_interval():
    found = mean_interval([0.25])
    assert (found.mean, found.count) == (0.25, 1)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert str(found) == "0.25 (1 seed)"


def test_an_interval_is_cut_to_what_the_mean_can_be():
    assert mean_interval([0.8, 1.0], within=(0.0, 1.0)) == Interval(0.9, 0.0, 1.0, 2)
    assert mean_interval([1.0, 3.0], within=(0.0, np.inf)).high == mean_interval([1.0, 3.0]).high


def test_differences_are_paired_by_seed():
    first, second = {0: 5.0, 1: 9.0, 2: 1.0, 7: 99.0}, {2: 0.5, 1: 7.0, 0: 4.0, 8: -99.0}
    found = paired_interval(first, second)
    expected = stats.ttest_rel([5.0, 9.0, 1.0], [4.0, 7.0, 0.5]).confidence_interval()
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    assert found.count == 3


def test_without_a_seed_in_common_there_is_no_difference():
    assert paired_interval({0: 1.0}, {1: 2.0}) is None
    assert paired_interval({}, {}) is None


OTHERS = (seeds(4, 6, 8), seeds(5, 5, 5))


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (seeds(1, 2, 3), "yes"),
        (seeds(5, 7, 9), "no"),
        (seeds(4, 5, 7), "level"),
        (seeds(4, 6, 8), "level"),
        (seeds(1), "1 seed"),
        ({5: 1.0}, None),
        ({}, None),
    ],
)
def test_a_mean_is_below_each_other_if_every_interval_says_so(ours, verdict):
    """5, 7, 9 is above 4, 6, 8 by 1 on each seed, though not surely above 5."""
    assert below_each(ours, OTHERS) == verdict


def test_without_others_there_is_no_verdict():
    assert below_each(seeds(1, 2), []) is None


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (seeds(1, 1, 1), seeds(1, 1, 1), "equivalent"),
        (seeds(1.0, 0.9, 0.8), seeds(1.01, 0.9, 0.79), "equivalent"),
        (seeds(1.0, 0.9, 0.8), seeds(0.99, 0.89, 0.79), "equivalent"),
        (seeds(0.9, 0.8, 0.7), seeds(0.5, 0.41, 0.29), "different"),
        (seeds(0.5, 0.41, 0.29), seeds(0.9, 0.8, 0.7), "different"),
        (seeds(0.5, 0.5), seeds(0.4375, 0.4375), "different"),
        (seeds(0.5, 1.0, 0.7), seeds(0.9, 0.6, 0.7), "undecided"),
        (seeds(0.5), seeds(0.5), "undecided"),
        ({0: 0.5}, {1: 0.5}, "undecided"),
    ],
)
def test_verdicts_of_equivalence(first, second, verdict):
    """A difference as large as the margin is not within it."""
    assert equivalence(first, second, 0.0625) == verdict


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6, 0.9])
def test_equivalence_is_that_of_two_one_sided_tests(shift):
    generator = np.random.default_rng(0)
    for _ in range(50):
        first, second = generator.normal([[shift], [0.0]], 0.5, (2, 5))
        one = stats.ttest_rel(first, second - 1.0, alternative="greater").pvalue
        other = stats.ttest_rel(first, second + 1.0, alternative="less").pvalue
        found = equivalence(seeds(*first), seeds(*second), 1.0)
        assert (found == "equivalent") == (max(one, other) < 0.05)


def covered(draws: np.ndarray, mean: float, confidence: float = 0.95) -> float:
    """The share of intervals, one of each row, that hold the true mean."""
    return float(np.mean(np.abs(draws.mean(axis=-1) - mean) <= half_width(draws, confidence)))


def log_normal(generator: np.random.Generator, count: int, median: float = 1.0) -> np.ndarray:
    """Skewed as steps to a goal are; σ = 0.5, so that one in twenty takes more than twice the median."""
    return median * generator.lognormal(0.0, 0.5, (DRAWS, count))


LOG_NORMAL_MEAN = math.exp(0.125)


@pytest.mark.parametrize("count", SEEDS)
def test_intervals_of_normal_values_cover_95_percent(count):
    """An error of 1 % would be six times what chance allows."""
    generator = np.random.default_rng(count)
    ours, theirs = generator.normal(3.0, 2.0, (2, DRAWS, count))
    shared = generator.normal(0.0, 5.0, (DRAWS, count))  # what a seed does to both
    assert covered(ours, 3.0) == pytest.approx(0.95, abs=0.01)
    assert covered((ours + shared) - (theirs + shared), 0.0) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("count", SEEDS)
def test_paired_differences_of_skewed_values_are_covered_by_93_percent(count):
    generator = np.random.default_rng(count)
    ours, theirs = log_normal(generator, count), log_normal(generator, count, median=2.0)
    assert covered(ours - theirs, -LOG_NORMAL_MEAN) > 0.93
    capped = [np.minimum(draws, 3.0) for draws in (ours, theirs)]  # some never get there
    assert covered(capped[0] - capped[1], capped[0].mean() - capped[1].mean()) > 0.93


@pytest.mark.parametrize("count", SEEDS)
def test_means_of_skewed_values_are_covered_by_91_percent(count):
    """Less than is written above the tables: they say how far a few skewed values can be trusted, no more."""
    draws = log_normal(np.random.default_rng(count), count)
    assert 0.91 < covered(draws, LOG_NORMAL_MEAN) < 0.93


@pytest.mark.parametrize("count", SEEDS)
def test_a_difference_of_the_margin_is_called_equivalent_in_at_most_5_percent(count):
    """At the margin the 90 % interval lies within for one in twenty, for the other bound is far away."""
    draws = np.random.default_rng(count).normal(1.0, 0.2, (DRAWS, count))
    within = np.abs(draws.mean(axis=-1)) + half_width(draws, 0.9) < 1.0
    assert np.mean(within) == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-1e-15, "0"),
        (1234.5, "1,234"),
        (99.94, "99.9"),
        (1.0, "1.00"),
        (0.56789, "0.57"),
        (0.0004321, "0.00043"),
        (-12.34, "-12.3"),
        (0.00001234, "1.2e-05"),
        (math.nan, "nan"),
    ],
)
def test_numbers_have_the_digits_that_matter(value, text):
    assert in_few_digits(value) == text


def test_an_interval_is_shown_behind_its_mean():
    assert str(Interval(0.25, 0.125, 0.5, 5)) == "0.25 [0.12, 0.5]"
