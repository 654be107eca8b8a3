"""`lapwing.sweep`: a function, or learning from a target, for every point of a grid."""

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lapwing import storage
from lapwing.errors import ConfigError, LapwingWarning, warn
from lapwing.progress import OnProgress
from lapwing.sweeps.grid import Grid, Point, SweepRun, key_of, plain, points_of, read_runs, write_runs
from lapwing.sweeps.local import check_place, find_function, name_of, reference, without_addresses
from lapwing.sweeps.pools import pool_maker
from lapwing.sweeps.task import Message, Task
from lapwing.sweeps.work import work
from lapwing.timing import stopwatch

RESULTS = "sweep.json"


def sweep(
    function: Callable[..., Any] | str,
    grid: Grid,
    *,
    on: str = "local",
    jobs: int | None = None,
    out: str | Path | None = None,
    retry: bool = False,
    on_progress: OnProgress | None = None,
) -> list[SweepRun]:
    """Call a function for every point of a grid, by several workers of one core each.

    Args:
        function: takes a point's parameters as keywords (and `on_progress`, if it has such an argument) and
            returns what JSON can hold, such as a dictionary of numbers. Or a target of `lapwing.learn`: the
            parameters are then its settings, and the measures of what was learned are returned.
        grid: values for each parameter, of which every combination is done; or a list of points.
        on: `local`, processes of this machine; `ray`, or `ray:HOST:PORT`, a Ray cluster.
        jobs: how many workers; None: as many as there are cores.
        out: a folder that keeps the results; what it holds is not done again. None keeps nothing.
        retry: do points again that failed.
        on_progress: called with ("sweeping", done, all, {}) after each point.

    Returns:
        A run for each point, in the order of the grid. A run that failed has an `error` and no `result`.
    """
    if not isinstance(function, str) and not callable(function):
        raise ConfigError(f"function must be a function, or the name of a target, not {function!r}")
    points, make_pool = points_of(grid), pool_maker(on)
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise ConfigError(f"jobs must be a whole number of at least 1, not {jobs!r}")
    call, fixed = (learn_and_evaluate, {"target": function}) if isinstance(function, str) else (function, {})
    if any(fixed.keys() & point.keys() for point in points):
        raise ConfigError(f"grid has target, and the target is {function!r}; leave one out")
    check_place()
    arguments = {"function": reference(call) if on == "local" else call}
    module = getattr(function, "__module__", "")
    name = function if isinstance(function, str) else f"{module}.{name_of(function)}"
    with ExitStack() as stack:
        folder = Path(out) if out is not None else Path(stack.enter_context(TemporaryDirectory()))
        storage.make_folder(folder)
        stack.enter_context(storage.lock(folder))
        runs = read_runs(folder / RESULTS, name)
        made_by = digest_of(function)
        _warn_if_changed(folder / RESULTS, [runs.get(key_of(point)) for point in points], made_by)
        if retry:
            runs = {key: run for key, run in runs.items() if run.error is None}
        todo = {key_of(point): point for point in points if key_of(point) not in runs}

        done = len(points) - len(todo)

        def report() -> None:
            if on_progress:
                on_progress("sweeping", done, len(points), {})

        def on_answer(task: Task, message: Message, seconds: float) -> None:
            nonlocal done
            done += 1
            result, error = message.get("result", {}), message.get("error")
            runs[task.run] = SweepRun(todo[task.run], error=error, made_by=made_by, **result)
            write_runs(folder / RESULTS, name, runs.values())
            report()

        tasks = [
            Task(measured_call, arguments | {"parameters": fixed | point}, key) for key, point in todo.items()
        ]
        report()
        if tasks:
            work(tasks, make_pool(jobs, folder / "compiled"), on_answer)
        return [runs[key_of(point)] for point in points]


def digest_of(function: Callable[..., Any] | str) -> str | None:
    """A digest of a function's code and of what it holds, or of a target's file; None if there is neither."""
    if isinstance(function, str):
        return _digest_of_target(function)
    inner = function.func if isinstance(function, partial) else function
    try:
        code = ast.dump(ast.parse(textwrap.dedent(inspect.getsource(inner))))
    except (OSError, TypeError, SyntaxError):  # made where no file holds it
        return None
    held = [cell.cell_contents for cell in getattr(inner, "__closure__", None) or ()]
    held += [
        getattr(getattr(inner, "__self__", None), "__dict__", None),
        getattr(inner, "__defaults__", None),
    ]
    held += [function.args, function.keywords] if isinstance(function, partial) else []
    return hashlib.sha256(f"{code}{without_addresses(repr(held))}".encode()).hexdigest()


def _digest_of_target(target: str) -> str | None:
    from lapwing.data.folders import MANIFEST

    path = Path(target.removeprefix("gym:").partition(".py:")[0] + ".py" if ".py:" in target else target)
    for file in (path, path / MANIFEST):
        if storage.is_file(file):
            return storage.file_sha256(file)
    return None


def _warn_if_changed(path: Path, runs: Sequence[SweepRun | None], made_by: str | None) -> None:
    earlier = [run for run in runs if run is not None and made_by and run.made_by not in (None, made_by)]
    if earlier:
        warn(
            f"{path}: {len(earlier)} of {len(runs)} points are results of before the function or the target "
            "was changed; delete that file, or choose another out, to do them again",
            LapwingWarning,
        )


def measured_call(
    function: Callable[..., Any] | dict[str, str], parameters: Point, on_progress: OnProgress
) -> dict[str, Any]:
    """What a function returns, and the seconds that it took, compilation taken off."""
    call = find_function(function) if isinstance(function, dict) else function
    if "on_progress" in inspect.signature(call).parameters:
        call = partial(call, on_progress=on_progress)
    with stopwatch() as watch:
        result = call(**parameters)
    return {"result": plain(result), "seconds": watch.working}


def learn_and_evaluate(target: str, on_progress: OnProgress, **settings: Any) -> dict[str, Any]:
    """The eigenvalues of what was learned from a target, and its measures."""
    from lapwing.data.source import read_source
    from lapwing.laplacian.evaluate import evaluate
    from lapwing.laplacian.learn import learn_target
    from lapwing.laplacian.target import open_target
    from lapwing.settings.learn import LearnSettings

    chosen = LearnSettings.from_keywords(settings)
    opened = open_target(read_source(target), chosen)
    representation = learn_target(opened, chosen, on_progress=on_progress)
    return {"eigenvalues": representation.eigenvalues} | evaluate(representation, opened)
