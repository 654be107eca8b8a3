"""The last two lines of a report: a verdict on the measures, and the next step."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from lapwing.cli.program import program
from lapwing.laplacian.agreement import NO_EIGENVALUE
from lapwing.laplacian.barriers import has_walls
from lapwing.laplacian.held_out import CLEARLY, changes_as_by_chance
from lapwing.laplacian.target import LEAST_TO_HOLD_OUT

TOO_FEW = 10
"""Fewer held-out transitions than so many times the eigenfunctions say little."""
GOOD_COSINE = 0.9
"""From this cosine with the exact one on, an eigenfunction counts as found."""
ALMOST = 0.02
"""A cosine is as high as the data allows if it is lower by no more than this."""
MOST = 0.9
"""With this share of the eigenfunctions as they should be, there is nothing to fix."""
WELL_INSIDE = 0.8
"""A feature whose range is less than this share of its bounds' stays well inside of them."""
MOSTLY_ONE_WAY = 0.5
"""From this share of the flow on that has no way back, the verdict says so."""
_JOINED = "episodes that lead from one part to another, or each part by itself."
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Verdict(NamedTuple):
    """Two sentences."""

    verdict: str
    next_step: str


def verdict_of(result: dict[str, Any]) -> Verdict:
    """What a result comes to."""
    verdict, next_step = _judged(result)
    if _in_parts(result):
        verdict += (
            f" The data falls into {result['parts']} parts; between two of them a distance says nothing."
        )
    if (result.get("irreversibility") or 0.0) > MOSTLY_ONE_WAY:
        verdict += " Most of the flow has no way back, which distances do not see."
    return Verdict(verdict, next_step)


def _in_parts(result: dict[str, Any]) -> bool:
    """Whether there are parts of the data that no transition joins."""
    return (result.get("parts") or 1) > 1


def _judged(result: dict[str, Any]) -> Verdict:
    if result.get("held_out") is not None:
        return _by_held_out_episodes(result)
    if result["operator"] is None:
        few = (result.get("transitions") or LEAST_TO_HOLD_OUT) < LEAST_TO_HOLD_OUT
        return Verdict(
            f"No episodes were held out, so nothing says which of the {len(result['eigenvalues'])} "
            "eigenfunctions can be trusted.",
            f"collect at least {LEAST_TO_HOLD_OUT} transitions."
            if few
            else "learn again with --held-out 0.1.",
        )
    return _against_truth(result) if result["settings"]["rotate"] else _by_gap(result)


def _by_held_out_episodes(result: dict[str, Any]) -> Verdict:
    measured, dim = result["held_out"], len(result["eigenvalues"])
    trusted, few = trusted_indices(measured), measured["transitions"] < TOO_FEW * dim
    words = f"{len(trusted)} of {dim} eigenfunctions can be trusted"
    if len(trusted) < 2:
        words = f"None of {dim} eigenfunctions but the constant can be trusted"
    elif len(trusted) < dim:
        words += f": {names_of(trusted)}"
    if _is_noise(measured):
        return Verdict(
            f"{words}: observations that follow each other are no more alike than any two.",
            "see whether the rows are in the order of time, and hold what changes slowly.",
        )
    if still := _zeros(result["eigenvalues"]):
        return Verdict(
            f"{words}. But no episode changes {names_of(still)}: what is learned there is which part of the "
            "data a state is in.",
            "leave out of the observations what stays the same in an episode, such as a goal; or data that "
            "joins the parts.",
        )
    if few:
        words += f", though {measured['transitions']:,} held-out transitions are few to judge by"
    elif unsure := _unsure(measured, trusted):
        verb = "is" if len(unsure) == 1 else "are"
        words += (
            f", though two halves of the held-out episodes disagree on how slow {names_of(unsure)} {verb}"
        )
    words += _as_far(result)
    if _in_parts(result):
        return Verdict(f"{words}.", _JOINED)
    if has_walls(result.get("barriers")):
        words += ". But there are walls that are thinner than a step, and distances may pass through them"
        return Verdict(
            f"{words}.",
            f"{program()} explore {result['run']} shows distances. Thicker walls, or an observation "
            f"that says on which side of them a state is, leave no doubt.{_if_ended_early(result)}",
        )
    ratio = excess(measured)
    if ratio > CLEARLY:
        words += f". φ lacks something: the reference does better, {_lower(ratio)} on held-out episodes"
        return Verdict(f"{words}.", _against_lacking(result["settings"]))
    if len(trusted) >= MOST * dim and not few:
        return Verdict(f"{words}.", _use(result))
    more = "more episodes (--transitions, where they are collected)"
    first = leading(trusted)
    smaller = f"try --dim {first}, or {more}" if 2 < first < dim else more
    return Verdict(f"{words}.", f"{smaller}. Distances use what can be trusted alone.")


def _unsure(measured: dict[str, Any], trusted: list[int]) -> list[int]:
    """Functions of which the ± of the eigenvalue is more than the eigenvalue."""
    if "spread" not in measured:  # as in results of earlier versions
        return []
    values, spread = measured["eigenvalues"], measured["spread"]
    return [index for index in trusted if index > 0 and spread[index] > values[index]]


def _as_far(result: dict[str, Any]) -> str:
    """That held-out episodes judge where the data goes, and no further."""
    extent, words = result.get("extent") or {}, ", as far as the data goes"
    covered = extent.get("covered")
    if covered is not None and covered < MOST:
        return f"{words}: it comes to {covered:.0%} of the observation space, not all of which need be states"
    features = ", ".join(str(feature) for feature, _, _ in inside(extent)) if extent else ""
    return f"{words}: of features {features} it saw a part of the observation space" if features else words


def inside(extent: dict[str, Any]) -> list[tuple[int, list[float], list[float]]]:
    """The features that stay well inside of their bounds, with what was seen and the bounds."""
    pairs = zip(extent["ranges"], extent["bounds"], strict=True)
    return [
        (feature, seen, bounds)
        for feature, (seen, bounds) in enumerate(pairs)
        if None not in bounds and seen[1] - seen[0] < WELL_INSIDE * (bounds[1] - bounds[0])
    ]


def _zeros(eigenvalues: Sequence[float]) -> list[int]:
    """The functions beside the constant that no transition changes, but for rounding."""
    return [index for index, value in enumerate(eigenvalues) if index and value < NO_EIGENVALUE]


def _is_noise(measured: dict[str, Any]) -> bool:
    """Whether no function but the constant changes less in a step than by chance."""
    eigenvalues = measured.get("eigenvalues", ())[1:]
    return bool(eigenvalues) and bool(changes_as_by_chance(eigenvalues, measured["transitions"]).all())


def _against_lacking(settings: dict[str, Any]) -> str:
    if settings["encoder"] != "bumps":
        return "leave --encoder, --estimator and --steps out, so that bumps in closed form are chosen."
    return f"more --trials (now {settings['trials']}), or more episodes."


def _against_truth(result: dict[str, Any]) -> Verdict:
    cosines, mean, floor = (result[name] for name in ("cosine", "cosine_mean", "cosine_floor"))
    good = [index for index, cosine in enumerate(cosines) if cosine >= GOOD_COSINE]
    words = f"{len(good)} of {len(cosines)} eigenfunctions have a cosine of {GOOD_COSINE} with the exact ones"
    if len(good) == len(cosines):
        return Verdict(f"{words}.", _use(result))
    if floor is not None and mean < floor - ALMOST:
        more = "--transitions" if _stopped_early(result) else "--steps"
        return Verdict(f"{words}; the data allows more, {floor:.2f} in the mean.", f"more {more}.")
    words += "; the data allows no more"
    if len(good) >= MOST * len(cosines):
        return Verdict(f"{words}.", _use(result))
    first = leading(good)
    smaller = f"try --dim {first}, or more" if 1 < first < len(cosines) else "more"
    return Verdict(f"{words}.", f"{smaller} --transitions.")


def _stopped_early(result: dict[str, Any]) -> bool:
    """Whether held-out episodes said that more steps make φ worse: there is too little data for them."""
    return (result.get("steps") or math.inf) < (result["settings"].get("steps") or 0)


def _by_gap(result: dict[str, Any]) -> Verdict:
    """Of columns that were not rotated: they span the subspace, and single ones are no eigenfunctions."""
    gap, largest = result["gap"], result["gap_random"]
    closed = 1 - gap / largest if largest > 0 else 1.0
    words = f"The columns of φ close {closed:.1%} of the gap between a random basis and the eigenfunctions"
    if gap <= 2 * (result["gap_floor"] or 0.0) or closed > 0.99:
        return Verdict(f"{words}.", _use(result))
    return Verdict(f"{words}; the data allows more.", "more --steps, or the preset default.")


def _use(result: dict[str, Any]) -> str:
    """How φ is used; distances need data that is one piece."""
    if _in_parts(result):
        return _JOINED
    run = result["run"]
    return (
        f'{program()} explore {run}; in Python lapwing.load("{run}").distance(a, b), or for an agent '
        f'lapwing.LaplacianReward(env, "{run}", goal).{_if_ended_early(result)}'
    )


def _if_ended_early(result: dict[str, Any]) -> str:
    """What to do where few states around a goal were seen, for it ends the episodes."""
    if not result.get("ended_early") or result["settings"].get("past_termination"):
        return ""
    return " Most episodes ended early: if it is a goal that ends them, learn with --past-termination."


def trusted_indices(measured: dict[str, Any]) -> list[int]:
    """Those of the trusted eigenfunctions; earlier versions wrote how many from the first on."""
    trusted = measured["trusted"]
    return list(range(trusted)) if isinstance(trusted, int) else trusted


def excess(measured: dict[str, Any]) -> float:
    """The held-out objective over that of the reference, where there is one."""
    reference = measured.get("objective_reference")
    return measured["objective"] / reference if reference else 1.0


def _lower(ratio: float) -> str:
    return f"{1 - 1 / ratio:.0%} lower" if ratio < 2 else f"{ratio:.3g} times lower"


def leading(indices: Sequence[int]) -> int:
    """How many there are from 0 on without a gap.

    Example:
        >>> leading([0, 1, 2, 5])
        3
    """
    return next((place for place, index in enumerate(indices) if place != index), len(indices))


def names_of(indices: Sequence[int]) -> str:
    """Eigenfunctions by name, counted from 1 as in pictures.

    Example:
        >>> names_of([0, 1, 2, 5, 7, 8])
        'f₁ to f₃, f₆, f₈, f₉'
    """
    runs = [
        [index for _, index in run]
        for _, run in groupby(enumerate(indices), key=lambda place: place[1] - place[0])
    ]
    words = (
        [f"{_name(run[0])} to {_name(run[-1])}"] if len(run) > 2 else [_name(index) for index in run]
        for run in runs
    )
    return ", ".join(word for run in words for word in run)


def _name(index: int) -> str:
    return "f" + str(index + 1).translate(_SUBSCRIPTS)
