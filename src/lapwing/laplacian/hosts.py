"""The processes of a job in `jax.distributed`: gathering bytes, and agreement with process 0.

Without `jax.distributed` there is one process, and everything works as for a job of one. What fails in one
process must not leave the others waiting: work that may raise is done in `agreed`, which all of them call.
"""

import json
import platform
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from lapwing._version import __version__
from lapwing.errors import ConfigError, HostsError, LapwingError

Result = TypeVar("Result")


def is_first() -> bool:
    """Whether this is the process that decides and writes."""
    return jax.process_index() == 0


def gathered(blob: bytes) -> list[bytes]:
    """What every process gives, in their order; all must call it."""
    if jax.process_count() == 1:
        return [blob]
    sizes = np.asarray(multihost_utils.process_allgather(np.array([len(blob)], np.int32))).reshape(-1)
    padded = np.zeros(max(1, int(sizes.max())), np.uint8)
    padded[: len(blob)] = np.frombuffer(blob, np.uint8)
    rows = np.asarray(multihost_utils.process_allgather(padded)).reshape(len(sizes), -1)
    return [row[:size].tobytes() for row, size in zip(rows, sizes, strict=True)]


def agreed(work: Callable[[], Result]) -> Result:
    """What `work` returns in this process; an error in any process is raised in all of them.

    All processes must call it, and `work` must not wait for the others.
    """
    if jax.process_count() == 1:
        return work()
    done: Result | Exception
    try:
        done = work()
    except Exception as error:
        done = error
    told = gathered(_sentence(done).encode())
    if isinstance(done, Exception) and not isinstance(done, LapwingError | OSError):
        raise done  # a mistake of lapwing's, whose traceback is wanted
    for number, sentence in enumerate(told):
        if sentence:
            cause = done if isinstance(done, Exception) else None
            raise HostsError(f"process {number}: {sentence.decode()}") from cause
    assert not isinstance(done, Exception)
    return done


def _sentence(done: object) -> str:
    if not isinstance(done, Exception):
        return ""
    return str(done) if isinstance(done, LapwingError) else f"{type(done).__name__}: {done}"


def told_by_first(value: Callable[[], Any]) -> Any:
    """What JSON can hold, as the first process finds it; the others are told, also of its error."""
    found = agreed(lambda: json.dumps(value()).encode() if is_first() else b"")
    return json.loads(gathered(found)[0])


def sent_by_first(content: Callable[[], bytes]) -> bytes:
    """Bytes that the first process has."""
    return gathered(agreed(lambda: content() if is_first() else b""))[0]


def as_in_first(tree: Any) -> Any:
    """The same tree with the numbers of the first process: other CPUs may round otherwise."""
    if jax.process_count() == 1:
        return tree
    leaves, structure = jax.tree.flatten(tree)
    arrays = [np.asarray(leaf) for leaf in leaves]
    blob, found, at = gathered(b"".join(map(_bytes, arrays)) if is_first() else b"")[0], [], 0
    for leaf, array in zip(leaves, arrays, strict=True):
        numbers = np.frombuffer(blob, array.dtype, array.size, at).reshape(array.shape)
        at += array.nbytes
        found.append(jnp.asarray(numbers) if isinstance(leaf, jax.Array) else numbers.copy())
    return jax.tree.unflatten(structure, found)


def _bytes(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def check_alike(described: dict[str, Any]) -> None:
    """Refuse processes of other versions, or with other data or settings, by their numbers."""
    versions = {"lapwing": __version__, "jax": jax.__version__, "numpy": np.__version__}
    mine = versions | {"python": platform.python_version()} | described
    first, *others = (json.loads(blob) for blob in gathered(json.dumps(mine).encode()))
    for number, other in enumerate(others, 1):
        differing = [name for name, value in first.items() if other.get(name) != value]
        if differing:
            here = ", ".join(f"{name} {other.get(name)}" for name in differing)
            there = ", ".join(str(first[name]) for name in differing)
            raise ConfigError(
                f"process {number} has {here}, and process 0 {there}; give all processes of a job the same"
            )


def shards_of_process(count: int) -> Sequence[int]:
    """The numbers of the shards that this process reads, of `count`."""
    processes = jax.process_count()
    if count % processes:
        raise ConfigError(
            f"{count} shards cannot be divided among {processes} processes; start a number of processes that "
            "divides them, or write other shards with lapwing data shard"
        )
    each = count // processes
    return range(jax.process_index() * each, (jax.process_index() + 1) * each)
