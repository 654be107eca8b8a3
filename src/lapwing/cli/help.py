"""The text of `--help`, with the most used options first."""

import contextlib
import io
import re
from collections.abc import Iterator

SUMMARIES = {
    "learn": "Learn a representation and evaluate it: lapwing learn FourRoom",
    "data": "Summarise a data set: lapwing data inspect data.npz",
    "evaluate": "Evaluate a finished run again: lapwing evaluate runs/FourRoom",
    "explore": "Explore a run in the browser: lapwing explore runs/FourRoom",
    "audit": "Audit shaped rewards before training: lapwing audit HardMaze",
    "solve": "Solve any reward in a maze: lapwing solve FourRoom --reward goal=1,1",
    "reach": "Reach any goal, from data: lapwing reach PlaneHardMaze",
    "options": "Build options from eigenfunctions: lapwing options FourRoom",
    "train": "Train an agent on a shaped reward: lapwing train HardMaze",
    "reproduce": "Reproduce a figure of the paper: lapwing reproduce fig4",
}
"""One line per command in `lapwing --help`; the full text is in `lapwing COMMAND --help`."""
ABOUT = """Laplacian state representations from reinforcement-learning experience.

lapwing COMMAND --help lists the options of a command, with examples; lapwing --version prints the version."""

_KEPT = ("out", "overwrite", "resume", "log", "json", "help")
GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "learn": {
        "most used": (
            *("dim", "transitions", "observation", "observation-key", "preset", "seed", "out", "resume"),
        ),
        "what to learn from": (
            *("keys", "wrap", "past-termination", "image-size", "episode-length", "num-envs", "stay"),
            *("true-chain", "held-out"),
        ),
        "what to learn": (
            *("objective", "lam", "lam-final", "past-end", "beta", "delta", "oversample", "rotate"),
        ),
        "how to learn it": (),
        "output": _KEPT,
    },
    "train": {
        "most used": ("reward", "filter", "goal", "representation", "steps", "seed", "out", "resume"),
        "the agent and its task": (),
        "output": _KEPT,
    },
}
"""The options of the long commands in groups; an empty group has all options that no other group has."""


@contextlib.contextmanager
def grouped_help(command: str) -> Iterator[None]:
    """Print the help of the enclosed code with its options in groups."""
    if command not in GROUPS:
        yield
        return
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            yield
    finally:
        print(grouped(printed.getvalue(), GROUPS[command]), end="")


def grouped(text: str, groups: dict[str, tuple[str, ...]]) -> str:
    """The text with its section of options cut into one for each group.

    Args:
        text: what tyro prints where it cannot draw boxes: a title, a rule, and indented lines.
        groups: titles, and the names of options in each; of one that is empty, all that are in no other.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    if " options" not in lines:
        return text
    begin = lines.index(" options")
    entries = _entries(lines[begin + 2 :])
    written = lines[:begin]
    named = {name for names in groups.values() for name in names}
    others = [name for name in entries if name not in named]
    for title, names in groups.items():
        chosen = [line for name in names or others for line in entries.pop(name, [])]
        written += [f" {title}", lines[begin + 1], *chosen, ""] if chosen else []
    return "\n".join(written)


def _entries(lines: list[str]) -> dict[str, list[str]]:
    """The lines of each option, by its name; empty ones are left out."""
    entries: dict[str, list[str]] = {}
    name = ""
    for line in filter(None, lines):
        option = re.match(r"  (?:-\w, )?--(?:no-)?([\w-]+)", line)
        name = option[1] if option else name
        entries.setdefault(name, []).append(line)
    return {name: _without_default_of_a_negation(lines) for name, lines in entries.items()}


def _without_default_of_a_negation(lines: list[str]) -> list[str]:
    """The lines of an option; of `--no-rotate` the default "True" is that of `rotate`, and reads wrongly."""
    text = "\n".join(lines)
    if text.lstrip().startswith("--no-"):
        text = re.sub(r"\s*\(default:\s+True\)", "", text)
    return text.split("\n")
