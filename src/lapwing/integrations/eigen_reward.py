"""The intrinsic reward of an eigenoption, for any agent: climb an eigenfunction."""

from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from lapwing.data.observations import view_of
from lapwing.data.rollouts import autoreset_mode
from lapwing.envs.make import refuse_vec_env
from lapwing.integrations.goals import as_representation, check_fits, seen_key
from lapwing.integrations.wrappers import as_text
from lapwing.laplacian.representation import Representation
from lapwing.options.purpose import EigenPurpose


class EigenReward(gymnasium.Wrapper, RecordConstructorArgs):
    """The reward f(s') - f(s) in place of the environment's own; `info["env_reward"]` has that.

    Args:
        env: any environment whose observations φ was learned from.
        representation: φ, or the path of a file or run folder; a path lets `env.spec` be written as JSON.
        function: which eigenfunction; 1 is the constant, so the first is 2.
        sign: 1 to climb it, -1 to descend.
        scale: multiplies the reward.
        observation_key: the entry of Dict observations that φ uses, if not the one it was learned from.

    Example:
        >>> import lapwing
        >>> rep = lapwing.learn("TwoRoom", transitions=20_000, dim=5, steps=100, hidden=(32,))
        >>> env = EigenReward(gymnasium.make("lapwing/TwoRoom-v0"), rep, function=2)
        >>> here, _ = env.reset(seed=0)
        >>> there, reward, *_ = env.step(1)
        >>> f = rep.eigenfunctions(np.stack([here, there]))[:, 1]
        >>> bool(np.isclose(reward, f[1] - f[0], atol=1e-4))
        True
    """

    def __init__(
        self,
        env: gymnasium.Env,
        representation: Representation | str | Path,
        *,
        function: int = 2,
        sign: int = 1,
        scale: float = 1.0,
        observation_key: str | None = None,
    ):
        refuse_vec_env(env)
        how: dict[str, Any] = {"function": function, "sign": sign, "scale": scale}
        RecordConstructorArgs.__init__(
            self, representation=as_text(representation), observation_key=observation_key, **how
        )
        gymnasium.Wrapper.__init__(self, env)
        self._purpose, self._view = _purpose(env.observation_space, representation, observation_key, how)
        self._here = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._here = float(self._purpose.value(self._view.one(observation)))
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step, with the intrinsic reward."""
        observation, own, terminated, truncated, info = self.env.step(action)
        there = float(self._purpose.value(self._view.one(observation)))
        reward, self._here = there - self._here, there
        return observation, reward, terminated, truncated, info | {"env_reward": float(own)}


class VectorEigenReward(VectorWrapper, RecordConstructorArgs):
    """`EigenReward` for a vector of environments, in any autoreset mode; it takes the same arguments."""

    def __init__(
        self,
        env: VectorEnv,
        representation: Representation | str | Path,
        *,
        function: int = 2,
        sign: int = 1,
        scale: float = 1.0,
        observation_key: str | None = None,
    ):
        refuse_vec_env(env)
        how: dict[str, Any] = {"function": function, "sign": sign, "scale": scale}
        RecordConstructorArgs.__init__(
            self, representation=as_text(representation), observation_key=observation_key, **how
        )
        VectorWrapper.__init__(self, env)
        self._mode = autoreset_mode(env)
        space = env.single_observation_space
        self._purpose, self._view = _purpose(space, representation, observation_key, how)
        self._here = np.zeros(env.num_envs)
        self._resetting = np.zeros(env.num_envs, bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        begun = np.ones(self.num_envs, bool)
        if options and "reset_mask" in options:
            begun = np.array(options["reset_mask"], bool)
            options = dict(options)  # the environment takes the mask out of it
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._here = np.where(begun, self._purpose.value(self._view.many(observations)), self._here)
        self._resetting[begun] = False
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step in each environment, with the intrinsic rewards; a step that only resets has none."""
        observations, own, terminated, truncated, infos = self.env.step(actions)
        over = np.logical_or(terminated, truncated)
        following = self._purpose.value(self._view.many(observations))
        reached = following.copy()
        if self._mode == AutoresetMode.SAME_STEP:  # the observation is the first of the next episode
            for index in np.flatnonzero(over):
                reached[index] = self._purpose.value(self._view.one(infos["final_obs"][index]))
        rewards = np.where(self._resetting, 0.0, reached - self._here)
        infos = infos | {"env_reward": np.array(own), "_env_reward": ~self._resetting}
        self._here = following
        self._resetting = over if self._mode == AutoresetMode.NEXT_STEP else np.zeros_like(over)
        return observations, rewards, terminated, truncated, infos


def _purpose(
    space: gymnasium.Space, representation: Representation | str | Path, key: str | None, how: dict[str, Any]
) -> tuple[EigenPurpose, Any]:
    """What is climbed, and how an observation is seen by it."""
    learned = as_representation(representation)
    view = view_of(space, seen_key(space, learned, key))
    purpose = EigenPurpose(learned, **how)
    check_fits(purpose.forward, view)
    return purpose, view
