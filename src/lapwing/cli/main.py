"""The command line: `lapwing learn`, `train` and the other commands of `cli.commands`.

Results go to standard output, everything else to standard error. A user error is one sentence and exit code
2.
"""

import importlib
import io
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from lapwing.cli.commands import COMMANDS
from lapwing.cli.first_checks import check_first
from lapwing.cli.flags import as_typed
from lapwing.cli.interrupts import interrupts_heeded, interrupts_held
from lapwing.cli.parse import parse
from lapwing.cli.start import INTERRUPTED
from lapwing.errors import LapwingError, LapwingNote, LapwingWarning


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 2 on a user's mistake."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a console or a pipe that has no φ gets a question mark
            stream.reconfigure(errors="replace")
    carry_out(lambda: _parsed_and_run(arguments))


def _parsed_and_run(arguments: list[str]) -> None:
    command = parse(arguments)
    check_first(command)
    _load()
    COMMANDS[type(command)](command)


def carry_out(work: Callable[[], None]) -> None:
    """Do what a command does, with warnings as lines, and a user's mistake as a sentence and exit code 2."""
    try:
        _show_warnings_as_lines()
        with interrupts_heeded():
            work()
    except LapwingError as error:
        print(f"lapwing: {as_typed(str(error))}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:  # a folder that is gone, unreadable, or whose name is too long
        print(f"lapwing: {error.filename or 'the system'}: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("lapwing: interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _load() -> None:
    """Import what is slow to import, on a terminal with a word that says so."""
    from lapwing.cli.progress import stderr_console

    console = stderr_console()
    with interrupts_held(), console.status("starting …") if console.is_terminal else nullcontext():
        importlib.import_module("lapwing.runs.learn")


def _show_warnings_as_lines() -> None:
    original = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, LapwingWarning):
            kind = "note" if issubclass(category, LapwingNote) else "warning"
            print(f"{kind}: {as_typed(str(message))}", file=sys.stderr)
        else:
            original(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    warnings.simplefilter("always", LapwingWarning)
