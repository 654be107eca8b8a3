"""Rewards for reaching a goal, as pure functions of a step, some of them shaped by φ.

Every form takes a `Step`: the distances of its two states from the goal, in the goal space Z and in the
embedding. They use only arithmetic, so numbers, NumPy and JAX arrays all work. Norms are not squared.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from lapwing.errors import ConfigError, nearest
from lapwing.laplacian.distances import check_distance, euclidean, measure_of, vector_norm
from lapwing.laplacian.representation import Representation
from lapwing.settings.checks import checked
from lapwing.settings.learn import Distance, RewardForm

SHAPED_BY_PHI: tuple[RewardForm, ...] = ("laplacian", "mix", "potential")
"""The forms that need a representation."""


class ToGoal(NamedTuple):
    """How far states are from the goal."""

    raw: Any
    """‖h(s) - z_g‖, in the goal space."""
    reached: Any
    """Whether that is within ε."""
    latent: Any
    """‖φ(s) - φ(g)‖, in the embedding, or the hitting time, times its scale; NaN where there is none."""


Measure = Callable[[Any, Any], Any]
"""How far an embedded state is from an embedded goal."""


def to_goal(
    z: Any,
    goal_z: Any,
    radius: float,
    phi: Any = None,
    goal_phi: Any = None,
    scale: float = 1.0,
    measure: Measure = euclidean,
) -> ToGoal:
    """The distances of states to a goal, one or a batch, in NumPy or JAX.

    Args:
        z: h(s), the goal vectors of the states.
        goal_z: z_g, or one a row.
        radius: ε, within which the goal is reached.
        phi: φ(s), the embedded states; None leaves the embedding out.
        goal_phi: φ(g), or one a row.
        scale: multiplies the distance in the embedding.
        measure: what makes that distance of the two, by `distances.measure_of`.

    Example:
        >>> to_goal(np.array([[0.0, 0.0], [3.0, 4.0]]), np.zeros(2), 1.0).raw.tolist()
        [0.0, 5.0]
    """
    raw = vector_norm(1.0 * z - goal_z)  # bytes would wrap around
    latent = raw * np.nan if phi is None else scale * measure(phi, goal_phi)
    return ToGoal(raw, raw <= radius, latent)


class Step(NamedTuple):
    """A transition s → s' on the way to a goal."""

    here: ToGoal
    there: ToGoal
    terminated: Any = False
    """Whether the episode terminated at s'; a time limit truncates it only."""
    gamma: float = np.nan
    """γ of the agent, which `potential` must know."""
    own: Any = None
    """The environment's own reward, where it takes the place of `sparse`."""


def sparse(step: Step) -> Any:
    """Sparse: r = -1[‖h(s') - z_g‖ > ε], or the environment's own reward in its place."""
    return step.there.reached - 1.0 if step.own is None else step.own


def l2(step: Step) -> Any:
    """Distance in the goal space: r = -‖h(s') - z_g‖."""
    return -step.there.raw


def rawmix(step: Step) -> Any:
    """Half `l2`, half `sparse`."""
    return 0.5 * l2(step) + 0.5 * sparse(step)


def laplacian(step: Step) -> Any:
    """Distance in the embedding: r = -‖φ(s') - φ(g)‖."""
    return -step.there.latent


def mix(step: Step) -> Any:
    """Half `laplacian`, half `sparse`: the paper's shaped reward."""
    return 0.5 * laplacian(step) + 0.5 * sparse(step)


def potential(step: Step) -> Any:
    """`sparse` + γΦ(s') - Φ(s) with Φ = -‖φ(s) - φ(g)‖, which leaves the optimal policy as it is.

    Φ(s') counts as 0 where the episode terminated, and only there: a time limit ends the recording, not the
    task.
    """
    alive = 1.0 - step.terminated
    return sparse(step) + step.gamma * alive * laplacian(step) + step.here.latent


FORMS: dict[str, Callable[[Step], Any]] = {
    form.__name__: form for form in (sparse, l2, rawmix, laplacian, mix, potential)
}


def relative(form: RewardForm, step: Step) -> Any:
    """A reward whose values are above those of standing still: r + γΦ(s') - Φ(s).

    Φ(s) is what the distance's share of the reward adds up to for who stays at s for ever, r_d(s) / (1 - γ).
    So r_s(s') + (r_d(s') - r_d(s)) / (1 - γ) is left: the sparse share, and what the step gained for good.
    Every Q(s, a) is that of the form less Φ(s); which action is best stays the same.
    """
    here, there = (FORMS[form](Step(to, to._replace(reached=1.0))) for to in step[:2])
    return FORMS[form](step) - there + (there - here) / (1 - step.gamma)


def action_rewards(form: RewardForm, to: ToGoal, next_state: Any, gamma: float) -> Any:
    """The reward of each action in each state, of which `to` holds the distances."""
    here = ToGoal(*(values[:, None] for values in to))
    there = ToGoal(*(values[next_state] for values in to))
    return FORMS[form](Step(here, there, False, gamma))


def check_form(form: str, *, has_representation: bool, gamma: float | None) -> None:
    """Refuse an unknown form, and one that lacks what it needs."""
    if form not in FORMS:
        raise ConfigError(f"unknown reward {form!r}; {nearest(str(form), get_args(RewardForm))}")
    if form in SHAPED_BY_PHI and not has_representation:
        raise ConfigError(
            f"reward {form!r} needs a representation and has none; give one that lapwing.learn or "
            "lapwing.load returns, or use sparse, l2 or rawmix"
        )
    if form == "potential" and gamma is None:
        raise ConfigError("reward 'potential' needs gamma, the discount of its agent; give gamma=0.98 or so")
    if gamma is not None:
        checked("gamma", gamma, above=0, most=1)


def chosen_filter(filter: Distance | None, representation: Representation) -> Distance:
    """The filter asked for; else `commute`, which has no local optima in the paper's mazes, or `soft`."""
    if filter is not None:
        return filter
    return "commute" if "commute" in representation.filters else "soft"


def same_state(state: Any) -> Any:
    """h(s) = s: the goal space is the state space."""
    return state


@dataclass(frozen=True, eq=False)
class Goal:
    """A goal: it is reached in a state s with ‖h(s) - z‖ ≤ radius.

    If the goal space Z is not the state space, φ may embed either. By default it embeds h(s): the paper's
    first option, φ: Z → R^d. With `state` it embeds whole states: the second option, φ: S → R^d.
    """

    z: Any
    """z_g, the goal vector."""
    radius: float = 1e-6
    """ε; the default asks for z_g itself."""
    h: Callable[[Any], Any] = same_state
    """From observations, one or a batch, to goal vectors."""
    state: Any = None
    """h⁻¹(z_g): some observation that achieves the goal."""

    def __post_init__(self) -> None:
        """Refuse what is no vector."""
        if np.ndim(self.z) != 1:
            raise ConfigError(
                f"goal z must be a vector, not of shape {np.shape(self.z)}; where observations are indices "
                "or images, give z as a position, h that maps observations to positions, and state"
            )
        if not 0 <= self.radius < np.inf:
            raise ConfigError(f"radius of the goal must be at least 0 and finite, not {self.radius!r}")

    def distances(
        self,
        states: Any,
        embed: Callable[[Any], Any] | None = None,
        scale: float = 1.0,
        measure: Measure = euclidean,
    ) -> ToGoal:
        """The distances of states, one or a batch, in NumPy or JAX; that of the goal itself is exactly 0.

        Args:
            states: observations.
            embed: φ of one observation or a batch; None omits the embedding.
            scale: factor on the distance in the embedding.
            measure: as for `to_goal`.
        """
        xp: Any = jnp if isinstance(states, jax.Array) else np
        states, goal_z = xp.asarray(states), xp.asarray(self.z)
        z = self.h(states)
        if z.shape[-1:] != goal_z.shape:
            raise ConfigError(
                f"h(s) has shape {z.shape}, and the goal z {goal_z.shape}; give Goal an h that maps "
                "observations to goal vectors"
            )
        if embed is None:
            return to_goal(z, goal_z, self.radius)
        at, goal = (z, goal_z) if self.state is None else (states, xp.asarray(self.state))
        phi, goal_phi = embed(at), embed(goal)
        # JAX rounds φ of a batch and of one observation differently.
        at_goal = xp.all(at == goal, axis=tuple(range(at.ndim - goal.ndim, at.ndim)))
        phi = xp.where(at_goal[..., None], goal_phi, phi)
        return to_goal(z, goal_z, self.radius, phi, goal_phi, scale, measure)


@dataclass(frozen=True, eq=False)
class GoalReward:
    """A reward for reaching a goal; call it with s, s' and whether the episode terminated at s'.

    Args:
        form: `sparse`, `l2`, `rawmix`, `laplacian`, `mix` or `potential`.
        goal: the goal.
        representation: φ, for `laplacian`, `mix` and `potential`.
        filter: the spectral filter of its distance, or `hitting`; None is `commute`, or `soft` if φ was not
            rotated.
        gamma: the agent's discount factor, for `potential`.
        scale: factor on the distance in the embedding. For `potential` it should be in steps, so that the
            distance to the goal has the scale of the return. `hitting` counts steps of the behaviour
            policy, many times those of the shortest path.

    Example:
        >>> reward = GoalReward("rawmix", Goal(np.array([1.0, 0.0])))
        >>> float(reward(np.array([0.0, 0.0]), np.array([0.0, 0.0])))
        -1.0
        >>> reward(np.zeros((2, 2)), np.array([[1.0, 0.0], [1.0, 2.0]])).tolist()
        [0.0, -1.5]
    """

    form: RewardForm
    goal: Goal
    representation: Representation | None = None
    filter: Distance | None = None
    gamma: float | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a form that lacks what it needs."""
        check_form(self.form, has_representation=self.representation is not None, gamma=self.gamma)
        if not 0 < self.scale < np.inf:
            raise ConfigError(f"scale must be above 0 and finite, not {self.scale!r}")
        if self.filter is not None:
            check_distance(self.filter)

    def __call__(self, state: Any, next_state: Any, terminated: Any = False) -> Any:
        """The reward of one step or of a batch of steps."""
        gamma = np.nan if self.gamma is None else self.gamma
        here, there = self.distances(state), self.distances(next_state)
        return FORMS[self.form](Step(here, there, terminated, gamma))

    def distances(self, states: Any) -> ToGoal:
        """How far states are from the goal."""
        if self.representation is None or self.form not in SHAPED_BY_PHI:
            return self.goal.distances(states)
        filter = chosen_filter(self.filter, self.representation)
        embed = partial(self.representation.coordinates, filter=filter)
        return self.goal.distances(states, embed, self.scale, measure_of(filter))

    def in_steps(self, states: Any, next_states: Any) -> "GoalReward":
        """The same reward with the distance in the embedding scaled to steps, as `potential` needs it.

        Args:
            states: the states of some transitions.
            next_states: their next states.

        Example:
            >>> import lapwing
            >>> rep = lapwing.learn("TwoRoom", transitions=20_000, dim=5, steps=100, hidden=(32,))
            >>> reward = GoalReward("potential", Goal(np.array([0.125, 0.875])), rep, "commute", gamma=0.98)
            >>> path = np.linspace([-0.8, 0.0], [0.125, 0.875], 10)
            >>> distance = reward.in_steps(path[:-1], path[1:]).distances(path).latent
            >>> round(float(np.abs(np.diff(distance)).mean()), 3)
            1.0
        """
        if self.form not in SHAPED_BY_PHI:
            raise ConfigError(f"reward {self.form!r} uses no distance in the embedding; leave in_steps out")
        here, there = (self.distances(ends).latent for ends in (states, next_states))
        return dataclasses.replace(self, scale=self.scale * one_step_scale(here, there))


def one_step_scale(here: np.ndarray, there: np.ndarray) -> float:
    """What makes the mean change of a distance 1 for a step that changes it at all, as it is for true steps.

    Args:
        here: distances to the goal where steps begin.
        there: distances where they end.

    Example:
        >>> one_step_scale(np.array([0.5, 0.4, 0.4]), np.array([0.4, 0.5, 0.4]))
        10.0
    """
    change = np.abs(np.asarray(there, np.float64) - np.asarray(here, np.float64))
    if not change.any():
        raise ConfigError(
            "the distance to the goal is the same everywhere; learn φ with a larger beta, or choose a filter"
        )
    return 1 / float(np.mean(change[change > 0]))
