"""A progress bar on standard error for what takes more than a moment."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lapwing.progress import OnProgress


def stderr_console() -> Console:
    """Where everything but results is written; brackets in a path or a name are no markup."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[OnProgress]:
    """A callback that shows each phase as one bar with its time to go and its latest metrics.

    Example:
        with lapwing.progress_bar() as bar:
            rep = lapwing.learn("FourRoom", on_progress=bar)
    """
    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(bar_width=16),
        TextColumn("{task.completed:>7,}/{task.total:<7,}"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        TextColumn("{task.fields[metrics]}"),
    )
    progress, tasks = Progress(*columns, console=console or stderr_console()), {}

    def show(phase: str, done: int, total: int, metrics: dict[str, float]) -> None:
        if not tasks:  # nothing is drawn, not even an empty line, for what is refused at once
            progress.start()
        if phase not in tasks:
            tasks[phase] = progress.add_task(phase, total=total, metrics="")
        progress.update(tasks[phase], completed=done, total=total, metrics=_brief(metrics))

    try:
        yield show
    finally:
        if tasks:
            progress.stop()


def _brief(metrics: dict[str, float]) -> str:
    for name, digits in (("success", ".0%"), ("return", ".2f"), ("loss", ".4f")):
        if name in metrics:
            return f"{name} {metrics[name]:{digits}}  {metrics['steps_per_second']:,.0f} steps/s"
    return ""
