"""The effect of each action, learned once from steps: the part of a policy that no reward changes.

If states are enumerated, every visited state is a landmark, and the successors of an action are counted.
Otherwise landmarks are spread in an embedding. The effect of an action at a landmark is that of the nearest
steps with that action: their displacement in the embedding, added to the landmark. A reward then needs only
value iteration over the landmarks, and an observation is mapped to them by its embedding.

Nothing here is linear in φ. Features φ(s) ⊗ a, the usual choice, cannot represent which way a corridor turns:
`python -m benchmarks rewards` shows what they achieve.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

from lapwing.errors import LapwingWarning, warn
from lapwing.laplacian.batches import is_single
from lapwing.solving.dynamic_programming import checked_gamma, value_iteration
from lapwing.solving.landmarks import nearest, shares, spread
from lapwing.solving.rewards import Reward, labelled, of_function, of_states
from lapwing.solving.steps import Steps

Embed = Callable[[np.ndarray], np.ndarray]
LANDMARKS = 1_000
NEIGHBOURS = 4
"""So many landmarks share a state between them, where states are not enumerated."""
NEAREST_STEPS = 5
"""So many steps say what an action does at a landmark, where states are not enumerated."""


@dataclass(frozen=True, eq=False, repr=False)
class ActionModel:
    """What `lapwing.action_model` returns; `solve` gives the policy of a reward."""

    embed: Embed
    """From a batch of observations to the embedding that landmarks are compared in."""
    shape: tuple[int, ...]
    """Of one observation; () for an index."""
    transition: sparse.csr_array
    """P(landmark | landmark, action), with row action · landmarks + landmark."""
    seen: np.ndarray
    """Whether an action was seen at a landmark, (landmarks, actions)."""
    landmarks: np.ndarray
    """The embedding of each landmark."""
    samples: np.ndarray
    """Observations that a reward is evaluated at."""
    cell: np.ndarray
    """The landmark that stands for each sample."""
    states: np.ndarray | None
    """Which of the enumerated states each landmark is; None where states are not enumerated."""
    n_states: int | None

    def __repr__(self) -> str:
        landmarks, actions = self.seen.shape
        return f"ActionModel({landmarks:,} landmarks, {actions} actions, observations of shape {self.shape})"

    def solve(self, reward: Reward, gamma: float = 0.98) -> "Policy":
        """The policy with the largest return Σ_t γ^t r(s_{t+1}), as far as this model knows.

        Args:
            reward: of arriving in a state: a function from a batch of observations to a number each; an array
                with a number for each enumerated state; or a pair of observations and their rewards.
            gamma: the discount.
        """
        return self.policy(self.rewards(reward), gamma)

    def policy(self, rewards: np.ndarray, gamma: float) -> "Policy":
        """The same for the reward of arriving at each landmark."""
        gamma = checked_gamma(gamma)
        arrived = rewards[np.unique(self.transition.indices)]
        if len(rewards) > 1 and not (len(arrived) and np.ptp(arrived) > 0):
            warn(
                "all states that a step in the data arrives at have the same reward, so any policy is as "
                "good; give steps that arrive where the reward is another: if episodes end there, with the "
                "observation after the last action",
                LapwingWarning,
            )
        return Policy(self, rewards, gamma, value_iteration(self.transition, rewards, gamma, self.seen))

    def rewards(self, reward: Reward) -> np.ndarray:
        """The reward of arriving at each landmark: the mean over the samples that it stands for."""
        if isinstance(reward, tuple):
            return self._of_labels(*labelled(reward, self.shape))
        if callable(reward):
            return self._mean(of_function(reward, self.samples), self.cell)
        values = of_states(reward, self.n_states)
        return values[self.states]

    def _of_labels(self, observations: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Landmarks without a labelled observation have the reward of the nearest one that has some."""
        cell = nearest(self.tree, self.embed(observations), 1)[1][:, 0]
        known = np.unique(cell)
        closest = nearest(KDTree(self.landmarks[known]), self.landmarks, 1)[1][:, 0]
        return self._mean(values, cell)[known[closest]]

    def _mean(self, values: np.ndarray, cell: np.ndarray) -> np.ndarray:
        count = np.bincount(cell, minlength=len(self.landmarks))
        return np.bincount(cell, values, len(self.landmarks)) / np.maximum(count, 1)

    @cached_property
    def tree(self) -> KDTree:
        """The landmarks, to find the nearest."""
        return KDTree(self.landmarks)

    def shares(self, observations: np.ndarray) -> sparse.csr_array:
        """How much each landmark stands for each of a batch of observations."""
        neighbours = NEIGHBOURS if self.states is None else 1
        return shares(self.tree, self.embed(observations), neighbours)


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """What `lapwing.solve` returns. Every method takes one observation or a batch."""

    model: ActionModel
    rewards: np.ndarray
    """The reward of arriving at each landmark."""
    gamma: float
    q_table: np.ndarray
    """Q at each landmark, (landmarks, actions); -∞ where an action was never seen."""

    def __repr__(self) -> str:
        return f"Policy(gamma={self.gamma:g}, {self.model!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from lapwing.plots.notebooks import policy_html

        return policy_html(self)

    def save(self, path: str | Path) -> None:
        """Write one .safetensors file, φ and the model inside, checked by SHA-256 when it is loaded."""
        from lapwing.solving.files import save_policy

        save_policy(self, path)

    def q(self, observations) -> np.ndarray:
        """Q(s, a) of each action: the return of a, and of the best actions after it."""
        batch = np.asarray(observations)
        single = is_single(batch.shape, self.model.shape)
        found = self.model.shares(batch[None] if single else batch)
        q = _blend(found, self.q_table)
        return q[0] if single else q

    def values(self, observations) -> Any:
        """The return that the policy expects."""
        return self.q(observations).max(axis=-1)

    def act(self, observations) -> Any:
        """The best action, a number, or one for each of a batch."""
        actions = self.q(observations).argmax(axis=-1)
        return int(actions) if actions.ndim == 0 else actions


def _blend(found: sparse.csr_array, q_table: np.ndarray) -> np.ndarray:
    """Q as the landmarks share it that know the action; -∞ if none does."""
    known = np.isfinite(q_table)
    weight = found @ known.astype(np.float64)
    total = found @ np.where(known, q_table, 0.0)
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), -np.inf)


def fit_model(embed: Embed, steps: Steps, *, landmarks: int = LANDMARKS) -> ActionModel:
    """What each action does.

    Args:
        embed: from a batch of observations to an embedding in which those are near that lead to the same.
        steps: to learn from.
        landmarks: how many there are where states are not enumerated.
    """
    return _counted(embed, steps) if steps.enumerated else _local(embed, steps, landmarks)


def _counted(embed: Embed, steps: Steps) -> ActionModel:
    """Every state that was seen as a landmark, and what followed each action there, counted."""
    states, indices = np.unique(np.concatenate([steps.here, steps.there]), return_inverse=True)
    here, there = indices.reshape(2, -1)
    size, actions = len(states), steps.n_actions
    rows = steps.action.astype(np.int64) * size + here
    counts = sparse.coo_array((np.ones(len(rows)), (rows, there)), shape=(size * actions, size)).tocsr()
    total = np.asarray(counts.sum(axis=1)).reshape(-1)
    transition = sparse.csr_array(sparse.diags_array(1 / np.maximum(total, 1)) @ counts)
    samples = steps.observations[states]
    return ActionModel(
        embed=embed,
        shape=steps.observations.shape[1:],
        transition=transition,
        seen=(total > 0).reshape(actions, size).T,
        landmarks=embed(samples),
        samples=samples,
        cell=np.arange(size),
        states=states,
        n_states=len(steps.observations),
    )


def _local(embed: Embed, steps: Steps, count: int) -> ActionModel:
    """Landmarks spread over the steps, and what each action did near them."""
    points = embed(steps.observations)
    landmarks = points[spread(points, count)]
    tree, actions = KDTree(landmarks), steps.n_actions
    parts, seen = [], np.zeros((len(landmarks), actions), bool)
    for action in range(actions):
        taken = np.flatnonzero(steps.action == action)
        seen[:, action] = len(taken) > 0
        parts.append(_moved(tree, points[steps.here[taken]], points[steps.there[taken]]))
    return ActionModel(
        embed=embed,
        shape=steps.observations.shape[1:],
        transition=sparse.csr_array(sparse.vstack(parts)),
        seen=seen,
        landmarks=landmarks,
        samples=steps.observations,
        cell=nearest(tree, points, 1)[1][:, 0],
        states=None,
        n_states=None,
    )


def _moved(landmarks: KDTree, here: np.ndarray, there: np.ndarray) -> sparse.csr_array:
    """Where an action leads from each landmark, as shares of landmarks: the mean over the nearest steps."""
    if not len(here):
        return sparse.csr_array((landmarks.n, landmarks.n))
    closest = nearest(KDTree(here), landmarks.data, NEAREST_STEPS)[1]
    reached = [shares(landmarks, landmarks.data + (there - here)[column], NEIGHBOURS) for column in closest.T]
    return sparse.csr_array(sum(reached[1:], reached[0]) / len(reached))
