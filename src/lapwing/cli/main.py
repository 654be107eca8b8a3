"""The command line: `lapwing learn`, `evaluate`, `explore`, `reach`, `train` and the others.

Results go to standard output, everything else to standard error. A mistake of the user's is one sentence
and exit code 2. Heavy modules are imported only when a command runs, so that `--help` is quick.
"""

import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapwing.cli.option_names import as_typed
from lapwing.cli.options import (
    Audit,
    Data,
    Evaluate,
    Explore,
    Learn,
    Reach,
    Reproduce,
    RunOptions,
    Solve,
    Train,
    TrainInArena,
)
from lapwing.cli.parse import parse
from lapwing.errors import ConfigError, DatasetError, LapwingError, LapwingNote, LapwingWarning

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from lapwing.figures.reproduce import Reproduced
    from lapwing.progress import OnProgress
    from lapwing.runs.learn import Outcome
    from lapwing.runs.reach import ReachOutcome
    from lapwing.runs.train_ddpg import ControlOutcome
    from lapwing.runs.train_dqn import AgentOutcome


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 2 on a user's mistake."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a console or a pipe that has no φ gets a question mark
            stream.reconfigure(errors="replace")
    try:
        command = parse(arguments)
        _show_warnings_as_lines()
        _COMMANDS[type(command)](command)
    except LapwingError as error:
        print(f"lapwing: {as_typed(str(error))}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:  # a folder that is gone, unreadable, or whose name is too long
        print(f"lapwing: {error.filename or 'the system'}: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("lapwing: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _in_folder(
    command: Learn | Train | TrainInArena | Reach,
    work: Callable[..., Any],
    show: Callable[..., None],
    ending: str = "",
) -> None:
    """Do the work in the folder that is named, or a new one, with a progress bar; then show the outcome."""
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.compilation import kept_programs

    if command.resume and command.out is None:
        raise ConfigError("resume needs --out, the folder of the run to resume")
    console, out = stderr_console(), command.out or _new_folder(command.target, ending)
    options = {"out": out, "overwrite": command.overwrite, "resume": command.resume}
    with kept_programs():
        with _resumable(out, console), progress_bar(console) as bar, _logged(command, out, bar) as log:
            outcome = work(**options, on_progress=log)
            if command.log:
                log("result", 1, 1, _numbers_in(outcome.result))
        with _held(out):
            show(outcome, out, console, as_json=command.json)


@contextmanager
def _logged(command: RunOptions, out: Path, bar: "OnProgress") -> Iterator["OnProgress"]:
    """The callback of the bar, and with it what `--log` asks for."""
    if not command.log:
        yield bar
        return
    from lapwing.integrations.metric_logger import metric_logger

    board = Path("runs") / "tensorboard" / out.name if "tensorboard" in command.log else None
    run = {"project": "lapwing", "name": out.name} if "wandb" in command.log else None
    with metric_logger(tensorboard=board, wandb=run, also=bar) as log:
        yield log


def _numbers_in(result: dict[str, Any]) -> dict[str, float]:
    """The single numbers among the measures."""
    return {name: value for name, value in result.items() if isinstance(value, int | float)}


def _learn(command: Learn) -> None:
    from lapwing.data.source import read_source
    from lapwing.runs.learn import run

    if not command.target:
        raise ConfigError(
            "name a target: lapwing learn FourRoom, a maze .txt, a data .npz or .hdf5, gym:ENV_ID, "
            "minari:NAME, or ogbench:NAME"
        )
    settings = command.settings()
    _in_folder(command, partial(run, read_source(command.target), settings), _show)


def _data(command: Data) -> None:
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.cli.report import inspection_table
    from lapwing.progress import uncounted
    from lapwing.runs.inspect import inspect

    console = stderr_console()
    with progress_bar(console) as on_progress, uncounted("inspecting", on_progress):
        found = inspect(command.source, command.observation_key, command.keys)
    if command.json:
        print(json.dumps(found.as_json()))
    else:
        console.print(inspection_table(found))
    if found.problem is not None:
        raise DatasetError(found.problem)


def _evaluate(command: Evaluate) -> None:
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.compilation import kept_programs
    from lapwing.runs.folder import RunFolder
    from lapwing.runs.learn import reopen
    from lapwing.runs.reach import reopen_reach
    from lapwing.runs.train_ddpg import reopen_control
    from lapwing.runs.train_dqn import reopen_agent

    out, console, config = command.run, stderr_console(), RunFolder(command.run).config()
    is_agent = config.get("kind") == "agent"
    if is_agent and command.env is not None:
        raise ConfigError(f"{out} holds an agent, which is not trained again; leave --env out")
    with kept_programs(), _held(out):
        if config.get("kind") == "reacher":
            _show_reach(reopen_reach(out), out, console, as_json=command.json)
        elif is_agent and config["target"]["kind"] == "arena":
            _show_control(reopen_control(out), out, console, as_json=command.json)
        elif is_agent:
            _show_agent(reopen_agent(out), out, console, as_json=command.json)
        else:
            with progress_bar(console) as on_progress:
                outcome = reopen(out, command.env, on_progress=on_progress)
            _show(outcome, out, console, as_json=command.json)


@contextmanager
def _held(out: Path) -> Iterator[None]:
    """Keep other processes from writing to a run folder while its pictures are drawn."""
    from lapwing.runs.folder import RunFolder

    with RunFolder(out).held():
        yield


def _explore(command: Explore) -> None:
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.exploring.explore import explore, opened_in_browser

    console = stderr_console()
    with progress_bar(console) as on_progress:
        path = explore(command.run, out=command.out, show=False, on_progress=on_progress)
    console.print(f"{path}: the page, {path.stat().st_size / 1e6:.2f} MB", soft_wrap=True)
    if command.open and not opened_in_browser(path):
        console.print("no browser was found; open the page in one", soft_wrap=True)
    if command.json:
        print(json.dumps({"page": str(path), "bytes": path.stat().st_size}))


def _audit(command: Audit) -> None:
    from lapwing.cli.agent_report import ABOUT_AUDIT, audit_table, draw_comparison
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.progress import uncounted
    from lapwing.runs.compare import compare_rewards
    from lapwing.settings.agents import read_cell

    if not command.targets:
        raise ConfigError("name a maze or a run: lapwing audit HardMaze")
    goal = None if command.goal is None else read_cell(command.goal)
    console = stderr_console()
    with progress_bar(console) as on_progress, uncounted("comparing", on_progress):
        comparison = compare_rewards(
            command.targets, goal=goal, gamma=command.gamma, episode_length=command.episode_length
        )
    out = command.out or Path("runs") / f"{comparison.task.world.maze.name}-audit"
    with progress_bar(console) as on_progress, uncounted("drawing", on_progress):
        pictures = draw_comparison(comparison, out)
    console.print(audit_table(comparison))
    for name, source in comparison.sources.items():
        console.print(f"{name}: {source}")
    console.print(ABOUT_AUDIT, style="dim", soft_wrap=False)
    console.print(f"{pictures[0]}: the maps")
    if command.json:
        print(json.dumps([audit.as_json() for audit in comparison.audits], allow_nan=False))


def _solve(command: Solve) -> None:
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.cli.solve_report import draw_solved, solved_table
    from lapwing.runs.solve_maze import solve_maze
    from lapwing.settings.agents import read_cell

    if not command.target or command.reward is None:
        raise ConfigError("name a maze and a reward: lapwing solve FourRoom --reward goal=1,1")
    start = None if command.start is None else read_cell(command.start, "start")
    console = stderr_console()
    with progress_bar(console) as on_progress:
        solved = solve_maze(
            command.target,
            command.reward,
            gamma=command.gamma,
            dim=command.dim,
            start=start,
            on_progress=on_progress,
        )
    out = command.out or Path("runs") / f"{solved.world.maze.name}-solve"
    picture = draw_solved(solved, out)
    console.print(solved_table(solved))
    console.print(f"{picture}: reward, value, moves and path")
    if command.json:
        print(json.dumps(solved.result, allow_nan=False))


def _train(command: Train) -> None:
    from lapwing.runs.train_dqn import RECIPES, train_agent

    if not command.target:
        raise ConfigError("name a target: lapwing train HardMaze, a maze .txt, or gym:ENV_ID")
    settings, recipe = command.settings(), RECIPES[command.preset]
    work = partial(
        train_agent, command.target, settings, representation=command.representation, recipe=recipe
    )
    _in_folder(command, work, _show_agent, f"-{settings.reward or 'agent'}")


def _train_in_arena(command: TrainInArena) -> None:
    from lapwing.envs.arena import open_arena
    from lapwing.runs.train_ddpg import train_control

    settings = command.settings()
    arena = open_arena(command.target, goal=settings.goal_cell)
    work = partial(train_control, arena, settings, representation=command.representation)
    _in_folder(command, work, _show_control, f"-{settings.reward}")


def _reach(command: Reach) -> None:
    from lapwing.data.source import read_source
    from lapwing.runs.reach import run_reach

    if not command.target:
        raise ConfigError(
            "name a target: lapwing reach ogbench:pointmaze-medium-navigate, PlaneHardMaze, data.npz"
        )
    source, settings = read_source(command.target), command.settings()
    work = partial(run_reach, source, settings, representation=command.representation)
    _in_folder(command, work, _show_reach, "-reach")


def _reproduce(command: Reproduce) -> None:
    from lapwing.cli.progress import dashboard, stderr_console
    from lapwing.figures import FIGURES, find_study
    from lapwing.figures.reproduce import figures_with, reproduce

    console = stderr_console()
    figures = FIGURES if command.figure == "all" else (find_study(command.figure).name,)
    figures = figures_with(figures, command.preset, command.seeds, command.only)
    failed = False
    for figure in figures:
        try:
            with dashboard(console) as on_status:
                made = reproduce(
                    figure,
                    preset=command.preset,
                    out=command.out,
                    jobs=_cores() if command.jobs is None else command.jobs,
                    seeds=command.seeds,
                    only=command.only,
                    draw_only=command.draw_only,
                    retry=command.retry,
                    overwrite=command.overwrite,
                    on_status=on_status,
                )
        except KeyboardInterrupt:
            words = " without --overwrite" if command.overwrite else ""
            console.print(f"lapwing: to resume, give the same command again{words}")
            raise
        _show_figure(made, console)
        failed = failed or bool(made.failures)
    if failed:
        raise SystemExit(1)


@contextmanager
def _resumable(out: Path, console: "Console") -> Iterator[None]:
    """Say how to resume, if the work is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        console.print(f"lapwing: to resume, give the same command with --out {out} --resume")
        raise


def _cores() -> int:
    """The cores that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _show_figure(made: "Reproduced", console: "Console") -> None:
    from lapwing.cli.progress import in_words

    if made.runs:
        words = f"{made.study.name}: {made.done} of {len(made.runs)} runs are in {made.files[0]}"
        console.print(f"{words} ({in_words(made.seconds)})")
    for run, error in made.failures.items():
        console.print(f"failed: {run}: {error}")
    if made.failures:
        console.print("try them again with --retry")
    for path in made.files:
        print(path)


def _new_folder(target: str, ending: str = "") -> Path:
    """runs/FourRoom, or runs/FourRoom-2 and so on where that is taken."""
    own = target.rpartition(".py:")[2]  # of gym:FILE.py:CLASS, the class
    name = Path(own.replace(":", "-")).stem + ending
    taken = [
        Path("runs") / name,
        *(Path("runs") / f"{name}-{number}" for number in range(2, 10_000)),
    ]
    return next(path for path in taken if not path.exists())


def _show(outcome: "Outcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.report import draw_all, report

    _show_run(outcome, report, draw_all, out, console, as_json)


def _show_agent(outcome: "AgentOutcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.agent_report import agent_table, draw_agent

    _show_run(outcome, agent_table, draw_agent, out, console, as_json)


def _show_control(outcome: "ControlOutcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.agent_report import control_table, draw_control

    _show_run(outcome, control_table, draw_control, out, console, as_json)


def _show_reach(outcome: "ReachOutcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.reach_report import draw_reach, reach_table

    _show_run(outcome, reach_table, draw_reach, out, console, as_json)


def _show_run(
    outcome: Any,
    report: Callable[[Any], "RenderableType"],
    draw: Callable[[Any, Path], list[Path]],
    out: Path,
    console: "Console",
    as_json: bool,
) -> None:
    from lapwing.cli.progress import progress_bar
    from lapwing.progress import uncounted

    with progress_bar(console) as on_progress, uncounted("drawing", on_progress):
        pictures = draw(outcome, out / "figures")
    console.print(f"{out}: the run; {out / 'figures'}: {', '.join(p.name for p in pictures)}")
    console.print(report(outcome))
    if as_json:
        print(json.dumps(outcome.result, allow_nan=False))


def _show_warnings_as_lines() -> None:
    original = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, LapwingWarning):
            kind = "note" if issubclass(category, LapwingNote) else "warning"
            print(f"{kind}: {as_typed(str(message))}", file=sys.stderr)
        else:
            original(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    warnings.simplefilter("always", LapwingWarning)


_COMMANDS: dict[type, Callable[[Any], None]] = {
    Learn: _learn,
    Data: _data,
    Evaluate: _evaluate,
    Explore: _explore,
    Audit: _audit,
    Solve: _solve,
    Train: _train,
    TrainInArena: _train_in_arena,
    Reach: _reach,
    Reproduce: _reproduce,
}
