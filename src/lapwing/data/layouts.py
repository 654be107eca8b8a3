"""From named arrays to experience: lapwing's own layout, and those of D4RL and OGBench.

All store the observations of all episodes in one array. They differ in how they mark the ends of episodes:

- `lengths` holds the number of observations of each; `ends` and `dones` mark the last of each.
- `terminals` and `timeouts` together mark the last of each. In OGBench `terminals` alone do so; in D4RL they
  miss episodes that a time limit ended, and `unmarked_jumps` searches for them.
- `next_observations` hold the next state of each transition. An episode ends where it differs from the
  observation that follows; that next state then becomes its last observation.
"""

from collections.abc import Iterable

import numpy as np

from lapwing.data.episodes import check_flags, lengths_of
from lapwing.data.experience import Experience
from lapwing.data.memory_map import BYTES_AT_ONCE
from lapwing.errors import DatasetError, LapwingWarning, warn

FLAGS = ("ends", "terminals", "timeouts", "dones")
ROWS = (*FLAGS, "next_observations", "actions", "rewards")
"""What has a row for each observation, where there are no lengths."""
KEYS = ("observations", "lengths", *ROWS, "table", "shrunk")
_OBSERVED = ("obs", "observation", "states", "state", "s", "x", "obses")
_ENDED = ("done", "dones", "end", "ends", "last", "is_last", "terminal", "terminals", "terminated", "over")
"""What arrays that are meant are often called elsewhere."""
JUMP = 5.0
"""A step is a jump if it is so many times as long as nine in ten of the steps at most are."""
FEWEST_JUMPS = 5
"""So many jumps, all a multiple of one number of rows apart, tell of a time limit."""
SAMPLED_STEPS = 100_000
"""The lengths of steps are compared with those of so many."""
ROUNDING = 1e-5
"""What differs by less than this share of a feature's range is the same, saved twice."""


def experience_in(arrays: dict[str, np.ndarray], held: Iterable[str] = ()) -> Experience:
    """The experience that named arrays hold.

    Args:
        arrays: those of `KEYS` that there are.
        held: the names of all that the file holds, for errors.
    """
    if "observations" not in arrays:
        raise DatasetError(_nothing_observed(held))
    if "lengths" in arrays:
        followed_by = {name: arrays[name] for name in ("actions", "rewards", "shrunk") if name in arrays}
        return Experience(arrays["observations"], arrays["lengths"], arrays.get("table"), **followed_by)  # pyright: ignore[reportArgumentType]
    if "next_observations" not in arrays and not marks_of(arrays):
        raise DatasetError(
            f"there is no array 'lengths' and no 'ends'; it holds {', '.join(held)}: add one of them, or say "
            "which array marks the last observation of each episode with --keys ends=NAME"
        )
    if "table" in arrays:
        raise DatasetError("a table only works with lengths, not with ends; add the array 'lengths'")
    rows, ends = rows_and_ends(arrays)
    return Experience.from_ends(ends=ends, **rows)


def recognised(names: Iterable[str]) -> str | None:
    """The name of the layout that arrays of these names have; None if they are none."""
    there = set(names)
    flags = [name for name in FLAGS if name in there]
    if "observations" not in there:
        return None
    if "lengths" in there:
        return "lapwing's: episodes by their lengths"
    if "next_observations" in there:
        ends = f"ends by {' and '.join(flags)}, and" if flags else "ends"
        return f"transitions: {ends} where next_observations are not the observations that follow"
    if flags == ["terminals"]:
        return "OGBench's, or D4RL's without timeouts: ends by terminals"
    return f"one array: ends by {' and '.join(flags)}" if flags else None


def marks_of(arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What marks the last observations of episodes."""
    marks = {name: arrays[name].reshape(-1) for name in FLAGS if name in arrays}
    for name, mark in marks.items():
        check_flags(name, mark)
    return [mark.astype(bool) for mark in marks.values()]


def rows_and_ends(arrays: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Observations, actions and rewards, a row each, and which rows are the last of their episodes.

    Where there are `next_observations`, the rows are more than they were: each episode has one at its end.
    """
    _check_rows(arrays)
    rows = {name: arrays[name] for name in ("observations", "actions", "rewards") if name in arrays}
    marks, n = marks_of(arrays), len(rows["observations"])
    ends = np.logical_or.reduce(marks) if marks else np.zeros(n, bool)
    if "next_observations" in arrays:
        follows = _follows(arrays["observations"], arrays["next_observations"])
        if not _shifted(ends, follows):
            ends = _ends_of_transitions(ends, follows, marked=bool(marks))
            return _with_last(rows, arrays["next_observations"], ends)
    elif [name for name in FLAGS if name in arrays] == ["terminals"]:
        ends = ends | _warned_of(unmarked_jumps(rows["observations"], ends))
    return rows, ends


def unmarked_jumps(observations: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which observations seem to be the last of an episode, though nothing marks them.

    A step is the difference of two observations that follow each other, each feature divided by the change
    that nine in ten do not exceed. It is a jump if it is `JUMP` times as long as nine in ten at most are. A
    reset that moves less is found only under a time limit: if the jumps are all a multiple of one number of
    rows apart, episodes end at each multiple. Ids and images have no such lengths; and where marked episodes
    are all equally long, the marks are complete.

    Example:
        >>> walk = np.arange(20.0)[:, None] % 10
        >>> np.flatnonzero(unmarked_jumps(walk, np.zeros(20, bool)))
        array([9])
    """
    jumps, lengths = np.zeros(len(observations), bool), lengths_of(ends)
    complete = len(lengths) > 2 and (lengths[:-1] == lengths[0]).all() and lengths[-1] <= lengths[0]
    steps = np.flatnonzero(~ends[:-1])
    if complete or observations.ndim != 2 or not len(steps):
        return jumps
    drawn = steps
    if len(steps) > SAMPLED_STEPS:
        drawn = np.sort(np.random.default_rng(0).choice(steps, SAMPLED_STEPS, replace=False))
    usual = np.quantile(np.abs(_changes(observations, drawn)), 0.9, axis=0)
    scale = np.where(usual > 0, usual, np.inf)  # a feature that hardly ever changes says nothing
    limit = JUMP * np.quantile(_step_lengths(observations, drawn, scale), 0.9)
    for begin in range(0, len(steps), SAMPLED_STEPS):
        some = steps[begin : begin + SAMPLED_STEPS]
        jumps[some] = _step_lengths(observations, some, scale) > limit
    return _at_time_limits(jumps, ends)


def _at_time_limits(jumps: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The jumps, and all other rows at which the time limit that they tell of has run out."""
    lengths = lengths_of(ends | jumps)
    last = np.cumsum(lengths) - 1
    by_jump = lengths[jumps[last]]
    if len(by_jump) < FEWEST_JUMPS or by_jump.min() < 2 or (by_jump % by_jump.min()).any():
        return jumps
    since = np.arange(len(jumps)) - np.repeat(last + 1 - lengths, lengths)
    return (since % by_jump.min() == by_jump.min() - 1) & ~ends & (np.arange(len(jumps)) < len(jumps) - 1)


def _changes(observations: np.ndarray, steps: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused later, with its place
        return observations[steps + 1].astype(np.float64) - observations[steps]


def _step_lengths(observations: np.ndarray, steps: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.linalg.norm(_changes(observations, steps) / scale, axis=1)


def _warned_of(jumps: np.ndarray) -> np.ndarray:
    if jumps.any():
        warn(
            f"episodes seem to end at {jumps.sum():,} places that terminals do not mark (first after row "
            f"{np.argmax(jumps)}), for observations jump there or a time limit runs out: no transition is "
            "taken across them; add timeouts, or ends in place of terminals, to say where episodes end",
            LapwingWarning,
        )
    return jumps


def _follows(observations: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Whether the other end of each transition is the observation in the next row; of all but the last."""
    follows = np.empty(max(0, len(observations) - 1), bool)
    at_once = max(1, BYTES_AT_ONCE // max(1, 8 * observations[:1].size))
    slack: float | np.ndarray = 0.0
    if observations.ndim == 2 and observations.size:
        with np.errstate(invalid="ignore", over="ignore"):
            slack = ROUNDING * (observations.max(axis=0).astype(float) - observations.min(axis=0))
    for begin in range(0, len(follows), at_once):
        end = min(begin + at_once, len(follows))
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused later
            apart = np.abs(after[begin:end].astype(float) - observations[begin + 1 : end + 1])
        follows[begin:end] = (apart <= slack).reshape(end - begin, -1).all(axis=1)
    return follows


def _shifted(ends: np.ndarray, follows: np.ndarray) -> bool:
    """Whether next_observations are the next rows even where an episode is marked to end, and so say nothing.

    Some are made so. Then the last one of an episode is the first observation of the next.
    """
    return bool(ends[:-1].any() and follows[ends[:-1]].mean() > 0.5)


def _ends_of_transitions(ends: np.ndarray, follows: np.ndarray, *, marked: bool) -> np.ndarray:
    unmarked = ~follows & ~ends[:-1]
    if marked and unmarked.any():
        warn(
            f"next_observations are not the observations that follow at {unmarked.sum():,} places where no "
            f"end is marked (first in row {np.argmax(unmarked)}): episodes end there too",
            LapwingWarning,
        )
    ends = ends.copy()
    ends[:-1] |= ~follows
    ends[-1:] = True
    return ends


def _with_last(
    rows: dict[str, np.ndarray], after: np.ndarray, ends: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The rows of all episodes, each with the other end of its last transition as one row more."""
    places = np.arange(len(ends)) + np.cumsum(ends) - ends
    count = len(ends) + int(ends.sum())
    longer = {}
    for name, array in rows.items():
        longer[name] = np.zeros((count, *array.shape[1:]), array.dtype)
        longer[name][places] = array
    longer["observations"][places[ends] + 1] = after[ends]
    is_end = np.zeros(count, bool)
    is_end[places[ends] + 1] = True
    return longer, is_end


def _check_rows(arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays that do not have a row for each observation, by their names."""
    shape = arrays["observations"].shape
    for name in ("observations", "next_observations"):
        if name in arrays and arrays[name].dtype.kind not in "iuf":
            raise DatasetError(f"{name} must hold numbers, not {arrays[name].dtype}; convert them to float32")
    if not shape:
        raise DatasetError("observations are a single number; give an array of them")
    for name in (name for name in ROWS if name in arrays):
        found, wanted = arrays[name].shape, {shape[:1], (*shape[:1], 1)}
        if name == "next_observations":
            wanted = {shape}
        elif name == "actions":  # of any size
            wanted = {(*shape[:1], *found[1:])}
        if found not in wanted:
            raise DatasetError(
                f"{name} have shape {found}, and observations {shape}; give {name} of shape {min(wanted)}, "
                "or leave them out"
            )


def _nothing_observed(names: Iterable[str]) -> str:
    held = sorted(names)
    likely, ends = (
        next((name for name in held if name.casefold() in known), "NAME") for known in (_OBSERVED, _ENDED)
    )
    if "actions" in held and likely == "NAME":
        return "it holds actions but no observations, and φ is learned from what was observed: add the array"
    return (
        f"there is no array 'observations'; it holds {', '.join(held) or 'nothing'}: say which one they are "
        f"with --keys observations={likely}, and what marks the end of episodes with ends={ends}"
    )
