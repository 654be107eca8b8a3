"""Every file that lapwing writes, damaged: read as before, or refused."""

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import lapwing
from lapwing.data.shards import load_shard, shard
from lapwing.errors import LapwingError
from lapwing.runs.folder import RunFolder
from tests.support.folders import content
from tests.support.jobs import PAIRWISE
from tests.support.small_runs import SMALL
from tests.support.walks import reflected
from torture.tally import REFUSED, SAME, Tally

TRIES = {"corruptions": 500}
ABOUT = {
    "corruptions": "bits flipped, bytes cut, zeroed, doubled or added in every kind of file that is written"
}
Reader = Callable[[Path], Any]


def written(folder: Path) -> dict[Path, Reader]:
    """A file of every kind, and what reads it."""
    lapwing.learn("FourRoom", out=folder / "learn", **SMALL)
    tiny: dict[str, Any] = {"random_steps": 60, "steps": 40, "evaluate_every": 10, "hidden": (8,), "batch": 8}
    lapwing.train("TwoRoom", out=folder / "train", reward="l2", **tiny)
    lapwing.reach("TwoRoom", out=folder / "reach", transitions=5_000, dim=5, landmarks=60)
    lapwing.discover_options("TwoRoom", out=folder / "options", exact=True, count=4)
    lapwing.save_episodes(folder / "walks", reflected(40, 51, 0.1, dims=2).astype(np.float32))
    shard(folder / "walks", 2)
    lapwing.learn(folder / "walks-shards", out=folder / "hosts", **PAIRWISE)
    lapwing.sweep(_point, {"x": [1, 2]}, out=folder / "sweep", jobs=1)
    readers: dict[Path, Reader] = {}
    for run in ("learn", "train", "reach", "options", "hosts"):
        for path in sorted((folder / run).iterdir()):
            if path.suffix in _READERS and path.is_file():
                readers[path] = _READERS[path.suffix]
    for path in (folder / "walks").iterdir():
        readers[path] = lambda path: lapwing.load_experience(path.parent).sha256()
    for path in (folder / "walks-shards").rglob("*.*"):
        if path.is_file():
            readers[path] = lambda path: [load_shard(folder / "walks-shards", n).sha256() for n in range(2)]
    for path in (folder / "sweep").glob("*.json"):
        readers[path] = lambda path: _runs(folder)
    return readers


def _point(x: int) -> dict[str, int]:
    return {"y": x}


def _runs(folder: Path) -> Any:
    return [run.row() for run in lapwing.sweep(_point, {"x": [1, 2]}, out=folder / "sweep", jobs=1)]


def _model(path: Path) -> Any:
    readers = {
        "representation": lambda: lapwing.load(path).sha256(),
        "agent": lambda: str(lapwing.load_agent(path).config),
        "reacher": lambda: str(lapwing.load_reacher(path)),
        "options": lambda: str(lapwing.load_options(path)),
    }
    return readers[path.stem]()


def _text(path: Path) -> Any:
    run = RunFolder(path.parent)
    return {"config": run.config, "result": run.result, "metrics": run.metrics}[path.stem]()


_READERS: dict[str, Reader] = {
    ".json": _text,
    ".jsonl": _text,
    ".safetensors": _model,
    ".npz": lambda path: lapwing.load_experience(path).sha256(),
}


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """The same with one fault."""
    at, length = chance.randrange(len(whole)), chance.randrange(1, 200)
    faults = (
        lambda: whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :],
        lambda: whole[:at],
        lambda: whole[:at] + bytes(len(whole[at : at + length])) + whole[at + length :],
        lambda: whole[:at] + whole[at : at + length] + whole[at:],
        lambda: whole + chance.randbytes(length),
        lambda: whole[:at] + whole[at + length :],
    )
    return chance.choice(faults)()


def attempts(part: str, tally: Tally) -> Iterator[str]:
    """One fault in one file after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        readers = written(folder)
        kinds = sorted({f"{path.parent.name}/{path.name}" for path in readers})
        tally.note = f"{len(kinds)} files of {len({path.name for path in readers})} names"
        before, whole = {path: read(path) for path, read in readers.items()}, content(folder)
        for number in range(tally.tries, 10**6):
            chance = random.Random(number)
            path = sorted(readers)[number % len(readers)]
            bytes_before = whole[str(path.relative_to(folder))]
            path.write_bytes(damaged(bytes_before, chance))
            yield _outcome(readers[path], path, before[path], path.read_bytes() == bytes_before)
            path.write_bytes(bytes_before)
        shutil.rmtree(folder)


def _outcome(read: Reader, path: Path, before: Any, same_bytes: bool) -> str:
    try:
        found = read(path)
    except LapwingError:
        return REFUSED
    except Exception as error:
        return f"{path.name}: {type(error).__name__}: {error}"
    same = same_bytes or found == before
    # A file of rows that was cut between two of them is what a crash leaves, and is read as such.
    cut = path.suffix == ".jsonl" and found == before[: len(found)]
    return SAME if same or cut else f"{path.name}: read as something else"
