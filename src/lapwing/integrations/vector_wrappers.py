"""The wrappers of `wrappers` for vectors of environments, correct in all three autoreset modes.

An episode's last observation is the returned observation (`NEXT_STEP`, `DISABLED`), or it is in
`infos["final_obs"]` while the returned observation is already the first of the next episode (`SAME_STEP`). A
step that only resets has no reward.
"""

from pathlib import Path
from typing import Any, Unpack

import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from lapwing.data.rollouts import autoreset_mode
from lapwing.envs.forks import warn_of_forks
from lapwing.envs.make import refuse_vec_env
from lapwing.integrations.goals import DESIRED, RewardShaper, Shaping
from lapwing.integrations.wrappers import ObservationTransform, as_text
from lapwing.laplacian.forward import What
from lapwing.laplacian.representation import Representation
from lapwing.shaping.rewards import ToGoal


class VectorLaplacianReward(VectorWrapper, RecordConstructorArgs):
    """`LaplacianReward` for a vector of environments; it takes the same arguments.

    A goal is one observation for all environments, or a batch with one for each. That of
    `reset(options={"goal": …, "reset_mask": …})` is for the environments that are reset.
    """

    def __init__(
        self,
        env: VectorEnv,
        representation: Representation | str | Path | None = None,
        goal: Any = None,
        **shaping: Unpack[Shaping],
    ):
        refuse_vec_env(env)
        warn_of_forks(env)
        RecordConstructorArgs.__init__(self, representation=as_text(representation), goal=goal, **shaping)
        VectorWrapper.__init__(self, env)
        self._mode = autoreset_mode(env)
        space, count = env.single_observation_space, env.num_envs
        self._shaper = RewardShaper(space, representation, goal, num_envs=count, **shaping)
        self._here: Any = None
        self._resetting = np.zeros(env.num_envs, bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        goal, options = self._shaper.goal_in(options)
        begun = np.ones(self.num_envs, bool)
        if options and "reset_mask" in options:
            begun = np.array(options["reset_mask"], bool)
            options = dict(options)  # the environment takes the mask out of it
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        if goal is not None:
            self._shaper.set_goal(goal, begun)
        self._here = _chosen(begun, self._shaper.distances(observations), self._here)
        self._resetting[begun] = False
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step in each environment, with the shaped rewards."""
        observations, own, terminated, truncated, infos = self.env.step(actions)
        over = np.logical_or(terminated, truncated)
        begun = over if self._mode == AutoresetMode.SAME_STEP else np.zeros_like(over)
        reached = self._with_final(observations, infos, begun) if begun.any() else observations
        there = self._shaper.distances(reached)
        rewards = np.asarray(self._shaper.reward(self._here, there, np.asarray(terminated, float), own))
        rewards = np.where(self._resetting, 0.0, rewards)
        added = self._shaper.info(there, np.array(own))
        infos = infos | added | {f"_{name}": ~self._resetting for name in added}
        if begun.any():
            there = self._shaper.distances(observations)
        self._here = there
        self._resetting = over if self._mode == AutoresetMode.NEXT_STEP else np.zeros_like(over)
        return observations, rewards, terminated, truncated, infos

    def _with_final(self, observations: Any, infos: dict[str, Any], begun: np.ndarray) -> Any:
        """The last observations of episodes in place of the first of the next, as far as they are needed."""
        key = self._shaper.view.key
        final = {index: infos["final_obs"][index] for index in np.flatnonzero(begun)}
        if key is None:
            return _replaced(observations, final)
        parts = (key, DESIRED) if self._shaper.follows_goal else (key,)
        return {
            part: _replaced(observations[part], {index: last[part] for index, last in final.items()})
            for part in parts
        }


class VectorLaplacianObservation(VectorWrapper, RecordConstructorArgs):
    """`LaplacianObservation` for a vector of environments; it takes the same arguments."""

    def __init__(
        self,
        env: VectorEnv,
        representation: Representation | str | Path,
        *,
        what: What = "eigenfunctions",
        append: bool = True,
        observation_key: str | None = None,
    ):
        refuse_vec_env(env)
        warn_of_forks(env)
        RecordConstructorArgs.__init__(
            self,
            representation=as_text(representation),
            what=what,
            append=append,
            observation_key=observation_key,
        )
        VectorWrapper.__init__(self, env)
        self._transform = ObservationTransform(
            env.single_observation_space, representation, what, append, observation_key
        )
        self.single_observation_space = self._transform.space
        self.observation_space = batch_space(self._transform.space, env.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes."""
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        return self._transform.many(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step in each environment; the last observations of episodes hold φ too."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            final = np.empty(self.num_envs, object)
            for index, last in enumerate(infos["final_obs"]):
                final[index] = None if last is None else self._transform.one(last)
            infos = infos | {"final_obs": final}
        return self._transform.many(observations), rewards, terminated, truncated, infos


def _chosen(begun: np.ndarray, new: ToGoal, old: ToGoal | None) -> ToGoal:
    """The new distances of the environments that have begun an episode."""
    if old is None or begun.all():
        return new
    return ToGoal(*(np.where(begun, fresh, before) for fresh, before in zip(new, old, strict=True)))


def _replaced(batch: Any, rows: dict[Any, Any]) -> np.ndarray:
    """The batch with other rows at some indices."""
    array = np.array(batch)
    for index, row in rows.items():
        array[index] = row
    return array
