"""Comparing floats so that the outcome does not hang on a CPU's rounding."""

import numpy as np
import pytest


def to_rounding(expected, *summed, within: float = 1e-5):
    """Equal to `expected`, but for a part in 100,000 of the largest number among it and what was summed."""
    largest = max(float(np.max(np.abs(each))) for each in (expected, *summed))
    return pytest.approx(expected, rel=0, abs=within * largest)
