"""Jobs of several processes on this machine."""

import os
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

import lapwing
from lapwing.data.shards import shard
from tests.support.walks import reflected

PAIRWISE = {"dim": 4, "steps": 60, "hidden": (16,), "encoder": "mlp", "estimator": "pairwise", "lam": 0.9}


_started: list[subprocess.Popen] = []


def sharded_walks(folder: Path, shards: int) -> Path:
    """A folder of shards of walks in the unit square."""
    walks = reflected(40, 51, 0.1, dims=2).astype(np.float32)
    lapwing.save_episodes(folder / "walks", walks)
    return shard(folder / "walks", shards)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(arguments: list[str], *, on: Sequence[str] = (), **options) -> subprocess.Popen:
    """Begin a Python process, or one `on` the host that these words lead to."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    _started.append(subprocess.Popen([*on, sys.executable, *arguments], env=environment, **options))
    return _started[-1]


def end_all() -> None:
    """Kill what is still running of all that was begun, as after a test that failed."""
    while _started:
        with _started.pop() as process:
            process.kill()


def start_learning(
    shards: Path,
    out: Path,
    port: int,
    number: int,
    count: int,
    *more: str,
    at: str = "127.0.0.1",
    on: Sequence[str] = (),
) -> subprocess.Popen:
    """One process of `lapwing learn SHARDS --hosts`, whose process 0 is `at` an address."""
    place = f"{at}:{port},{number}/{count}"
    settings = ["--dim", "4", "--hidden", "16", "--encoder", "mlp", "--estimator", "pairwise", "--lam", "0.9"]
    words = ["-m", "lapwing", "learn", str(shards), "--hosts", place, "--out", str(out), *settings, *more]
    return start(words, on=on, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


ADDRESSES = "10.213.77.1", "10.213.77.2"


@contextmanager
def two_hosts() -> Iterator[list[list[str]]]:
    """The words that lead to each of two hosts of this machine's own: network namespaces, joined by a cable.

    Each has an address of ADDRESSES and no way to the other but the cable. `OSError` where this user may not
    make them.
    """
    names, cables = ([f"lw{os.getpid()}{letter}{number}" for number in range(2)] for letter in "nc")
    with ExitStack() as made:
        for name in names:
            _ip("netns", "add", name)
            made.callback(_ip, "netns", "delete", name)
        peers = ["type", "veth", "peer", "name", cables[1], "netns", names[1]]
        _ip("link", "add", cables[0], "netns", names[0], *peers)
        for name, cable, address in zip(names, cables, ADDRESSES, strict=True):
            _ip("-n", name, "address", "add", f"{address}/24", "dev", cable)
            for link in (cable, "lo"):
                _ip("-n", name, "link", "set", link, "up")
        yield [[_tool(), "netns", "exec", name] for name in names]


def cut_cable() -> None:
    """Let no host of `two_hosts` reach the other any more."""
    _ip("-n", f"lw{os.getpid()}n1", "link", "set", f"lw{os.getpid()}c1", "down")


def _ip(*words: str) -> None:
    done = subprocess.run([_tool(), *words], capture_output=True, text=True)
    if done.returncode:
        raise PermissionError(done.stderr)


def _tool() -> str:
    found = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")
    if found is None:
        raise FileNotFoundError("ip")
    return found


def in_processes(count: int, script: str, *words: object) -> list[str]:
    """The last line that a script, called with `words`, prints in each of `count` connected processes."""
    connect = f"""
    import sys, jax
    jax.distributed.initialize("127.0.0.1:{free_port()}", {count}, int(sys.argv[1]))
    """
    text = textwrap.dedent(connect) + textwrap.dedent(script)
    begun = [
        start(["-c", text, str(number), *map(str, words)], stdout=subprocess.PIPE, text=True)
        for number in range(count)
    ]
    return [process.communicate(timeout=300)[0].splitlines()[-1] for process in begun]
