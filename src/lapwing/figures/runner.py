"""Running a grid: several workers run what is not yet in the table; it can be stopped and resumed.

Beside the table `OUT/FIGURE.csv` is the folder `OUT/.FIGURE`: a lock, the folders of unfinished runs with
their checkpoints, compiled programs, and the failed runs with their errors.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lapwing import storage
from lapwing.errors import CheckpointError
from lapwing.figures.execute import execute_run
from lapwing.figures.grid import Measure, Measured, Row, Run, check_runs, read_table, rows_of, write_table
from lapwing.sweeps.pools import pool_maker
from lapwing.sweeps.task import Message, Task
from lapwing.sweeps.work import Pool, Worker, work

Group = tuple[str, str]
"""Method and input, or reward and maze: runs that take about as long as each other."""


@dataclass
class Status:
    """How far a grid is."""

    runs: list[Run]
    done: set[str]
    """Keys of the runs in the table."""
    failures: dict[str, str]
    """Keys of the runs that failed, with the error of each."""
    workers: Sequence[Worker] = ()
    jobs: int = 1
    """How many workers there are."""
    waiting: list[Run] = field(default_factory=list)
    seconds: dict[Group, list[float]] = field(default_factory=dict)
    """What the runs of each group took here, from order to answer."""

    def seconds_to_go(self) -> float | None:
        """An estimate from the runs that were finished so far; None before the first."""
        taken = [one for group in self.seconds.values() for one in group]
        if not taken:
            return None
        overall = sum(taken) / len(taken)
        means = {group: sum(times) / len(times) for group, times in self.seconds.items()}
        left = [*self.waiting, *(worker.run for worker in self.workers if worker.run)]
        return sum(means.get(group_of(run), overall) for run in left) / self.jobs


OnStatus = Callable[[Status], None]


def group_of(run: Run) -> Group:
    """The group of runs that take about as long as this one."""
    return (run.method, run.input) if run.reward is None else (run.reward, run.environment)


def execute_grid(
    runs: list[Run],
    chosen: set[str],
    table: Path,
    *,
    jobs: int | None = None,
    on: str = "local",
    borrowed: list[Row] | None = None,
    retry: bool = False,
    overwrite: bool = False,
    on_status: OnStatus | None = None,
) -> tuple[list[Row], dict[str, str]]:
    """Do runs that are not yet in `table`; returns the rows of all, and the failed keys with their errors.

    Args:
        runs: a whole grid.
        chosen: keys of the runs to do now.
        table: the CSV file of results, which is written after every run.
        jobs: how many workers; None: one for each core.
        on: `local`, processes of this machine; `ray` or `ray:HOST:PORT`, a Ray cluster.
        borrowed: rows of other tables; those of runs that are asked for count as done.
        retry: try runs again that failed before.
        overwrite: do runs again that are in the table.
        on_status: called now and then, and after every run.
    """
    folder, make_pool = table.parent / f".{table.stem}", pool_maker(on)
    storage.make_folder(folder)
    with storage.lock(folder):
        storage.remove_leftovers(table.parent, of=table.stem)
        wanted = {run.key for run in runs}
        rows = [row for row in read_table(table) if not (overwrite and row["key"] in chosen)]
        missing = wanted - {row["key"] for row in rows} - (chosen if overwrite else set())
        rows += [row for row in borrowed or [] if row["key"] in missing]
        check_runs(table, rows, runs)
        record = _Record(table, folder / "failures.json", rows)
        again = chosen if overwrite else chosen & set(record.failures) if retry else set()
        record.forget(again)
        for key in again:
            storage.remove_tree(folder / key)
        todo = [run for run in runs if run.key in chosen - record.done - set(record.failures)]
        status = Status([run for run in runs if run.key in chosen], record.done, record.failures)
        if todo:
            pool = make_pool(jobs, folder / "compiled")
            status.jobs = pool.jobs
            _work(todo, record, status, folder, pool, on_status)
        else:
            write_table(table, record.rows)
            if on_status:
                on_status(status)
        return (
            [row for row in record.rows if row["key"] in wanted],
            {key: error for key, error in record.failures.items() if key in wanted},
        )


def read_failures(path: Path) -> dict[str, str]:
    """The keys of runs that failed, with the error of each; lapwing 0.1.0 wrote them without a digest."""
    failures = storage.read_json(path) if storage.is_file(path) else {}
    if isinstance(failures, dict) and "sha256" in failures:
        failures = storage.read_checked_json(path)
    if not isinstance(failures, dict) or not all(
        re.fullmatch("[0-9a-f]{12}", key) and isinstance(error, str) for key, error in failures.items()
    ):
        raise CheckpointError(f"{path} is damaged; delete it, and the runs that failed are tried again")
    return failures


class _Record:
    """The table and the failures, on disk and in memory."""

    def __init__(self, table: Path, failed: Path, rows: list[Row]):
        self._table, self._failed, self.rows = table, failed, rows
        self.done = {row["key"] for row in rows}
        self.failures = read_failures(failed)
        self.forget(self.done)

    def forget(self, keys: set[str]) -> None:
        """Let these count as not failed."""
        if keys & set(self.failures):
            self.failures = {key: error for key, error in self.failures.items() if key not in keys}
            storage.write_checked_json(self._failed, self.failures)

    def add(self, run: Run, measured: Measured) -> None:
        self.rows += rows_of(run, measured)
        self.done.add(run.key)
        write_table(self._table, self.rows)

    def fail(self, run: Run, error: str) -> None:
        self.failures[run.key] = error
        storage.write_checked_json(self._failed, self.failures)


def _work(todo: list[Run], record: _Record, status: Status, folder: Path, pool: Pool, on_status) -> None:
    def on_answer(task: Task, message: Message, seconds: float) -> None:
        run: Run = task.run
        if "error" in message:
            record.fail(run, message["error"])
            return
        result = message["result"]
        record.add(run, Measured([Measure(*measure) for measure in result["measures"]], result["seconds"]))
        status.seconds.setdefault(group_of(run), []).append(seconds)
        storage.remove_tree(folder / run.key)

    def on_round(waiting: list[Task]) -> None:
        status.workers, status.waiting = list(pool.workers), [task.run for task in waiting]
        if on_status:
            on_status(status)

    work([_task(run, folder) for run in todo], pool, on_answer, on_round)


def _task(run: Run, folder: Path) -> Task:
    return Task(execute_run, {"run": dataclasses.asdict(run), "folder": str(folder / run.key)}, run)
