"""Training DQN in a maze or an environment: `lapwing train HardMaze`.

The reward of a maze is shaped by a φ that is given, learned first, or learned online.
"""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lapwing._version import __version__
from lapwing.agents.agent import Agent, load_agent
from lapwing.agents.dqn import Training
from lapwing.agents.dqn_gym import Starts, checked_starts, train_on_env
from lapwing.agents.dqn_maze import train_on_maze
from lapwing.agents.evaluation import first_step
from lapwing.data.source import GymEnv, Source, kind_of, read_source, recall
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.make import make_env
from lapwing.errors import ConfigError, nearest
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.coverage import Coverage, warn_if_thin
from lapwing.laplacian.distances import euclidean, measure_of
from lapwing.laplacian.learn import represent
from lapwing.laplacian.representation import Representation, load_representation
from lapwing.laplacian.target import open_target
from lapwing.laplacian.train import encoder_spec, untrained_encoder
from lapwing.mazes import BUILT_IN, Maze
from lapwing.progress import OnProgress, report_begin, uncounted, within
from lapwing.runs.folder import RunFolder
from lapwing.runs.train import (
    Phi,
    check_online_filter,
    finished_run,
    given_or_learned,
    learn_phi,
    run_agent,
)
from lapwing.settings.agents import AgentSettings, check_for_environment
from lapwing.settings.learn import PRESETS, LearnSettings, RewardForm
from lapwing.shaping.audit import WITHIN, Audit, audit
from lapwing.shaping.online import OnlineRewards, PhiLearner
from lapwing.shaping.rewards import SHAPED_BY_PHI, ToGoal, chosen_filter
from lapwing.shaping.tasks import GridTask, default_scale, embedded_states, grid_task

RECIPES = {
    "default": LearnSettings(transitions=PRESETS["paper-shaping"].transitions),
    "paper": PRESETS["paper-shaping"],
}
"""How φ is learned where none is given: lapwing's defaults, or the paper's recipe, from as much data."""


class ShapedTask(NamedTuple):
    """A goal in a maze with the reward that leads to it."""

    task: GridTask
    to: ToGoal
    rewards: np.ndarray
    audit: Audit


class AgentOutcome(NamedTuple):
    """What a run gives: the agent, its measures, and the task if it was a maze."""

    agent: Agent
    result: dict[str, Any]
    shaped: ShapedTask | None


def recipe_of(preset: str) -> LearnSettings:
    """How the preset of this name learns φ."""
    if preset not in RECIPES:
        raise ConfigError(f"unknown preset {preset!r}; {nearest(str(preset), RECIPES)}")
    return RECIPES[preset]


def train_agent(
    target: str | Path | Source,
    settings: AgentSettings,
    out: Path | None,
    *,
    representation: Phi | None = None,
    recipe: LearnSettings = RECIPES["default"],
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> AgentOutcome:
    """The work of `train`, with every result; `recipe` says how φ is learned if none is given."""
    source = read_source(target)
    if not isinstance(source, Maze | GymEnv):
        raise ConfigError(
            f"an agent acts in {', '.join(BUILT_IN)}, a maze .txt, an arena or gym:ENV_ID, and this is "
            f"{kind_of(source)}; for agents of your own there are wrappers, such as lapwing.LaplacianReward"
        )
    if isinstance(source, Maze):
        default: RewardForm = "mix" if settings.online else "potential"
        settings = dataclasses.replace(settings, reward=settings.reward or default)
    phi = _phi(source, settings, representation, recipe)
    task = _task(source, settings)
    # What can be refused is refused before anything is written.
    shaped = None if isinstance(phi, LearnSettings) or task is None else shaped_task(task, settings, phi)
    work = partial(_train, source, settings, phi, task, shaped, on_progress)
    return run_agent(source, settings, phi, work, reopen_agent, out, overwrite=overwrite, resume=resume)


def reopen_agent(out: Path) -> AgentOutcome:
    """A finished run of `lapwing train`: its agent, measures and task."""
    folder = finished_run(out)
    config = folder.config()
    settings = folder.settings(AgentSettings)
    task = _task(recall(config["target"], folder.experience), settings)
    phi = load_representation(folder.representation) if config["phi"] else None
    shaped = None if task is None else shaped_task(task, settings, phi)
    agent = load_agent(folder.agent)
    assert isinstance(agent, Agent)
    return AgentOutcome(agent, folder.result(), shaped)


def _task(source: Source, settings: AgentSettings) -> GridTask | None:
    if not isinstance(source, Maze):
        return None
    return grid_task(GridWorld(source, settings.stay), settings.goal_cell, settings.episode_length)


def _phi(
    source: Maze | GymEnv, settings: AgentSettings, representation: Phi | None, recipe: LearnSettings
) -> Representation | LearnSettings | None:
    """φ as it is given, or how to learn it seeing what the agent sees, or None if it is not needed."""
    learned = isinstance(source, Maze) and representation is None and settings.reward in SHAPED_BY_PHI
    if recipe.preset != "default" and not learned:
        raise ConfigError("preset says how φ is learned, and none is learned here; leave --preset out")
    if isinstance(source, GymEnv):
        check_for_environment(settings, representation)
        checked_starts(partial(make_env, source.env_id))
        return None
    if settings.reward not in SHAPED_BY_PHI:
        if representation is not None:
            raise ConfigError(
                f"reward {settings.reward!r} uses no representation; leave --representation out"
            )
        for name in ("filter", "scale", "online"):
            if getattr(settings, name):
                raise ConfigError(f"reward {settings.reward!r} uses no {name}; leave --{name} out")
        return None
    check_online_filter(settings)
    if settings.online and settings.reward == "potential":
        raise ConfigError(
            "reward 'potential' needs a φ that is fixed; leave --online out, or use --reward mix with it"
        )
    recipe = PRESETS["paper-shaping"] if settings.online else recipe
    if representation is None and settings.filter not in (None, "soft") and not recipe.rotate:
        raise ConfigError(
            f"filter {settings.filter!r} needs single eigenfunctions, and the paper's preset gives none; "
            "leave --filter or --preset out"
        )
    shared = {name: getattr(settings, name) for name in ("observation", "stay", "episode_length", "seed")}
    return given_or_learned(representation, dataclasses.replace(recipe, **shared), online=settings.online)


def _train(
    source: Maze | GymEnv,
    settings: AgentSettings,
    phi: Representation | LearnSettings | None,
    task: GridTask | None,
    shaped: ShapedTask | None,
    on_progress: OnProgress | None,
    folder: RunFolder | None,
) -> AgentOutcome:
    on_chunk = within("training", on_progress)
    starts = Starts(0, 0)
    if task is None:
        assert isinstance(source, GymEnv)
        make = partial(make_env, source.env_id)
        starts = checked_starts(make)
        report_begin(on_chunk, settings.steps)
        training, spec = train_on_env(make, settings, checkpoints=folder, on_chunk=on_chunk)
        measures: dict[str, Any] = {"target": source.env_id}
    else:
        assert isinstance(source, Maze)
        learn_agent = partial(train_on_maze, task, settings=settings, checkpoints=folder, on_chunk=on_chunk)
        if isinstance(phi, LearnSettings) and settings.online:
            report_begin(on_chunk, settings.steps)
            recipe, online = phi, online_rewards(task, settings, phi)
            training, spec = learn_agent(online)
            phi = represented(task, recipe, online, training)
        else:
            if isinstance(phi, LearnSettings):
                phi = learn_phi(folder, source, phi, on_progress)
            report_begin(on_chunk, settings.steps)
            shaped = shaped or shaped_task(task, settings, phi)
            _warn_of_thin_goal(task, settings, phi)
            training, spec = learn_agent(shaped.rewards)
        if phi is not None and folder is not None:
            phi.save(folder.representation)
        shaped = shaped or shaped_task(task, settings, phi)
        with uncounted("evaluating", on_progress):
            measures = _maze_measures(shaped, training)
    result = measures | {
        "reward": settings.reward,
        "return": float(training.returns[-1]),
        "evaluated_at": training.evaluated_at.tolist(),
        "returns": training.returns.tolist(),
        "train_seconds": training.seconds,
        "compile_seconds": training.compile_seconds,
        "settings": settings.as_json(),
        "version": __version__,
    }
    config = {"target": measures["target"], "settings": settings.as_json()}
    return AgentOutcome(Agent(training.q, spec, config, *starts), result, shaped)


def _maze_measures(shaped: ShapedTask, training: Training) -> dict[str, Any]:
    task = shaped.task
    return {
        "target": task.world.maze.name,
        "goal": list(task.goal_cell),
        "optimal_return": task.optimal_return,
        "steps_to_optimum": steps_to_optimum(training.evaluated_at, training.returns, task.optimal_return),
        "audit": shaped.audit.as_json(),
    }


def shaped_task(task: GridTask, settings: AgentSettings, representation: Representation | None) -> ShapedTask:
    """The rewards that the settings ask for, with their audit."""
    form, embedded, scale, measure = settings.reward, None, 1.0, euclidean
    assert form is not None
    if representation is not None and form in SHAPED_BY_PHI:
        filter = chosen_filter(settings.filter, representation)
        embedded = embedded_states(task.world, settings.observation, representation, filter)
        scale, measure = settings.scale or default_scale(task, form, filter, embedded), measure_of(filter)
    to = task.distances(embedded, scale, measure)
    rewards = task.rewards(form, to, settings.gamma)
    return ShapedTask(task, to, rewards, audit(task, form, to, gamma=settings.gamma))


def _warn_of_thin_goal(task: GridTask, settings: AgentSettings, phi: Representation | None) -> None:
    """Say so if φ has hardly seen the goal."""
    if phi is not None and settings.reward in SHAPED_BY_PHI:
        filter = chosen_filter(settings.filter, phi)
        goal = embedded_states(task.world, settings.observation, phi, filter)[task.goal_state]
        remedy = "give a --representation of data that comes to the goal, as from more --transitions"
        warn_if_thin(Coverage.of(phi, filter), goal, remedy, stacklevel=5)


def steps_to_optimum(evaluated_at: np.ndarray, returns: np.ndarray, optimum: float) -> int | None:
    """After how many steps the return first came within 2 of the optimum; None: it never did.

    Example:
        >>> steps_to_optimum(np.array([500, 1000, 1500]), np.array([-40.0, -20.5, -19.0]), -19.0)
        1000
    """
    return first_step(evaluated_at, returns >= optimum - WITHIN)


def online_rewards(task: GridTask, settings: AgentSettings, recipe: LearnSettings) -> OnlineRewards:
    """An untrained φ of the recipe, and the reward that it shapes as it is learned."""
    target = open_target(task.world.maze, recipe)
    encoder = untrained_encoder(target, resolve(recipe, target), stream=5)  # 0 to 3 are the agent's
    assert settings.reward is not None
    return OnlineRewards(PhiLearner.of(recipe), encoder, settings.reward, task, settings.scale or 1.0)


def represented(
    task: GridTask, recipe: LearnSettings, online: OnlineRewards, training: Training
) -> Representation:
    """φ as it was at the end, with its eigenfunctions over random steps."""
    target = open_target(task.world.maze, recipe)
    settings = resolve(dataclasses.replace(recipe, lam_final=online.learner.lam_final), target)
    assert training.phi is not None
    return represent(target, settings, training.phi, encoder_spec(target, settings))
