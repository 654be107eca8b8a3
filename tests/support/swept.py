"""Functions that sweeps of the tests call in other processes."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from lapwing.errors import ConfigError


def area(width: float, height: float) -> dict:
    return {"area": np.float32(width * height), "sides": np.array([width, height]), "open": np.nan}


def refuse_two(number: int, log: str) -> int:
    """Fails for 2 in a sentence, for 3 by a mistake; writes down every call."""
    with Path(log).open("a") as file:
        file.write(f"{number}\n")
    if number == 2:
        raise ConfigError("number must not be 2")
    return 1 // (3 - number)


def not_json(number: int) -> object:
    return object()


def fall_over(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def told(number: int, on_progress) -> int:
    on_progress("counting", number, 10, {})
    return number


def wait_on(number: int, node: str, folder: str) -> int:
    """On this node of a Ray cluster it writes its number down and waits for ever."""
    import ray

    while ray.get_runtime_context().get_node_id() == node:
        (Path(folder) / str(number)).touch()
        time.sleep(0.05)
    return number
