"""Rewards of mazes as text: `goal=ROW,COLUMN` and similar, or a map painted like a maze.

A map has the maze's own lines with rewards instead of floor: `.` is 0, `1` to `9` are themselves, `a` to `i`
are -1 to -9, and `G` is 1.
"""

import re
from pathlib import Path

import numpy as np

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, MazeError

MARKS = {".": 0.0, "0": 0.0, "G": 1.0}
MARKS |= {str(digit): float(digit) for digit in range(1, 10)}
MARKS |= {letter: -float(place) for place, letter in enumerate("abcdefghi", start=1)}
_TERM = re.compile(r"(?P<value>[^=\s]+)=(?P<row>-?\d+),(?P<column>-?\d+)")


def read_reward(world: GridWorld, text: str) -> np.ndarray:
    """The reward of each state of a maze, from cells and their rewards, or from the path of a map.

    Args:
        world: the maze.
        text: `goal=ROW,COLUMN`, a reward of 1 in that cell; `VALUE=ROW,COLUMN`, another one; several of them
            with spaces between; or the path of a painted map.

    Example:
        >>> from lapwing.mazes import parse_maze
        >>> read_reward(GridWorld(parse_maze("...", name="row")), "goal=0,2 -0.5=0,1").tolist()
        [0.0, -0.5, 1.0]
    """
    if "=" in text and not Path(text).is_file():
        return _of_cells(world, text)
    path = Path(text)
    try:
        content = path.read_text("utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigError(
            f"reward {text!r} is neither goal=ROW,COLUMN nor a map that can be read: {error}"
        ) from error
    return painted_reward(world, content, path.name)


def _of_cells(world: GridWorld, text: str) -> np.ndarray:
    rewards = np.zeros(world.n_states)
    for term in text.split():
        match = _TERM.fullmatch(term)
        if match is None:
            raise ConfigError(f"reward {term!r} is not goal=ROW,COLUMN or VALUE=ROW,COLUMN")
        state = world.check_cell((int(match["row"]), int(match["column"])))
        rewards[state] += _value(match["value"])
    return rewards


def _value(word: str) -> float:
    if word == "goal":
        return 1.0
    try:
        number = float(word)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise ConfigError(f"reward {word!r} is no finite number; write goal=ROW,COLUMN or VALUE=ROW,COLUMN")
    return number


def painted_reward(world: GridWorld, text: str, name: str) -> np.ndarray:
    """The reward of each state, from a map of the maze that has rewards in place of floor."""
    lines = [line.rstrip() for line in text.strip("\r\n").splitlines()]
    height, width = world.maze.floor.shape
    if len(lines) != height or any(len(line) != width for line in lines):
        raise MazeError(
            f"reward map {name} must have {height} lines of {width} marks, as {world.maze.name} has"
        )
    return np.array([_mark(world, lines, row, column, name) for row, column in world.cells.tolist()])


def _mark(world: GridWorld, lines: list[str], row: int, column: int, name: str) -> float:
    mark = lines[row][column]
    if mark not in MARKS:
        what = "a wall" if mark == "#" else f"the mark {mark!r}"
        raise MazeError(
            f"reward map {name} has {what} in line {row + 1}, column {column + 1}, which is floor in "
            f"{world.maze.name}; use . for 0, 1 to 9, a to i for -1 to -9, G for 1"
        )
    return MARKS[mark]
