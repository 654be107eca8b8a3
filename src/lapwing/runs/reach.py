"""`lapwing reach` and `lapwing.reach`: a goal-reaching policy, in memory or in a run folder."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lapwing._version import __version__
from lapwing.compilation import kept_programs
from lapwing.data.collect import Policy
from lapwing.data.experience import Experience
from lapwing.data.ogbench import OGBenchData
from lapwing.data.source import DataFile, GymEnv, MinariData, Source, describe, read_source, recall_to_collect
from lapwing.envs.arena import Arena
from lapwing.envs.make import make_env
from lapwing.errors import ConfigError, LapwingWarning, warn
from lapwing.laplacian.representation import Representation, load_representation
from lapwing.laplacian.target import Target, open_target
from lapwing.progress import OnProgress, uncounted
from lapwing.reaching.build import build_reacher, check_actions, learn_geometry, recipe
from lapwing.reaching.files import as_json, load_reacher
from lapwing.reaching.reacher import Reacher, short
from lapwing.reaching.worlds import (
    MAZE_STEPS,
    TASKS,
    ArenaWorld,
    Episodes,
    GymWorld,
    MazeWorld,
    PlaneWorld,
    PointMazeWorld,
    World,
    goal_of,
    roll_out,
)
from lapwing.runs.folder import RunFolder, load
from lapwing.settings.checks import check_known
from lapwing.settings.reach import ReachSettings
from lapwing.timing import stopwatch

EPISODES = 50
"""Random goals; of OGBench's tasks so many for each."""
GYM_EPISODES = 20
KIND = "reacher"


class ReachOutcome(NamedTuple):
    """What a run gives; there are no episodes where there is nothing to act in."""

    reacher: Reacher
    result: dict[str, Any]
    target: Target
    episodes: Episodes | None


@kept_programs()
def reach(
    target: str | Path | Source | Iterable[Any],
    *,
    representation: str | Path | Representation | None = None,
    policy: Policy | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
    **settings: Any,
) -> Reacher:
    """A policy that goes from any state to any goal, from data with actions.

    Args:
        target: data with actions (an .npz or HDF5 file, `"ogbench:NAME"`, `"minari:NAME"`, episodes as dicts
            of `observations` and `actions`, an `Experience`), or what data is collected from: a maze
            (`"FourRoom"`), a plane (`"PlaneHardMaze"`), an arena (`"PointUMaze"`), `"gym:ENV_ID"`, or an
            environment.
        representation: φ of the same observations; None learns it.
        policy: what acts in a Gymnasium environment while data is collected; None is random.
        out: a folder for configuration and result; None writes nothing and evaluates nothing.
        overwrite: replace the run in `out`.
        resume: resume the run in `out`.
        on_progress: called with (phase, done, all, metrics); `lapwing.progress_bar()` gives one that draws.
        **settings: any field of `ReachSettings`, for instance `landmarks=200`.

    Example:
        >>> import lapwing
        >>> reacher = lapwing.reach("TwoRoom", transitions=50_000, dim=10, steps=100)
        >>> reacher.act([0.125, 0.125], [0.875, 0.875]) in range(4)
        True
    """
    check_known(settings, ReachSettings())
    chosen, source = ReachSettings(**settings), read_source(target)
    phi = representation if isinstance(representation, Representation | None) else load(representation)
    if out is None:
        if overwrite or resume:
            raise ConfigError("overwrite and resume only work with out; name a run folder")
        opened = _open(source, chosen, policy, None, on_progress)
        return _build(opened, chosen, phi, None, on_progress)
    how = {"overwrite": overwrite, "resume": resume, "on_progress": on_progress, "policy": policy}
    return run_reach(source, chosen, Path(out), representation=phi, **how).reacher


@kept_programs()
def run_reach(
    source: Source,
    settings: ReachSettings,
    out: Path,
    *,
    representation: str | Path | Representation | None = None,
    policy: Policy | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> ReachOutcome:
    """Make a reacher in a run folder and evaluate it, or resume the run that was interrupted there."""
    given = representation if isinstance(representation, Representation | None) else load(representation)
    folder = RunFolder(out)
    config = {
        "kind": KIND,
        "target": describe(source),
        "settings": settings.as_json(),
        "phi": None if given is None else {"sha256": given.sha256()},
    }
    with folder.opened(config, overwrite=overwrite, resume=resume) as resumed:
        if resumed and folder.finished:
            return reopen_reach(out)
        target = _open(source, settings, policy, folder.experience if resumed else None, on_progress)
        check_actions(target.experience, target.name)
        if not resumed:
            folder.begin(config)
        _keep_experience(folder, target)
        with stopwatch() as watch:
            reacher = _build(target, settings, given, folder, on_progress)
        reacher.save(folder.reacher)
        seconds = watch.working + watch.compiling
        outcome = _evaluated(reacher, target, source, settings, out, seconds, on_progress)
        folder.finish(outcome.result)
    return outcome


def reopen_reach(out: Path) -> ReachOutcome:
    """A finished run, for `lapwing evaluate`: evaluated anew."""
    folder = RunFolder(out)
    config = folder.config()
    if config.get("kind") != KIND:
        raise ConfigError(f"{out} holds no reacher; lapwing reach makes one")
    if not folder.finished:
        raise ConfigError(f"{out} holds an unfinished run; resume it with lapwing reach … --resume")
    settings, reacher = folder.settings(ReachSettings), load_reacher(folder.reacher)
    source = recall_to_collect(config["target"], folder.experience, None)
    acts_in = read_world(config["target"])
    target = _open(source, settings, None, folder.experience, None, collected=isinstance(source, Experience))
    seconds = folder.result()["seconds"]
    return _evaluated(reacher, target, source if acts_in is None else acts_in, settings, out, seconds, None)


def read_world(described: dict[str, Any]) -> Source | None:
    """The environment that a run's data was collected in, if it can be opened by its name."""
    return GymEnv(described["id"]) if described.get("kind") == "gym" and "id" in described else None


def _open(
    source: Source,
    settings: ReachSettings,
    policy: Policy | None,
    kept: Path | None,
    on_progress: OnProgress | None,
    *,
    collected: bool = False,
) -> Target:
    """Open a target; what was collected for the run is not collected again.

    Args:
        source: what to open.
        settings: how much to collect.
        policy: what acts.
        kept: where an earlier start of the run may have saved what it collected.
        on_progress: called while steps are taken.
        collected: whether the source is what was collected, which these settings do not apply to.
    """
    more: dict[str, Any] = {"observation": "state"} if isinstance(source, Arena) else {}
    if collected:
        default = ReachSettings()
        more |= {
            name: getattr(default, name) for name in ("transitions", "observation_key", "past_termination")
        }
    collecting = on_progress and (lambda done, all_: on_progress("collecting", done, all_, {}))
    return open_target(
        source, recipe(settings, **more), policy=policy, collected=kept, on_progress=collecting
    )


def _build(
    target: Target,
    settings: ReachSettings,
    representation: Representation | None,
    folder: RunFolder | None,
    on_progress: OnProgress | None,
) -> Reacher:
    experience = check_actions(target.experience, target.name)
    phi = representation
    if settings.geometry == "phi" and phi is None:
        phi = _learned(target, settings, folder, on_progress)
    taken = None if phi is None else (phi.spec.shrinking or phi.spec).shape
    if taken is not None and taken != experience.observation_shape:
        raise ConfigError(
            f"φ takes observations of shape {taken}, and those of {target.name} have shape "
            f"{experience.observation_shape}; learn φ of the same observations"
        )
    return build_reacher(experience, phi, settings, name=target.name, on_progress=on_progress)


def _learned(
    target: Target, settings: ReachSettings, folder: RunFolder | None, on_progress: OnProgress | None
) -> Representation:
    """φ, which a run keeps as soon as it is there."""
    if folder is not None and folder.representation.is_file():
        return load_representation(folder.representation)
    phi = learn_geometry(target, settings, on_progress)
    if folder is not None:
        phi.save(folder.representation)
    return phi


def _evaluated(
    reacher: Reacher,
    target: Target,
    source: Source,
    settings: ReachSettings,
    out: Path,
    seconds: float,
    on_progress: OnProgress | None,
) -> ReachOutcome:
    world, count = world_of(reacher, target, source)
    episodes = None
    if world is not None:
        with uncounted("evaluating", on_progress):
            episodes = evaluate_reacher(reacher, world, count, settings.seed, more_data(source))
    result = {
        "target": target.name,
        "success": None if episodes is None else float(episodes.reached.mean()),
        "episodes": 0 if episodes is None else count,
        "mean_steps": None if episodes is None else float(episodes.steps.mean()),
        "goals_outside": 0 if episodes is None else int(_failed_outside(reacher, episodes).sum()),
        "by_task": by_task(episodes) if isinstance(world, PointMazeWorld) else None,
        "regenerated": isinstance(source, OGBenchData),
        "transitions": check_actions(target.experience, target.name).n_transitions,
        "seconds": seconds,
        "settings": settings.as_json(),
        "run": str(out),
        "version": __version__,
    }
    return ReachOutcome(reacher, result | as_json(reacher), target, episodes)


def evaluate_reacher(reacher: Reacher, world: World, count: int, seed: int, remedy: str) -> Episodes:
    """Episodes to the goals of a world; one whose goal is outside of the data fails, and is warned of.

    Args:
        reacher: what is evaluated.
        world: where.
        count: how many episodes.
        seed: of starts, goals and chance.
        remedy: how to get data of such goals.
    """
    episodes = roll_out(reacher.act, world, count, seed, outside=reacher.outside)
    failed = np.flatnonzero(_failed_outside(reacher, episodes))
    if len(failed):
        first = int(failed[0])
        task = f" of task {first * TASKS // count + 1}" if isinstance(world, PointMazeWorld) else ""
        warn(
            f"{len(failed)} of {count} evaluation goals are outside of what the data visited, and count as "
            f"failed: {short(episodes.goals[first])}{task} is the first; {remedy}",
            LapwingWarning,
        )
    return episodes


def _failed_outside(reacher: Reacher, episodes: Episodes) -> np.ndarray:
    return reacher.outside(episodes.goals) & ~episodes.reached


def more_data(source: Source) -> str:
    """How a source gives more data."""
    if isinstance(source, OGBenchData):
        return f"make more than {source.size[0]:,} episodes (episodes=NUMBER after the name)"
    if isinstance(source, Experience | DataFile | MinariData):
        return "learn from more episodes, some of which go there"
    return "raise transitions to collect more"


def by_task(episodes: Episodes | None) -> list[float] | None:
    """The share of goals reached in each of OGBench's tasks."""
    if episodes is None:
        return None
    return [float(part.mean()) for part in np.array_split(episodes.reached, TASKS)]


def world_of(reacher: Reacher, target: Target, source: Source) -> tuple[World | None, int]:
    """Where the reacher can be evaluated, and by how many episodes; nowhere if all there is is data."""
    if isinstance(source, OGBenchData):
        return PointMazeWorld(source.name.split("-")[1]), TASKS * EPISODES
    if target.world is not None and target.states is not None:
        return MazeWorld(target.world, target.states), EPISODES
    if target.plane is not None:
        return PlaneWorld(target.plane), EPISODES
    if target.arena is not None:
        return ArenaWorld(target.arena, whole=reacher.places.shape[0] > 2), EPISODES
    world = _gym_world(reacher, source) if isinstance(source, GymEnv) else None
    return world, GYM_EPISODES if world else 0


def _gym_world(reacher: Reacher, source: GymEnv) -> GymWorld | None:
    """The environment, if it gives goals; goals that are no states of the reacher's are warned of."""
    env = make_env(source.env_id)
    try:
        reacher.check_env(env)
        goal = goal_of(*env.reset(seed=0))
    finally:
        env.close()
    if goal is None:
        return None
    if goal.shape != reacher.places.shape:
        warn(
            f"{source.env_id} gives goals of shape {goal.shape}, and states have shape "
            f"{reacher.places.shape}, so it was not evaluated; --observation-key achieved_goal makes states "
            "of what goals are made of",
            LapwingWarning,
        )
        return None
    limit = env.spec.max_episode_steps if env.spec else None
    return GymWorld(partial(make_env, source.env_id), reacher.seen, limit or MAZE_STEPS)


def _keep_experience(folder: RunFolder, target: Target) -> None:
    if target.experience is not None and target.file is None and not folder.experience.is_file():
        target.experience.save(folder.experience)
