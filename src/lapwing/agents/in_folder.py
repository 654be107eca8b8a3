"""Training an agent in a run folder: begun, gone on with, or found finished."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lapwing.representation import Representation
from lapwing.runs import RunFolder
from lapwing.settings import LearnSettings
from lapwing.sources import Source
from lapwing.targets import open_target
from lapwing.workflow import OnProgress, learn_target, run

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


def learned_in(
    folder: RunFolder | None, source: Source, recipe: LearnSettings, on_progress: OnProgress | None
) -> Representation:
    """φ learned for an agent; in its run folder, as a run of its own that can be gone on with."""
    if folder is None:
        return learn_target(open_target(source, recipe), recipe, on_progress=on_progress)[0]
    inner = folder.path / "representation"
    begun = (inner / "config.json").is_file()
    return run(source, recipe, inner, resume=begun, on_progress=on_progress).representation
