"""Actions and rewards: they stay with their observations on every way that experience takes."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lapwing.data.actions import checked_actions, checked_rewards
from lapwing.data.experience import Experience
from lapwing.data.files import load_experience
from lapwing.data.folders import save_episodes
from lapwing.errors import DatasetError
from tests.support.folders import put

lengths_lists = st.lists(st.integers(2, 9), min_size=1, max_size=8)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
LENGTHS = np.array([2, 3])


def numbered(lengths, *, whole: bool = True) -> Experience:
    """Observation, action and reward i are all i."""
    places = np.arange(sum(lengths))
    actions = places if whole else np.stack([places, -places], axis=1) / 4
    return Experience(places[:, None].astype(float), lengths, actions=actions, rewards=places / 8)


def assert_together(experience: Experience, *, whole: bool = True, but_ends: bool = False) -> None:
    """What `numbered` put together is together; at the ends of episodes there may be anything."""
    places = experience.observe(np.arange(len(experience.observations)))[:, 0]
    kept = experience.horizons > 0 if but_ends else np.ones(len(places), bool)
    actions = experience.actions if whole else experience.actions[:, 0] * 4
    np.testing.assert_array_equal(actions[kept], places[kept])
    np.testing.assert_array_equal(experience.rewards[kept] * 8, places[kept])


class TestKept:
    @pytest.mark.parametrize(
        ("actions", "kept"),
        [
            (np.arange(5, dtype=np.uint8), np.uint8),
            (np.arange(5), np.int32),
            (np.arange(-2, 3, dtype=np.int8), np.int8),
            ([True, False, True, True, False], np.uint8),
            (np.arange(10).reshape(5, 2), np.int32),
            (np.ones((5, 2)), np.float32),
            (np.ones((5, 2), np.float16), np.float32),
        ],
        ids=str,
    )
    def test_as_they_are(self, actions, kept):
        found = checked_actions(actions, LENGTHS)
        assert found.dtype == kept
        np.testing.assert_array_equal(found, actions)

    def test_numbers_with_a_point_are_vectors(self):
        assert checked_actions(np.arange(5.0), LENGTHS).shape == (5, 1)
        assert checked_actions(np.zeros((5, 2, 3)), LENGTHS).shape == (5, 6)

    def test_one_a_transition_or_one_an_observation(self):
        np.testing.assert_array_equal(checked_actions([7, 8, 9], LENGTHS), [7, 0, 8, 9, 0])
        np.testing.assert_array_equal(checked_rewards([7, 8, 9], LENGTHS), [7, 0, 8, 9, 0])
        np.testing.assert_array_equal(checked_rewards(np.ones((5, 1)), LENGTHS), np.ones(5))

    @pytest.mark.parametrize("name", ["actions", "rewards"])
    @pytest.mark.parametrize(
        "wrong",
        [
            np.zeros(4),
            np.array(3.0),
            np.zeros((2, 5)),
            np.array(["a"] * 5),
            np.zeros(5, complex),
            [0.0, 1.0, np.nan, 0.0, 0.0],
            [0.0, 1.0, 1e300, 0.0, 0.0],
            np.zeros((5, 0)),
            [[1.0], [2.0, 3.0]],
        ],
        ids=repr,
    )
    def test_what_is_refused_by_name(self, name, wrong):
        with pytest.raises(DatasetError, match=name):
            Experience(np.zeros((5, 2)), LENGTHS, **{name: wrong})

    def test_more_than_one_reward(self):
        with pytest.raises(DatasetError, match="rewards"):
            checked_rewards(np.zeros((5, 2)), LENGTHS)

    def test_whole_numbers_beyond_32_bits(self):
        with pytest.raises(DatasetError, match=f"actions .*{2**40}"):
            checked_actions([0, 1, 2**40, 3, 4], LENGTHS)

    def test_none_stays_none(self):
        experience = Experience(np.zeros((5, 2)), LENGTHS)
        assert experience.actions is None
        assert experience.rewards is None
        assert experience.split(0.5)[0].actions is None


class TestOnEveryWay:
    @given(lengths_lists, st.booleans(), st.floats(0, 1))
    def test_split(self, lengths, whole, share):
        experience = numbered(lengths, whole=whole)
        if len(experience.observations) >= 4:
            for part in experience.split(share):
                assert_together(part, whole=whole)

    @given(lengths_lists, st.data())
    def test_split_anywhere(self, lengths, data):
        experience = numbered(lengths)
        if len(experience.observations) >= 4:
            for part in experience._split_at(data.draw(st.integers(0, sum(lengths)))):
                assert_together(part)

    @given(lengths_lists, st.data())
    def test_some_episodes(self, lengths, data):
        chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths))))
        assert_together(numbered(lengths).episodes(chosen))

    @given(lengths_lists)
    def test_enumerated_states(self, lengths):
        twice = numbered([*lengths, *lengths])
        again = Experience(
            np.tile(numbered(lengths).observations, (2, 1)),
            twice.lengths,
            actions=np.tile(numbered(lengths).actions, 2),
            rewards=np.tile(numbered(lengths).rewards, 2),
        )
        assert again.tabulated().n_states == sum(lengths)
        assert_together(again.tabulated())

    @given(lengths_lists, st.booleans())
    def test_from_episodes(self, lengths, shorter):
        experience = numbered(lengths)
        episodes = [
            {
                "observations": experience.observations[rows],
                "actions": experience.actions[rows[: -1 if shorter else None]],
                "rewards": experience.rewards[rows[: -1 if shorter else None]],
                "infos": "ignored",
            }
            for rows in np.split(np.arange(sum(lengths)), np.cumsum(lengths)[:-1])
        ]
        found = Experience.from_episodes(episodes)
        assert_together(found, but_ends=shorter)
        np.testing.assert_array_equal(found.lengths, lengths)

    @given(st.lists(st.integers(1, 9), min_size=1, max_size=8).filter(lambda lengths: max(lengths) > 1))
    def test_from_ends_without_episodes_of_one_observation(self, lengths):
        places, ends = np.arange(sum(lengths)), np.cumsum(lengths) - 1
        found = Experience.from_ends(
            places[:, None].astype(float), np.isin(places, ends), actions=places, rewards=places / 8
        )
        assert_together(found)
        assert found.lengths.tolist() == [length for length in lengths if length > 1]

    @in_one_folder
    @given(lengths_lists, st.booleans())
    def test_an_archive(self, tmp_path, lengths, whole):
        saved = numbered(lengths, whole=whole)
        saved.save(tmp_path / "data.npz")
        loaded = load_experience(tmp_path / "data.npz")
        assert loaded.sha256() == saved.sha256()
        assert loaded.actions.dtype == saved.actions.dtype
        assert_together(loaded, whole=whole)

    @in_one_folder
    @given(lengths_lists, st.booleans())
    def test_a_folder(self, tmp_path, lengths, whole):
        saved = numbered(lengths, whole=whole)
        rows = np.split(np.arange(sum(lengths)), np.cumsum(lengths)[:-1])
        fields = ("observations", "actions", "rewards")
        written = save_episodes(
            tmp_path / "data", ({name: getattr(saved, name)[some] for name in fields} for some in rows)
        )
        assert written.sha256() == saved.sha256()
        assert isinstance(written.actions, np.memmap)
        assert_together(written, whole=whole)

    def test_fewer_fields_replace_more(self, tmp_path):
        episode = {"observations": np.zeros((3, 1)), "actions": [1, 2], "rewards": [1, 2]}
        save_episodes(tmp_path / "data", [episode])
        assert save_episodes(tmp_path / "data", [np.ones((3, 1))]).actions is None
        assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
            *("lengths.npy", "manifest.json", "observations.npy")
        ]

    @pytest.mark.parametrize("name", ["actions", "rewards"])
    def test_the_digest_covers_them(self, name, tmp_path):
        experience = numbered([3, 2])
        plain = Experience(experience.observations, experience.lengths)
        other = Experience(experience.observations, experience.lengths, **{name: getattr(experience, name)})
        assert len({digest.sha256() for digest in (experience, plain, other)}) == 3
        changed = getattr(experience, name).copy()
        changed[1] += 1
        fields = {"actions": experience.actions, "rewards": experience.rewards} | {name: changed}
        np.savez(
            tmp_path / "data.npz",
            observations=experience.observations,
            lengths=experience.lengths,
            sha256=np.frombuffer(bytes.fromhex(experience.sha256()), np.uint8),
            **fields,
        )
        with pytest.raises(DatasetError, match=r"data\.npz.* SHA-256"):
            load_experience(tmp_path / "data.npz")

    @pytest.mark.parametrize("name", ["actions", "rewards"])
    def test_a_changed_byte_in_a_folder(self, name, tmp_path):
        fields = {"observations": np.zeros((3, 1)), "actions": [1, 2], "rewards": [1, 2]}
        save_episodes(tmp_path, [fields])
        path = tmp_path / f"{name}.npy"
        content = bytearray(path.read_bytes())
        content[-9] ^= 1
        put(path, content)
        with pytest.raises(DatasetError, match=r"SHA-256|damaged"):
            load_experience(tmp_path)


class TestEpisodesRefused:
    @pytest.mark.parametrize(
        ("second", "words"),
        [
            ({"observations": np.zeros((3, 1))}, "episode 1 .*actions"),
            ({"observations": np.zeros((3, 1)), "actions": np.zeros((3, 2))}, "episode 1 .*actions"),
            ({"observations": np.zeros((3, 1)), "actions": [1]}, "episode 1: actions"),
            ({"actions": [1, 2]}, "episode 1 .*observations"),
            ({}, "episode 1 .*observations"),
        ],
    )
    def test_by_number_and_name(self, second, words, tmp_path):
        first = {"observations": np.zeros((3, 1)), "actions": [1, 2]}
        for made in (Experience.from_episodes, lambda episodes: save_episodes(tmp_path, episodes)):
            with pytest.raises(DatasetError, match=words):
                made([first, second])


class TestWhatEarlierVersionsWrote:
    def test_archives(self, tmp_path):
        """By digests that version 0.1.0 computed."""
        digest = "939d582f1165a15ecd4242082c7029b209db15e09574df056cbbdde2a672796f"
        seen = np.arange(10, dtype=np.float32).reshape(5, 2)
        np.savez(
            tmp_path / "old.npz",
            sha256=np.frombuffer(bytes.fromhex(digest), np.uint8),
            observations=seen,
            lengths=np.array([2, 3]),
        )
        assert load_experience(tmp_path / "old.npz").sha256() == digest
        table = Experience(np.array([0, 2, 1, 1]), [2, 2], np.arange(6.0).reshape(3, 2))
        assert table.sha256() == "bb0f92f9d8ff760af91ee8518f3b89cbb175eacfbf9a1a4e6cc77ca999e9880c"

    def test_folders(self, tmp_path):
        np.save(tmp_path / "observations.npy", np.arange(10, dtype=np.float32).reshape(5, 2))
        np.save(tmp_path / "lengths.npy", np.array([2, 3]))
        digest = "10e3d9d7b9d06439448acff52ebe4144957aeb2db1362404470b1335b68397c0"
        (tmp_path / "manifest.json").write_text(
            f'{{"kind": "lapwing experience", "format": 1, "version": "0.1.0", "sha256": "{digest}"}}'
        )
        assert load_experience(tmp_path).n_transitions == 3
