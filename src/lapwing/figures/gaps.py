"""The gap of every method, in tables and in curves."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from lapwing.figures.grid import Row
from lapwing.figures.methods import INPUTS, METHODS, labels
from lapwing.figures.study import Preset
from lapwing.figures.tables import difference, interval, markdown_table
from lapwing.plots import Curve, draw_panels

BASELINES = ("transitions-2017", "successor-2018")
_ABOUT_BASELINES = (
    "Baselines here: transitions as sampled (2017) and successor features (2018). Judged by the differences "
    "on the same data, seed by seed: yes or no if their 95 % interval leaves out 0, else level. Stacking "
    "each distinct transition once is left out: it uses that all moves are equally likely."
)
NOTE = "a gap of 0 is exact. Seconds are of one core, compilation taken off"
LEAST_GAP = 1e-3
"""Gaps below this are drawn at this height: they are as good as none."""


def gap_panels(rows: list[Row], preset: Preset, dims: Sequence[int], sizes: Sequence[int]) -> Figure:
    """The gap over n: a row of panels for each d, a column for each input."""
    panels = {
        f"{observation}, d = {d}": _gap_curves(rows, preset, observation, d, sizes)
        for d in dims
        for observation in INPUTS
    }
    return draw_panels(
        panels, columns=len(INPUTS), x="transitions n", y="objective gap (lower is better)", least=LEAST_GAP
    )


def beta_panels(
    rows: list[Row], preset: Preset, methods: Sequence[str], dims: Sequence[int], betas: Sequence[float]
) -> Figure:
    """The gap over β, a panel for each d."""
    panels = {}
    for d in dims:
        cells = {
            method: {
                beta: found
                for beta in betas
                if (found := interval(rows, metric="gap", method=method, d=d, beta=beta))
            }
            for method in methods
        }
        panels[f"d = {d}"] = {
            labels(preset)[method]: Curve.of(found) for method, found in cells.items() if found
        }
    return draw_panels(
        panels, columns=len(panels), x="β", y="objective gap (lower is better)", least=LEAST_GAP
    )


def _gap_curves(
    rows: list[Row], preset: Preset, observation: str, d: int, sizes: Sequence[int]
) -> dict[str, Curve]:
    curves = {}
    for method in METHODS:
        found = {
            n: cell
            for n in sizes
            if (cell := interval(rows, metric="gap", method=method, input=observation, n=n, d=d))
        }
        if found:
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
    found = interval(rows, metric="gap", method=method, input=observation, n=n, d=d)
    if found is None:
        return None
    rank = interval(rows, metric="rank", method=method, input=observation, n=n, d=d)
    assert rank is not None
    return f"{found}" + (f" (rank {rank.mean:.0f})" if rank.mean < d - 0.5 else "")


def _seconds(rows: list[Row], method: str, observation: str, n: int, d: int) -> str | None:
    found = interval(rows, "seconds", metric="gap", method=method, input=observation, n=n, d=d)
    return None if found is None else f"{found.mean:.2f}" if found.mean < 10 else f"{found.mean:.0f}"


def _below(rows: list[Row], method: str, cell: dict[str, Any]) -> str | None:
    """Whether a method is below both baselines, judged by its differences on the same data."""
    differences = [
        difference(rows, cell | {"method": method}, cell | {"method": baseline}) for baseline in BASELINES
    ]
    found = [each for each in differences if each is not None]
    if len(found) < len(BASELINES):
        return None
    if all(each.high < 0 for each in found):
        return "yes"
    return "**no**" if any(each.low > 0 for each in found) else "level"


def _ratio(rows: list[Row], column: str, cell: dict[str, Any]) -> str | None:
    default, ours = (interval(rows, column, method=method, **cell) for method in ("default", "graph-drawing"))
    return None if default is None or ours is None else f"{default.mean / ours.mean:.3g}"


def data_floor(rows: list[Row], observation: str, n: int, d: int) -> float | None:
    """The gap of the exact eigenvectors of the data itself, in the mean."""
    found = interval(rows, metric="gap_floor", method="default", input=observation, n=n, d=d)
    return None if found is None else found.mean
