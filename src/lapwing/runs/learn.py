"""From a target to a learned, evaluated and saved representation: `lapwing learn`, `lapwing.learn`."""

import dataclasses
import platform
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from lapwing import storage
from lapwing._version import __version__
from lapwing.data.collect import Policy
from lapwing.data.experience import Experience
from lapwing.data.source import Source, describe, read_source, recall
from lapwing.errors import ConfigError, LapwingWarning
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.evaluate import evaluate
from lapwing.laplacian.representation import Representation, embed_batch, load_representation, mean_distance
from lapwing.laplacian.ritz import (
    as_learned,
    moments_of_chain,
    moments_of_experience,
    rayleigh_ritz,
    with_fixed_signs,
)
from lapwing.laplacian.step_size import step_size
from lapwing.laplacian.target import Target, open_target
from lapwing.laplacian.train import OnChunk, Trained, train
from lapwing.runs.folder import RunFolder
from lapwing.settings.learn import PRESETS, LearnSettings, ResolvedSettings
from lapwing.timing import stopwatch

OnProgress = Callable[[str, int, int, dict[str, float]], None]
REFERENCE_STATES = 512
OVER_FITTED = 0.1
"""By how much eigenvalues may be larger on episodes that were not learned from."""
MOST_PAIRS = 300_000
"""So many pairs of each part tell eigenfunctions apart."""


class Outcome(NamedTuple):
    """What a run gives: the representation, its measures, and what it was learned from."""

    representation: Representation
    result: dict[str, Any]
    target: Target


def learn(
    target: str | Path | Source | Iterable[Any],
    *,
    policy: Policy | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
    **settings: Any,
) -> Representation:
    """Learn a Laplacian representation.

    Args:
        target: a maze (`"FourRoom"`, a text file), an .npz file or a folder of data, `"gym:ENV_ID"`,
            `"minari:NAME"`, a Gymnasium environment or a vector of them, episodes as arrays of observations,
            or an `Experience`.
        policy: what acts in a Gymnasium environment: a function from observations to actions; None is random.
        out: a folder for configuration, metrics, checkpoints and the result; None writes nothing.
        overwrite: replace the run in `out`.
        resume: go on with the run in `out`.
        on_progress: called with (phase, done, all, metrics); `lapwing.progress_bar()` gives one that draws.
        **settings: any field of `LearnSettings`, for instance `dim=10` or `preset="paper"`.

    Example:
        >>> import lapwing
        >>> rep = lapwing.learn("FourRoom", transitions=20_000, dim=5, steps=200)
        >>> rep.eigenfunctions(np.zeros((3, 2))).shape
        (3, 5)
    """
    chosen = LearnSettings.from_keywords(settings)
    if out is None:
        if overwrite or resume:
            raise ConfigError("overwrite and resume go with out; name a run folder")
        opened = _open_in(None, read_source(target), chosen, policy, on_progress)
        return learn_target(opened, chosen, on_progress=on_progress)[0]
    return run(
        target,
        chosen,
        Path(out),
        policy=policy,
        overwrite=overwrite,
        resume=resume,
        on_progress=on_progress,
    ).representation


def run(
    source: str | Path | Source | Iterable[Any],
    settings: LearnSettings,
    out: Path,
    *,
    policy: Policy | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Learn into a run folder, or go on with what an interrupted run left there."""
    folder = RunFolder(out)
    source = read_source(source)
    config = {"target": describe(source) | _policy_named(policy), "settings": settings.as_json()}
    with folder.opened(config, overwrite=overwrite, resume=resume) as going_on:
        target = _open_in(folder if going_on else None, source, settings, policy, on_progress)
        if going_on and folder.finished:
            return Outcome(load_representation(folder.representation), folder.result(), target)
        if not going_on:
            with _phase("preparing", on_progress), stopwatch() as watch:
                resolved = resolve(settings, target, on_trial=_named("trying out", on_progress))
            prepared = {
                "resolved": resolved.as_json(),
                "prepare_seconds": watch.working,
                "compile_seconds": watch.compiling,
            }
            folder.begin(config | prepared)
        begun = folder.config()
        resolved = ResolvedSettings.from_json(begun["resolved"])
        _keep_experience(folder, target)
        representation, trained = _learn(target, resolved, folder, on_progress)
        representation.save(folder.representation)
        with _phase("evaluating", on_progress):
            measures = evaluate(representation, target)
        result = measures | {
            "target": target.name,
            "states": target.n_states,
            "transitions": target.experience.n_transitions if target.experience else None,
            "steps": representation.config["settings"]["stop"],
            "learn_seconds": trained.learn_seconds,
            "compile_seconds": begun["compile_seconds"] + trained.compile_seconds,
            "prepare_seconds": begun["prepare_seconds"] + trained.prepare_seconds,
            "surviving_dimensions": _last(folder.metrics(), "surviving_dimensions"),
            "settings": representation.config["settings"],
            "run": str(out),
            "version": __version__,
        }
        folder.finish(result)
    return Outcome(representation, result, target)


def learn_target(
    target: Target, settings: LearnSettings, *, on_progress: OnProgress | None = None
) -> tuple[Representation, Trained]:
    """Resolve the settings, train, and turn the learned subspace to eigenfunctions; nothing is written."""
    resolved = resolve(settings, target, on_trial=_named("trying out", on_progress))
    return _learn(target, resolved, None, on_progress)


def _learn(
    target: Target, settings: ResolvedSettings, folder: RunFolder | None, on_progress: OnProgress | None
) -> tuple[Representation, Trained]:
    trained = train(
        target,
        settings,
        checkpoints=folder,
        on_chunk=_named("learning", on_progress),
    )
    return represent(target, settings, trained), trained


def represent(target: Target, settings: ResolvedSettings, trained: Trained) -> Representation:
    """The trained encoder with its eigenfunctions, told apart over the data."""
    embed = partial(embed_batch, trained.encoder)
    if target.states is not None:
        moments = moments_of_chain(target.one_step, embed(target.states))
    elif target.held_out:
        moments = _moments_to_trust(target, embed, settings.dim)
    else:
        moments = moments_of_experience(target.learned_from, embed)
    phi = embed(target.some_observations(REFERENCE_STATES, settings.seed))
    solve = rayleigh_ritz if settings.rotate else as_learned
    ritz = with_fixed_signs(solve(*moments, settings.dim), phi)
    if len(ritz.eigenvalues) < settings.dim:
        warnings.warn(
            f"only {len(ritz.eigenvalues)} of {settings.dim} eigenfunctions could be learned: the other "
            "dimensions vanished; raise beta, lower the learning rate, or ask for fewer",
            LapwingWarning,
            stacklevel=3,
        )
    coefficients = ritz.coefficients.astype(np.float32)
    representation = Representation(
        encoder=trained.encoder,
        spec=trained.spec,
        eigenvalues=ritz.eigenvalues,
        coefficients=coefficients,
        reference=(phi @ coefficients[1:] + coefficients[0]).astype(np.float32),
        soft_distance=mean_distance(phi),
        config={
            "target": target.name,
            "maze": target.world.maze.text if target.world else None,
            "arena": target.arena.description() if target.arena else None,
            "settings": settings.as_json(),
            "rank": ritz.rank,
            "provenance": _provenance(target),
        },
    )
    representation.config["step"] = step_size(representation, target, settings.seed)
    return representation


def _moments_to_trust(
    target: Target, embed: Callable[[np.ndarray], np.ndarray], dim: int
) -> tuple[np.ndarray, np.ndarray]:
    """The moments over all episodes, which say most; over those kept apart, if the others are over-fitted.

    φ that was fitted to chance looks smoother on the episodes that it was learned from.
    """
    kept = moments_of_experience(target.kept_apart, embed, most=MOST_PAIRS)
    seen = moments_of_experience(target.learned_from, embed, most=MOST_PAIRS)
    on_kept, on_seen = (rayleigh_ritz(*moments, dim).eigenvalues.sum() for moments in (kept, seen))
    if on_kept > (1 + OVER_FITTED) * on_seen:
        return kept
    share = target.held_out
    return share * kept[0] + (1 - share) * seen[0], share * kept[1] + (1 - share) * seen[1]


def reopen(out: Path, env: str | None = None) -> Outcome:
    """A finished run, for `lapwing evaluate`: the representation, its measures anew, and its target.

    Args:
        out: the folder.
        env: the environment's name, if what was collected in it is gone and it is not a registered one.
    """
    folder = RunFolder(out)
    config = folder.config()
    if config.get("kind") == "agent":
        raise ConfigError(f"{out} holds an agent; its φ, if it has one, is in {out / 'representation'}")
    if not folder.finished:
        raise ConfigError(f"{out} holds an unfinished run; go on with lapwing learn … --resume")
    representation = load_representation(folder.representation)
    settings = folder.settings(LearnSettings)
    source = recall(config["target"], folder.experience, None if env is None else read_source(env))
    if isinstance(source, Experience):  # it was collected by these settings, which do not apply to data
        names = ("transitions", "num_envs", "observation_key")
        given = {name: getattr(PRESETS[settings.preset], name) for name in names}
        settings = dataclasses.replace(settings, **given)
    target = _open_in(folder, source, settings, None, None)
    _keep_experience(folder, target)
    return Outcome(representation, folder.result() | evaluate(representation, target), target)


def load(path: str | Path) -> Representation:
    """The representation in a run folder, or in a file that `Representation.save` wrote."""
    path = Path(path)
    if not storage.is_folder(path):
        return load_representation(path)
    folder = RunFolder(path)
    is_agent = folder.config().get("kind") == "agent"
    if is_agent and folder.finished and not folder.representation.is_file():
        raise ConfigError(f"{path} holds an agent whose reward uses no φ; lapwing.load_agent reads it")
    if not folder.representation.is_file():
        command = "train" if is_agent else "learn"
        raise ConfigError(f"{path} holds an unfinished run; go on with lapwing {command} … --resume")
    return load_representation(folder.representation)


def _open_in(
    folder: RunFolder | None,
    source: Source,
    settings: LearnSettings,
    policy: Policy | None,
    on_progress: OnProgress | None,
) -> Target:
    """Open a target; what was collected for the run in `folder` is not collected again."""
    return open_target(
        source,
        settings,
        policy=policy,
        collected=folder and folder.experience,
        on_progress=on_progress and (lambda done, all_: on_progress("collecting", done, all_, {})),
    )


def _policy_named(policy: Policy | None) -> dict[str, str]:
    """A function cannot be written down, but its name can."""
    return {} if policy is None else {"policy": getattr(policy, "__qualname__", type(policy).__qualname__)}


def _keep_experience(folder: RunFolder, target: Target) -> None:
    if target.experience is not None and target.file is None and not folder.experience.is_file():
        target.experience.save(folder.experience)


def _named(phase: str, on_progress: OnProgress | None) -> OnChunk | None:
    """Progress within a phase."""
    return on_progress and (lambda *chunk: on_progress(phase, *chunk))


@contextmanager
def _phase(name: str, on_progress: OnProgress | None) -> Iterator[None]:
    """Show that something goes on which cannot be counted."""
    if on_progress:
        on_progress(name, 0, 1, {})
    yield
    if on_progress:
        on_progress(name, 1, 1, {})


def _last(rows: list[dict[str, Any]], name: str) -> Any:
    """The value in the last row; a power cut may have taken the rows, which are not flushed to disk."""
    return rows[-1][name] if rows else None


def _provenance(target: Target) -> dict[str, Any]:
    return {
        "lapwing": __version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "transitions": target.experience.n_transitions if target.experience else None,
        "states": target.n_states,
    }
