"""`lapwing learn --hosts`: one process of a job, run in a child process.

If one process of a job is lost or does not answer, JAX aborts the others with a stack trace. So the work is
done in a child, and the parent reports in one sentence how it ended.
"""

import multiprocessing
import os
import re
import sys
import threading
import time
import traceback
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NoReturn

from lapwing import storage
from lapwing.cli.arguments import Learn
from lapwing.errors import ConfigError, HostsError

SECONDS_OF_SILENCE = 100
"""After so long a process that says nothing is given up; one that ends is noticed at once."""
SECONDS_TO_END = 7 * 24 * 3600
"""The others wait so long while the first one evaluates and draws."""
SECONDS_FOR_OTHERS = 1.0
"""A process that refuses its work stays so long, so that the others can say the same before they lose it."""
SECONDS_TO_STOP = 10
"""After Ctrl-C a child has so long to end by itself."""
LOST = 75
"""The exit code of a child that has lost another process."""


@dataclass(frozen=True)
class Place:
    """Which process of which job this is; None where the environment is to say."""

    address: str | None = None
    number: int | None = None
    count: int | None = None
    seconds: int = 60
    """How long the processes wait for each other."""


def read_place(text: str) -> Place:
    """The place that `--hosts` names.

    Example:
        >>> read_place("10.0.0.5:1234,0/4")
        Place(address='10.0.0.5:1234', number=0, count=4, seconds=60)
    """
    if text == "auto":
        return Place()
    found = re.fullmatch(r"(\S+:\d{1,5}),(\d+)/(\d+)", text)
    if found is None or int(found[2]) >= int(found[3]):
        raise ConfigError(
            f"hosts must be auto or ADDRESS:PORT,NUMBER/COUNT, numbers from 0, such as 10.0.0.5:1234,0/4, "
            f"not {text!r}"
        )
    return Place(found[1], int(found[2]), int(found[3]))


def learn_on_hosts(command: Learn) -> NoReturn:
    """Run the command as one process of a job; what ends it otherwise than well is one sentence."""
    from lapwing.data.shards import is_sharded

    assert command.hosts is not None
    place = read_place(command.hosts)
    if not is_sharded(Path(command.target)):
        raise ConfigError(
            f"hosts only works with a folder of shards, and {command.target} is none; write one with "
            "lapwing data shard FOLDER --shards N"
        )
    spawning = multiprocessing.get_context("spawn")
    connected = spawning.Event()
    child = spawning.Process(target=_work, args=(replace(command, hosts=None), place, connected))
    child.start()
    try:
        child.join()
    except KeyboardInterrupt:  # the child has it too, and says so
        child.join(SECONDS_TO_STOP)
        child.kill()
        child.join()
    if child.exitcode in (0, 1, 2, 130):
        raise SystemExit(child.exitcode)
    if not connected.is_set():
        named = place.address or "the address that the environment names"
        raise HostsError(
            f"not all processes of the job met at {named} within {place.seconds} seconds; start all of "
            "them, with the address of process 0, and look whether its port is free and open"
        )
    raise HostsError(
        "a process of the job was lost, so this one has ended; look at what the others say, then start all "
        f"again with --out {command.out or 'RUN'} --resume, in any number that divides the shards"
    )


def _work(command: Learn, place: Place, connected: Any) -> NoReturn:
    """The child: connect, learn, and end as the command line does."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _keep_streams_from_libraries()
    from lapwing.cli.main import carry_out

    code: Any = 1
    try:
        carry_out(lambda: _learn(command, place, connected))
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if code:
        time.sleep(SECONDS_FOR_OTHERS)
    os._exit(code)  # JAX would wait for the others, which wait for this one


def _learn(command: Learn, place: Place, connected: Any) -> None:
    import jax

    from lapwing.cli.commands import COMMANDS
    from lapwing.data.source import read_source
    from lapwing.runs.learn import run

    settings = command.settings()
    try:
        jax.distributed.initialize(
            place.address,
            place.count,
            place.number,
            initialization_timeout=place.seconds,
            heartbeat_timeout_seconds=SECONDS_OF_SILENCE,
            shutdown_timeout_seconds=SECONDS_TO_END,
        )
    except ValueError as error:
        raise ConfigError(
            f"hosts=auto found no job in the environment, such as that of SLURM ({error}); name the place: "
            "--hosts ADDRESS:PORT,NUMBER/COUNT"
        ) from error
    connected.set()
    try:
        if jax.process_index() == 0:
            COMMANDS[type(command)](command)
        else:
            run(read_source(command.target), settings, command.out or Path("runs"))
        jax.distributed.shutdown()
    except jax.errors.JaxRuntimeError as error:
        if not any(word in str(error) for word in ("Gloo", "gloo", "coordination", "heartbeat")):
            raise
        os._exit(LOST)


def _end_with_parent() -> None:
    """End at once where the parent is killed: nothing is lost but what follows the last checkpoint."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(LOST)


def _keep_streams_from_libraries() -> None:
    """Python keeps standard output and error; what libraries write there by themselves is left out."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        stream.flush()
        kept, nowhere = os.dup(stream.fileno()), storage.nowhere()
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        setattr(sys, name, os.fdopen(kept, "w", encoding=stream.encoding, errors="replace", buffering=1))
