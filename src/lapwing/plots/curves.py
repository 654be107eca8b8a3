"""Curves with intervals, in panels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure


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
        axis.fill_between(curve.x, curve.low, curve.high, alpha=0.2, color=colours[label], lw=0)
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
