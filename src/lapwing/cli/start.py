"""Where the command line begins and, after Ctrl-C, ends; light, so that little is imported before."""

import os
import sys
from contextlib import suppress

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


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
