"""A figure as a grid of runs, and the table of their results: one CSV file, also the record of finished runs.

A run is identified by its key, a digest of its configuration. Rows with that key in the table mean that the
run is finished, on whatever day and machine; rows with other keys are kept. Values that lapwing chooses
itself are not in the key: the column `version` identifies the code that chose them. Tables may be merged by
hand, so they carry no digest; every cell is validated when they are read.
"""

import csv
import dataclasses
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from matplotlib.figure import Figure

from lapwing import storage
from lapwing._version import __version__
from lapwing.errors import CheckpointError
from lapwing.progress import OnProgress

Preset = Literal["quick", "paper"]
Row = dict[str, Any]
"""One measure of a run, by the columns of the table."""


@dataclass(frozen=True)
class Run:
    """One cell of a figure with one seed."""

    figure: str
    environment: str
    method: str
    input: str
    n: int
    """Transitions in the data."""
    d: int
    beta: float | None
    lam: float | None
    seed: int
    preset: str
    recipe: str
    """JSON with every setting that is not at its default."""
    reward: str | None = None

    @cached_property
    def key(self) -> str:
        """A digest of all that is asked for; the preset's name and the figure's do not count."""
        content = dataclasses.asdict(self)
        del content["preset"], content["figure"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def settings(self) -> dict[str, Any]:
        """The recipe as keywords."""
        return json.loads(self.recipe)

    def __str__(self) -> str:
        """Few words for a progress table."""
        beta = "" if self.beta is None else f", beta={self.beta:g}"
        if self.reward is not None:
            return f"{self.method}, {self.environment}, {self.reward}{beta}, seed {self.seed}"
        where = f"{self.method}, {self.environment}, {self.input}"
        return f"{where}, n={self.n:,}, d={self.d}{beta}, seed {self.seed}"


def recipe(**settings: Any) -> str:
    """Settings as a run holds them."""
    return json.dumps(settings, sort_keys=True)


class Measure(NamedTuple):
    """One number that a run gave; `step` is for curves."""

    metric: str
    value: float
    step: int | None = None


@dataclass(frozen=True)
class Measured:
    """All that a run gave."""

    measures: list[Measure]
    seconds: float
    """What learning took, compilation taken off."""


@dataclass(frozen=True)
class Study:
    """One figure of the paper."""

    name: str
    title: str
    runs: Callable[[Preset, int], list[Run]]
    """The grid of a preset with a number of seeds."""
    execute: Callable[[Run, Path, OnProgress], Measured]
    """Does one run, with a folder for checkpoints; after an interruption it is called again and resumes."""
    draw: Callable[[list[Row], Preset], Figure]
    describe: Callable[[list[Row], Preset], list[str]]
    """The tables as lines of Markdown."""
    note: str = ""
    """How to read the numbers, for a figure that has runs."""
    borrows: tuple[str, ...] = ()
    """Figures whose tables may hold runs of this one."""


COLUMNS = (
    *("figure", "environment", "method", "input", "n", "d", "beta", "lam", "reward", "seed"),
    *("step", "metric", "value", "seconds", "preset", "version", "key"),
)
_WHOLE, _NUMBERS = ("n", "d", "seed", "step"), ("beta", "lam", "value", "seconds")
_MAY_BE_EMPTY = ("beta", "lam", "reward", "step")
_OF_A_MEASURE = ("step", "metric", "value")
_WORD, _NUMBER = r"[A-Za-z][A-Za-z0-9 _-]*", r"\d+(\.\d+)?(e[+-]?\d+)?"
_FORMS = (
    dict.fromkeys(("figure", "environment", "method", "input", "reward", "metric"), _WORD)
    | dict.fromkeys(_WHOLE, r"\d{1,18}")
    | dict.fromkeys(_NUMBERS, _NUMBER)
    | {"value": rf"-?({_NUMBER}|inf)|nan", "preset": "quick|paper", "key": "[0-9a-f]{12}"}
    | {"version": r"\d+\.\d+[0-9a-z.+]*"}
)
"""What a cell of each column looks like."""
_BELOW = {"seed": 2**32, "lam": 1}


def rows_of(run: Run, measured: Measured) -> list[Row]:
    """The rows of a finished run."""
    shared = {name: value for name, value in dataclasses.asdict(run).items() if name in COLUMNS}
    shared |= {"seconds": round(measured.seconds, 3), "version": __version__, "key": run.key}
    return [shared | measure._asdict() for measure in measured.measures]


def read_table(path: Path) -> list[Row]:
    """The rows of a CSV file; none if there is no file. What cannot be a row is refused by its line."""
    if not storage.is_file(path):
        return []
    reader = csv.DictReader(io.StringIO(storage.read_bytes(path).decode(errors="replace")))
    try:
        columns = list(reader.fieldnames or [])
        if columns != list(COLUMNS):
            raise CheckpointError(
                f"{path} is not a table of results: its columns are {columns}, not {list(COLUMNS)}; "
                "move it away, or choose another --out"
            )
        rows = [_typed(path, number, row) for number, row in enumerate(reader, 2)]
    except csv.Error as error:
        raise CheckpointError(f"{path} is not a table of results ({error}); move it away") from error
    _check_agreement(path, rows)
    return rows


def write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write all rows, in an order that does not depend on which run was finished first."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=_order))
    storage.write_bytes(path, buffer.getvalue().encode())


def _order(row: Row) -> tuple:
    names = ("preset", "environment", "method", "reward", "input", "d", "n", "beta", "lam", "seed")
    names += ("key", "metric", "step")
    return tuple((row[name] is not None, row[name]) for name in names)


def _typed(path: Path, number: int, row: dict[str, Any]) -> Row:
    if set(row) != set(COLUMNS):
        raise _damaged(path, number, "it has too many cells")
    for name, text in row.items():
        empty = not text and name in _MAY_BE_EMPTY and text is not None
        if not empty and not re.fullmatch(_FORMS[name], text or ""):
            raise _damaged(path, number, f"{name} cannot be {text!r}")
    typed: Row = {name: text or None for name, text in row.items()}
    typed |= {name: int(row[name]) for name in _WHOLE if row[name]}
    typed |= {name: float(row[name]) for name in _NUMBERS if row[name]}
    for name, bound in _BELOW.items():
        if typed[name] is not None and typed[name] >= bound:
            raise _damaged(path, number, f"{name} cannot be {row[name]}")
    return typed


def _check_agreement(path: Path, rows: list[Row]) -> None:
    """Refuse a row that disagrees with another of the same run, or stands there twice."""
    runs: dict[str, list] = {}
    seen = set()
    for number, row in enumerate(rows, 2):
        shared = [row[name] for name in COLUMNS if name not in _OF_A_MEASURE]
        if runs.setdefault(row["key"], shared) != shared:
            raise _damaged(path, number, f"it disagrees with another row of the run {row['key']}")
        if (row["key"], row["metric"], row["step"]) in seen:
            raise _damaged(path, number, f"{row['metric']} of the run {row['key']} stands there twice")
        seen.add((row["key"], row["metric"], row["step"]))


def check_runs(path: Path, rows: list[Row], runs: Iterable[Run]) -> None:
    """Refuse rows that say of one of these runs what its key denies."""
    known = {run.key: run for run in runs}
    fields = {field.name for field in dataclasses.fields(Run)} - {"preset", "figure"}
    names = [name for name in COLUMNS if name in fields]
    for row in rows:
        run = known.get(row["key"])
        wrong = [name for name in names if run is not None and row[name] != getattr(run, name)]
        if wrong:
            raise CheckpointError(
                f"{path} is damaged: {wrong[0]} of the run {row['key']} is {getattr(run, wrong[0])!r}, not "
                f"{row[wrong[0]]!r}; fix or delete it"
            )


def _damaged(path: Path, number: int, what: str) -> CheckpointError:
    return CheckpointError(f"{path} is damaged in line {number}: {what}; fix or delete it")
