"""Files of results: a section for each part, so that parts can be measured one by one."""

import platform
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.rows import Row
from lapwing import __version__, storage

ABOUT = (
    "One core. Each section is made by the command in it, of the code it names (with `+`: and changes that "
    "were not committed). Ratios of speeds are within one run; rows on other libraries are there where these "
    "are installed."
)


def section(part: str, rows: Sequence[Row], seconds: float) -> str:
    """The section of a part, with what it took in CPU seconds, as Markdown."""
    lines = [
        f"## {part}",
        "",
        f"`make bench ARGS='{part} --write'`: {seconds:,.0f} CPU seconds; lapwing {__version__} at "
        f"{revision()}, Python {platform.python_version()}.",
        "",
        "| claim | measured | wanted | note |",
        "|---|---|---|---|",
    ]
    for row in rows:
        missed = " **missed**" if row.met is False else ""
        lines.append(f"| {row.claim} | {row.value:.4g} | {row.wanted}{missed} | {row.note} |")
    return "\n".join(lines) + "\n"


def write(path: Path, title: str, parts: Sequence[str], measured: dict[str, str]) -> None:
    """Put sections into a file, in the order of `parts`; those that were not measured stay as they are."""
    before = path.read_text() if path.exists() else ""
    found = {text.split("\n", 1)[0]: text for text in re.split(r"^## ", before, flags=re.MULTILINE)[1:]}
    kept = {part: f"## {found[part].rstrip()}\n" for part in parts if part in found}
    sections = kept | measured
    text = "\n".join([f"# {title}\n", f"{ABOUT}\n", *(sections[part] for part in parts if part in sections)])
    storage.write_bytes(path, text.encode())


def revision() -> str:
    """The commit that is checked out, with a `+` if the code differs from it."""
    try:
        commit, changes = (
            subprocess.run(["git", *command], capture_output=True, text=True, check=True).stdout.strip()
            for command in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "src", "benchmarks"))
        )
    except (OSError, subprocess.CalledProcessError):
        return "an unknown commit"
    return f"{commit}{'+' if changes else ''}"
