"""`lapwing.train`: from a target and a reward to a trained, evaluated and saved agent.

`train_dqn` implements it for mazes and environments, `train_ddpg` for arenas; the shared parts are here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from lapwing.compilation import kept_programs
from lapwing.data.source import GymEnv, Source, describe, read_source
from lapwing.envs.arena import Arena, open_arena
from lapwing.errors import CheckpointError, ConfigError, DatasetError
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import open_target
from lapwing.mazes import Maze, is_arena
from lapwing.progress import OnProgress, uncounted
from lapwing.runs.folder import RunFolder, load
from lapwing.runs.learn import run
from lapwing.settings.agents import AgentSettings, ControlSettings
from lapwing.settings.learn import LearnSettings

if TYPE_CHECKING:
    from lapwing.agents.agent import Agent, ControlAgent

Phi = str | Path | Representation
"""φ as a user names it."""
Outcome = TypeVar("Outcome")
"""A named tuple with an `agent` and a `result`."""


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
) -> "Agent | ControlAgent":
    """Train an agent to reach a goal: DQN in mazes and environments, DDPG in arenas.

    Args:
        target: a maze (`"HardMaze"`, a text file), an arena (`"PointUMaze"`), or `"gym:ENV_ID"` with discrete
            actions.
        representation: φ for a shaped reward: a `Representation`, its file, or a run of `lapwing learn`; None
            learns one first if the reward needs it.
        preset: in mazes, how φ is then learned: `"default"` or `"paper"`; in arenas, all settings of the
            agent: `"quick"` or `"paper"`.
        out: a folder for configuration, metrics, checkpoints and the result; None writes no files.
        overwrite: replace the run in `out`.
        resume: resume the run in `out`.
        on_progress: called with (phase, done, all, metrics); see `lapwing.progress_bar()`.
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
        raise ConfigError("overwrite and resume only work with out; name a run folder")
    how: dict[str, Any] = {"overwrite": overwrite, "resume": resume, "on_progress": on_progress}
    how["representation"] = representation
    path = None if out is None else Path(out)
    if isinstance(target, Arena) or (isinstance(target, str | Path) and is_arena(str(target))):
        from lapwing.runs.train_ddpg import train_control

        chosen = ControlSettings.from_keywords(settings | ({} if preset is None else {"preset": preset}))
        arena = target if isinstance(target, Arena) else open_arena(str(target), goal=chosen.goal_cell)
        return train_control(arena, chosen, path, **how).agent
    from lapwing.runs.train_dqn import recipe_of, train_agent

    source, recipe = read_source(target), recipe_of(preset or "default")
    return train_agent(source, AgentSettings.from_keywords(settings), path, recipe=recipe, **how).agent


def given_or_learned(
    representation: Phi | None, recipe: LearnSettings, *, online: bool
) -> Representation | LearnSettings:
    """φ as it is given, or the recipe to learn it by; one that is learned online is never given."""
    if representation is None:
        return recipe
    if online:
        raise ConfigError("online learns φ while the agent learns; leave --representation or --online out")
    return representation if isinstance(representation, Representation) else load(representation)


def check_online_filter(settings: AgentSettings | ControlSettings) -> None:
    """Refuse a filter of eigenfunctions for a φ that is still being learned."""
    if settings.online and settings.filter not in (None, "soft"):
        raise ConfigError(
            f"filter {settings.filter!r} needs single eigenfunctions, which φ does not have while it is "
            "learned online; leave --filter out"
        )


@kept_programs()
def run_agent(
    source: Source,
    settings: AgentSettings | ControlSettings,
    phi: Representation | LearnSettings | None,
    work: Callable[[RunFolder | None], Outcome],
    reopen: Callable[[Path], Outcome],
    out: Path | None,
    *,
    overwrite: bool,
    resume: bool,
) -> Outcome:
    """What `work` gives, saved if a folder is named; or what an earlier start of the same run has finished.

    Args:
        source: what the agent is trained on.
        settings: of the agent.
        phi: the representation, how it is learned, or None.
        work: trains, with the folder for its checkpoints.
        reopen: reads a finished run.
        out: the folder.
        overwrite: replace the run that is there.
        resume: resume it.
    """
    if out is None:
        return work(None)
    given = {"sha256": phi.sha256()} if isinstance(phi, Representation) else phi and phi.as_json()
    config = {"kind": "agent", "target": describe(source), "settings": settings.as_json(), "phi": given}
    folder = RunFolder(out)
    with folder.opened(config, overwrite=overwrite, resume=resume) as resumed:
        if resumed and folder.finished:
            return reopen(out)
        if not resumed:
            folder.begin(config)
        outcome: Any = work(folder)
        outcome = outcome._replace(result=outcome.result | {"run": str(out)})
        outcome.agent.save(folder.agent)
        folder.finish(outcome.result)
    return outcome


def finished_run(out: Path) -> RunFolder:
    """The folder of a finished run of an agent."""
    folder = RunFolder(out)
    if folder.config().get("kind") != "agent":
        raise ConfigError(f"{out} holds a representation, not an agent; lapwing.load reads it")
    if not folder.finished:
        raise ConfigError(f"{out} holds an unfinished run; resume it with lapwing train … --resume")
    return folder


def learn_phi(
    folder: RunFolder | None, source: Source, recipe: LearnSettings, on_progress: OnProgress | None
) -> Representation:
    """φ learned for an agent; in its run folder, as a run of its own that can be resumed."""
    if folder is None:
        with uncounted("opening", on_progress):
            target = open_target(source, recipe)
        return learn_target(target, recipe, on_progress=on_progress)
    inner = RunFolder(folder.path / "representation")
    with _named_remedy(inner):
        _check_whole(inner)
        return run(source, recipe, inner.path, resume=inner.begun, on_progress=on_progress).representation


def _check_whole(inner: RunFolder) -> None:
    """Refuse a run that has lost what it cannot be resumed without."""
    described = {"target", "settings"} | ({"resolved"} if inner.finished else set())
    if inner.begun and not described <= inner.config().keys():
        raise CheckpointError(f"{inner.path / 'config.json'} is damaged: it does not describe a run")
    if inner.finished and not inner.begun:
        raise CheckpointError(f"{inner.path} holds a run that has lost its config.json")
    if inner.finished and not inner.representation.is_file():
        raise CheckpointError(f"{inner.path} holds a finished run that has lost {inner.representation.name}")


@contextmanager
def _named_remedy(inner: RunFolder) -> Iterator[None]:
    """Of a damaged run of φ, say what to delete: all that is in it can be made again, bit-identically."""
    try:
        yield
    except DatasetError as error:
        if str(inner.experience) not in str(error):
            raise
        raise DatasetError(f"{error}; delete that file, and --resume collects it again") from error
    except CheckpointError as error:
        raise CheckpointError(
            f"{error}; delete the folder {inner.path}, and --resume learns φ again"
        ) from error
