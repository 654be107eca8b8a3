import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

import lapwing
from lapwing import figures as experiments
from lapwing import storage
from lapwing.errors import CheckpointError, StorageError
from lapwing.figures import execute, runner
from lapwing.figures.execute import execute_run
from lapwing.figures.grid import COLUMNS, Measure, Measured, Run, read_table, rows_of, write_table
from lapwing.figures.methods import method_run
from lapwing.figures.runner import execute_grid, read_failures
from lapwing.laplacian import baselines
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings
from lapwing.sweeps.local import LocalPool, LocalWorker, answer_order, reference
from tests.support.command_line import called


def small(method: str, *, seed: int = 0, d: int = 3, **more) -> Run:
    return method_run("fig3", "quick", method, "index", 200, d, seed, **more)


SOLVED = small("transitions-2017")
LEARNED = small("graph-drawing", steps=30)
IMPOSSIBLE = small("graph-drawing", d=500, steps=30)
BLOCKED = small("graph-drawing", seed=1, steps=30)
"""A run whose folder holds what is no run, so that it fails at first."""
LONG = small("graph-drawing", steps=1_000_000)
SECONDS = small("graph-drawing", steps=150_000)
"""A run of a few seconds: long enough for a checkpoint, short enough to be done twice."""


def executed(runs: list[Run], out: Path, **options):
    return execute_grid(runs, {run.key for run in runs}, out / "fig3.csv", **({"jobs": 1} | options))


def value(rows: list[dict], run: Run, metric: str = "gap") -> float:
    (found,) = [row["value"] for row in rows if (row["key"], row["metric"]) == (run.key, metric)]
    return found


def metrics(rows: list[dict], run: Run) -> set[str]:
    return {row["metric"] for row in rows if row["key"] == run.key}


def folder_of(run: Run, out: Path) -> Path:
    return out / ".fig3" / run.key


def learning(status: runner.Status) -> list:
    return [each for each in status.workers if each.run and each.progress[0] == "learning"]


@pytest.fixture
def no_workers(monkeypatch):
    """To start workers is a failure of the test."""
    monkeypatch.setattr(runner, "work", lambda *_: pytest.fail("workers were started"))


class Pass(NamedTuple):
    out: Path
    rows: list[dict]
    failures: dict[str, str]
    done: list[int]
    """How many runs were done whenever that was told."""


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Pass:
    """Four runs by one worker, two of which fail, in a table that holds a row of a run not asked for."""
    out = tmp_path_factory.mktemp("grid")
    blocked = folder_of(BLOCKED, out)
    blocked.mkdir(parents=True)
    (blocked / "thesis.tex").write_text("all of it")
    write_table(out / "fig3.csv", rows_of(small("successor-2018"), Measured([Measure("gap", 0.5)], 1.0)))
    done = []
    rows, failures = executed(
        [IMPOSSIBLE, BLOCKED, SOLVED, LEARNED], out, on_status=lambda status: done.append(len(status.done))
    )
    return Pass(out, rows, failures, done)


@pytest.fixture
def again(first, tmp_path) -> Path:
    """A copy of what the first pass left."""
    return Path(shutil.copytree(first.out, tmp_path / "again"))


@pytest.mark.slow
def test_runs_are_done_by_a_worker_and_told_of(first):
    assert {row["key"] for row in first.rows} == {SOLVED.key, LEARNED.key}
    assert first.done == sorted(first.done)
    assert first.done[-1] == 3


@pytest.mark.slow
def test_the_rows_have_the_columns_of_a_table_and_the_measures_of_their_method(first):
    assert all(set(row) == set(COLUMNS) for row in first.rows)
    assert metrics(first.rows, SOLVED) == {"gap", "rank", "compile_seconds"}
    assert metrics(first.rows, LEARNED) == {"gap", "rank", "gap_floor", "steps", "compile_seconds"}
    assert value(first.rows, LEARNED, "steps") == 30
    assert all(row["seconds"] > 0 for row in first.rows)
    for row in first.rows:
        assert (row["n"], row["d"], row["input"], row["seed"]) == (200, 3, "index", 0)
        assert row["version"] == lapwing.__version__


@pytest.mark.slow
def test_the_value_of_a_run_is_that_of_the_method_itself(first):
    target = open_target("FourRoom", LearnSettings.from_keywords(SOLVED.settings))
    here = baselines.measure(baselines.stacked_transitions(target, 3, "sampled"), target, 3)
    assert value(first.rows, SOLVED) == pytest.approx(here["gap"], rel=1e-6)


@pytest.mark.slow
def test_the_table_holds_what_was_returned_and_what_is_not_asked_for(first):
    written = read_table(first.out / "fig3.csv")
    stray = [row for row in written if row["method"] == "successor-2018"]
    assert [row["value"] for row in stray] == [0.5]
    ours = [row for row in written if row not in stray]
    assert len(ours) == len(first.rows)
    assert all(row in first.rows for row in ours)


@pytest.mark.slow
def test_the_folder_of_a_finished_run_is_removed(first):
    assert not folder_of(LEARNED, first.out).exists()
    assert not folder_of(IMPOSSIBLE, first.out).exists()
    assert (folder_of(BLOCKED, first.out) / "thesis.tex").read_text() == "all of it"


@pytest.mark.slow
def test_what_is_done_is_not_done_again(again, no_workers):
    before, told = (again / "fig3.csv").read_bytes(), []
    rows, failures = executed([SOLVED, LEARNED], again, on_status=told.append)
    assert {row["key"] for row in rows} == {SOLVED.key, LEARNED.key}
    assert failures == {}
    assert (again / "fig3.csv").read_bytes() == before
    (status,) = told
    assert {SOLVED.key, LEARNED.key} <= status.done


def test_rows_that_another_version_wrote_count_as_done(tmp_path, no_workers):
    rows = rows_of(SOLVED, Measured([Measure("gap", 0.25)], 1.0))
    write_table(tmp_path / "fig3.csv", [row | {"version": "0.0.1"} for row in rows])
    assert value(executed([SOLVED], tmp_path)[0], SOLVED) == 0.25


def test_only_what_is_chosen_is_done(tmp_path, no_workers):
    write_table(tmp_path / "fig3.csv", rows_of(SOLVED, Measured([Measure("gap", 0.25)], 1.0)))
    rows, _ = execute_grid([SOLVED, LONG], {SOLVED.key}, tmp_path / "fig3.csv", jobs=1)
    assert {row["key"] for row in rows} == {SOLVED.key}


@pytest.mark.slow
def test_a_failed_run_is_told_with_its_error_and_the_others_are_done(first):
    assert set(first.failures) == {IMPOSSIBLE.key, BLOCKED.key}
    assert re.search("dim .* 152 .* 500", first.failures[IMPOSSIBLE.key])
    assert "thesis.tex" in first.failures[BLOCKED.key]
    assert read_failures(first.out / ".fig3" / "failures.json") == first.failures


@pytest.mark.slow
def test_a_failed_run_is_not_tried_again_unasked(first, again, no_workers):
    _, failures = executed([IMPOSSIBLE, BLOCKED, SOLVED, LEARNED], again)
    assert failures == first.failures


@pytest.mark.slow
def test_a_failed_run_that_succeeds_when_tried_again_is_off_the_record(first, again):
    rows, failures = executed([IMPOSSIBLE, BLOCKED, SOLVED, LEARNED], again, retry=True)
    assert failures == {IMPOSSIBLE.key: first.failures[IMPOSSIBLE.key]}
    assert value(rows, BLOCKED) > 0
    assert value(rows, LEARNED) == value(first.rows, LEARNED)
    assert read_failures(again / ".fig3" / "failures.json") == failures


@pytest.mark.slow
def test_overwriting_does_a_run_again_and_leaves_the_others(first, again):
    """Even where an older version of lapwing has left it half done."""
    half = folder_of(LEARNED, again)
    half.mkdir()
    config = {"format": 1, "version": "0.0.1", "target": {}, "settings": {}}
    (half / "config.json").write_text(json.dumps(config))
    before = read_table(again / "fig3.csv")
    write_table(again / "fig3.csv", [row | {"value": 99.0} for row in before])
    rows, failures = executed([LEARNED], again, overwrite=True)
    assert failures == {}
    assert value(rows, LEARNED) == value(first.rows, LEARNED)
    others = [row for row in read_table(again / "fig3.csv") if row["key"] != LEARNED.key]
    assert len(others) == 4
    assert all(row["value"] == 99.0 for row in others)


def test_a_damaged_table_is_refused_and_untouched(tmp_path, no_workers):
    (tmp_path / "fig3.csv").write_text("my,own,table\n1,2,3\n")
    with pytest.raises(CheckpointError, match=r"fig3\.csv"):
        executed([SOLVED], tmp_path, overwrite=True)
    assert (tmp_path / "fig3.csv").read_text() == "my,own,table\n1,2,3\n"


def test_leftovers_of_this_figure_are_swept_up_and_those_of_others_are_not(tmp_path, no_workers):
    """Another figure may be at work in the same folder."""
    write_table(tmp_path / "fig3.csv", rows_of(SOLVED, Measured([Measure("gap", 0.25)], 1.0)))
    ours, text, theirs = (
        tmp_path / f".{name}.abcd1234.lapwing.part" for name in ("fig3.csv", "fig3-quick.md", "fig6.csv")
    )
    mine = tmp_path / ".fig3.csv.part"
    for path in (ours, text, theirs, mine):
        path.write_bytes(b"half")
    executed([SOLVED], tmp_path)
    assert not ours.exists()
    assert not text.exists()
    assert theirs.exists()
    assert mine.exists()


@pytest.mark.parametrize("content", ["[]", '{"key": "lost"}', '{"0123456789ab": 7}', "{"])
def test_damaged_failures_are_refused_by_name(tmp_path, no_workers, content):
    (tmp_path / ".fig3").mkdir()
    (tmp_path / ".fig3" / "failures.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"failures\.json is damaged"):
        executed([SOLVED], tmp_path)


def test_every_flipped_bit_of_the_failures_is_refused_by_name(tmp_path):
    path = tmp_path / "failures.json"
    storage.write_checked_json(path, {SOLVED.key: "lost"})
    assert runner.read_failures(path) == {SOLVED.key: "lost"}
    content = path.read_bytes()
    for position in range(len(content)):
        for bit in range(8):
            path.write_bytes(
                content[:position] + bytes([content[position] ^ 1 << bit]) + content[position + 1 :]
            )
            with pytest.raises(CheckpointError, match=r"failures\.json"):
                runner.read_failures(path)


def test_a_table_that_the_grid_denies_is_refused(tmp_path, no_workers):
    write_table(
        tmp_path / "fig3.csv",
        [row | {"d": 4} for row in rows_of(SOLVED, Measured([Measure("gap", 0.25)], 1.0))],
    )
    with pytest.raises(CheckpointError, match=r"fig3\.csv is damaged: d of the run"):
        executed([SOLVED], tmp_path)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StorageError("the disk is full"), r"the disk is full"),
        (ValueError("odd"), rf"ValueError: odd \({Path(__file__).name}:\d+\)"),
    ],
)
def test_whatever_goes_wrong_in_a_worker_is_an_answer(monkeypatch, tmp_path, error, told):
    """An expected error is its sentence; any other also says where it was raised."""

    def fail(*_):
        raise error

    study = dataclasses.replace(experiments.find_study("fig3"), execute=fail)
    monkeypatch.setattr(execute, "find_study", lambda name: study)
    arguments = {"run": dataclasses.asdict(SOLVED), "folder": str(tmp_path)}
    order = {"function": reference(execute_run), "arguments": arguments}
    with (tmp_path / "answers").open("w") as answers:
        answer = answer_order(order, answers)
    assert re.fullmatch(told, answer["error"])


PARENT = """
import json, sys
from pathlib import Path
from lapwing.figures.grid import Run
from lapwing.figures.runner import execute_grid
runs = [Run(**run) for run in json.loads(sys.argv[1])]
execute_grid(runs, {run.key for run in runs}, Path(sys.argv[2]), jobs=int(sys.argv[3]))
"""


def start_parent(runs: list[Run], out: Path, jobs: int) -> psutil.Popen:
    orders = json.dumps([dataclasses.asdict(run) for run in runs])
    return psutil.Popen([sys.executable, "-c", PARENT, orders, str(out / "fig3.csv"), str(jobs)])


def wait_until(condition, process: psutil.Popen | None = None, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        assert process is None or process.poll() is None
        time.sleep(0.02)


def killed_with_children(parent: psutil.Popen) -> list[psutil.Process]:
    """The processes that a killed parent leaves."""
    children = parent.children(recursive=True)
    parent.kill()
    parent.wait()
    return children


@pytest.mark.slow
def test_a_killed_worker_fails_its_run_and_another_does_the_rest(tmp_path):
    seen = {}

    def on_status(status):
        seen.update({each.process.pid: str(each.run) for each in status.workers})
        for each in learning(status):
            if each.run == LONG:
                os.kill(each.process.pid, signal.SIGKILL)

    rows, failures = executed([LONG, SOLVED], tmp_path, on_status=on_status)
    assert failures == {LONG.key: "the worker process was killed by signal 9"}
    assert {row["key"] for row in rows} == {SOLVED.key}
    assert len(seen) == 2
    assert not any(psutil.pid_exists(pid) for pid in seen)
    assert (folder_of(LONG, tmp_path) / "config.json").is_file()


@pytest.mark.slow
def test_an_interruption_ends_the_workers_and_is_no_failure(tmp_path):
    seen = set()

    def interrupt(status):
        seen.update(each.process.pid for each in status.workers)
        if learning(status):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executed([LONG], tmp_path, on_status=interrupt)
    assert len(seen) == 1
    assert not any(psutil.pid_exists(pid) for pid in seen)
    assert not (tmp_path / ".fig3" / "failures.json").exists()
    with storage.lock(tmp_path / ".fig3"):
        pass


@pytest.mark.slow
def test_the_workers_of_a_killed_process_end_and_the_same_call_goes_on_to_the_same_bits(tmp_path):
    runs = [SECONDS, SOLVED]
    whole, _ = executed(runs, tmp_path / "whole")
    out = tmp_path / "killed"
    parent = start_parent(runs, out, jobs=2)
    try:
        wait_until(lambda: any(folder_of(SECONDS, out).glob("checkpoint-*")), parent)
        kept = max(folder_of(SECONDS, out).glob("checkpoint-*")).stem
    finally:
        left = killed_with_children(parent)
    assert len(left) == 2
    assert SECONDS.key not in {row["key"] for row in read_table(out / "fig3.csv")}
    wait_until(lambda: not any(child.is_running() for child in left), seconds=30)

    steps = []
    rows, failures = executed(
        runs, out, on_status=lambda status: steps.extend(each.progress[1] for each in learning(status))
    )
    assert failures == {}
    assert min(steps) > int(kept.removeprefix("checkpoint-"))
    for run in runs:
        assert value(rows, run) == value(whole, run)


@pytest.mark.slow
def test_a_second_process_is_refused_while_the_first_goes_on(tmp_path):
    parent = start_parent([LONG], tmp_path, jobs=1)
    try:
        wait_until(parent.children, parent)
        with pytest.raises(StorageError, match=r"another process .*\.fig3"):
            executed([SOLVED], tmp_path)
        code, out, err = called("reproduce", "fig3", "--out", tmp_path)
        assert (code, out) == (2, "")
        assert "another process" in err
        assert parent.poll() is None
    finally:
        left = killed_with_children(parent)
    assert len(left) == 1
    wait_until(lambda: not any(child.is_running() for child in left), seconds=30)


def test_a_worker_that_no_longer_speaks_json_is_gone():
    """Its last answer may have been cut short; the grid must not wait for the rest."""
    says = "print('{\"measures\": [', flush=True); import time; time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", says], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with tempfile.TemporaryFile("w+") as log:
        worker, pool = LocalWorker(process, log), LocalPool(1, Path("unused"))
        pool.workers.append(worker)
        pool._read_messages(worker)
        assert pool.receive(1.0) == (worker, {"error": "the worker process was killed by signal 9"})
        worker.kill()
