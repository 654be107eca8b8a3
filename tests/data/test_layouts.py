"""Layouts that others write: what is told of episodes, the last transitions, and what is refused by name."""

import warnings

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lapwing.data.episodes import lengths_of
from lapwing.data.experience import Experience
from lapwing.data.files import load_experience
from lapwing.data.layouts import experience_in, recognised, unmarked_jumps
from lapwing.errors import ConfigError, DatasetError, LapwingWarning
from lapwing.runs.inspect import inspect
from tests.support.folders import put

steps_lists = st.lists(st.integers(1, 8), min_size=1, max_size=6)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)


def episodes_of(steps, seed: int = 0) -> list[dict[str, np.ndarray]]:
    """Walks of so many steps each, with one observation more than actions."""
    rng = np.random.default_rng(seed)
    return [
        {
            "observations": rng.normal(10 * number, 0.1, (count + 1, 3)).astype(np.float32),
            "actions": rng.normal(size=(count, 2)).astype(np.float32),
            "rewards": rng.normal(size=count).astype(np.float32),
        }
        for number, count in enumerate(steps)
    ]


def as_transitions(episodes) -> dict[str, np.ndarray]:
    """As D4RL has them: the last observation of an episode is in next_observations alone."""
    joined = {
        "observations": np.concatenate([one["observations"][:-1] for one in episodes]),
        "next_observations": np.concatenate([one["observations"][1:] for one in episodes]),
    }
    for name in ("actions", "rewards"):
        joined[name] = np.concatenate([one[name] for one in episodes])
    return joined


def last_rows(lengths) -> np.ndarray:
    return np.isin(np.arange(sum(lengths)), np.cumsum(lengths) - 1)


def as_rows(episodes) -> dict[str, np.ndarray]:
    """As OGBench has them: all observations, with an action at each, and terminals at the last."""
    unused = [[7.0, 7.0]]
    return {
        "observations": np.concatenate([one["observations"] for one in episodes]),
        "actions": np.concatenate([np.append(one["actions"], unused, 0) for one in episodes]),
        "terminals": last_rows([len(one["observations"]) for one in episodes]),
    }


def write(path, arrays) -> None:
    if path.suffix == ".npz":
        np.savez(path, **arrays)
        return
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip" if np.ndim(array) else None)
        file["infos/qpos"] = np.zeros((len(arrays["observations"]), 2))
        file["metadata/algorithm"] = "SAC"


def assert_same(found: Experience, episodes, *, rewards: bool = True) -> None:
    expected = Experience.from_episodes(
        [one if rewards else {key: one[key] for key in ("observations", "actions")} for one in episodes]
    )
    np.testing.assert_array_equal(found.observations, expected.observations)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    within = found.horizons > 0
    np.testing.assert_array_equal(found.actions[within], expected.actions[within])
    if rewards:
        np.testing.assert_array_equal(found.rewards[within], expected.rewards[within])


@pytest.mark.parametrize("suffix", ["npz", "hdf5", "h5"])
class TestWhatOthersWrite:
    @in_one_folder
    @given(steps=steps_lists, marked=st.sampled_from(["none", "dones", "terminals", "both"]))
    def test_transitions(self, tmp_path, suffix, steps, marked):
        """Whether or not flags say so too, each episode keeps its last transition."""
        episodes = episodes_of(steps)
        arrays, ends = as_transitions(episodes), last_rows(steps)
        if marked == "both":
            timed_out = ends & (np.arange(len(ends)) % 2 == 0)
            arrays |= {"terminals": ends & ~timed_out, "timeouts": timed_out}
        elif marked != "none":
            arrays[marked] = ends.astype(np.float32)
        write(tmp_path / f"data.{suffix}", arrays)
        assert_same(load_experience(tmp_path / f"data.{suffix}"), episodes)

    @in_one_folder
    @given(steps=steps_lists, name=st.sampled_from(["terminals", "dones", "ends", "timeouts"]))
    def test_rows(self, tmp_path, suffix, steps, name):
        episodes = episodes_of(steps)
        arrays = as_rows(episodes)
        arrays[name] = arrays.pop("terminals")[:, None]
        write(tmp_path / f"data.{suffix}", arrays)
        assert_same(load_experience(tmp_path / f"data.{suffix}"), episodes, rewards=False)

    def test_transitions_that_run_on_over_the_marks(self, tmp_path, suffix):
        """As next_observations that are but the next rows do: the last of an episode is of another."""
        episodes = episodes_of([5, 4, 6])
        arrays = as_rows(episodes)
        arrays["next_observations"] = np.roll(arrays["observations"], -1, axis=0)
        write(tmp_path / f"data.{suffix}", arrays)
        assert_same(load_experience(tmp_path / f"data.{suffix}"), episodes, rewards=False)

    def test_marks_that_leave_some_out(self, tmp_path, suffix):
        episodes = episodes_of([5, 4, 6, 3])
        arrays, ends = as_transitions(episodes), last_rows([5, 4, 6, 3])
        arrays["terminals"] = ends & (np.arange(len(ends)) > 5)
        write(tmp_path / f"data.{suffix}", arrays)
        with pytest.warns(LapwingWarning, match="1 places"):
            assert_same(load_experience(tmp_path / f"data.{suffix}"), episodes)

    @pytest.mark.parametrize("other", ["float64", "ids", "images"])
    def test_other_kinds_of_observations(self, tmp_path, suffix, other):
        episodes = [np.arange(4), np.array([0, 3, 3]), np.array([2, 1])]
        if other == "images":
            shown = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)
            episodes = [shown[ids] for ids in episodes]
        if other == "float64":
            episodes = [np.stack([ids, -ids], axis=1) / 3 for ids in episodes]
        arrays = {
            "observations": np.concatenate([one[:-1] for one in episodes]),
            "next_observations": np.concatenate([one[1:] for one in episodes]),
        }
        write(tmp_path / f"data.{suffix}", arrays)
        found = load_experience(tmp_path / f"data.{suffix}")
        expected = Experience.from_episodes(episodes)
        np.testing.assert_array_equal(found.observations, expected.observations)
        np.testing.assert_array_equal(found.lengths, expected.lengths)

    def test_rounding_is_no_end(self, tmp_path, suffix):
        episodes = episodes_of([50, 40])
        arrays = as_transitions(episodes)
        noise = np.random.default_rng(0).uniform(-1e-6, 1e-6, arrays["next_observations"].shape)
        arrays["next_observations"] = arrays["next_observations"].astype(float) + noise
        write(tmp_path / f"data.{suffix}", arrays)
        assert load_experience(tmp_path / f"data.{suffix}").lengths.tolist() == [51, 41]

    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            ("terminals", (9,)),
            ("terminals", (10, 2)),
            ("timeouts", (11,)),
            ("dones", ()),
            ("next_observations", (10, 2)),
            ("next_observations", (9, 3)),
            ("actions", (9, 2)),
            ("actions", ()),
            ("rewards", (10, 2)),
            ("rewards", (9,)),
        ],
    )
    def test_other_shapes_are_refused_by_name(self, tmp_path, suffix, name, shape):
        arrays = {"observations": np.zeros((10, 3)), "terminals": np.zeros(10)} | {name: np.zeros(shape)}
        write(tmp_path / f"data.{suffix}", arrays)
        with pytest.raises(DatasetError, match=rf"data\.{suffix}.*{name}"):
            load_experience(tmp_path / f"data.{suffix}")

    @pytest.mark.parametrize(
        ("arrays", "words"),
        [
            ({"observations": np.zeros((10, 3))}, "'lengths'"),
            ({"observations": np.zeros((10, 3)), "dones": np.full(10, 2.0)}, "dones"),
            ({"observations": np.zeros((0, 3)), "dones": np.zeros(0)}, "no episodes"),
            ({"observations": np.zeros((1, 3)), "dones": np.ones(1)}, "no episodes"),
            ({"observations": np.full((4, 3), np.nan), "terminals": np.zeros(4)}, "episode 0, step 0"),
            (
                {"observations": np.zeros((4, 3)), "next_observations": np.full((4, 3), np.inf)},
                "episode 0, step 1",
            ),
        ],
    )
    def test_content_that_is_refused(self, tmp_path, suffix, arrays, words):
        write(tmp_path / f"data.{suffix}", arrays)
        with pytest.raises(DatasetError, match=rf"data\.{suffix}.*{words}"):
            load_experience(tmp_path / f"data.{suffix}")

    def test_it_is_looked_into(self, tmp_path, suffix):
        path = tmp_path / f"data.{suffix}"
        write(path, as_transitions(episodes_of([40] * 20)))
        found = inspect(path)
        assert found.problem is None
        assert "next_observations" in found.facts["layout"]
        assert (found.facts["episodes"], found.facts["transitions"]) == (20, 800)
        write(path, as_rows(episodes_of([40] * 20)) | {"actions": np.zeros((3, 2))})
        assert "actions" in inspect(path).problem


class TestJumps:
    def walks(self, lengths, features: int = 2, seed: int = 0) -> np.ndarray:
        """Walks, each from far away of the one before."""
        rng = np.random.default_rng(seed)
        walks = [rng.normal(size=(length, features)).cumsum(axis=0) for length in lengths]
        return np.concatenate([walk + 99 * (number % 2) for number, walk in enumerate(walks)])

    @pytest.mark.parametrize("features", [1, 2, 20])
    def test_resets_that_terminals_do_not_mark(self, features):
        lengths = [100, 40, 100, 70, 100]
        observations, ends = self.walks(lengths, features, seed=3), np.cumsum(lengths)[:-1] - 1
        terminals = np.isin(np.arange(sum(lengths)), ends[[1, 3]])
        found = np.flatnonzero(unmarked_jumps(observations, terminals))
        assert found.tolist() == ends[[0, 2]].tolist()
        with pytest.warns(LapwingWarning, match="2 places"):
            experience = experience_in({"observations": observations, "terminals": terminals})
        assert experience.lengths.tolist() == lengths

    def test_a_time_limit_tells_of_resets_that_move_little(self):
        """Of twelve episodes of 50 the jumps end seven; one is ended by a terminal, in its midst."""
        walks = self.walks([50] * 4 + [100] + [50, 30, 50] + [100] + [50, 20], seed=1)
        terminals = np.zeros(len(walks), bool)
        terminals[379] = True
        found = lengths_of(terminals | unmarked_jumps(walks, terminals))
        assert found.tolist() == [50] * 7 + [30] + [50] * 4 + [20]

    @pytest.mark.parametrize("seed", range(5))
    def test_walks_do_not_jump(self, seed):
        assert not unmarked_jumps(self.walks([20_000], 3, seed), np.zeros(20_000, bool)).any()

    def test_marked_episodes_of_equal_length_are_complete(self):
        """A point of OGBench that is teleported jumps too, and that is a transition."""
        observations, terminals = self.walks([25] * 12), last_rows([50] * 6)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = experience_in({"observations": observations, "terminals": terminals})
        assert found.lengths.tolist() == [50] * 6

    @pytest.mark.parametrize("name", ["timeouts", "dones", "ends"])
    def test_other_marks_are_believed(self, name):
        observations = self.walks([100, 40, 100])
        marks = last_rows([140, 100])
        arrays = {"observations": observations, "terminals": np.zeros(240), name: marks}
        assert experience_in(arrays).lengths.tolist() == [140, 100]

    def test_features_that_hardly_ever_change_and_what_never_does(self):
        goal = np.repeat([[0.0], [9.0]], 100, axis=0)
        slow = np.append(np.linspace(0, 1, 200)[:, None], goal, axis=1)
        assert not unmarked_jumps(slow, np.zeros(200, bool)).any()
        assert not unmarked_jumps(np.zeros((200, 2)), np.zeros(200, bool)).any()


class TestRecognised:
    @pytest.mark.parametrize(
        ("names", "words"),
        [
            (["observations", "lengths", "terminals"], "lengths"),
            (["observations", "terminals", "timeouts"], "terminals and timeouts"),
            (["observations", "terminals", "actions"], "OGBench"),
            (["observations", "next_observations", "dones"], "dones"),
        ],
    )
    def test_by_the_names(self, names, words):
        assert words in recognised(names)

    @pytest.mark.parametrize("names", [["terminals"], ["observations"], []])
    def test_what_is_none(self, names):
        assert recognised(names) is None


class TestHDF5:
    ROWS = {"observations": np.zeros((10, 3)), "terminals": np.zeros(10)}  # noqa: RUF012

    def test_no_such_file(self, tmp_path):
        with pytest.raises(DatasetError, match=r"none\.hdf5"):
            load_experience(tmp_path / "none.hdf5")

    @pytest.mark.parametrize("content", [b"", b"text", b"\x89HDF\r\n\x1a\n" + bytes(100)])
    def test_what_is_no_hdf5(self, content, tmp_path):
        put(tmp_path / "data.hdf5", content)
        with pytest.raises(DatasetError, match=r"data\.hdf5 is damaged"):
            load_experience(tmp_path / "data.hdf5")

    @pytest.mark.parametrize("kind", ["group", "text", "soft link", "external link", "virtual", "huge"])
    def test_what_is_no_plain_array(self, kind, tmp_path):
        write(tmp_path / "other.hdf5", self.ROWS)
        with h5py.File(tmp_path / "data.hdf5", "w") as file:
            file["terminals"] = np.zeros(10)
            if kind == "group":
                file["observations/x"] = np.zeros((10, 3))
            elif kind == "text":
                file["observations"] = ["a"] * 10
            elif kind == "soft link":
                file["seen"], file["observations"] = np.zeros((10, 3)), h5py.SoftLink("/seen")
            elif kind == "external link":
                file["observations"] = h5py.ExternalLink("other.hdf5", "observations")
            elif kind == "virtual":
                layout = h5py.VirtualLayout((10, 3), float)
                layout[:] = h5py.VirtualSource("other.hdf5", "observations", (10, 3))
                file.create_virtual_dataset("observations", layout)
            else:
                file.create_dataset("observations", (10, 2**30), "f8", chunks=(1, 2**10), compression="gzip")
        with pytest.raises(DatasetError, match=r"data\.hdf5.*observations"):
            load_experience(tmp_path / "data.hdf5")

    def test_h5py_is_missing(self, tmp_path, monkeypatch):
        write(tmp_path / "data.hdf5", self.ROWS)
        monkeypatch.setitem(__import__("sys").modules, "h5py", None)
        with pytest.raises(ConfigError, match=r"lapwing\[hdf5\]"):
            load_experience(tmp_path / "data.hdf5")
