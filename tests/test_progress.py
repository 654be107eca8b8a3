"""Every stage of a run tells when it begins and when it is over."""

import io
import time

import numpy as np
from rich.console import Console

import lapwing
from lapwing.cli.progress import progress_bar
from lapwing.data.experience import Experience


def phases_of(*args, **settings) -> list[tuple[str, int, int]]:
    """What `learn` reports, in order."""
    seen: list[tuple[str, int, int]] = []
    lapwing.learn(
        *args, on_progress=lambda phase, done, total, _: seen.append((phase, done, total)), **settings
    )
    return seen


def check_whole(seen: list[tuple[str, int, int]], names: set[str]) -> None:
    """Each phase begins at 0 and ends with all done, and at every time one is at work."""
    assert {phase for phase, *_ in seen} >= names
    at_work: set[str] = set()
    for number, (phase, done, total) in enumerate(seen):
        if phase not in at_work and phase != "collecting":
            assert done == 0 or total == done, (phase, done, total)
        at_work = at_work | {phase} if done < total else at_work - {phase}
        assert number < len(seen) - 1 or not at_work, at_work


def test_every_stage_of_a_maze_reports(tmp_path):
    small = {"transitions": 20_000, "dim": 3, "steps": 20, "hidden": (8,)}
    stages = {"opening", "preparing", "compiling", "learning", "measuring"}
    check_whole(phases_of("FourRoom", **small), stages)
    in_folder = phases_of("FourRoom", out=tmp_path / "run", **small)
    check_whole(in_folder, stages | {"saving", "evaluating"})


def test_every_stage_of_closed_form_reports():
    rng = np.random.default_rng(0)
    walk = Experience(rng.standard_normal((4_00, 2)).cumsum(axis=0), [100] * 4)
    seen = phases_of(walk, dim=3, trials=1, held_out=0.0)
    check_whole(seen, {"opening", "preparing", "trying out", "learning", "measuring"})
    assert ("trying out", 0, 1) in seen


def test_a_row_with_everything_fits_into_a_line_of_80():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with progress_bar(console) as bar:
        for done in range(0, 2_000, 500):
            bar("training", done, 2_000, {"loss": 0.9248, "steps_per_second": 437.0})
            time.sleep(0.2)
    lines = console.file.getvalue().replace("\r", "\n").splitlines()  # pyright: ignore[reportAttributeAccessIssue]
    shown = [line for line in lines if "training" in line]
    assert any("to go" in line and "437 steps/s" in line for line in shown)
    assert all("training" in line for line in lines if "go" in line)


def test_where_there_is_no_terminal_each_stage_is_a_line_as_it_begins_and_as_it_ends():
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    written = []
    with progress_bar(console) as bar:
        for done in (0, 500, 2_000, 2_000):
            bar("training", done, 2_000, {"loss": 0.9248, "steps_per_second": 437.0} if done else {})
            written.append(console.file.getvalue())  # pyright: ignore[reportAttributeAccessIssue]
        bar("drawing", 0, 1, {})
    first, between, last, again = written
    assert again == last
    assert first.count("training") == 1
    assert between == first
    assert last.count("training") == 2
    assert "2,000/2,000" in last
    assert "drawing" in console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert last.replace("\n", "").isprintable()
