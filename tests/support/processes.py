"""Processes that are killed, and processes with a disk of their own."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jax
import pytest


def sharing_compiled() -> dict[str, str]:
    """The environment of a process that shares the tests' compiled programs; not for one that is killed."""
    return os.environ | {
        "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir or "",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def in_own_mount(tmp_path: Path, options: str, script: str) -> str:
    """What `script` prints with a small tmpfs of its own at tmp_path/disk, gone when it ends."""
    unshare = shutil.which("unshare")
    disk = tmp_path / "disk"
    disk.mkdir(exist_ok=True)
    if unshare is None:
        pytest.skip("no unshare on this machine")
    mounted = [unshare, "--map-root-user", "--mount", "sh", "-ec"]
    mount = 'mount -t tmpfs -o "$1" tmpfs "$2"; shift 2; exec "$@"'
    arguments = ["sh", options, str(disk)]
    probe = subprocess.run([*mounted, mount, *arguments, "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"no right to mount here: {probe.stderr.strip()}")
    command = [*mounted, mount, *arguments, sys.executable, "-c", textwrap.dedent(script), str(disk)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
ZYGOTE = """
    import json, os, sys
    import jax
    import lapwing.cli.main, lapwing.cli.progress, lapwing.cli.report, lapwing.runs.folder, lapwing.runs.learn
    assert len(os.listdir("/proc/self/task")) == 1
    lapwing.runs.folder.SECONDS_BETWEEN_CHECKPOINTS = 0.0
    lapwing.runs.folder.SHARE_OF_CHECKPOINTS = float("inf")
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                lapwing.cli.main.main(json.loads(line))
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1e9)
"""


class Zygote:
    """Starts the command line over and over without importing anything again."""

    def __init__(self, folder: Path):
        self.log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(ZYGOTE), str(folder / "compiled")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=os.environ | ONE_THREAD,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def start(self, arguments: list[str]) -> int:
        self.stdin.write(json.dumps(arguments).encode() + b"\n")
        self.stdin.flush()
        return int(self.stdout.readline())

    def seconds_until(self, path: Path, arguments: list[str]) -> float:
        """How long the command takes to write a file."""
        began = time.monotonic()
        self.start(arguments)
        while not path.exists():
            assert not select.select([self.stdout], [], [], 0.01)[0], Path(self.log.name).read_text()
        seconds = time.monotonic() - began
        assert int(self.stdout.readline()) == 0
        return seconds

    def run(self, arguments: list[str], kill_after: float | None = None) -> bool:
        """Whether the command came to its end before it was killed."""
        child = self.start(arguments)
        if kill_after is not None:
            ended, _, _ = select.select([self.stdout], [], [], kill_after)
            if not ended:
                os.kill(child, signal.SIGKILL)
        status = int(self.stdout.readline())
        assert status in (0, signal.SIGKILL), Path(self.log.name).read_text()
        return status == 0

    def close(self) -> None:
        self.stdin.close()
        self.process.wait()
        self.stdout.close()
        self.log.close()
