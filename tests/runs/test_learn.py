import shutil
from pathlib import Path

import numpy as np
import pytest

import lapwing
from lapwing import storage
from lapwing.data.experience import Experience
from lapwing.data.source import read_source
from lapwing.errors import ConfigError, DatasetError, LapwingWarning
from lapwing.mazes import parse_maze
from lapwing.runs.learn import reopen, run
from lapwing.settings.learn import LearnSettings
from tests.support.small_runs import SMALL

ROOM = "#######\n#....G#\n#.....#\n#..#..#\n#######\n"
QUICK = SMALL | {"steps": 10, "dim": 3}
"""Enough to go through every stage."""
DATA = {name: value for name, value in QUICK.items() if name != "transitions"}


@pytest.fixture
def maze_file(tmp_path) -> Path:
    path = tmp_path / "room.txt"
    path.write_text(ROOM)
    return path


@pytest.fixture(scope="module")
def walk() -> Experience:
    """Three laps back and forth on a line of eight states, as vectors."""
    steps = np.random.default_rng(0).choice([-1, 1], 600).cumsum()
    states = np.abs((steps + 7) % 14 - 7)
    return Experience(np.stack([states, states**2], axis=1).astype(np.float32), [300, 300])


def test_learning_from_a_maze_file_and_from_a_maze(maze_file):
    first = lapwing.learn(maze_file, **QUICK)
    second = lapwing.learn(str(maze_file), **QUICK)
    third = lapwing.learn(parse_maze(ROOM, name="room"), **QUICK)
    here = np.zeros((1, 2))
    for each in (second, third):
        np.testing.assert_array_equal(each.eigenfunctions(here), first.eigenfunctions(here))
    assert first.config["target"] == "room"


def test_learning_from_data(walk, tmp_path):
    walk.save(tmp_path / "walk.npz")
    from_memory = lapwing.learn(walk, **DATA)
    from_file = lapwing.learn(tmp_path / "walk.npz", **DATA)
    assert from_memory.config["settings"]["estimator"] == "exact"
    seen = walk.observe(np.arange(9))
    np.testing.assert_array_equal(from_file.phi(seen), from_memory.phi(seen))
    assert (from_memory.config["target"], from_file.config["target"]) == ("experience", "walk")


def test_learning_from_an_environment_with_continuous_states(tmp_path):
    done = []
    rep = lapwing.learn(
        "gym:CartPole-v1", out=tmp_path / "run", on_progress=lambda *c: done.append(c), **QUICK
    )
    assert rep.phi(np.zeros(4)).shape == (7,)
    assert rep.eigenvalues.shape == (3,)
    assert np.all(np.diff(rep.eigenvalues) >= 0)
    assert rep.config["settings"]["estimator"] == "pairwise"
    phases = list(dict.fromkeys(phase for phase, *_ in done))
    assert phases.index("collecting") < phases.index("learning")
    result = reopen(tmp_path / "run").result
    for name in ("gap", "gap_floor", "gap_random", "cosine", "cosine_mean", "cosine_floor", "rank"):
        assert result[name] is None
    for name in ("eigenvalues_exact", "eigenvalue_error", "distance_correlation", "states", "operator"):
        assert result[name] is None
    assert len(result["eigenvalues"]) == 3


def test_learning_from_indices(walk):
    states = walk.observations[:, 0].astype(int)
    rep = lapwing.learn(Experience(states, walk.lengths), **(DATA | {"steps": 400}))
    assert rep.config["settings"]["encoder"] == "linear"
    second = rep.eigenfunctions(np.arange(8))[:, 1]
    assert np.all(np.diff(second) > 0) or np.all(np.diff(second) < 0)


def test_eigenfunctions_are_orthonormal_over_the_data(four_room_run, four_room):
    outcome = reopen(four_room_run)
    functions = four_room.eigenfunctions(outcome.target.states).astype(np.float64)
    rho = outcome.target.one_step.rho
    np.testing.assert_allclose(functions.T @ (rho[:, None] * functions), np.eye(4), atol=1e-4)
    np.testing.assert_allclose(functions[:, 0], 1.0, atol=1e-4)


def test_eigenvalues_are_the_rayleigh_quotients_of_the_eigenfunctions(four_room_run, four_room):
    """G of each over the data's own one-step chain, whatever lambda it was learned with."""
    outcome = reopen(four_room_run)
    functions = four_room.eigenfunctions(outcome.target.states).astype(np.float64)
    for value, function in zip(four_room.eigenvalues, functions.T, strict=True):
        assert outcome.target.one_step.objective(function[:, None]) == pytest.approx(value, abs=1e-4)


def test_without_rotation_columns_stay_as_learned():
    rep = lapwing.learn("FourRoom", rotate=False, oversample=0, **QUICK)
    assert not rep.rotated
    states = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    phi, functions = rep.phi(states), rep.eigenfunctions(states)
    assert phi.shape == functions.shape == (30, 3)
    for column in range(3):
        ratio = functions[:, column] / phi[:, column]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)


def test_the_preset_paper_in_python(tmp_path):
    out = tmp_path / "run"
    rep = lapwing.learn("FourRoom", out=out, preset="paper", transitions=5_000, dim=4, steps=20)
    settings = rep.config["settings"]
    assert (settings["estimator"], settings["batch"], settings["encoder"]) == ("sampled", 32, "mlp")
    assert (settings["beta"], settings["lam"], settings["hidden"]) == (0.2, 0.0, [200, 200])
    assert rep.phi(np.zeros(2)).shape == (4,)
    result = reopen(out).result
    assert set(result["distance_correlation"]) == {"soft"}
    assert result["gap"] > 0


def test_dimensions_that_vanish_are_told():
    with pytest.warns(LapwingWarning) as caught:
        rep = lapwing.learn(
            "OneRoom",
            true_chain=True,
            observation="index",
            dim=12,
            lam=0.9,
            beta=2.5,
            delta=0.05,
            steps=1_500,
            learning_rate=0.03,
        )
    messages = " ".join(str(warning.message) for warning in caught)
    assert "only 4 of 12 dimensions" in messages
    assert "of 12 eigenfunctions" in messages
    assert rep.dim < 12
    assert rep.eigenfunctions(np.arange(5)).shape == (5, rep.dim)


def test_more_dimensions_than_visited_states():
    """A few steps of a maze: states that were never visited get a guess, and nothing breaks."""
    with pytest.warns(LapwingWarning) as caught:
        rep = lapwing.learn(parse_maze(ROOM, name="room"), **(SMALL | {"transitions": 4, "dim": 10}))
    assert any("states are never visited" in str(warning.message) for warning in caught)
    assert np.isfinite(rep.eigenfunctions(np.zeros((2, 2)))).all()


def test_a_folder_changes_nothing_of_the_result(four_room, elsewhere):
    rep = lapwing.learn("FourRoom", **SMALL)
    assert list(elsewhere.iterdir()) == []
    states = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    for method in ("phi", "eigenfunctions"):
        np.testing.assert_array_equal(getattr(rep, method)(states), getattr(four_room, method)(states))
    np.testing.assert_array_equal(rep.eigenvalues, four_room.eigenvalues)
    assert rep.config == four_room.config


def test_loading_a_folder_or_a_file(four_room_run, tmp_path):
    states = np.zeros((2, 2))
    rep = lapwing.load(str(four_room_run))
    rep.save(tmp_path / "mine.safetensors")
    for path in (four_room_run, four_room_run / "representation.safetensors", tmp_path / "mine.safetensors"):
        np.testing.assert_array_equal(lapwing.load(path).eigenfunctions(states), rep.eigenfunctions(states))


def test_a_reopened_run_measures_the_same_wherever_it_is(four_room_run, tmp_path):
    moved = Path(shutil.copytree(four_room_run, tmp_path / "elsewhere"))
    assert reopen(moved).result["gap"] == reopen(four_room_run).result["gap"]
    outcome = reopen(four_room_run)
    assert outcome.result == storage.read_checked_json(four_room_run / "result.json")
    assert outcome.target.experience is not None
    assert outcome.target.experience.n_transitions == 5_000


def test_a_run_on_data_needs_that_data_to_be_reopened(walk, tmp_path):
    walk.save(tmp_path / "walk.npz")
    out = tmp_path / "run"
    lapwing.learn(tmp_path / "walk.npz", out=out, **DATA)
    assert not (out / "experience.npz").exists()
    assert reopen(out).target.name == "walk"
    (tmp_path / "walk.npz").unlink()
    assert lapwing.load(out).dim == 3
    with pytest.raises(DatasetError, match=r"walk\.npz"):
        reopen(out)


def test_a_run_on_data_at_hand_keeps_it(walk, tmp_path):
    lapwing.learn(walk, out=tmp_path / "run", **DATA)
    again = reopen(tmp_path / "run").target.experience
    assert again is not None
    np.testing.assert_array_equal(again.observe(np.arange(600)), walk.observations)


def test_an_unfinished_run_cannot_be_measured(four_room_run, tmp_path):
    out = Path(shutil.copytree(four_room_run, tmp_path / "run"))
    (out / "result.json").unlink()
    with pytest.raises(ConfigError, match=r"unfinished run.* --resume"):
        reopen(out)


def test_what_a_result_says(four_room_run):
    result = storage.read_checked_json(four_room_run / "result.json")
    assert (result["target"], result["states"], result["transitions"]) == ("FourRoom", 152, 5_000)
    assert (result["steps"], result["version"]) == (60, lapwing.__version__)
    assert result["run"] == str(four_room_run)
    assert result["learn_seconds"] > 0
    assert result["compile_seconds"] > 0
    assert 0 < result["surviving_dimensions"] <= 8
    assert result["settings"]["lam"] > 0


def test_progress_is_told_phase_by_phase(tmp_path):
    calls = []
    settings = LearnSettings.from_keywords(QUICK)
    run(read_source("FourRoom"), settings, tmp_path / "run", on_progress=lambda *call: calls.append(call))
    learning = [(done, total) for phase, done, total, _ in calls if phase == "learning"]
    assert learning == [(step, 10) for step in range(11)]
    assert all(0 <= done <= total for _, done, total, _ in calls)
    assert all("loss" in metrics for phase, done, _, metrics in calls if phase == "learning" and done)


@pytest.mark.parametrize(
    ("target", "given", "words"),
    [
        ("FourRoom", {"overwrite": True}, "out"),
        ("FourRoom", {"resume": True}, "out"),
        ("FourRoom", {"step": 10}, r"'step'.* steps\?"),
        ("TwoRom", {}, r"'TwoRom'.* TwoRoom\?"),
    ],
)
def test_what_cannot_be_meant(target, given, words):
    with pytest.raises(ConfigError, match=words):
        lapwing.learn(target, **given)


def test_a_maze_with_parts_out_of_reach_is_learned_where_its_goal_is(tmp_path):
    (tmp_path / "two.txt").write_text("#######\n#..#.G#\n#..#..#\n#..#..#\n#######\n")
    with pytest.warns(LapwingWarning, match="6 floor cells"):
        rep = lapwing.learn(tmp_path / "two.txt", **(QUICK | {"observation": "index"}))
    assert rep.spec.n_states == 6
