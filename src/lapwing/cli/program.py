"""How this program is called, for hints that can be typed as they are printed."""

import os
import shutil
import sys
from pathlib import Path

NAME = "lapwing"


def program() -> str:
    """`lapwing` if the shell finds it; else the path that it was started by.

    `make demo` starts it from a virtual environment that is not activated.
    """
    started_by = Path(sys.argv[0])
    if shutil.which(NAME):
        return NAME
    if started_by.stem == NAME and started_by.is_file():
        return _nearer(started_by)
    if started_by.name == "__main__.py" and started_by.parent.name == NAME:
        return f"{_nearer(Path(sys.executable))} -m {NAME}"
    return NAME


def _nearer(path: Path) -> str:
    """From the working folder, where that is shorter."""
    return min(os.path.relpath(path), str(path), key=len)
