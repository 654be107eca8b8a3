"""Wrappers for collecting: past termination, absorbing ends, and any wrapper by name.

A name has the form `gymnasium.wrappers:AtariPreprocessing`.
"""

import ast
import re
from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from lapwing.envs.make import check_file, import_module, run_file
from lapwing.errors import ConfigError, nearest
from lapwing.settings.checks import checked


class PastTermination(gymnasium.Wrapper):
    """A wrapper that hides termination: an episode ends only by truncation, for instance by a time limit.

    Use it for collecting. If episodes end at a goal, the data has few steps around the goal and none from
    it, so φ extrapolates there. Most environments allow further steps; `info["terminated"]` has their flag.

    Example:
        >>> env = PastTermination(gymnasium.make("FrozenLake-v1", is_slippery=False))
        >>> _ = env.reset(seed=0)
        >>> [env.step(move)[2] for move in (1, 1, 1)], env.unwrapped.s  # down, down, down
        ([False, False, False], 12)
    """

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one step, which does not terminate."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, False, truncated, info | {"terminated": bool(terminated)}


class AbsorbingEnd(gymnasium.Wrapper, RecordConstructorArgs):
    """A wrapper that makes the terminal state absorbing: the last observation is repeated for some steps.

    Use it for collecting, if an environment does not allow steps after termination. The terminal state then
    counts in the chain as a state that leads to itself. Prefer `PastTermination` if possible.

    Args:
        env: any environment.
        steps: the number of added steps, whatever the actions; then the episode terminates.

    Example:
        >>> env = AbsorbingEnd(gymnasium.make("FrozenLake-v1", is_slippery=False), steps=2)
        >>> _ = env.reset(seed=0)
        >>> for move in (1, 2, 1, 1):  # down, then into a hole, which stays
        ...     state, _, terminated, *_ = env.step(move)
        ...     print(state, terminated)
        4 False
        5 False
        5 False
        5 True
    """

    def __init__(self, env: gymnasium.Env, steps: int = 20):
        RecordConstructorArgs.__init__(self, steps=steps)
        gymnasium.Wrapper.__init__(self, env)
        self._steps, self._left = checked("steps", steps, whole=True, least=1), 0
        self._last: tuple[Any, SupportsFloat, dict[str, Any]] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._last = None
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one step, or repeat the terminal state."""
        if self._last is not None:
            self._left -= 1
            observation, reward, info = self._last
            return observation, reward, self._left <= 0, False, info
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated:
            self._last, self._left = (observation, reward, info), self._steps
        return observation, reward, False, truncated and not terminated, info


def wrapped(env: gymnasium.Env, names: Iterable[str]) -> gymnasium.Env:
    """The environment in these wrappers, the first one innermost.

    Args:
        env: the environment to wrap.
        names: `MODULE:NAME` or `FILE.py:NAME` of a class, or of a function of an environment; keyword
            arguments with literal values may follow in parentheses.

    Example:
        >>> env = gymnasium.make("CartPole-v1")
        >>> wrapped(env, ["gymnasium.wrappers:TimeAwareObservation(normalize_time=True)"])
        <TimeAwareObservation<TimeLimit<OrderEnforcing<PassiveEnvChecker<CartPoleEnv<CartPole-v1>>>>>>
    """
    return reduce(_wrapped_once, names, env)


def check_wrappers(names: Iterable[str]) -> None:
    """Refuse a name that cannot be read, or of a module or a file that is not there.

    A file is not run, so whether it has what is named is not known yet.
    """
    for text in names:
        name, _ = _arguments(text)
        place = name.rpartition(":")[0]
        if place.endswith(".py"):
            check_file(Path(place))
        else:
            _wrapper(text, name)


def _wrapped_once(env: gymnasium.Env, text: str) -> gymnasium.Env:
    name, arguments = _arguments(text)
    try:
        outer = _wrapper(text, name)(env, **arguments)
    except ConfigError:
        raise
    except Exception as error:  # a wrapper's constructor may raise anything
        raise ConfigError(f"wrap {text!r} cannot wrap the environment: {error}") from error
    if not isinstance(outer, gymnasium.Env):
        raise ConfigError(f"wrap {text!r} gives {type(outer).__name__}, not an environment")
    return outer


def _arguments(text: str) -> tuple[str, dict[str, Any]]:
    """The name, and the arguments that are in parentheses after it."""
    found = re.fullmatch(r"(.*?:\w+)(\(.*)?", text, re.DOTALL)  # a folder may have parentheses in its name
    name, call_text = found.groups() if found else (text, None)
    if call_text is None:
        return name, {}
    try:
        call = ast.parse(f"call{call_text}", mode="eval").body
        assert isinstance(call, ast.Call)
        assert not call.args
        return name, {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, AssertionError) as error:
        raise ConfigError(
            f"wrap {text!r} has arguments that cannot be read; write them as name=value, with numbers, "
            "strings, True, False or None"
        ) from error


def _wrapper(text: str, name: str) -> Callable[..., Any]:
    place, colon, found = name.rpartition(":")
    if not colon:
        raise ConfigError(
            f"wrap {text!r} names no module; give MODULE:NAME, such as gymnasium.wrappers:FlattenObservation"
        )
    module = run_file(Path(place)) if place.endswith(".py") else import_module(place)
    if not callable(getattr(module, found, None)):
        classes = [known for known, value in vars(module).items() if isinstance(value, type)]
        raise ConfigError(f"wrap {text!r}: {place} has no {found!r}; {nearest(found, classes)}")
    return getattr(module, found)
