"""Torture: `python -m torture [PART ...] [--seconds N]` makes the tries that are missing, for so long."""

import importlib
import os
import sys
import time
import warnings

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false")
os.environ["MUJOCO_GL"] = "off"

from rich.console import Console

from lapwing.errors import LapwingWarning
from torture.tally import Tally, read_tallies, write_tallies

PARTS = (
    *(f"kills:{kind}" for kind in ("learn", "dqn", "ddpg", "reach", "reproduce", "hosts")),
    *("corruptions", "configurations:api", "configurations:command", "configurations:run"),
    *("malformed", "disk_full", "disk_full:hosts", "folders"),
    *(f"memory:{kind}" for kind in ("learn", "online", "steps")),
)


def main(words: list[str]) -> None:
    """Make the tries that are missing of the parts that are named, or of all."""
    console = Console(stderr=True)
    seconds = float(words[words.index("--seconds") + 1]) if "--seconds" in words else float("inf")
    named = [word for word in words if not word.startswith("--") and not word.replace(".", "").isdigit()]
    warnings.simplefilter("ignore", LapwingWarning)
    until, found = time.monotonic() + seconds, read_tallies()
    modules = {part: importlib.import_module(f"torture.{part.split(':')[0]}") for part in PARTS}
    wanted = {part: modules[part].TRIES[part] for part in PARTS}
    about = {part: modules[part].ABOUT[part] for part in PARTS}
    for part in PARTS:
        if named and not any(part == name or part.startswith(f"{name}:") for name in named):
            continue
        tally = found.setdefault(part, Tally())
        ordered = {name: found[name] for name in PARTS if name in found}
        if tally.tries >= wanted[part] or time.monotonic() > until:
            continue
        began = time.monotonic()
        for outcome in modules[part].attempts(part, tally):
            tally.add(outcome)
            if tally.tries >= wanted[part] or time.monotonic() > until:
                break
            if time.monotonic() - began > 10:
                write_tallies(ordered, wanted, about)
                began = time.monotonic()
        write_tallies(ordered, wanted, about)
        console.print(
            f"{part}: {tally.tries}, {tally.same} same, {tally.refused} refused, {len(tally.else_)} else"
        )
        for text in tally.else_[-3:]:
            console.print(f"  {text}", markup=False)
    raise SystemExit(any(tally.else_ for tally in found.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
