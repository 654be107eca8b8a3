"""Settings of runs that take about a second; their numbers matter to no test."""

SMALL = {"transitions": 5_000, "dim": 4, "steps": 60, "hidden": (32,), "fourier_features": 32}
"""Of FourRoom."""

TINY_PHI = {"transitions": 3_000, "steps": 20, "dim": 5, "hidden": (32,), "batch": 32}
"""Of an arena."""
