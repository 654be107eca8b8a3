"""`lapwing options` and `lapwing.discover_options`: in memory or in a run folder."""

from pathlib import Path
from typing import Any, NamedTuple

from lapwing._version import __version__
from lapwing.compilation import kept_programs
from lapwing.data.source import GymEnv, Source, describe, read_source, recall
from lapwing.envs.arena import Arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.plane import Plane
from lapwing.errors import ConfigError
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import Representation, load_representation
from lapwing.laplacian.target import open_target
from lapwing.mazes import Maze
from lapwing.options.option_set import MazeOptions, OptionSet, load_options
from lapwing.options.purpose import option_count
from lapwing.progress import OnProgress, uncounted
from lapwing.runs.folder import RunFolder, load
from lapwing.runs.option_maze import (
    Functions,
    check_maze,
    default_count,
    exact_functions,
    learned_functions,
    make_table,
    measured,
)
from lapwing.runs.option_networks import COUNT, DIM, check_networks, factory_of, followed, network_options
from lapwing.settings.checks import check_known
from lapwing.settings.learn import LearnSettings
from lapwing.settings.options import OptionsSettings

KIND = "options"
MAZE_DIM = 33
"""So many eigenfunctions give 64 options."""


class OptionsOutcome(NamedTuple):
    """What a run gives."""

    options: OptionSet
    result: dict[str, Any]
    world: GridWorld | None
    """The maze, where it is one."""
    floor: Plane | Arena | None = None
    """What walls are drawn of, where states are continuous."""


@kept_programs()
def discover_options(
    target: str | Path | Source,
    *,
    representation: str | Path | Representation | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
    **settings: Any,
) -> OptionSet:
    """Options from eigenfunctions, for `LaplacianOptions`.

    Args:
        target: a maze (`"FourRoom"`, a text file), whose options are computed exactly; or a plane
            (`"PlaneFourRoom"`), an arena (`"PointUMaze"`) or `"gym:ENV_ID"`, where DQN learns them, or DDPG
            where actions are continuous.
        representation: φ of the same observations; None learns it, and `exact=True` needs none.
        out: a folder for configuration, options and measures; None writes nothing and measures nothing.
        overwrite: replace the run in `out`.
        resume: resume the run in `out`.
        on_progress: called with (phase, done, all, metrics); `lapwing.progress_bar()` gives one that draws.
        **settings: any field of `OptionsSettings`, for instance `count=8` or `kind="covering"`.

    Example:
        >>> import lapwing
        >>> lapwing.discover_options("FourRoom", count=4, exact=True).names
        ('f2+', 'f2-', 'f3+', 'f3-')
    """
    check_known(settings, OptionsSettings())
    chosen, source = OptionsSettings(**settings), read_source(target)
    if out is not None:
        how = {"overwrite": overwrite, "resume": resume, "on_progress": on_progress}
        return run_options(source, chosen, Path(out), representation=representation, **how).options
    if overwrite or resume:
        raise ConfigError("overwrite and resume only work with out; name a run folder")
    given = _given(representation, chosen)
    _check(source, chosen, given)
    return _made(source, chosen, given, None, on_progress)[0]


@kept_programs()
def run_options(
    source: Source,
    settings: OptionsSettings,
    out: Path,
    *,
    representation: str | Path | Representation | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> OptionsOutcome:
    """Make options in a run folder and measure them, or resume the run that was interrupted there."""
    given, folder = _given(representation, settings), RunFolder(out)
    _check(source, settings, given)
    config = {
        "kind": KIND,
        "target": describe(source),
        "settings": settings.as_json(),
        "phi": None if given is None else {"sha256": given.sha256()},
    }
    with folder.opened(config, overwrite=overwrite, resume=resume) as resumed:
        if resumed and folder.finished:
            return reopen_options(out)
        if not resumed:
            folder.begin(config)
        options, rows = _made(source, settings, given, folder, on_progress, measure=True)
        options.save(folder.options)
        world = GridWorld(source) if isinstance(source, Maze) else None
        result = {
            "target": options.config["target"],
            "kind": settings.kind,
            "options": len(options),
            "states": None if world is None else world.n_states,
            "learner": learner_of(options),
            "rows": rows,
            "settings": settings.as_json(),
            "run": str(out),
            "version": __version__,
        }
        folder.finish(result)
    return OptionsOutcome(options, result, world, _floor(source))


def learner_of(options: OptionSet) -> str | None:
    """What trained the policies; those of mazes are computed.

    Example:
        >>> learner_of(discover_options("TwoRoom", count=2, exact=True)) is None
        True
    """
    if isinstance(options, MazeOptions):
        return None
    return "DQN" if options.bounds is None else "DDPG"


def reopen_options(out: Path) -> OptionsOutcome:
    """A finished run, for `lapwing evaluate`: what was measured, to be drawn again."""
    folder = RunFolder(out)
    config = folder.config()
    if config.get("kind") != KIND:
        raise ConfigError(f"{out} holds no options; lapwing options makes some")
    if not folder.finished:
        raise ConfigError(f"{out} holds an unfinished run; resume it with lapwing options … --resume")
    source, world, result = None, None, folder.result()
    if config["target"]["kind"] in ("maze", "plane", "arena"):
        source = recall(config["target"], folder.experience)
        world = GridWorld(source) if isinstance(source, Maze) else None
    if world is None and not ("learner" in result and all("ways" in row for row in result["rows"])):
        raise ConfigError(f"{out} is of an earlier version, which kept no paths; run lapwing options again")
    return OptionsOutcome(load_options(folder.options), result, world, _floor(source))


def _floor(source: Source | None) -> Plane | Arena | None:
    """Where continuous states have walls."""
    return source if isinstance(source, Plane | Arena) else None


def _check(source: Source, settings: OptionsSettings, given: Representation | None) -> None:
    """Refuse what cannot be done before anything is learned."""
    if settings.observation_key is not None and not isinstance(source, GymEnv):
        raise ConfigError(
            f"observation_key={settings.observation_key!r} only works with gym:ENV_ID; leave it out"
        )
    if isinstance(source, Maze):
        world = GridWorld(source)
        check_maze(world, settings)
        if given is not None:
            _check_same_maze(given, world)
    else:
        check_networks(factory_of(source, settings.observation_key), settings, given)
    if given is not None:
        option_count(given, settings.count, COUNT)
    elif settings.dim is not None and (settings.count or 0) > 2 * (settings.dim - 1):
        raise ConfigError(
            f"count={settings.count} needs dim={_dim_for(settings.count or 0)} or more, the constant and an "
            f"eigenfunction for two options, not {settings.dim}; raise dim, or leave it out"
        )


def _given(
    representation: str | Path | Representation | None, settings: OptionsSettings
) -> Representation | None:
    given = representation if isinstance(representation, Representation | None) else load(representation)
    if given is not None and (settings.exact or settings.dim is not None):
        what = "exact" if settings.exact else f"dim={settings.dim}"
        raise ConfigError(f"{what} goes without a representation of your own; leave one of them out")
    return given


def _made(
    source: Source,
    settings: OptionsSettings,
    given: Representation | None,
    folder: RunFolder | None,
    on_progress: OnProgress | None,
    *,
    measure: bool = False,
) -> tuple[OptionSet, list[dict[str, Any]]]:
    if isinstance(source, Maze):
        return _in_maze(source, settings, given, folder, on_progress, measure)
    factory = factory_of(source, settings.observation_key)
    dim = settings.dim or max(DIM, _dim_for(settings.count or COUNT))
    phi = given or _learned(source, settings, dim, folder, on_progress)
    options = network_options(factory, phi, settings, on_progress)
    options.config.update(target=_name(source), settings=settings.as_json())
    rows: list[dict[str, Any]] = []
    if measure:
        with uncounted("measuring", on_progress):
            rows = followed(factory.make, options, phi, settings)
    return options, rows


def _in_maze(
    maze: Maze,
    settings: OptionsSettings,
    given: Representation | None,
    folder: RunFolder | None,
    on_progress: OnProgress | None,
    measure: bool,
) -> tuple[MazeOptions, list[dict[str, Any]]]:
    world = GridWorld(maze)
    count = default_count(settings, 2 * (world.n_states - 1))
    dim = min(settings.dim or max(MAZE_DIM, _dim_for(count)), world.n_states)
    seen, sources = "position", {}
    if settings.exact:
        sources["exact"] = _exact(world, dim, settings, None)
    else:
        phi = given or _learned(maze, settings, dim, folder, on_progress)
        count = option_count(phi, settings.count, count)
        seen = phi.config.get("settings", {}).get("observation", "position")
        sources["learned"] = learned_functions(world.observations(seen), phi)
        if measure:
            sources["exact"] = _exact(world, phi.dim, settings, sources["learned"])
    functions = next(iter(sources.values()))
    table = make_table(world, functions, count, settings)
    config = {"target": maze.name, "maze": maze.text, "settings": settings.as_json()}
    longest = settings.longest or world.n_states
    options = MazeOptions(table, world.observations(seen), world.n_actions, longest, config)
    return options, measured(world, sources, settings, on_progress) if measure else []


def _exact(world: GridWorld, dim: int, settings: OptionsSettings, learned: Functions | None) -> Functions:
    """Covering options change the graph, whose eigenfunctions need all of the old ones."""
    return exact_functions(world, world.n_states if settings.kind == "covering" else dim, learned)


def _check_same_maze(phi: Representation, world: GridWorld) -> None:
    text = phi.config.get("maze")
    if text is not None and text.strip() != world.maze.text.strip():
        raise ConfigError(
            f"this φ was learned in {phi.config.get('target')}, and the target is {world.maze.name}; "
            "learn φ in the same maze"
        )


def _learned(
    source: Source,
    settings: OptionsSettings,
    dim: int,
    folder: RunFolder | None,
    on_progress: OnProgress | None,
) -> Representation:
    """φ, which a run keeps as soon as it is there."""
    if folder is not None and folder.representation.is_file():
        return load_representation(folder.representation)
    key = settings.observation_key
    recipe = LearnSettings(dim=dim, transitions=settings.transitions, observation_key=key, seed=settings.seed)
    collecting = on_progress and (lambda done, total: on_progress("collecting", done, total, {}))
    target = open_target(source, recipe, on_progress=collecting)
    phi = learn_target(target, recipe, on_progress=on_progress)
    if folder is not None:
        phi.save(folder.representation)
    return phi


def _dim_for(count: int) -> int:
    """The constant, and an eigenfunction for two options."""
    return 1 + (count + 1) // 2


def _name(source: Source) -> str:
    if isinstance(source, GymEnv):
        return source.env_id
    assert isinstance(source, Plane | Arena)
    return source.name
