"""What a whole command spends on tracing, compiling and loading programs, in CPU seconds.

`python -m benchmarks.compiling learn …` runs the command as `lapwing` would and prints the seconds. They are
of the CPU, so that they are those of an idle core on a busy machine too: JAX's clocks are exchanged for it.
"""

import contextlib
import importlib
import io
import sys
import time


def main() -> None:
    time.time = time.perf_counter = time.monotonic = time.process_time  # before JAX is imported
    command = importlib.import_module("lapwing.cli.main").main
    stopwatch = importlib.import_module("lapwing.timing").stopwatch
    with stopwatch() as watch, contextlib.redirect_stdout(io.StringIO()):
        command(sys.argv[1:])
    print(watch.compiling)


if __name__ == "__main__":
    main()
