"""Rows that another figure's table holds: a run is done once, whoever asks for it."""

import shutil
from pathlib import Path

import pytest

from lapwing import storage
from lapwing.errors import CheckpointError
from lapwing.figures import fig4, fig5, fig8, runner
from lapwing.figures.grid import Measure, Measured, Row, Run, read_table, rows_of, write_table
from lapwing.figures.methods import method_run
from lapwing.figures.reproduce import reproduce
from lapwing.figures.runner import execute_grid, read_failures
from tests.support.command_line import called


def small(seed: int, *, figure: str = "fig3") -> Run:
    return method_run(figure, "quick", "transitions-2017", "index", 200, 3, seed)


def done(run: Run, value: float = 0.25) -> list[Row]:
    return rows_of(run, Measured([Measure("gap", value), Measure("rank", 3.0)], 1.0))


def execute(runs: list[Run], out: Path, borrowed: list[Row] | None, **options):
    chosen = options.pop("chosen", {run.key for run in runs})
    return execute_grid(runs, chosen, out / "fig3.csv", jobs=1, borrowed=borrowed, **options)


def gaps(rows: list[Row]) -> dict[str, float]:
    assert len({(row["key"], row["metric"], row["step"]) for row in rows}) == len(rows), "twice the same row"
    return {row["key"]: row["value"] for row in rows if row["metric"] == "gap"}


class StartedError(Exception):
    """Someone began to work."""


@pytest.fixture
def no_workers(monkeypatch):
    """To start workers is an error that says so."""

    def start(*_):
        raise StartedError

    monkeypatch.setattr(runner, "work", start)


def test_a_wanted_run_that_was_borrowed_counts_as_done(tmp_path, no_workers):
    """Chosen or not, for a picture shows all that there is; what nobody asked for is not borrowed."""
    first, second = small(0), small(1)
    told = []
    lent = [*done(first, 0.5), *done(second, 0.75), *done(small(7))]
    rows, failures = execute([first, second], tmp_path, lent, chosen={first.key}, on_status=told.append)
    assert gaps(rows) == {first.key: 0.5, second.key: 0.75}
    assert failures == {}
    assert told[-1].done == {first.key, second.key}
    assert gaps(read_table(tmp_path / "fig3.csv")) == gaps(rows)
    rows, _ = execute([first, second], tmp_path, done(first, 0.25))
    assert gaps(rows) == {first.key: 0.5, second.key: 0.75}, "from then on they are its own"


def test_a_run_that_nobody_has_done_is_worked_on(tmp_path, no_workers):
    with pytest.raises(StartedError):
        execute([small(0), small(1)], tmp_path, done(small(0)))
    with pytest.raises(StartedError):
        execute([small(0)], tmp_path, done(small(7)))
    with pytest.raises(StartedError):
        execute([small(0)], tmp_path, None)


def test_the_own_table_comes_first(tmp_path, no_workers):
    write_table(tmp_path / "fig3.csv", done(small(0), 0.125))
    rows, _ = execute([small(0), small(1)], tmp_path, [*done(small(0), 0.5), *done(small(1), 0.75)])
    assert gaps(rows) == {small(0).key: 0.125, small(1).key: 0.75}


def test_to_overwrite_is_to_do_it_again_borrowed_or_not(tmp_path, no_workers):
    with pytest.raises(StartedError):
        execute([small(0)], tmp_path, done(small(0)), overwrite=True)
    execute([small(0)], tmp_path, done(small(0)))
    with pytest.raises(StartedError):
        execute([small(0)], tmp_path, done(small(0)), overwrite=True)


@pytest.mark.slow
def test_what_is_overwritten_is_measured_anew_and_the_rest_stays_borrowed(tmp_path):
    lent = [*done(small(0), 99.0), *done(small(1), 99.0)]
    rows, failures = execute([small(0), small(1)], tmp_path, lent, chosen={small(0).key}, overwrite=True)
    assert failures == {}
    assert gaps(rows)[small(1).key] == 99.0
    assert 0 < gaps(rows)[small(0).key] < 50


def test_a_run_that_failed_here_and_was_done_there_is_no_failure(tmp_path, no_workers):
    (tmp_path / ".fig3").mkdir()
    storage.write_json(tmp_path / ".fig3" / "failures.json", {small(0).key: "lost", small(1).key: "lost too"})
    rows, failures = execute([small(0), small(1)], tmp_path, done(small(0)))
    assert set(gaps(rows)) == {small(0).key}
    assert failures == {small(1).key: "lost too"}
    assert read_failures(tmp_path / ".fig3" / "failures.json") == failures


PART = ("method=ddpg", "method=dqn")
"""The pretrained runs."""


def lent(study, seeds: int = 2) -> list[Row]:
    """All that a figure asks for, with curves that end at 1 or at the optimum."""
    rows = []
    for run in study.runs("quick", seeds):
        metric, last = ("success", 1.0) if run.method == "ddpg" else ("return", -11.0)
        rows += rows_of(run, Measured([Measure(metric, last / 2, 2_000), Measure(metric, last, 4_000)], 1.0))
    return rows


@pytest.fixture(scope="module")
def lenders(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("lenders")
    for study in (fig4.FIG4, fig5.FIG5):
        write_table(out / f"{study.name}.csv", lent(study))
    return out


@pytest.fixture
def out(lenders, tmp_path) -> Path:
    """A folder with the tables of figures 4 and 5, all of it done."""
    return Path(shutil.copytree(lenders, tmp_path / "results"))


def test_the_pretrained_runs_of_figure_8_are_taken_from_figures_4_and_5(out, no_workers):
    tables = {name: (out / f"{name}.csv").read_bytes() for name in ("fig4", "fig5")}
    made = reproduce("fig8", out=out, seeds=2, only=PART)
    assert (made.done, len(made.runs), made.failures) == (10, 20, {})
    rows = read_table(out / "fig8.csv")
    assert {row["key"] for row in rows} == {run.key for run in made.runs if "online" not in run.method}
    originals = [row | {"figure": "fig8"} for name in tables for row in read_table(out / f"{name}.csv")]
    assert all(row in originals for row in rows)
    assert {name: (out / f"{name}.csv").read_bytes() for name in tables} == tables
    text = (out / "fig8-quick.md").read_text()
    assert "| PointUMaze | pretrained | 1.00 [1.00, 1.00] | 4,000 [4,000, 4,000] |" in text
    assert "**10 of 20 runs are not done yet**" in text


def test_the_other_presets_runs_are_not_taken(out, no_workers):
    with pytest.raises(StartedError):
        reproduce("fig8", out=out, preset="paper", seeds=2, only=PART)


def test_what_nobody_lends_is_worked_on(out, no_workers):
    for only in (("method=ddpg online",), ("method=dqn online",), (*PART, "seed=2")):
        with pytest.raises(StartedError):
            reproduce("fig8", out=out, seeds=3, only=only)
    for name, method in (("fig5", "ddpg"), ("fig4", "dqn")):
        (out / f"{name}.csv").unlink()
        with pytest.raises(StartedError):
            reproduce("fig8", out=out, seeds=2, only=(f"method={method}",))


def test_figures_4_and_5_do_not_borrow_back(out, no_workers):
    reproduce("fig8", out=out, seeds=2, only=PART)
    (out / "fig5.csv").unlink()
    with pytest.raises(StartedError):
        reproduce("fig5", out=out, seeds=2, only=("environment=PointUMaze", "reward=mix"))
    assert fig5.FIG5.borrows == fig4.FIG4.borrows == ()
    assert fig8.FIG8.borrows == ("fig4", "fig5")


def test_a_damaged_table_of_a_lender_is_named_and_nothing_is_written(out, no_workers):
    (out / "fig4.csv").write_text("my,own,table\n1,2,3\n")
    with pytest.raises(CheckpointError, match=r"fig4\.csv"):
        reproduce("fig8", out=out, seeds=2, only=PART)
    assert not (out / "fig8.csv").exists()
    code, printed, err = called("reproduce", "fig8", "--out", out, "--seeds", "2")
    assert (code, printed) == (2, "")
    assert err.startswith(f"lapwing: {out / 'fig4.csv'} ")


def test_the_command_line_tells_what_is_there(out, no_workers):
    code, printed, err = called("reproduce", "fig8", "--out", out, "--seeds", "2", "--only", *PART)
    assert code == 0, err
    assert f"fig8: 10 of 20 runs are in {out / 'fig8.csv'}" in err
    assert [Path(line).name for line in printed.split()] == [
        *("fig8.csv", "fig8-quick.md"),
        *("fig8-quick.png", "fig8-quick.svg"),
    ]
