"""Run the benchmarks: `python -m benchmarks [PART ...] [--write]`."""

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

FILES = {
    "core.md": ("The core, measured", ("four_room", "speed", "mazes", "startup")),
    "agents.md": ("Agents, measured", ("agents", "control")),
    "others.md": ("Data of others, measured", ("ogbench", "robotics", "planes", "arenas")),
    "library.md": ("Data in, φ out, measured", ("inputs", "outputs", "points")),
    "images.md": ("Images, measured", ("images",)),
    "distances.md": ("Distances, measured", ("distances",)),
    "rewards.md": ("Any reward, measured", ("rewards",)),
    "cartpole.md": ("CartPole by `lapwing.solve`, measured", ("cartpole",)),
    "linear.md": ("Policies that are linear in φ, measured", ("linear",)),
    "default_reward.md": ("The wrapper's default reward, measured", ("default_reward",)),
    "lap.md": ("The Laplacian baseline of zero-shot RL, measured", ("lap",)),
    "lap_reach.md": ("The Laplacian baseline behind `lapwing reach`, measured", ("lap_reach",)),
}
"""What --write puts where, if all the parts of a file were run."""
PARTS = tuple(part for _, parts in FILES.values() for part in parts)


def main(arguments: list[str]) -> None:
    console = Console(stderr=True)
    warnings.simplefilter("ignore", LapwingWarning)
    unknown = set(arguments) - {*PARTS, "--write"}
    if unknown:
        raise SystemExit(f"unknown part {sorted(unknown)[0]!r}; there are {', '.join(PARTS)}")
    measured: dict[str, list[Row]] = {}
    for part in [part for part in PARTS if part in arguments] or PARTS:
        began = time.perf_counter()
        with console.status(f"{part} …"):
            measured[part] = importlib.import_module(f"benchmarks.{part}").measure()
        console.print(f"{part}: {time.perf_counter() - began:.0f} s")
    rows = [row for part in measured.values() for row in part]
    Console().print(_table(rows))
    for name, (title, parts) in FILES.items():
        if "--write" in arguments and set(parts) <= measured.keys():
            chosen = [row for part in parts for row in measured[part]]
            (Path("results") / name).write_text(_markdown(title, parts, chosen))
    raise SystemExit(any(row.met is False for row in rows))


def _table(rows: list[Row]) -> Table:
    table = Table(box=None)
    for column in ("claim", "measured", "wanted", "", "note"):
        table.add_column(column)
    for row in rows:
        mark = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row.met]
        table.add_row(row.claim, f"{row.value:.4g}", row.wanted, mark, row.note)
    return table


def _markdown(title: str, parts: tuple[str, ...], rows: list[Row]) -> str:
    command = f"make bench ARGS='{' '.join(parts)} --write'"
    lines = [
        f"# {title}",
        "",
        f"lapwing {__version__}, Python {platform.python_version()}, one core. "
        f"Made by `{command}`; ratios of speeds are within one run. "
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
