"""Warnings before learning: what φ will lack, given the data and the settings."""

import numpy as np

from lapwing.errors import DatasetError, LapwingWarning, warn
from lapwing.laplacian.chain import multi_step_eigenvalues
from lapwing.laplacian.objectives.drawing import surviving_scale
from lapwing.laplacian.sampling import surviving_share
from lapwing.laplacian.target import Target
from lapwing.settings.learn import ResolvedSettings

SOME_TRANSITIONS = 10_000
"""So many are looked at."""


def warn_of_shortfalls(settings: ResolvedSettings, target: Target, eigenvalues: np.ndarray) -> None:
    """Say what the result will lack: pairs, states, links between parts, dimensions."""
    if target.experience is not None and settings.estimator != "exact":
        _warn_of_discarded_pairs(settings, target)
    if target.states is not None:
        _warn_of_unseen_states(target)
        _warn_of_lost_dimensions(settings, eigenvalues)


def warn_of_still_features(target: Target, seed: int) -> None:
    """Name the features of continuous states that differ between episodes and stay within one."""
    if len(target.observation_shape) != 1:
        return
    here, there = target.some_transitions(SOME_TRANSITIONS, seed)
    still = np.flatnonzero((here == there).all(axis=0) & (here != here[0]).any(axis=0))
    if len(still):
        named = ", ".join(map(str, still[:8])) + (", …" if len(still) > 8 else "")
        _say(
            f"{len(still)} of {here.shape[1]} features ({named}, counted from 0) stay the same within an "
            f"episode and differ between episodes, in {SOME_TRANSITIONS:,} transitions drawn, as goals do: "
            "the first eigenfunctions tell episodes apart by them; leave them out of the observations"
        )


def _warn_of_discarded_pairs(settings: ResolvedSettings, target: Target) -> None:
    lam = _largest_lam(settings)
    share = surviving_share(target.learned_from, lam)
    if settings.past_end != "discard" or share >= 0.2:
        return
    drawn = target.learned_from.n_transitions
    kept = f"about {share * drawn:,.0f} of {drawn:,}"
    episodes = f"episodes have {target.learned_from.lengths.mean() - 1:.0f} steps in the mean"
    if share * drawn < settings.dim:
        raise DatasetError(
            f"the data is too short for lam={lam:g}: {kept} pairs survive the discard, for "
            f"{episodes}; lower --lam, or collect longer episodes"
        )
    _say(
        f"only {share:.0%} of the pairs survive the discard at lam={lam:g}, {kept}, for {episodes}; "
        "a lower lam keeps more"
    )


def _warn_of_unseen_states(target: Target) -> None:
    unseen = int(np.sum(target.one_step.rho == 0))
    if target.experience is not None and unseen:
        _say(
            f"{unseen} of {target.n_states} states are never visited: φ is a guess there; "
            "more --transitions may reach them"
        )


def _warn_of_lost_dimensions(settings: ResolvedSettings, eigenvalues: np.ndarray) -> None:
    dim, lam = settings.dim, _largest_lam(settings)
    parts = int(np.sum(eigenvalues < 1e-9))
    if parts > 1:
        _say(
            f"the data falls into {'at least ' if parts == dim else ''}{parts} parts between which no "
            "transition was seen: the first eigenfunctions separate the parts; more data may join them"
        )
    positive = int(np.sum(eigenvalues < 1 - 1e-9))
    if positive < dim:
        _say(
            f"dim={dim} exceeds the {positive} positive eigenvalues of D, which the theory asks for "
            "(appendix A)"
        )
    if settings.objective not in ("graph-drawing", "generalised"):
        return
    scale = surviving_scale(multi_step_eigenvalues(eigenvalues, lam), settings.beta, settings.delta)
    if np.sum(scale > 0) < dim:
        _say(
            f"only {np.sum(scale > 0)} of {dim} dimensions survive beta={settings.beta:g} and "
            f"delta={settings.delta:g} at lam={lam:g}; raise --beta to keep more"
        )


def _largest_lam(settings: ResolvedSettings) -> float:
    return max(settings.lam, settings.lam_final or 0.0)


def _say(message: str) -> None:
    warn(message, LapwingWarning)
