"""What a figure of the paper is to the runner: a grid of runs, how to do one, a drawing and a text."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from lapwing.figures.grid import Measured, Row, Run
from lapwing.progress import OnProgress

Preset = Literal["quick", "paper"]


@dataclass(frozen=True)
class Study:
    """One figure of the paper."""

    name: str
    title: str
    runs: Callable[[Preset, int], list[Run]]
    """The grid of a preset with a number of seeds."""
    execute: Callable[[Run, Path, OnProgress], Measured]
    """Does one run, with a folder for checkpoints; after an interruption it is called again and resumes."""
    draw: Callable[[list[Row], Preset], Figure]
    describe: Callable[[list[Row], Preset], list[str]]
    """The tables as lines of Markdown."""
    note: str = ""
    """How to read the numbers, for a figure that has runs."""
    borrows: tuple[str, ...] = ()
    """Figures whose tables may hold runs of this one."""
