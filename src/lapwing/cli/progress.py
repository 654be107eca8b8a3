"""Progress on standard error: a bar for one run, a live table for the runs of a figure."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column, Table
from rich.text import Text

from lapwing.progress import OnProgress

if TYPE_CHECKING:
    from lapwing.figures.runner import OnStatus, Status
    from lapwing.sweeps.work import Worker

WIDTH_OF_A_FILE = 120
"""Of tables that go to a file or a pipe, where COLUMNS does not say."""
SECONDS_BETWEEN_LINES = 15.0
"""Where there is no terminal."""
WORTH_A_LINE = 1.0
"""Of a stage that is not counted and took fewer seconds, its end is not told."""
WHERE_MISTAKES_SHOW = ("opening", "inspecting", "comparing")
"""The stages that refuse most of what is refused, for which a sentence is enough: their begin is not told."""


def stderr_console() -> Console:
    """Where everything but results is written; brackets in a path or a name are no markup."""
    width = None if sys.stderr.isatty() or "COLUMNS" in os.environ else WIDTH_OF_A_FILE
    return Console(file=sys.stderr, width=width, highlight=False, soft_wrap=True, markup=False, emoji=False)


class TimeColumn(ProgressColumn):
    """The time that a phase has taken; and the time to go, where its steps are counted."""

    max_refresh = 0.5

    def __init__(self) -> None:
        super().__init__(table_column=Column(no_wrap=True))

    def render(self, task: Task) -> Text:
        """As minutes and seconds."""
        taken = task.finished_time if task.finished else task.elapsed
        words = _clock(taken or 0.0)
        if not task.finished and task.time_remaining is not None and (task.total or 0) > 1:
            words += f", {_clock(float(task.time_remaining))} to go"
        return Text(words, style="progress.elapsed")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[OnProgress]:
    """A callback that shows each phase as one bar with its time, the time to go and its latest metrics.

    Example:
        with lapwing.progress_bar() as bar:
            rep = lapwing.learn("FourRoom", on_progress=bar)
    """
    console = console or stderr_console()
    if not console.is_terminal:
        yield _stages(console)
        return
    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(bar_width=10),
        TextColumn("{task.completed:>7,}/{task.total:<7,}"),
        TimeColumn(),
        TextColumn("{task.fields[metrics]}"),
    )
    progress, tasks = Progress(*columns, console=console), {}

    def show(phase: str, done: int, total: int, metrics: dict[str, float]) -> None:
        if not progress.live.is_started:
            progress.start()
        if phase not in tasks:
            tasks[phase] = progress.add_task(phase, total=total, metrics="")
        progress.update(tasks[phase], completed=done, total=total, metrics=_brief(metrics))

    try:
        yield show
    except BaseException:
        # Nothing is drawn, not even an empty line, for what is refused at once.
        progress.live.transient = not any(task.completed for task in progress.tasks)
        raise
    finally:
        if progress.live.is_started:
            progress.stop()


def _stages(console: Console) -> OnProgress:
    """A callback for logs: a line as a stage begins, one as it ends, and now and then one between."""
    begun: dict[str, float] = {}
    ended: set[str] = set()
    last = time.monotonic()

    def show(phase: str, done: int, total: int, metrics: dict[str, float]) -> None:
        nonlocal last
        now, over = time.monotonic(), done >= total
        if over and phase in ended - begun.keys():
            return  # it was told before
        taken = now - begun.get(phase, now)
        worth_it = total > 1 or taken >= WORTH_A_LINE
        if phase not in begun and not over:
            words = "" if phase in WHERE_MISTAKES_SHOW else f"{phase} …"
        elif (over and worth_it) or now - last >= SECONDS_BETWEEN_LINES:
            counted = f" {done:,}/{total:,}," if total > 1 else ""
            words = f"{phase}{'' if over else ' …'}{counted} {_clock(taken)} {_brief(metrics)}".rstrip()
        else:
            words = ""
        if words:
            console.print(words)
            last = now
        begun.setdefault(phase, now)
        if over:
            del begun[phase]
            ended.add(phase)

    return show


def _brief(metrics: dict[str, float]) -> str:
    for name, digits in (("success", ".0%"), ("return", ".2f"), ("loss", ".4f")):
        if name in metrics:
            return f"{name} {metrics[name]:{digits}}  {metrics['steps_per_second']:,.0f} steps/s"
    return ""


@contextmanager
def dashboard(console: Console) -> Iterator["OnStatus"]:
    """A callback that shows how far a grid is."""
    if not console.is_terminal:
        yield _lines(console)
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda status: live.update(status_view(status))


def status_view(status: "Status") -> Group:
    """Each group of runs: done, running, failed, and the seconds of one; then the run of each worker."""
    return Group(_table(status), *(_line(worker) for worker in status.workers if worker.run))


def _table(status: "Status") -> Table:
    from lapwing.figures.runner import group_of

    table = Table(title=headline(status), title_justify="left", box=None)
    for name in ("method", "input", "done", "running", "failed", "seconds each"):
        table.add_column(name, justify="left" if name in ("method", "input") else "right")
    running = [group_of(worker.run) for worker in status.workers if worker.run]
    for group in dict.fromkeys(group_of(run) for run in status.runs):
        keys = [run.key for run in status.runs if group_of(run) == group]
        failed = sum(key in status.failures for key in keys)
        taken = status.seconds.get(group, [])
        table.add_row(
            *group,
            f"{sum(key in status.done for key in keys)}/{len(keys)}",
            str(running.count(group) or ""),
            Text(str(failed), style="red") if failed else "",
            f"{sum(taken) / len(taken):.1f}" if taken else "",
        )
    return table


def _line(worker: "Worker") -> Text:
    phase, done, total = worker.progress
    share = f" {done / total:.0%}" if total > 1 else ""
    return Text(f"{worker.run}: {phase}{share}", style="dim")


def headline(status: "Status") -> str:
    """How many runs are done, and when the rest may be."""
    done = sum(run.key in status.done for run in status.runs)
    words = f"{done}/{len(status.runs)} runs done"
    failed = sum(run.key in status.failures for run in status.runs)
    if failed:
        words += f", {failed} failed"
    left = status.seconds_to_go()
    return words if left is None or done == len(status.runs) else f"{words}, about {in_words(left)} to go"


def _lines(console: Console) -> "OnStatus":
    last = time.monotonic()

    def show(status: "Status") -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            console.print(headline(status))

    return show


def in_words(seconds: float) -> str:
    """Words for a time to wait.

    Example:
        >>> in_words(45.0), in_words(600.0), in_words(7500.0)
        ('45 s', '10 min', '2 h 5 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
