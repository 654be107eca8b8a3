"""Local worker processes: they receive tasks as lines of JSON, and answer with lines of JSON.

`python -m lapwing.sweeps.local` is one, with one thread; `LocalPool` starts and feeds them. A worker ends
when its standard input closes, so that it does not outlive its parent, however that one dies.
"""

import importlib
import json
import os
import queue
import re
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TextIO

from lapwing.errors import ConfigError
from lapwing.sweeps.task import ONE_THREAD, GuardError, Message, Step, Task, answer, keep_compiled

COMPILED = "LAPWING_COMPILED"
"""The environment variable that names the folder of compiled programs."""
DIED = {"died": True}
"""The last message of a worker."""


@dataclass
class LocalWorker:
    """A process, and its task."""

    process: subprocess.Popen
    log: IO[str]
    """What it wrote to standard error."""
    task: Task | None = None
    progress: Step = ("starting", 0, 0)

    @property
    def run(self) -> Any:
        """What the caller knows its task by."""
        return self.task and self.task.run

    def start(self, task: Task) -> None:
        """Send a task to the process."""
        self.task, self.progress = task, ("starting", 0, 0)
        order = {"function": reference(task.function), "arguments": task.arguments}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died, which the pool will receive

    def kill(self) -> None:
        """End the process and close its files; its output is closed by the thread that reads it."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # a task that was not read
            self.process.stdin.close()
        self.log.close()

    def exit_message(self) -> str:
        """Its exit status, and the last line of its log."""
        status = self.process.wait()
        self.log.seek(0)
        last = self.log.read().strip().splitlines()[-1:]
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"the worker process {how}" + (f" ({last[0]})" if last else "")


class LocalPool:
    """As many workers as wanted; one that dies is replaced when it is next needed."""

    def __init__(self, jobs: int, compiled: Path):
        """Workers are started by `idle`, when there is work; `compiled` is where they share programs."""
        self.jobs, self._compiled = jobs, compiled
        self._messages: queue.Queue[tuple[LocalWorker, Message]] = queue.Queue()
        self.workers: list[LocalWorker] = []
        self._dead: list[LocalWorker] = []

    def idle(self) -> LocalWorker | None:
        """A worker without a task, or None if all are busy."""
        for worker in self.workers:
            if worker.task is None:
                return worker
        return self._start() if len(self.workers) < self.jobs else None

    def receive(self, seconds: float) -> tuple[LocalWorker, Message] | None:
        """The next message of a worker, or None if none comes within so many seconds.

        A worker that died fails its task: what ended it, such as a lack of memory, would end the next one.
        """
        try:
            worker, message = self._messages.get(timeout=seconds)
        except queue.Empty:
            return None
        if message is DIED:
            self.workers.remove(worker)
            self._dead.append(worker)
            return worker, {"error": worker.exit_message()}
        if "refused" in message:
            raise ConfigError(message["refused"])
        return worker, message

    def close(self) -> None:
        """End all workers."""
        for worker in [*self.workers, *self._dead]:
            worker.kill()

    def _start(self) -> LocalWorker:
        path = os.pathsep.join(sys.path)  # a user's function is found as it was here
        log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long-lived as the worker
        process = subprocess.Popen(
            [sys.executable, "-m", "lapwing.sweeps.local"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | ONE_THREAD | {COMPILED: str(self._compiled), "PYTHONPATH": path},
        )
        worker = LocalWorker(process, log)
        self.workers.append(worker)
        threading.Thread(target=self._read_messages, args=(worker,), daemon=True).start()
        return worker

    def _read_messages(self, worker: LocalWorker) -> None:
        assert worker.process.stdout is not None
        try:
            with worker.process.stdout as lines:
                for line in lines:
                    self._messages.put((worker, json.loads(line)))
        except ValueError:
            worker.process.kill()  # a message was cut short, so it is dying anyway
        finally:
            self._messages.put((worker, DIED))


def name_of(function: Callable[..., Any]) -> str:
    """Its name inside its module; what has none is named as it is printed, without its address."""
    return getattr(function, "__qualname__", None) or without_addresses(repr(function))


def without_addresses(text: str) -> str:
    """What is printed of objects, but for where they are in memory, which differs in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def check_place() -> None:
    """Refuse a sweep in a worker, which would begin itself again and again."""
    if _read_by_worker:
        raise GuardError(
            "lapwing.sweep was called while a worker was reading the script that defines the function; put "
            'the call under `if __name__ == "__main__":`'
        )
    if COMPILED in os.environ:
        raise ConfigError("lapwing.sweep was called by the function of another sweep; call one of them alone")


def reference(function: Callable[..., Any]) -> dict[str, Any]:
    """Where another process finds a function: its module, or the script that is running, and its name."""
    name, module, main = name_of(function), getattr(function, "__module__", ""), sys.modules.get("__main__")
    script, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    in_main = module == "__main__"
    if "<" in name or "." in name or (in_main and not (script and Path(script).is_file())):
        raise ConfigError(
            f"function {name} cannot be found by other processes; define it with def at the top level of a "
            'module or script, or use on="ray"'
        )
    if not in_main:
        return {"name": name, "module": module}
    run = {"run_module": spec.name} if spec is not None else {"script": str(script)}
    return {"name": name, "words": sys.argv[1:]} | run


_read_by_worker: list[str] = []
"""The script or module that a worker is reading."""


@lru_cache
def _main_names(script: str | None, module: str | None, words: tuple[str, ...]) -> dict[str, Any]:
    """The names of a script, or of a module run by `python -m`, which sees the words of its command line."""
    _read_by_worker.append(script or module or "")
    sys.argv = [_read_by_worker[-1], *words]
    try:
        if script is None:
            assert module is not None
            return runpy.run_module(module, run_name="__lapwing_worker__")
        return runpy.run_path(script, run_name="__lapwing_worker__")
    finally:
        _read_by_worker.pop()


def find_function(where: dict[str, Any]) -> Callable[..., Any]:
    """The function of a `reference`."""
    if "module" in where:
        return getattr(importlib.import_module(where["module"]), where["name"])
    return _main_names(where.get("script"), where.get("run_module"), tuple(where["words"]))[where["name"]]


def main() -> None:
    """Do the tasks of standard input until it ends."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not come between the messages
    tasks = _read_tasks()
    keep_compiled(os.environ[COMPILED])
    while True:
        _send(output, answer_order(tasks.get(), output))


def answer_order(order: dict[str, Any], output: TextIO) -> Message:
    """Do one task, with progress on the way."""

    def call(on_progress, **arguments):
        return find_function(order["function"])(**arguments, on_progress=on_progress)

    return answer(call, order["arguments"], lambda step: _send(output, {"progress": step}))


def _read_tasks() -> "queue.Queue[dict[str, Any]]":
    """Lines of standard input as they come; at its end the process ends at once."""
    waiting: queue.Queue[dict[str, Any]] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return waiting


def _send(output: TextIO, content: Message) -> None:
    output.write(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
