"""Figure 3: the gap of every method over the number of transitions, d = 20."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from lapwing.figures.grid import Row, Run
from lapwing.figures.methods import INPUTS, METHODS, about_recipe, execute, labels, method_runs
from lapwing.figures.statistics import Comparison, below_each
from lapwing.figures.study import Preset, Study
from lapwing.figures.tables import by_seed, interval, markdown_table, mean
from lapwing.plots import Curve, draw_panels

DIM = 20
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
BASELINES = ("transitions-2017", "successor-2018")
_ABOUT_BASELINES = (
    "Baselines here: transitions as sampled (2017) and successor features (2018). Judged by the 95 % "
    "t-intervals of the paired differences (same data): yes if both are below 0, no if any is above 0, else "
    "level. Stacking each distinct transition once is left out: it uses that all moves are equally likely."
)
NOTE = "a gap of 0 is exact. Seconds are of one core, compilation taken off"
GAP = "objective gap (lower is better)"
LEAST_GAP = 1e-3
"""Gaps below this are drawn at this height: they are as good as none."""


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


def gap_panels(rows: list[Row], preset: Preset, dims: Sequence[int], sizes: Sequence[int]) -> Figure:
    """The gap over n: a row of panels for each d, a column for each input."""
    panels = {
        f"{observation}, d = {d}": _gap_curves(rows, preset, observation, d, sizes)
        for d in dims
        for observation in INPUTS
    }
    return draw_panels(panels, columns=len(INPUTS), x="transitions n", y=GAP, least=LEAST_GAP)


def _gap_curves(
    rows: list[Row], preset: Preset, observation: str, d: int, sizes: Sequence[int]
) -> dict[str, Curve]:
    curves = {}
    for method in METHODS:
        cell = {"metric": "gap", "method": method, "input": observation, "d": d}
        if found := {n: one for n in sizes if (one := interval(rows, n=n, **cell))}:
            curves[labels(preset)[method]] = Curve.of(found)
    floors = {n: floor for n in sizes if (floor := data_floor(rows, observation, n, d)) is not None}
    if floors:
        curves["eigenvectors of the data"] = Curve.dotted(floors)
    return curves


def gap_tables(rows: list[Row], preset: Preset, d: int, sizes: Sequence[int]) -> list[str]:
    """For each input the gap of every method over n, then what the methods took."""
    lines: list[str] = []
    for observation in INPUTS:
        lines += ["", f"### {observation}, d = {d}: gap", ""]
        cells = [[f"{n:,}", *(_gap(rows, method, observation, n, d) for method in METHODS)] for n in sizes]
        lines += markdown_table(["n", *labels(preset).values()], cells)
        lines += ["", f"### {observation}, d = {d}: seconds", ""]
        cells = [
            [f"{n:,}", *(_seconds(rows, method, observation, n, d) for method in METHODS)] for n in sizes
        ]
        lines += markdown_table(["n", *labels(preset).values()], cells)
    return lines


def comparison(rows: list[Row], d: int, sizes: Sequence[int]) -> list[str]:
    """In each cell: are ours below both baselines, and how does the default stand to graph drawing?"""
    header = ["input", "n", "graph drawing below both baselines", "default below both baselines"]
    header += ["default / graph drawing: gap", "default / graph drawing: seconds"]
    lines = []
    for observation in INPUTS:
        for n in sizes:
            cell = {"input": observation, "n": n, "d": d, "metric": "gap"}
            ratios = [_ratio(rows, column, cell) for column in ("value", "seconds")]
            ours = [_below(rows, method, cell) for method in ("graph-drawing", "default")]
            lines.append([observation, f"{n:,}", *ours, *ratios])
    return [_ABOUT_BASELINES, "", *markdown_table(header, lines)]


def _gap(rows: list[Row], method: str, observation: str, n: int, d: int) -> str | None:
    cell = {"method": method, "input": observation, "n": n, "d": d}
    found, rank = interval(rows, metric="gap", **cell), mean(rows, metric="rank", **cell)
    if found is None or rank is None:
        return None
    return f"{found}" + (f" (rank {rank:.0f})" if rank < d - 0.5 else "")


def _seconds(rows: list[Row], method: str, observation: str, n: int, d: int) -> str | None:
    found = mean(rows, "seconds", metric="gap", method=method, input=observation, n=n, d=d)
    return None if found is None else f"{found:.2f}" if found < 10 else f"{found:.0f}"


def _below(rows: list[Row], method: str, cell: dict[str, Any]) -> Comparison | None:
    ours, *others = (by_seed(rows, method=name, **cell) for name in (method, *BASELINES))
    return below_each(ours, others)


def _ratio(rows: list[Row], column: str, cell: dict[str, Any]) -> str | None:
    default, ours = (mean(rows, column, method=method, **cell) for method in ("default", "graph-drawing"))
    return None if default is None or ours is None else f"{default / ours:.3g}"


def data_floor(rows: list[Row], observation: str, n: int, d: int) -> float | None:
    """The mean gap of the exact eigenvectors of the data itself."""
    return mean(rows, metric="gap_floor", method="default", input=observation, n=n, d=d)


STUDY = Study(
    "fig3", "How near each method comes to the exact subspace, d = 20", runs, execute, draw, describe, NOTE
)
