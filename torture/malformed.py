"""Data files and mazes that are not what they should be: learned from, or refused."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.data.source import read_source
from lapwing.errors import LapwingError
from lapwing.laplacian.target import open_target
from lapwing.mazes import read_maze
from lapwing.settings.learn import LearnSettings
from torture.tally import REFUSED, SAME, Tally

TRIES = {"malformed": 300}
ABOUT = {
    "malformed": "data files (.npz, .hdf5, folders) and mazes with faults, opened as `lapwing learn` does"
}


def attempts(part: str, tally: Tally) -> Iterator[str]:
    """One file after the other."""
    for number in range(tally.tries, 10**9):
        chance = random.Random(number)
        with tempfile.TemporaryDirectory() as name:
            path = (_maze, _archive, _hdf5, _folder)[number % 4](Path(name), chance)
            try:
                settings = LearnSettings(transitions=200) if path.suffix == ".txt" else LearnSettings()
                open_target(read_source(path), settings)
                yield SAME
            except LapwingError:
                yield REFUSED
            except Exception as error:
                yield f"{number}: {path.name}: {type(error).__name__}: {str(error)[:200]}"


def _maze(folder: Path, chance: random.Random) -> Path:
    text = list(read_maze(chance.choice(["TwoRoom", "HardMaze", "FourRoom"])).text)
    for _ in range(chance.randrange(1, 30)):
        text[chance.randrange(len(text))] = chance.choice(
            ["#", ".", "G", "\n", "", "x", "\0", "é", "\t", "####"]
        )
    path = folder / "maze.txt"
    path.write_bytes("".join(text).encode() + chance.choice([b"", b"\xff\xfe", b"\r\n", b"\x00"]))
    return path


def _arrays(chance: random.Random) -> dict[str, Any]:
    """Arrays that are nearly those of experience."""
    rng, count = np.random.default_rng(chance.randrange(10**6)), chance.choice([0, 1, 60, 60, 60, 60])
    seen: Any = rng.normal(size=(count, *chance.choice([(), (2,), (2, 2), (4, 4, 3), (0,)])))
    seen = chance.choice(
        [seen, seen.astype(np.float16), seen.astype(int), seen.astype(complex), seen * np.nan, seen * 1e300]
    )
    seen = chance.choice(
        [seen, seen, seen.astype(str), np.array(5.0), seen.astype("datetime64[s]") if count else seen]
    )
    lengths = chance.choice(
        [[count], [count // 2] * 2, [-1, count + 1], [0], [], [1.5], [2**62, 2**62], [[count]], "x"]
    )
    names = {"observations": seen, "lengths": np.array(lengths)}
    if chance.random() < 0.3:
        del names["lengths"]
        names[chance.choice(["ends", "terminals", "dones"])] = rng.integers(
            0, 3, size=chance.choice([count, count + 1, 0])
        )
    if chance.random() < 0.3:
        names[chance.choice(["actions", "rewards", "table", "next_observations"])] = rng.normal(
            size=chance.choice([count, 3])
        )
    if chance.random() < 0.1:
        del names["observations"]
    return names


def _archive(folder: Path, chance: random.Random) -> Path:
    path = folder / "data.npz"
    np.savez(path, **_arrays(chance))
    return _cut(path, chance)


def _hdf5(folder: Path, chance: random.Random) -> Path:
    import h5py

    path = folder / "data.hdf5"
    with h5py.File(path, "w") as file:
        for name, array in _arrays(chance).items():
            if array.dtype.kind in "ifcb":
                file[name] = array
    return _cut(path, chance)


def _folder(folder: Path, chance: random.Random) -> Path:
    (folder / "walks").mkdir()
    for name, array in _arrays(chance).items():
        np.save(folder / "walks" / f"{name}.npy", array)
    manifest = chance.choice(
        [
            '{"kind": "lapwing experience", "format": 1}',
            "{}",
            "[]",
            "",
            '{"kind": "lapwing shards", "format": 1, "shards": [1]}',
        ]
    )
    (folder / "walks" / "manifest.json").write_text(manifest)
    return folder / "walks"


def _cut(path: Path, chance: random.Random) -> Path:
    """Sometimes with its end missing."""
    if chance.random() < 0.3:
        whole = path.read_bytes()
        path.write_bytes(whole[: chance.randrange(len(whole))])
    return path
