"""gymnasium-robotics' point mazes with ten times the steps."""

from benchmarks.robotics import STEPS, mazes
from benchmarks.rows import Row


def measure() -> list[Row]:
    return mazes(10 * STEPS)
