"""Goal rewards for the steps of an environment, shared by the single and vector wrappers.

Everything is NumPy, for one observation or a batch with a goal each, and φ of a goal is computed once. An
observation has the same distance alone and in a batch, bit for bit, and the goal itself has 0.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import gymnasium
import numpy as np
from gymnasium import spaces

from lapwing.data.extent import why_no_state
from lapwing.data.observations import View, view_of
from lapwing.errors import ConfigError
from lapwing.laplacian.batches import checked_batch
from lapwing.laplacian.coverage import OR_NO_STATE, Coverage, warn_if_thin
from lapwing.laplacian.distances import check_distance, euclidean, measure_of
from lapwing.laplacian.forward import Forward
from lapwing.laplacian.representation import Representation
from lapwing.runs.folder import load
from lapwing.settings.learn import Distance, RewardForm
from lapwing.shaping.rewards import (
    FORMS,
    SHAPED_BY_PHI,
    Goal,
    Step,
    ToGoal,
    check_form,
    chosen_filter,
    potential,
    to_goal,
)

ACHIEVED, DESIRED = "achieved_goal", "desired_goal"
"""The parts of Gymnasium's goal environments."""
GOAL_ITSELF = 1e-6
"""The radius where no other state reaches the goal."""


class _GoalSpace(NamedTuple):
    """What goals of several environments have in common."""

    h: Callable[[Any], Any] | None
    """From what φ sees to goal vectors; None: what φ sees is the goal vector."""
    radius: float
    embeds_z: bool
    """Whether φ embeds goal vectors, not whole observations."""


class Shaping(TypedDict, total=False):
    """The keywords of `LaplacianReward`, which its vector twin takes too."""

    form: RewardForm
    filter: Distance | None
    gamma: float
    radius: float | None
    scale: float | None
    reward_scale: float
    keep_reward: bool
    observation_key: str | None


class RewardShaper:
    """The shaped rewards of steps between observations, by their distances to goals.

    Args:
        space: of single observations.
        representation: φ, a file or a run folder of it, or None for the forms that need none.
        goal: an observation to be reached, a `Goal`, or None to follow the `desired_goal` of observations.
        form: one of `rewards.FORMS`.
        filter: the spectral filter of the distance, or `hitting`; None is `commute`, by which agents were
            evaluated (`rep.distance` takes `biharmonic`), or `soft` if φ was not rotated.
        gamma: the agent's discount, for `potential`.
        radius: within which a goal is reached that is an observation; None is a step.
        scale: multiplies the distance in the embedding; None makes the mean distance between states 1, or
            for `potential` the mean change by a step.
        reward_scale: multiplies the reward.
        keep_reward: the environment's own reward takes the place of `sparse` in the form.
        observation_key: which part of Dict observations φ sees; None is what φ was learned from.
        num_envs: the size of batches of observations; None is one observation, not in a batch.
    """

    def __init__(
        self,
        space: gymnasium.Space,
        representation: Representation | str | Path | None,
        goal: Any,
        *,
        form: RewardForm = "potential",
        filter: Distance | None = None,
        gamma: float = 0.99,
        radius: float | None = None,
        scale: float | None = None,
        reward_scale: float = 1.0,
        keep_reward: bool = False,
        observation_key: str | None = None,
        num_envs: int | None = None,
    ):
        check_form(form, has_representation=representation is not None, gamma=gamma)
        _check_shaping(filter, radius, scale, reward_scale)
        if keep_reward and form in ("l2", "laplacian"):
            raise ConfigError(
                f"keep_reward puts the environment's own reward in the place of sparse, and {form!r} has no "
                "such part; use rawmix, mix or potential"
            )
        if radius is not None and isinstance(goal, Goal):
            raise ConfigError(
                f"radius={radius!r} only works with a goal that is an observation; a lapwing.Goal has its own"
            )
        self.follows_goal = goal is None
        learned = None if representation is None else as_representation(representation)
        self._forward: Forward | None = None
        self._coverage: Coverage | None = None
        self._ranges: list[list[float]] | None = None
        self._remedy = ""
        self._measure = euclidean
        if learned is not None and form in SHAPED_BY_PHI:
            filter = chosen_filter(filter, learned)
            scale = scale or default_scale(learned, form, filter)
            self._measure = measure_of(filter)
            if filter == "hitting":  # in steps by weights 1/√λ: those of `commute`, but for their size
                sizes = (np.sum(learned.filter_weights(name) ** 2) for name in ("hitting", "commute"))
                filter, scale = "commute", scale * float(np.divide(*sizes))
            self._forward = Forward(learned, filter)
            self._coverage, self._ranges = Coverage.of(learned, filter), learned.config.get("ranges")
            self._remedy = _against_thin_data(learned)
        if self.follows_goal:
            _check_goal_environment(space, observation_key)
            observation_key = ACHIEVED
        self.view = view_of(space, seen_key(space, learned, observation_key))
        self._batch = () if num_envs is None else (num_envs,)
        self._radius = _default_radius(learned) if radius is None else radius
        self._form, self._gamma = FORMS[form], gamma
        self._scale, self._reward_scale = scale or 1.0, reward_scale
        self.keeps_reward = keep_reward
        self._space = _GoalSpace(None, self._radius, False)
        self._z: Any = None
        self._goal_phi: Any = None
        self._desired: Any = None
        if self.follows_goal:
            self._check_fits(None)
        else:
            self.set_goal(goal)

    def goal_in(self, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any] | None]:
        """The goal that options of a reset name, and the other options, which are the environment's."""
        if self.follows_goal or not options or "goal" not in options:
            return None, options
        rest = {name: value for name, value in options.items() if name != "goal"}
        return options["goal"], rest or None

    def set_goal(self, goal: Any, which: np.ndarray | None = None) -> None:
        """Another goal from now on.

        Args:
            goal: an observation, one for each of several environments, or a `Goal`.
            which: the environments that it is for, if not for all.
        """
        self._check_fits(goal)
        if isinstance(goal, Goal):
            space = _GoalSpace(goal.h, goal.radius, goal.state is None)
            z = np.asarray(goal.z, np.float64)
            embedded = z if goal.state is None else self._seen_goal(goal.state)
        else:
            space, embedded = _GoalSpace(None, self._radius, False), self._seen_goal(goal)
            z = self._flat(embedded)
        phi = self._embed(embedded)
        if which is not None and not which.all():
            if space != self._space or z.shape[-1] != self._z.shape[-1]:
                raise ConfigError(
                    "a goal for some of the environments must be like those of the others, which are "
                    "observations or a lapwing.Goal with one h and radius; reset all of them with it"
                )
            rows = which[:, None]
            z = np.where(rows, z, self._z)
            phi = None if phi is None else np.where(rows, phi, self._goal_phi)
        self._space, self._z, self._goal_phi = space, z, phi
        self._warn_if_thinly_sampled(embedded, in_space=not space.embeds_z)

    def distances(self, observations: Any) -> ToGoal:
        """The distances of observations, as the environment gives them, to the goals."""
        if self.follows_goal:
            self._follow(np.asarray(observations[DESIRED]))
        seen = self.view.many(observations) if self._batch else self.view.one(observations)
        h, radius, embeds_z = self._space
        z = self._flat(seen) if h is None else self._goal_vectors(h(seen))
        phi = self._embed(z if embeds_z else seen)
        to = to_goal(z, self._z, radius, phi, self._goal_phi, self._scale, self._measure)
        # Arithmetic with Python's numbers takes a fifth of the time that NumPy's scalars take.
        return to if self._batch else ToGoal(*(value.item() for value in to))

    def reward(self, here: ToGoal, there: ToGoal, terminated: Any, own: Any) -> Any:
        """The reward of steps between two distances; `own` is the environment's."""
        step = Step(here, there, terminated, self._gamma, own if self.keeps_reward else None)
        return self._form(step) * self._reward_scale

    def info(self, there: ToGoal, own: Any) -> dict[str, Any]:
        """What the wrappers add to the info of a step."""
        distance = there.raw if self._forward is None else there.latent
        return {"goal_distance": distance, "goal_reached": there.reached, "env_reward": own}

    def hindsight_reward(self, achieved: Any, desired: Any, own: Any) -> Any:
        """The reward of steps that arrive at achieved goals, where others were desired, one or a batch.

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
                "compute_reward gets where a step arrives and not where it began, which form 'potential' "
                "needs; use mix or laplacian with hindsight"
            )
        desired = np.broadcast_to(desired, np.shape(achieved))
        look = self.view.one if np.shape(achieved) == self.view.raw_shape else self.view.many
        seen, goals = (look({ACHIEVED: ends}) for ends in (achieved, desired))
        z, goal_z = self._flat(seen), self._flat(goals)
        phi, goal_phi = self._embed(seen), self._embed(goals)
        there = to_goal(z, goal_z, self._radius, phi, goal_phi, self._scale, self._measure)
        return self.reward(there, there, False, own)  # where it began matters to `potential` alone

    def _follow(self, desired: np.ndarray) -> None:
        """Take the goal from goal environments' observations, if it is another one."""
        if self._desired is None or not np.array_equal(desired, self._desired):
            self.set_goal(desired)
            self._desired = desired.copy()

    def _embed(self, seen: Any) -> np.ndarray | None:
        """φ in float64, as distances are computed; None where the form uses none."""
        return None if self._forward is None else self._forward(seen).astype(np.float64)

    def _warn_if_thinly_sampled(self, goal: Any, *, in_space: bool) -> None:
        """Say once if φ was learned from hardly any state near the goal, or if it may be none."""
        if self._coverage is None:
            return
        no_state = why_no_state(goal, self._ranges, self.view.bounds if in_space else None)
        many = self.follows_goal or len(self._batch) > 0
        if warn_if_thin(
            self._coverage, self._goal_phi, self._remedy, of_many=many, no_state=no_state, stacklevel=5
        ):
            self._coverage = None

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


def _against_thin_data(learned: Representation) -> str:
    """How to get data around a goal; not by what its collection did already."""
    past_termination = learned.config.get("settings", {}).get("past_termination", False)
    first = "more transitions" if past_termination else "past termination (past_termination=True)"
    others = "in longer episodes, from other starts, or with a policy that comes to the goal"
    return f"collect {first}, {others}{OR_NO_STATE}"


def _measured_step(learned: Representation) -> dict[str, Any]:
    """The size of a step, as far as it was measured when φ was learned."""
    return learned.config.get("step") or {"observation": None, "distance": {}}


def _default_radius(learned: Representation | None) -> float:
    """A step, where its size was measured; else only the goal itself is within the radius."""
    step = None if learned is None else _measured_step(learned)["observation"]
    return GOAL_ITSELF if step is None else float(step)


def default_scale(learned: Representation, form: RewardForm, filter: Distance) -> float:
    """What makes the mean distance between states 1 or, of a potential, the mean change by a step."""
    mean = learned.mean_distance(filter)
    step = _measured_step(learned)["distance"].get(filter)
    if filter == "hitting":
        step = np.sqrt(2 * mean)  # the root mean square: see `distances.hitting_time`
    unit = step if form == "potential" and step else mean
    return 1 / float(unit or 1.0)


def as_representation(representation: Representation | str | Path) -> Representation:
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
    """Which part of Dict observations φ sees: the one asked for, or the one that it was learned from."""
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


def _check_shaping(
    filter: str | None, radius: float | None, scale: float | None, reward_scale: float
) -> None:
    if filter is not None:
        check_distance(filter)
    if radius is not None and not 0 <= radius < np.inf:
        raise ConfigError(f"radius must be at least 0 and finite, not {radius!r}")
    for name, value in (("scale", scale), ("reward_scale", reward_scale)):
        if value is not None and not 0 < value < np.inf:
            raise ConfigError(f"{name} must be above 0 and finite, not {value!r}")


def _check_goal_environment(space: gymnasium.Space, key: str | None) -> None:
    if not isinstance(space, spaces.Dict) or not {ACHIEVED, DESIRED} <= set(space.spaces):
        raise ConfigError(
            "goal is missing: give an observation to be reached, or a lapwing.Goal; only environments with "
            f"{ACHIEVED} and {DESIRED} in their observations have goals of their own"
        )
    if key not in (None, ACHIEVED):
        raise ConfigError(
            f"observation_key={key!r} only works with a goal; without one "
            f"{ACHIEVED} is compared with {DESIRED}"
        )
