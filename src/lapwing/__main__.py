"""The command line, of which `python -m lapwing` is another name."""

import os
import sys
from contextlib import suppress

INTERRUPTED = 130


def main() -> None:
    """Run it; Ctrl-C ends it at once, also while it is still being imported."""
    try:
        from lapwing.cli.main import main

        main()
    except KeyboardInterrupt:
        print("lapwing: interrupted", file=sys.stderr)
        _end_at_once()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _end_at_once()
        raise


def _end_at_once() -> None:
    """End without taking Python down step by step, which XLA may crash of where it is still computing."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
