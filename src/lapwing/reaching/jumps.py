"""Steps whose outcome is chance, such as a teleport's: a plan must not count on them.

A jump is a step many times as long as nearly all others. Jumps that begin alike, by the same action, and end
far apart are random. Where they are, episodes are cut: no way leads through them, but at a price.
"""

import numpy as np
from scipy.spatial import KDTree

from lapwing.data.experience import Experience

TIMES_AS_LONG = 8.0
"""As the longest of 99 steps in a hundred."""
APART = 0.2
"""Jumps are random if those that begin alike end farther apart than this share of their length."""
FEWEST = 5
"""With fewer jumps nothing is known of their outcome."""


def random_jumps(experience: Experience, features: np.ndarray) -> np.ndarray:
    """The indices of the observations from which a step leads to chance; none in most data.

    Args:
        experience: with actions.
        features: of every observation, in which steps have a length.
    """
    within = np.flatnonzero(experience.horizons > 0)
    lengths = np.linalg.norm(features[within + 1] - features[within], axis=1)
    usual = float(np.quantile(lengths, 0.99))
    jumps = within[lengths > TIMES_AS_LONG * usual]
    if len(jumps) < FEWEST or usual == 0:
        return jumps[:0]
    return jumps if _end_apart(experience, features, jumps) else jumps[:0]


def _end_apart(experience: Experience, features: np.ndarray, jumps: np.ndarray) -> bool:
    assert experience.actions is not None
    actions = experience.actions[jumps].reshape(len(jumps), -1).astype(float)
    spread = actions.std(axis=0)
    begun = np.concatenate([features[jumps], actions / np.where(spread > 0, spread, 1.0)], axis=1)
    nearest = np.asarray(KDTree(begun).query(begun, k=2)[1])
    ends, lengths = features[jumps + 1], np.linalg.norm(features[jumps + 1] - features[jumps], axis=1)
    apart = np.linalg.norm(ends - ends[nearest[:, 1]], axis=1)
    # Outcomes may coincide by chance, so the mean tells and the median may not.
    return bool(apart.mean() > APART * lengths.mean())


def horizons_between(horizons: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    """How many steps follow each observation before its episode ends or jumps.

    Example:
        >>> horizons_between(np.array([3, 2, 1, 0, 1, 0]), np.array([1])).tolist()
        [1, 0, 1, 0, 1, 0]
    """
    last = horizons == 0
    last[jumps] = True
    ends = np.flatnonzero(last)
    lengths = np.diff(np.append(-1, ends))
    return np.repeat(ends, lengths) - np.arange(len(horizons))


def cut_at(experience: Experience, jumps: np.ndarray) -> Experience:
    """The experience with its episodes cut at jumps; pieces of one observation are left out."""
    last = experience.horizons == 0
    last[jumps] = True
    lengths = np.diff(np.append(-1, np.flatnonzero(last)))
    kept = np.repeat(lengths > 1, lengths)
    assert experience.actions is not None
    return Experience(
        experience.observations[kept],
        lengths[lengths > 1],
        experience.table,
        actions=experience.actions[kept],
    )
