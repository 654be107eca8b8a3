"""`ogbench:NAME`: local files first, else data that is made again, kept, and recognised."""

import json

import numpy as np
import pytest

import lapwing
from lapwing.data.ogbench import OGBenchData, open_ogbench
from lapwing.data.source import DataFile, describe, read_source, recall
from lapwing.errors import CheckpointError, ConfigError, DatasetError, LapwingWarning, StorageError
from lapwing.runs.inspect import inspect

NAME = "pointmaze-medium-stitch"
FEW = f"ogbench:{NAME},episodes=3"


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """An empty cache and no data of OGBench."""
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OGBENCH_DATA", str(tmp_path / "ogbench"))
    return tmp_path


def write_local(folder, name: str) -> np.ndarray:
    """A file as OGBench has it."""
    (folder / "ogbench").mkdir(exist_ok=True)
    observations = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    terminals = np.arange(30) % 10 == 9
    np.savez(
        folder / "ogbench" / f"{name}.npz",
        observations=observations,
        actions=observations,
        terminals=terminals,
        qpos=observations,
    )
    return observations


class TestNames:
    @pytest.mark.parametrize(
        ("name", "size"),
        [
            ("pointmaze-medium-navigate", (1_000, 1_001)),
            ("pointmaze-giant-navigate-v0", (500, 2_001)),
            ("pointmaze-teleport-stitch", (5_000, 201)),
            ("pointmaze-large-stitch-v0,episodes=7", (7, 201)),
        ],
    )
    def test_sizes_are_those_of_ogbench(self, name, size):
        assert read_source(f"ogbench:{name}").size == size

    def test_seed_and_episodes(self):
        assert open_ogbench(f"{FEW},seed=9") == OGBenchData(f"{NAME}-v0", seed=9, episodes=3)
        paths = {open_ogbench(f"ogbench:{NAME}{some}").path for some in ("", ",seed=1", ",episodes=2")}
        assert len(paths) == 3

    @pytest.mark.parametrize(
        ("name", "named"),
        [
            ("pointmaze-medium-navigat", "pointmaze-medium-navigate-v0"),
            ("antmaze-giant-navigate-v0", "antmaze-giant-navigate-v0"),
            ("../pointmaze-medium-stitch", "pointmaze-medium-stitch"),
            ("", "pointmaze"),
            (f"{NAME},seeds=1", "seeds=1"),
            (f"{NAME},seed=-1", "seed=-1"),
            (f"{NAME},episodes=0", "episodes"),
            (f"{NAME},seed={2**32}", "seed"),
        ],
    )
    def test_what_cannot_be_made(self, name, named):
        with pytest.raises(ConfigError, match=named):
            read_source(f"ogbench:{name}")

    def test_more_than_any_machine_holds(self):
        with pytest.raises(ConfigError, match="episodes"):
            read_source(f"ogbench:{NAME},episodes=4000000000").read()


class TestLocalFiles:
    @pytest.mark.parametrize(
        "name", [NAME, f"{NAME}-v0", "antmaze-giant-navigate-v0", "antmaze-giant-navigate"]
    )
    def test_they_come_first(self, folders, name):
        written = write_local(folders, f"{name.removesuffix('-v0')}-v0")
        source = read_source(f"ogbench:{name}")
        assert isinstance(source, DataFile)
        experience = lapwing.load_experience(source.path)
        assert experience.lengths.tolist() == [10, 10, 10]
        np.testing.assert_array_equal(experience.actions, written)

    def test_unless_a_seed_is_given(self, folders):
        write_local(folders, f"{NAME}-v0")
        assert isinstance(read_source(f"ogbench:{NAME},seed=0"), OGBenchData)


class TestMadeAgain:
    def test_kept_and_read_again(self, monkeypatch):
        told = []
        made = read_source(FEW).read(lambda *pair: told.append(pair))
        assert made.lengths.tolist() == [201] * 3
        assert made.actions.shape == (603, 2)
        assert told[-1] == (600, 600)
        monkeypatch.setattr("lapwing.data.ogbench.walk", lambda *_: pytest.fail("it was made again"))
        assert read_source(FEW).read().sha256() == made.sha256()

    def test_fewer_are_the_first_of_more(self):
        more = read_source(f"ogbench:{NAME},episodes=5").read()
        np.testing.assert_array_equal(more.observations[:603], read_source(FEW).read().observations)

    @pytest.mark.parametrize("damage", ["flip", "cut", "another"])
    def test_a_damaged_file_is_named_and_made_again(self, damage):
        source = read_source(FEW)
        whole = source.read().sha256()
        content = source.path.read_bytes()
        if damage == "flip":
            source.path.write_bytes(content.replace(content[900:904], b"\1\2\3\4", 1))
        elif damage == "cut":
            source.path.write_bytes(content[:-500])
        else:
            source.path.write_bytes(b"")
            lapwing.Experience(np.zeros((4, 2)), [4]).save(source.path)
        with pytest.warns(LapwingWarning, match=source.path.name):
            assert source.read().sha256() == whole
        assert source.read().sha256() == whole

    def test_a_cache_that_cannot_be_written(self, folders, monkeypatch):
        (folders / "file").write_text("")
        monkeypatch.setenv("LAPWING_CACHE", str(folders / "file"))
        with pytest.raises(StorageError, match="LAPWING_CACHE"):
            read_source(FEW).read()

    def test_described_and_recalled(self, folders):
        source = read_source(FEW)
        described = json.loads(json.dumps(describe(source)))
        assert recall(described, folders / "experience.npz") == source
        with pytest.raises(DatasetError, match=NAME):
            recall(described | {"sha256": "0" * 64}, folders / "experience.npz")
        with pytest.raises(ConfigError, match="elsewhere"):
            recall(described | {"name": "../elsewhere"}, folders / "experience.npz")
        with pytest.raises(CheckpointError):
            recall({"kind": "ogbench"}, folders / "experience.npz")

    def test_looked_into(self):
        found = inspect(FEW)
        assert found.facts["episodes"] == 3
        assert found.problem is None
        assert "actions" in found.arrays

    def test_learned_from_in_a_run_that_does_not_copy_it(self, folders, small):
        few = {name: value for name, value in small.items() if name != "transitions"}
        phases = []
        lapwing.learn(
            FEW, out=folders / "run", on_progress=lambda phase, *_: phases.append(phase), **(few | {"dim": 3})
        )
        assert "collecting" in phases
        assert not (folders / "run" / "experience.npz").exists()
        assert lapwing.load(folders / "run").config["target"] == f"{NAME}-v0"


@pytest.mark.parametrize(
    ("name", "suggested"), [("antmaze-medium-navigate-v0", False), ("pointmaze-medium-navigat", True)]
)
def test_data_of_another_robot_is_not_taken_for_a_misspelt_point_maze(name, suggested):
    with pytest.raises(ConfigError, match="point mazes") as refused:
        open_ogbench(f"ogbench:{name}")
    assert ("did you mean" in str(refused.value)) == suggested
