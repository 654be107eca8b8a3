"""Curves with intervals: in panels, or below maps."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator


@dataclass(frozen=True)
class Curve:
    """Means over x, with the interval of each."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]
    style: str = "o-"
    colour: str | None = None

    @classmethod
    def of(cls, cells: Mapping[Any, Any]) -> "Curve":
        """From x to anything with `mean`, `low` and `high`."""
        mean, low, high = (
            [getattr(cell, name) for cell in cells.values()] for name in ("mean", "low", "high")
        )
        return cls([float(x) for x in cells], mean, low, high)

    @classmethod
    def dotted(cls, values: Mapping[Any, float]) -> "Curve":
        """A line to compare with, without intervals."""
        means = [float(value) for value in values.values()]
        return cls([float(x) for x in values], means, means, means, ":", "black")


def colours_of(panels: Iterable[Mapping[str, Curve]]) -> dict[str, str]:
    """A colour for each label, the same in every panel."""
    labels = dict.fromkeys(label for curves in panels for label in curves)
    return {label: f"C{number}" for number, label in enumerate(labels)}


def draw_curves(axis, curves: Mapping[str, Curve], colours: Mapping[str, str]) -> dict[str, Any]:
    """Curves with shaded intervals; returns the lines by label."""
    lines = {}
    for label, curve in curves.items():
        (lines[label],) = axis.plot(curve.x, curve.mean, lw=1.4, color=colours[label])
        axis.fill_between(curve.x, curve.low, curve.high, alpha=0.13, color=colours[label], lw=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.2)
    return lines


def draw_panels(panels: dict[str, dict[str, Curve]], *, columns: int, x: str, y: str, least: float) -> Figure:
    """Curves with shaded intervals, all axes logarithmic, one legend for all panels.

    What lies below `least` is drawn at that height.
    """
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.0 * columns, 3.3 * rows + 0.9), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey="row")
    shown: dict[str, Any] = {}
    colours = colours_of(panels.values())
    for axis, (title, curves) in zip(axes.flat, panels.items(), strict=True):
        for label, curve in curves.items():
            colour = curve.colour or colours[label]
            mean, low, high = (np.maximum(values, least) for values in (curve.mean, curve.low, curve.high))
            (line,) = axis.plot(curve.x, mean, curve.style, ms=3.5, lw=1.4, color=colour)
            axis.fill_between(curve.x, low, high, alpha=0.2, color=colour, lw=0)
            shown.setdefault(label, line)
        axis.set(xscale="log", yscale="log", title=title)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)
    for axis in axes[-1]:
        axis.set_xlabel(x)
    for axis in axes[:, 0]:
        axis.set_ylabel(y)
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=3, frameon=False)
    return figure


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
        axis.xaxis.set_major_locator(MaxNLocator(4))  # more numbers of six digits would touch
    axes[-1, 0].set_ylabel(measure)
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=4, frameon=False)
    return figure
