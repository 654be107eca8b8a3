"""The report on options: a table, a verdict with a next step, and figures."""

from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from lapwing import plots
from lapwing.cli.report import save_figures
from lapwing.cli.verdict import Verdict
from lapwing.options.option_set import MazeOptions
from lapwing.options.table import paths
from lapwing.runs.option_networks import steps_of
from lapwing.runs.options import OptionsOutcome
from lapwing.settings.options import OptionsSettings

NEAR = 1.1
"""Options of a learned φ are as good as exact ones within this ratio of diffusion times."""
CLIMBS = 3.0
"""A learned option climbs if it gains so many times what random steps gain, or more."""


def options_report(outcome: OptionsOutcome) -> Group:
    """The measures, and at the end a verdict and a next step."""
    table = _maze_table(outcome.result) if outcome.world else _network_table(outcome.result)
    verdict, next_step = options_verdict(outcome.result)
    lines = Text.assemble(("verdict: ", "bold"), verdict, "\n", ("next: ", "bold"), next_step)
    return Group(table, lines)


def _maze_table(result: dict[str, Any]) -> Table:
    share = result["settings"]["option_share"]
    table = Table(title=f"{result['target']}, {result['kind']} options", box=None, title_justify="left")
    columns = ("options", "of", "decisions", "steps", "decisions, all alike", "cover time", "± s.d.")
    for column in columns:
        table.add_column(column, justify="left" if column == "of" else "right")
    for row in result["rows"]:
        cover = f"{row['cover']:,.0f}" if row["covered"] == 1 else f"> {row['cover']:,.0f}"
        times = [_time(row[name]) for name in ("decisions", "steps", "decisions_alike")]
        source = "-" if row["source"] == "primitive" else row["source"]
        table.add_row(str(row["options"]), source, *times, cover, f"{row['cover_spread']:,.0f}")
    table.caption = (
        f"decisions and steps between two random states, where {share:.0%} of decisions take an option, or "
        f"all actions and options are alike; cover time: steps, {result['settings']['walks']} walks"
    )
    table.caption_justify = "left"
    return table


def _time(value: float | None) -> str:
    return "> 1e9" if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _network_table(result: dict[str, Any]) -> Table:
    title = f"{result['target']}, options by {result['learner']}"
    table = Table(title=title, box=None, title_justify="left")
    for column in ("option", "climbs", "random steps", "length", "ends by itself"):
        table.add_column(column, justify="left" if column == "option" else "right")
    for row in result["rows"]:
        climbs, chance = f"{row['gain']:.3f}", f"{row['gain_random']:.3f}"
        table.add_row(row["option"], climbs, chance, f"{row['length']:.1f}", f"{row['ended']:.0%}")
    table.caption = "mean gain of the eigenfunction from the same starts, by the option and by as many steps"
    return table


def options_verdict(result: dict[str, Any]) -> Verdict:
    """What the measures come to."""
    if result["states"] is None:
        return _of_networks(result)
    rows, count = result["rows"], result["options"]
    own = next(row for row in rows[1:] if row["options"] == count)
    exact = next(row for row in rows[1:] if row["options"] == count and row["source"] == "exact")
    words = (
        f"With {count} options two random states are {_ratio(own['steps'], rows[0]['steps'])} as many steps"
    )
    words += f" apart as without, and it takes {_ratio(own['cover'], rows[0]['cover'])} as many to see all"
    words += "" if own["covered"] == 1 else " or more"
    if own["source"] == "learned" and own["decisions"] and exact["decisions"]:
        ratio = own["decisions"] / exact["decisions"]
        good = "as good as" if ratio <= NEAR else "worse than"
        words += f"; those of the learned φ are {good} exact ones ({ratio:.2f} of their decisions)"
    helps = own["steps"] is not None and own["steps"] < rows[0]["steps"]
    better = min(rows[1:], key=lambda row: row["cover"])
    if helps and own["cover"] < rows[0]["cover"]:
        return Verdict(f"{words}.", _use(result))
    if better["cover"] < rows[0]["cover"]:
        return Verdict(f"{words}: they hinder.", f"try --count {better['options']}, or --kind covering.")
    return Verdict(f"{words}: they hinder.", "try --kind covering, or a lower --option-share.")


def _ratio(value: float | None, of: float) -> str:
    return "more than a million times" if value is None else f"{value / of:.2f} times"


def _of_networks(result: dict[str, Any]) -> Verdict:
    rows = result["rows"]
    climbing = [row for row in rows if row["gain"] > CLIMBS * max(abs(row["gain_random"]), 1e-9)]
    endless = [row["option"] for row in rows if row["ended"] < 0.5]
    words = f"{len(climbing)} of {len(rows)} options climb their eigenfunction"
    if endless:
        words += f"; {', '.join(endless)} seldom end by themselves, and are cut"
    if len(climbing) == len(rows):
        return Verdict(f"{words}.", _use(result))
    steps = steps_of(OptionsSettings.from_json(result["settings"]), result["learner"])
    return Verdict(f"{words}.", f"more --steps (now {steps:,}).")


def _use(result: dict[str, Any]) -> str:
    return f'lapwing.LaplacianOptions(env, "{result["run"]}") gives them to any agent.'


def draw_options_run(outcome: OptionsOutcome, folder: Path) -> list[Path]:
    """Each option in its maze, and the random walk over the number of options; elsewhere where they led."""
    options, rows = outcome.options, outcome.result["rows"]
    if outcome.world is None or not isinstance(options, MazeOptions):
        drawn = plots.draw_rides(rows, floor=outcome.floor)
        return save_figures({"options": drawn}, folder)
    table = options.table
    lengths = paths(outcome.world.next_state, table, options.longest).lengths
    drawn = plots.draw_options(outcome.world, table.names, table.actions, table.begins, table.stops, lengths)
    return save_figures({"options": drawn, "diffusion": plots.draw_diffusion(rows)}, folder)
