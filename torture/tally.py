"""What became of the tries of each part, kept in a file so that they can be made in slices."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lapwing import __version__, storage

SAME, REFUSED = "same", "refused"
"""A try ended as if nothing had happened, or in one sentence of lapwing's; anything else is told in words."""
STATE, TABLE = Path("results/torture.json").resolve(), Path("results/torture.md").resolve()
ABOUT = (
    "Made by `make torture` (a slice: `make torture ARGS='corruptions --seconds 300'`), try by try; the "
    "tries made so far are in `torture.json`. *Same*: the try ended with the bits of an undisturbed run, or "
    "changed nothing, or was accepted. *Refused*: it ended in one sentence of lapwing's, with no traceback. "
    "*Else*: a traceback, other bits, or a lost run."
)


@dataclass
class Tally:
    """Of one part."""

    tries: int = 0
    same: int = 0
    refused: int = 0
    else_: list[str] = field(default_factory=list)
    note: str = ""

    def add(self, outcome: str) -> None:
        """Count one try."""
        self.tries += 1
        if outcome == SAME:
            self.same += 1
        elif outcome == REFUSED:
            self.refused += 1
        else:
            self.else_.append(outcome)


def read_tallies() -> dict[str, Tally]:
    """Of all parts so far."""
    if not STATE.exists():
        return {}
    return {part: Tally(**values) for part, values in json.loads(STATE.read_text()).items()}


def write_tallies(tallies: dict[str, Tally], wanted: dict[str, int], about: dict[str, str]) -> None:
    """Keep them, and put the table beside them."""
    storage.write_json(STATE, {part: asdict(tally) for part, tally in tallies.items()})
    lines = ["# Torture", "", ABOUT, "", f"lapwing {__version__}.", ""]
    lines += ["| what | tries | of | same | refused | else | note |", "|---|---|---|---|---|---|---|"]
    for part, tally in tallies.items():
        counts = (
            f"{tally.tries:,} | {wanted[part]:,} | {tally.same:,} | {tally.refused:,} | {len(tally.else_):,}"
        )
        lines.append(f"| {part}: {about[part]} | {counts} | {tally.note} |")
    wrong = [f"- {part}: {text}" for part, tally in tallies.items() for text in tally.else_[:20]]
    storage.write_bytes(TABLE, ("\n".join([*lines, "", *wrong]).rstrip() + "\n").encode())
