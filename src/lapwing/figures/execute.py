"""One run of a figure, executed by a worker."""

import tempfile
from pathlib import Path
from typing import Any

from lapwing.figures import find_study
from lapwing.figures.grid import Run
from lapwing.progress import OnProgress


def execute_run(run: dict[str, Any], folder: str, on_progress: OnProgress) -> dict[str, Any]:
    """The measures of a run, and the seconds that it took.

    Args:
        run: the fields of a `Run`.
        folder: where its checkpoints are kept. On a machine that does not share the disk with the one that
            keeps the table, they are in a temporary folder, and end with the run.
        on_progress: called now and then.
    """
    asked = Run(**run)
    study = find_study(asked.figure)
    if Path(folder).parent.is_dir():
        measured = study.execute(asked, Path(folder), on_progress)
    else:
        with tempfile.TemporaryDirectory() as here:
            measured = study.execute(asked, Path(here) / asked.key, on_progress)
    return {"measures": [list(measure) for measure in measured.measures], "seconds": measured.seconds}
