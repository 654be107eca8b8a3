"""A figure of columns: maps above, curves over the steps below, one legend for all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from lapwing.plots.curves import Curve, colours_of, draw_curves


@dataclass(frozen=True)
class Column:
    """One maze or arena."""

    maps: dict[str, Callable[[Any], Any]]
    """By title: draws on an axis and returns the image."""
    curves: dict[str, Curve]
    best: float
    """Where a dotted line is drawn."""


def draw_columns(
    columns: Mapping[str, Column], *, measure: str, best: str, limits: tuple[float, float] | None = None
) -> Figure:
    """Maps and curves of each column.

    Args:
        columns: by title.
        measure: what the curves show.
        best: what the dotted lines are.
        limits: of the curves' axes.
    """
    maps = max((len(column.maps) for column in columns.values()), default=0)
    count = max(len(columns), 1)
    figure = Figure(figsize=(4.4 * count, 3.1 * maps + 4.4), layout="constrained")
    axes: Any = figure.subplots(maps + 1, count, squeeze=False, height_ratios=[*[1.0] * maps, 1.15])
    shown: dict[str, Any] = {}
    colours = colours_of(column.curves for column in columns.values())
    for place, (name, column) in enumerate(columns.items()):
        for axis in axes[:-1, place]:
            axis.set_axis_off()
        for axis, (title, draw) in zip(axes[:-1, place], column.maps.items(), strict=False):
            image = draw(axis)
            axis.set_title(f"{name}: {title}", fontsize=9)
            figure.colorbar(image, ax=axis, shrink=0.8)
        axis = axes[-1, place]
        for label, line in draw_curves(axis, column.curves, colours).items():
            shown.setdefault(label, line)
        shown.setdefault(best, axis.axhline(column.best, color="black", ls=":", lw=1))
        axis.set(title=name, xlabel="step", ylim=limits)
    axes[-1, 0].set_ylabel(measure)
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=4, frameon=False)
    return figure
