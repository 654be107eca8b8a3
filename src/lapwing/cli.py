"""The command line: `lapwing learn`, `lapwing evaluate`, `lapwing reproduce`.

Results go to standard output, everything else to standard error. A mistake of the user's is one sentence
and exit code 2. Heavy modules are imported only when a command runs, so that `--help` is quick.
"""

import dataclasses
import json
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from lapwing._version import __version__
from lapwing.errors import ConfigError, LapwingError, LapwingWarning, nearest
from lapwing.settings import PRESETS, LearnSettings, chosen_by_lapwing

if TYPE_CHECKING:
    from rich.console import Console

    from lapwing.experiments.reproduce import Reproduced
    from lapwing.workflow import Outcome


@dataclass(frozen=True)
class Learn(LearnSettings):
    """Learn a representation, evaluate it and draw it.

    lapwing learn FourRoom: 10⁶ random steps, 20 eigenfunctions, in seconds.

    lapwing learn my_maze.txt --dim 11: a maze of your own, # wall, . floor, G goal.

    lapwing learn data.npz --out runs/mine: recorded experience.

    lapwing learn gym:CartPole-v1 --transitions 100000: a Gymnasium environment.

    lapwing learn FourRoom --preset paper: the recipe of Wu, Tucker and Nachum (2019).
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """A maze (OneRoom, TwoRoom, HardMaze, FourRoom, or a text file), an .npz file, or gym:ENV_ID."""
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

    def settings(self) -> LearnSettings:
        """The settings of learning alone."""
        names = [field.name for field in dataclasses.fields(LearnSettings)]
        return LearnSettings(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class Evaluate:
    """Measure a finished run again, against the exact spectrum where there is one, and draw it."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The folder of a finished run."""
    json: bool = False
    """Print the measures as one line of JSON on standard output."""


@dataclass(frozen=True)
class Reproduce:
    """Make a figure of the paper: run what is missing, then write its table, text and picture.

    lapwing reproduce fig3: gap against data, three inputs, five seeds, in minutes.

    lapwing reproduce fig3 --preset paper --jobs 8: the paper's settings to the letter.

    lapwing reproduce fig3 --only input=position n=1000: a part of the grid.

    Stop it at any moment; the same command goes on. What OUT/FIGURE.csv holds counts as done.
    """

    figure: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FIGURE", help_behavior_hint="")]
    """fig2 (the maze), fig3 (gap, d=20), fig6 (d=50, 100), fig7 (weight of the penalty), or all."""
    preset: Literal["quick", "paper"] = "quick"
    """quick, or paper for the paper's settings."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results")
    """Where FIGURE.csv, the text and the pictures go."""
    jobs: Annotated[int | None, chosen_by_lapwing("the number of cores")] = None
    """Worker processes, one thread each."""
    seeds: int = 5
    """How many seeds, from 0 on."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN=VALUE ...")] = ()
    """Run a part of the grid: by environment, method, input, n, d, beta or seed."""
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
        if isinstance(command, Learn):
            _learn(command)
        elif isinstance(command, Evaluate):
            _evaluate(command)
        else:
            _reproduce(command)
    except LapwingError as error:
        print(f"lapwing: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("lapwing: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _parse(arguments: list[str]) -> Learn | Evaluate | Reproduce:
    if "--version" in arguments:
        print(f"lapwing {__version__}")
        raise SystemExit(0)
    _check_command(arguments)
    preset = _preset_in(arguments) if arguments[:1] == ["learn"] else "default"
    default = Learn(**dataclasses.asdict(PRESETS[preset]))
    learn = Annotated[Learn, tyro.conf.subcommand("learn", default=default)]
    evaluate = Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    reproduce = Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    return tyro.cli(
        learn | evaluate | reproduce,  # type: ignore[arg-type]
        prog="lapwing",
        description="Laplacian state representations from reinforcement-learning experience.",
        args=arguments,
        config=(tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff),
    )


def _check_command(arguments: list[str]) -> None:
    commands = ("learn", "evaluate", "reproduce")
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
    from lapwing.workflow import reopen

    _show(reopen(command.run), command.run, stderr_console(), as_json=command.json)


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


def _new_folder(target: str) -> Path:
    """runs/FourRoom, or runs/FourRoom-2 and so on where that is taken."""
    name = Path(target.replace(":", "-")).stem
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


def _show_warnings_as_lines() -> None:
    original = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, LapwingWarning):
            print(f"warning: {message}", file=sys.stderr)
        else:
            original(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    warnings.simplefilter("always", LapwingWarning)
