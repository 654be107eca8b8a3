"""A run folder that is deleted, renamed, or made read-only while its run goes on."""

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lapwing
from lapwing.errors import LapwingError
from tests.support.processes import in_own_mount
from tests.support.small_runs import SMALL
from torture.tally import REFUSED, SAME, Tally

TRIES = {"folders": 60}
ABOUT = {"folders": "the run folder deleted, renamed or made read-only at any moment of `lapwing.learn`"}
READ_ONLY = """
import subprocess, sys, warnings
from pathlib import Path
import lapwing
from lapwing.errors import LapwingError
from tests.support.small_runs import SMALL
warnings.simplefilter("ignore")
disk, calls = Path(sys.argv[1]), 0

def on_progress(*told):
    global calls
    calls += 1
    if calls == {at} and (disk / "run").is_dir():
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(disk / "run")], check=True)

try:
    lapwing.learn("FourRoom", out=disk / "run", on_progress=on_progress, **SMALL)
    print("same")
except LapwingError as error:
    print("refused")
except BaseException as error:
    print(repr(error))
"""


def attempts(part: str, tally: Tally) -> Iterator[str]:
    """One accident after the other; every sixth makes the disk read-only, for which a process is started."""
    for number in range(tally.tries, 10**6):
        chance = random.Random(number)
        with tempfile.TemporaryDirectory() as name:
            if number % 6 == 5:
                yield in_own_mount(
                    Path(name), "size=64m", READ_ONLY.format(at=chance.randrange(1, 70))
                ).strip()
            else:
                yield _outcome(Path(name), chance)


def _outcome(folder: Path, chance: random.Random) -> str:
    out, at, calls = folder / "run", chance.randrange(1, 70), 0
    accident: Any = chance.choice([lambda: shutil.rmtree(out), lambda: out.rename(folder / "elsewhere")])

    def on_progress(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == at and out.exists():
            accident()

    try:
        lapwing.learn("FourRoom", out=out, on_progress=on_progress, **SMALL)
        return SAME
    except LapwingError:
        return REFUSED
    except Exception as error:
        return f"at call {at}: {type(error).__name__}: {error}"
