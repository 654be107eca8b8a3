"""A goal in a maze, as tables over its states: true distances, rewards, and the exact return of a policy."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lapwing.envs.gridworld import GridWorld, Observation
from lapwing.errors import ConfigError
from lapwing.laplacian.chain import multi_step_eigenvalues, true_chain
from lapwing.laplacian.distances import euclidean, mean_distance, measure_of, spectral_weights
from lapwing.laplacian.objectives.drawing import surviving_scale
from lapwing.laplacian.representation import Representation
from lapwing.settings.learn import Distance, RewardForm
from lapwing.shaping.rewards import (
    FORMS,
    Measure,
    Step,
    ToGoal,
    action_rewards,
    check_form,
    one_step_scale,
    to_goal,
)


@dataclass(frozen=True)
class GridTask:
    """Reach a cell of a maze; the episode continues there until the time limit.

    Example:
        >>> from lapwing.mazes import read_maze
        >>> task = grid_task(GridWorld(read_maze("HardMaze")))
        >>> round(task.optimal_return, 3)
        -18.98
    """

    world: GridWorld
    goal_state: int
    episode_length: int = 50

    @property
    def goal_cell(self) -> tuple[int, int]:
        """(row, column) of the goal."""
        row, column = self.world.cells[self.goal_state]
        return int(row), int(column)

    @cached_property
    def steps(self) -> np.ndarray:
        """The fewest moves to the goal from each state."""
        return self.world.steps_to(self.goal_state)

    @cached_property
    def optimal_return(self) -> float:
        """The largest mean over all starts of the sparse return, by dynamic programming."""
        rewards = (self.world.next_state == self.goal_state) - 1.0
        value = np.zeros(self.world.n_states)
        for _ in range(self.episode_length):
            value = np.max(rewards + value[self.world.next_state], axis=1)
        return float(value.mean())

    def mean_return(self, policy: np.ndarray) -> float:
        """The mean over all starts of the sparse return of a policy, which is an action for each state."""
        return self.returns(policy).mean().item()

    def returns(self, policy: np.ndarray) -> np.ndarray:
        """The sparse return from each start."""
        return -np.sum(self.walks(policy)[1:] != self.goal_state, axis=0).astype(np.float64)

    def walks(self, policy: np.ndarray) -> np.ndarray:
        """Where a policy is after each step from each start: (episode_length + 1, states)."""
        states = np.arange(self.world.n_states)
        moves = self.world.next_state[states, policy]
        walks = [states]
        for _ in range(self.episode_length):
            walks.append(moves[walks[-1]])
        return np.stack(walks)

    def distances(self, embedded: Any = None, scale: float = 1.0, measure: Measure = euclidean) -> ToGoal:
        """How far each state is from the goal; `embedded` is φ of each state, in NumPy or JAX."""
        z = self.world.observations("position")
        goal_phi = None if embedded is None else embedded[self.goal_state]
        return to_goal(z, z[self.goal_state], 0.0, embedded, goal_phi, scale, measure)

    def rewards(self, form: RewardForm, to: ToGoal, gamma: float) -> np.ndarray:
        """The reward of each action in each state."""
        check_form(form, has_representation=not np.isnan(to.latent).any(), gamma=gamma)
        return action_rewards(form, to, self.world.next_state, gamma)

    def landing(self, form: RewardForm, to: ToGoal, gamma: float) -> np.ndarray:
        """The part of the reward that depends on where a step leads: what a greedy agent climbs."""
        at_goal = ToGoal(*(values[self.goal_state] for values in to))
        return FORMS[form](Step(at_goal, to, False, gamma))

    def one_step_scale(self, embedded: np.ndarray, measure: Measure = euclidean) -> float:
        """What makes the distance to the goal change by 1 with a move, on average."""
        latent = self.distances(embedded, measure=measure).latent
        there = latent[self.world.next_state]
        return one_step_scale(np.broadcast_to(latent[:, None], there.shape), there)


def default_scale(task: GridTask, form: RewardForm, filter: Distance, embedded: np.ndarray) -> float:
    """What φ's distance is multiplied by, by default.

    `potential` counts it in steps. Otherwise `soft` stays as it was learned, where δ is its scale; the other
    filters get a mean distance to the goal of 1, as much as a step costs that does not reach it.
    """
    latent = task.distances(embedded, measure=measure_of(filter)).latent
    if not latent.any():  # no dimension survived: there is nothing to scale
        return 1.0
    if form == "potential":
        return task.one_step_scale(embedded, measure_of(filter))
    return 1.0 if filter == "soft" else 1 / float(np.abs(latent).mean())  # `hitting` can be below 0


def grid_task(world: GridWorld, goal: tuple[int, int] | None = None, episode_length: int = 50) -> GridTask:
    """The task of reaching `goal` (row, column), or the maze's own goal."""
    if goal is not None:
        return GridTask(world, world.check_cell(goal), episode_length)
    if world.goal_state is None:
        raise ConfigError(f"{world.maze.name} has no cell marked G; name one with --goal ROW,COLUMN")
    return GridTask(world, world.goal_state, episode_length)


def embedded_states(
    world: GridWorld, observation: Observation, representation: Representation, filter: Distance
) -> np.ndarray:
    """φ of every state as a distance compares it; a φ of another maze or input is refused."""
    learned, settings = representation.config, representation.config.get("settings", {})
    name = world.maze.name
    if learned.get("maze") != world.maze.text:
        raise ConfigError(
            f"the representation was learned on {learned.get('target')}, not on this maze {name}; "
            f"learn one with lapwing learn {name}"
        )
    if settings.get("observation", observation) != observation:
        raise ConfigError(
            f"the representation sees {settings['observation']}, not {observation}; give "
            f"--observation {settings['observation']}, or learn one with --observation {observation}"
        )
    return np.asarray(representation.coordinates(world.observations(observation), filter), np.float64)


def exact_embedding(
    world: GridWorld,
    filter: Distance,
    *,
    dim: int = 20,
    lam: float = 0.9,
    beta: float = 5.0,
    delta: float = 0.05,
) -> np.ndarray:
    """What φ converges to, from the chain's own eigenvectors: a filter can be judged before φ is learned.

    `soft` weighs eigenfunctions by √(δ - λ_i/(2β)), with λ_i of P_λ; the others have its mean distance, and
    `hitting` counts in steps. The constant, which adds nothing to a distance, is left out.

    Args:
        world: the maze.
        filter: `soft`, `unit`, `commute`, `biharmonic`, `heat` or `hitting`.
        dim: how many eigenfunctions, the constant among them.
        lam: λ of the multi-step transitions.
        beta: β, the weight of the penalty.
        delta: δ, the penalty's target.
    """
    eigenvalues, functions = true_chain(world.transition_matrix()).eigenpairs(min(dim, world.n_states))
    eigenvalues, functions = eigenvalues[1:], functions[:, 1:]
    soft = functions * surviving_scale(multi_step_eigenvalues(eigenvalues, lam), beta, delta)
    if filter == "soft" or not len(eigenvalues):
        return soft
    weighted = functions * spectral_weights(eigenvalues, filter)
    if filter == "hitting":
        return weighted
    return weighted * (mean_distance(soft) or 1.0) / mean_distance(weighted)
