import dataclasses
import io
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
from xml.etree import ElementTree

import matplotlib.image
import pytest
from rich.console import Console

from lapwing import storage
from lapwing.cli import progress
from lapwing.cli.progress import headline, status_view
from lapwing.errors import ConfigError
from lapwing.figures import FIGURES, STUDIES, fig3, runner
from lapwing.figures.execute import execute_run
from lapwing.figures.grid import Measure, Measured, Run, read_table, rows_of, write_table
from lapwing.figures.methods import method_run
from lapwing.figures.reproduce import figures_with, reproduce
from lapwing.figures.runner import Status
from lapwing.sweeps.local import LocalWorker
from lapwing.sweeps.task import Task
from tests.support.command_line import called, refused

SOLVED = method_run("fig3", "quick", "transitions-2017", "index", 100, 3, 0)
IMPOSSIBLE = method_run("fig3", "quick", "graph-drawing", "index", 100, 500, 0, steps=30)


def cell(method: str, seed: int) -> Run:
    """A run of the real figure 3."""
    return method_run("fig3", "quick", method, "position", 1_000, 20, seed)


@pytest.fixture
def small_grid(monkeypatch):
    """Let figure 3 be of these runs alone."""

    def replace(*runs: Run) -> None:
        study = dataclasses.replace(fig3.FIG3, runs=lambda preset, seeds: list(runs))
        monkeypatch.setattr(fig3, "FIG3", study)

    return replace


@pytest.fixture
def no_workers(monkeypatch):
    """To start workers is a failure of the test."""
    monkeypatch.setattr(runner, "work", lambda *_: pytest.fail("workers were started"))


def assert_pictures(*paths: Path) -> None:
    for path in paths:
        if path.suffix == ".png":
            assert matplotlib.image.imread(path).ndim == 3
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_a_figure_without_runs_is_drawn_and_described(tmp_path):
    made = reproduce("fig2", out=tmp_path / "new" / "results")
    names = ["fig2.md", "fig2.png", "fig2.svg"]
    assert sorted(path.name for path in (tmp_path / "new" / "results").iterdir()) == names
    assert sorted(path.name for path in made.files) == names
    assert (made.runs, made.done, made.failures) == ([], 0, {})
    assert_pictures(*(path for path in made.files if path.suffix != ".md"))
    title, _, made_by, *_ = (tmp_path / "new" / "results" / "fig2.md").read_text().splitlines()
    assert title == "# The FourRoom maze and its three observations"
    assert made_by.startswith("Made by `lapwing reproduce fig2`, lapwing ")
    assert "seeds" not in made_by


def test_committed_rows_count_as_done_and_the_text_says_what_is_missing(tmp_path, small_grid, no_workers):
    done = [cell(method, seed) for method in ("default", "transitions-2017") for seed in range(3)]
    missing = [cell("graph-drawing", seed) for seed in range(3)]
    small_grid(*done, *missing)
    rows = [
        row
        for run in done
        for row in rows_of(run, Measured([Measure("gap", 0.25 * (1 + run.seed)), Measure("rank", 20.0)], 3.0))
    ]
    write_table(tmp_path / "fig3.csv", rows)
    committed = (tmp_path / "fig3.csv").read_bytes()

    made = reproduce("fig3", out=tmp_path, only=("method=default", "method=transitions-2017"))
    assert (made.done, len(made.runs), made.failures) == (6, 9, {})
    names = ["fig3-quick.md", "fig3-quick.png", "fig3-quick.svg", "fig3.csv"]
    assert sorted(path.name for path in made.files) == names
    assert (tmp_path / "fig3.csv").read_bytes() == committed
    assert_pictures(*(path for path in made.files if path.suffix in (".png", ".svg")))

    text = (tmp_path / "fig3-quick.md").read_text()
    assert "Made by `lapwing reproduce fig3 --preset quick --seeds 3`" in text
    assert "Means over 3 seeds with 95 % t-intervals" in text
    assert "**3 of 9 runs are not done yet**" in text
    assert "(fig3-quick.png)" in text
    (line,) = [line for line in text.splitlines() if line.startswith("| 1,000 |") and "[" in line]
    assert line.split(" | ")[1:4] == ["–", "0.5 [0, 1.12]", "0.5 [0, 1.12]"]


def test_to_draw_only_starts_no_run_and_leaves_the_table_as_it_is(tmp_path, small_grid, no_workers):
    small_grid(SOLVED, IMPOSSIBLE)
    write_table(tmp_path / "fig3.csv", rows_of(SOLVED, Measured([Measure("gap", 0.5)], 1.0)))
    before = (tmp_path / "fig3.csv").read_bytes()
    made = reproduce("fig3", out=tmp_path, draw_only=True)
    assert (made.done, len(made.runs)) == (1, 2)
    assert (tmp_path / "fig3.csv").read_bytes() == before
    assert "**1 of 2 runs are not done yet**" in (tmp_path / "fig3-quick.md").read_text()
    assert "One seed, no intervals" in (tmp_path / "fig3-quick.md").read_text()
    code, _, err = called("reproduce", "fig3", "--out", tmp_path, "--draw-only")
    assert code == 0, err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "jobs .* 0"),
        ({"seeds": 0}, "seeds .* 0"),
        ({"only": ("n=7",)}, "n=7"),
        ({"draw_only": True, "overwrite": True}, "draw_only"),
        ({"draw_only": True, "only": ("n=100",)}, "draw_only"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        reproduce("fig3", out=tmp_path / "results", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig33"], "lapwing: unknown figure 'fig33'; did you mean fig3?"),
        (["table1"], ", ".join((*STUDIES, "all"))),
        (["fig3", "--jobs", "-2"], "-2"),
        (["fig3", "--only", "input=imag"], "input=imag"),
        (["fig3", "--preset", "papr"], "--preset"),
        ([], "FIGURE"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_told_in_a_sentence_and_leaves_nothing(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused("reproduce", *arguments)


def test_help_explains_every_option():
    code, out, _ = called("reproduce", "--help")
    assert code == 0
    for option in (
        "FIGURE",
        "--preset",
        "--out",
        "--jobs",
        "--seeds",
        "--only",
        "--draw-only",
        "--retry",
        "--overwrite",
    ):
        assert option in out


def test_the_paths_of_what_was_made_are_on_standard_output(tmp_path):
    code, out, err = called("reproduce", "fig2", "--out", tmp_path)
    assert (code, err) == (0, "")
    assert sorted(out.split()) == sorted(str(tmp_path / f"fig2.{ending}") for ending in ("md", "png", "svg"))


@pytest.mark.slow
def test_a_failed_run_is_exit_code_1_and_everything_else_is_made(tmp_path, small_grid):
    small_grid(IMPOSSIBLE, SOLVED)
    code, out, err = called("reproduce", "fig3", "--out", tmp_path, "--jobs", "1")
    assert code == 1
    assert f"fig3: 1 of 2 runs are in {tmp_path}/fig3.csv" in err
    assert f"failed: {IMPOSSIBLE}: dim " in err
    assert "--retry" in err
    assert "Traceback" not in err
    made = [Path(line).name for line in out.split()]
    assert made == ["fig3.csv", "fig3-quick.md", "fig3-quick.png", "fig3-quick.svg"]
    assert {row["key"] for row in read_table(tmp_path / "fig3.csv")} == {SOLVED.key}
    assert "**1 of 2 runs are not done yet**" in (tmp_path / "fig3-quick.md").read_text()


def test_an_error_with_square_brackets_is_shown_as_it_is(tmp_path, small_grid, no_workers):
    small_grid(SOLVED)
    out = tmp_path / "results [red]"
    (out / ".fig3").mkdir(parents=True)
    storage.write_json(out / ".fig3" / "failures.json", {SOLVED.key: "shape [a] lost in [/tmp/x]"})
    code, _, err = called("reproduce", "fig3", "--out", out)
    assert code == 1
    assert "shape [a] lost in [/tmp/x]" in err
    assert "results [red]/fig3.csv" in err


@pytest.fixture
def status(tmp_path) -> Iterator[Status]:
    """Of ten runs two of the default are done, one is at work and one failed; a baseline is at work."""
    default = [cell("default", seed) for seed in range(6)]
    solved = [cell("transitions-2017", seed) for seed in range(4)]
    process = mock.create_autospec(subprocess.Popen, instance=True)
    with (tmp_path / "log").open("w+") as log:
        yield Status(
            runs=[*default, *solved],
            jobs=2,
            done={default[0].key, default[1].key, "another"},
            failures={default[2].key: "lost", "another one": "lost too"},
            workers=[
                LocalWorker(process, log, Task(execute_run, run=default[3]), ("learning", 30, 120)),
                LocalWorker(process, log, Task(execute_run, run=solved[0])),
            ],
            waiting=[*default[4:], *solved[1:]],
            seconds={("default", "position"): [10.0, 20.0]},
        )


def shown(what) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(what)
    return console.file.getvalue()


def test_the_table_counts_each_group(status):
    lines = [line.split() for line in shown(status_view(status)).splitlines()]
    assert ["default", "position", "2/6", "1", "1", "15.0"] in lines
    assert ["transitions-2017", "position", "0/4", "1"] in lines


def test_the_table_says_what_each_worker_does(status):
    text = shown(status_view(status))
    assert "default, FourRoom, position, n=1,000, d=20, beta=1, seed 3: learning 25%" in text
    assert re.search("transitions-2017, FourRoom, position, n=1,000, d=20, seed 0: starting *\n", text)


def test_the_headline_says_how_long_the_rest_may_take(status):
    """Three runs of the default at 15 s, four baselines of which nothing is known at 15 s, two at a time."""
    assert status.seconds_to_go() == pytest.approx(7 * 15 / 2)
    assert headline(status) == "2/10 runs done, 1 failed, about 52 s to go"
    status.seconds[("transitions-2017", "position")] = [1.0]
    assert status.seconds_to_go() == pytest.approx((3 * 15 + 4 * 1) / 2)
    status.seconds = {("default", "position"): [2_000.0]}
    assert headline(status) == "2/10 runs done, 1 failed, about 1 h 57 min to go"


def test_before_the_first_run_and_after_the_last_no_time_is_told(status):
    status.seconds = {}
    assert status.seconds_to_go() is None
    assert headline(status) == "2/10 runs done, 1 failed"
    status.done, status.failures = {run.key for run in status.runs}, {}
    assert headline(status) == "10/10 runs done"


def test_without_a_terminal_there_is_a_line_now_and_then(status, monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    console = Console(file=io.StringIO(), width=120)
    with progress.dashboard(console) as show:
        for second in range(60):
            clock.now = 100.0 + second
            show(status)
    lines = console.file.getvalue().splitlines()
    assert lines == ["2/10 runs done, 1 failed, about 52 s to go"] * 3


def test_figures_without_the_chosen_cells_are_passed_over():
    assert figures_with(FIGURES, "quick", 1, ("d=20",)) == (
        *("fig1", "fig2", "fig3", "fig4"),
        *("fig5", "fig7", "fig8"),
    )
    assert figures_with(FIGURES, "quick", 1, ("reward=potential",)) == ("fig2", "fig4")
    assert figures_with(FIGURES, "quick", 1, ("environment=AntUMaze",)) == ("fig2", "fig5", "fig8")
    assert figures_with(FIGURES, "quick", 1, ("method=ddpg online",)) == ("fig2", "fig8")
    assert figures_with(FIGURES, "quick", 1, ()) == FIGURES
    with pytest.raises(ConfigError, match="n=7"):
        figures_with(FIGURES, "quick", 1, ("n=7",))
