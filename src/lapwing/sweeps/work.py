"""The loop that feeds tasks to a pool of workers."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from lapwing.sweeps.task import Message, Step, Task

MOST_LOSSES = 3
"""A task whose worker was lost so often has failed."""


@runtime_checkable
class Worker(Protocol):
    """Something that does one task at a time."""

    task: Task | None
    progress: Step

    @property
    def run(self) -> Any:
        """What the caller knows its task by."""
        ...

    def start(self, task: Task) -> None:
        """Begin a task."""
        ...


@runtime_checkable
class Pool(Protocol):
    """Workers on this machine or on others."""

    jobs: int
    """How many there are, once there is work for all."""

    @property
    def workers(self) -> Sequence[Worker]:
        """Those that are alive."""
        ...

    def idle(self) -> Worker | None:
        """A worker without a task, or None if all are busy."""
        ...

    def receive(self, seconds: float) -> tuple[Worker, Message] | None:
        """The next message of a worker, or None if none comes within so many seconds."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...


OnAnswer = Callable[[Task, Message, float], None]
"""Called with a task, its `result` or `error`, and the seconds from order to answer."""


def work(
    tasks: Iterable[Task],
    pool: Pool,
    on_answer: OnAnswer,
    on_round: Callable[[list[Task]], None] | None = None,
) -> None:
    """Have every task done; a task whose worker is lost is done again by another.

    Args:
        tasks: what to do, in this order.
        pool: the workers, which are ended when this returns or raises.
        on_answer: called once for each task.
        on_round: called now and then with the tasks that wait.
    """
    waiting, losses, began = deque(tasks), Counter(), {}
    try:
        while waiting or any(worker.task for worker in pool.workers):
            while waiting and (worker := pool.idle()):
                task = waiting.popleft()
                began[id(task)] = time.monotonic()
                worker.start(task)
            received = pool.receive(seconds=0.5)
            if received:
                worker, message = received
                if "progress" in message:
                    worker.progress = tuple(message["progress"])
                elif task := worker.task:
                    worker.task = None
                    losses[id(task)] += "lost" in message
                    if "lost" in message and losses[id(task)] < MOST_LOSSES:
                        waiting.appendleft(task)
                    else:
                        told = {"error": message["lost"]} if "lost" in message else message
                        on_answer(task, told, time.monotonic() - began[id(task)])
            if on_round:
                on_round(list(waiting))
    finally:
        pool.close()
