"""Figure 3: the gap of every method over the number of transitions, d = 20."""

from matplotlib.figure import Figure

from lapwing.figures.gaps import NOTE, comparison, gap_panels, gap_tables
from lapwing.figures.grid import Row, Run
from lapwing.figures.methods import about_recipe, execute, method_runs
from lapwing.figures.study import Preset, Study

DIM = 20
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Every method, input and size."""
    return method_runs("fig3", preset, seeds, [DIM], SIZES)


def draw(rows: list[Row], preset: Preset) -> Figure:
    """One panel for each input."""
    return gap_panels(rows, preset, [DIM], SIZES)


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """Gaps and seconds of each input, and what they say about the methods."""
    lines = [*about_recipe(preset), "## How the methods compare", ""]
    return [*lines, *comparison(rows, DIM, SIZES), *gap_tables(rows, preset, DIM, SIZES)]


STUDY = Study(
    "fig3", "How near each method comes to the exact subspace, d = 20", runs, execute, draw, describe, NOTE
)
