"""Training an agent in a run folder: begun, gone on with, or found finished."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lapwing.data.source import Source
from lapwing.errors import CheckpointError, DatasetError
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import open_target
from lapwing.progress import OnProgress
from lapwing.runs.folder import RunFolder
from lapwing.runs.learn import run
from lapwing.settings.learn import LearnSettings

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
        return learn_target(open_target(source, recipe), recipe, on_progress=on_progress)
    inner = RunFolder(folder.path / "representation")
    with _told_what_to_delete(inner):
        _check_whole(inner)
        return run(source, recipe, inner.path, resume=inner.begun, on_progress=on_progress).representation


def _check_whole(inner: RunFolder) -> None:
    """Refuse a run that has lost what it cannot go on without."""
    if inner.begun and not {"target", "settings", "resolved"} <= inner.config().keys():
        raise CheckpointError(f"{inner.path / 'config.json'} is damaged: it does not describe a run")
    if inner.finished and not inner.begun:
        raise CheckpointError(f"{inner.path} holds a run that has lost its config.json")
    if inner.finished and not inner.representation.is_file():
        raise CheckpointError(f"{inner.path} holds a finished run that has lost {inner.representation.name}")


@contextmanager
def _told_what_to_delete(inner: RunFolder) -> Iterator[None]:
    """Of a damaged run of φ, say how to go on: all that is in it can be made again, to the same bits."""
    try:
        yield
    except DatasetError as error:
        if str(inner.experience) not in str(error):
            raise
        raise DatasetError(f"{error}; delete that file, and --resume collects it again") from error
    except CheckpointError as error:
        raise CheckpointError(
            f"{error}; delete the folder {inner.path}, and --resume learns φ again"
        ) from error
