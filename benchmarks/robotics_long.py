"""The same mazes with ten times the steps, beside the network that is by far the better one at fewer."""

from benchmarks.others import NETWORKS
from benchmarks.robotics import STEPS, mazes
from benchmarks.rows import Row


def measure() -> list[Row]:
    return mazes(10 * STEPS, {"mlp": NETWORKS["mlp"]})
