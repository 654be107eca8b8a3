"""Collecting experience: gridworlds through their tables, any Gymnasium environment by its steps."""

import itertools
import math
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from jaxtyping import PRNGKeyArray

from lapwing.data.experience import Experience
from lapwing.data.observations import View, as_array, first_not_finite, not_finite, view_of, warn_of_form
from lapwing.envs.gridworld import GridWorld, random_walks
from lapwing.errors import ConfigError, DatasetError, LapwingError
from lapwing.settings.checks import check_size, checked

Policy = Callable[[Any], Any]
Progress = Callable[[int, int], None]
ACTIONS_AT_ONCE = 4_096
"""Random actions are drawn so many at a time, which costs far less than one by one."""
STEPS_BETWEEN_REPORTS = 1_000
_ACTIONS = 1
"""Beside the seed, so that the stream of random actions is one of its own."""


def collect_walks(
    world: GridWorld,
    observation: str,
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
    transitions = checked("transitions", transitions, whole=True, least=1, below=2**31)
    check_size("transitions", 8 * transitions)  # states and a copy
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
    env: gymnasium.Env | VectorEnv,
    transitions: int,
    *,
    policy: Policy | None = None,
    observation_key: str | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Experience:
    """Step a Gymnasium environment, or several at once, until `transitions` have been seen.

    Args:
        env: an environment, or a vector of them in any autoreset mode; its observations are Box, Discrete,
            MultiDiscrete, MultiBinary, or a Dict with such a part.
        transitions: how many steps in all.
        policy: maps an observation (of a vector, a batch of them) to an action; None draws uniformly from
            the action space.
        observation_key: which part of Dict observations φ will see.
        seed: for the environment and the random actions.
        on_progress: called now and then with (done, all).

    Example:
        >>> import gymnasium
        >>> experience = collect(gymnasium.make("CartPole-v1"), 500, policy=lambda s: int(s[2] > 0))
        >>> experience.n_transitions, experience.observation_shape
        (500, (4,))
    """
    transitions = checked("transitions", transitions, whole=True, least=1, below=2**31)
    seed = checked("seed", seed, whole=True, least=0, below=2**32)
    for name in ("observation_space", "action_space"):
        if getattr(env, name, None) is None:
            raise ConfigError(f"the environment has no {name}; give a gymnasium.Env with both spaces")
    if policy is not None and not callable(policy):
        raise ConfigError(f"policy must be a function of the observation, not {policy!r}")
    if isinstance(env, VectorEnv):
        view, stepped = view_of(env.single_observation_space, observation_key), _step_vector
    else:
        view, stepped = view_of(env.observation_space, observation_key), _step_single
    check_size("transitions", transitions * math.prod(view.raw_shape) * _stored_dtype(view).itemsize)
    with np.errstate(over="ignore"):  # a number too large for the space's type is infinite, and refused
        rows, lengths = stepped(env, view, transitions, policy, seed, on_progress)  # type: ignore[arg-type]
    if on_progress:
        on_progress(transitions, transitions)
    return experience_of(view, rows, lengths)


def experience_of(view: View, picked: np.ndarray, lengths: np.ndarray) -> Experience:
    """Experience of what `view` picked, one raw observation a row."""
    seen = view.seen(picked)
    if view.kind == "vector":
        warn_of_form(picked.reshape(len(picked), -1))
    table = None if view.n_states is None else np.arange(view.n_states, dtype=np.int32)
    return Experience(seen, lengths, table)


def _step_single(
    env: gymnasium.Env, view: View, transitions: int, policy: Policy | None, seed: int, on_progress
) -> tuple[np.ndarray, np.ndarray]:
    """All observations, episode after episode, and how many each episode has."""
    actions = random_actions(env.action_space, seed) if policy is None else None
    rows = _Rows(view, transitions)
    observation = _reset(env, seed)
    rows.new.append(rows.bytes_of(observation))
    lengths, length, new = [], 1, rows.new
    key, dtype, shape = view.key, rows.stored.dtype, view.raw_shape
    for step in range(1, transitions + 1):
        try:
            if actions is not None:
                action = next(actions)
            else:
                action = policy(observation)  # type: ignore[misc]
                if step == 1:
                    _check_action(action, env.action_space)
            returned = env.step(action)
        except Exception as error:
            raise _raised(error) from error
        try:
            observation, _, terminated, truncated, _ = returned
        except (TypeError, ValueError):
            raise _old_interface(
                "step", returned, "(observation, reward, terminated, truncated, info)"
            ) from None
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
        if step % STEPS_BETWEEN_REPORTS == 0 or step == transitions:
            rows.check_and_store(lengths)
            if on_progress and step < transitions:
                on_progress(step, transitions)
    return rows.stored[: rows.filled], np.array(lengths)


class _Rows:
    """Raw observations, one a row: copied as bytes when they come, which is quick, and stored in blocks."""

    def __init__(self, view: View, transitions: int):
        self.view = view
        self.stored = np.empty((transitions + transitions // 8 + 2, *view.raw_shape), _stored_dtype(view))
        self.filled = 0
        """How many are stored."""
        self.new: list[bytes] = []
        """Those that are not stored yet."""

    def bytes_of(self, observation: Any) -> bytes:
        """An observation that is of the space, whatever array or list it comes as; others are refused."""
        return _raw(self.view, self.view.pick(observation)).tobytes()

    def check_and_store(self, lengths: list[int]) -> None:
        """Store the new ones; NaN is found while there is still something to be saved by stopping."""
        block = np.frombuffer(b"".join(self.new), self.stored.dtype).reshape(-1, *self.view.raw_shape)
        bad = first_not_finite(block)
        if bad is not None:
            ends = np.cumsum(lengths)
            episode = int(np.searchsorted(ends, self.filled + bad, side="right"))
            first = int(ends[episode - 1]) if episode else 0
            raise DatasetError(not_finite(episode, self.filled + bad - first))
        if self.filled + len(block) > len(self.stored):
            self.stored = np.concatenate([self.stored, np.empty_like(self.stored)])
        self.stored[self.filled : self.filled + len(block)] = block
        self.filled += len(block)
        self.new.clear()


def _step_vector(
    env: VectorEnv, view: View, transitions: int, policy: Policy | None, seed: int, on_progress
) -> tuple[np.ndarray, np.ndarray]:
    """The same, of several environments at once: the episodes of the first, then those of the next."""
    mode = autoreset_mode(env)
    actions = random_actions(env.action_space, seed) if policy is None else None
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
                _check_action(action, env.action_space)
            observations, _, terminated, truncated, infos = env.step(action)
        except Exception as error:
            raise _raised(error) from error
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
    rows = np.array(list(itertools.chain.from_iterable(episodes)), _stored_dtype(view))
    return rows, np.array([len(episode) for episode in episodes])


def autoreset_mode(env: VectorEnv) -> AutoresetMode:
    """How a vector of environments begins new episodes; Gymnasium's default where it does not say."""
    return AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


def random_actions(space: gymnasium.Space, seed: int) -> Iterator[Any]:
    """Actions drawn uniformly from a space, without end.

    Environments seeded alike draw from `default_rng(seed)` itself: their noise must not be the actions again.

    Example:
        >>> actions = random_actions(spaces.Discrete(3, start=5), seed=0)
        >>> {int(next(actions)) for _ in range(100)}
        {5, 6, 7}
    """
    rng = np.random.default_rng([seed, _ACTIONS])
    if isinstance(space, spaces.Discrete):
        while True:
            yield from rng.integers(space.start, space.start + space.n, size=ACTIONS_AT_ONCE)
    floats = isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)
    if isinstance(space, spaces.Box) and floats and space.is_bounded():
        shape = (max(1, ACTIONS_AT_ONCE // max(1, int(np.prod(space.shape)))), *space.shape)
        while True:
            yield from rng.uniform(space.low, space.high, size=shape).astype(space.dtype)
    space.seed(int(rng.integers(2**31)))
    while True:
        yield space.sample()


def _check_action(action: Any, space: gymnasium.Space) -> None:
    """Refuse a policy whose first action cannot be meant for the space; a Box's bounds may be overstepped."""
    try:
        fits = _may_be_of(action, space)
    except Exception:  # what cannot be looked at is for the environment to judge
        fits = True
    if not fits:
        raise ConfigError(
            f"the policy gives the action {action!r}, which is none of {space}; mend the policy"
        )


def _may_be_of(action: Any, space: gymnasium.Space) -> bool:
    if isinstance(space, spaces.Dict):
        return set(action) == set(space.spaces) and all(_may_be_of(action[k], space[k]) for k in space.spaces)
    if isinstance(space, spaces.Tuple):
        return len(action) == len(space) and all(map(_may_be_of, action, space))
    array = np.asarray(action)
    if isinstance(space, spaces.Box):
        return array.dtype.kind in "biuf" and array.shape == space.shape and bool(np.isfinite(array).all())
    if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return True
    if array.dtype.kind not in "biuf" or array.size != np.prod(space.shape or (), dtype=int):
        return False
    array = array.reshape(space.shape or ())
    whole = array.astype(space.dtype)
    return bool(np.all(whole == array)) and space.contains(whole)


def _raised(error: Exception) -> LapwingError:
    """What is said of an environment, or a policy, that fails; its own traceback comes with it."""
    if isinstance(error, LapwingError):
        return error
    place = traceback.extract_tb(error.__traceback__)[-1]
    return ConfigError(
        f"the environment or the policy raised {type(error).__name__}: {error} "
        f"({place.filename}, line {place.lineno}); mend it"
    )


def _reset(env: gymnasium.Env | VectorEnv, seed: int | None = None) -> Any:
    """The first observation of an episode."""
    try:
        returned: Any = env.reset() if seed is None else env.reset(seed=seed)
    except Exception as error:
        raise _raised(error) from error
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
    stored = given.astype(_stored_dtype(view), copy=False)
    if stored.dtype.kind in "iu" and stored is not given and not np.array_equal(stored, given):
        raise ConfigError(
            f"an observation holds {given[stored != given].flat[0]}, and the observation space promises "
            f"{stored.dtype}; give the space the type and the bounds of what is in it"
        )
    return stored


def _copied(view: View, observations: Any) -> np.ndarray:
    """A batch of raw observations; a copy, for an environment may write its next ones over them."""
    return np.array(_raw(view, view.pick(observations), batch=True))


def _final(view: View, infos: dict[str, Any], env: int) -> np.ndarray:
    """The last observation of an episode, where the next has begun in the same step."""
    if "final_obs" not in infos:
        raise ConfigError(
            "the vector of environments says it resets in the same step, but its infos have no final_obs; "
            "let it reset in the next step (AutoresetMode.NEXT_STEP)"
        )
    return np.array(_raw(view, view.pick(infos["final_obs"][env])))


def _cut(episodes: list[list[Any]], surplus: int) -> None:
    """Take the last `surplus` transitions away."""
    while surplus > 0:
        taken = min(surplus, len(episodes[-1]) - 1)
        del episodes[-1][len(episodes[-1]) - taken :]
        surplus -= taken
        if len(episodes[-1]) < 2:
            episodes.pop()


def _stored_dtype(view: View) -> np.dtype:
    """The space's own, but no less than float32 of floats."""
    floats = np.issubdtype(view.raw_dtype, np.floating)
    return np.result_type(view.raw_dtype, np.float32) if floats else view.raw_dtype
