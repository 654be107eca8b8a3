"""`lapwing learn` and `lapwing.learn`: learning a representation, in memory or in a run folder."""

import dataclasses
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lapwing._version import __version__
from lapwing.compilation import kept_programs
from lapwing.data.collect import Policy, Progress
from lapwing.data.experience import Experience
from lapwing.data.extent import extent_of
from lapwing.data.shards import is_sharded
from lapwing.data.source import DataFile, Source, describe, read_source, recall_to_collect
from lapwing.errors import ConfigError
from lapwing.laplacian import hosts
from lapwing.laplacian.choose import choose
from lapwing.laplacian.closed_form import Trial
from lapwing.laplacian.evaluate import evaluate
from lapwing.laplacian.learn import learn_resolved, learn_target
from lapwing.laplacian.objectives import Objective, check_own, name_of
from lapwing.laplacian.representation import Representation, load_representation
from lapwing.laplacian.target import Target, open_target
from lapwing.progress import OnProgress, uncounted, within
from lapwing.runs.folder import RunFolder
from lapwing.settings.learn import PRESETS, LearnSettings, ResolvedSettings
from lapwing.storage import write_bytes
from lapwing.timing import stopwatch

Result = TypeVar("Result")


class Outcome(NamedTuple):
    """What a run gives: the representation, its measures, and what it was learned from."""

    representation: Representation
    result: dict[str, Any]
    target: Target


@kept_programs()
def learn(
    target: str | Path | Source | Iterable[Any],
    *,
    objective: Any = "graph-drawing",
    policy: Policy | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
    **settings: Any,
) -> Representation:
    """Learn a Laplacian representation.

    Args:
        target: a maze (`"FourRoom"`, a text file), an .npz or HDF5 file or a folder of data, `"gym:ENV_ID"`,
            `"minari:NAME"`, `"ogbench:NAME"`, a Gymnasium environment or a vector of them, episodes as arrays
            of observations or dicts of arrays, or an `Experience`.
        objective: the objective: `"graph-drawing"`, `"generalised"`, `"allo"`, `"omm"`, `"nested"`, or your
            own object with the methods of `laplacian.objectives.Objective`.
        policy: a function from observations to actions, for a Gymnasium environment; None is random.
        out: a folder for configuration, metrics, checkpoints and the result; None writes no files.
        overwrite: replace the run in `out`.
        resume: resume the run in `out`.
        on_progress: called with (phase, done, all, metrics); see `lapwing.progress_bar()`.
        **settings: any field of `LearnSettings`, for instance `dim=10` or `preset="paper"`.

    Example:
        >>> import lapwing
        >>> rep = lapwing.learn("FourRoom", transitions=20_000, dim=5, steps=200)
        >>> rep.eigenfunctions([[0.0, 0.0], [0.5, -0.5]]).shape
        (2, 5)
    """
    chosen = LearnSettings.from_keywords(settings | {"objective": name_of(objective)})
    own = None if isinstance(objective, str) else objective
    if out is None:
        if overwrite or resume:
            raise ConfigError("overwrite and resume only work with out; name a run folder")
        source = read_source(target)
        if _is_of_job(source):
            _check_alike(hosts.agreed(lambda: describe(source)), chosen)
        opened = _open_in(None, source, chosen, policy, on_progress)
        return learn_target(opened, chosen, objective=own, on_progress=on_progress)
    return run(
        read_source(target),
        chosen,
        Path(out),
        objective=own,
        policy=policy,
        overwrite=overwrite,
        resume=resume,
        on_progress=on_progress,
    ).representation


@kept_programs()
def run(
    source: Source,
    settings: LearnSettings,
    out: Path,
    *,
    objective: Objective | None = None,
    policy: Policy | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Learn into a run folder, or resume the run that was interrupted there."""
    check_own(settings, objective)
    folder = RunFolder(out)
    sharded = _is_of_job(source)
    agreed, told_by_first = (hosts.agreed, hosts.told_by_first) if sharded else (_alone, _alone)
    with uncounted("opening", on_progress):
        described = agreed(lambda: describe(source, _collecting(on_progress)))
    config = {"target": described | _policy_named(policy), "settings": settings.as_json()}
    if sharded:
        _check_alike(described, settings)
        if not hosts.is_first():
            return _follow(source, settings, on_progress)
    with ExitStack() as held:
        opened = folder.opened(config, overwrite=overwrite, resume=resume)
        resumed = agreed(lambda: held.enter_context(opened))
        target = _open_in(folder if resumed else None, source, settings, policy, on_progress)

        def begin() -> dict[str, Any]:
            if resumed and folder.finished:
                return {}
            if not resumed:
                folder.begin(config | _as_collected(target))
            with uncounted("saving", on_progress):  # before trials, for to collect it again may take longer
                _keep_experience(folder, target)
            if "resolved" not in folder.config():
                with nullcontext() if resumed else folder.withdrawn_if_refused():
                    prepared = _prepared(settings, target, on_progress)
                folder.add_to_config(prepared)
            return folder.config()

        begun = told_by_first(begin)
        if not begun:
            if sharded:
                hosts.sent_by_first(folder.representation.read_bytes)
            return Outcome(load_representation(folder.representation), folder.result(), target)
        resolved = ResolvedSettings.from_json(begun["resolved"])
        tried = [Trial.from_json(trial) for trial in begun.get("tried", [])]
        representation, trained = learn_resolved(
            target, resolved, tried=tried, objective=objective, checkpoints=folder, on_progress=on_progress
        )
        representation.save(folder.representation)
        with uncounted("evaluating", on_progress):
            measures = evaluate(representation, target)
        result = measures | {
            "target": target.name,
            "states": target.n_states,
            "transitions": target.n_transitions,
            "steps": representation.config["settings"]["stop"],
            "learn_seconds": trained.learn_seconds,
            "compile_seconds": begun["compile_seconds"] + trained.compile_seconds,
            "prepare_seconds": begun["prepare_seconds"] + trained.prepare_seconds,
            "extent": begun.get("extent"),
            "ended_early": begun.get("ended_early", False),
            "surviving_dimensions": _last(folder.metrics(), "surviving_dimensions"),
            "eigenvalues_of_objective": representation.config.get("eigenvalues_of_objective"),
            "settings": representation.config["settings"],
            "run": str(out),
            "version": __version__,
        }
        folder.finish(result)
    return Outcome(representation, result, target)


def _alone(work: Callable[[], Result]) -> Result:
    """In place of `hosts.agreed`, where no other process learns with this one."""
    return work()


def _is_of_job(source: Source) -> bool:
    """Whether all processes of a job learn from it together: shards."""
    return isinstance(source, DataFile) and is_sharded(source.path)


def _check_alike(described: dict[str, Any], settings: LearnSettings) -> None:
    hosts.check_alike({"data": described["sha256"]} | settings.as_json())


def _follow(source: Source, settings: LearnSettings, on_progress: OnProgress | None) -> Outcome:
    """What a process does that is not the first: its part of every sum; it decides and writes nothing."""
    hosts.agreed(lambda: None)  # that the first process may write to its folder
    target = _open_in(None, source, settings, None, on_progress)
    begun = hosts.told_by_first(dict)
    if not begun:  # for the run was finished before
        with TemporaryDirectory() as name:
            file = Path(name) / RunFolder(Path(name)).representation.name
            write_bytes(file, hosts.sent_by_first(bytes))
            return Outcome(load_representation(file), {}, target)
    resolved = ResolvedSettings.from_json(begun["resolved"])
    tried = [Trial.from_json(trial) for trial in begun.get("tried", [])]
    representation, _ = learn_resolved(target, resolved, tried=tried, on_progress=on_progress)
    return Outcome(representation, {}, target)


def _prepared(settings: LearnSettings, target: Target, on_progress: OnProgress | None) -> dict[str, Any]:
    """The resolved settings, as JSON can hold them, and what resolving took."""
    with uncounted("preparing", on_progress), stopwatch() as watch:
        resolved, tried = choose(settings, target, on_trial=within("trying out", on_progress))
    return {
        "resolved": resolved.as_json(),
        "tried": [trial.as_json() for trial in tried],
        "prepare_seconds": watch.working,
        "compile_seconds": watch.compiling,
    }


def _as_collected(target: Target) -> dict[str, Any]:
    """What is known as data is collected alone: which part of the observation space it comes to.

    And whether most episodes ended before their time limit, as where the environment ends them at a goal.
    """
    if not target.bounds or target.experience is None:
        return {}
    lengths, extent = target.experience.lengths, extent_of(target.different_observations, target.bounds)
    early = {"ended_early": bool(np.median(lengths) < lengths.max())}
    return early if extent is None else early | {"extent": extent}


def reopen(out: Path, env: str | None = None, *, on_progress: OnProgress | None = None) -> Outcome:
    """A finished run, for `lapwing evaluate`: the representation, its measures anew, and its target.

    Args:
        out: the folder.
        env: the environment's name, if what was collected in it is gone and it is not a registered one.
        on_progress: called with (phase, done, all, metrics).
    """
    representation, target = reopen_target(out, env, on_progress)
    with uncounted("evaluating", on_progress):
        return Outcome(representation, RunFolder(out).result() | evaluate(representation, target), target)


def reopen_target(
    out: Path, env: str | None = None, on_progress: OnProgress | None = None
) -> tuple[Representation, Target]:
    """The representation of a finished run, and what it was learned from; arguments as for `reopen`."""
    folder = RunFolder(out)
    config = folder.config()
    if config.get("kind") == "agent":
        raise ConfigError(f"{out} holds an agent; its φ, if it has one, is in {out / 'representation'}")
    if config.get("kind") == "reacher":
        raise ConfigError(f"{out} holds a reacher; its φ is in {folder.representation}")
    if config.get("kind") == "options":
        raise ConfigError(f"{out} holds options, not a representation; name the run of lapwing learn")
    if not folder.finished:
        raise ConfigError(f"{out} holds an unfinished run; resume it with lapwing learn … --resume")
    representation = load_representation(folder.representation)
    settings = folder.settings(LearnSettings)
    if settings.wrap and not folder.experience.is_file():
        raise ConfigError(
            f"{folder.experience} is missing, and to collect it again would run the wrappers "
            f"{', '.join(settings.wrap)}, which only the run folder names; learn it again"
        )
    named = None if env is None else read_source(env)
    source = recall_to_collect(config["target"], folder.experience, named)
    if isinstance(source, Experience):  # it was collected by these settings, which do not apply to data
        names = ("transitions", "num_envs", "observation_key", "wrap", "past_termination")
        given = {name: getattr(PRESETS[settings.preset], name) for name in names}
        settings = dataclasses.replace(settings, **given)
    target = _open_in(folder, source, settings, None, on_progress)
    _keep_experience(folder, target)
    return representation, target


def _open_in(
    folder: RunFolder | None,
    source: Source,
    settings: LearnSettings,
    policy: Policy | None,
    on_progress: OnProgress | None,
) -> Target:
    """Open a target; what was collected for the run in `folder` is not collected again."""
    with uncounted("opening", on_progress):
        return open_target(
            source,
            settings,
            policy=policy,
            collected=folder and folder.experience,
            on_progress=_collecting(on_progress),
        )


def _collecting(on_progress: OnProgress | None) -> Progress | None:
    """What reports the progress of collecting, if anybody asks."""
    return on_progress and (lambda done, all_: on_progress("collecting", done, all_, {}))


def _policy_named(policy: Policy | None) -> dict[str, str]:
    """A function cannot be written down, but its name can."""
    return {} if policy is None else {"policy": getattr(policy, "__qualname__", type(policy).__qualname__)}


def _keep_experience(folder: RunFolder, target: Target) -> None:
    if target.experience is not None and target.file is None and not folder.experience.is_file():
        target.experience.save(folder.experience)


def _last(rows: list[dict[str, Any]], name: str) -> Any:
    """The value in the last row; a power cut may have taken the rows, which are not flushed to disk."""
    return rows[-1][name] if rows else None
