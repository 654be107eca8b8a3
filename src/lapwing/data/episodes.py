"""Episodes as users pass them: an array of observations each, or a dict with actions and rewards."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from lapwing.data.actions import checked_actions, checked_rewards
from lapwing.data.memory_map import chunks
from lapwing.data.observations import (
    as_array,
    checked_observations,
    first_not_finite,
    not_finite,
    too_short,
)
from lapwing.errors import DatasetError

FIELDS = ("observations", "actions", "rewards")


class Episode(NamedTuple):
    """One episode; actions and rewards, if there are any, stand at the observations that they follow."""

    observations: np.ndarray
    actions: np.ndarray | None = None
    rewards: np.ndarray | None = None


def as_episodes(given: Any) -> list[Episode]:
    """All episodes, of the same shapes and with the same fields."""
    if isinstance(given, np.ndarray) and given.ndim < 3 and not np.issubdtype(given.dtype, np.integer):
        raise DatasetError(
            f"episodes are one array of shape {given.shape}; give a list with an array for each, or "
            "use Experience.from_ends"
        )
    if not isinstance(given, Iterable):
        raise DatasetError(f"episodes must be arrays, one an episode, not {given!r}")
    episodes = [as_episode(number, one) for number, one in enumerate(given)]
    if not episodes:
        raise DatasetError(no_episodes())
    for number, episode in enumerate(episodes):
        check_alike(number, episode, episodes[0])
    return episodes


def no_episodes() -> str:
    """What is said where there are none."""
    return "there are no episodes; give at least one of two observations"


def as_episode(number: int, given: Any) -> Episode:
    """One episode of arrays; what is no episode is refused by its number."""
    fields = given if isinstance(given, Mapping) else {"observations": given}
    if "observations" not in fields:
        raise DatasetError(
            f"episode {number} has no 'observations', it holds {', '.join(map(str, fields)) or 'nothing'}; "
            "give an array, or a dict with observations, and with actions and rewards if there are any"
        )
    seen = as_array(f"episode {number}", fields["observations"])
    if seen.ndim == 0:
        raise DatasetError(f"episode {number} is a single number; give an array of observations")
    length = np.array([len(seen)])
    try:
        actions = checked_actions(fields.get("actions"), length)
        return Episode(seen, actions, checked_rewards(fields.get("rewards"), length))
    except DatasetError as error:
        raise DatasetError(f"episode {number}: {error}") from error


def check_alike(number: int, episode: Episode, first: Episode) -> None:
    """Refuse an episode whose fields or shapes are not those of the first."""
    for name in FIELDS:
        here, there = getattr(episode, name), getattr(first, name)
        if (here is None) != (there is None):
            raise DatasetError(
                f"episode {number} has {'no ' if here is None else ''}{name}, and episode 0 has "
                f"{'none' if there is None else 'them'}; give them to all or to none"
            )
        if here is not None and here.shape[1:] != there.shape[1:]:
            raise DatasetError(
                f"episode {number} has {name} of shape {here.shape[1:]}, "
                f"episode 0 of {there.shape[1:]}; give all the same shape"
            )


def checked_episode(number: int, given: Any) -> Episode:
    """One episode as it will be learned from; one that cannot be is refused by its number."""
    episode = as_episode(number, given)
    if len(episode.observations) < 2:
        raise DatasetError(too_short(number, len(episode.observations)))
    try:
        checked, _ = checked_observations(episode.observations, None)
    except DatasetError as error:
        raise DatasetError(f"episode {number}: {error}") from error
    for begin, chunk in chunks(checked):
        bad = first_not_finite(chunk)
        if bad is not None:
            raise DatasetError(not_finite(number, begin + bad))
    return episode._replace(observations=checked)


def check_flags(name: str, flags: np.ndarray) -> None:
    """Refuse what does not say yes or no of each observation."""
    if flags.dtype == bool:
        return
    if flags.dtype.kind not in "iuf" or not np.isin(flags, (0, 1)).all():
        found = flags.dtype if flags.dtype.kind not in "iuf" else flags[~np.isin(flags, (0, 1))].flat[0]
        raise DatasetError(
            f"{name} must be true or false (or 1 or 0), not {found}; give one flag an observation"
        )


def lengths_of(ends: np.ndarray) -> np.ndarray:
    """How many observations each episode has, from which of them are its last."""
    last = np.append(np.flatnonzero(ends), len(ends) - 1)
    return np.diff(np.unique(last), prepend=-1)
