"""From a target to its representation: settings, training, eigenfunctions. It writes no files."""

import dataclasses
import platform
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from lapwing._version import __version__
from lapwing.data.experience import Experience
from lapwing.data.extent import ranges_of
from lapwing.errors import LapwingWarning, warn
from lapwing.laplacian import closed_form, hosts
from lapwing.laplacian.bumps import Bumps
from lapwing.laplacian.choose import choose
from lapwing.laplacian.closed_form import Trial
from lapwing.laplacian.distances import trusted_mask
from lapwing.laplacian.encoders import Encoder, EncoderSpec
from lapwing.laplacian.extension import extended_encoder, extended_ritz, extension_of, kept_scale
from lapwing.laplacian.flow import sampled_flow
from lapwing.laplacian.held_out import held_out_measures
from lapwing.laplacian.objectives import Objective
from lapwing.laplacian.representation import Representation, embed_batch, mean_distance
from lapwing.laplacian.ritz import (
    Embed,
    Moments,
    Ritz,
    moments_of_chain,
    moments_of_experience,
    rayleigh_ritz,
    ritz_of_chain,
    unrotated,
    with_fixed_signs,
)
from lapwing.laplacian.shortfalls import warn_of_still_features
from lapwing.laplacian.target import Target
from lapwing.laplacian.train import Checkpoints, Trained, train
from lapwing.progress import OnChunk, OnProgress, report_begin, uncounted, within
from lapwing.settings.learn import LearnSettings, ResolvedSettings
from lapwing.timing import stopwatch

REFERENCE_STATES = 512
MANY_STATES = 5_000
"""With more states eigenfunctions are found by P_λ; else eigenvalues are one-step Rayleigh quotients."""
STEP_TRANSITIONS, STEP_GOALS = 512, 32
"""How many transitions and goals the size of a step is measured over."""
MOST_PAIRS, SOME_PAIRS = 1_000_000, 200_000
"""Eigenfunctions are fitted on at most so many pairs; on the second, if φ has been fitted in closed form."""


def learn_target(
    target: Target,
    settings: LearnSettings,
    *,
    objective: Objective | None = None,
    on_progress: OnProgress | None = None,
) -> Representation:
    """The representation of `target`, learned by these settings, with `objective` if it is the user's own."""
    with uncounted("preparing", on_progress):
        resolved, tried = agreed_choice(settings, target, on_progress)
    return learn_resolved(target, resolved, tried=tried, objective=objective, on_progress=on_progress)[0]


def agreed_choice(
    settings: LearnSettings, target: Target, on_progress: OnProgress | None = None
) -> tuple[ResolvedSettings, list[Trial]]:
    """What `choose` says; of shards, what it says in the first process."""
    if target.shards is None:
        return choose(settings, target, on_trial=within("trying out", on_progress))

    def chosen() -> dict[str, Any]:
        resolved, tried = choose(settings, target, on_trial=within("trying out", on_progress))
        return {"resolved": resolved.as_json(), "tried": [trial.as_json() for trial in tried]}

    told = hosts.told_by_first(chosen)
    return ResolvedSettings.from_json(told["resolved"]), [Trial.from_json(one) for one in told["tried"]]


def learn_resolved(
    target: Target,
    settings: ResolvedSettings,
    *,
    tried: Sequence[Trial] = (),
    objective: Objective | None = None,
    checkpoints: Checkpoints | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[Representation, Trained]:
    """The same of settings with no value left open, and what the training took.

    Args:
        target: what to learn from.
        settings: what `choose.resolve` returned.
        tried: what else was tried, to be saved with the representation.
        objective: a user's own, where the settings name one.
        checkpoints: where training is resumed from, and its state saved.
        on_progress: called with (phase, done, all, metrics) of "compiling", "learning" and "measuring".
    """
    learn = solve if settings.estimator == "closed-form" else partial(train, objective=objective)
    trained = learn(
        target,
        settings,
        checkpoints=checkpoints,
        on_chunk=within("learning", on_progress),
        on_compiling=within("compiling", on_progress),
    )
    most_pairs = SOME_PAIRS if settings.estimator == "closed-form" else MOST_PAIRS
    with uncounted("measuring", on_progress):
        if target.states is None:
            _warn_of_parts(target.learned_from)
            warn_of_still_features(target, settings.seed)
        representation = represent(target, settings, trained.encoder, trained.spec, most_pairs=most_pairs)
    if trained.eigenvalues is not None:
        representation.config["eigenvalues_of_objective"] = trained.eigenvalues.tolist()
    if tried:
        representation.config["tried"] = [trial.as_json() for trial in tried]
    return representation, trained


def solve(
    target: Target,
    settings: ResolvedSettings,
    *,
    checkpoints: Checkpoints | None = None,
    on_chunk: OnChunk | None = None,
    on_compiling: OnChunk | None = None,
) -> Trained:
    """`train` by `closed-form`: one step, which is the last, and nothing to compile."""
    report_begin(on_chunk)
    names = [field.name for field in dataclasses.fields(closed_form.StageChoice)]
    columns = zip(*(getattr(settings, name) for name in names), strict=True)
    choice = tuple(closed_form.StageChoice(*values) for values in columns)
    with stopwatch() as watch:
        encoder, spec = _solved(target, settings, choice)
    row = {"step": 1, "seconds": watch.working, "surviving_dimensions": _survivors(encoder)}
    if checkpoints:
        checkpoints.record(row)
    if on_chunk:
        on_chunk(1, 1, {name: float(value) for name, value in row.items()})
    return Trained(encoder, spec, watch.working, watch.compiling, 0.0)


def _survivors(encoder: Bumps) -> int:
    """How many columns of φ the penalty has not set to 0."""
    last = encoder.stages[-1].layer
    return int(np.sum(np.any(last.weight, axis=1) | (np.asarray(last.bias) != 0)))


def _solved(
    target: Target, settings: ResolvedSettings, choice: closed_form.Choice
) -> tuple[Bumps, EncoderSpec]:
    """The minimiser of the loss over bumps; of a graph, its eigenvectors extended by them."""
    if target.extends_eigenvectors:
        extension = extension_of(target, settings.dim + settings.oversample, settings.seed)
        encoder, spec = extended_encoder(extension, choice, _extended_scale(target, settings))
        return encoder, spec.shrunk_by(target.experience.shrinking if target.experience else None)
    return closed_form.fit(
        target.learned_from,
        choice,
        settings.dim,
        oversample=settings.oversample,
        seed=settings.seed,
        lam=settings.lam,
        beta=settings.beta,
        delta=settings.delta,
        study=target.study(settings.dim, settings.seed),
        shards=target.shards,
    )


def _extended_scale(target: Target, settings: ResolvedSettings) -> np.ndarray:
    values, _ = target.eigenpairs(settings.dim + settings.oversample)
    return kept_scale(values, settings.lam, settings.beta, settings.delta)


def _warn_of_parts(learned_from: Experience) -> None:
    """As is done of enumerated states when settings are chosen."""
    parts = sampled_flow(learned_from).parts
    if parts > 1:
        warn(
            f"the data falls into {parts} parts between which no transition was seen: the first "
            "eigenfunctions separate the parts; more data may join them",
            LapwingWarning,
        )


def represent(
    target: Target,
    settings: ResolvedSettings,
    encoder: Encoder,
    spec: EncoderSpec,
    *,
    most_pairs: int = MOST_PAIRS,
) -> Representation:
    """The representation that a trained encoder gives, with its eigenfunctions over the data of `target`.

    Where episodes are held out, its `config` says what they say of the eigenfunctions: which are `trusted`,
    and so used for distances, and why, under `held_out`.

    Args:
        target: what φ was learned from.
        settings: how; they are saved with it.
        encoder: the trained network.
        spec: what it was built from.
        most_pairs: eigenfunctions are fitted on at most this many pairs.
    """
    embed = partial(embed_batch, encoder)
    phi = embed(target.some_observations(REFERENCE_STATES, settings.seed))
    ritz = with_fixed_signs(_ritz(target, settings, embed, most_pairs), phi)
    if len(ritz.eigenvalues) < settings.dim:
        remedy = "collect more data" if settings.estimator == "closed-form" else "lower the learning rate"
        warn(
            f"only {len(ritz.eigenvalues)} of {settings.dim} eigenfunctions could be learned: the other "
            f"dimensions vanished; raise beta, {remedy}, or ask for fewer",
            LapwingWarning,
        )
    coefficients = ritz.coefficients.astype(np.float32)
    representation = Representation(
        encoder=encoder,
        spec=spec,
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
            "ranges": ranges_of(target.different_observations),
            "fitted_on_held_out": False,
            "provenance": {
                "lapwing": __version__,
                "jax": jax.__version__,
                "python": platform.python_version(),
                "transitions": target.n_transitions,
                "states": target.n_states,
            },
        },
    )
    if target.held_out and settings.rotate:
        measured = held_out_measures(representation, target.learned_from, target.held_out_episodes)
        representation.config.update(trusted=measured["trusted"], held_out=measured)
    representation.config["step"] = step_size(representation, target, settings.seed)
    return representation


def _ritz(target: Target, settings: ResolvedSettings, embed: Embed, most: int) -> Ritz:
    """The eigenfunctions; of very many states by P_λ, for the roughness of φ hides slow ones at one step.

    Those of a graph are known already, where φ extends them.
    """
    if target.extends_eigenvectors and settings.estimator == "closed-form":
        values, _ = target.eigenpairs(settings.dim + settings.oversample)
        return extended_ritz(values, _extended_scale(target, settings), settings.dim)
    if target.states is not None and len(target.states) > MANY_STATES and settings.rotate:
        return ritz_of_chain(target.one_step, embed(target.states), settings.dim, settings.lam)
    solve = rayleigh_ritz if settings.rotate else unrotated
    return solve(*_moments(target, embed, most), settings.dim)


def _moments(target: Target, embed: Embed, most: int) -> Moments:
    """The moments that eigenfunctions are fitted on: those of what was learned from, and of nothing else.

    A φ that over-fits looks smoother there than it is, so its eigenvalues come out too small; the held-out
    measures show by how much. Its functions are still better than a fit on the held-out episodes, which
    are few: with 2,000 to 10,000 transitions of PlaneFourRoom the mean cosine with the true eigenfunctions
    was 0.56, 0.75 and 0.71 against 0.34, 0.65 and 0.68 on all held-out episodes, and 0.31, 0.46 and 0.58
    on a half of them, which would leave the other half to measure on.
    """
    if target.states is not None:
        return moments_of_chain(target.one_step, embed(target.states))
    if target.shards is not None:
        return target.shards.mean_moments(
            lambda part, some: (moments_of_experience(part, embed, most=some), min(part.n_transitions, some)),
            most,
        )
    return moments_of_experience(target.learned_from, embed, most=most)


def step_size(representation: Representation, target: Target, seed: int) -> dict[str, Any]:
    """How far one step goes, in the observations and in the embedding: the natural unit of both.

    It is saved with φ, so that a wrapped environment knows how near is there and how large a potential
    must be.

    Returns:
        `observation`, the median length of a step between continuous vectors, or None; and `distance`, for
        each spectral filter, by how much a step changes the distance to a goal in the mean, if at all.
    """
    ends = target.some_transitions(STEP_TRANSITIONS, seed)
    length = None
    if target.states is None and ends[0].ndim == 2:
        lengths = np.linalg.norm(ends[1] - ends[0], axis=1)
        length = float(np.median(lengths[lengths > 0])) if lengths.any() else None
    # Where none is trusted, distances are made of all: no reason to warn before there is one.
    trusted = bool(trusted_mask(representation.config.get("trusted"), representation.dim).any())
    changes = {
        name: _change(*(representation.embed(end, name, trusted_only=trusted) for end in ends))
        for name in representation.filters
    }
    return {"observation": length, "distance": {name: change for name, change in changes.items() if change}}


def _change(here: np.ndarray, there: np.ndarray) -> float:
    """The mean change of the distance to some of the states, over the steps that change it."""
    goals = here[:STEP_GOALS]
    before, after = (np.linalg.norm(end[:, None] - goals[None], axis=2) for end in (here, there))
    change = np.abs(after - before)
    return float(change[change > 0].mean()) if change.any() else 0.0
