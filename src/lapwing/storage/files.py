"""Files and folders: each file is written atomically, and system errors name the file."""

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from lapwing.errors import CheckpointError, StorageError
from lapwing.storage.machine import memory_bytes

_PART = ".lapwing.part"


def read_bytes(path: Path, *, most: int | None = None) -> bytes:
    """The content of a file; one of more than `most` bytes, or half of the memory, is refused unread."""
    most = memory_bytes() // 2 if most is None else most
    with storage_errors(path):
        size = path.stat().st_size
        if size > most:
            raise CheckpointError(
                f"{path} is too large: {size / 2**20:,.0f} MiB, and at most {most / 2**20:,.0f} MiB are read"
            )
        return path.read_bytes()


def write_atomically(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Let `fill` write to a temporary file, flush it to disk and rename it to `path`."""
    with storage_errors(path):
        descriptor, temporary = tempfile.mkstemp(_PART, f".{path.name[:40]}.", path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    write_atomically(path, lambda file: file.write(content))


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with storage_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_folder(path: Path) -> list[Path]:
    """Create `path` and its parents where they are missing; the new ones are returned, innermost first."""
    with storage_errors(path):
        new = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        return new


def is_private_folder(path: Path, *, free: int) -> bool:
    """Whether this user, and nobody else, can write to the folder, with `free` bytes left on its disk.

    It is made if it is missing. Nothing is raised.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
        if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
            return False
        return os.access(path, os.W_OK) and shutil.disk_usage(path).free >= free
    except OSError:
        return False


def trim_folder(path: Path, pattern: str, most: int) -> None:
    """Delete the oldest files that the pattern finds below the folder until they take at most `most` bytes.

    What another process deletes first, or what cannot be deleted, is passed over.
    """
    found = []
    for file in path.glob(pattern):
        with suppress(OSError):
            status = file.stat()
            found.append((status.st_mtime, status.st_size, file))
    files = sorted(one for one in found if one[2].is_file())
    excess = sum(size for _, size, _ in files) - most
    for _, size, file in files:
        if excess <= 0:
            break
        with suppress(OSError):
            file.unlink()
        excess -= size


def move(path: Path, to: Path) -> None:
    """Give a file, if it is there, another name on the same disk; its new folder is made if it is missing."""
    with storage_errors(path):
        if path.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            path.replace(to)


def remove(path: Path) -> None:
    """Delete a file if it is there."""
    with storage_errors(path):
        path.unlink(missing_ok=True)


def is_file(path: Path) -> bool:
    """Whether there is such a file; a path that cannot be accessed is an error."""
    with storage_errors(path):
        return path.is_file()


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; a path that cannot be accessed is an error."""
    with storage_errors(path):
        return path.is_dir()


def names_in(folder: Path) -> list[str]:
    """The names of all that is in a folder, sorted; none if there is no folder."""
    if not is_folder(folder):
        return []
    with storage_errors(folder):
        return sorted(path.name for path in folder.iterdir())


def remove_leftovers(folder: Path, of: str = "") -> None:
    """Delete the temporary files that a killed process left in `folder`, for files whose name begins so."""
    ours = re.compile(rf"\.{re.escape(of)}.*\.[a-z0-9_]{{8}}{re.escape(_PART)}")
    for name in filter(ours.fullmatch, names_in(folder)):
        remove(folder / name)


def remove_folders(folders: list[Path]) -> None:
    """Delete these folders, innermost first, as far as they are there and hold nothing but a lock."""
    with suppress(OSError):  # one that is not empty, and so are those around it
        for folder in folders:
            with suppress(FileNotFoundError):
                (folder / ".lock").unlink(missing_ok=True)
                folder.rmdir()


def remove_tree(folder: Path) -> None:
    """Delete a folder and all that is in it, if it is there."""
    with storage_errors(folder):
        if folder.is_dir():
            shutil.rmtree(folder)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold `folder` for this process; a second holder is refused. A killed process lets go."""
    holder = FileLock(folder / ".lock")
    with storage_errors(folder):
        folder.stat()  # one that is gone would look as if it were held
        try:
            holder.acquire(blocking=False)
        except Timeout as error:
            raise StorageError(
                f"another process is writing to {folder}; wait for it, or use another folder"
            ) from error
    try:
        yield
    finally:
        holder.release()


def nowhere() -> int:
    """An open file that forgets what is written to it."""
    return os.open(os.devnull, os.O_WRONLY)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # where no folder can be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space and resume",
    errno.EDQUOT: "the disk quota is used up; free some space and resume",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "permission denied; choose another folder",
    errno.EPERM: "permission denied; choose another folder",
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another folder",
    errno.EEXIST: "a file has this name already; choose another folder",
    errno.EISDIR: "it is a folder, not a file",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Say of which path, and what to do, where the system refuses."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, str(error))
        raise StorageError(f"{path}: {remedy}") from error
