"""Training an agent in a run folder: begun, gone on with, or found finished."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lapwing.runs import RunFolder

Outcome = TypeVar("Outcome")
"""A named tuple with an `agent` and a `result`."""


def trained_in(
    out: Path,
    config: dict[str, Any],
    work: Callable[[RunFolder], Outcome],
    reopen: Callable[[Path], Outcome],
    *,
    overwrite: bool,
    resume: bool,
) -> Outcome:
    """What `work` gives, saved; or what an earlier start of the same run has finished.

    Args:
        out: the folder.
        config: what the run is.
        work: trains, with the folder for its checkpoints.
        reopen: reads a finished run.
        overwrite: replace the run that is there.
        resume: go on with it.
    """
    folder = RunFolder(out)
    with folder.opened(config, overwrite=overwrite, resume=resume) as goes_on:
        if goes_on and folder.finished:
            return reopen(out)
        if not goes_on:
            folder.begin(config)
        outcome: Any = work(folder)
        outcome = outcome._replace(result=outcome.result | {"run": str(out)})
        outcome.agent.save(folder.agent)
        folder.finish(outcome.result)
    return outcome
