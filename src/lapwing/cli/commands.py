"""The implementation of each `lapwing` command.

Heavy modules are imported only when a command runs, so that `--help` is fast.
"""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapwing.cli.arguments import (
    Audit,
    Data,
    Evaluate,
    Explore,
    Learn,
    Options,
    Reach,
    Reproduce,
    Solve,
    Train,
    TrainInArena,
)
from lapwing.cli.program import program
from lapwing.cli.running import held, new_folder, run_in_folder, show_run
from lapwing.errors import ConfigError, DatasetError, LapwingNote

if TYPE_CHECKING:
    from rich.console import Console

    from lapwing.figures.reproduce import Reproduced
    from lapwing.runs.learn import Outcome
    from lapwing.runs.options import OptionsOutcome
    from lapwing.runs.reach import ReachOutcome
    from lapwing.runs.solve_maze import Solved
    from lapwing.runs.train_ddpg import ControlOutcome
    from lapwing.runs.train_dqn import AgentOutcome


def _learn(command: Learn) -> None:
    from lapwing.data.source import read_source
    from lapwing.runs.learn import run

    if command.hosts is not None:
        from lapwing.cli.hosts import learn_on_hosts

        learn_on_hosts(command)
    settings = command.settings()
    run_in_folder(command, partial(run, read_source(command.target), settings), _show)


def _data(command: Data) -> None:
    if command.action == "shard":
        return _shard(command)
    if command.shards is not None or command.out is not None:
        raise ConfigError("shards and out only work with lapwing data shard; leave them out")
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


def _shard(command: Data) -> None:
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.data.files import as_keys
    from lapwing.data.shards import shard
    from lapwing.progress import within

    if command.shards is None:
        raise ConfigError("shards must be given: lapwing data shard FOLDER --shards 8")
    if command.observation_key is not None:
        raise ConfigError("observation_key only works with lapwing data inspect; leave it out")
    console = stderr_console()
    with progress_bar(console) as on_progress:
        on_shard = within("sharding", on_progress)
        keys = as_keys(command.keys)
        folder = shard(command.source, command.shards, command.out, keys=keys, on_shard=on_shard)
    console.print(f"{folder}: {command.shards} shards; {program()} learn {folder}", soft_wrap=True)
    if command.json:
        print(json.dumps({"folder": str(folder), "shards": command.shards}))


def _evaluate(command: Evaluate) -> None:
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.compilation import kept_programs
    from lapwing.runs.folder import RunFolder
    from lapwing.runs.learn import reopen
    from lapwing.runs.options import reopen_options
    from lapwing.runs.reach import reopen_reach
    from lapwing.runs.solve_maze import reopen_solved
    from lapwing.runs.train_ddpg import reopen_control
    from lapwing.runs.train_dqn import reopen_agent
    from lapwing.solving.files import NAME

    out, console = command.run, stderr_console()
    if (out / NAME).is_file():
        return _show_solved(reopen_solved(out), out, console, as_json=command.json)
    config = RunFolder(out).config()
    is_agent = config.get("kind") == "agent"
    if is_agent and command.env is not None:
        raise ConfigError(f"{out} holds an agent, which is not trained again; leave --env out")
    with kept_programs(), held(out):
        if config.get("kind") == "reacher":
            _show_reach(reopen_reach(out), out, console, as_json=command.json)
        elif config.get("kind") == "options":
            _show_options(reopen_options(out), out, console, as_json=command.json)
        elif is_agent and config["target"]["kind"] == "arena":
            _show_control(reopen_control(out), out, console, as_json=command.json)
        elif is_agent:
            _show_agent(reopen_agent(out), out, console, as_json=command.json)
        else:
            with progress_bar(console) as on_progress:
                outcome = reopen(out, command.env, on_progress=on_progress)
            _show(outcome, out, console, as_json=command.json)


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
    from lapwing import storage
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.runs.solve_maze import solve_maze
    from lapwing.settings.agents import read_cell
    from lapwing.solving.files import NAME

    if not command.target or command.reward is None:
        raise ConfigError("name a maze and a reward: lapwing solve FourRoom --reward goal=1,1")
    if command.out and storage.is_file(command.out / NAME) and not command.overwrite:
        raise ConfigError(
            f"{command.out} holds a policy; choose another --out, or replace it with --overwrite"
        )
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
    out = command.out or new_folder(solved.world.maze.name, "-solve")
    storage.make_folder(out)
    solved.policy.save(out / NAME)
    _show_solved(solved, out, console, as_json=command.json)


def _show_solved(solved: "Solved", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.solve_report import draw_solved, solved_table

    picture = draw_solved(solved, out)
    console.print(solved_table(solved))
    console.print(f"{picture}: reward, value, moves and path; beside it the policy")
    if as_json:
        print(json.dumps(solved.result, allow_nan=False))


def _train(command: Train) -> None:
    from lapwing.runs.train_dqn import RECIPES, train_agent

    settings, recipe = command.settings(), RECIPES[command.preset]
    if command.target.startswith("gym:"):
        warnings.warn(
            "the agent trains on the environment's own reward, for it has no goal that lapwing knows; in "
            "Python, lapwing.LaplacianReward(env, representation, goal) is one that is shaped",
            LapwingNote,
            stacklevel=1,
        )
    work = partial(
        train_agent, command.target, settings, representation=command.representation, recipe=recipe
    )
    run_in_folder(command, work, _show_agent, f"-{settings.reward or 'agent'}")


def _train_in_arena(command: TrainInArena) -> None:
    from lapwing.envs.arena import open_arena
    from lapwing.runs.train_ddpg import train_control

    settings = command.settings()
    arena = open_arena(command.target, goal=settings.goal_cell)
    work = partial(train_control, arena, settings, representation=command.representation)
    run_in_folder(command, work, _show_control, f"-{settings.reward}")


def _reach(command: Reach) -> None:
    from lapwing.data.source import read_source
    from lapwing.runs.reach import run_reach

    source, settings = read_source(command.target), command.settings()
    work = partial(run_reach, source, settings, representation=command.representation)
    run_in_folder(command, work, _show_reach, "-reach")


def _options(command: Options) -> None:
    from lapwing.data.source import read_source
    from lapwing.runs.options import run_options

    source, settings = read_source(command.target), command.settings()
    work = partial(run_options, source, settings, representation=command.representation)
    run_in_folder(command, work, _show_options, "-options")


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
                    jobs=command.jobs,
                    on=command.on,
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


def _show(outcome: "Outcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.report import draw_all, report

    show_run(outcome, report, draw_all, out, console, as_json)


def _show_agent(outcome: "AgentOutcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.agent_report import agent_table, draw_agent

    show_run(outcome, agent_table, draw_agent, out, console, as_json)


def _show_control(outcome: "ControlOutcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.agent_report import control_table, draw_control

    show_run(outcome, control_table, draw_control, out, console, as_json)


def _show_reach(outcome: "ReachOutcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.reach_report import draw_reach, reach_report

    show_run(outcome, reach_report, draw_reach, out, console, as_json)


def _show_options(outcome: "OptionsOutcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.cli.options_report import draw_options_run, options_report

    show_run(outcome, options_report, draw_options_run, out, console, as_json)


COMMANDS: dict[type, Callable[[Any], None]] = {
    Learn: _learn,
    Data: _data,
    Evaluate: _evaluate,
    Explore: _explore,
    Audit: _audit,
    Solve: _solve,
    Train: _train,
    TrainInArena: _train_in_arena,
    Reach: _reach,
    Options: _options,
    Reproduce: _reproduce,
}
