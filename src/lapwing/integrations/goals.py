"""Distances to goals in the steps of an environment: what the reward wrappers, single and vector, share.

Everything is NumPy, for one observation or a batch with a goal each, and φ of a goal is computed once.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from lapwing.data.observations import View, view_of
from lapwing.errors import ConfigError
from lapwing.laplacian.forward import Forward
from lapwing.laplacian.representation import Representation, check_filter, checked_batch
from lapwing.runs.learn import load
from lapwing.settings.learn import Filter, RewardForm
from lapwing.shaping.rewards import (
    FORMS,
    SHAPED_BY_PHI,
    Goal,
    Step,
    ToGoal,
    check_form,
    chosen_filter,
    potential,
)

ACHIEVED, DESIRED = "achieved_goal", "desired_goal"
"""The parts of Gymnasium's goal environments."""
ITSELF = 1e-6
"""How near is there, where only the goal itself will do."""


class _Kind(NamedTuple):
    """What goals of several environments have in common."""

    h: Callable[[Any], Any] | None
    """From what φ sees to goal vectors; None: what φ sees is the goal vector."""
    radius: float
    embeds_z: bool
    """Whether φ embeds goal vectors, not whole observations."""


class GoalMeter:
    """How far observations are from goals, and what reward that makes.

    Args:
        space: of single observations.
        representation: φ, a file or a run folder of it, or None for the forms that need none.
        goal: an observation to be reached, a `Goal`, or None to follow the `desired_goal` of observations.
        form: one of `rewards.FORMS`.
        filter: the spectral filter of the distance; None is `commute` where eigenfunctions are told apart.
        gamma: the agent's discount, for `potential`.
        radius: how near is there, where `goal` is an observation; None is a step.
        scale: multiplies the distance in the embedding; None makes the mean distance between states 1, or
            for `potential` the mean change by a step.
        keep_reward: the environment's own reward takes the place of `sparse` in the form.
        observation_key: which part of Dict observations φ sees; None is what φ was learned from.
        num_envs: how many observations come at a time; None is one, not in a batch.
    """

    def __init__(
        self,
        space: gymnasium.Space,
        representation: Representation | str | Path | None,
        goal: Any,
        *,
        form: RewardForm,
        filter: Filter | None,
        gamma: float | None,
        radius: float | None,
        scale: float | None,
        keep_reward: bool,
        observation_key: str | None,
        num_envs: int | None = None,
    ):
        check_form(form, has_representation=representation is not None, gamma=gamma)
        _check_shaping(filter, radius, scale)
        if keep_reward and form in ("l2", "laplacian"):
            raise ConfigError(
                f"keep_reward puts the environment's own reward in the place of sparse, and {form!r} has no "
                "such part; use rawmix, mix or potential"
            )
        if radius is not None and isinstance(goal, Goal):
            raise ConfigError(
                f"radius={radius!r} goes with a goal that is an observation; a lapwing.Goal has its own"
            )
        self.follows_goal = goal is None
        learned, self._forward = None if representation is None else opened(representation), None
        if radius is None:
            step = None if learned is None else _step(learned)["observation"]
            radius = ITSELF if step is None else float(step)
        if learned is not None and form in SHAPED_BY_PHI:
            filter = chosen_filter(filter, learned)
            self._forward = Forward(learned, filter)
            scale = scale or _scale(learned, form, filter)
        if self.follows_goal:
            _check_goal_environment(space, observation_key)
            observation_key = ACHIEVED
        self.view = view_of(space, seen_key(space, learned, observation_key))
        self._batch = () if num_envs is None else (num_envs,)
        self._radius: float = radius
        self._form, self._scale = FORMS[form], scale or 1.0
        self._gamma = np.nan if gamma is None else gamma
        self.keeps_reward = keep_reward
        self._kind = _Kind(None, radius, False)
        self._z: Any = None
        self._goal_phi: Any = None
        self._desired: Any = None
        if self.follows_goal:
            self._check_fits(None)
        else:
            self.set_goal(goal)

    def set_goal(self, goal: Any, which: np.ndarray | None = None) -> None:
        """Another goal from now on.

        Args:
            goal: an observation, one for each of several environments, or a `Goal`.
            which: the environments that it is for, if not for all.
        """
        self._check_fits(goal)
        if isinstance(goal, Goal):
            kind = _Kind(goal.h, goal.radius, goal.state is None)
            z = np.asarray(goal.z, np.float64)
            embedded = z if goal.state is None else self._seen_goal(goal.state)
        else:
            kind, embedded = _Kind(None, self._radius, False), self._seen_goal(goal)
            z = self._flat(embedded)
        phi = None if self._forward is None else self._forward(embedded)
        if which is not None and not which.all():
            if kind != self._kind or z.shape[-1] != self._z.shape[-1]:
                raise ConfigError(
                    "a goal for some of the environments must be like those of the others, which are "
                    "observations or a lapwing.Goal with one h and radius; reset all of them with it"
                )
            rows = which[:, None]
            z = np.where(rows, z, self._z)
            phi = None if phi is None else np.where(rows, phi, self._goal_phi)
        self._kind, self._z, self._goal_phi = kind, z, phi

    def follow(self, observations: Any) -> None:
        """Take the goal from goal environments' observations, if it is another one."""
        desired = np.asarray(observations[DESIRED])
        if self._desired is None or not np.array_equal(desired, self._desired):
            self.set_goal(desired)
            self._desired = desired.copy()

    def distances(self, observations: Any) -> ToGoal:
        """How far observations, as the environment gives them, are from the goals."""
        if self._z is None:
            raise ConfigError("there is no goal yet; reset the environment first")
        seen = self.view.many(observations) if self._batch else self.view.one(observations)
        kind = self._kind
        z = self._flat(seen) if kind.h is None else self._goal_vectors(kind.h(seen))
        raw = _length(z - self._z)
        latent: Any = np.nan
        if self._forward is not None:
            latent = self._scale * _length(self._forward(z if kind.embeds_z else seen) - self._goal_phi)
        return ToGoal(raw, raw <= kind.radius, latent)

    def reward(self, here: ToGoal, there: ToGoal, terminated: Any, own: Any) -> Any:
        """Of a step between two distances."""
        return self._form(Step(here, there, terminated, self._gamma, own if self.keeps_reward else None))

    def hindsight(self, achieved: Any, desired: Any, own: Any) -> Any:
        """The reward of steps that arrive at achieved goals with desired ones in mind, one or a batch.

        Args:
            achieved: as `achieved_goal` of observations.
            desired: as `desired_goal`, one for each.
            own: the environment's own reward, where it is kept.
        """
        if not self.follows_goal:
            raise ConfigError(
                "compute_reward is for goals that change, and this environment was wrapped with one of its "
                "own; leave goal out, so that desired_goal is followed"
            )
        if self._form is potential:
            raise ConfigError(
                "compute_reward is told where a step arrives and not where it began, which form 'potential' "
                "needs; use mix or laplacian with hindsight"
            )
        desired = np.broadcast_to(desired, np.shape(achieved))
        look = self.view.one if np.shape(achieved) == self.view.raw_shape else self.view.many
        z, goals = (look({ACHIEVED: ends}) for ends in (achieved, desired))
        raw = _length(self._flat(z) - self._flat(goals))
        latent: Any = np.nan
        if self._forward is not None:
            latent = self._scale * _length(self._forward(z) - self._forward(goals))
        there = ToGoal(raw, raw <= self._kind.radius, latent)
        return self.reward(there, there, False, own)  # where it began matters to `potential` alone

    def _check_fits(self, goal: Any) -> None:
        """Refuse a φ of other observations or, where it embeds goal vectors, of others than these."""
        if self._forward is None:
            return
        if not isinstance(goal, Goal) or goal.state is not None:
            check_fits(self._forward, self.view)
        elif np.shape(goal.z) != self._forward.shape:
            raise ConfigError(
                f"this representation takes observations of shape {self._forward.shape}, and the goal z has "
                f"{np.shape(goal.z)}; give the Goal a state, or learn φ from what its h gives"
            )

    def _seen_goal(self, goal: Any) -> Any:
        """A goal as φ sees it, or one for each environment."""
        key, shape = self.view.key, self.view.raw_shape
        raw = np.asarray(goal[key] if isinstance(goal, dict) and key in goal else goal)
        if raw.dtype.kind not in "biuf" or raw.shape not in (shape, (*self._batch, *shape)):
            each = f" or {self._batch[0]} of them" if self._batch else ""
            raise ConfigError(
                f"the goal is {raw.dtype} of shape {raw.shape}, and observations have shape {shape}; give an "
                f"observation{each}, or a lapwing.Goal with z, h and radius"
            )
        with np.errstate(invalid="ignore", over="ignore"):
            cast = raw.astype(self.view.raw_dtype)
        if not np.isfinite(cast).all() or (cast.dtype.kind in "iu" and not np.array_equal(cast, raw)):
            raise ConfigError(
                f"the goal holds what no observation of {cast.dtype} does; give numbers such as the "
                "environment gives"
            )
        if self.view.n_states is not None:
            first, last = self.view.start, self.view.start + self.view.n_states - 1
            if not ((first <= cast) & (cast <= last)).all():
                raise ConfigError(f"the goal {raw} is outside {first} … {last}, the states that there are")
        seen = self.view.seen(cast[None] if raw.shape == shape else cast)
        seen = checked_batch(seen, self.view.shape, self.view.n_states)
        return seen[0] if raw.shape == shape else seen

    def _goal_vectors(self, z: Any) -> np.ndarray:
        vectors = np.asarray(z, np.float64)
        wanted = (*self._batch, *self._z.shape[-1:])
        if vectors.shape != wanted:
            raise ConfigError(
                f"h(s) has shape {vectors.shape}, and the goal z needs {wanted}; give Goal an h that maps "
                "observations, one or a batch, to goal vectors"
            )
        return vectors

    def _flat(self, seen: Any) -> np.ndarray:
        array = np.asarray(seen, np.float64)
        return array.reshape(*array.shape[: array.ndim - len(self.view.shape)], -1)


def _step(learned: Representation) -> dict[str, Any]:
    """The size of a step, as far as it was measured when φ was learned."""
    return learned.config.get("step") or {"observation": None, "distance": {}}


def _scale(learned: Representation, form: RewardForm, filter: Filter) -> float:
    """What makes the mean distance between states 1 or, of a potential, the mean change by a step."""
    step = _step(learned)["distance"].get(filter)
    unit = step if form == "potential" and step else learned.soft_distance  # which all filters share
    return 1 / (unit or 1.0)


def opened(representation: Representation | str | Path) -> Representation:
    """A representation, or that in a file or a run folder."""
    if isinstance(representation, Representation):
        return representation
    if not isinstance(representation, str | Path):
        raise ConfigError(
            "representation must be what lapwing.learn returns, or a path, not "
            f"{type(representation).__name__}"
        )
    return load(representation)


def seen_key(space: gymnasium.Space, learned: Representation | None, key: str | None) -> str | None:
    """Which part of observations φ sees: as told, or as it was learned."""
    if key is None and learned is not None and isinstance(space, spaces.Dict):
        return learned.config.get("settings", {}).get("observation_key")
    return key


def check_fits(forward: Forward, view: View) -> None:
    """Refuse a φ of other observations."""
    if forward.shape != view.shape:
        raise ConfigError(
            f"this representation takes observations of shape {forward.shape}, and the environment "
            f"gives {view.shape}; learn φ from this environment, or wrap it before what changes observations"
        )
    if view.n_states is not None and forward.n_states != view.n_states:
        raise ConfigError(
            f"this representation knows {forward.n_states} states, and the environment has "
            f"{view.n_states}; learn φ from this environment"
        )


def _length(vectors: np.ndarray) -> Any:
    """Of one vector as a Python number, with which a step of an environment is quick; or of each row."""
    if vectors.ndim == 1:
        return math.sqrt(vectors.dot(vectors))
    return np.sqrt((vectors * vectors).sum(axis=-1))


def _check_shaping(filter: str | None, radius: float | None, scale: float | None) -> None:
    if filter is not None:
        check_filter(filter)
    if radius is not None and not 0 <= radius < np.inf:
        raise ConfigError(f"radius must be at least 0 and finite, not {radius!r}")
    if scale is not None and not 0 < scale < np.inf:
        raise ConfigError(f"scale must be above 0 and finite, not {scale!r}")


def _check_goal_environment(space: gymnasium.Space, key: str | None) -> None:
    if not isinstance(space, spaces.Dict) or not {ACHIEVED, DESIRED} <= set(space.spaces):
        raise ConfigError(
            "goal is missing: give an observation to be reached, or a lapwing.Goal; only environments with "
            f"{ACHIEVED} and {DESIRED} in their observations have goals of their own"
        )
    if key not in (None, ACHIEVED):
        raise ConfigError(
            f"observation_key={key!r} goes with a goal; without one {ACHIEVED} is held against {DESIRED}"
        )
