"""Figures 3 and 6: the gap of every method over the number of transitions; d = 20, and d = 50 and 100."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from lapwing.figures.grid import Preset, Row, Run, Study
from lapwing.figures.methods import INPUTS, METHODS, about_recipe, execute, labels, method_run
from lapwing.figures.statistics import Comparison, below_each
from lapwing.figures.tables import by_seed, interval, markdown_table, mean
from lapwing.plots import Curve, draw_panels

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


def gap_study(name: str, dims: Sequence[int], sizes: Sequence[int]) -> Study:
    """Every method, input, size and dimension."""

    def runs(preset: Preset, seeds: int) -> list[Run]:
        """Seed by seed, so that an early stop leaves whole figures."""
        return [
            method_run(name, preset, method, observation, n, d, seed)
            for seed in range(seeds)
            for d in dims
            for n in sizes
            for observation in INPUTS
            for method in METHODS
        ]

    def draw(rows: list[Row], preset: Preset) -> Figure:
        """The gap over n: a row of panels for each d, a column for each input."""
        panels = {
            f"{observation}, d = {d}": _gap_curves(rows, preset, observation, d, sizes)
            for d in dims
            for observation in INPUTS
        }
        return draw_panels(panels, columns=len(INPUTS), x="transitions n", y=GAP, least=LEAST_GAP)

    def describe(rows: list[Row], preset: Preset) -> list[str]:
        """For each d how the methods compare, then gaps and seconds of each input."""
        lines = about_recipe(preset)
        for d in dims:
            heading = "## How the methods compare" + (f", d = {d}" if len(dims) > 1 else "")
            lines += [heading, "", *comparison(rows, d, sizes), *gap_tables(rows, preset, d, sizes), ""]
        return lines[:-1]

    title = f"How near each method comes to the exact subspace, d = {' and '.join(map(str, dims))}"
    return Study(name, title, runs, execute, draw, describe, NOTE)


def _gap_curves(
    rows: list[Row], preset: Preset, observation: str, d: int, sizes: Sequence[int]
) -> dict[str, Curve]:
    curves = {}
    for method in METHODS:
        cell = {"metric": "gap", "method": method, "input": observation, "d": d}
        if found := {n: one for n in sizes if (one := interval(rows, n=n, **cell))}:
            curves[labels(preset)[method]] = Curve.of(found)
    floor = {"metric": "gap_floor", "method": "default", "input": observation, "d": d}
    if floors := {n: one for n in sizes if (one := mean(rows, n=n, **floor)) is not None}:
        curves["eigenvectors of the data"] = Curve.dotted(floors)
    return curves


def gap_tables(rows: list[Row], preset: Preset, d: int, sizes: Sequence[int]) -> list[str]:
    """For each input the gap of every method over n, then what the methods took."""
    lines: list[str] = []
    for observation in INPUTS:
        for what, cell in (("gap", _gap), ("seconds", _seconds)):
            lines += ["", f"### {observation}, d = {d}: {what}", ""]
            table = [[f"{n:,}", *(cell(rows, name, observation, n, d) for name in METHODS)] for n in sizes]
            lines += markdown_table(["n", *labels(preset).values()], table)
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


FIG3 = gap_study("fig3", (20,), SIZES)
FIG6 = gap_study("fig6", (50, 100), (100, 1_000, 10_000, 100_000))
