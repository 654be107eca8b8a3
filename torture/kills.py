"""kill -9 at any moment, over and over; the run is resumed and ends with the bits of an undisturbed one."""

import csv
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from lapwing import storage
from lapwing.runs.folder import RunFolder
from tests.support import processes
from tests.support.folders import without_times
from tests.support.jobs import free_port, sharded_walks, start_learning
from torture.tally import SAME, Tally

TRIES = {
    "kills:learn": 60,
    "kills:dqn": 40,
    "kills:ddpg": 30,
    "kills:reach": 30,
    "kills:reproduce": 30,
    "kills:hosts": 10,
}
ABOUT = {
    part: f"kill -9 in {command}, then `--resume`"
    for part, command in {
        "kills:learn": "`lapwing learn`",
        "kills:dqn": "`lapwing train TwoRoom` (DQN, from its own checkpoints)",
        "kills:ddpg": "`lapwing train PointUMaze` (DDPG, from its own checkpoints)",
        "kills:reach": "`lapwing reach`",
        "kills:reproduce": "`lapwing reproduce fig3`",
        "kills:hosts": "one of two processes of `lapwing learn --hosts`",
    }.items()
}
_NETWORK = ["--hidden", "16", "--batch", "16"]
COMMANDS = {
    "learn": ["learn", "FourRoom", "--transitions", "5000", "--dim", "4", "--steps", "300", "--hidden", "32"],
    "dqn": ["train", "TwoRoom", "--reward", "l2", "--random-steps", "60", "--steps", "400", *_NETWORK],
    "ddpg": [
        "train",
        "PointUMaze",
        "--reward",
        "sparse",
        "--random-steps",
        "1600",
        "--steps",
        "640",
        *_NETWORK,
    ],
    "reach": ["reach", "TwoRoom", "--transitions", "5000", "--dim", "5", "--landmarks", "60"],
    "reproduce": ["reproduce", "fig3", "--only", "input=index", "n=1000", "--seeds", "2", "--jobs", "1"],
}
COMMANDS["dqn"] += ["--evaluate-every", "20"]
COMMANDS["ddpg"] += ["--evaluate-every", "160"]
KILLS_A_RUN = 6
SKETCH = """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    FigureCanvasAgg.print_png = lambda canvas, file: file.write(b"sketch")
    FigureCanvasSVG.print_svg = lambda canvas, file, metadata: file.write(b"sketch")
    import lapwing.cli.commands
    lapwing.cli.commands.print = lambda *words, **how: None
    for line in sys.stdin:"""
"""Pictures are not rendered, which would take most of the time; nothing is printed where answers are read."""


def attempts(part: str, tally: Tally) -> Iterator[str]:
    """One kill after the other; of those in one run the last is told how the run ended."""
    kind = part.partition(":")[2]
    if kind == "hosts":
        yield from _on_hosts(tally.tries)
        return
    with tempfile.TemporaryDirectory() as name:
        folder, instants = Path(name), random.Random(f"{part} {tally.tries}")
        with mock.patch.object(
            processes, "ZYGOTE", processes.ZYGOTE.replace("\n    for line in sys.stdin:", SKETCH)
        ):
            zygote = processes.Zygote(folder)
        try:
            command = [*COMMANDS[kind], "--out"]
            again = [] if kind == "reproduce" else ["--resume"]
            assert zygote.run([*command, str(folder / "warm")])
            began = time.monotonic()
            assert zygote.run([*command, str(folder / "whole")])
            lifetime, wanted = time.monotonic() - began, essence(kind, folder / "whole")
            for number in range(10**6):
                out, kills = folder / f"run-{number}", 0
                while kills < KILLS_A_RUN and not zygote.run(
                    [*command, str(out), *again], instants.uniform(0, lifetime)
                ):
                    kills += 1
                if not kills:  # it was quicker than its end
                    shutil.rmtree(out)
                    continue
                yield from [SAME] * (kills - 1)
                yield _ended(kind, zygote, [*command, str(out), *again], out, wanted)
                shutil.rmtree(out)
        finally:
            zygote.close()


def _ended(kind: str, zygote: processes.Zygote, command: list[str], out: Path, wanted: object) -> str:
    try:
        zygote.run(command)
        return SAME if essence(kind, out) == wanted else f"{out.name} has other bits"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[-300:]}"


def essence(kind: str, out: Path) -> object:
    """What a finished run holds, without times."""
    if kind == "reproduce":
        with (out / "fig3.csv").open(newline="") as file:
            rows = [row | {"seconds": ""} for row in csv.DictReader(file)]
        return sorted(str(row) for row in rows if "seconds" not in row["metric"])
    run, models = RunFolder(out), sorted(out.glob("*.safetensors"))
    assert run.finished, out
    return (
        [storage.file_sha256(path) for path in models],
        without_times(run.result()),
        without_times(run.metrics()),
    )


def _on_hosts(seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = sharded_walks(folder, 2)
        assert job(folder / "whole", shards, None, chance)[0] == [0, 0]
        wanted = essence("hosts", folder / "whole")
        for number in range(10**6):
            out = folder / f"run-{number}"
            codes, said = job(out, shards, chance.randrange(2), chance)
            if codes not in ([2, 2], [0, 0]) or "Traceback" in "".join(said):
                yield f"exit codes {codes}: {said}"
                continue
            assert job(out, shards, None, chance)[0] == [0, 0]
            yield SAME if essence("hosts", out) == wanted else f"{out.name} has other bits"


def job(
    out: Path, shards: Path, killed: int | None, chance: random.Random, steps: int = 2_000
) -> tuple[list[int], list[str]]:
    """The exit codes of two processes, after the child of one was killed, and what they said."""
    port, words = free_port(), ["--steps", str(steps), "--resume"]
    begun = [start_learning(shards, out, port, number, 2, *words) for number in range(2)]
    if killed is not None:
        parent = begun[killed].pid
        time.sleep(chance.uniform(1, 12))
        children = Path(f"/proc/{parent}/task/{parent}/children")
        for child in children.read_text().split()[-1:] if children.exists() else []:
            os.kill(int(child), signal.SIGKILL)
    said = [process.communicate(timeout=300)[1] for process in begun]
    return [process.returncode for process in begun], said
