"""Experience: episodes of observations, validated on construction.

All observations are in one array, episode after episode; `lengths` holds the number of each. If the states
can be enumerated, the array holds their ids and `table` one observation per state. No pair of states ever
crosses the end of an episode. Actions and rewards, if present, are aligned with the observations that they
follow.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lapwing.data.actions import at_observations, checked_actions, checked_rewards
from lapwing.data.episodes import as_episodes, check_flags, lengths_of
from lapwing.data.memory_map import IN_MEMORY, chunks, is_large, take_rows
from lapwing.data.observations import (
    as_array,
    checked_lengths,
    checked_observations,
    first_not_finite,
    not_finite,
    warn_of_form,
)
from lapwing.data.shrink import Shrinking, as_numbers, shrinking_of
from lapwing.errors import DatasetError
from lapwing.storage import write_atomically

OnChunk = Callable[[np.ndarray], object]


@dataclass(frozen=True, eq=False, init=False)
class Experience:
    """Validated episodes.

    Args:
        observations: all observations, episode after episode: vectors (n, k), uint8 images (n, h, w, c),
            or integer ids (n,), with or without a `table`.
        lengths: the number of observations of each episode, at least two.
        table: the observation of each id, if the states are enumerated.
        actions: the action taken at each observation, or one per transition: integers, or vectors (n, k)
            of floats. They are stored one per observation; the last of an episode is never used.
        rewards: the reward that followed each observation, stored in the same way.
        shrunk: for downsampled images, the size of a block of pixels, and the shape (height, width,
            channels) before: four numbers.

    Example:
        >>> experience = Experience(np.zeros((5, 2)), [2, 3], actions=[1, 0, 1])
        >>> experience.n_transitions, experience.actions.tolist()
        (3, [1, 0, 0, 1, 0])
    """

    observations: np.ndarray
    lengths: np.ndarray
    table: np.ndarray | None = None
    actions: np.ndarray | None = None
    rewards: np.ndarray | None = None
    shrunk: np.ndarray | None = None

    def __init__(
        self,
        observations: ArrayLike,
        lengths: ArrayLike,
        table: ArrayLike | None = None,
        *,
        actions: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        shrunk: ArrayLike | None = None,
        on_chunk: OnChunk | None = None,
    ):
        """Check everything once, so that nothing else has to; `on_chunk` is given the observations."""
        counts, given = checked_lengths(lengths), as_array("observations", observations)
        checked, checked_table = checked_observations(given, table)
        if counts.max() > len(checked) or counts.sum() != len(checked):  # of forged lengths a sum overflows
            total = sum(counts.tolist())
            raise DatasetError(
                f"lengths add up to {total}, but there are {len(checked)} observations; give the number of "
                "observations in each episode, its last one included"
            )
        followed_by = checked_actions(actions, counts), checked_rewards(rewards, counts)
        seen = checked if checked_table is None else checked_table
        self._set(checked, counts, checked_table, *followed_by, _checked_shrinking(shrunk, seen.shape[1:]))
        _check_finite(self, on_chunk)
        warn_of_form(given)

    def __repr__(self) -> str:
        counts = f"{self.n_episodes:,} episodes, {self.n_transitions:,} transitions"
        return f"Experience({counts}, observations of shape {self.observation_shape})"

    def _set(self, *arrays: np.ndarray | None) -> None:
        """Set all fields, in their order."""
        for field, array in zip(dataclasses.fields(self), arrays, strict=True):
            object.__setattr__(self, field.name, array)

    def _part(self, chosen: Any, lengths: np.ndarray) -> "Experience":
        """The observations that a mask or a slice chooses, which have been checked."""
        part = object.__new__(Experience)
        followed_by = (None if array is None else array[chosen] for array in (self.actions, self.rewards))
        part._set(self.observations[chosen], lengths, self.table, *followed_by, self.shrunk)
        return part

    @classmethod
    def from_episodes(cls, episodes: Iterable[ArrayLike | Mapping[str, ArrayLike]]) -> "Experience":
        """Experience from a list of episodes.

        Args:
            episodes: an array of observations each; or a dict of `observations`, `actions` and `rewards`,
                the last two one per observation or one per transition. Other keys are ignored.

        Example:
            >>> Experience.from_episodes([np.zeros((4, 2)), np.ones((3, 2))]).n_episodes
            2
            >>> episode = {"observations": np.zeros((3, 2)), "actions": [1, 0]}
            >>> Experience.from_episodes([episode]).actions.tolist()
            [1, 0, 0]
        """
        seen, actions, rewards = zip(*as_episodes(episodes), strict=True)
        return cls(
            np.concatenate(seen),
            np.array([len(array) for array in seen]),
            actions=None if actions[0] is None else np.concatenate(actions),
            rewards=None if rewards[0] is None else np.concatenate(rewards),
        )

    @classmethod
    def from_ends(
        cls,
        observations: ArrayLike,
        ends: ArrayLike,
        *,
        actions: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
    ) -> "Experience":
        """Experience from one array of observations, with flags that mark the last of each episode.

        Observations after the last flag form an unfinished episode, which is kept. Episodes of a single
        observation have no transition and are dropped.

        Example:
            >>> Experience.from_ends(np.zeros((5, 2)), [0, 0, 1, 0, 0]).lengths.tolist()
            [3, 2]
        """
        array, flags = as_array("observations", observations), as_array("ends", ends)
        check_flags("ends", flags)
        if array.ndim == 0 or flags.shape != array.shape[:1]:
            raise DatasetError(
                f"ends have shape {flags.shape}, and observations {array.shape}; give one flag an observation"
            )
        lengths = lengths_of(flags.astype(bool))
        kept = np.repeat(lengths > 1, lengths)

        def of_kept(name: str, given: ArrayLike | None) -> np.ndarray | None:
            rows = None if given is None else at_observations(name, as_array(name, given), lengths)
            return rows if rows is None or kept.all() else rows[kept]

        return cls(
            array if kept.all() else array[kept],
            lengths[lengths > 1],
            actions=of_kept("actions", actions),
            rewards=of_kept("rewards", rewards),
        )

    @property
    def n_episodes(self) -> int:
        """The number of episodes."""
        return len(self.lengths)

    @property
    def n_transitions(self) -> int:
        """The number of one-step transitions."""
        return len(self.observations) - self.n_episodes

    @property
    def n_states(self) -> int | None:
        """The number of enumerated states, or None if they are not enumerated."""
        return None if self.table is None else len(self.table)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of one observation; () for an id without a table."""
        seen = self.observations if self.table is None else self.table
        return seen.shape[1:]

    @property
    def on_disk(self) -> bool:
        """Whether the observations are, or are part of, a memory-mapped file that is too large for memory."""
        return is_large(self.observations)

    def transitions(self, numbers: np.ndarray) -> np.ndarray:
        """The index of the first observation of these transitions, numbered from 0 over all episodes.

        Example:
            >>> Experience(np.zeros((5, 2)), [2, 3]).transitions(np.array([0, 1, 2])).tolist()
            [0, 2, 3]
        """
        return numbers + np.searchsorted(self._transitions_before, numbers, side="right")

    @cached_property
    def _transitions_before(self) -> np.ndarray:
        """How many transitions there are up to the end of each episode."""
        return np.cumsum(self.lengths - 1)

    @cached_property
    def longest(self) -> int:
        """The number of steps of the longest episode."""
        return int(self.lengths.max()) - 1

    @cached_property
    def ends(self) -> np.ndarray:
        """The index of the last observation of each episode."""
        return np.cumsum(self.lengths) - 1

    @cached_property
    def horizons(self) -> np.ndarray:
        """The number of steps that follow each observation within its episode."""
        ends = np.repeat(np.cumsum(self.lengths), self.lengths)
        return ends - 1 - np.arange(len(self.observations))

    def observe(self, indices: np.ndarray) -> np.ndarray:
        """The observations at these indices."""
        chosen = take_rows(self.observations, np.asarray(indices))
        return chosen if self.table is None else self.table[chosen]

    def episodes(self, chosen: np.ndarray) -> "Experience":
        """The episodes that a boolean mask selects."""
        within = np.repeat(chosen, self.lengths)
        return self._part(within, self.lengths[chosen])

    def joined(self, other: "Experience") -> "Experience":
        """The episodes of both, of the same observations; without actions and rewards."""
        seen = np.concatenate([self.observations, other.observations])
        return Experience(seen, np.concatenate([self.lengths, other.lengths]), self.table, shrunk=self.shrunk)

    def split(self, share: float) -> tuple["Experience", "Experience"]:
        """Two parts, the second with about this share of the episodes.

        Episodes at regular intervals go to the second part. For large data it is the last ones, so that
        nothing is copied; with too few episodes it is the end of the data. Both parts have a transition if
        there are four observations.

        Example:
            >>> first, second = Experience(np.zeros((50, 2)), [5] * 10).split(0.2)
            >>> first.n_episodes, second.n_episodes
            (8, 2)
        """
        second = min(max(1, round(share * self.n_episodes)), self.n_episodes - 1)
        if self.n_episodes < 5:
            return self._split_at(int(len(self.observations) * (1 - share)))
        if self.on_disk or self.observations.nbytes > IN_MEMORY:  # the same where it was loaded again
            return self._split_at(int(self.lengths[: self.n_episodes - second].sum()))
        chosen = np.zeros(self.n_episodes, bool)
        chosen[np.linspace(0, self.n_episodes - 1, second).round().astype(int)] = True
        return self.episodes(~chosen), self.episodes(chosen)

    def _split_at(self, index: int) -> tuple["Experience", "Experience"]:
        """Before and from this index; an episode that is cut becomes two.

        A single observation on either side of the cut has no transition and is left out: always the last
        of the first part or the first of the second, so that nothing is copied.
        """
        index = min(max(index, 2), len(self.observations) - 2)
        begins = self.ends + 1 - self.lengths
        before = np.clip(index - begins, 0, self.lengths)
        after = self.lengths - before
        end, begin = index - int(np.sum(before == 1)), index + int(np.sum(after == 1))
        return (
            self._part(slice(end), before[before > 1]),
            self._part(slice(begin, None), after[after > 1]),
        )

    def tabulated(self, limit: int = 5_000) -> "Experience":
        """The same with enumerated states, if at most `limit` are distinct and they recur; else itself.

        Observations that hardly ever recur are continuous, however few they are. A row that is repeated in
        consecutive steps does not count as recurring.
        """
        if self.table is not None:
            return self
        if self.on_disk or len(_distinct(self.observations[: 4 * limit])[0]) > limit:
            return self
        first, ids = _distinct(self.observations)
        arrived = np.append(True, ids[1:] != ids[:-1])
        arrived[self.ends + 1 - self.lengths] = True
        if len(first) > min(limit, max(1, int(arrived.sum()) // 2)):
            return self
        return Experience(
            ids.reshape(-1).astype(np.int32),
            self.lengths,
            self.observations[first],
            actions=self.actions,
            rewards=self.rewards,
            shrunk=self.shrunk,
        )

    @property
    def shrinking(self) -> Shrinking | None:
        """How the images were downsampled, if they were."""
        if self.shrunk is None:
            return None
        block, *shape = self.shrunk.tolist()
        return Shrinking(block, tuple(shape))

    def with_shrunk_images(self, most: int) -> "Experience":
        """The same with images of at most `most` pixels each way; itself where they are not larger."""
        shrinking = shrinking_of(self.observation_shape, most)
        if shrinking is None or self.shrunk is not None:
            return self
        seen = self.observations if self.table is None else self.table
        images = np.concatenate([shrinking(rows) for _, rows in chunks(seen)])
        rest = object.__new__(Experience)
        seen, table = (images, None) if self.table is None else (self.observations, images)
        rest._set(seen, self.lengths, table, self.actions, self.rewards, as_numbers(shrinking))
        return rest

    def sha256(self) -> str:
        """A digest of the content."""
        digest = hashlib.sha256()
        for name, array in self._arrays().items():
            if name in (
                "actions",
                "rewards",
                "shrunk",
            ):  # came later: else it is as it was
                digest.update(name.encode())
            digest.update(f"{array.dtype}{array.shape}".encode())
            for _, chunk in chunks(array):
                digest.update(np.ascontiguousarray(chunk).data)
        return digest.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write an .npz file with the existing arrays by name, and the `sha256` of all."""
        # The digest comes first: damage to the archive's directory can hide what follows an entry.
        arrays = {"sha256": np.frombuffer(bytes.fromhex(self.sha256()), np.uint8)} | self._arrays()
        arrays["observations"] = _smallest_integers(self.observations)
        write_atomically(
            Path(path),
            lambda buffer: np.savez(buffer, **arrays),  # pyright: ignore[reportArgumentType]
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        """Those that there are, by their names."""
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: array for name, array in named.items() if array is not None}


def _check_finite(experience: Experience, on_chunk: OnChunk | None) -> None:
    for begin, chunk in chunks(experience.observations):
        if on_chunk is not None:
            on_chunk(chunk)
        bad = first_not_finite(chunk)
        if bad is not None:
            episode = int(np.searchsorted(experience.ends, begin + bad))
            raise DatasetError(not_finite(episode, begin + bad - int(experience.lengths[:episode].sum())))
    bad = None if experience.table is None else first_not_finite(experience.table)
    if bad is not None:
        raise DatasetError(f"table holds NaN or infinity at state {bad}; fix or drop it")


def _checked_shrinking(given: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray | None:
    if given is None:
        return None
    numbers = as_array("shrunk", given)
    whole = numbers.shape == (4,) and np.issubdtype(numbers.dtype, np.integer) and numbers.min() > 0
    if not whole or Shrinking(int(numbers[0]), tuple(numbers[1:].tolist())).shrunk_shape != shape:
        raise DatasetError(
            f"shrunk is {numbers.tolist()!r}, and the images have shape {shape}; it must be the block of "
            "pixels and the shape before (height, width, channels): leave it out if images are as they were"
        )
    return numbers.astype(np.int64)


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct row is first, and for every row which of them it is.

    Vectors are sorted; of images, which would take minutes, digests are compared.
    """
    if rows.ndim < 4:
        flat = rows.reshape(len(rows), -1)
        _, first, ids = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        return first, ids.reshape(-1)
    digests = [hashlib.blake2b(np.ascontiguousarray(row).data, digest_size=16).digest() for row in rows]
    known: dict[bytes, int] = {}
    ids = np.array([known.setdefault(digest, len(known)) for digest in digests])
    return np.unique(ids, return_index=True)[1], ids


def _smallest_integers(array: np.ndarray) -> np.ndarray:
    return array.astype(np.min_scalar_type(array.max())) if array.dtype == np.int32 else array
