"""How long the first moments take; shown, not judged, for they depend on the disk."""

import subprocess
import sys
import time

from benchmarks.rows import Row


def seconds(*command: str) -> float:
    """The best of three."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times)


def measure() -> list[Row]:
    bare = seconds("-c", "pass")
    return [
        Row("import lapwing, s", seconds("-c", "import lapwing") - bare, note="without Python's own start"),
        Row("lapwing --help, s", seconds("-m", "lapwing", "--help")),
    ]
