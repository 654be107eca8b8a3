"""Comparison of methods over the rows of a benchmark."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

LEAST = 1e-5
"""What is nearer to perfect is drawn here."""


def draw_shortfalls(rows: Sequence[str], values: Mapping[tuple[str, str], float], label: str) -> Figure:
    """A dot for each method in each row, on a logarithmic axis.

    Args:
        rows: names of the rows, from top to bottom.
        values: how far from perfect, by (row, method).
        label: what that is.
    """
    figure = Figure(figsize=(7.5, 0.36 * len(rows) + 1.6), layout="constrained")
    axis = figure.subplots()
    methods = list(dict.fromkeys(method for _, method in values))
    for method, marker in zip(methods, "oDsv^P*Xdh<>"[: len(methods)], strict=True):
        found = [
            (max(values[row, method], LEAST), place)
            for place, row in enumerate(rows)
            if (row, method) in values
        ]
        axis.plot(*zip(*found, strict=True), marker, label=method, alpha=0.75, ms=6)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xscale("log")
    axis.set_xlabel(label)
    axis.grid(axis="x", alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=8, ncols=3, loc="outside upper center")
    return figure
