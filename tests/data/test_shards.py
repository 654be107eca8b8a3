"""Shards: what is written is what was there, in equal parts, and nothing else is read."""

import shutil

import numpy as np
import pytest

import lapwing
from lapwing.data.folders import MANIFEST, UNFINISHED
from lapwing.data.shards import is_sharded, join_shards, load_shard, shard, shard_count
from lapwing.errors import ConfigError, DatasetError, StorageError
from tests.support.command_line import called, refused


@pytest.fixture
def walks(tmp_path):
    """Eleven episodes of several lengths, with actions and rewards."""
    rng = np.random.default_rng(0)

    def episode(length):
        seen = rng.normal(size=(length, 3)).astype(np.float32)
        return {"observations": seen, "actions": rng.integers(4, size=length), "rewards": seen[:, 0]}

    lapwing.save_episodes(tmp_path / "walks", (episode(length) for length in rng.integers(5, 30, 11)))
    return tmp_path / "walks"


def test_every_episode_is_in_one_shard_and_they_differ_by_one_episode_at_most(walks):
    whole = lapwing.load_experience(walks)
    folder = shard(walks, 3)
    parts = [load_shard(folder, number) for number in range(3)]
    sizes = [part.n_transitions for part in parts]
    assert sum(sizes) == whole.n_transitions
    assert max(sizes) - min(sizes) <= whole.longest
    for name in ("observations", "actions", "rewards"):
        rows = np.concatenate([getattr(part, name) for part in parts])
        assert sorted(rows.tolist()) == sorted(getattr(whole, name).tolist())


def test_shards_are_never_replaced(walks):
    folder = shard(walks, 4)
    with pytest.raises(StorageError, match="holds shards"):
        shard(walks, 2)
    assert shard_count(folder) == 4


def test_shards_of_an_interrupted_call_are_written_anew(walks):
    folder = shard(walks, 4)
    (folder / UNFINISHED).touch()
    assert shard(walks, 2) == folder
    assert shard_count(folder) == 2
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, "shard-000", "shard-001"]


@pytest.mark.parametrize("shards", [0, 12])
def test_as_many_shards_as_episodes_at_most(walks, shards):
    with pytest.raises(ConfigError, match="shards must"):
        shard(walks, shards)


def test_a_folder_of_something_else_is_left_alone(walks, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "shard-000").write_text("notes")
    with pytest.raises(StorageError, match="shard-000"):
        shard(walks, 2, tmp_path / "mine")
    assert (tmp_path / "mine" / "shard-000").read_text() == "notes"


def test_enumerated_states_are_learned_from_as_they_are(tmp_path):
    lapwing.Experience(np.arange(8) % 4, [4, 4]).save(tmp_path / "ids.npz")
    with pytest.raises(DatasetError, match="enumerated"):
        shard(tmp_path / "ids.npz", 2)


def test_another_shard_in_its_place_is_refused(walks):
    folder = shard(walks, 2)
    shutil.rmtree(folder / "shard-001")
    with pytest.raises(DatasetError, match="no shard"):
        load_shard(folder, 1)
    shutil.copytree(folder / "shard-000", folder / "shard-001")
    with pytest.raises(DatasetError, match="shard-001 is not"):
        load_shard(folder, 1)


def test_shards_that_processes_wrote_are_joined(walks, tmp_path):
    for number in range(2):
        shutil.copytree(walks, tmp_path / "own" / f"shard-00{number}")
    assert is_sharded(join_shards(tmp_path / "own"))
    shutil.move(tmp_path / "own" / "shard-000", tmp_path / "own" / "shard-007")
    with pytest.raises(DatasetError, match="shard-007"):
        join_shards(tmp_path / "own")


def test_the_command_line(walks, elsewhere):
    assert "shards must" in refused("data", "shard", str(walks))
    assert "data shard" in refused("data", "inspect", str(walks), "--shards", "2")
    code, out, _ = called("data", "shard", str(walks), "--shards", "2", "--out", "parts", "--json")
    assert code == 0
    assert '"shards": 2' in out
    assert shard_count(elsewhere / "parts") == 2
    assert "shard-000" in refused("data", "inspect", "parts")


def test_arrays_of_other_names_are_sharded_by_the_names_that_are_given(tmp_path, elsewhere):
    seen = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
    np.savez(tmp_path / "keyed.npz", obs=seen, done=np.arange(12) % 4 == 3)
    words = ("data", "shard", tmp_path / "keyed.npz", "--shards", "3")
    assert "observations" in refused(*words)
    code, _, said = called(*words, "--keys", "observations=obs", "ends=done")
    assert code == 0, said
    assert shard_count(tmp_path / "keyed-shards") == 3


def test_a_name_with_a_dot_keeps_it(walks):
    assert shard(walks.rename(walks.with_name("walks.v2")), 2).name == "walks.v2-shards"


def test_a_folder_that_holds_no_experience_is_no_shard(walks):
    folder = shard(walks, 2)
    (folder / "shard-001" / MANIFEST).write_text("{}")
    with pytest.raises(DatasetError, match="shard-001"):
        join_shards(folder)
