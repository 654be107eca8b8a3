"""Rows of a table as curves with intervals, panel by panel."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from lapwing.experiments.grid import Row
from lapwing.experiments.representation import INPUTS, METHODS, data_floor, labels
from lapwing.experiments.study import Preset
from lapwing.experiments.tables import interval
from lapwing.plots import Curve, draw_panels

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
        curves["eigenvectors of the data"] = Curve.dashed(floors)
    return curves
