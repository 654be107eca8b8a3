"""From a target and a reward to a trained, evaluated and saved agent: `lapwing train`, `lapwing.train`."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lapwing._version import __version__
from lapwing.agents.agent import Agent, ControlAgent, load_agent
from lapwing.agents.dqn import Training
from lapwing.agents.episodic import Starts, checked_starts, train_on_env
from lapwing.agents.finite import train_on_maze
from lapwing.data.source import GymEnv, Source, describe, kind_of, read_source, recall
from lapwing.envs.arena import Arena, open_arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.make import make_env
from lapwing.errors import ConfigError, nearest
from lapwing.laplacian.representation import Representation, load_representation
from lapwing.mazes import BUILT_IN, Maze, is_arena
from lapwing.progress import OnProgress
from lapwing.runs.control import train_control
from lapwing.runs.folder import RunFolder, load
from lapwing.runs.in_folder import learned_in, trained_in
from lapwing.runs.shaping import ShapedTask, online_rewards, represented, shaped_task, steps_to_optimum
from lapwing.settings.agents import AgentSettings
from lapwing.settings.control import ControlSettings
from lapwing.settings.learn import PRESETS, LearnSettings, RewardForm
from lapwing.shaping.rewards import SHAPED_BY_PHI
from lapwing.shaping.tasks import GridTask, grid_task

Phi = str | Path | Representation
RECIPES = {
    "default": LearnSettings(transitions=PRESETS["paper-shaping"].transitions),
    "paper": PRESETS["paper-shaping"],
}
"""How φ is learned where none is given: lapwing's way, and the paper's, from as much data."""


class AgentOutcome(NamedTuple):
    """What a run gives: the agent, its measures, and the task if it was a maze."""

    agent: Agent
    result: dict[str, Any]
    shaped: ShapedTask | None


def train(
    target: str | Path | Maze | Arena | GymEnv,
    *,
    representation: Phi | None = None,
    preset: Literal["default", "paper", "quick"] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
    **settings: Any,
) -> Agent | ControlAgent:
    """Train an agent to reach a goal: DQN in mazes and environments, DDPG in arenas.

    Args:
        target: a maze (`"HardMaze"`, a text file), an arena (`"PointUMaze"`), or `"gym:ENV_ID"` with discrete
            actions.
        representation: φ for a shaped reward: a `Representation`, its file, or a run of `lapwing learn`; None
            learns one first if the reward needs it.
        preset: in mazes how φ is then learned: `"default"`, lapwing's way, or `"paper"`; in arenas all of the
            agent's settings: `"quick"`, or `"paper"`.
        out: a folder for configuration, metrics, checkpoints and the result; None writes nothing.
        overwrite: replace the run in `out`.
        resume: go on with the run in `out`.
        on_progress: called with (phase, done, all, metrics); `lapwing.progress_bar()` gives one that draws.
        **settings: any field of `AgentSettings`, or in arenas of `ControlSettings`, for instance
            `reward="mix"` or `steps=8_000`.

    Example:
        >>> import lapwing
        >>> agent = lapwing.train("TwoRoom", reward="l2", random_steps=100, steps=20, hidden=(8,))
        >>> agent.act([0.0, 0.0]) in range(4)
        True
    """
    if isinstance(settings.get("goal"), tuple | list):  # a pair is as good as the command line's text
        settings["goal"] = ",".join(str(number) for number in settings["goal"])
    if out is None and (overwrite or resume):
        raise ConfigError("overwrite and resume go with out; name a run folder")
    folder = {"overwrite": overwrite, "resume": resume, "on_progress": on_progress}
    path = None if out is None else Path(out)
    if isinstance(target, Arena) or (isinstance(target, str | Path) and is_arena(str(target))):
        chosen = ControlSettings.from_keywords(settings | ({} if preset is None else {"preset": preset}))
        source = target if isinstance(target, Arena) else open_arena(str(target), goal=chosen.goal_cell)
        return train_control(source, chosen, path, representation=representation, **folder).agent
    source, preset = read_source(target), preset or "default"
    if preset not in RECIPES:
        raise ConfigError(f"unknown preset {preset!r}; {nearest(str(preset), RECIPES)}")
    known = [field.name for field in dataclasses.fields(AgentSettings)]
    for name in settings:
        if name not in known:
            raise ConfigError(f"unknown setting {name!r}; {nearest(name, known)}")
    agent = AgentSettings(**settings)
    recipe = RECIPES[preset]
    return train_agent(source, agent, path, representation=representation, recipe=recipe, **folder).agent


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
    if out is None:
        return work(None)
    config = _config(source, settings, phi)
    return trained_in(out, config, work, reopen_agent, overwrite=overwrite, resume=resume)


def reopen_agent(out: Path) -> AgentOutcome:
    """A finished run of `lapwing train`: its agent, measures and task."""
    folder = RunFolder(out)
    config = folder.config()
    if config.get("kind") != "agent":
        raise ConfigError(f"{out} holds a representation, not an agent; lapwing.load reads it")
    if not folder.finished:
        raise ConfigError(f"{out} holds an unfinished run; go on with lapwing train … --resume")
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
        _refuse_what_is_for_mazes(settings, representation)
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
    if settings.online:
        _check_online(settings, representation)
        recipe = PRESETS["paper-shaping"]
    if representation is not None:
        return representation if isinstance(representation, Representation) else load(representation)
    if settings.filter not in (None, "soft") and not recipe.rotate:
        raise ConfigError(
            f"filter {settings.filter!r} needs single eigenfunctions, and the paper's preset gives none; "
            "leave --filter or --preset out"
        )
    shared = {name: getattr(settings, name) for name in ("observation", "stay", "episode_length", "seed")}
    return dataclasses.replace(recipe, **shared)


def _check_online(settings: AgentSettings, representation: Phi | None) -> None:
    """φ that is learned beside the agent is as it is: soft, and of no fixed step."""
    if representation is not None:
        raise ConfigError("online learns φ beside the agent; leave --representation or --online out")
    if settings.filter not in (None, "soft"):
        raise ConfigError(
            f"filter {settings.filter!r} needs single eigenfunctions, which φ has none of while it is "
            "learned online; leave --filter out"
        )
    if settings.reward == "potential":
        raise ConfigError(
            "reward 'potential' counts in steps of a φ that stays as it is; use --reward mix with --online"
        )


def _refuse_what_is_for_mazes(settings: AgentSettings, representation: Phi | None) -> None:
    """An option that would do nothing is a misunderstanding."""
    if representation is not None:
        raise ConfigError(
            "representation goes with mazes; in Python, agents.episodic.train_on_env takes a GoalReward"
        )
    for name in ("reward", "filter", "scale", "online", "goal", "observation", "stay", "episode_length"):
        value = getattr(settings, name)
        if value != getattr(AgentSettings(), name):
            raise ConfigError(
                f"{name}={value!r} goes with mazes, and this target is an environment; leave it out"
            )


def _config(
    source: Maze | GymEnv, settings: AgentSettings, phi: Representation | LearnSettings | None
) -> dict[str, Any]:
    given = {"sha256": phi.sha256()} if isinstance(phi, Representation) else phi and phi.as_json()
    return {"kind": "agent", "target": describe(source), "settings": settings.as_json(), "phi": given}


def _train(
    source: Maze | GymEnv,
    settings: AgentSettings,
    phi: Representation | LearnSettings | None,
    task: GridTask | None,
    shaped: ShapedTask | None,
    on_progress: OnProgress | None,
    folder: RunFolder | None,
) -> AgentOutcome:
    on_chunk = on_progress and (lambda *chunk: on_progress("training", *chunk))
    starts = Starts(0, 0)
    if task is None:
        assert isinstance(source, GymEnv)
        make = partial(make_env, source.env_id)
        starts = checked_starts(make)
        training, spec = train_on_env(make, settings, checkpoints=folder, on_chunk=on_chunk)
        measures: dict[str, Any] = {"target": source.env_id}
    else:
        assert isinstance(source, Maze)
        learn_agent = partial(train_on_maze, task, settings=settings, checkpoints=folder, on_chunk=on_chunk)
        if isinstance(phi, LearnSettings) and settings.online:
            recipe, online = phi, online_rewards(task, settings, phi)
            training, spec = learn_agent(online)
            phi = represented(task, recipe, online, training)
        else:
            if isinstance(phi, LearnSettings):
                phi = learned_in(folder, source, phi, on_progress)
            shaped = shaped or shaped_task(task, settings, phi)
            training, spec = learn_agent(shaped.rewards)
        if phi is not None and folder is not None:
            phi.save(folder.representation)
        shaped = shaped or shaped_task(task, settings, phi)
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
