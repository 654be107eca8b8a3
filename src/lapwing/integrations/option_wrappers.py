"""Gymnasium wrappers that add options to the actions of the environment."""

from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space, iterate

from lapwing.data.rollouts import autoreset_mode
from lapwing.envs.make import refuse_vec_env
from lapwing.errors import ConfigError
from lapwing.integrations.wrappers import as_text
from lapwing.options.option_set import OptionSet, as_options
from lapwing.settings.checks import checked


class LaplacianOptions(gymnasium.Wrapper, RecordConstructorArgs):
    """The environment with options among its actions: one step here is one decision.

    The first actions are the environment's own, if it has Discrete ones; the rest are the options. An option
    takes its actions until it stops, the episode ends, or it has lasted too long; it takes at least one. The
    reward of a decision is Σ_t γ^t r_t over its steps. `info` is that of the last step, with `option` (its
    name, or None), `option_steps`, `option_cut` (whether it was cut for its length) and `discount`, γ to the
    power of the steps, by which a learner of its own discounts what follows. Other agents discount each
    decision once.

    A time limit inside this wrapper counts steps, one outside decisions.

    Where actions are continuous no number can stand for one of them, so the options are all there is.

    Args:
        env: the environment whose observations the options were made of.
        options: what `lapwing.discover_options` returns, or the path of a file or run folder; a path lets
            `env.spec` be written as JSON.
        gamma: the discount within an option; with 1 the return of an episode is the environment's own.
        longest: an option is cut after so many steps; None is its own limit.

    Example:
        >>> import lapwing
        >>> options = lapwing.discover_options("TwoRoom", count=4, exact=True)
        >>> env = LaplacianOptions(gymnasium.make("lapwing/TwoRoom-v0"), options)
        >>> env.action_space
        Discrete(8)
        >>> _ = env.reset(seed=0, options={"cell": (2, 2)})
        >>> _, reward, _, _, info = env.step(4)
        >>> info["option"], info["option_steps"] > 1, reward == -info["option_steps"]
        ('f2+', True, True)
    """

    def __init__(
        self,
        env: gymnasium.Env,
        options: OptionSet | str | Path,
        *,
        gamma: float = 1.0,
        longest: int | None = None,
    ):
        refuse_vec_env(env)
        RecordConstructorArgs.__init__(self, options=as_text(options), gamma=gamma, longest=longest)
        gymnasium.Wrapper.__init__(self, env)
        self.options = as_options(options)
        self._choices = Choices(env.action_space, env.observation_space, self.options)
        self.action_space = self._choices.space
        self._gamma, self._longest = _checked(gamma, longest, self.options)
        self._observation: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._observation, info = self.env.reset(seed=seed, options=options)
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One decision: an action, or an option to its end."""
        option = self._choices.option(action)
        if option is None:
            self._observation, reward, terminated, truncated, info = self.env.step(action)
            return self._observation, reward, terminated, truncated, info | _told(None, 1, False, self._gamma)
        total, steps, over = 0.0, 0, False
        while True:
            move = self._choices.move(option, self._observation)
            self._observation, reward, terminated, truncated, info = self.env.step(move)
            total += self._gamma**steps * float(reward)
            steps += 1
            over = bool(terminated or truncated) or self._choices.stops(option, self._observation)
            if over or steps >= self._longest:
                break
        told = _told(self.options.names[option], steps, not over, self._gamma)
        return self._observation, total, terminated, truncated, info | told

    def action_masks(self) -> np.ndarray:
        """Which actions may be chosen now: all of the environment's, and the options that begin here."""
        return self._choices.mask(self._observation)


class VectorLaplacianOptions(VectorWrapper, RecordConstructorArgs):
    """Options among the actions of a vector of environments, which cannot wait for each other.

    So one step here is one step in every environment. Where an option is under way, `infos["deciding"]` is
    False and the action that is given is not used. Rewards are those of the step. Where a decision ends,
    `infos` has what `LaplacianOptions` has, and `decision_reward`, with the masks `_decision_reward` and so
    on: a learner takes from there where it began, what it earned and how long it took. Agents that know
    nothing of this take `SyncVectorEnv([lambda: LaplacianOptions(env, options), …])` instead.

    Args:
        env: a vector of environments.
        options: as for `LaplacianOptions`.
        gamma: the discount within an option.
        longest: an option is cut after so many steps; None is its own limit.
    """

    def __init__(
        self,
        env: VectorEnv,
        options: OptionSet | str | Path,
        *,
        gamma: float = 1.0,
        longest: int | None = None,
    ):
        refuse_vec_env(env)
        RecordConstructorArgs.__init__(self, options=as_text(options), gamma=gamma, longest=longest)
        VectorWrapper.__init__(self, env)
        self.options, self._mode = as_options(options), autoreset_mode(env)
        single, seen = env.single_action_space, env.single_observation_space
        self._choices = Choices(single, seen, self.options)
        self.single_action_space = self._choices.space
        self.action_space = batch_space(self.single_action_space, env.num_envs)
        self._gamma, self._longest = _checked(gamma, longest, self.options)
        self._under_way: list[int | None] = [None] * env.num_envs
        self._steps = np.zeros(env.num_envs, np.int64)
        self._total = np.zeros(env.num_envs)
        self._resetting = np.zeros(env.num_envs, bool)
        self._observations: list[Any] = []

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        begun = np.ones(self.num_envs, bool)
        if options and "reset_mask" in options:
            begun = np.array(options["reset_mask"], bool)
            options = dict(options)  # the environment takes the mask out of it
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._observations = list(iterate(self.env.observation_space, observations))
        self._end(begun)
        self._resetting[begun] = False
        return observations, infos | {"deciding": self._deciding()}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step in each environment: of the option that is under way, or of what is decided now."""
        moves = np.array([self._move(index, action) for index, action in enumerate(actions)])
        resetting = self._resetting
        observations, rewards, terminated, truncated, infos = self.env.step(moves)
        over = np.logical_or(terminated, truncated)
        self._observations = list(iterate(self.env.observation_space, observations))
        self._total += self._gamma**self._steps * np.where(resetting, 0.0, rewards)
        self._steps += ~resetting
        stopped = np.array([self._stops(index, bool(over[index])) for index in range(self.num_envs)])
        ended = ~resetting & (stopped | (self._steps >= self._longest))
        infos = infos | self._ended(ended, ended & ~stopped)
        self._end(ended | resetting)
        self._resetting = over if self._mode == AutoresetMode.NEXT_STEP else np.zeros_like(over)
        return observations, rewards, terminated, truncated, infos | {"deciding": self._deciding()}

    def _move(self, index: int, action: Any) -> Any:
        """The action of the environment; an option is begun where none is under way."""
        if self._resetting[index]:
            return self._choices.idle  # the step only resets, whatever is given
        if self._under_way[index] is None:
            self._under_way[index] = option = self._choices.option(action)
            if option is None:
                return int(action)
        option = self._under_way[index]
        assert option is not None
        return self._choices.move(option, self._observations[index])

    def _stops(self, index: int, over: bool) -> bool:
        """Whether what is under way ends by itself: an action, an option that stops, or with the episode."""
        option = self._under_way[index]
        return over or option is None or self._choices.stops(option, self._observations[index])

    def _ended(self, ended: np.ndarray, cut: np.ndarray) -> dict[str, Any]:
        names = [None if option is None else self.options.names[option] for option in self._under_way]
        told = {
            "option": np.array(names, object),
            "option_steps": self._steps.copy(),
            "option_cut": cut,
            "discount": self._gamma**self._steps,
            "decision_reward": self._total.copy(),
        }
        return told | {f"_{name}": ended for name in told}

    def _end(self, ended: np.ndarray) -> None:
        for index in np.flatnonzero(ended):
            self._under_way[index] = None
        self._steps[ended], self._total[ended] = 0, 0.0

    def _deciding(self) -> np.ndarray:
        return np.array([option is None for option in self._under_way])


def _told(name: str | None, steps: int, cut: bool, gamma: float) -> dict[str, Any]:
    return {"option": name, "option_steps": steps, "option_cut": cut, "discount": gamma**steps}


class Choices:
    """What can be decided in an environment: its own actions, if they are Discrete, and the options."""

    def __init__(self, own: gymnasium.Space, seen: gymnasium.Space, options: OptionSet):
        """Refuse what does not fit."""
        self.options = options
        self._key = options.key if isinstance(seen, spaces.Dict) else None
        if options.bounds is None:
            if not isinstance(own, spaces.Discrete) or int(own.n) != options.n_actions:
                raise ConfigError(
                    f"these options take {options.n_actions} discrete actions, and the environment has "
                    f"{own}; wrap the environment that they were made in"
                )
            self._first = int(own.start)
            self.idle: Any = self._first
        else:
            made_for = spaces.Box(*options.bounds, dtype=options.bounds.low.dtype.type)
            if own != made_for:
                raise ConfigError(
                    f"these options take actions of {made_for}, and the environment has {own}; wrap the "
                    "environment that they were made in, before what changes its actions"
                )
            self._first, self.idle = 0, options.bounds.low
        part = seen if self._key is None else seen.spaces.get(self._key)  # pyright: ignore
        if part is None or (part.shape or ()) != options.shape:
            raise ConfigError(
                f"these options take observations of shape {options.shape}, and the environment gives "
                f"{seen}; wrap it before what changes observations"
            )
        self.space = spaces.Discrete(options.n_actions + len(options), start=self._first)

    def option(self, action: Any) -> int | None:
        """Which option an action is; None if it is one of the environment's own."""
        number, last = int(action) - self._first, int(self.space.n) - 1
        if number != action - self._first or not 0 <= number <= last:
            raise ConfigError(f"action must be {self._first} … {self._first + last}, not {action!r}")
        own = self.options.n_actions
        return None if number < own else number - own

    def move(self, option: int, observation: Any) -> Any:
        """The environment's action that an option takes."""
        action = self.options.act(option, self._seen(observation))
        return self._first + action

    def stops(self, option: int, observation: Any) -> bool:
        """Whether an option ends here."""
        return self.options.stops(option, self._seen(observation))

    def mask(self, observation: Any) -> np.ndarray:
        """Which may be chosen here: all actions of the environment, and the options that begin."""
        own = np.ones(self.options.n_actions, bool)
        return np.concatenate([own, self.options.begins(self._seen(observation))])

    def _seen(self, observation: Any) -> Any:
        return observation if self._key is None else observation[self._key]


def _checked(gamma: float, longest: int | None, options: OptionSet) -> tuple[float, int]:
    gamma = checked("gamma", gamma, above=0, most=1)
    return gamma, options.longest if longest is None else checked("longest", longest, whole=True, least=1)
