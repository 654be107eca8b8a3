import dataclasses

import numpy as np
import pytest
from scipy.stats import kendalltau

from lapwing.figures import fig1, fig4, maze_agents
from lapwing.figures.fig4 import (
    agreement,
    audit_tables,
    audited_rewards,
    final_returns,
    return_curves,
    speed_table,
    speeds,
)
from lapwing.figures.grid import Measure, Measured, rows_of
from lapwing.figures.maze_agents import task_of
from lapwing.settings.agents import AgentSettings
from lapwing.settings.learn import LearnSettings
from lapwing.shaping.audit import LONGEST_LOOKAHEAD

REWARDS = ("sparse", "l2", "rawmix", "mix", "mix-low-beta", "commute", "potential")
OPTIMUM = -18.97972972972973  # HardMaze, FACTS: -18.980


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_figure_4_has_every_maze_and_reward_once_with_every_seed(preset):
    runs = fig4.runs(preset, 5)
    cells = {(run.environment, run.reward, run.seed) for run in runs}
    expected = {(m, r, s) for m in ("OneRoom", "TwoRoom", "HardMaze") for r in REWARDS for s in range(5)}
    assert cells == expected
    assert len({run.key for run in runs}) == len(runs) == len(cells)


def test_the_betas_are_the_papers_and_half_the_weights_of_the_other_code():
    """Its loss has no ½ before G, so its weights 5, 5 and 1 are β = 2.5, 2.5 and .5."""
    betas = {(run.reward, run.environment): run.beta for run in fig4.runs("paper", 1)}
    assert {betas["mix", maze] for maze in maze_agents.MAZES} == {5.0}
    assert [betas["mix-low-beta", maze] for maze in maze_agents.MAZES] == [2.5, 2.5, 0.5]
    assert {betas[reward, "HardMaze"] for reward in ("sparse", "commute", "potential")} == {None}


def test_the_preset_paper_has_the_papers_settings():
    """FACTS: reward shaping in gridworlds."""
    for run in fig4.runs("paper", 1):
        agent = AgentSettings(**run.settings["agent"])
        assert (agent.hidden, agent.learning_rate, agent.batch) == ((256, 256, 256), 1e-3, 128)
        assert (agent.gamma, agent.epsilon, agent.target_every, agent.target_rate) == (0.98, 0.2, 50, 0.05)
        assert (agent.random_steps, agent.steps, agent.episode_length) == (10_000, 30_000, 50)
        if run.reward.startswith("mix"):
            phi = LearnSettings.from_keywords(run.settings["phi"])
            assert (phi.lam, phi.beta, phi.delta, phi.steps) == (0.9, run.beta, 0.05, 30_000)
            assert (phi.batch, phi.learning_rate, phi.hidden) == (128, 1e-3, (256, 256, 256))
            assert (phi.estimator, phi.transitions, phi.rotate) == ("sampled", 30_000, False)
        else:
            assert (run.settings["phi"] is None) == (run.reward in ("sparse", "l2", "rawmix"))
        if run.settings["phi"]:
            assert LearnSettings.from_keywords(run.settings["phi"]).transitions == 30_000


def test_figure_1_is_of_two_room():
    runs = fig1.runs("quick", 3)
    assert {run.environment for run in runs} == {"TwoRoom"}
    seeds = {reward: [run.seed for run in runs if run.reward == reward] for reward in fig1._TITLES}
    assert seeds == {"l2": [0], "laplacian": [0, 1, 2], "commute": [0, 1, 2]}


@pytest.fixture(scope="module")
def potential_run():
    run = next(run for run in fig4.runs("quick", 1) if run.reward == "potential")
    agent = run.settings["agent"] | {"steps": 1_000, "random_steps": 2_000, "hidden": [16]}
    phi = {"transitions": 20_000, "dim": 6, "steps": 100, "fourier_features": 16}
    return dataclasses.replace(run, recipe=maze_agents.recipe(agent=agent, phi=phi))


def test_a_run_gives_its_curve_its_audit_and_its_distances(potential_run, tmp_path):
    measured = maze_agents.execute(potential_run, tmp_path / "run", lambda *progress: None)
    by_metric: dict[str, list[Measure]] = {}
    for measure in measured.measures:
        by_metric.setdefault(measure.metric, []).append(measure)
    assert [measure.step for measure in by_metric["return"]] == [500, 1000]
    assert all(-50 <= measure.value <= 0 for measure in by_metric["return"])
    assert len(by_metric["distance"]) == 225
    assert min(measure.value for measure in by_metric["distance"]) == 0
    assert {"correlation", "contrast", "greedy_success", "local_optima"} <= by_metric.keys()
    assert measured.seconds > 0
    again = maze_agents.execute(potential_run, tmp_path / "run", lambda *progress: None)
    assert again.measures[:-1] == measured.measures[:-1]
    assert again.measures[-1].metric == "compile_seconds"


def test_figure_1_of_distance_in_the_plane_is_known_exactly(tmp_path):
    """FACTS: l2 has rank correlation .729 in TwoRoom, and its one local optimum is behind the wall."""
    run = fig1.runs("paper", 1)[0]
    rows = rows_of(run, fig1.execute(run, tmp_path, lambda *progress: None))
    values = {row["metric"]: row["value"] for row in rows}
    assert values["correlation"] == pytest.approx(0.729, abs=1e-3)
    (optimum,) = [row["step"] for row in rows if row["metric"] == "optimum"]
    assert task_of("TwoRoom").world.cells[optimum].tolist() == [7, 15]
    figure = fig1.draw(rows, "paper")
    assert len([axis for axis in figure.axes if axis.get_title()]) == 1
    assert any("0.73" in line for line in fig1.describe(rows, "paper"))


def rows_with(curves: dict[tuple[str, int], list[float]], audits: dict[str, dict[str, float]] | None = None):
    """Rows of HardMaze: returns every 500 steps for (reward, seed), and an audit for each reward."""
    rows = []
    for run in fig4.runs("paper", 5):
        if run.environment != "HardMaze" or (run.reward, run.seed) not in curves:
            continue
        returns = curves[run.reward, run.seed]
        measures = [Measure("return", value, 500 * (k + 1)) for k, value in enumerate(returns)]
        measures += [Measure(name, value) for name, value in (audits or {}).get(run.reward, {}).items()]
        rows += rows_of(run, Measured(measures, 1.0))
    return rows


def test_steps_taken_are_to_the_first_return_within_two():
    rows = rows_with(
        {
            ("mix", 0): [-40.0, OPTIMUM - 1.99, -40.0, OPTIMUM],
            ("mix", 1): [-40.0, OPTIMUM - 2.01, -40.0, -40.0],
        }
    )
    found = speeds(rows, "HardMaze")
    assert list(found) == ["mix"]
    assert (found["mix"].steps, found["mix"].never) == ({0: 1000, 1: 2000}, 1)


def test_the_speed_table_tells_how_many_times_fewer_and_whether_that_is_sure():
    slow, fast = [-40.0] * 7 + [OPTIMUM], [-40.0] + [OPTIMUM] * 7
    curves = {(reward, seed): slow for reward in ("sparse", "l2", "rawmix") for seed in range(3)}
    curves |= {("potential", seed): fast for seed in range(3)}
    curves |= {("commute", seed): slow if seed else fast for seed in range(3)}
    curves |= {("mix", seed): [-40.0] * 8 for seed in range(3)}
    text = "\n".join(speed_table(rows_with(curves)))
    assert "| potential of commute distance (ours) | – | – | 1,000 [1,000, 1,000] |" in text
    assert "| potential of commute distance (ours) | – | – | 4.00 (yes) |" in text
    assert "| mix of commute distance (ours) | – | – | 1.33 (level) |" in text
    assert "4,000 [4,000, 4,000] (3 of 3 never)" in text
    assert "| mix (the paper's β: 5) | – | – | 1.00 (level) |" in text


def test_final_returns_say_what_stays_below():
    rows = rows_with({("mix", 0): [-40.0, OPTIMUM - 0.4], ("sparse", 0): [-10.0, OPTIMUM - 0.6]})
    text = "\n".join(final_returns(rows))
    assert "| mix (the paper's β: 5) | – | – | -19.38 (1 seed) |" in text
    assert "| sparse | – | – | -19.58 (1 seed) (more than 0.5 below) |" in text
    assert "| optimum | -13.004 | -11.358 | -18.980 |" in text


def audit_of(lookahead: float | None, contrast: float, correlation: float = 0.5) -> dict[str, float]:
    numbers = {"correlation": correlation, "local_optima": 0, "astray": 0, "greedy_success": 1}
    numbers |= {"contrast": contrast} | ({} if lookahead is None else {"lookahead": lookahead})
    return {name: float(value) for name, value in numbers.items()}


def test_the_audits_order_is_by_lookahead_then_contrast_and_never_is_last():
    audits = {
        "sparse": audit_of(28, 0.1),
        "l2": audit_of(None, 5.0),
        "commute": audit_of(1, 0.2),
        "potential": audit_of(1, 1.1),
    }
    rows = rows_with({(reward, 0): [OPTIMUM] for reward in audits}, audits)
    order = audited_rewards(rows, "HardMaze")
    assert [one.label.split()[0] for one in order] == ["potential", "mix", "sparse", "l2"]
    assert order[-1].lookahead == LONGEST_LOOKAHEAD


def test_agreement_is_kendalls_tau_with_the_measured_steps():
    audits = {
        "sparse": audit_of(28, 0.1, 0.14),
        "l2": audit_of(26, 0.2, 0.84),
        "mix": audit_of(20, 0.2, 0.5),
        "potential": audit_of(1, 1.1, 0.99),
    }
    first = {"sparse": 7, "l2": 8, "mix": 5, "potential": 1}
    curves = {(reward, 0): [-40.0] * (k - 1) + [OPTIMUM] * (9 - k) for reward, k in first.items()}
    rows = rows_with(curves, audits)
    assert agreement([]) == [None, None, None], "of fewer than two rewards"
    order, lookahead, correlation = agreement(audited_rewards(rows, "HardMaze"))
    assert order == lookahead == f"{kendalltau([28, 26, 20, 1], [7, 8, 5, 1]).statistic:.2f}" == "0.67"
    expected = kendalltau([-0.14, -0.84, -0.5, -0.99], [7, 8, 5, 1]).statistic
    assert correlation == f"{expected:.2f}"
    assert "| HardMaze | 0.67 | 0.67 |" in "\n".join(audit_tables(rows))


def test_curves_have_the_mean_over_seeds():
    rows = rows_with({("mix", 0): [-40.0, -20.0], ("mix", 1): [-30.0, -20.0]})
    curve = return_curves(rows, "HardMaze")["mix (the paper's β: 5)"]
    assert (curve.x, curve.mean) == ([500.0, 1000.0], [-35.0, -20.0])
    assert (curve.low[0], curve.high[0]) == (-50.0, OPTIMUM), "no return is beyond"


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_figure_4_can_be_drawn_and_described_from_any_part(preset):
    rows = rows_with({("mix", 0): [-40.0, OPTIMUM]}, {"mix": audit_of(20, 0.2)})
    (mix,) = [run for run in fig4.runs("paper", 1) if (run.environment, run.reward) == ("HardMaze", "mix")]
    distances = np.arange(148.0)
    rows += rows_of(mix, Measured([Measure("distance", v, s) for s, v in enumerate(distances)], 1.0))
    figure = fig4.draw(rows, preset)
    titles = [axis.get_title() for axis in figure.axes]
    assert "HardMaze: the paper's φ (β = 5)" in titles
    assert {"OneRoom", "TwoRoom", "HardMaze"} <= set(titles)
    text = "\n".join(fig4.describe(rows, preset))
    assert ("Shortened" in text) == (preset == "quick")
    assert fig4.draw([], preset).axes
    assert fig4.describe([], preset)
