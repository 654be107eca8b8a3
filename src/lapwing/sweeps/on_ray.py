"""Workers on a Ray cluster: one actor each, with one core and one thread.

A worker whose machine is lost returns `lost`, and its task is repeated elsewhere. Only this module imports
Ray.
"""

import logging
import os
import platform
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lapwing._version import __version__
from lapwing.errors import ConfigError
from lapwing.sweeps.task import ONE_THREAD, Message, Step, Task, answer, keep_compiled

CONNECT_SECONDS = 10
"""How long an address may take to answer,"""
HEALTH_SECONDS = 30
"""and a cluster there to say that it is one."""


class _Executor:
    """What runs on a machine of the cluster: an actor with a second thread, which tells the progress."""

    def __init__(self, compiled: str):
        self._step: Step = ("starting", 0, 0)
        if Path(compiled).parent.is_dir():  # a disk that all share
            keep_compiled(compiled)

    def execute(self, task: Task, versions: dict[str, str]) -> Message:
        here = installed()
        for name, there in versions.items():
            if here[name] != there:
                where = f"{socket.gethostname()} has {name} {here[name]}"
                return {"refused": f"{where}, and this process {there}; install the same on every node"}
        return answer(task.function, task.arguments, self._set_step)

    def step(self) -> Step:
        return self._step

    def _set_step(self, step: Step) -> None:
        self._step = step


WAITING: Step = ("waiting for a core", 0, 0)
"""The progress of a task that no worker has begun."""


def installed() -> dict[str, str]:
    """The versions that decide a result."""
    return {"lapwing": __version__, "jax": version("jax"), "Python": platform.python_version()}


@dataclass(eq=False)
class RayWorker:
    """An actor, and its task."""

    actor: Any
    task: Task | None = None
    progress: Step = WAITING
    answer: Any = None
    """The future of its message."""
    step: Any = None
    """The future of its progress."""

    @property
    def run(self) -> Any:
        """What the caller knows its task by."""
        return self.task and self.task.run

    def start(self, task: Task) -> None:
        """Send a task to the actor."""
        self.task, self.progress = task, WAITING
        self.answer = self.actor.execute.remote(task, installed())
        self.step = self.actor.step.remote()


class RayPool:
    """As many actors as wanted; one that is lost is replaced when it is next needed."""

    def __init__(self, jobs: int | None, compiled: Path, *, address: str | None = None):
        """Connect to a cluster, or start one on this machine.

        Args:
            jobs: how many actors; None: as many as the cluster has cores.
            compiled: where those that share this machine's disk keep compiled programs.
            address: of the cluster, `HOST:PORT` or `auto`; None: what RAY_ADDRESS names, or a cluster of this
                machine's own.
        """
        self._ray, self._ours = connect(address)
        self.jobs = jobs or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._compiled = compiled
        self.workers: list[RayWorker] = []

    def idle(self) -> RayWorker | None:
        """A worker without a task, or None if all are busy."""
        for worker in self.workers:
            if worker.task is None:
                return worker
        return self._start() if len(self.workers) < self.jobs else None

    def receive(self, seconds: float) -> tuple[RayWorker, Message] | None:
        """The next message of a worker, or None if none comes within so many seconds."""
        self._make_room()
        busy = {worker.answer: worker for worker in self.workers if worker.task}
        done, _ = self._ray.wait(list(busy), num_returns=1, timeout=seconds) if busy else ([], [])
        if done:
            return self._received(busy[done[0]])
        return self._progress()

    def _make_room(self) -> None:
        """End idle workers where another waits for a core, which it may never get while they hold theirs."""
        if not any(worker.task and worker.progress == WAITING for worker in self.workers):
            return
        for worker in [worker for worker in self.workers if worker.task is None]:
            self.workers.remove(worker)
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(worker.actor)

    def close(self) -> None:
        """End all workers, and the cluster if it was started here."""
        for worker in self.workers:
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(worker.actor)
        if self._ours:
            self._ray.shutdown()

    def _received(self, worker: RayWorker) -> tuple[RayWorker, Message]:
        try:
            message = self._ray.get(worker.answer)
        except self._ray.exceptions.RayActorError as error:
            self.workers.remove(worker)
            return worker, {"lost": f"its worker was lost ({_first_line(error)})"}
        except self._ray.exceptions.RayError as error:
            return worker, {"error": f"Ray: {_first_line(error)}"}
        if "refused" in message:
            raise ConfigError(message["refused"])
        return worker, message

    def _progress(self) -> tuple[RayWorker, Message] | None:
        """The progress of a worker that has told it since it was last asked."""
        asked = {worker.step: worker for worker in self.workers if worker.task and worker.step is not None}
        told, _ = self._ray.wait(list(asked), num_returns=1, timeout=0) if asked else ([], [])
        if not told:
            return None
        worker = asked[told[0]]
        try:
            step = self._ray.get(worker.step)
        except self._ray.exceptions.RayError:
            worker.step = None  # it is lost, which its answer will tell
            return None
        worker.step = worker.actor.step.remote()
        return worker, {"progress": step}

    def _start(self) -> RayWorker:
        ray = self._ray
        actor = ray.remote(_Executor).options(
            num_cpus=1, max_concurrency=2, runtime_env={"env_vars": ONE_THREAD}
        )
        worker = RayWorker(actor.remote(str(self._compiled)))
        self.workers.append(worker)
        return worker


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def connect(address: str | None) -> tuple[Any, bool]:
    """The module `ray`, connected, and whether that was done here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    try:
        import ray
    except ImportError as error:
        raise ConfigError("on=ray needs the package ray: pip install 'lapwing[ray]'") from error
    if ray.is_initialized():
        return ray, False
    _check_answers(address or os.environ.get("RAY_ADDRESS"))
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(f"no Ray cluster at {address or 'this machine'}: {_first_line(error)}") from error
    return ray, True


def _check_answers(address: str | None) -> None:
    """Refuse an address at which nothing listens; Ray itself would try for a long time."""
    if not address or address in ("auto", "local"):
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(f"the address of a Ray cluster is HOST:PORT or auto, not {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {address} within {CONNECT_SECONDS} s ({error}); start one with "
            "`ray start --head`, or leave out the address and RAY_ADDRESS"
        ) from error
    if not address.startswith("ray://"):
        _check_healthy(address)


def _check_healthy(address: str) -> None:
    """Refuse what listens at an address and is no cluster; Ray itself would wait for it for minutes."""
    words = ["-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        done = subprocess.run([sys.executable, *words], capture_output=True, timeout=HEALTH_SECONDS)
        healthy = done.returncode == 0
    except subprocess.TimeoutExpired:
        healthy = False
    if not healthy:
        raise ConfigError(
            f"what listens at {address} is no Ray cluster that answers within {HEALTH_SECONDS} s; start one "
            "with `ray start --head`, or leave out the address and RAY_ADDRESS"
        )
