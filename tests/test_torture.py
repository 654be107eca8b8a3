"""A few tries of the quick parts of `make torture`; the tests of each module have the others in short."""

import importlib
from itertools import islice

import pytest

from torture.tally import REFUSED, SAME, Tally


@pytest.mark.parametrize(("part", "tries"), [("configurations:command", 15), ("malformed", 16)])
@pytest.mark.filterwarnings("ignore")
def test_tries_end_well_or_in_a_sentence(part, tries):
    module = importlib.import_module(f"torture.{part.split(':')[0]}")
    outcomes = list(islice(module.attempts(part, Tally()), tries))
    assert set(outcomes) <= {SAME, REFUSED}
    assert REFUSED in outcomes
    assert module.TRIES[part] > tries


def test_a_tally_counts_what_went_wrong():
    tally = Tally()
    for outcome in (SAME, REFUSED, "a traceback", SAME):
        tally.add(outcome)
    assert (tally.tries, tally.same, tally.refused, tally.else_) == (4, 2, 1, ["a traceback"])
