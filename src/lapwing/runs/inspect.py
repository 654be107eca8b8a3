"""What is in a data set, and what lapwing would do with it: `lapwing data inspect`.

It looks at the arrays as they are, so that data which cannot be learned from can still be looked into.
"""

import dataclasses
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.data.archives import MOST_BYTES, names_in, read_archive
from lapwing.data.files import ARCHIVED, END_MARKS, is_data_folder, load_experience, marked_lengths
from lapwing.data.memory_map import BYTES_AT_ONCE, chunks
from lapwing.data.minari import MinariData
from lapwing.data.source import DataFile, Source, read_source
from lapwing.errors import ConfigError, DatasetError, LapwingError, LapwingWarning
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.sampling import surviving_share
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings

MOST_COMPARED = 100_000
"""So many observations are compared to tell how often they repeat."""
SHOWN_FEATURES = 12


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


def inspect(source: str | Path, observation_key: str | None = None) -> Inspection:
    """Look into an .npz file, a folder of data or a Minari data set.

    Args:
        source: a path, or `minari:NAME`.
        observation_key: which part of Dict observations to look at.
    """
    found = read_source(source)
    if isinstance(found, MinariData):
        arrays, observations, lengths, seen = _in_minari(found, observation_key)
    elif isinstance(found, DataFile) and is_data_folder(found.path):
        arrays, observations, lengths, seen = _in_folder(found.path)
    elif isinstance(found, DataFile):
        arrays, observations, lengths, seen = _in_archive(found.path)
    else:
        raise ConfigError(f"{source} is not a data set; name an .npz file, a folder of data, or minari:NAME")
    facts = {} if observations is None else _facts(observations, lengths)
    problem, plan, remarks = _plan(found, observation_key)
    return Inspection(str(source), arrays, facts, problem, plan, (*seen, *remarks))


Found = tuple[dict[str, str], np.ndarray | None, np.ndarray | None, tuple[str, ...]]
"""The kinds of arrays, the observations and the lengths as far as they are known, and remarks."""


def _in_archive(path: Path) -> Found:
    arrays = read_archive(path, ARCHIVED)
    kinds = {name: _kind(arrays[name]) if name in arrays else "not looked at" for name in names_in(path)}
    lengths, observations, table = (arrays.get(name) for name in ("lengths", "observations", "table"))
    remarks: tuple[str, ...] = ()
    if lengths is None:
        with suppress(DatasetError):  # the plan will say what is wrong with the marks
            lengths = marked_lengths(arrays)
        marks = [arrays[name] for name in END_MARKS if name in arrays]
        if marks and not any(mark.any() for mark in marks):
            remarks = ("nothing marks the end of an episode: all of it counts as one",)
    if lengths is not None and (lengths.ndim != 1 or lengths.dtype.kind not in "iu"):
        lengths = None
    if observations is not None and observations.ndim == 0:
        observations = None
    if observations is not None and table is not None and table.ndim and len(table):
        ids = observations.ndim == 1 and observations.dtype.kind in "iu"
        fits = observations.size * table[:1].nbytes <= MOST_BYTES
        observations = table[np.clip(observations, 0, len(table) - 1)] if ids and fits else None
    return kinds, observations, lengths, remarks


def _in_folder(path: Path) -> Found:
    experience = load_experience(path)
    arrays = {"observations": _kind(experience.observations), "lengths": _kind(experience.lengths)}
    return arrays, experience.observations, experience.lengths, ()


def _in_minari(data: MinariData, key: str | None) -> Found:
    arrays = {"observation space": str(data.observation_space)}
    view, picked, lengths = data.read(key)
    return arrays, view.seen(picked), lengths, ()


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"


def _facts(observations: np.ndarray, lengths: np.ndarray | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"observations": len(observations), "shape": list(observations.shape[1:])}
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
    found: dict[str, Any] = {"not_finite": bad, "ranges": shown}
    if first is not None and lengths is not None and lengths.sum() == len(observations):
        episode = int(np.searchsorted(np.cumsum(lengths), first, side="right"))
        found["first_not_finite"] = [episode, first - int(lengths[:episode].sum())]
    return found


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


def _plan(source: Source, key: str | None) -> tuple[str | None, dict[str, Any], tuple[str, ...]]:
    """What `lapwing learn` would choose; or why it would refuse."""
    # With `stop` given, no trial is run to find it.
    settings = LearnSettings(observation_key=key, stop=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LapwingWarning)
        try:
            target = open_target(source, settings)
            resolved = resolve(settings, target)
        except LapwingError as error:
            return str(error), {}, ()
    experience = target.learned_from
    plan = {
        "states": target.n_states,
        "estimator": resolved.estimator,
        "encoder": resolved.encoder,
        "dim": resolved.dim,
        "lam": resolved.lam,
        "surviving_share": surviving_share(experience, resolved.lam),
        "held_out": resolved.held_out,
        "on_disk": experience.on_disk,
    }
    return None, plan, tuple(_texts(caught))


def _texts(caught: Iterable[Any]) -> list[str]:
    return [str(one.message) for one in caught if issubclass(one.category, LapwingWarning)]
