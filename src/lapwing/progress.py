"""A progress bar on standard error for what takes more than a moment."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from lapwing.workflow import OnProgress


def stderr_console() -> Console:
    """Where everything but results is written."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(console: Console) -> Iterator[OnProgress]:
    """A callback that shows each phase as one bar with its time to go and its latest metrics."""
    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(bar_width=28),
        TextColumn("{task.completed:>9,}/{task.total:,}"),
        TimeElapsedColumn(),
        TextColumn("to go"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[metrics]}"),
    )
    with Progress(*columns, console=console) as progress:
        tasks = {}

        def show(phase: str, done: int, total: int, metrics: dict[str, float]) -> None:
            if phase not in tasks:
                tasks[phase] = progress.add_task(phase, total=total, metrics="")
            progress.update(tasks[phase], completed=done, total=total, metrics=_brief(metrics))

        yield show


def _brief(metrics: dict[str, float]) -> str:
    if "loss" not in metrics:
        return ""
    return f"loss {metrics['loss']:.4f}  {metrics['steps_per_second']:,.0f} steps/s"
