"""Run the benchmarks: `python -m benchmarks [four_room speed mazes startup] [--write]`."""

import os
import sys

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, for lapwing and its baselines alike
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import importlib
import platform
import time
import warnings
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row
from lapwing import __version__
from lapwing.errors import LapwingWarning

PARTS = ("four_room", "speed", "mazes", "startup")
WRITTEN = Path("results") / "core.md"


def main(arguments: list[str]) -> None:
    console = Console(stderr=True)
    warnings.simplefilter("ignore", LapwingWarning)
    unknown = set(arguments) - {*PARTS, "--write"}
    if unknown:
        raise SystemExit(f"unknown part {sorted(unknown)[0]!r}; there are {', '.join(PARTS)}")
    rows: list[Row] = []
    for part in [part for part in PARTS if part in arguments] or PARTS:
        began = time.perf_counter()
        with console.status(f"{part} …"):
            rows += importlib.import_module(f"benchmarks.{part}").measure()
        console.print(f"{part}: {time.perf_counter() - began:.0f} s")
    Console().print(_table(rows))
    if "--write" in arguments:
        WRITTEN.parent.mkdir(exist_ok=True)
        WRITTEN.write_text(_markdown(rows))
    raise SystemExit(any(row.met is False for row in rows))


def _table(rows: list[Row]) -> Table:
    table = Table(box=None)
    for column in ("claim", "measured", "wanted", "", "note"):
        table.add_column(column)
    for row in rows:
        mark = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row.met]
        table.add_row(row.claim, f"{row.value:.4g}", row.wanted, mark, row.note)
    return table


def _markdown(rows: list[Row]) -> str:
    lines = [
        "# The core, measured",
        "",
        f"lapwing {__version__}, Python {platform.python_version()}, one core. "
        "Made by `make bench ARGS=--write`; speeds are ratios within one run. "
        "The row on PyTorch is there where torch is installed.",
        "",
        "| claim | measured | wanted | note |",
        "|---|---|---|---|",
    ]
    for row in rows:
        missed = " **missed**" if row.met is False else ""
        lines.append(f"| {row.claim} | {row.value:.4g} | {row.wanted}{missed} | {row.note} |")
    return "\n".join(lines) + "\n"


main(sys.argv[1:])
