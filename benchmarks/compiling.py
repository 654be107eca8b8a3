"""What a whole command spends on tracing, compiling and loading programs, in CPU seconds.

`python -m benchmarks.compiling learn …` runs the command as `lapwing` would and prints the seconds. They are
of the CPU, so that they are those of an idle core on a busy machine too: JAX's clocks are exchanged for it.
"""

import contextlib
import os
import sys
import time

time.time = time.perf_counter = time.monotonic = time.process_time  # before JAX is imported, which uses them

from lapwing.cli import main
from lapwing.timing import stopwatch

if __name__ == "__main__":
    with open(os.devnull, "w") as nowhere, stopwatch() as watch, contextlib.redirect_stdout(nowhere):
        main.main(sys.argv[1:])
    print(watch.compiling)
