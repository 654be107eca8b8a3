"""From a figure's name to its table, its text and its picture."""

import time
from dataclasses import dataclass
from pathlib import Path

from lapwing import storage
from lapwing._version import __version__
from lapwing.errors import ConfigError, nearest
from lapwing.figures import find_study
from lapwing.figures.grid import Preset, Row, Run, Study, read_table
from lapwing.figures.runner import OnStatus, execute_grid
from lapwing.plots import save_figure

SEEDS = 5
"""How many seeds, unless told otherwise."""
CHOOSABLE = ("environment", "method", "input", "n", "d", "beta", "reward", "seed")
"""The columns that `only` can choose by."""


@dataclass(frozen=True)
class Reproduced:
    """What a figure came to."""

    study: Study
    runs: list[Run]
    """All that the preset asks for."""
    done: int
    """How many of them are in the table."""
    failures: dict[str, str]
    """Each failed run in words, with its error."""
    files: list[Path]
    seconds: float


def reproduce(
    figure: str,
    *,
    preset: Preset = "quick",
    out: Path = Path("results"),
    jobs: int | None = 1,
    on: str = "local",
    seeds: int = SEEDS,
    only: tuple[str, ...] = (),
    draw_only: bool = False,
    retry: bool = False,
    overwrite: bool = False,
    on_status: OnStatus | None = None,
) -> Reproduced:
    """Do the runs of a figure that are not yet in `out`, then write its table, text and picture.

    Args:
        figure: `fig2`, `fig3`, …
        preset: `quick`, or `paper` for the paper's settings.
        out: the folder of FIGURE.csv, FIGURE-PRESET.md, FIGURE-PRESET.png and .svg.
        jobs: workers, one thread each; None: one for each core.
        on: `local`, processes of this machine; `ray` or `ray:HOST:PORT`, a Ray cluster.
        seeds: how many seeds, from 0 on.
        only: choose part of the grid, as `("input=position", "n=1000")`.
        draw_only: run nothing; write the text and the picture of what is in the table.
        retry: try failed runs again.
        overwrite: do runs again that are in the table.
        on_status: called with the state of the grid now and then.
    """
    began, study = time.monotonic(), find_study(figure)
    for name, number in (("jobs", jobs), ("seeds", seeds)):
        if number is not None and number < 1:
            raise ConfigError(f"{name} must be at least 1, not {number}")
    if draw_only and (only or retry or overwrite):
        raise ConfigError("draw_only runs nothing; leave out only, retry and overwrite")
    runs = study.runs(preset, seeds)
    chosen = choose(runs, only)
    storage.make_folder(out)
    table = out / f"{study.name}.csv"
    rows: list[Row] = []
    failures: dict[str, str] = {}
    if runs:
        rows, failures = execute_grid(
            runs,
            set() if draw_only else {run.key for run in chosen},
            table,
            jobs=jobs,
            on=on,
            borrowed=_borrowed(study, out),
            retry=retry,
            overwrite=overwrite,
            on_status=on_status,
        )
    name = out / f"{study.name}-{preset}" if runs else out / study.name
    files = save_figure(study.draw(rows, preset), name)
    text = name.with_suffix(".md")
    storage.write_bytes(text, _text(study, preset, runs, rows, files[0]).encode())
    done = {row["key"] for row in rows}
    return Reproduced(
        study=study,
        runs=runs,
        done=sum(run.key in done for run in runs),
        failures={str(run): failures[run.key] for run in runs if run.key in failures},
        files=[*([table] if runs else []), text, *files],
        seconds=time.monotonic() - began,
    )


def _borrowed(study: Study, out: Path) -> list[Row]:
    """What other figures' tables hold, as rows of this one: a run is done once, whoever asks for it."""
    rows = [row for other in study.borrows for row in read_table(out / f"{other}.csv")]
    return [row | {"figure": study.name} for row in rows]


def figures_with(
    figures: tuple[str, ...], preset: Preset, seeds: int, only: tuple[str, ...]
) -> tuple[str, ...]:
    """The figures that have runs for every choice; if none has, the mistake is told."""
    found, mistake = [], None
    for figure in figures:
        try:
            choose(find_study(figure).runs(preset, seeds), only)
            found.append(figure)
        except ConfigError as error:
            mistake = error
    if not any(find_study(figure).runs(preset, seeds) for figure in found) and mistake:
        raise mistake
    return tuple(found)


def choose(runs: list[Run], only: tuple[str, ...]) -> list[Run]:
    """The runs that match every choice; several values of one column are alternatives."""
    wanted: dict[str, set[str]] = {}
    for choice in only:
        name, equals, value = choice.partition("=")
        if not equals or name not in CHOOSABLE:
            raise ConfigError(f"only takes COLUMN=VALUE, not {choice!r}; {nearest(name, CHOOSABLE)}")
        known = sorted({str(getattr(run, name)) for run in runs})
        if runs and value not in known:
            raise ConfigError(f"no run has {name}={value}; {nearest(value, known)}")
        wanted.setdefault(name, set()).add(value)
    return [run for run in runs if all(str(getattr(run, name)) in values for name, values in wanted.items())]


def _text(study: Study, preset: Preset, runs: list[Run], rows: list[Row], picture: Path) -> str:
    seeds = len({run.seed for run in runs})
    command = f"lapwing reproduce {study.name}" + (f" --preset {preset}" if runs else "")
    command += f" --seeds {seeds}" if runs and seeds != SEEDS else ""
    made = f"Made by `{command}`, lapwing {__version__}."
    if runs:
        means = f"Means over {seeds} seeds with 95 % t-intervals" if seeds > 1 else "One seed, no intervals"
        made += f" {means}; {study.note}."
    missing = {run.key for run in runs} - {row["key"] for row in rows}
    if missing:
        made += f" **{len(missing)} of {len(runs)} runs are not done yet**; a dash is a cell without any."
    head = [f"# {study.title}", "", made, "", f"![{study.title}]({picture.name})", ""]
    return "\n".join([*head, *study.describe(rows, preset)]) + "\n"
