"""Experience in shards, as one process of a job sees it: its own shards, and a sample of all.

All selection (settings, coordinates, bumps, λ) and the final evaluation use the sample, which every process
has; gradients and moments are summed over all shards. Each shard has its own random numbers and its own sum,
so nothing but the rounding of gradients depends on the number of processes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lapwing.data.experience import Experience
from lapwing.data.shards import load_shard, shard_count
from lapwing.errors import DatasetError
from lapwing.laplacian import hosts
from lapwing.laplacian.ritz import Moments, mean_moments

SAMPLE = 200_000
"""About so many transitions are in the sample, held-out ones among them."""
LEAST = 100
"""A shard has at least so many transitions."""


@dataclass(frozen=True, eq=False)
class Shards:
    """The shards that this process reads, and what it knows of all."""

    numbers: Sequence[int]
    learned_from: tuple[Experience, ...]
    """Of each of them the episodes that are not held out."""
    count: int
    """Of all shards."""
    n_transitions: int
    """In all of them, held-out ones too."""
    sample: tuple[Experience, Experience]
    """Some episodes of all shards: learned from, and held out (the same ones, if none are held out)."""

    def mean_moments(self, moments: Callable[[Experience, int], tuple[Moments, int]], most: int) -> Moments:
        """(A, B) over all shards; every process must call it.

        Args:
            moments: of an experience and at most so many of its pairs, with how many they are.
            most: how many pairs at most in all.
        """
        own = [moments(experience, max(1, most // self.count)) for experience in self.learned_from]
        rows = [np.concatenate([*(part.ravel() for part in parts), [pairs]]) for parts, pairs in own]
        every = np.concatenate([np.frombuffer(blob) for blob in hosts.gathered(np.stack(rows).tobytes())])
        size = len(own[0][0][0])
        drawing, second, pairs = np.split(every.reshape(self.count, -1), [size**2, 2 * size**2], axis=1)
        return mean_moments(
            ((a.reshape(size, size), b.reshape(size, size)), int(n[0]))
            for a, b, n in zip(drawing, second, pairs, strict=True)
        )


def open_shards(folder: Path, held_out: float, image_size: int, seed: int) -> Shards:
    """The shards of this process; every process must call it.

    Args:
        folder: of shards.
        held_out: the share of each shard's episodes that is not learned from.
        image_size: larger images are averaged to at most so many pixels each way.
        seed: of the sample.
    """
    count = shard_count(folder)
    numbers = hosts.shards_of_process(count)
    own = hosts.agreed(lambda: [_open_shard(folder, number, image_size) for number in numbers])
    _check_shapes(folder, own)
    parts = [one.split(held_out) if held_out else (one, one) for one in own]
    samples = [
        _gathered_sample([pair[part] for pair in parts], numbers, share * SAMPLE / count, seed)
        for part, share in ((0, 1 - held_out), (1, held_out))
        if share
    ]
    sizes = np.frombuffer(
        b"".join(hosts.gathered(np.array([one.n_transitions for one in own], np.int64).tobytes())), np.int64
    )
    learned_from = tuple(first for first, _ in parts)
    return Shards(numbers, learned_from, count, int(sizes.sum()), (samples[0], samples[-1]))


def _open_shard(folder: Path, number: int, image_size: int) -> Experience:
    experience = load_shard(folder, number).with_shrunk_images(image_size)
    if experience.n_transitions < LEAST:
        raise DatasetError(
            f"shard {number} of {folder} has {experience.n_transitions} transitions, and {LEAST} are needed; "
            "write fewer shards"
        )
    return experience


def _check_shapes(folder: Path, own: Sequence[Experience]) -> None:
    described = "\n".join(f"{one.observations.dtype} of shape {one.observation_shape}" for one in own)
    every = b"\n".join(hosts.gathered(described.encode())).decode().split("\n")
    for number, kind in enumerate(every):
        if kind != every[0]:
            raise DatasetError(
                f"shard {number} of {folder} holds {kind}, and shard 0 {every[0]}; write all shards alike"
            )


def _gathered_sample(
    parts: Sequence[Experience], numbers: Sequence[int], transitions: float, seed: int
) -> Experience:
    """Episodes drawn from every shard, about so many transitions each."""
    drawn = [
        _some_episodes(part, transitions, np.random.default_rng([seed, number]))
        for part, number in zip(parts, numbers, strict=True)
    ]
    lengths = np.concatenate([chosen for _, chosen in drawn])
    rows = np.concatenate([seen for seen, _ in drawn])
    every_length = np.frombuffer(b"".join(hosts.gathered(lengths.astype(np.int64).tobytes())), np.int64)
    every_row = b"".join(hosts.gathered(rows.tobytes()))
    seen = np.frombuffer(every_row, rows.dtype).reshape(-1, *rows.shape[1:])
    shrunk = parts[0].shrunk
    return Experience(seen, every_length, shrunk=shrunk)


def _some_episodes(
    experience: Experience, transitions: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The observations and lengths of episodes at random; the last is cut where there are enough."""
    order = rng.permutation(experience.n_episodes)
    steps = np.cumsum(experience.lengths[order] - 1)
    order = np.sort(order[: int(np.searchsorted(steps, transitions)) + 1])
    most = max(2, int(transitions) + 1)
    lengths = np.minimum(experience.lengths[order], most)
    begins = (experience.ends + 1 - experience.lengths)[order]
    rows = np.concatenate([np.arange(begin, begin + n) for begin, n in zip(begins, lengths, strict=True)])
    return experience.observe(rows), lengths
