"""A grid of parameters, and the file that stores the result of each point."""

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lapwing import storage
from lapwing.errors import CheckpointError, ConfigError

Point = dict[str, Any]
Grid = Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class SweepRun:
    """One point of a grid, and what it gave."""

    parameters: Point
    result: Any = None
    """What the function returned."""
    seconds: float | None = None
    error: str | None = None
    made_by: str | None = None
    """A digest of the function, or of the target's file, where there is one."""

    @property
    def finished(self) -> bool:
        """Whether it has a result or an error."""
        return self.seconds is not None or self.error is not None

    def row(self) -> dict[str, Any]:
        """Parameters, results, seconds and error side by side, as for pandas.DataFrame.

        A result is named `result_NAME` where `NAME` is taken: by a parameter, or as `seconds` or `error`.

        Example:
            >>> SweepRun({"dim": 5}, result={"dim": 4, "gap": 0.1}, seconds=2.0).row()
            {'dim': 5, 'result_dim': 4, 'gap': 0.1, 'seconds': 2.0, 'error': None}
        """
        results = self.result if isinstance(self.result, dict) else {"result": self.result}
        row, after = dict(self.parameters), {"seconds": self.seconds, "error": self.error}
        for name, value in results.items():
            column = name
            while column in row or column in after or (column != name and column in results):
                column = f"result_{column}"
            row[column] = value
        return row | after


def points_of(grid: Grid) -> list[Point]:
    """The points of a grid.

    Example:
        >>> points_of({"dim": [5, 10], "seed": range(2)})
        [{'dim': 5, 'seed': 0}, {'dim': 5, 'seed': 1}, {'dim': 10, 'seed': 0}, {'dim': 10, 'seed': 1}]
    """
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise ConfigError(f"grid[{name!r}] must be a list of values, not {values!r}")
        points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    else:
        listed: list[Any] = list(grid) if isinstance(grid, Iterable) and not isinstance(grid, str) else [grid]
        if not all(isinstance(point, Mapping) for point in listed):
            raise ConfigError(f"grid must be a dictionary of lists, or a list of dictionaries, not {grid!r}")
        points = [dict(point) for point in listed]
    points = [{name: _of_python(value) for name, value in point.items()} for point in points]
    seen = set()
    for point in points:
        key = key_of(point)
        if key in seen:
            raise ConfigError(f"grid has the point {point} twice; leave one out")
        seen.add(key)
    return points


def _of_python(value: Any) -> Any:
    """The number that a NumPy scalar holds; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def key_of(point: Point) -> str:
    """A digest of the parameters."""
    try:
        text = json.dumps(point, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"grid has the point {point}, which JSON cannot hold ({error}); use numbers, text, True, None, "
            "and lists of these"
        ) from error
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_runs(path: Path, function: str) -> dict[str, SweepRun]:
    """What a file holds of earlier sweeps of this function, by key."""
    if not storage.is_file(path):
        return {}
    content = storage.read_checked_json(path)
    if content.get("function") != function:
        raise CheckpointError(
            f"{path} holds a sweep of {content.get('function')!r}, not of {function!r}; choose another out"
        )
    try:
        runs = [SweepRun(**run) for run in content["runs"]]
        return {key_of(run.parameters): run for run in runs}
    except (KeyError, TypeError, ConfigError) as error:
        raise CheckpointError(f"{path} is not a file of results ({error}); move it away") from error


def write_runs(path: Path, function: str, runs: Iterable[SweepRun]) -> None:
    """Replace the file of results."""
    finished = [asdict(run) for run in runs if run.finished]
    storage.write_checked_json(path, {"function": function, "runs": finished})


def plain(value: Any) -> Any:
    """A result as JSON can hold it: arrays become lists, and what is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise ConfigError(
        f"function returned a {type(value).__name__}, which JSON cannot hold; return numbers, text, or "
        "dictionaries and lists of these"
    )
