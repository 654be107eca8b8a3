"""`lapwing data inspect`: what it finds in real files, sound and broken."""

import json

import h5py
import numpy as np
import pytest

import lapwing
from lapwing.cli.main import main
from lapwing.errors import ConfigError, DatasetError
from lapwing.runs.inspect import inspect


def walks(episodes: int = 30, steps: int = 40) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.clip(np.cumsum(rng.normal(0, 0.2, (episodes, steps + 1, 2)), axis=1), -1, 1).astype(np.float32)


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "walks.npz"
    lapwing.Experience.from_episodes(walks()).save(path)
    return path


def test_a_sound_file_is_counted_and_planned_for(sound):
    found = inspect(sound)
    assert found.problem is None
    assert found.arrays["observations"] == "float32 (1230, 2)"
    assert found.facts["episodes"] == 30
    assert found.facts["transitions"] == 1_200
    assert found.facts["lengths"] == [41, 41.0, 41]
    assert found.facts["not_finite"] == 0
    flat = walks().reshape(-1, 2)
    np.testing.assert_allclose(found.facts["ranges"], np.stack([flat.min(0), flat.max(0)], axis=1))
    assert found.facts["distinct"] == len(np.unique(flat, axis=0)) / len(flat)
    assert found.plan["estimator"] == "closed-form"
    assert found.plan["states"] is None
    assert found.plan["held_out"] == 0.1


@pytest.mark.parametrize("suffix", ["npz", "hdf5"])
def test_arrays_that_are_ignored_have_type_and_shape_too(tmp_path, suffix):
    arrays = {"observations": walks().reshape(-1, 2), "lengths": np.full(30, 41), "qpos": np.zeros((1230, 3))}
    path = tmp_path / f"walks.{suffix}"
    if suffix == "npz":
        np.savez(path, note=np.array([{}], dtype=object), **arrays)
    else:
        with h5py.File(path, "w") as file:
            file.create_group("note")
            for name, array in arrays.items():
                file[name] = array
    found = inspect(path)
    assert found.arrays["qpos"] == "float64 (1230, 3), ignored"
    assert found.arrays["note"] == "ignored"
    assert found.arrays["observations"] == "float32 (1230, 2)"


def test_an_array_by_another_name_counts_once(tmp_path):
    ends = np.tile(np.arange(41) == 40, 30)
    marks = {"dones": ends, "timeouts": ends, "terminals": np.zeros_like(ends)}
    np.savez(tmp_path / "walks.npz", observations=walks().reshape(-1, 2), **marks)
    found = inspect(tmp_path / "walks.npz", keys=("terminals=dones",))
    assert found.facts["layout"] == "one array: ends by terminals and timeouts"
    assert found.arrays["dones"] == "bool (1230,), as terminals"
    assert found.arrays["terminals"] == "bool (1230,), ignored"


def test_states_that_repeat_would_be_enumerated(tmp_path):
    ids = np.random.default_rng(0).integers(0, 7, 600)
    np.savez(tmp_path / "ids.npz", observations=np.eye(7)[ids], lengths=np.full(20, 30))
    found = inspect(tmp_path / "ids.npz")
    assert found.plan["states"] == 7
    assert found.plan["estimator"] == "exact"
    assert found.facts["distinct"] == 7 / 600


def test_ids_whose_observations_are_more_than_any_machine_holds(tmp_path):
    ids, table = np.arange(10**6) % 2, np.stack([np.zeros(2**20, np.uint8), np.ones(2**20, np.uint8)])
    images = table.reshape(2, 2**10, 2**10, 1)
    np.savez(tmp_path / "ids.npz", observations=ids, lengths=[10**6], table=images)
    assert inspect(tmp_path / "ids.npz").facts == {}


def test_nan_is_counted_and_named_by_episode_and_step(tmp_path):
    data = walks()
    data[3, 17, 1], data[9, 2, 0] = np.nan, np.inf
    np.savez(tmp_path / "bad.npz", observations=data.reshape(-1, 2), lengths=np.full(30, 41))
    found = inspect(tmp_path / "bad.npz")
    assert found.facts["not_finite"] == 2
    assert found.facts["first_not_finite"] == [3, 17]
    assert "episode 3, step 17" in found.problem
    assert found.plan == {}
    assert np.isfinite(found.facts["ranges"]).all()


def test_episodes_marked_by_their_ends_are_counted(tmp_path):
    ends = np.zeros(100, bool)
    ends[[29, 59, 99]] = True
    np.savez(tmp_path / "ends.npz", observations=walks(1, 99)[0], ends=ends)
    assert inspect(tmp_path / "ends.npz").facts["lengths"] == [30, 30.0, 40]


def test_a_file_without_observations_is_told_of(tmp_path):
    np.savez(tmp_path / "actions.npz", actions=np.zeros((5, 2)))
    found = inspect(tmp_path / "actions.npz")
    assert found.facts == {}
    assert "actions but no observations" in found.problem
    assert found.arrays == {"actions": "float64 (5, 2)"}


def test_a_folder_is_looked_into(tmp_path):
    lapwing.save_episodes(tmp_path / "data", walks())
    found = inspect(tmp_path / "data")
    assert found.facts["transitions"] == 1_200
    assert found.problem is None


def test_what_is_no_data_is_refused():
    with pytest.raises(ConfigError, match=r"FourRoom is not a data set; name an \.npz"):
        inspect("FourRoom")


def test_a_lambda_for_which_episodes_are_too_short_is_remarked_on(tmp_path):
    short = np.round(walks(400, 3), 1)  # so that states repeat
    np.savez(tmp_path / "short.npz", observations=short.reshape(-1, 2), lengths=np.full(400, 4))
    found = inspect(tmp_path / "short.npz")
    share = found.plan["surviving_share"]
    lam = found.plan["lam"]
    assert share == pytest.approx(np.mean([1 - lam**m for m in (1, 2, 3)]))


def test_the_command_prints_a_table(sound, capsys):
    main(["data", "inspect", str(sound)])
    printed = capsys.readouterr().err
    for words in ("episodes", "1,200", "would learn", "closed-form", "NaN or infinity"):
        assert words in printed


def test_the_command_prints_json(sound, capsys):
    main(["data", "inspect", str(sound), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["facts"]["episodes"] == 30
    assert found["problem"] is None


def test_the_command_ends_with_2_where_the_data_cannot_be_learned_from(tmp_path, capsys):
    np.savez(tmp_path / "bad.npz", observations=np.full((10, 2), np.nan), lengths=[10])
    with pytest.raises(SystemExit) as ended:
        main(["data", "inspect", str(tmp_path / "bad.npz")])
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert "in 10 observations" in printed
    assert "episode 0, step 0" in printed.splitlines()[-1]


def test_the_plan_is_what_learning_then_does(sound):
    plan = inspect(sound).plan
    rep = lapwing.learn(sound, dim=4, trials=1)
    for name in ("estimator", "encoder", "held_out"):
        assert rep.config["settings"][name] == plan[name]


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "evil.npz", observations=np.array([{}], dtype=object))
    with pytest.raises(DatasetError, match="holds pickled Python objects"):
        inspect(tmp_path / "evil.npz")


def test_rows_without_an_order_are_remarked_on(tmp_path, sound):
    rows = np.random.default_rng(0).permutation(walks().reshape(-1, 2))
    np.savez(tmp_path / "shuffled.npz", observations=rows, lengths=np.full(30, 41))
    assert any("order of time" in remark for remark in inspect(tmp_path / "shuffled.npz").remarks)
    assert not inspect(sound).remarks


def test_where_the_first_nan_is_stands_with_how_many_there_are(tmp_path):
    data = walks()
    data[3, 17, 1] = np.nan
    np.savez(tmp_path / "nan.npz", observations=data.reshape(-1, 2), lengths=np.full(30, 41))
    names = list(inspect(tmp_path / "nan.npz").facts)
    assert names.index("first_not_finite") == names.index("not_finite") + 1


def test_a_single_array_lacks_the_ends_of_episodes(tmp_path):
    np.save(tmp_path / "plain.npy", walks()[0])
    with pytest.raises(DatasetError, match=r"plain\.npy.*lengths"):
        inspect(tmp_path / "plain.npy")
