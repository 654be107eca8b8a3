"""Mazes as text: `#` wall, `.` floor, at most one `G` goal. The built-in ones are files beside this one.

A maze is its lines of text and nothing else, so a user's own text file works like a built-in.
Positions are (row, column), counted from 0 at the top left.
"""

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path

import numpy as np

from lapwing.errors import LapwingWarning, MazeError, nearest, warn

BUILT_IN = {
    "OneRoom": "one_room.txt",
    "TwoRoom": "two_room.txt",
    "HardMaze": "hard_maze.txt",
    "FourRoom": "four_room.txt",
}
BENCHMARK = {
    **{f"GridMaze-{size}": f"grid_maze_{size}.txt" for size in (7, 9, 17, 19, 26, 32)},
    **{f"GridRoom-{rooms}": f"grid_room_{rooms}.txt" for rooms in (1, 4, 16, 32, 64)},
    "GridRoomSym-4": "grid_room_sym_4.txt",
}
"""The twelve mazes of "Proper Laplacian Representation Learning" (Gomez et al., 2024)."""
ARENAS = {"UMaze": "u_maze.txt", "HookMaze": "hook_maze.txt"}
"""Few and wide cells, for bodies that move freely within them."""
BODY_NAMES = ("Point", "Ant")
"""What moves through arenas."""
PLANE = "Plane"
"""What the names of mazes with continuous positions begin with."""
MOST_CELLS = 2**24
"""A file with more bytes than this is no maze."""
MAZES = BUILT_IN | BENCHMARK
"""Every maze that can be a target by its name."""
_FILES = MAZES | ARENAS
MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


@dataclass(frozen=True)
class Maze:
    """A maze whose floor is connected, as `read_maze` and `parse_maze` return it."""

    name: str
    lines: tuple[str, ...]
    unreachable: frozenset[tuple[int, int]] = field(default=frozenset(), compare=False)
    """Cells that were floor, and became wall because nothing leads there."""
    file: str | None = field(default=None, compare=False)
    """The text file that it was read from, as it was named."""

    @cached_property
    def floor(self) -> np.ndarray:
        """The floor cells: booleans, (height, width)."""
        marks = np.frombuffer("".join(self.lines).encode("utf-32-le"), "<u4")
        return marks.reshape(len(self.lines), -1) != ord("#")

    def is_floor(self, row: np.ndarray | np.integer, column: np.ndarray | np.integer) -> np.ndarray:
        """Whether cells are floor; everything outside the maze is wall."""
        height, width = self.floor.shape
        return np.asarray(self._walled[(row + 1).clip(0, height + 1), (column + 1).clip(0, width + 1)])

    @cached_property
    def _walled(self) -> np.ndarray:
        """The floor, with a wall around the maze."""
        return np.pad(self.floor, 1)

    @property
    def goal(self) -> tuple[int, int] | None:
        """The cell marked `G`, or None."""
        for row, line in enumerate(self.lines):
            if "G" in line:
                return row, line.index("G")
        return None

    @property
    def text(self) -> str:
        """The text of the maze."""
        return "\n".join(self.lines) + "\n"


def arena_names() -> tuple[str, ...]:
    """The names of the built-in arenas: PointUMaze and so on."""
    return tuple(body + maze for body in BODY_NAMES for maze in ARENAS)


def is_arena(name: str) -> bool:
    """Whether a target's name is that of an arena.

    Example:
        >>> is_arena("PointUMaze"), is_arena("Ant:my_maze.txt"), is_arena("FourRoom")
        (True, True, False)
    """
    body, colon, _ = name.partition(":")
    return name in arena_names() or bool(colon and body in BODY_NAMES)


def plane_names() -> tuple[str, ...]:
    """The names of the built-in planes: PlaneOneRoom and so on."""
    return tuple(PLANE + maze for maze in BUILT_IN)


def is_plane(name: str) -> bool:
    """Whether a target's name is that of a plane.

    Example:
        >>> is_plane("PlaneFourRoom"), is_plane("Plane:my_maze.txt"), is_plane("FourRoom")
        (True, True, False)
    """
    return name in plane_names() or name.startswith(f"{PLANE}:")


def read_maze(source: str | Path | Maze) -> Maze:
    """A built-in maze by its name, the maze in a text file, or a `Maze` itself.

    Example:
        >>> int(read_maze("FourRoom").floor.sum())
        152
    """
    if isinstance(source, Maze):
        return source
    if str(source) in _FILES:
        text = resources.files("lapwing.mazes").joinpath(_FILES[str(source)]).read_text("utf-8")
        return parse_maze(text, name=str(source))
    path = Path(source)
    try:
        if path.is_file() and path.stat().st_size > MOST_CELLS:
            raise MazeError(
                f"maze file {path} has {path.stat().st_size:,} bytes, and a maze at most "
                f"{MOST_CELLS:,} cells; draw a smaller one"
            )
        text = path.read_text("utf-8-sig") if path.is_file() else None
        why = _why_no_file(str(source), path) if text is None else ""
    except (UnicodeDecodeError, OSError) as error:
        raise MazeError(
            f"{path} is neither a maze, which is a text file, nor data that lapwing reads by its suffix, "
            f".npz, .hdf5 or .h5 ({error})"
        ) from error
    if text is None:
        raise MazeError(f"no maze {str(source)!r}: {why}")
    return dataclasses.replace(parse_maze(text, name=path.stem), file=str(source))


def _why_no_file(named: str, path: Path) -> str:
    """What is there in place of a text file, or which name may have been meant."""
    if named and path.is_dir():
        return "it is a folder; name a text file in it"
    if path.suffix or path.name != named:
        return "there is no such file; check the path"
    return nearest(named, _FILES)


def parse_maze(text: str, *, name: str) -> Maze:
    """The maze that `text` describes; unreachable floor becomes wall, with a warning."""
    lines = [line.rstrip() for line in text.strip("\r\n").splitlines()]
    _check_marks(lines, name)
    maze = Maze(name, tuple(lines))
    kept = _connected_part(maze)
    unreachable = [(int(row), int(column)) for row, column in np.argwhere(maze.floor & ~kept)]
    if not unreachable:
        return maze
    warn(_unreachable_message(maze, int(kept.sum()), unreachable), LapwingWarning)
    walled = tuple(
        "".join("#" if mark == "." and not kept[r, c] else mark for c, mark in enumerate(line))
        for r, line in enumerate(lines)
    )
    return Maze(name, walled, frozenset(unreachable))


def _check_marks(lines: list[str], name: str) -> None:
    width = len(lines[0]) if lines else 0
    for row, line in enumerate(lines):
        if len(line) != width:
            raise MazeError(
                f"maze {name}: line {row + 1} has {len(line)} cells and line 1 has {width}; "
                "make all lines equally long"
            )
        rest = line.lstrip("#.G")
        if rest:
            raise MazeError(
                f"maze {name}: unknown mark {rest[0]!r} in line {row + 1}, column {width - len(rest) + 1}; "
                "use # for wall, . for floor, G for the goal"
            )
    text = "".join(lines)
    if text.count("G") > 1:
        raise MazeError(f"maze {name}: {text.count('G')} goals; leave one G or none")
    if not set(text) & {".", "G"}:
        raise MazeError(f"maze {name}: no floor; mark at least one cell with . or G")


def _connected_part(maze: Maze) -> np.ndarray:
    """The floor that one can walk to from the goal; without a goal, the largest connected part."""
    from scipy import ndimage

    parts = np.empty(maze.floor.shape, int)
    ndimage.label(maze.floor, output=parts)
    largest = 1 + np.argmax(np.bincount(parts.ravel())[1:])
    return parts == (largest if maze.goal is None else parts[maze.goal])


def _unreachable_message(maze: Maze, kept: int, unreachable: list[tuple[int, int]]) -> str:
    named = ", ".join(f"({r},{c})" for r, c in unreachable[:8])
    more = f" and {len(unreachable) - 8} more" if len(unreachable) > 8 else ""
    part = "part with the goal" if maze.goal else "largest part"
    return (
        f"maze {maze.name}: {len(unreachable)} floor cells cannot be reached from the rest: "
        f"{named}{more}; keeping the {part}, {kept} cells"
    )
