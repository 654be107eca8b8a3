"""Running a command in a run folder: its progress, its log, and the final report."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapwing.cli.arguments import Learn, Options, Reach, RunOptions, Train, TrainInArena
from lapwing.cli.program import program
from lapwing.runs.taken import RESULT

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from lapwing.progress import OnProgress


def run_in_folder(
    command: Learn | Train | TrainInArena | Reach | Options,
    work: Callable[..., Any],
    show: Callable[..., None],
    ending: str = "",
) -> None:
    """Do the work in the folder that is named, or a new one, with a progress bar; then show the outcome."""
    from lapwing.cli.progress import progress_bar, stderr_console
    from lapwing.compilation import kept_programs

    console, out = stderr_console(), command.out or new_folder(command.target, ending)
    if command.out is None:
        _tell_of_earlier(command.target, ending, out, console)
    options = {"out": out, "overwrite": command.overwrite, "resume": command.resume}
    with kept_programs():
        with _resumable(out, console), progress_bar(console) as bar, _logged(command, out, bar) as log:
            outcome = work(**options, on_progress=log)
            if command.log:
                log("result", 1, 1, _numbers_in(outcome.result))
        with held(out), _redrawable(out, console):
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


@contextmanager
def _resumable(out: Path, console: "Console") -> Iterator[None]:
    """Say how to resume, if the work is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        console.print(f"lapwing: {how_to_resume(out)}")
        raise


def how_to_resume(out: Path) -> str:
    """What to do after an interrupt."""
    if (out / "config.json").is_file():
        return f"to resume, give the same command with --out {out} --resume"
    return "nothing was saved yet; the same command starts over"


@contextmanager
def _redrawable(out: Path, console: "Console") -> Iterator[None]:
    """Say how to get the pictures, if the work is interrupted after all else is saved."""
    try:
        yield
    except KeyboardInterrupt:
        console.print(
            f"lapwing: {out} is finished but for its pictures; {program()} evaluate {out} draws them"
        )
        raise


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Keep other processes from writing to a run folder while its pictures are drawn."""
    from lapwing.runs.folder import RunFolder

    with RunFolder(out).held():
        yield


def _tell_of_earlier(target: str, ending: str, out: Path, console: "Console") -> None:
    """Say that there is a run of this target already, which may be all that is wanted."""
    earlier = Path("runs") / (_folder_name(target) + ending)
    if out != earlier:
        opened = f"unfinished: resume it with --out {earlier} --resume"
        if (earlier / RESULT).is_file():
            opened = f"{program()} evaluate {earlier} shows it"
        console.print(f"{earlier} is there from before ({opened}); this run goes to {out}")


def new_folder(target: str, ending: str = "") -> Path:
    """runs/FourRoom, or runs/FourRoom-2 and so on where that is taken."""
    name = _folder_name(target) + ending
    taken = [
        Path("runs") / name,
        *(Path("runs") / f"{name}-{number}" for number in range(2, 10_000)),
    ]
    return next(path for path in taken if not path.exists())


def _folder_name(target: str) -> str:
    """What a target is called among folders, without what shells and paths have a use for.

    Example:
        >>> _folder_name("minari:mountaincar/sticky-v0"), _folder_name("data/walks.npz")
        ('minari-mountaincar-sticky-v0', 'walks')
        >>> _folder_name("ogbench:pointmaze-medium-navigate,episodes=100"), _folder_name("gym:my.py:Mine")
        ('ogbench-pointmaze-medium-navigate-episodes-100', 'Mine')
    """
    own = target.rpartition(".py:")[2]  # of gym:FILE.py:CLASS, the class
    scheme, _, rest = own.partition(":")
    by_name = scheme in ("gym", "minari", "ogbench") and not rest.startswith((".", "/", "~"))
    name = own if by_name else Path(own.replace(":", "-")).stem
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "run"


def show_run(
    outcome: Any,
    report: Callable[[Any], "RenderableType"],
    draw: Callable[[Any, Path], list[Path]],
    out: Path,
    console: "Console",
    as_json: bool,
) -> None:
    """Draw the pictures of a run, and print where they are, its table and, if asked for, its JSON."""
    from lapwing.cli.progress import progress_bar
    from lapwing.progress import uncounted

    with progress_bar(console) as on_progress, uncounted("drawing", on_progress):
        pictures = draw(outcome, out / "figures")
    console.print(f"{out}: the run; {out / 'figures'}: {', '.join(p.name for p in pictures)}")
    console.print(report(outcome))
    if as_json:
        print(json.dumps(outcome.result, allow_nan=False))
