"""How long the first moments take; imports are shown, not judged, for they depend on the disk."""

import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.rows import Row

LEARN = "learn PlaneFourRoom --estimator pairwise --steps 300 --transitions 20000 --json --out"


def seconds(*command: str) -> float:
    """The best of three."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times)


def compiling() -> list[float]:
    """What `lapwing learn` spends on compilation, with nothing kept on disk and then again."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"LAPWING_COMPILATION_CACHE": f"{folder}/compiled"}
        for name in ("first", "again"):
            command = [sys.executable, "-m", "lapwing", *LEARN.split(), f"{folder}/{name}"]
            done = subprocess.run(command, env=environment, capture_output=True, check=True)
            found.append(json.loads(done.stdout)["compile_seconds"])
    return found


def measure() -> list[Row]:
    bare = seconds("-c", "pass")
    first, again = compiling()
    return [
        Row("import lapwing, s", seconds("-c", "import lapwing") - bare, note="without Python's own start"),
        Row("lapwing --help, s", seconds("-m", "lapwing", "--help")),
        Row("compiling a network for PlaneFourRoom, s", first, 6, True),
        Row("… the next time", again, 1, True, "kept in the user's cache folder"),
    ]
