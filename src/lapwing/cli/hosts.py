"""`lapwing learn --hosts`: one process of a job, run in a child process.

If one process of a job is lost or does not answer, JAX aborts the others with a stack trace. So the work is
done in a child, and the parent reports in one sentence how it ended.
"""

import multiprocessing
import multiprocessing.context
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NoReturn

from lapwing import storage
from lapwing.cli.arguments import Learn
from lapwing.cli.rendezvous import Place, connect, read_place
from lapwing.cli.running import how_to_resume
from lapwing.cli.start import INTERRUPTED
from lapwing.errors import ConfigError, HostsError, LapwingError

SECONDS_FOR_OTHERS = 1.0
"""A process that refuses its work stays so long, so that the others can say the same before they lose it."""
SECONDS_TO_STOP = 5
"""After Ctrl-C a child has so long to end by itself, which it does between two records."""
SECONDS_TO_NOTICE = 1
"""What reached this process alone is sent on to the child after so long."""
LOST = 75
"""The exit code of a child that has lost another process."""
WORDS_OF_LOSS = ("Gloo", "gloo", "coordination", "heartbeat")
"""What JAX's errors name where another process was lost."""


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
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child's too, until it is connected
    child.start()
    signal.signal(signal.SIGINT, before)
    try:
        child.join()
    except KeyboardInterrupt:
        _stop(child, connected.is_set())
        if child.exitcode != INTERRUPTED:  # else it has said so itself
            if connected.is_set() and command.out and command.out.is_dir():
                print(f"lapwing: {how_to_resume(command.out)}", file=sys.stderr)
            print("lapwing: interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    if child.exitcode in (0, 1, 2, INTERRUPTED):
        raise SystemExit(child.exitcode)
    again = (
        f"start all again with --out {command.out or 'RUN'} --resume, in any number that divides the shards"
    )
    if child.exitcode is not None and child.exitcode < 0 and child.exitcode != -signal.SIGABRT:
        raise HostsError(
            f"this process was ended by signal {-child.exitcode} (9: often for want of memory); {again}"
        )
    if not connected.is_set():
        named = place.address or "the address that the environment names"
        raise HostsError(
            f"not all processes of the job met at {named} within {place.seconds} seconds; start all of "
            "them, with the address of process 0 and the same number of processes, and look whether its port "
            "is free and open"
        )
    raise HostsError(
        f"a process of the job was lost, so this one has ended; look at what the others say, then {again}"
    )


def _stop(child: multiprocessing.context.SpawnProcess, connected: bool) -> None:
    """End a child after Ctrl-C, of which it knows if the whole group was interrupted."""
    if connected:
        child.join(SECONDS_TO_NOTICE)
        if child.is_alive() and child.pid:
            os.kill(child.pid, signal.SIGINT)
        child.join(SECONDS_TO_STOP)
    child.kill()
    child.join()


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
    from lapwing.laplacian.hosts import check_alike
    from lapwing.runs.learn import run

    settings = command.settings()
    connect(place)
    connected.set()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        check_alike({"number of processes": place.count or jax.process_count()})
        if jax.process_index() == 0:
            COMMANDS[type(command)](command)
        else:
            run(read_source(command.target), settings, command.out or Path("runs"))
        jax.distributed.shutdown()
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if isinstance(error, LapwingError) or not any(word in str(error) for word in WORDS_OF_LOSS):
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
