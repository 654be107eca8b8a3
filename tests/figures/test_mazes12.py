import dataclasses
from collections import Counter

import numpy as np
import pytest

from lapwing.figures import mazes12
from lapwing.figures.grid import Measure, Measured, recipe, rows_of
from lapwing.figures.mazes12 import MAZES12, METHODS, PUBLISHED, STEPS
from lapwing.laplacian.chain import Chain
from lapwing.laplacian.evaluate import cosine_similarities, exact_spectrum, single_cosines
from lapwing.mazes import BENCHMARK


def test_the_grid_has_every_method_maze_input_dimension_and_source():
    runs = MAZES12.runs("paper", 2)
    assert len({run.key for run in runs}) == len({str(run) for run in runs}) == len(runs)
    count = Counter((run.method, run.input, run.n, run.d, run.seed) for run in runs)
    assert len(count) == len(METHODS) * 2 * 2 * 2 * 2
    assert {n for (*_, d, _), n in count.items() if d == 11} == {12}
    assert {n for (*_, d, _), n in count.items() if d == 50} == {
        10
    }  # GridMaze-7 and -9 have 11 and 13 states
    assert set(PUBLISHED) == set(BENCHMARK)
    objectives = {(run.method, mazes12.settings_of(run).objective) for run in runs[: len(runs) // 2]}
    assert objectives == {(name, "graph-drawing" if name == "default" else name) for name in METHODS}


def test_the_preset_changes_what_the_objectives_are_given_and_not_the_default():
    quick, paper = ({run.key for run in MAZES12.runs(preset, 1)} for preset in ("quick", "paper"))
    of_default = {run.key for run in MAZES12.runs("quick", 1) if run.method == "default"}
    assert quick & paper == of_default


def test_a_run_gives_every_measure_with_the_floor_of_the_data(tmp_path):
    run = next(
        run
        for run in MAZES12.runs("quick", 1)
        if (run.method, run.environment, run.n) == ("allo", "GridMaze-7", STEPS)
    )
    few = {"transitions": 2_000, "steps": 20, "hidden": (8,), "dim": 5, "batch": 16}
    run = dataclasses.replace(run, d=5, recipe=recipe(**(run.settings | few)))
    measured = MAZES12.execute(run, tmp_path / "run", lambda *_: None)
    values = {measure.metric: measure.value for measure in measured.measures}
    assert values["steps"] == 20
    assert all(0 <= values[name] <= 1 + 1e-6 for name in mazes12.METRICS)
    assert values["floor"] == pytest.approx(1, abs=0.1)


def test_the_text_has_both_cosines_the_floor_and_the_published_number():
    run = next(
        run
        for run in MAZES12.runs("paper", 1)
        if (run.method, run.environment, run.n, run.d) == ("allo", "GridRoom-4", STEPS, 11)
    )
    measures = [
        Measure(name, value) for name, value in zip(mazes12.METRICS, (0.91, 0.82, 0.93, 0.84), strict=True)
    ]
    rows = rows_of(run, Measured(measures, 12.5))
    text = "\n".join(MAZES12.describe(rows, "paper"))
    assert "| GridRoom-4 | 0.9300 / 0.8400 | 0.9100 / 0.8200 | 0.9965 | 0.9073 |" in text
    assert "| GridRoom-4 | 12.5 |" in text
    assert MAZES12.draw(rows, "paper").axes


def test_one_by_one_a_rotation_within_a_repeated_eigenvalue_counts_and_by_eigenspaces_it_does_not():
    """A ring of six states, whose second eigenvalue is double."""
    ring = (np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)) / 12
    spectrum = exact_spectrum(Chain(ring + np.eye(6) * 0, "ring"), 3)
    turn = np.array([[1, 0, 0], [0, np.cos(0.5), np.sin(0.5)], [0, -np.sin(0.5), np.cos(0.5)]])
    turned = 3 * spectrum.functions[:, :3] @ turn
    np.testing.assert_allclose(cosine_similarities(spectrum, turned), 1)
    np.testing.assert_allclose(single_cosines(spectrum, turned), [1, np.cos(0.5), np.cos(0.5)])
