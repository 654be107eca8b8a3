"""Figure 5: its grid, and its picture and text from rows made by hand."""

import io

import numpy as np
import pytest

from lapwing.envs.arena import open_arena
from lapwing.figures import fig5
from lapwing.figures.grid import Measure, Measured, Row, rows_of
from lapwing.figures.reproduce import choose

REWARDS = {
    "PointUMaze": ("sparse", "l2", "rawmix", "mix", "fullmix"),
    "PointHookMaze": ("sparse", "l2", "rawmix", "mix", "fullmix"),
    "AntUMaze": ("sparse", "l2", "mix"),
}


def finished(preset: str = "quick", seeds: int = 2, **only: str) -> list[Row]:
    """Rows as if all runs, or those that `only` says, had been done; success grows with the seed."""
    rows = []
    for run in choose(fig5.runs(preset, seeds), tuple(f"{name}={value}" for name, value in only.items())):
        measures = [Measure("success", 0.25 * (k + run.seed), 2_000 * k) for k in (1, 2)]
        measures += [Measure("distance", 8.0 - k, 2_000 * k) for k in (1, 2)]
        if run.d:
            measures += [Measure("gate", 0.9), Measure("gate_l2", 0.5)]
        if run.d and run.seed == 0:
            points = len(open_arena(run.environment).points)
            measures += [Measure("map", float(place), place) for place in range(points)]
        rows += rows_of(run, Measured(measures, 1.0))
    return rows


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_the_grid_has_every_arena_and_reward_once_with_every_seed(preset):
    runs = fig5.runs(preset, 5)
    cells = {(run.environment, run.reward, run.seed) for run in runs}
    assert cells == {(a, r, s) for a, rewards in REWARDS.items() for r in rewards for s in range(5)}
    assert len(runs) == len({run.key for run in runs}) == len(cells) == 13 * 5
    assert {(run.figure, run.preset, run.method) for run in runs} == {("fig5", preset, "ddpg")}


def test_the_presets_share_no_run():
    quick, paper = ({run.key for run in fig5.runs(preset, 2)} for preset in ("quick", "paper"))
    assert not quick & paper


def test_more_seeds_leave_the_runs_of_the_first_as_they_are():
    few, many = fig5.runs("quick", 1), fig5.runs("quick", 3)
    assert [run.key for run in many][:13] == [run.key for run in few]
    assert [run.seed for run in many] == sorted(run.seed for run in many)


def test_a_part_of_the_grid_is_chosen_by_arena_and_reward():
    chosen = choose(fig5.runs("quick", 5), ("environment=AntUMaze", "reward=mix", "reward=l2", "seed=4"))
    assert [(run.environment, run.reward, run.seed) for run in chosen] == [
        ("AntUMaze", "l2", 4),
        ("AntUMaze", "mix", 4),
    ]


# The picture


def drawn(figure) -> None:
    figure.savefig(io.BytesIO(), format="png")


def by_title(figure) -> dict:
    return {axis.get_title(): axis for axis in figure.axes if axis.get_title()}


def test_each_arena_has_its_maps_and_its_curves():
    figure = fig5.draw(finished(), "quick")
    axes = by_title(figure)
    assert set(axes) == {
        "PointUMaze (quick)",
        "PointUMaze (quick): φ of (x, y), soft",
        "PointUMaze (quick): φ of the whole state, soft",
        "PointHookMaze (quick)",
        "PointHookMaze (quick): φ of (x, y), commute",
        "PointHookMaze (quick): φ of the whole state, commute",
        "AntUMaze (quick)",
        "AntUMaze (quick): φ of (x, y), commute",
    }
    for arena, rewards in REWARDS.items():
        *lines, wanted = axes[f"{arena} (quick)"].get_lines()
        assert len(lines) == len(rewards)
        assert set(wanted.get_ydata()) == {0.9}
        for line in lines:
            np.testing.assert_allclose(line.get_xydata(), [[2_000, 0.375], [4_000, 0.625]])
    drawn(figure)


def test_a_part_of_the_grid_can_be_drawn():
    figure = fig5.draw(finished(environment="AntUMaze", reward="l2"), "quick")
    assert list(by_title(figure)) == ["AntUMaze (quick)"]
    drawn(figure)


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_the_figure_can_be_drawn_before_anything_is_done(preset):
    """Every run may have failed, for MuJoCo is not installed; the failures are yet to be told."""
    drawn(fig5.draw([], preset))


# The text


def test_the_text_has_every_table():
    text = fig5.describe(finished(), "quick")
    headings = [line for line in text if line.startswith("## ")]
    assert headings == [
        "## Does φ's distance lead to the goal?",
        "## Steps to 90 % success",
        "## Success over the whole run",
        "## After the last step",
    ]
    assert text[0].startswith("Shortened")
    assert "| PointHookMaze | the whole state | commute | 0.9 [0.9, 0.9] | 0.5 [0.5, 0.5] | yes |" in text
    never = "4,000 [4,000, 4,000] (2 of 2 never)"
    assert f"| sparse | {never} | {never} | {never} |" in text
    assert "| mix | 1.00 (level) | 1.00 (level) | 1.00 (level) |" in text
    assert "| rawmix | 0.62 [0.5, 0.75] | 0.62 [0.5, 0.75] | – |" in text
    assert "| fullmix | 6.00 [6.00, 6.00] | 6.00 [6.00, 6.00] | – |" in text


@pytest.mark.parametrize("reward", REWARDS["PointUMaze"])
def test_the_text_can_be_written_of_any_part(reward):
    """As after `lapwing reproduce fig5 --only reward=…`."""
    text = fig5.describe(finished(reward=reward), "quick")
    assert any(line.startswith(f"| {reward} | 4,000 [4,000, 4,000] (2 of 2 never) |") for line in text)


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_without_any_run_the_tables_are_dashes(preset):
    text = fig5.describe([], preset)
    assert ("Shortened" in text[0]) == (preset == "quick")
    for reward in REWARDS["PointUMaze"]:
        lines = [line for line in text if line.startswith(f"| {reward} |")]
        assert set(lines) == {f"| {reward} | – | – | – |"}
        assert len(lines) == (7 if reward in ("mix", "fullmix") else 5)
