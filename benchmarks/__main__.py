"""Run the benchmarks: `python -m benchmarks [PART ...] [--write]`, which puts each part into its file.

A part may have parts: `ogbench` is all of `ogbench:medium-navigate`, `ogbench:medium-stitch` and so on.
"""

import os
import sys

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, for lapwing and its baselines alike
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import importlib
import warnings
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import sections
from benchmarks.rows import Row
from lapwing.errors import LapwingWarning

FILES = {
    "core.md": ("The core, measured", ("four_room", "speed", "mazes", "startup")),
    "agents.md": ("Agents, measured", ("agents", "control")),
    "ant.md": ("The Ant, measured", ("ant", "walking", "longer_episodes", "whole_state")),
    "others.md": (
        "Data of others, measured",
        (
            *(
                f"ogbench:{size}-{kind}"
                for size in ("medium", "large", "giant")
                for kind in ("navigate", "stitch")
            ),
            "ogbench:noise",
            *(f"planes:{name}" for name in ("PlaneFourRoom", "PlaneHardMaze", "random-0", "random-1")),
            *(
                f"robotics:{size}:{key}:{steps}"
                for steps in ("50000", "500000")
                for size in ("UMaze", "Medium", "Large")
                for key in ("achieved_goal", "observation")
            ),
            *(f"classic:{name}" for name in ("MountainCar-v0", "Acrobot-v1", "Pendulum-v1", "CartPole-v1")),
            "classic:MiniGrid",
            *(f"arenas:{name}" for name in ("PointUMaze", "PointHookMaze", "AntUMaze")),
        ),
    ),
    "library.md": ("Data in, φ out, measured", ("inputs", "outputs", "points")),
    "images.md": ("Images, measured", ("images",)),
    "pixels.md": ("The paper's recipe on images, measured by how it is read", ("pixels",)),
    "distances.md": ("Distances, measured", ("distances",)),
    "rewards.md": ("Any reward, measured", ("rewards",)),
    "cartpole.md": ("CartPole by `lapwing.solve`, measured", ("cartpole",)),
    "linear.md": ("Policies that are linear in φ, measured", ("linear",)),
    "options.md": ("Options, measured", ("options", "option_discovery", "option_agents")),
    "default_reward.md": ("The wrapper's default reward, measured", ("default_reward",)),
    "ends.md": ("Episodes that end at the goal, measured", ("ends:follow", "ends:agents")),
    "hosts.md": ("Many hosts, measured", ("hosts:throughput", "hosts:stream", "hosts:ray")),
    "determinism.md": ("The same bits, measured", ("determinism",)),
    "lap.md": ("The Laplacian baseline of zero-shot RL, measured", ("lap",)),
    "reach.md": (
        "Any goal from random data, measured",
        (
            *(
                f"reach:random:{name}"
                for name in ("PointUMaze", "PointHookMaze", "PlaneHardMaze", "AntUMaze", "AntHookMaze")
            ),
            "reach:act:giant-stitch",
        ),
    ),
    "lap_reach.md": ("The Laplacian baseline behind `lapwing reach`, measured", ("lap_reach",)),
}
"""What --write puts where."""
PARTS = tuple(part for _, parts in FILES.values() for part in parts)
"""A module's name, and after colons what its `measure` is called with."""


def main(arguments: list[str]) -> None:
    console = Console(stderr=True)
    warnings.simplefilter("ignore", LapwingWarning)
    asked = [word for word in arguments if word != "--write"]
    chosen = [part for part in PARTS if not asked or any(_is_of(part, word) for word in asked)]
    unknown = [word for word in asked if not any(_is_of(part, word) for part in PARTS)]
    if unknown:
        modules = dict.fromkeys(part.split(":")[0] for part in PARTS)
        raise SystemExit(f"unknown part {unknown[0]!r}; there are {', '.join(modules)}")
    rows: list[Row] = []
    for part in chosen:
        began = _cpu_seconds()
        with console.status(f"{part} …"):
            module, *words = part.split(":")
            measured_by = importlib.import_module(f"benchmarks.{module}")
            found = measured_by.measure(*words)
        seconds = _cpu_seconds() - began
        console.print(f"{part}: {seconds:.0f} CPU seconds")
        if "--write" in arguments:
            _write(part, sections.section(part, found, seconds))
            if hasattr(measured_by, "write_docs"):
                measured_by.write_docs()
        rows += found
    Console().print(_table(rows))
    raise SystemExit(any(row.met is False for row in rows))


def _is_of(part: str, word: str) -> bool:
    """Whether a word names a part, or all parts that begin with it."""
    return part == word or part.startswith(f"{word}:")


def _write(part: str, text: str) -> None:
    name, (title, parts) = next((name, about) for name, about in FILES.items() if part in about[1])
    sections.write(Path("results") / name, title, parts, {part: text})


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _table(rows: list[Row]) -> Table:
    table = Table(box=None)
    for column in ("claim", "measured", "wanted", "", "note"):
        table.add_column(column)
    for row in rows:
        mark = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row.met]
        table.add_row(row.claim, f"{row.value:.4g}", row.wanted, mark, row.note)
    return table


main(sys.argv[1:])
