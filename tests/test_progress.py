"""Every stage of a run tells when it begins and when it is over."""

import numpy as np

import lapwing
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
