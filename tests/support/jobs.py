"""Jobs of several processes on this machine."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

import lapwing
from lapwing.data.shards import shard
from tests.support.walks import reflected

PAIRWISE = {"dim": 4, "steps": 60, "hidden": (16,), "encoder": "mlp", "estimator": "pairwise", "lam": 0.9}


def sharded_walks(folder: Path, shards: int) -> Path:
    """A folder of shards of walks in the unit square."""
    walks = reflected(40, 51, 0.1, dims=2).astype(np.float32)
    lapwing.save_episodes(folder / "walks", walks)
    return shard(folder / "walks", shards)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(arguments: list[str], **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *arguments], env=os.environ | {"JAX_PLATFORMS": "cpu"}, **options
    )


def start_learning(
    shards: Path, out: Path, port: int, number: int, count: int, *more: str
) -> subprocess.Popen:
    """One process of `lapwing learn SHARDS --hosts`."""
    place = f"127.0.0.1:{port},{number}/{count}"
    settings = ["--dim", "4", "--hidden", "16", "--encoder", "mlp", "--estimator", "pairwise", "--lam", "0.9"]
    words = ["-m", "lapwing", "learn", str(shards), "--hosts", place, "--out", str(out), *settings, *more]
    return start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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
