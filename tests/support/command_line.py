"""The command line, called in this process."""

import contextlib
import io
import re
import warnings
from pathlib import Path

from lapwing.cli.main import main


def called(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command line, in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else 1
    return code, out.getvalue(), unboxed(err.getvalue())


def unboxed(text: str) -> str:
    """What is written, without the frame that may be around it and the lines that it is broken into."""
    return " ".join(re.sub("[│─╭╮╰╯━╸]", " ", text).split())


def refused(*arguments: str | Path) -> str:
    """The message of a command that ends with 2, prints nothing else, and leaves nothing behind."""
    before = _found_here()
    code, out, err = called(*arguments)
    assert code == 2, err
    assert out == ""
    assert "Traceback" not in err
    assert _found_here() == before
    return err


def _found_here() -> set[Path]:
    """All that is in the working folder, but for bytecode; of hidden folders (.venv) the names alone."""
    found = set(Path.cwd().iterdir())
    folders = [path for path in found if path.is_dir() and not path.name.startswith(".")]
    every = found.union(*(folder.rglob("*") for folder in folders))
    return {path for path in every if "__pycache__" not in path.parts}
