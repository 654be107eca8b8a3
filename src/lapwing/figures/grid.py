"""A grid of runs and the table of what they gave: one CSV file, which is also the record of what is done.

A run is known by its key, a digest of all that is asked for. Rows with that key in the table mean that it
has been done, on whatever day and machine; rows of what is no longer asked for stay. What lapwing chooses
itself is not in the key: the column `version` tells what chose it.
"""

import csv
import dataclasses
import hashlib
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from lapwing import storage
from lapwing._version import __version__
from lapwing.errors import CheckpointError


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
        return f"{self.method}, {self.input}, n={self.n:,}, d={self.d}{beta}, seed {self.seed}"


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


COLUMNS = (
    *("figure", "environment", "method", "input", "n", "d", "beta", "lam", "reward", "seed"),
    *("step", "metric", "value", "seconds", "preset", "version", "key"),
)
_WHOLE, _NUMBERS = ("n", "d", "seed", "step"), ("beta", "lam", "value", "seconds")
_MAY_BE_EMPTY = ("beta", "lam", "reward", "step")
Row = dict[str, Any]


def rows_of(run: Run, measured: Measured) -> list[Row]:
    """The rows of a finished run."""
    shared = {name: value for name, value in dataclasses.asdict(run).items() if name in COLUMNS}
    shared |= {"seconds": round(measured.seconds, 3), "version": __version__, "key": run.key}
    return [shared | measure._asdict() for measure in measured.measures]


def read_table(path: Path) -> list[Row]:
    """The rows of a CSV file; none if there is no file."""
    if not path.is_file():
        return []
    reader = csv.DictReader(io.StringIO(path.read_bytes().decode(errors="replace")))
    if reader.fieldnames is None or list(reader.fieldnames) != list(COLUMNS):
        raise CheckpointError(
            f"{path} is not a table of results: its columns are {reader.fieldnames}, not {list(COLUMNS)}; "
            "move it away, or choose another --out"
        )
    return [_typed(path, number, row) for number, row in enumerate(reader, 2)]


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


def _typed(path: Path, number: int, row: dict[str, str]) -> Row:
    try:
        typed: Row = {name: row[name] or None for name in COLUMNS}
        typed |= {name: int(row[name]) for name in _WHOLE if row[name]}
        typed |= {name: float(row[name]) for name in _NUMBERS if row[name]}
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged in line {number} ({error}); mend or delete it") from error
    missing = [name for name in COLUMNS if typed[name] is None and name not in _MAY_BE_EMPTY]
    if missing or len(row) > len(COLUMNS):
        what = f"no {missing[0]}" if missing else "too many cells"
        raise CheckpointError(f"{path} is damaged in line {number}: {what}; mend or delete it")
    return typed
