import dataclasses
import math

import numpy as np
import pytest

from lapwing.errors import ConfigError
from lapwing.figures import FIGURES, fig3, fig7, find_study, methods
from lapwing.figures.fig3 import FIG3, FIG6, comparison
from lapwing.figures.grid import Measure, Measured, rows_of
from lapwing.figures.reproduce import choose
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings, ResolvedSettings

GRIDS = {"fig3": FIG3.runs, "fig6": FIG6.runs, "fig7": fig7.runs}


SIZES = {"fig3": 6 * 3 * 7, "fig6": 6 * 3 * 4 * 2, "fig7": 2 * 3 * 8}
"""Methods, inputs and numbers of transitions; then also dimensions; methods, dimensions and weights."""


@pytest.mark.parametrize(("name", "count"), SIZES.items())
@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_a_grid_has_every_combination_once(name, count, preset):
    runs = GRIDS[name](preset, 5)
    assert len(runs) == 5 * count
    assert len({run.key for run in runs}) == len(runs)
    cell = {(run.method, run.input, run.n, run.d, run.beta, run.seed) for run in runs}
    assert len(cell) == len(runs)
    assert {(run.figure, run.preset, run.environment) for run in runs} == {(name, preset, "FourRoom")}


def test_the_axes_of_the_grids():
    three, six, seven = (GRIDS[name]("paper", 1) for name in GRIDS)
    assert {run.n for run in three} == {100, 300, 1_000, 3_000, 10_000, 30_000, 100_000}
    assert ({run.d for run in three}, {run.d for run in six}) == ({20}, {50, 100})
    assert {run.input for run in three} == {run.input for run in six} == {"index", "position", "image"}
    assert {(run.n, run.input) for run in seven} == {(2_000, "position")}
    assert {run.d for run in seven} == {20, 50, 100}
    assert {run.beta for run in seven} == {0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0}


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_more_seeds_leave_the_runs_of_the_first_as_they_are(name, preset):
    few, many = GRIDS[name](preset, 2), GRIDS[name](preset, 4)
    assert [run.key for run in many][: len(few)] == [run.key for run in few]
    assert {run.seed for run in many} == {0, 1, 2, 3}


def test_what_does_not_depend_on_the_preset_is_shared_by_both():
    quick, paper = ({run.key: run.method for run in FIG3.runs(preset, 1)} for preset in ("quick", "paper"))
    shared, apart = set(quick.values()) - {"graph-drawing"}, {"graph-drawing"}
    assert {quick[key] for key in quick.keys() & paper.keys()} == shared
    assert {quick[key] for key in quick.keys() - paper.keys()} == apart


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_the_columns_of_a_run_say_what_its_recipe_does(name, preset):
    for run in GRIDS[name](preset, 2):
        settings = LearnSettings.from_keywords(run.settings)
        assert (settings.observation, settings.transitions) == (run.input, run.n)
        assert (settings.dim, settings.seed) == (run.d, run.seed)
        if name == "fig7":
            assert settings.beta == run.beta
        if run.method == "graph-drawing":
            assert (settings.preset, settings.lam) == ("paper", run.lam)
        else:
            assert settings.preset == "default"
        if (name, run.method) == ("fig3", "default"):
            assert set(run.settings) == {"observation", "transitions", "dim", "seed"}


@pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")
@pytest.mark.parametrize("name", GRIDS)
def test_the_preset_paper_resolves_to_the_papers_settings_and_no_others(name):
    runs = [run for run in GRIDS[name]("paper", 1) if run.method == "graph-drawing"]
    cells = {(run.input, run.d, run.beta): run for run in runs}
    targets = {
        observation: open_target("FourRoom", LearnSettings(observation=observation, transitions=100_000))
        for observation in {run.input for run in runs}
    }
    for run in cells.values():
        settings = resolve(LearnSettings.from_keywords(run.settings), targets[run.input])
        encoder = {"index": "linear", "position": "mlp", "image": "conv"}[run.input]
        expected = ResolvedSettings(
            **{"dim": run.d, "observation": run.input, "transitions": run.n, "seed": 0, "preset": "paper"},
            **{"estimator": "sampled", "batch": 32, "steps": 100_000, "stop": 100_000},
            **{"learning_rate": 1e-3, "schedule": "constant", "lam": 0.0, "delta": 1.0},
            **{"beta": run.beta if name == "fig7" else run.d / 20, "oversample": 0, "rotate": False},
            **{"encoder": encoder, "hidden": (200, 200), "standardise": encoder == "conv"},
            image_scale=1.0 if encoder == "conv" else None,
        )
        assert settings == expected


@pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")
def test_the_preset_quick_changes_the_estimator_and_the_steps_alone():
    target = open_target("FourRoom", LearnSettings(transitions=1_000))
    quick, paper = (
        resolve(
            LearnSettings.from_keywords(
                methods.method_run("fig3", preset, "graph-drawing", "position", 1_000, 20, 0).settings
            ),
            target,
        )
        for preset in ("quick", "paper")
    )
    assert dataclasses.replace(quick, estimator="sampled", steps=100_000, stop=100_000) == paper
    assert quick.estimator == "exact"
    assert quick.stop == quick.steps < 100_000


def test_every_figure_can_be_found_and_an_unknown_one_is_refused():
    assert [find_study(name).name for name in FIGURES] == list(FIGURES)
    with pytest.raises(ConfigError, match=r"'fig33'.* fig3\?"):
        find_study("fig33")


def test_a_part_of_a_grid_is_chosen_by_columns():
    runs = GRIDS["fig7"]("quick", 2)
    chosen = choose(runs, ("d=20", "d=50", "beta=0.5", "method=default"))
    expected = [run for run in runs if run.d in (20, 50) and run.beta == 0.5 and run.method == "default"]
    assert chosen == expected
    assert len(chosen) == 4
    assert choose(runs, ()) == runs


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("input", "COLUMN=VALUE, not 'input'"),
        ("inputs=image", r"COLUMN=VALUE, not 'inputs=image'.* input\?"),
        ("preset=paper", "COLUMN=VALUE, not 'preset=paper'.* environment, method"),
        ("input=imag", r"input=imag.* image\?"),
        ("n=7", "n=7"),
    ],
)
def test_a_choice_that_fits_no_run_is_refused(choice, message):
    with pytest.raises(ConfigError, match=message):
        choose(GRIDS["fig3"]("quick", 1), (choice,))


def test_a_figure_without_runs_takes_any_choice_by_a_known_column():
    """`lapwing reproduce all --only …` comes to it too."""
    assert choose([], ("method=default",)) == []
    with pytest.raises(ConfigError, match="COLUMN=VALUE"):
        choose([], ("mehtod=default",))


def finished(name: str, value=lambda run: 0.1 * (1 + run.seed)) -> list[dict]:
    """Rows as if all runs of a grid had been done."""
    rows = []
    for run in GRIDS[name]("quick", 3):
        measures = [Measure("gap", value(run)), Measure("rank", float(run.d))]
        measures += [Measure("gap_floor", 0.05)] if run.method == "default" else []
        rows += rows_of(run, Measured(measures, 2.0 if run.method == "default" else 8.0))
    return rows


@pytest.mark.parametrize(("name", "panels"), [("fig3", 3), ("fig6", 6), ("fig7", 3)])
def test_a_figure_has_a_panel_for_each_cell_and_can_be_drawn_before_anything_is_done(name, panels):
    study = find_study(name)
    figure = study.draw(finished(name), "quick")
    assert len(figure.axes) == panels
    assert all(axis.get_xscale() == axis.get_yscale() == "log" for axis in figure.axes)
    assert len(study.draw([], "quick").axes) == panels


def test_curves_show_the_means_of_the_seeds():
    figure = FIG3.draw(finished("fig3"), "quick")
    for axis in figure.axes:
        *lines, floor = axis.get_lines()
        assert len(lines) == len(methods.METHODS)
        for line in lines:
            np.testing.assert_array_equal(line.get_xdata(), fig3.SIZES)
            np.testing.assert_allclose(line.get_ydata(), 0.2)
        np.testing.assert_allclose(floor.get_ydata(), 0.05)


def test_the_best_beta_has_the_lowest_mean():
    rows = finished("fig7", value=lambda run: abs(math.log((run.beta or 1) / (run.d / 20))) + 0.01 * run.seed)
    for method in fig7.METHODS:
        assert [fig7.best_beta(rows, method, d) for d in (20, 50, 100)] == [1.0, 2.5, 5.0]
    assert fig7.best_beta([], "default", 20) is None
    lines = fig7.describe(rows, "quick")
    assert sum(line.endswith(" | 1 | 2.5 | 5 |") for line in lines) == len(fig7.METHODS)


def test_what_the_seeds_cannot_tell_from_the_best_beta_is_named():
    above = {0.5: [0.1, -0.1, 0.1], 1.0: [0.0, 0.0, 0.0], 2.5: [0.4, 0.5, 0.6]}
    rows = finished("fig7", value=lambda run: 1.0 + above.get(run.beta, [5.0] * 3)[run.seed])
    assert fig7.as_good(rows, "default", 20) == "1 (or 0.5)"
    assert fig7.as_good([], "default", 20) is None


def test_the_comparison_says_which_method_is_below_the_baselines():
    gaps = {"graph-drawing": 0.5, "default": 0.125, "transitions-2017": 0.25, "successor-2018": 0.75}
    rows = finished("fig3", value=lambda run: gaps.get(run.method, 9.0))
    lines = comparison(rows, 20, [100])
    assert [line.split(" | ", 1)[1] for line in lines[4:]] == ["100 | no | yes | 0.25 | 0.25 |"] * 3
    lines = comparison(rows, 20, [7])
    assert lines[4] == "| index | 7 | – | – | – | – |"


def test_what_the_seeds_cannot_tell_apart_is_level():
    """The mean is below, but not on every seed."""
    ours = {"default": [0.5, 1.2, 0.6]}
    rows = finished("fig3", value=lambda run: ours.get(run.method, [1.0] * 3)[run.seed])
    assert comparison(rows, 20, [100])[4].startswith("| index | 100 | level | level |")


def test_a_rank_below_d_is_told_beside_the_gap():
    rows = finished("fig3")
    assert "(rank" not in "\n".join(FIG3.describe(rows, "quick"))
    for one in rows:
        if (one["metric"], one["method"]) == ("rank", "default"):
            one["value"] = 12.0
    told = [line for line in FIG3.describe(rows, "quick") if "(rank 12)" in line]
    assert len(told) == 3 * len(fig3.SIZES)
    assert all(line.count("(rank") == 1 for line in told)
