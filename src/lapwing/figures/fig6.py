"""Figure 6: as figure 3, with d = 50 and d = 100."""

from matplotlib.figure import Figure

from lapwing.figures.fig3 import NOTE, comparison, gap_panels, gap_tables
from lapwing.figures.grid import Row, Run
from lapwing.figures.methods import about_recipe, execute, method_runs
from lapwing.figures.study import Preset, Study

DIMS = (50, 100)
SIZES = (100, 1_000, 10_000, 100_000)


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Every method, input, size and dimension."""
    return method_runs("fig6", preset, seeds, DIMS, SIZES)


def draw(rows: list[Row], preset: Preset) -> Figure:
    """A row of panels for each dimension."""
    return gap_panels(rows, preset, DIMS, SIZES)


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """Gaps and seconds for each dimension and input."""
    lines = about_recipe(preset)
    for d in DIMS:
        lines += [f"## How the methods compare, d = {d}", "", *comparison(rows, d, SIZES)]
        lines += [*gap_tables(rows, preset, d, SIZES), ""]
    return lines[:-1]


STUDY = Study(
    "fig6",
    "How near each method comes to the exact subspace, d = 50 and 100",
    runs,
    execute,
    draw,
    describe,
    NOTE,
)
