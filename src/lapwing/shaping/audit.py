"""The shaping audit: the effect of a reward on a greedy agent, from the chain, before training.

A shaped reward helps if following it leads to the goal, and hurts if it stops or turns back. In a maze all
this can be computed exactly, and so can the lookahead that an agent needs to compensate.
"""

from dataclasses import dataclass

import numpy as np

from lapwing.laplacian.evaluate import rank_correlation
from lapwing.settings.learn import RewardForm
from lapwing.shaping.rewards import ToGoal
from lapwing.shaping.tasks import GridTask

WITHIN = 2.0
"""A policy counts as good if its mean return is this close to the optimum."""
LONGEST_LOOKAHEAD = 1_000
_TIE = 1e-6
"""Rewards that differ by less than this share of their range look alike."""


@dataclass(frozen=True)
class Audit:
    """What the chain says of one reward."""

    name: str
    correlation: float
    """Rank correlation of what the reward calls far with the true number of steps."""
    local_optima: int
    """States besides the goal where every move looks worse."""
    flat: float
    """Share of states besides the goal where no move looks better, and some as good."""
    astray: float
    """Share of states besides the goal whose greedy step leads away from it; ties count in part."""
    greedy_success: float
    """Share of starts from which taking the best-looking move gets to the goal within an episode."""
    lookahead: int | None
    """How many steps ahead an agent must look to come within 2 of the optimum; None: it never does."""
    best_return: float
    """The mean sparse return of the policy that is optimal for this reward."""
    contrast: float
    """How far the best-looking move stands out from the mean of all, over the rewards' standard deviation."""
    landing: np.ndarray
    """The reward for stepping on each state."""
    optima: np.ndarray
    """The local optima, as states."""

    def as_json(self) -> dict:
        """The numbers, without the maps."""
        return {name: value for name, value in vars(self).items() if name not in ("landing", "optima")}


def audit(task: GridTask, form: RewardForm, to: ToGoal, *, gamma: float, name: str | None = None) -> Audit:
    """Audit one form of reward.

    Args:
        task: the maze and its goal.
        form: the form of the reward.
        to: how far each state is from the goal.
        gamma: the agent's discount.
        name: what the table calls it; the form's name by default.
    """
    rewards, landing = task.rewards(form, to, gamma), task.landing(form, to, gamma)
    better, worse = _compared(task, landing)
    away = np.arange(len(landing)) != task.goal_state
    optima = np.flatnonzero(worse.all(axis=1) & away)
    flat = ~better.any(axis=1) & ~worse.all(axis=1)
    greedy = greedy_policy(rewards)
    further = task.steps[task.world.next_state] > task.steps[:, None]
    policy, lookahead = _planned(task, rewards, gamma)
    return Audit(
        name=name or form,
        correlation=rank_correlation(-landing, task.steps),
        local_optima=len(optima),
        flat=_share(flat, away),
        astray=_share(np.sum(greedy * further, axis=1), away),
        greedy_success=_success(task, greedy),
        lookahead=lookahead,
        best_return=task.mean_return(policy),
        contrast=_share(rewards.max(axis=1) - rewards.mean(axis=1), away) / max(float(rewards.std()), 1e-30),
        landing=landing,
        optima=optima,
    )


def greedy_policy(values: np.ndarray) -> np.ndarray:
    """Probabilities of the actions with the largest value in each state, ties alike."""
    best = values.max(axis=1, keepdims=True)
    tied = values >= best - _TIE * max(float(np.ptp(values)), 1e-30)
    return tied / tied.sum(axis=1, keepdims=True)


def _share(values, among: np.ndarray) -> float:
    """The mean over some states, 0 if there are none."""
    return float(np.sum(values * among) / max(int(among.sum()), 1))


def _compared(task: GridTask, landing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each action in each state: does it lead to what looks better, and does it stay or look worse?"""
    next_state = task.world.next_state
    difference = landing[next_state] - landing[:, None]
    tolerance = _TIE * max(float(np.ptp(landing)), 1e-30)
    stays = next_state == np.arange(len(landing))[:, None]
    return difference > tolerance, (difference < -tolerance) | stays


def _success(task: GridTask, policy: np.ndarray) -> float:
    """The mean over all starts of the probability to have been at the goal by the end of an episode."""
    transition = task.world.transition_matrix(policy)
    at_goal = np.arange(task.world.n_states) == task.goal_state
    reached = at_goal.astype(np.float64)
    for _ in range(task.episode_length):
        reached = np.where(at_goal, 1.0, transition @ reached)
    return float(reached.mean())


def _planned(task: GridTask, rewards: np.ndarray, gamma: float) -> tuple[np.ndarray, int | None]:
    """The policy that value iteration ends at, and after how many sweeps it was good for the first time.

    After k sweeps the greedy policy looks k steps ahead: k = 1 takes the best-looking move. Of moves that are
    equally good but for rounding, the first is taken.
    """
    wanted = task.optimal_return - WITHIN
    value, q, first = np.zeros(len(rewards)), rewards, None
    for sweep in range(1, LONGEST_LOOKAHEAD + 1):
        q = rewards + gamma * value[task.world.next_state]
        if first is None and task.mean_return(_first_best(q)) >= wanted:
            first = sweep
        change, value = float(np.max(np.abs(q.max(axis=1) - value))), q.max(axis=1)
        if change <= 1e-10 * float(np.max(np.abs(rewards))):
            break
    return _first_best(q), first


def _first_best(values: np.ndarray) -> np.ndarray:
    rounding = 1e-9 * max(float(np.ptp(values)), 1e-30)
    return np.argmax(values >= values.max(axis=1, keepdims=True) - rounding, axis=1)


def ranking(audits: list[Audit]) -> list[Audit]:
    """The rewards in the order in which the audit expects them to be learned, the quickest first.

    By how far an agent must look ahead; where that is the same, by how clearly the best move stands out.
    """
    return sorted(audits, key=lambda one: (one.lookahead or np.inf, -one.contrast))
