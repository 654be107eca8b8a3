"""Runs in a .csv, a line for each, written when it ends: what is interrupted resumes after the last."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lapwing.figures.statistics import mean_interval


class RunTable(NamedTuple):
    """The file, and its columns."""

    path: Path
    columns: Sequence[str]

    def read(self) -> list[dict[str, str]]:
        """The lines that are there."""
        if not self.path.exists():
            return []
        with self.path.open(newline="") as lines:
            return list(csv.DictReader(lines))

    def append(self, row: dict[str, Any]) -> None:
        """Add a line."""
        new = not self.path.exists()
        with self.path.open("a", newline="") as lines:
            writer = csv.DictWriter(lines, self.columns, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)


def outcome(curve: Sequence[float], seconds: float, version: str) -> dict[str, Any]:
    """What the line of a run says of it: the mean of its evaluations, the last, and all of them."""
    return {
        "score": round(float(np.mean(curve)), 4),
        "last": curve[-1],
        "curve": " ".join(f"{value:.2f}" for value in curve),
        "seconds": round(seconds, 1),
        "version": version,
    }


def share_interval(values: Sequence[float]) -> str:
    """A mean over seeds of shares, with half of its 95 % t-interval, as a cell of a table has it.

    Example:
        >>> share_interval([0.5, 0.6, 0.7])
        '.60 ± .25'
    """
    found = mean_interval(values)
    half = "" if found.count == 1 else f" ± {found.high - found.mean:.2f}".replace(" 0.", " .")
    return f"{found.mean:.2f}".removeprefix("0") + half


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def put_into(page: Path, name: str, text: str) -> None:
    """Put text between the two comments of a page that name it, in place of what is there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{page} has no comments {begin.strip()} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n\n{end}{after}")
