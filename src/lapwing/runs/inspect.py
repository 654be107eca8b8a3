"""Summary of a data set, and of what lapwing would do with it: `lapwing data inspect`.

It reads the raw arrays, so that invalid data can be inspected too.
"""

import dataclasses
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lapwing.data.archives import MOST_BYTES
from lapwing.data.episodes import lengths_of
from lapwing.data.files import array_kinds, as_keys, load_experience, read_arrays
from lapwing.data.folders import is_data_folder
from lapwing.data.layouts import FLAGS, recognised, rows_and_ends
from lapwing.data.memory_map import BYTES_AT_ONCE, chunks
from lapwing.data.minari import MinariData
from lapwing.data.ogbench import OGBenchData
from lapwing.data.source import Source, read_data
from lapwing.errors import DatasetError, LapwingError, LapwingWarning
from lapwing.laplacian.choose import by_rules, resolve
from lapwing.laplacian.sampling import surviving_share
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings

MOST_COMPARED = 100_000
"""So many observations are compared to tell how often they repeat."""
SHOWN_FEATURES = 12
FEWEST_STEPS, MOST_STEPS, AS_BY_CHANCE = 500, 20_000, 0.9
"""By so many steps it is judged whether rows are in order: between independent ones features change by twice
their variance, and this share of it leaves room for chance."""
NO_ORDER = (
    "observations that follow each other are no more alike than any two; see whether the rows are in the "
    "order of time"
)


@dataclass(frozen=True)
class Inspection:
    """What was found."""

    name: str
    arrays: dict[str, str]
    """What the file holds: the type and shape of each array."""
    facts: dict[str, Any]
    """Episodes, lengths, ranges, NaN, and how many states repeat; as far as they are known."""
    problem: str | None
    """Why it cannot be learned from, or None."""
    plan: dict[str, Any]
    """What lapwing would do with it."""
    remarks: tuple[str, ...] = ()
    """What lapwing would warn of."""

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return dataclasses.asdict(self)


def inspect(source: str | Path, observation_key: str | None = None, keys: tuple[str, ...] = ()) -> Inspection:
    """Look into an .npz or HDF5 file, a folder of data, a Minari data set or one of OGBench's.

    Args:
        source: a path, `minari:NAME` or `ogbench:NAME`.
        observation_key: which part of Dict observations to look at.
        keys: which array of a file is which, as in `LearnSettings`.
    """
    named, settings = read_data(source), _settings(observation_key, keys)
    if isinstance(named, MinariData):
        found = _in_minari(named, observation_key)
    elif isinstance(named, OGBenchData):
        named.read()  # makes the file, where it is not there
        found = _in_file(named.path)
    else:
        found = _in_folder(named.path) if is_data_folder(named.path) else _in_file(named.path, settings.keys)
    facts = {} if found.observations is None else _facts(found)
    problem, plan, remarks = _plan(named, settings)
    noise = (NO_ORDER,) if problem is None and _is_unordered(found) else ()
    return Inspection(str(source), found.arrays, facts, problem, plan, (*found.remarks, *remarks, *noise))


class Found(NamedTuple):
    """What was found in a data set, as far as it is known."""

    arrays: dict[str, str]
    """Their kinds."""
    observations: np.ndarray | None
    lengths: np.ndarray | None
    layout: str | None = None
    remarks: tuple[str, ...] = ()


def _settings(observation_key: str | None, keys: tuple[str, ...]) -> LearnSettings:
    # With `stop` given, no trial is run to find it.
    return LearnSettings(observation_key=observation_key, keys=keys, stop=1)


def _in_file(path: Path, keys: tuple[str, ...] = ()) -> Found:
    given = as_keys(keys)
    arrays, renamed = read_arrays(path, given), {name: role for role, name in given.items()}
    kinds = {}
    for name, kind in array_kinds(path).items():
        role = renamed.get(name, name)
        as_role = "" if role == name else f", as {role}"
        ignored = "ignored" if kind is None else f"{kind[0]} {kind[1]}, ignored"
        used = role in arrays and given.get(role, role) == name
        kinds[name] = _kind(arrays[role]) + as_role if used else ignored
    lengths, observations, table = (arrays.get(name) for name in ("lengths", "observations", "table"))
    remarks: tuple[str, ...] = ()
    marks = [arrays[name] for name in FLAGS if name in arrays]
    if lengths is None and observations is not None and (marks or "next_observations" in arrays):
        with suppress(DatasetError), warnings.catch_warnings():  # the plan will say what is wrong with them
            warnings.simplefilter("ignore", LapwingWarning)
            rows, ends = rows_and_ends(arrays)
            observations, lengths = rows["observations"], lengths_of(ends)
        if marks and not any(mark.any() for mark in marks) and lengths is not None and len(lengths) == 1:
            remarks = ("nothing marks the end of an episode: all of it counts as one",)
    if lengths is not None and (lengths.ndim != 1 or lengths.dtype.kind not in "iu"):
        lengths = None
    if observations is not None and observations.ndim == 0:
        observations = None
    if observations is not None and table is not None and table.ndim and len(table):
        ids = observations.ndim == 1 and observations.dtype.kind in "iu"
        fits = observations.size * table[:1].nbytes <= MOST_BYTES
        observations = table[np.clip(observations, 0, len(table) - 1)] if ids and fits else None
    return Found(kinds, observations, lengths, recognised(arrays), remarks)


def _in_folder(path: Path) -> Found:
    experience = load_experience(path)
    names = ("observations", "lengths", "table", "actions", "rewards")
    arrays = {name: _kind(array) for name in names if (array := getattr(experience, name)) is not None}
    return Found(arrays, experience.observations, experience.lengths, "a folder of lapwing.save_episodes")


def _in_minari(data: MinariData, key: str | None) -> Found:
    arrays = {"observation space": str(data.observation_space)}
    if data.action_space is not None:
        arrays["action space"] = str(data.action_space)
    recorded = data.read(key)
    return Found(arrays, recorded.view.seen(recorded.picked), recorded.lengths, "a Minari data set")


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"


def _facts(found: Found) -> dict[str, Any]:
    observations, lengths = found.observations, found.lengths
    assert observations is not None
    facts: dict[str, Any] = {} if found.layout is None else {"layout": found.layout}
    facts |= {"observations": len(observations), "shape": list(observations.shape[1:])}
    if lengths is not None and lengths.size:
        facts |= {
            "episodes": len(lengths),
            "transitions": int(lengths.sum()) - len(lengths),
            "lengths": [int(lengths.min()), float(np.median(lengths)), int(lengths.max())],
        }
    if not np.issubdtype(observations.dtype, np.number) or not observations.size:
        return facts
    return facts | _numbers(observations, lengths) | {"distinct": _distinct(observations)}


def _numbers(observations: np.ndarray, lengths: np.ndarray | None) -> dict[str, Any]:
    """Ranges of the features, and what is not finite."""
    bad, first, low, high = 0, None, [], []
    for begin, chunk in chunks(observations):
        flat = chunk.reshape(len(chunk), -1).astype(np.float64)
        with np.errstate(over="ignore"):
            finite = np.isfinite(flat.astype(np.float32))  # as it is learned from
        rows = np.flatnonzero(~finite.all(axis=1))
        bad += len(rows)
        if len(rows) and first is None:
            first = begin + int(rows[0])
        low.append(np.where(finite, flat, np.inf).min(axis=0))
        high.append(np.where(finite, flat, -np.inf).max(axis=0))
    ranges = np.stack([np.min(low, axis=0), np.max(high, axis=0)], axis=1)
    if observations.ndim > 2:
        ranges = np.array([[ranges[:, 0].min(), ranges[:, 1].max()]])
    shown = [None if low > high else [low, high] for low, high in ranges[:SHOWN_FEATURES].tolist()]
    found: dict[str, Any] = {"not_finite": bad}
    if first is not None and lengths is not None and lengths.sum() == len(observations):
        episode = int(np.searchsorted(np.cumsum(lengths), first, side="right"))
        found["first_not_finite"] = [episode, first - int(lengths[:episode].sum())]
    return found | {"ranges": shown}


def _is_unordered(found: Found) -> bool:
    """Whether no feature of vectors changes less in a step than between any two observations."""
    observations, lengths = found.observations, found.lengths
    if observations is None or lengths is None or observations.ndim != 2 or observations.dtype.kind != "f":
        return False
    ends = np.cumsum(lengths) - 1
    here = np.setdiff1d(np.arange(len(observations) - 1), ends)
    if len(here) < FEWEST_STEPS:
        return False
    here = np.sort(np.random.default_rng(0).choice(here, min(len(here), MOST_STEPS), replace=False))
    before, after = (np.asarray(observations[rows], np.float64) for rows in (here, here + 1))
    spread = before.var(axis=0)
    moves = spread > 0
    changes = np.mean((after - before) ** 2, axis=0)
    return bool(moves.any()) and bool(np.all(changes[moves] >= AS_BY_CHANCE * 2 * spread[moves]))


def _distinct(observations: np.ndarray) -> float:
    """How many different observations there are among some of them, over how many those are."""
    places = np.arange(len(observations))
    most = min(MOST_COMPARED, max(1, BYTES_AT_ONCE // max(1, observations[:1].nbytes)))
    if len(places) > most:
        places = np.sort(np.random.default_rng(0).choice(places, most, replace=False))
    rows = np.asarray(observations[places]).reshape(len(places), -1)
    with np.errstate(over="ignore"):
        rows = rows.astype(np.float32) if rows.dtype.kind == "f" else rows  # as it is learned from
    return len(np.unique(rows, axis=0)) / len(rows)


def _plan(source: Source, settings: LearnSettings) -> tuple[str | None, dict[str, Any], tuple[str, ...]]:
    """What `lapwing learn` would choose; or why it would refuse."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LapwingWarning)
        try:
            target = open_target(source, settings)
            resolved = resolve(settings, target)
            chosen = by_rules(dataclasses.replace(settings, stop=None), target)
        except LapwingError as error:
            return str(error), {}, ()
    experience, by_pairs = target.learned_from, chosen.estimator != "closed-form"
    plan = {
        "states": target.n_states,
        "estimator": chosen.estimator,
        "encoder": chosen.encoder,
        "dim": resolved.dim,
        "lam": resolved.lam if by_pairs else None,
        "surviving_share": surviving_share(experience, resolved.lam) if by_pairs else None,
        "held_out": resolved.held_out,
        "on_disk": experience.on_disk,
    }
    return None, plan, tuple(_texts(caught))


def _texts(caught: Iterable[Any]) -> list[str]:
    return [str(one.message) for one in caught if issubclass(one.category, LapwingWarning)]
