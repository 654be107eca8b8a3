"""How far to trust eigenfunctions of continuous states: held-out episodes and a second basis.

There is no exact spectrum to compare with. But functions that overfit the training episodes change faster
along others, and another basis may contain what φ lacks (`reference`). The rest is sampling noise: held-out
episodes show how far other episodes would rotate the functions (`agreement`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from lapwing.data.experience import Experience
from lapwing.errors import DatasetError
from lapwing.laplacian.agreement import NO_EIGENVALUE, Counted, Stability, agreements, quotients, stability
from lapwing.laplacian.closed_form import held_out_score
from lapwing.laplacian.objectives.drawing import distance_to_identity
from lapwing.laplacian.reference import Reference, fit_reference
from lapwing.laplacian.representation import Representation, embed_batch
from lapwing.laplacian.ritz import Embed, Moments, Ritz, mean_moments, moments_of_experience, rayleigh_ritz

MOST_PAIRS = 100_000
"""At most this many pairs of either part are measured on."""
AGREEMENT = 0.8
"""From this cosine on, two eigenfunctions count as the same.

A distance is nearer to the true one with a function than without it from a cosine of 1/2 on; the rest is room
for the estimate's own chance."""
OVER_FITTED = 3.0
"""A function is, if it changes by more than so many times what it does on the episodes learned from."""
MOST_CHANCE, DEVIATIONS = 0.2, 3.0
"""Of n transitions the correlation of a function's values before and after is known to 1/√n: if it is not so
many times that, or at least the first number, the function may as well be one of independent draws."""
CLEARLY = 1.05
"""Of two eigenvalues, or sums of them, one is clearly larger from this factor on."""


def held_out_measures(
    representation: Representation, learned_from: Experience, held_out: Experience
) -> dict[str, Any]:
    """The saved eigenfunctions, measured on episodes that they were not learned from.

    Args:
        representation: what was learned.
        learned_from: the episodes that it was learned from.
        held_out: others of the same kind.

    Returns:
        What `_on_both` says of the functions on either part; what `_objectives` and `_agreement_with` say of
        the reference; `agreement`, an estimate of the cosine of each function with what many more episodes
        would give; `trusted`, the indices of the functions that agree with both, are not over-fitted and
        change less in a step than between any two states; `transitions`, how many were held out, and their
        `sha256`; and whether the coefficients were `fitted_on_held_out` episodes as well, as those of
        earlier versions were.
    """
    embed = partial(embed_batch, representation.encoder)
    coefficients = np.asarray(representation.coefficients, np.float64)
    saved = Ritz(representation.eigenvalues, coefficients, representation.dim)
    reference = fit_reference(learned_from, representation)
    learned = moments_of_experience(learned_from, embed, most=MOST_PAIRS)
    parts = _measured_parts(held_out, lambda seen: np.hstack([embed(seen), reference.columns(seen)]))
    counted = learned, min(learned_from.n_transitions, MOST_PAIRS)
    own, theirs = _of_columns(parts, len(coefficients))
    chance = _chance(saved, counted, own)
    beside = _objectives(saved, reference, [counted, *own], [reference.learned, *theirs])
    beside |= _agreement_with(reference, saved, mean_moments(parts)[1], chance.uncertain, beside)
    agreement = np.minimum(chance.cosines, _chance_of_reference(reference, theirs, beside))
    measured = _on_both(coefficients, learned, own) | beside | {"agreement": agreement.tolist()}
    over_fitted = _changes(coefficients, mean_moments(own)) > OVER_FITTED * _changes(coefficients, learned)
    measured["transitions"] = held_out.n_transitions
    return measured | {
        "trusted": _trusted(measured, over_fitted),
        "sha256": held_out.sha256(),
        "fitted_on_held_out": representation.config.get("fitted_on_held_out", True),
    }


def _on_both(coefficients: np.ndarray, learned: Moments, held_out: list[Counted]) -> dict[str, Any]:
    """The functions on the episodes learned from and on the held-out ones.

    Returns:
        `eigenvalues`, the Rayleigh quotients on the held-out episodes, with their `spread`, half the
        difference between two halves of them; `eigenvalues_learned`, the same on the episodes learned from;
        and the `orthonormality_error` on the held-out episodes.
    """
    halves = [quotients(coefficients, mean_moments(held_out[half::2])) for half in (0, 1)]
    moments = mean_moments(held_out)
    return {
        "eigenvalues": quotients(coefficients, moments).tolist(),
        "spread": (np.abs(np.subtract(*halves)) / 2).tolist(),
        "eigenvalues_learned": quotients(coefficients, learned).tolist(),
        "orthonormality_error": distance_to_identity(coefficients.T @ moments[1] @ coefficients),
    }


def _measured_parts(held_out: Experience, embed: Embed) -> list[Counted]:
    """The moments of four parts of the held-out episodes, or of two, with how many pairs they are of.

    Every second one is of the first half.
    """
    parts = held_out.split(0.5)
    if not all(part.n_episodes for part in parts):
        raise DatasetError(
            f"{len(held_out.observations)} held-out observations are too few to be halved; "
            "raise held_out, or set it to 0"
        )
    quarters = [part.split(0.5) for part in parts]
    if all(quarter.n_episodes for quarter in (*quarters[0], *quarters[1])):
        parts = [quarter for pair in zip(*quarters, strict=True) for quarter in pair]
    most = MOST_PAIRS // len(parts)
    return [(moments_of_experience(part, embed, most=most), min(part.n_transitions, most)) for part in parts]


def _chance(saved: Ritz, learned: Counted, others: list[Counted]) -> Stability:
    """How far the saved functions may be off by sampling error, or because their own data gives others."""
    dim, (moments, _) = len(saved.eigenvalues), learned
    chance = stability(learned, others, dim)
    refitted = rayleigh_ritz(*moments, len(saved.coefficients))
    as_saved = agreements(refitted, saved, moments[1], chance.uncertain)
    return Stability(np.minimum(chance.cosines, as_saved), chance.uncertain)


def _chance_of_reference(reference: Reference, others: list[Counted], beside: dict[str, Any]) -> np.ndarray:
    """The same of the reference, whose many columns see more of it; 1 where it lacks the function."""
    dim = len(beside["agreement_reference"])
    cosines = stability(reference.learned, others, dim, cutoff=reference.cutoff).cosines
    cosines[beside["reference_lacks"]] = 1.0
    return cosines


def _objectives(
    saved: Ritz, reference: Reference, own: list[Counted], theirs: list[Counted]
) -> dict[str, Any]:
    """What φ and the reference come to on held-out episodes.

    Args:
        saved: the functions.
        reference: others, of another basis.
        own: moments of the columns of φ on the episodes learned from, then on parts of the held-out ones.
        theirs: the same of the columns of the reference.

    Returns:
        `objective`, the sum of the eigenvalues that the span of the saved functions has: of how much they
        change along held-out episodes, for the variance that they have on all, for which states the few
        held-out ones visit is chance. `objective_reference`, the same of as many functions of the reference,
        and the terms of both, `terms` and `terms_reference`.
    """
    dim, found = len(saved.eigenvalues), {}
    for name, coefficients, moments in (
        ("", saved.coefficients, own),
        ("_reference", reference.ritz.coefficients[:, :dim], theirs),
    ):
        drawing, second = mean_moments(moments[1:])[0], mean_moments(moments)[1]
        values = np.maximum(held_out_score(coefficients, (drawing, second), dim)[1], 0.0)
        terms = np.pad(values, (0, dim - len(values)), constant_values=1.0)  # about that of a random function
        found |= {f"objective{name}": float(terms.sum()), f"terms{name}": terms.tolist()}
    return found


def _agreement_with(
    reference: Reference, saved: Ritz, second: np.ndarray, uncertain: np.ndarray, objectives: dict[str, Any]
) -> dict[str, Any]:
    """Whether the reference has the same functions.

    Args:
        reference: the other basis.
        saved: the functions.
        second: B of [1, φ, the columns of the reference] on held-out episodes.
        uncertain: how far the eigenvalues may be off.
        objectives: what `_objectives` returned.

    Returns:
        `agreement_reference`, the cosine of each function with the reference's eigenspace of its eigenvalue;
        and the indices of functions that the `reference_lacks`: they do not agree, but its own eigenvalue is
        clearly larger, so it is in no position to judge.
    """
    columns, theirs = len(saved.coefficients), reference.ritz
    own, others = (np.zeros((len(second), len(ritz.eigenvalues))) for ritz in (saved, theirs))
    own[:columns], others[0], others[columns:] = saved.coefficients, *np.split(theirs.coefficients, [1])
    bases = theirs._replace(coefficients=others), saved._replace(coefficients=own)
    cosines = agreements(*bases, second, uncertain)
    terms, larger = (np.array(objectives[name]) for name in ("terms", "terms_reference"))
    lacking = (terms * CLEARLY + NO_EIGENVALUE < larger) & (cosines < AGREEMENT)
    return {
        "agreement_reference": cosines.tolist(),
        "reference_lacks": np.flatnonzero(lacking).tolist(),
    }


def _changes(coefficients: np.ndarray, moments: Moments) -> np.ndarray:
    """Half the mean squared change of each function in a step; NO_EIGENVALUE where it is about none.

    Not over its variance, as an eigenvalue is: which states a few episodes visit is chance, and a slow
    function hardly varies along them.
    """
    drawing, _ = moments
    return np.maximum(np.sum(coefficients * (drawing @ coefficients), axis=0), NO_EIGENVALUE)


def _trusted(measured: dict[str, Any], over_fitted: np.ndarray) -> list[int]:
    """The functions that agree with both, are not over-fitted, and are not noise."""
    agreement, second_opinion = (np.array(measured[name]) for name in ("agreement", "agreement_reference"))
    second_opinion[measured["reference_lacks"]] = 1.0
    agree = np.minimum(agreement, second_opinion) >= AGREEMENT
    agree[1:] &= ~changes_as_by_chance(measured["eigenvalues"][1:], measured["transitions"])
    trusted = agree & ~over_fitted
    trusted[0] = True  # the constant, whatever rounding makes of its eigenvalue
    return np.flatnonzero(trusted).tolist()


def changes_as_by_chance(eigenvalues: Sequence[float], transitions: int) -> np.ndarray:
    """Which functions change in a step as much as between any two states, as far as the data can tell.

    An eigenvalue is 1 less the correlation of the function's values before and after a step.

    Args:
        eigenvalues: on held-out episodes.
        transitions: how many these are.

    Example:
        >>> changes_as_by_chance([0.1, 0.9, 0.98, 1.8], 10_000)
        array([False, False,  True, False])
    """
    chance = min(MOST_CHANCE, DEVIATIONS / max(transitions, 1) ** 0.5)
    return np.abs(1 - np.asarray(eigenvalues)) < chance


def _of_columns(parts: list[Counted], count: int) -> tuple[list[Counted], list[Counted]]:
    """The moments of the first columns, which the constant is among; and of the constant and the others."""
    first = np.arange(count)
    rest = np.append(0, np.arange(count, len(parts[0][0][0])))
    own, theirs = (
        [((drawing[np.ix_(at, at)], second[np.ix_(at, at)]), number) for (drawing, second), number in parts]
        for at in (first, rest)
    )
    return own, theirs
