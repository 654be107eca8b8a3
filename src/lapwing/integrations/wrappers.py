"""Gymnasium wrappers that give any agent a learned φ: as its reward, or in its observations.

`vector_wrappers` has the same for vectors of environments.
"""

from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from lapwing.data.observations import view_of
from lapwing.envs.make import refuse_vec_env
from lapwing.errors import ConfigError
from lapwing.integrations.goals import RewardShaper, Shaping, as_representation, check_fits, seen_key
from lapwing.laplacian.forward import Forward, What
from lapwing.laplacian.representation import Representation
from lapwing.settings.learn import Distance, RewardForm

PHI, OBSERVATION = "phi", "observation"
"""The parts of an observation that φ is appended to, where it is not a vector."""


class LaplacianReward(gymnasium.Wrapper, RecordConstructorArgs):
    """A wrapper that replaces the reward by one for reaching a goal, shaped by the learned distance.

    `reset(options={"goal": observation})` sets another goal (in goal environments the option is passed to
    the environment). `info` has `goal_distance`, in the embedding if the form uses it, `goal_reached`, and
    `env_reward`, the environment's own reward.

    Args:
        env: any environment whose observations φ was learned from.
        representation: φ, or the path of a file or run folder; with a path, `env.spec` works as JSON.
            Not needed for `sparse`, `l2` and `rawmix`.
        goal: an observation; a `lapwing.Goal` for a separate goal space, with an h of φ's input; or None in
            goal environments, whose `desired_goal` is used.
        form: `potential`, `mix`, `laplacian`, `rawmix`, `l2` or `sparse`.
        filter: the spectral filter of the distance, or `hitting`; None is `commute`, by which agents were
            evaluated (`rep.distance` takes `biharmonic`), or `soft` if φ was not rotated.
        gamma: the agent's discount factor, for `potential`; the default is that of Stable-Baselines3.
        radius: the goal is reached within it, if `goal` is an observation; None is the median step of
            the data that φ was learned from, if its states are continuous, and else the goal itself.
        scale: factor on the distance in the embedding; None scales the mean distance between states to 1
            and, for `potential`, to steps.
        reward_scale: factor on the reward.
        keep_reward: the environment's own reward replaces `sparse` in `mix`, `rawmix` and `potential`.
        observation_key: the entry of Dict observations that φ uses, if not the one it was learned from.

    Example:
        >>> import lapwing
        >>> env = gymnasium.make("lapwing/TwoRoom-v0")
        >>> rep = lapwing.learn("TwoRoom", transitions=20_000, dim=5, steps=100, hidden=(32,))
        >>> env = LaplacianReward(env, rep, goal=np.array([0.125, 0.875]), gamma=0.98)
        >>> _ = env.reset(seed=0)
        >>> _, reward, _, _, info = env.step(0)
        >>> info["goal_reached"], info["env_reward"]
        (False, -1.0)
    """

    def __init__(
        self,
        env: gymnasium.Env,
        representation: Representation | str | Path | None = None,
        goal: Any = None,
        *,
        form: RewardForm = "potential",
        filter: Distance | None = None,
        gamma: float = 0.99,
        radius: float | None = None,
        scale: float | None = None,
        reward_scale: float = 1.0,
        keep_reward: bool = False,
        observation_key: str | None = None,
    ):
        refuse_vec_env(env)
        shaping = Shaping(form=form, filter=filter, gamma=gamma, radius=radius, scale=scale)
        shaping |= Shaping(
            reward_scale=reward_scale, keep_reward=keep_reward, observation_key=observation_key
        )
        RecordConstructorArgs.__init__(self, representation=as_text(representation), goal=goal, **shaping)
        gymnasium.Wrapper.__init__(self, env)
        self._shaper = RewardShaper(env.observation_space, representation, goal, **shaping)
        self._here: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with another goal if `options` name one."""
        goal, options = self._shaper.goal_in(options)
        observation, info = self.env.reset(seed=seed, options=options)
        if goal is not None:
            self._shaper.set_goal(goal)
        self._here = self._shaper.distances(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one step, with the shaped reward."""
        observation, own, terminated, truncated, info = self.env.step(action)
        there = self._shaper.distances(observation)
        reward = float(self._shaper.reward(self._here, there, terminated, own))
        self._here = there
        return observation, reward, terminated, truncated, info | self._shaper.info(there, float(own))

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """The reward for achieved and desired goals, one or a batch: for hindsight replay.

        Available in goal environments, for every form but `potential`.
        """
        own = None
        if self._shaper.keeps_reward:
            own = self.env.get_wrapper_attr("compute_reward")(achieved_goal, desired_goal, info)
        return self._shaper.hindsight_reward(achieved_goal, desired_goal, own)


class LaplacianObservation(gymnasium.ObservationWrapper, RecordConstructorArgs):
    """A wrapper that appends φ to the observation, or replaces it by φ.

    φ is concatenated to vectors; a Dict gets the entry `phi`; other observations become a Dict of
    `observation` and `phi`.

    Args:
        env: any environment whose observations φ was learned from.
        representation: φ, or the path of a file or run folder.
        what: `eigenfunctions` (ordered, each with E[f²] = 1, without the constant), `phi`, or the name of a
            spectral filter.
        append: whether to keep the observation.
        observation_key: the entry of Dict observations that φ uses, if not the one it was learned from.

    Example:
        >>> import lapwing
        >>> rep = lapwing.learn("TwoRoom", transitions=20_000, dim=5, steps=100, hidden=(32,))
        >>> env = LaplacianObservation(gymnasium.make("lapwing/TwoRoom-v0"), rep)
        >>> env.reset(seed=0)[0].shape, env.observation_space.shape
        ((6,), (6,))
    """

    def __init__(
        self,
        env: gymnasium.Env,
        representation: Representation | str | Path,
        *,
        what: What = "eigenfunctions",
        append: bool = True,
        observation_key: str | None = None,
    ):
        refuse_vec_env(env)
        RecordConstructorArgs.__init__(
            self,
            representation=as_text(representation),
            what=what,
            append=append,
            observation_key=observation_key,
        )
        gymnasium.ObservationWrapper.__init__(self, env)
        self._transform = ObservationTransform(
            env.observation_space, representation, what, append, observation_key
        )
        self.observation_space = self._transform.space

    def observation(self, observation: Any) -> Any:
        """The observation with φ."""
        return self._transform.one(observation)


class ObservationTransform:
    """Adds φ to observations, one at a time or in batches."""

    def __init__(
        self,
        space: gymnasium.Space,
        representation: Representation | str | Path,
        what: What,
        append: bool,
        observation_key: str | None,
    ):
        learned = as_representation(representation)
        self._view = view_of(space, seen_key(space, learned, observation_key))
        self._forward, self._append = Forward(learned, what), append
        check_fits(self._forward, self._view)
        self._vector = isinstance(space, spaces.Box) and len(space.shape) == 1
        self._dict = isinstance(space, spaces.Dict)
        phi = spaces.Box(-np.inf, np.inf, (self._forward.dim,), np.float32)
        self.space: gymnasium.Space = phi
        """Of single observations with φ."""
        self._dtype = np.dtype(np.float32)
        if append and isinstance(space, spaces.Box) and self._vector:
            self._dtype = np.result_type(space.dtype, np.float32)
            low, high = (
                np.concatenate([end, bound], dtype=self._dtype)
                for end, bound in ((space.low, phi.low), (space.high, phi.high))
            )
            self.space = spaces.Box(low, high, dtype=self._dtype.type)
        elif append and isinstance(space, spaces.Dict):
            if PHI in space.spaces:
                raise ConfigError(f"observations have a part {PHI!r} already; set append=False")
            self.space = spaces.Dict({**space.spaces, PHI: phi})
        elif append:
            self.space = spaces.Dict({OBSERVATION: space, PHI: phi})

    def one(self, observation: Any) -> Any:
        """One observation with φ."""
        return self._joined(observation, self._forward(self._view.one(observation)))

    def many(self, observations: Any) -> Any:
        """A batch of observations with φ."""
        return self._joined(observations, self._forward(self._view.many(observations)))

    def _joined(self, observations: Any, phi: np.ndarray) -> Any:
        if not self._append:
            return phi
        if self._vector:
            return np.concatenate([observations, phi], axis=-1, dtype=self._dtype)
        return {**observations, PHI: phi} if self._dict else {OBSERVATION: observations, PHI: phi}


def as_text(representation: Any) -> Any:
    """A path as a string, for JSON; anything else unchanged."""
    return str(representation) if isinstance(representation, Path) else representation
