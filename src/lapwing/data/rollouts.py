"""Stepping one environment or a vector of them, and recording observations, actions and rewards."""

import itertools
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from lapwing.data.action_spaces import check_action, kept_dtype, random_actions
from lapwing.data.observations import View, as_array, first_not_finite, not_finite
from lapwing.errors import ConfigError, DatasetError, LapwingError, LapwingWarning, warn

Policy = Callable[[Any], Any]
Progress = Callable[[int, int], None]
STEPS_BETWEEN_REPORTS = 1_000
BYTES_BETWEEN = 1 << 25
"""Large observations are stored, and progress is reported, more often: before there are so many bytes."""


class Rollout(NamedTuple):
    """What was seen, episode after episode, and what was done and gained."""

    rows: np.ndarray
    """Raw observations; images as φ sees them, for raw ones may be too large to keep."""
    lengths: np.ndarray
    """How many each episode has."""
    actions: np.ndarray | None
    """One a transition; None if they are no plain numbers."""
    rewards: np.ndarray | None
    """One a transition; None if they are not all finite numbers."""


def step_single(
    env: gymnasium.Env, view: View, transitions: int, policy: Policy | None, seed: int, on_progress
) -> Rollout:
    """Step one environment."""
    actions = random_actions(env.action_space, seed) if policy is None else None
    rows, done = _Rows(view, transitions), _actions_of(env.action_space)
    gained = _Numbers("rewards", (), np.dtype(np.float32))
    observation = _reset(env, seed)
    rows.new.append(rows.bytes_of(observation))
    lengths, length, new, add_action, add_reward = [], 1, rows.new, done.new.append, gained.new.append
    key, dtype, shape = view.key, rows.raw_dtype, view.raw_shape
    between = max(1, min(STEPS_BETWEEN_REPORTS, BYTES_BETWEEN // len(new[0])))
    for step in range(1, transitions + 1):
        try:
            if actions is not None:
                action = next(actions)
                add_action(action)
            else:
                action = policy(observation)  # type: ignore[misc]
                if step == 1:
                    check_action(action, env.action_space)
                add_action(_copy_of(action))  # a policy may write its next one over it
            returned = env.step(action)
        except Exception as error:
            raise raised_by_env(error) from error
        try:
            observation, reward, terminated, truncated, _ = returned
        except (TypeError, ValueError):
            raise _old_interface(
                "step", returned, "(observation, reward, terminated, truncated, info)"
            ) from None
        add_reward(reward)
        # As `bytes_of` does, but a call is a good part of a quick environment's step.
        try:
            seen = observation if key is None else observation[key]
            copied = seen.tobytes() if seen.dtype is dtype and seen.shape == shape else None
        except (AttributeError, KeyError, TypeError):  # a number or a list, or a part that is missing
            copied = None
        new.append(copied or rows.bytes_of(observation))
        length += 1
        if terminated or truncated or step == transitions:
            lengths.append(length)
            if step < transitions:
                observation, length = _reset(env), 1
                new.append(rows.bytes_of(observation))
        if step % between == 0 or step == transitions:
            rows.check_and_store(lengths)
            done.store()
            gained.store()
            if on_progress and step < transitions:
                on_progress(step, transitions)
    return Rollout(rows.stored[: rows.filled], np.array(lengths), done.joined(), gained.joined())


class _Rows:
    """Observations, one a row: copied as bytes when they come, which is quick, and stored in blocks."""

    def __init__(self, view: View, transitions: int):
        self.view, self.raw_dtype = view, raw_dtype(view)
        self.stored = np.empty((transitions + transitions // 8 + 2, *stored_shape(view)), stored_dtype(view))
        self.filled = 0
        """How many are stored."""
        self.new: list[bytes] = []
        """Those that are not stored yet."""

    def bytes_of(self, observation: Any) -> bytes:
        """An observation that is of the space, whatever array or list it comes as; others are refused."""
        return _raw(self.view, self.view.pick(observation)).tobytes()

    def check_and_store(self, lengths: list[int]) -> None:
        """Store the new ones; NaN is found while there is still something to be saved by stopping."""
        block = np.frombuffer(b"".join(self.new), self.raw_dtype).reshape(-1, *self.view.raw_shape)
        bad = first_not_finite(block)
        if bad is not None:
            ends = np.cumsum(lengths)
            episode = int(np.searchsorted(ends, self.filled + bad, side="right"))
            first = int(ends[episode - 1]) if episode else 0
            raise DatasetError(not_finite(episode, self.filled + bad - first))
        if self.filled + len(block) > len(self.stored):
            self.stored = np.concatenate([self.stored, np.empty_like(self.stored)])
        self.stored[self.filled : self.filled + len(block)] = _stored(self.view, block)
        self.filled += len(block)
        self.new.clear()


class _Numbers:
    """Actions or rewards, one a step: listed as they come, which is quick, and stored in blocks.

    φ does without them. So where they are not all finite numbers of one shape, they are dropped with a
    warning, and what was seen is still learned from.
    """

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype | None):
        self.name, self.shape, self.dtype = name, shape, dtype
        self.new: list[Any] = []
        """Those that are not stored yet."""
        self._blocks: list[np.ndarray] = []

    def store(self) -> None:
        """Store the new ones."""
        self.add(self.new)
        self.new.clear()

    def add(self, values: Any) -> None:
        """Store a block."""
        if self.dtype is None or not len(values):
            return
        try:
            self._blocks.append(self._block(values))
        except Exception as error:  # an array of anything raises nearly anything
            self.dtype, self._blocks = None, []
            warn(
                f"{self.name} are not kept, for they are not all finite numbers of shape {self.shape} "
                f"({error})",
                LapwingWarning,
            )

    def joined(self) -> np.ndarray | None:
        """All of them."""
        return None if self.dtype is None else np.concatenate(self._blocks)

    def _block(self, values: Any) -> np.ndarray:
        given = np.asarray(values).reshape(len(values), *self.shape)
        block = given.astype(self.dtype)
        whole = block.dtype.kind in "iu"
        if not np.isfinite(block).all() or (whole and not np.array_equal(block, given)):
            raise ValueError(f"they hold {given[~np.isclose(block, given)].flat[0]}")
        return block


def _actions_of(space: gymnasium.Space) -> _Numbers:
    dtype = kept_dtype(space)
    return _Numbers("actions", () if dtype is None else space.shape or (), dtype)


def _copy_of(action: Any) -> Any:
    try:
        return np.asarray(action).copy()
    except Exception:  # what is no array is not kept
        return None


def step_vector(
    env: VectorEnv, view: View, transitions: int, policy: Policy | None, seed: int, on_progress
) -> Rollout:
    """Step several environments at once: the episodes of the first, then those of the next."""
    mode = autoreset_mode(env)
    actions = random_actions(env.action_space, seed) if policy is None else None
    steps = _Steps(env)
    streams: list[list[list[Any]]] = [[[]] for _ in range(env.num_envs)]
    observations = _reset(env, seed)
    for stream, row in zip(streams, _copied(view, observations), strict=True):
        stream[-1].append(row)
    begins = np.zeros(env.num_envs, bool)  # whose next observation is the first of an episode
    done, reported = 0, 0
    while done < transitions:
        try:
            action = next(actions) if actions is not None else policy(observations)  # type: ignore[misc]
            if not done:
                check_action(action, env.action_space)
            steps.actions.append(_copy_of(action))
            observations, rewards, terminated, truncated, infos = env.step(action)
        except Exception as error:
            raise raised_by_env(error) from error
        steps.rewards.append(_copy_of(rewards))
        steps.moved.append(~begins)
        rows, over = _copied(view, observations), np.logical_or(terminated, truncated)
        for i, (stream, row) in enumerate(zip(streams, rows, strict=True)):
            if begins[i]:
                stream.append([row])
            elif over[i] and mode == AutoresetMode.SAME_STEP:
                stream[-1].append(_final(view, infos, i))
                stream.append([row])
            else:
                stream[-1].append(row)
        done += int(np.sum(~begins))
        begins = over if mode == AutoresetMode.NEXT_STEP else np.zeros_like(over)
        if mode == AutoresetMode.DISABLED and over.any():
            observations, _ = env.reset(options={"reset_mask": np.asarray(over)})
            for i, row in enumerate(_copied(view, observations)):
                if over[i]:
                    streams[i].append([row])
        if on_progress and done - reported >= STEPS_BETWEEN_REPORTS:
            reported = done
            on_progress(min(done, transitions), transitions)
    episodes = [episode for stream in streams for episode in stream if len(episode) > 1]
    _cut(episodes, done - transitions)
    rows = np.array(list(itertools.chain.from_iterable(episodes)), stored_dtype(view))
    return Rollout(rows, np.array([len(episode) for episode in episodes]), *steps.joined(transitions))


class _Steps:
    """What a vector of environments was given and gave, as it came: a batch a step."""

    def __init__(self, env: VectorEnv):
        self.space = env.single_action_space
        self.actions: list[Any] = []
        self.rewards: list[Any] = []
        self.moved: list[np.ndarray] = []
        """Which environments made a transition; the others were reset."""

    def joined(self, transitions: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Actions and rewards, one a transition: those of the first environment, then those of the next."""
        done, gained = _actions_of(self.space), _Numbers("rewards", (), np.dtype(np.float32))
        for numbers, batches in ((done, self.actions), (gained, self.rewards)):
            if numbers.dtype is not None:
                numbers.add(self._one_by_one(batches)[:transitions])
        return done.joined(), gained.joined()

    def _one_by_one(self, batches: list[Any]) -> Any:
        try:
            return np.swapaxes(np.stack(batches), 0, 1)[np.stack(self.moved, axis=1)]
        except Exception:  # what is no array, or not one of each environment, is not kept
            return [None]


def _cut(episodes: list[list[Any]], surplus: int) -> None:
    """Take the last `surplus` transitions away."""
    while surplus > 0:
        taken = min(surplus, len(episodes[-1]) - 1)
        del episodes[-1][len(episodes[-1]) - taken :]
        surplus -= taken
        if len(episodes[-1]) < 2:
            episodes.pop()


def autoreset_mode(env: VectorEnv) -> AutoresetMode:
    """How a vector of environments begins new episodes; Gymnasium's default where it does not say."""
    return AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


def raised_by_env(error: Exception) -> LapwingError:
    """What is said of an environment, or a policy, that fails; its own traceback comes with it."""
    if isinstance(error, LapwingError):
        return error
    place = traceback.extract_tb(error.__traceback__)[-1]
    return ConfigError(
        f"the environment or the policy raised {type(error).__name__}: {error} "
        f"({place.filename}, line {place.lineno}); fix it"
    )


def _reset(env: gymnasium.Env | VectorEnv, seed: int | None = None) -> Any:
    """The first observation of an episode."""
    try:
        returned: Any = env.reset() if seed is None else env.reset(seed=seed)
    except Exception as error:
        raise raised_by_env(error) from error
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise _old_interface("reset", returned, "(observation, info)")
    return returned[0]


def _old_interface(method: str, returned: Any, wanted: str) -> ConfigError:
    found = f"a tuple of {len(returned)}" if isinstance(returned, tuple) else f"one {type(returned).__name__}"
    return ConfigError(
        f"{method}() of the environment returns {found}, not {wanted}; bring it to Gymnasium's interface "
        "(for an environment of old Gym: shimmy's GymV21CompatibilityV0)"
    )


def _raw(view: View, picked: Any, *, batch: bool = False) -> np.ndarray:
    """One picked observation, or a batch, in the type that is stored; what is not of the space is refused."""
    given = as_array("observations", picked)
    view.check_shape(given.shape[batch:])
    stored = given.astype(raw_dtype(view), copy=False)
    if stored.dtype.kind in "iu" and stored is not given and not np.array_equal(stored, given):
        raise ConfigError(
            f"an observation holds {given[stored != given].flat[0]}, and the observation space promises "
            f"{stored.dtype}; give the space the type and the bounds of what is in it"
        )
    return stored


def _copied(view: View, observations: Any) -> np.ndarray:
    """A batch of observations; a copy, for an environment may write its next ones over them."""
    return np.array(_stored(view, _raw(view, view.pick(observations), batch=True)))


def _final(view: View, infos: dict[str, Any], env: int) -> np.ndarray:
    """The last observation of an episode, where the next has begun in the same step."""
    if "final_obs" not in infos:
        raise ConfigError(
            "the vector of environments says it resets in the same step, but its infos have no final_obs; "
            "let it reset in the next step (AutoresetMode.NEXT_STEP)"
        )
    return np.array(_stored(view, _raw(view, view.pick(infos["final_obs"][env]))[None])[0])


def raw_dtype(view: View) -> np.dtype:
    """That of observations as they come: the space's own, but no less than float32 of floats."""
    floats = np.issubdtype(view.raw_dtype, np.floating)
    return np.result_type(view.raw_dtype, np.float32) if floats else view.raw_dtype


def stored_dtype(view: View) -> np.dtype:
    """That of observations as they are kept: images as φ sees them, others as they come."""
    if view.kind != "image":
        return raw_dtype(view)
    return np.dtype(np.float32 if np.issubdtype(view.raw_dtype, np.floating) else np.uint8)


def stored_shape(view: View) -> tuple[int, ...]:
    """Likewise."""
    return view.shape if view.kind == "image" else view.raw_shape


def _stored(view: View, raw: np.ndarray) -> np.ndarray:
    return view.seen(raw) if view.kind == "image" else raw
