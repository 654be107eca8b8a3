"""Experience: what is accepted, what is refused and how it is told, on disk as in memory."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lapwing.data import memory_map as mapped_files
from lapwing.data.experience import Experience
from lapwing.data.memory_map import chunks
from lapwing.errors import DatasetError, LapwingWarning

TABLE = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], np.float32)


def episode_of_each_place(lengths) -> list[int]:
    return [episode for episode, length in enumerate(lengths) for _ in range(length)]


class TestAccepted:
    def test_vectors(self):
        seen = np.arange(10.0).reshape(5, 2)
        experience = Experience(seen, [2, 3])
        assert (experience.n_episodes, experience.n_transitions, experience.n_states) == (2, 3, None)
        assert experience.observation_shape == (2,)
        assert experience.observations.dtype == np.float32
        np.testing.assert_array_equal(experience.observe(np.array([4, 0])), seen[[4, 0]])

    @pytest.mark.parametrize("dtype", [np.uint8, np.int64])
    def test_images_of_whole_numbers_are_bytes(self, dtype):
        images = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3)).astype(dtype)
        experience = Experience(images, [4])
        assert experience.observations.dtype == np.uint8
        assert experience.observation_shape == (5, 6, 3)
        np.testing.assert_array_equal(experience.observations, images)

    @pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float64])
    def test_other_vectors_become_float32(self, dtype):
        experience = Experience(np.ones((4, 3), dtype), [4])
        assert experience.observations.dtype == np.float32
        assert (experience.observations == 1).all()

    def test_ids_with_a_table(self):
        experience = Experience(np.array([0, 2, 2, 0]), [4], TABLE)
        assert experience.n_states == 3, "also those that were never visited"
        assert experience.observation_shape == (2,)
        np.testing.assert_array_equal(experience.observe(np.arange(4)), TABLE[[0, 2, 2, 0]])

    @pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
    def test_ids_without_a_table_stand_for_themselves(self, dtype):
        experience = Experience(np.array([0, 4, 2], dtype), [3])
        assert experience.n_states == 5
        assert experience.observation_shape == ()
        assert experience.observations.dtype == np.int32
        np.testing.assert_array_equal(experience.observe(np.arange(3)), [0, 4, 2])

    def test_an_id_table_of_floats_is_a_table_of_ids(self):
        assert Experience(np.array([0, 1]), [2], np.array([0.0, 1.0])).table.dtype == np.int32

    def test_from_episodes(self):
        first, second = np.zeros((4, 2)), np.ones((3, 2))
        experience = Experience.from_episodes(iter([first, second]))
        np.testing.assert_array_equal(experience.lengths, [4, 3])
        np.testing.assert_array_equal(experience.observations, np.concatenate([first, second]))
        assert Experience.from_episodes([[0, 1, 2], [2, 1]]).observations.tolist() == [0, 1, 2, 2, 1]


def with_nan(shape, *places) -> np.ndarray:
    array = np.zeros(shape)
    for place in places:
        array[place] = np.nan
    return array


class TestRefused:
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
    @pytest.mark.parametrize(
        ("places", "named"), [([0], (0, 0)), ([2, 4], (0, 2)), ([3], (1, 0)), ([8], (2, 3))]
    )
    def test_nan_and_infinity_by_episode_and_step(self, bad, places, named):
        """The first of them, and what float32 cannot hold."""
        seen = np.zeros((9, 2))
        seen[places, 1] = bad
        with pytest.raises(DatasetError, match=f"episode {named[0]}, step {named[1]};"):
            Experience(seen, [3, 2, 4])

    @pytest.mark.parametrize(
        "lengths", [np.array([2**62] * 4 + [5]), np.array([2**64 - 5, 10], np.uint64), np.array([10**12])]
    )
    def test_forged_lengths(self, lengths):
        """Of 64 bits each of the first two adds up to 5."""
        with pytest.raises(DatasetError):
            Experience(np.zeros((5, 2)), lengths)

    @pytest.mark.parametrize(
        ("observations", "lengths", "table", "words"),
        [
            (np.array([0, 2]), [2], with_nan((3, 2), 1), "table .* state 1"),
            (with_nan((2, 3, 3, 1), 1), [2], None, "episode 0, step 1"),
            (np.zeros((4, 2)), [1, 3], None, "episode 0 has 1 observations"),
            (np.zeros((4, 2)), [4, 0], None, "episode 1 has 0 observations"),
            (np.zeros((4, 2)), [5, -1], None, "episode 1 has -1 observations"),
            (np.zeros((0, 2)), [], None, "no episodes"),
            (np.zeros((5, 2)), [2, 4], None, "6.* 5 observations"),
            (np.zeros((5, 2)), [2.0, 3.0], None, "lengths"),
            (np.zeros((5, 2)), [[2, 3]], None, "lengths"),
            (np.zeros((5, 2)), [True, True], None, "lengths"),
            (np.zeros((5, 2)), np.array(5), None, "lengths"),
            (np.zeros((3, 2), object), [3], None, "observations .* object"),
            (np.zeros((3, 2), complex), [3], None, "observations .* complex128"),
            (np.zeros(3, bool), [3], None, "observations .* bool"),
            (np.zeros(3, "datetime64[s]"), [3], None, r"observations .* datetime64\[s\]"),
            (np.zeros(3, int), [3], np.full((3, 2), "a"), "table .* <U1"),
            (np.zeros(3), [3], None, "no features"),
            (np.zeros((3, 0)), [3], None, "no features"),
            (np.array([0, 3]), [2], TABLE, "id 3, .* 3 rows"),
            (np.array([0, -2]), [2], None, "id -2"),
            (np.array([0, -2]), [2], TABLE, "id -2"),
            (np.zeros(2), [2], TABLE, "integer ids"),
            (np.zeros((2, 1), int), [2], TABLE, "integer ids"),
            (np.array([0, 2**31]), [2], None, f"id {2**31}"),
            (np.array([0, 1]), [2], np.array([1.0, 0.0]), r"\(states, 1\)"),
            (np.array([0, 1]), [2], np.array(3.0), "no features"),
            (np.array([0, 1]), [2], np.zeros((2, 0)), "no features"),
            (np.full((4, 5, 6, 3), 256), [4], None, "255"),
        ],
    )
    def test_arrays_that_are_no_experience(self, observations, lengths, table, words):
        with pytest.raises(DatasetError, match=words):
            Experience(observations, lengths, table)

    @pytest.mark.parametrize(
        ("episodes", "words"),
        [
            ([], "there are no episodes"),
            ([np.zeros((3, 2)), np.zeros((0, 2))], "episode 1 has 0 observations"),
            ([np.zeros((4, 2)), np.zeros((4, 3))], r"episode 1 .*\(3,\), episode 0 of \(2,\)"),
            ([[[1.0], [2.0]], [[1.0], [2.0, 3.0]]], "episode 1 "),
            ([np.array(1.0), np.array(2.0)], "episode 0 "),
        ],
    )
    def test_episodes_that_are_none(self, episodes, words):
        with pytest.raises(DatasetError, match=words):
            Experience.from_episodes(episodes)


lengths_lists = st.lists(st.integers(2, 9), min_size=1, max_size=8)


@settings(max_examples=200)
@given(lengths_lists)
def test_horizons_end_with_the_episode(lengths):
    experience = Experience(np.zeros((sum(lengths), 1)), lengths)
    episode = episode_of_each_place(lengths)
    for place, horizon in enumerate(experience.horizons):
        assert episode[place + horizon] == episode[place]
        after = place + horizon + 1
        assert after == len(episode) or episode[after] != episode[place]
    assert experience.n_transitions == sum(experience.horizons > 0)


class TestTabulated:
    @pytest.mark.parametrize("dtype", [np.uint8, np.float32])
    def test_the_same_observations_by_id(self, dtype):
        rng = np.random.default_rng(1)
        seen = rng.integers(0, 256, (4, 5, 5, 3)).astype(dtype)[rng.integers(4, size=30)]
        experience = Experience(seen if dtype == np.uint8 else seen.reshape(30, -1), [10, 20])
        table = experience.tabulated()
        assert table.n_states == len({row.tobytes() for row in seen})
        assert table.table.dtype == dtype
        np.testing.assert_array_equal(table.observe(np.arange(30)), experience.observations)
        np.testing.assert_array_equal(table.lengths, experience.lengths)

    def test_rows_that_stay_do_not_recur(self):
        seen = np.repeat(np.random.default_rng(0).random((50, 2)).astype(np.float32), 4, axis=0)
        assert Experience(seen, [100, 100]).tabulated().n_states is None
        assert Experience(np.tile(seen, (3, 1)), [200] * 3).tabulated().n_states == 50

    def test_more_than_the_limit_stays_as_it_is(self):
        experience = Experience(np.tile(np.arange(11.0), 2)[:, None], [22])
        assert experience.tabulated(limit=10) is experience
        assert experience.tabulated(limit=11).n_states == 11

    def test_observations_that_do_not_recur_are_continuous(self):
        experience = Experience(np.arange(30.0)[:, None], [30])
        assert experience.tabulated() is experience


@settings(max_examples=200)
@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_from_ends_is_cutting_after_each_end(flags):
    episodes: list[list[int]] = [[]]
    for place, ended in enumerate(flags):
        episodes[-1].append(place)
        if ended:
            episodes.append([])
    kept = [episode for episode in episodes if len(episode) > 1]
    seen = np.arange(len(flags), dtype=float)[:, None]
    if not kept:
        with pytest.raises(DatasetError, match="there are no episodes"):
            Experience.from_ends(seen, flags)
        return
    experience = Experience.from_ends(seen, flags)
    assert experience.lengths.tolist() == [len(episode) for episode in kept]
    assert experience.observations[:, 0].tolist() == [place for episode in kept for place in episode]


class TestFromEnds:
    @pytest.mark.parametrize("dtype", [bool, np.uint8, float])
    def test_flags_of_any_kind(self, dtype):
        ends = np.array([0, 0, 1, 0, 1], dtype)
        assert Experience.from_ends(np.zeros((5, 2)), ends).lengths.tolist() == [3, 2]
        assert Experience.from_ends([3, 1, 2, 0, 1], ends).n_states == 4

    @pytest.mark.parametrize(
        ("observations", "ends", "words"),
        [
            (np.zeros((4, 2)), [0, 0, 1], r"\(3,\).* \(4, 2\)"),
            (np.zeros((4, 2)), [[0], [0], [0], [1]], r"\(4, 1\).* \(4, 2\)"),
            (np.array(3.0), [1], r"\(1,\).* \(\)"),
            (np.zeros((2, 2)), ["no", "no"], "<U2"),
            (np.zeros((3, 2)), [0.0, np.nan, 1.0], "nan"),
            (np.zeros((3, 2)), [0.0, 0.5, 1.0], "0.5"),
        ],
    )
    def test_flags_that_are_none(self, observations, ends, words):
        with pytest.raises(DatasetError, match=f"ends .*{words}"):
            Experience.from_ends(observations, ends)


class TestRounding:
    """What float32 cannot tell apart."""

    WALK = np.cumsum(np.random.default_rng(0).normal(size=(200, 2)), axis=0)

    @pytest.mark.parametrize(
        ("features", "named"), [([1], "feature 1 "), (range(100), r"feature 0 \(and 99 more\)")]
    )
    def test_far_from_zero(self, features, named):
        walk = np.tile(self.WALK, 50)
        walk[:, features] += 5e6
        with pytest.warns(LapwingWarning, match=named) as caught:
            Experience(walk.tolist(), [200])
        assert len(caught) == 1

    def test_what_is_exact_or_near_enough(self):
        """Whole numbers up to 2^24, constants and their noise, float32 itself, and what is not far from 0."""
        whole = np.random.default_rng(0).integers(0, 50, (200, 2)) + 1.6e7
        for array in (
            self.WALK,
            self.WALK + 1e3,
            whole,
            np.full((200, 2), 1e9 + 0.3),
            (self.WALK + 5e6).astype("f4"),
            np.cos(self.WALK) ** 2 + np.sin(self.WALK) ** 2,
        ):
            Experience(array, [200])


def test_images_with_channels_first_are_warned_of():
    """And small boards, whose planes happen to be three or four, are not."""
    images = np.zeros((5, 3, 8, 9), np.uint8)
    with pytest.warns(LapwingWarning, match=r"\(3, 8, 9\)"):
        Experience(images, [5])
    for shape in ((8, 9, 3), (4, 20, 2), (3, 3, 2), (3, 3, 3)):
        Experience(np.zeros((5, *shape), np.uint8), [5])


@settings(max_examples=100)
@given(lengths_lists)
def test_transitions_are_counted_over_all_episodes(lengths):
    experience = Experience(np.zeros((sum(lengths), 1)), lengths)
    begins = [
        place
        for place, episode in enumerate(np.repeat(np.arange(len(lengths)), lengths))
        if place + 1 < sum(lengths) and place + 1 < sum(lengths[: episode + 1])
    ]
    assert experience.transitions(np.arange(experience.n_transitions)).tolist() == begins
    assert experience.ends.tolist() == [sum(lengths[: n + 1]) - 1 for n in range(len(lengths))]
    assert experience.longest == max(lengths) - 1


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """Makes experience of a mapped file, which counts as too large for memory."""
    monkeypatch.setattr(mapped_files, "IN_MEMORY", 10)

    def made(array: np.ndarray, lengths, mode: str = "r") -> Experience:
        np.save(tmp_path / "mapped.npy", array)
        return Experience(np.load(tmp_path / "mapped.npy", mmap_mode=mode), lengths)

    return made


def numbered(lengths) -> np.ndarray:
    return np.arange(2.0 * sum(lengths), dtype=np.float32).reshape(-1, 2)


class TestOnDisk:
    def test_what_is_mapped_and_large(self, mapped, monkeypatch):
        experience = mapped(numbered([4, 5]), [4, 5])
        assert experience.on_disk
        assert not Experience(numbered([4, 5]), [4, 5]).on_disk
        monkeypatch.setattr(mapped_files, "IN_MEMORY", 1 << 20)
        assert not experience.on_disk

    def test_parts_of_it_are_on_disk_too_however_small(self, mapped, monkeypatch):
        experience = mapped(numbered([4] * 10), [4] * 10)
        monkeypatch.setattr(mapped_files, "IN_MEMORY", experience.observations.nbytes - 1)
        for part in experience.split(0.2):
            assert part.on_disk

    def test_what_had_to_be_converted_and_ids_are_in_memory(self, mapped):
        for array in (numbered([4]).astype(np.float64), np.array([0, 3, 1, 2], np.int32)):
            experience = mapped(array, [4])
            assert not experience.on_disk
            np.testing.assert_array_equal(experience.observations, array)

    @pytest.mark.parametrize("at_once", [1, 3, 1_024])
    @pytest.mark.parametrize("places", [[8, 0, 3, 3, 8], [[1, 2], [8, 1]], []], ids=str)
    def test_observing_places(self, mapped, monkeypatch, places, at_once):
        monkeypatch.setattr(mapped_files, "ROWS_AT_ONCE", at_once)
        seen = numbered([4, 5])
        experience, places = mapped(seen, [4, 5]), np.array(places, int)
        for _ in range(2):
            found = experience.observe(places)
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, seen[places])

    def test_changes_that_are_in_memory_alone_are_not_lost(self, mapped):
        """A copy-on-write mapping has no file to read them from again."""
        experience = mapped(numbered([600, 600]), [600, 600], mode="c")
        experience.observations[:] = 7
        assert (experience.observe(np.arange(1_200)) == 7).all()
        experience.sha256()
        assert (experience.observations == 7).all()

    def test_it_is_not_tabulated(self, mapped):
        experience = mapped(np.zeros((20, 2), np.float32), [20])
        assert experience.tabulated() is experience

    def test_nan_is_named_by_episode_and_step(self, mapped, monkeypatch):
        monkeypatch.setattr(mapped_files, "BYTES_AT_ONCE", 20)
        seen = numbered([4, 5])
        seen[7, 1] = np.inf
        with pytest.raises(DatasetError, match="episode 1, step 3"):
            mapped(seen, [4, 5])


class TestPieces:
    @pytest.mark.parametrize("shape", [(17,), (17, 3, 3, 1), (0, 3)])
    @pytest.mark.parametrize("at_once", [1, 100, 1 << 26])
    def test_together_they_are_the_array(self, shape, at_once, monkeypatch):
        monkeypatch.setattr(mapped_files, "BYTES_AT_ONCE", at_once)
        array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        parts = list(chunks(array))
        begins = np.cumsum([0, *(len(part) for _, part in parts)])
        assert [begin for begin, _ in parts] == begins[:-1].tolist()
        assert begins[-1] == len(array)
        for begin, part in parts:
            np.testing.assert_array_equal(part, array[begin : begin + len(part)])
            assert part.nbytes <= max(at_once, array[:1].nbytes)

    def test_on_piece_sees_all_observations_in_turn(self, monkeypatch):
        monkeypatch.setattr(mapped_files, "BYTES_AT_ONCE", 50)
        for seen, table in ((numbered([9]), None), (np.array([0, 2, 1, 1, 0, 0, 0, 2, 1], np.int32), TABLE)):
            shown: list[np.ndarray] = []
            Experience(seen, [9], table, on_chunk=lambda chunk: shown.append(np.array(chunk)))  # noqa: B023
            np.testing.assert_array_equal(np.concatenate(shown), seen)


def episodes_in(experience: Experience) -> list[list[int]]:
    numbers = experience.observations.reshape(len(experience.observations), -1)[:, 0] / 2
    return [part.astype(int).tolist() for part in np.split(numbers, np.cumsum(experience.lengths)[:-1])]


class TestSplit:
    @settings(max_examples=300)
    @given(st.lists(st.integers(2, 9), min_size=1, max_size=12), st.floats(0.01, 0.99))
    def test_both_parts_are_of_the_episodes(self, lengths, share):
        if sum(lengths) < 4:
            return
        experience = Experience(numbered(lengths), lengths)
        whole = episodes_in(experience)
        first, second = (episodes_in(part) for part in experience.split(share))
        for part in (first, second):
            assert part
            for episode in part:
                assert len(episode) > 1
                assert any(set(episode) <= set(one) for one in whole)
                assert episode == list(range(episode[0], episode[-1] + 1))
        seen = [place for part in (first, second) for episode in part for place in episode]
        assert len(set(seen)) == len(seen) >= len(experience.observations) - 2
        if len(lengths) >= 5:
            assert sorted(first + second) == whole
            assert abs(len(second) - share * len(lengths)) <= 1

    def test_the_second_part_is_spread_over_the_data(self):
        experience = Experience(numbered([2] * 100), [2] * 100)
        numbers = [episode[0] // 2 for episode in episodes_in(experience.split(0.1)[1])]
        assert len(numbers) == 10
        assert np.diff(numbers).min() >= 10

    @pytest.mark.parametrize(
        ("lengths", "share", "first", "second"),
        [
            ([10], 0.2, [[*range(8)]], [[8, 9]]),
            ([3, 2, 3], 0.5, [[0, 1, 2]], [[5, 6, 7]]),
            ([4, 3], 0.2, [[0, 1, 2, 3]], [[5, 6]]),
            ([3, 5], 0.5, [[0, 1, 2]], [[4, 5, 6, 7]]),
            ([5, 3], 0.5, [[0, 1, 2, 3]], [[5, 6, 7]]),
        ],
    )
    @pytest.mark.parametrize("on_disk", [False, True])
    def test_a_single_observation_at_the_cut_is_left_out(
        self, lengths, share, first, second, on_disk, mapped
    ):
        make = mapped if on_disk else Experience
        parts = make(numbered(lengths), lengths).split(share)
        assert [episodes_in(part) for part in parts] == [first, second]

    @settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.integers(2, 9), min_size=2, max_size=12), st.floats(0.01, 0.99))
    def test_on_disk_nothing_is_copied(self, mapped, lengths, share):
        experience = mapped(numbered(lengths), lengths)
        first, second = experience.split(share)
        for part in (first, second):
            assert np.shares_memory(part.observations, experience.observations)
            assert part.on_disk
            assert part.n_transitions > 0
        if len(lengths) >= 5:
            assert episodes_in(first) + episodes_in(second) == episodes_in(experience)

    def test_too_little_for_two_parts(self):
        """One of them is empty, for whoever asks to see."""
        parts = Experience(numbered([3]), [3]).split(0.5)
        assert sorted(part.n_episodes for part in parts) == [0, 1]


class TestEpisodes:
    @given(st.lists(st.tuples(st.integers(2, 5), st.booleans()), min_size=1, max_size=8))
    def test_those_of_a_mask(self, chosen):
        lengths, mask = zip(*chosen, strict=True)
        experience = Experience(numbered(lengths), list(lengths))
        part = experience.episodes(np.array(mask))
        wanted = [one for one, taken in zip(episodes_in(experience), mask, strict=True) if taken]
        assert (episodes_in(part) if wanted else []) == wanted
