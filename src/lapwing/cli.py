"""The command line: `lapwing learn`, `evaluate`, `audit`, `train` and `reproduce`.

Results go to standard output, everything else to standard error. A mistake of the user's is one sentence
and exit code 2. Heavy modules are imported only when a command runs, so that `--help` is quick.
"""

import dataclasses
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from lapwing._version import __version__
from lapwing.agents.settings import AgentSettings
from lapwing.errors import ConfigError, LapwingError, LapwingWarning, nearest
from lapwing.settings import PRESETS, LearnSettings, chosen_by_lapwing

if TYPE_CHECKING:
    from rich.console import Console

    from lapwing.experiments.reproduce import Reproduced
    from lapwing.training import AgentOutcome
    from lapwing.workflow import Outcome


@dataclass(frozen=True)
class RunOptions:
    """Where a run is kept, for the commands that make one."""

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: a new one in runs/)")
    ] = None
    """The run folder."""
    overwrite: bool = False
    """Replace the run that is in the folder."""
    resume: bool = False
    """Go on with the run in the folder where it was interrupted."""
    json: bool = False
    """Print the measures as one line of JSON on standard output, and nothing else there."""

    def __post_init__(self) -> None:
        """Check nothing yet: `settings` does, where its message is not wrapped by the parser's."""


@dataclass(frozen=True)
class Learn(RunOptions, LearnSettings):
    """Learn a representation, evaluate it and draw it.

    lapwing learn FourRoom: 10⁶ random steps, 20 eigenfunctions, in seconds.

    lapwing learn my_maze.txt --dim 11: a maze of your own, # wall, . floor, G goal.

    lapwing learn data.npz --out runs/mine: recorded experience.

    lapwing learn gym:CartPole-v1 --transitions 100000: a Gymnasium environment.

    lapwing learn FourRoom --preset paper: the recipe of Wu, Tucker and Nachum (2019).
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """A maze (OneRoom, TwoRoom, HardMaze, FourRoom, or a text file), an .npz file, or gym:ENV_ID."""

    def settings(self) -> LearnSettings:
        """The settings of learning alone."""
        names = [field.name for field in dataclasses.fields(LearnSettings)]
        return LearnSettings(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class Evaluate:
    """Measure a finished run again, against the exact spectrum where there is one, and draw it.

    lapwing evaluate runs/FourRoom: a representation.

    lapwing evaluate runs/HardMaze-mix: an agent; its pictures are drawn again.
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The folder of a finished run."""
    json: bool = False
    """Print the measures as one line of JSON on standard output."""


@dataclass(frozen=True)
class Audit:
    """Judge shaped rewards before any agent is trained: how they mislead, and how far one must look ahead.

    lapwing audit HardMaze: every filter, with φ as the chain's own eigenvectors give it.

    lapwing audit runs/HardMaze: with the φ that was learned.

    lapwing audit HardMaze runs/a runs/b --goal 1,1: side by side, for another goal.
    """

    targets: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="MAZE|RUN ...", help_behavior_hint="")
    ] = ()
    """A maze, runs of lapwing learn, or several of them of one maze."""
    goal: Annotated[
        str | None, tyro.conf.arg(metavar="ROW,COLUMN", help_behavior_hint="(default: the maze's own)")
    ] = None
    """The cell to be reached."""
    gamma: float = 0.98
    """The agent's discount."""
    episode_length: int = 50
    """Steps in an episode."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: runs/MAZE-audit)")
    ] = None
    """Where the picture goes."""
    json: bool = False
    """Print the audits as one line of JSON on standard output."""


@dataclass(frozen=True)
class Train(RunOptions, AgentSettings):
    """Train a DQN agent on a shaped reward, with a learning curve and an animation of its policy.

    lapwing train HardMaze: learns φ first (seconds), then from its distance as a potential.

    lapwing train HardMaze --reward mix --preset paper: the paper's φ and reward.

    lapwing train TwoRoom --reward sparse --steps 10000: no φ, to compare with.

    lapwing train HardMaze --representation runs/HardMaze: with a φ that is there.

    lapwing train gym:CartPole-v1 --gamma 0.99: any environment with discrete actions and its own reward.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """A maze (OneRoom, TwoRoom, HardMaze, FourRoom, or a text file), or gym:ENV_ID."""
    representation: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: learned first, if needed)")
    ] = None
    """A run of lapwing learn on the same maze, or a saved representation."""
    preset: Literal["default", "paper"] = "default"
    """How φ is learned where none is given: lapwing's way, or the paper's."""

    def settings(self) -> AgentSettings:
        """The settings of the agent alone."""
        names = [field.name for field in dataclasses.fields(AgentSettings)]
        return AgentSettings(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class Reproduce:
    """Make a figure of the paper: run what is missing, then write its table, text and picture.

    lapwing reproduce fig3: gap against data, three inputs, five seeds, in minutes.

    lapwing reproduce fig4: agents on shaped rewards in three mazes.

    lapwing reproduce fig3 --preset paper --jobs 8: the paper's settings to the letter.

    lapwing reproduce fig3 --only input=position n=1000: a part of the grid.

    Stop it at any moment; the same command goes on. What OUT/FIGURE.csv holds counts as done.
    """

    figure: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FIGURE", help_behavior_hint="")]
    """fig1 (shaped rewards), fig2 (the maze), fig3 (gap, d=20), fig4 (agents), fig6 (gap, d=50, 100), fig7
    (weight of the penalty), or all."""
    preset: Literal["quick", "paper"] = "quick"
    """quick, or paper for the paper's settings."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results")
    """Where FIGURE.csv, the text and the pictures go."""
    jobs: Annotated[int | None, chosen_by_lapwing("the number of cores")] = None
    """Worker processes, one thread each."""
    seeds: int = 5
    """How many seeds, from 0 on."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN=VALUE ...")] = ()
    """Run a part of the grid: by environment, method, input, n, d, beta, reward or seed."""
    retry: bool = False
    """Try runs again that failed."""
    overwrite: bool = False
    """Do runs again that are in the table."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 2 on a user's mistake."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command = _parse(arguments)
        _show_warnings_as_lines()
        _COMMANDS[type(command)](command)
    except LapwingError as error:
        print(f"lapwing: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("lapwing: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _parse(arguments: list[str]) -> Any:
    if "--version" in arguments:
        print(f"lapwing {__version__}")
        raise SystemExit(0)
    _check_command(arguments)
    preset = _preset_in(arguments) if arguments[:1] == ["learn"] else "default"
    default = Learn(**dataclasses.asdict(PRESETS[preset]))
    learn = Annotated[Learn, tyro.conf.subcommand("learn", default=default)]
    evaluate = Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    audit = Annotated[Audit, tyro.conf.subcommand("audit")]
    train = Annotated[Train, tyro.conf.subcommand("train")]
    reproduce = Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    return tyro.cli(
        learn | evaluate | audit | train | reproduce,  # type: ignore[arg-type]
        prog="lapwing",
        description="Laplacian state representations from reinforcement-learning experience.",
        args=arguments,
        config=(tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff),
    )


def _check_command(arguments: list[str]) -> None:
    commands = ("learn", "evaluate", "audit", "train", "reproduce")
    if arguments and not arguments[0].startswith("-") and arguments[0] not in commands:
        raise ConfigError(f"unknown command {arguments[0]!r}; {nearest(arguments[0], commands)}")


def _preset_in(arguments: list[str]) -> str:
    """The preset sets the defaults that `--help` shows, so it is looked up first."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--preset":
            value = value if equals else (arguments[position + 1 :] or ["default"])[0]
            if value not in PRESETS:
                raise ConfigError(f"unknown preset {value!r}; {nearest(value, PRESETS)}")
            return value
    return "default"


def _learn(command: Learn) -> None:
    from lapwing.progress import progress_bar, stderr_console
    from lapwing.targets import read_source
    from lapwing.workflow import run

    if not command.target:
        raise ConfigError("name a target: lapwing learn FourRoom, a maze .txt, a data .npz, or gym:ENV_ID")
    if command.resume and command.out is None:
        raise ConfigError("resume needs --out, the folder of the run to go on with")
    console, settings, source = stderr_console(), command.settings(), read_source(command.target)
    out = command.out or _new_folder(command.target)
    try:
        with progress_bar(console) as on_progress:
            outcome = run(
                source,
                settings,
                out,
                overwrite=command.overwrite,
                resume=command.resume,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        console.print(f"lapwing: to go on, give the same command with --out {out} --resume")
        raise
    _show(outcome, out, console, as_json=command.json)


def _evaluate(command: Evaluate) -> None:
    from lapwing.progress import stderr_console
    from lapwing.runs import RunFolder
    from lapwing.training import reopen_agent
    from lapwing.workflow import reopen

    if RunFolder(command.run).config().get("kind") == "agent":
        _show_agent(reopen_agent(command.run), command.run, stderr_console(), as_json=command.json)
    else:
        _show(reopen(command.run), command.run, stderr_console(), as_json=command.json)


def _audit(command: Audit) -> None:
    from lapwing.agents.settings import read_cell
    from lapwing.comparing import compare_rewards
    from lapwing.progress import stderr_console
    from lapwing.report import ABOUT_AUDIT, audit_table, draw_comparison

    if not command.targets:
        raise ConfigError("name a maze or a run: lapwing audit HardMaze")
    goal = None if command.goal is None else read_cell(command.goal)
    comparison = compare_rewards(
        command.targets, goal=goal, gamma=command.gamma, episode_length=command.episode_length
    )
    console = stderr_console()
    out = command.out or Path("runs") / f"{comparison.task.world.maze.name}-audit"
    pictures = draw_comparison(comparison, out)
    console.print(audit_table(comparison))
    for name, source in comparison.sources.items():
        console.print(f"{name}: {source}")
    console.print(ABOUT_AUDIT, style="dim", soft_wrap=False)
    console.print(f"{pictures[0]}: the maps")
    if command.json:
        print(json.dumps([audit.as_json() for audit in comparison.audits], allow_nan=False))


def _train(command: Train) -> None:
    from lapwing.progress import progress_bar, stderr_console
    from lapwing.training import RECIPES, train_agent

    if not command.target:
        raise ConfigError("name a target: lapwing train HardMaze, a maze .txt, or gym:ENV_ID")
    if command.resume and command.out is None:
        raise ConfigError("resume needs --out, the folder of the run to go on with")
    console, settings = stderr_console(), command.settings()
    out = command.out or _new_folder(command.target, f"-{settings.reward or 'agent'}")
    try:
        with progress_bar(console) as on_progress:
            outcome = train_agent(
                command.target,
                settings,
                out,
                representation=command.representation,
                recipe=RECIPES[command.preset],
                overwrite=command.overwrite,
                resume=command.resume,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        console.print(f"lapwing: to go on, give the same command with --out {out} --resume")
        raise
    _show_agent(outcome, out, console, as_json=command.json)


def _reproduce(command: Reproduce) -> None:
    from lapwing.experiments import FIGURES, find_study
    from lapwing.experiments.dashboard import dashboard
    from lapwing.experiments.reproduce import figures_with, reproduce
    from lapwing.progress import stderr_console

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
                    retry=command.retry,
                    overwrite=command.overwrite,
                    on_status=on_status,
                )
        except KeyboardInterrupt:
            words = " without --overwrite" if command.overwrite else ""
            console.print(f"lapwing: to go on, give the same command again{words}")
            raise
        _show_figure(made, console)
        failed = failed or bool(made.failures)
    if failed:
        raise SystemExit(1)


def _cores() -> int:
    """The cores that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _show_figure(made: "Reproduced", console: "Console") -> None:
    from lapwing.experiments.dashboard import in_words

    if made.runs:
        words = f"{made.study.name}: {made.done} of {len(made.runs)} runs are in {made.files[0]}"
        console.print(f"{words} ({in_words(made.seconds)})", markup=False)
    for run, error in made.failures.items():
        console.print(f"failed: {run}: {error}", markup=False)
    if made.failures:
        console.print("try them again with --retry")
    for path in made.files:
        print(path)


def _new_folder(target: str, ending: str = "") -> Path:
    """runs/FourRoom, or runs/FourRoom-2 and so on where that is taken."""
    name = Path(target.replace(":", "-")).stem + ending
    taken = [
        Path("runs") / name,
        *(Path("runs") / f"{name}-{number}" for number in range(2, 10_000)),
    ]
    return next(path for path in taken if not path.exists())


def _show(outcome: "Outcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.report import draw_all, summary_table

    figures = draw_all(outcome, out / "figures")
    console.print(summary_table(outcome))
    console.print(f"{out}: the run; {out / 'figures'}: {', '.join(p.name for p in figures)}")
    if as_json:
        print(json.dumps(outcome.result, allow_nan=False))


def _show_agent(outcome: "AgentOutcome", out: Path, console: "Console", *, as_json: bool) -> None:
    from lapwing.report import agent_table, draw_agent

    pictures = draw_agent(outcome, out / "figures")
    console.print(agent_table(outcome))
    console.print(f"{out}: the run; {out / 'figures'}: {', '.join(p.name for p in pictures)}")
    if as_json:
        print(json.dumps(outcome.result, allow_nan=False))


def _show_warnings_as_lines() -> None:
    original = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, LapwingWarning):
            print(f"warning: {message}", file=sys.stderr)
        else:
            original(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    warnings.simplefilter("always", LapwingWarning)


_COMMANDS: dict[type, Callable[[Any], None]] = {
    Learn: _learn,
    Evaluate: _evaluate,
    Audit: _audit,
    Train: _train,
    Reproduce: _reproduce,
}
