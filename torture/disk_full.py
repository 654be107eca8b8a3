"""A disk that is full at the first write of a command, at the second, and so on; then the command again.

The disk of `lapwing learn --hosts`, which writes in a process of its own, is a real small one.
"""

import errno
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG

import lapwing
from lapwing import storage
from lapwing.runs.folder import RunFolder
from tests.support.command_line import called
from tests.support.jobs import sharded_walks
from tests.support.walks import reflected
from torture.kills import essence, job
from torture.tally import REFUSED, SAME, Tally


class Command(NamedTuple):
    """What is done on a full disk."""

    words: tuple[str, ...]
    prepared: tuple[str, ...] = ()
    """The command whose finished run it takes, with a larger disk."""
    out: bool = True
    """Whether it has --out."""
    resumes: bool = True
    """Whether it has --resume; the others begin again."""

    def line(self, *more: str) -> list[str]:
        """The words to call."""
        return [*self.words, *(["--out", str(OUT)] if self.out else []), *more]


OUT = Path("out")
_AGENT = ("--evaluate-every", "20", "--hidden", "8", "--batch", "8")
_IN_ARENA = ("--hidden", "8", "--batch", "8", "--evaluate-every", "160")
_LEARN = ("learn", "TwoRoom", "--transitions", "2000", "--dim", "3", "--steps", "4", "--hidden", "8")
_CELL = ("--only", "input=index", "n=100", "method=transitions-2017", "--seeds", "1", "--jobs", "1")
COMMANDS = {
    "solve": Command(
        ("solve", "TwoRoom", "--reward", "goal=1,1", "--dim", "10"),
        resumes=False,
    ),
    "shard": Command(("data", "shard", "walks", "--shards", "2"), resumes=False),
    "audit": Command(("audit", "TwoRoom"), resumes=False),
    "explore": Command(("explore", str(OUT), "--no-open"), _LEARN, out=False, resumes=False),
    "evaluate": Command(("evaluate", str(OUT)), _LEARN, out=False, resumes=False),
    "reproduce": Command(("reproduce", "fig3", *_CELL), resumes=False),
    "options": Command(("options", "TwoRoom", "--exact", "--count", "4")),
    "learn": Command(_LEARN),
    "train": Command(
        ("train", "TwoRoom", "--reward", "l2", "--random-steps", "60", "--steps", "40", *_AGENT)
    ),
    "arena": Command(
        ("train", "PointUMaze", "--reward", "l2", "--random-steps", "1600", "--steps", "160", *_IN_ARENA)
    ),
    "reach": Command(("reach", "TwoRoom", "--transitions", "5000", "--dim", "5", "--landmarks", "60")),
}
OVER = ("options", "learn", "train", "reach")
"""Those that also replace a finished run."""
KINDS = (*((kind, False) for kind in COMMANDS), *((kind, True) for kind in OVER))
TRIES = {"disk_full": 400, "disk_full:hosts": 12}
ABOUT = {
    "disk_full": "no space left at the k-th write of a command, for every k; then the command again",
    "disk_full:hosts": "`lapwing learn --hosts` on disks of 1/12, 2/12, ... of its size; then `--resume`",
}
STEPS = 200
MARGIN = 1 << 16
"""Of a disk, for what is written beside a finished run's files."""


class FullDisk:
    """The k-th write is refused, as are all after it."""

    def __init__(self, k: int):
        self.left, self.mkstemp, self.fsync, self.open = k, tempfile.mkstemp, os.fsync, Path.open

    def spend(self) -> None:
        """Count a write, or refuse it."""
        self.left -= 1
        if self.left <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    def __enter__(self) -> "FullDisk":
        full = self

        def mkstemp(*args: Any, **options: Any) -> Any:
            full.spend()
            return full.mkstemp(*args, **options)

        def fsync(descriptor: int) -> None:
            full.spend()
            full.fsync(descriptor)

        def opened(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
            if "a" in mode or "w" in mode:
                full.spend()
            return full.open(path, mode, *args, **options)

        self.patches = [
            mock.patch.object(FigureCanvasAgg, "print_png", lambda canvas, file: file.write(b"sketch")),
            mock.patch.object(FigureCanvasSVG, "print_svg", lambda canvas, file, metadata: file.write(b"")),
            mock.patch.object(tempfile, "mkstemp", mkstemp),
            mock.patch.object(os, "fsync", fsync),
            mock.patch.object(Path, "open", opened),
        ]
        for patch in self.patches:
            patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        for patch in self.patches:
            patch.stop()


def attempts(part: str, tally: Tally) -> Iterator[str]:
    """Every k of every command; those made before are passed over."""
    if part.endswith(":hosts"):
        yield from _on_hosts(tally)
        return
    before, number = Path.cwd(), 0
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            lapwing.save_episodes("walks", reflected(8, 31, 0.1, dims=2).astype(np.float32))
            for kind, overwrite in KINDS:
                k, done, outcome = 1, False, SAME
                while not done:
                    number += 1
                    if number > tally.tries or k == 1:
                        outcome, done = _attempt(kind, overwrite, k)
                    if number > tally.tries:
                        yield outcome
                    k = k + 1 if k < 12 else k + 5
            tally.note = "all writes of all commands were tried"
        finally:
            os.chdir(before)


def _attempt(kind: str, overwrite: bool, k: int) -> tuple[str, bool]:
    """What became of it, and whether the disk was large enough."""
    command = COMMANDS[kind]
    shutil.rmtree(OUT, ignore_errors=True)
    first = command.line("--seed", "1") if overwrite else [*command.prepared, "--out", str(OUT)]
    if overwrite or command.prepared:
        with FullDisk(10**9):
            code, _, err = called(*first)
        assert code == 0, err
    old = storage.file_sha256(_model(OUT)) if overwrite else ""
    with FullDisk(k) as disk:
        code, _, err = called(*command.line(*(["--overwrite"] if overwrite else [])))
    enough = disk.left > 0
    if enough:
        return (SAME if code == 0 else f"{kind} {k}: exit code {code}: {err[-200:]}"), True
    if code != 2 or "Traceback" in err or ("full" not in err and "space" not in err):
        return f"{kind} {k}: exit code {code}: {err[-200:]}", False
    if overwrite and not _survives(OUT, old):
        return f"{kind} {k}: the finished run is gone", False
    again = []
    if overwrite and (not command.resumes or RunFolder(OUT).finished):
        again = ["--overwrite"]
    elif command.resumes:
        again = ["--resume"]
    with FullDisk(10**9):
        code, _, err = called(*command.line(*again))
    return (REFUSED if code == 0 else f"{kind} {k}: not done again: {err[-200:]}"), False


def _on_hosts(tally: Tally) -> Iterator[str]:
    """Process 0 writes to a disk that is too small, and then to the same one made larger."""
    with tempfile.TemporaryDirectory() as name:
        folder, chance = Path(name), random.Random(0)
        shards, disk = sharded_walks(folder, 2), folder / "disk"
        disk.mkdir()
        assert job(folder / "whole", shards, None, chance, STEPS)[0] == [0, 0]
        wanted, whole = essence("hosts", folder / "whole"), _bytes_in(folder / "whole")
        for number in range(tally.tries, TRIES["disk_full:hosts"]):
            size = max(4096, whole * (number + 1) // TRIES["disk_full:hosts"])
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
            try:
                yield _small_disk(disk, whole, lambda: job(disk / "run", shards, None, chance, STEPS), wanted)
            finally:
                subprocess.run(["umount", disk], check=True)


def _small_disk(disk: Path, whole: int, begin: Callable[[], Any], wanted: object) -> str:
    codes, said = begin()
    if codes not in ([2, 2], [0, 0]) or "Traceback" in "".join(said):
        return f"hosts: exit codes {codes}: {said[0][-200:]}"
    if codes == [2, 2] and "full" not in said[0] and "space" not in said[0]:
        return f"hosts: {said[0][-200:]}"
    subprocess.run(["mount", "-o", f"remount,size={2 * whole + MARGIN}", disk], check=True)
    again, said = begin()
    if again != [0, 0] or essence("hosts", disk / "run") != wanted:
        return f"hosts: not done again: {again} {said[0][-200:]}"
    return SAME if codes == [0, 0] else REFUSED


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _model(out: Path) -> Path:
    return next(iter(sorted(out.glob("*.safetensors"))))


def _survives(out: Path, old: str) -> bool:
    """Whether the finished run is there, or set aside, or has been replaced by one that is finished."""
    if RunFolder(out).finished:
        return True
    aside = out / ".replaced"
    files = [path for folder in (aside, out) for path in folder.glob("*.safetensors")]
    return any(storage.file_sha256(path) == old for path in files)
