"""Experience: what an agent saw, episode by episode, checked before anything is learned from it.

All observations stand in one array, episode after episode; `lengths` says how many belong to each. Where
the states can be enumerated, the array holds their ids and `table` one observation a state. No pair of
states is ever taken across the end of an episode.
"""

import hashlib
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import ArrayLike

from lapwing.envs.gridworld import GridWorld, Observation, random_walks
from lapwing.errors import DatasetError
from lapwing.storage import write_bytes

MOST_IDS = 10_000_000
"""Ids above this are taken for hashes or cell numbers, not for states counted from 0."""

Policy = Callable[[Any], Any]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, init=False)
class Experience:
    """Validated episodes.

    Args:
        observations: all observations, episode after episode: vectors (n, k), images (n, h, w, c) of bytes,
            or, with a `table`, integer ids (n,). Integer ids without a table stand for themselves.
        lengths: how many observations each episode has; at least two, for a transition needs both ends.
        table: the observation of each id, if the states are enumerated.

    Example:
        >>> Experience(np.zeros((5, 2)), [2, 3]).n_transitions
        3
    """

    observations: np.ndarray
    lengths: np.ndarray
    table: np.ndarray | None = None

    def __init__(self, observations: ArrayLike, lengths: ArrayLike, table: ArrayLike | None = None):
        """Check everything once, so that nothing else has to."""
        checked_lengths = _checked_lengths(lengths)
        checked, checked_table = _checked_observations(observations, table)
        if checked_lengths.sum() != len(checked):
            raise DatasetError(
                f"lengths add up to {checked_lengths.sum()}, but there are {len(checked)} observations"
            )
        object.__setattr__(self, "observations", checked)
        object.__setattr__(self, "lengths", checked_lengths)
        object.__setattr__(self, "table", checked_table)
        _check_finite("table" if checked_table is not None else "observations", self)

    @classmethod
    def from_episodes(cls, episodes: Iterable[ArrayLike]) -> "Experience":
        """Episodes given as one array of observations each.

        Example:
            >>> Experience.from_episodes([np.zeros((4, 2)), np.ones((3, 2))]).n_episodes
            2
        """
        arrays = [_as_array(f"episode {number}", episode) for number, episode in enumerate(episodes)]
        if not arrays:
            raise DatasetError("there are no episodes; give at least one of two observations")
        for number, array in enumerate(arrays):
            if array.ndim == 0:
                raise DatasetError(f"episode {number} is a single number; give an array of observations")
            if array.shape[1:] != arrays[0].shape[1:]:
                raise DatasetError(
                    f"episode {number} has observations of shape {array.shape[1:]}, "
                    f"episode 0 of {arrays[0].shape[1:]}; give all the same shape"
                )
        return cls(np.concatenate(arrays), np.array([len(array) for array in arrays]))

    @property
    def n_episodes(self) -> int:
        """How many episodes there are."""
        return len(self.lengths)

    @property
    def n_transitions(self) -> int:
        """How many one-step transitions there are."""
        return len(self.observations) - self.n_episodes

    @property
    def n_states(self) -> int | None:
        """How many states can be enumerated, or None where they cannot."""
        return None if self.table is None else len(self.table)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of one observation; () for an id that stands for itself."""
        seen = self.observations if self.table is None else self.table
        return seen.shape[1:]

    @cached_property
    def horizons(self) -> np.ndarray:
        """How many steps follow each observation within its episode."""
        ends = np.repeat(np.cumsum(self.lengths), self.lengths)
        return ends - 1 - np.arange(len(self.observations))

    def observe(self, positions: np.ndarray) -> np.ndarray:
        """The observations at these places of the array."""
        chosen = self.observations[positions]
        return chosen if self.table is None else self.table[chosen]

    def episodes(self, chosen: np.ndarray) -> "Experience":
        """The episodes that a mask over all of them chooses."""
        within = np.repeat(chosen, self.lengths)
        return Experience(self.observations[within], self.lengths[chosen], self.table)

    def tabulated(self, limit: int = 5_000) -> "Experience":
        """The same with enumerated states, if at most `limit` differ and they recur; else itself.

        Observations that hardly ever recur are continuous, however few they are.
        """
        if self.table is not None:
            return self
        flat = self.observations.reshape(len(self.observations), -1)
        if len(np.unique(flat[: 4 * limit], axis=0)) > limit:
            return self
        _, first, ids = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        if len(first) > min(limit, len(flat) // 2):
            return self
        return Experience(ids.reshape(-1).astype(np.int32), self.lengths, self.observations[first])

    def sha256(self) -> str:
        """A digest of the content."""
        digest = hashlib.sha256()
        for array in (self.observations, self.lengths, self.table):
            if array is not None:
                digest.update(f"{array.dtype}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write an .npz file: `observations`, `lengths`, `table` if there is one, and the `sha256` of all."""
        # The digest comes first: damage to the archive's directory can hide what follows an entry.
        arrays = {"sha256": np.frombuffer(bytes.fromhex(self.sha256()), np.uint8)}
        arrays |= {"observations": _smallest_integers(self.observations), "lengths": self.lengths}
        if self.table is not None:
            arrays["table"] = self.table
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # pyright: ignore[reportArgumentType]
        write_bytes(Path(path), buffer.getvalue())


def load_experience(path: str | Path) -> Experience:
    """Read an .npz file as `Experience.save` writes it; pickled content is refused, never run."""
    path = Path(path)
    if not path.is_file():
        raise DatasetError(f"no data file {path}")
    try:
        arrays = _read_arrays(path)
    except DatasetError:
        raise
    except Exception as error:  # damaged bytes make numpy and zipfile raise nearly anything
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            raise DatasetError(
                f"{path} holds pickled Python objects, which lapwing never loads; save plain numeric arrays"
            ) from error
        raise DatasetError(f"{path} is damaged or not an .npz file ({error})") from error
    digest = arrays.pop("sha256", None)
    try:
        experience = Experience(**arrays)
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from error
    if digest is not None and digest.tobytes().hex() != experience.sha256():
        raise DatasetError(
            f"{path} is damaged: its content does not match its SHA-256 "
            "(if you changed it on purpose, leave the array sha256 out)"
        )
    return experience


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as stream:
        file = np.load(stream, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise DatasetError(f"{path} is a single array, not an .npz file; save it with numpy.savez")
        missing = {"observations", "lengths"} - set(file.files)
        if missing:
            raise DatasetError(
                f"{path} has no array {sorted(missing)[0]!r}; it holds {', '.join(file.files)}"
            )
        known = ("observations", "lengths", "table", "sha256")
        return {name: file[name] for name in known if name in file.files}


def collect_walks(
    world: GridWorld,
    observation: Observation,
    transitions: int,
    *,
    episode_length: int = 50,
    policy: np.ndarray | None = None,
    key: PRNGKeyArray,
) -> Experience:
    """Walk through a gridworld's tables: episodes from uniform starts, the last one perhaps shorter.

    Args:
        world: the finite MDP.
        observation: what the representation will see.
        transitions: how many moves in all.
        episode_length: moves in an episode.
        policy: probabilities of the actions in each state; None is uniform.
        key: a typed random key.
    """
    _check_transitions(transitions)
    episode_length = min(episode_length, transitions)
    episodes = -(-transitions // episode_length)
    walk = jax.jit(random_walks, static_argnames=("episodes", "length"))
    states = walk(
        jnp.asarray(world.next_state),
        None if policy is None else jnp.asarray(policy),
        episodes=episodes,
        length=episode_length,
        key=key,
    )
    lengths = np.full(episodes, episode_length + 1)
    surplus = episodes * episode_length - transitions
    lengths[-1] -= surplus
    kept = np.asarray(states).reshape(-1)[: lengths.sum()]
    return Experience(kept, lengths, world.observations(observation))


def collect(
    env: gymnasium.Env,
    transitions: int,
    *,
    policy: Policy | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Experience:
    """Step a Gymnasium environment until `transitions` have been seen.

    Args:
        env: any environment whose observations are vectors, images or discrete.
        transitions: how many steps in all.
        policy: maps an observation to an action; None draws from the action space.
        seed: for the environment and its action space.
        on_progress: called now and then with (done, all).
    """
    _check_transitions(transitions)
    space = env.observation_space
    if not isinstance(space, gymnasium.spaces.Box | gymnasium.spaces.Discrete):
        raise DatasetError(
            f"observations of type {type(space).__name__} cannot be embedded; "
            "wrap the environment so that it gives a Box or Discrete observation"
        )
    env.action_space.seed(seed)
    seen: list[Any] = []
    lengths: list[int] = []
    observation, _ = env.reset(seed=seed)
    # Copies, for an environment may write its next observation over the last one.
    seen.append(np.array(observation))
    begin = 0
    for step in range(1, transitions + 1):
        action = env.action_space.sample() if policy is None else policy(observation)
        observation, _, terminated, truncated, _ = env.step(action)
        seen.append(np.array(observation))
        if terminated or truncated or step == transitions:
            lengths.append(len(seen) - begin)
            begin = len(seen)
            if step < transitions:
                observation, _ = env.reset()
                seen.append(np.array(observation))
        if on_progress and step % 1_000 == 0:
            on_progress(step, transitions)
    observations = np.array(seen)
    if isinstance(space, gymnasium.spaces.Discrete):
        ids = (observations - space.start).astype(np.int32)
        return Experience(ids, np.array(lengths), np.arange(space.n, dtype=np.int32))
    return Experience(observations, np.array(lengths))


def _check_transitions(transitions: int) -> None:
    if transitions < 1:
        raise DatasetError(f"transitions must be at least 1, not {transitions}")


def _as_array(name: str, values) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DatasetError(f"{name} cannot be made one array ({error}); give all the same shape") from error


def _checked_lengths(lengths) -> np.ndarray:
    array = _as_array("lengths", lengths)
    if array.size == 0:
        raise DatasetError("there are no episodes; give at least one of two observations")
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise DatasetError(f"lengths must be a list of integers, not {array.dtype} of shape {array.shape}")
    if array.min() < 2:
        short = int(np.argmax(array < 2))
        raise DatasetError(
            f"episode {short} has {array[short]} observations; an episode needs at least 2, "
            "the two ends of one transition: leave it out"
        )
    return array.astype(np.int64)


def _checked_observations(observations, table) -> tuple[np.ndarray, np.ndarray | None]:
    array = _as_array("observations", observations)
    if table is not None or (array.ndim == 1 and np.issubdtype(array.dtype, np.integer)):
        return _checked_ids(array, table)
    if array.ndim < 2 or 0 in array.shape[1:]:
        raise DatasetError(
            f"observations of shape {array.shape} have no features; "
            "give vectors (n, k), images (n, height, width, channels) or integer ids (n,)"
        )
    return _learnable("observations", array), None


def _checked_ids(ids: np.ndarray, table) -> tuple[np.ndarray, np.ndarray]:
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise DatasetError(
            f"with a table, observations must be integer ids (n,), not {ids.dtype} of {ids.shape}"
        )
    if len(ids) and ids.min() < 0:
        raise DatasetError(f"observations hold the id {ids.min()}; ids count from 0")
    largest = int(ids.max()) if len(ids) else -1
    if table is None and largest > MOST_IDS:
        raise DatasetError(
            f"observations hold the id {largest}; number the states from 0 (numpy.unique gives the inverse)"
        )
    rows = np.arange(largest + 1) if table is None else _as_array("table", table)
    if rows.ndim == 0 or 0 in rows.shape[1:]:
        raise DatasetError(f"a table of shape {rows.shape} has no features; give one observation a row")
    if largest >= len(rows):
        raise DatasetError(f"observations hold the id {largest}, but the table has {len(rows)} rows")
    if rows.ndim > 1:
        return ids.astype(np.int32), _learnable("table", rows)
    if not np.array_equal(rows, np.arange(len(rows))):
        raise DatasetError("a table of numbers must be 0, 1, 2, …; make it (states, 1) for scalars")
    return ids.astype(np.int32), rows.astype(np.int32)


def _learnable(name: str, array: np.ndarray) -> np.ndarray:
    """Images of whole numbers are bytes; other numbers become float32."""
    if array.ndim == 4 and np.issubdtype(array.dtype, np.integer):
        if array.size and not 0 <= array.min() <= array.max() <= 255:
            raise DatasetError(f"{name} hold images of whole numbers beyond 0 … 255; scale them to floats")
        return array.astype(np.uint8, copy=False)
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise DatasetError(f"{name} must hold numbers, not {array.dtype}; convert them to float32")
    with np.errstate(over="ignore"):
        return array.astype(np.float32, copy=False)


def _check_finite(name: str, experience: Experience) -> None:
    array = experience.observations if experience.table is None else experience.table
    if not np.issubdtype(array.dtype, np.floating) or np.isfinite(array).all():
        return
    bad = int(np.argmin(np.isfinite(array).reshape(len(array), -1).all(axis=1)))
    if experience.table is not None:
        raise DatasetError(f"{name} holds NaN or infinity at state {bad}; mend or drop it")
    episode = int(np.searchsorted(np.cumsum(experience.lengths), bad, side="right"))
    step = bad - int(experience.lengths[:episode].sum())
    raise DatasetError(
        f"{name} hold NaN or infinity at episode {episode}, step {step}; mend or drop that episode"
    )


def _smallest_integers(array: np.ndarray) -> np.ndarray:
    return array.astype(np.min_scalar_type(array.max())) if array.dtype == np.int32 else array
