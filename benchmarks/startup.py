"""How long the first moments take; imports are shown, not judged, for they depend on the disk."""

import os
import subprocess
import sys
import tempfile
import time

from benchmarks.rows import Row

LEARN = "learn PlaneFourRoom --transitions 20000 --json --out"
NETWORK = "--estimator pairwise --steps 300"


def seconds(*command: str) -> float:
    """The best of three."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times)


def compiling(*options: str) -> list[float]:
    """CPU seconds that `lapwing learn` spends on it, with nothing kept on disk and then again."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"LAPWING_COMPILATION_CACHE": f"{folder}/compiled"}
        for name in ("first", "again"):
            words = [*LEARN.split(), f"{folder}/{name}", *options]
            command = [sys.executable, "-m", "benchmarks.compiling", *words]
            done = subprocess.run(command, env=environment, capture_output=True, check=True)
            found.append(float(done.stdout))
    return found


def measure() -> list[Row]:
    bare = seconds("-c", "pass")
    first, again = compiling()
    first_network, again_network = compiling(*NETWORK.split())
    kept = "CPU seconds of the whole command; programs are kept in the user's cache folder"
    return [
        Row("import lapwing, s", seconds("-c", "import lapwing") - bare, note="without Python's own start"),
        Row("lapwing --help, s", seconds("-m", "lapwing", "--help")),
        Row("lapwing learn PlaneFourRoom: compiling, first, s", first, 6, True, "CPU seconds"),
        Row("… again on the same machine", again, 1, True, kept),
        Row("… a network: first", first_network, 6, True, NETWORK),
        Row("… again on the same machine", again_network, 1, True),
    ]
