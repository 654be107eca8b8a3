"""The shaped reward of an agent in a maze: from a φ that is there, or from one that is learned beside it."""

import dataclasses
from typing import NamedTuple

import numpy as np

from lapwing.agents.dqn import Training
from lapwing.agents.finite import OnlineRewards
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.learn import represent
from lapwing.laplacian.online import PhiLearner
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import open_target
from lapwing.laplacian.train import encoder_spec, untrained_encoder
from lapwing.settings.agents import AgentSettings
from lapwing.settings.learn import LearnSettings
from lapwing.shaping.audit import WITHIN, Audit, audit
from lapwing.shaping.rewards import SHAPED_BY_PHI, ToGoal, chosen_filter
from lapwing.shaping.tasks import GridTask, default_scale, embedded_states


class ShapedTask(NamedTuple):
    """A goal in a maze with the reward that leads to it."""

    task: GridTask
    to: ToGoal
    rewards: np.ndarray
    audit: Audit


def shaped_task(task: GridTask, settings: AgentSettings, representation: Representation | None) -> ShapedTask:
    """The rewards that the settings ask for, with their audit."""
    form, embedded, scale = settings.reward, None, 1.0
    assert form is not None
    if representation is not None and form in SHAPED_BY_PHI:
        filter = chosen_filter(settings.filter, representation)
        embedded = embedded_states(task.world, settings.observation, representation, filter)
        scale = settings.scale or default_scale(task, form, filter, embedded)
    to = task.distances(embedded, scale)
    rewards = task.rewards(form, to, settings.gamma)
    return ShapedTask(task, to, rewards, audit(task, form, to, gamma=settings.gamma))


def steps_to_optimum(evaluated_at: np.ndarray, returns: np.ndarray, optimum: float) -> int | None:
    """After how many steps the return first came within 2 of the optimum; None: it never did.

    Example:
        >>> steps_to_optimum(np.array([500, 1000, 1500]), np.array([-40.0, -20.5, -19.0]), -19.0)
        1000
    """
    good = returns >= optimum - WITHIN
    return int(evaluated_at[np.argmax(good)]) if good.any() else None


def online_rewards(task: GridTask, settings: AgentSettings, recipe: LearnSettings) -> OnlineRewards:
    """An untrained φ of the recipe, and the reward that it shapes as it is learned."""
    target = open_target(task.world.maze, recipe)
    encoder = untrained_encoder(target, resolve(recipe, target))
    assert settings.reward is not None
    return OnlineRewards(
        PhiLearner.of(recipe),
        encoder,
        settings.reward,
        task.goal_state,
        task.distances(),
        settings.scale or 1.0,
    )


def represented(
    task: GridTask, recipe: LearnSettings, online: OnlineRewards, training: Training
) -> Representation:
    """φ as it was at the end, with its eigenfunctions over random steps."""
    target = open_target(task.world.maze, recipe)
    settings = resolve(dataclasses.replace(recipe, lam_final=online.learner.lam_final), target)
    assert training.phi is not None
    return represent(target, settings, training.phi, encoder_spec(target, settings))
