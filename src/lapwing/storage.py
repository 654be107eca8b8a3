"""The only module that writes files: each appears whole or not at all, and is checked when it is read.

Tensor files are ordinary safetensors files. Their metadata holds, under one key, the SHA-256 of the whole
file (taken with the digest itself as zeros) and a JSON manifest. JSON files end in the SHA-256 of all that
comes before it, and so does each line of a .jsonl file. One flipped bit anywhere is noticed. Equal content
gives equal files. Nothing that is read is ever executed.
"""

import errno
import hashlib
import json
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import safetensors
import safetensors.numpy
from filelock import FileLock, Timeout

from lapwing.errors import CheckpointError, StorageError

_NO_DIGEST = "0" * 64
_METADATA, _PART = "lapwing", ".lapwing.part"
_END_OF_OBJECT, _END_OF_LINE = b'"\n}\n', b'"}\n'
_LINE_DIGITS = 16
_TAIL = _LINE_DIGITS + len(_END_OF_LINE)
_LARGEST_TEXT = 2**28


def memory_bytes() -> int:
    """The memory of this machine; 4 TiB where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 42


def user_cache() -> Path:
    """The folder for what lapwing can make again, which need not be there yet.

    `LAPWING_CACHE` names it; else it is `lapwing` in the folder that the system has for such files.
    """
    if os.environ.get("LAPWING_CACHE"):
        return Path(os.environ["LAPWING_CACHE"]).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "lapwing" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lapwing"
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "lapwing"


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


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON."""
    write_bytes(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read a JSON file, or say by name that it is damaged."""
    return _parsed(path, read_bytes(path, most=_LARGEST_TEXT))


def _parsed(path: Path, content: bytes) -> Any:
    try:
        return _loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: it is not JSON ({error})") from error


def _loads(content: bytes) -> Any:
    """JSON without NaN and infinity, which are never written."""
    return json.loads(content, parse_constant=_finite, parse_float=_finite)


def _finite(number: str) -> float:
    if not math.isfinite(float(number)):
        raise ValueError(f"{number} is not a finite number")
    return float(number)


def write_checked_json(path: Path, value: dict[str, Any]) -> None:
    """Write `value` as indented JSON whose last key is the SHA-256 of all before it."""
    text = json.dumps(value | {"sha256": ""}, indent=2, allow_nan=False) + "\n"
    write_bytes(path, _with_digest(text.encode().removesuffix(_END_OF_OBJECT), _END_OF_OBJECT))


def read_checked_json(path: Path) -> dict[str, Any]:
    """Read what `write_checked_json` wrote; one flipped bit or one edit, and it is refused by name."""
    content = read_bytes(path, most=_LARGEST_TEXT)
    value = _parsed(path, content)
    if content != _with_digest(content[: -64 - len(_END_OF_OBJECT)], _END_OF_OBJECT):
        raise CheckpointError(f"{path} is damaged or was edited: its SHA-256 does not match its content")
    return {name: each for name, each in value.items() if name != "sha256"}


def append_json_line(path: Path, row: dict[str, Any]) -> None:
    """Add one row to a .jsonl file, with a digest of it and of those before."""
    with storage_errors(path), path.open("a+b") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        file.write(_line_with_digest(row, _digest_at_end(file.read(_TAIL))))


def read_json_lines(path: Path, *, digests: bool = True) -> list[dict[str, Any]]:
    """The whole rows of a .jsonl file; a last line cut short by a crash is left out.

    Args:
        path: the file; none is no rows.
        digests: whether lines carry digests, as all do that `append_json_line` writes.
    """
    if not is_file(path):
        return []
    *lines, rest = read_bytes(path, most=_LARGEST_TEXT).split(b"\n")
    rows, before = [], b""
    for number, line in enumerate(lines, 1):
        rows.append(_row(path, number, line + b"\n", before if digests else None))
        before = _digest_at_end(line + b"\n")
    # A crash cuts a line short; a whole one that ends in anything but a new line is damaged.
    if digests and _digest_matches(rest[:-1] + b"\n", before):
        raise CheckpointError(f"{path} is damaged at its end")
    return rows


def write_json_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Make `rows` the whole content of a .jsonl file."""
    content = b""
    for row in rows:
        content += _line_with_digest(row, _digest_at_end(content))
    write_bytes(path, content)


def _row(path: Path, number: int, line: bytes, before: bytes | None) -> dict[str, Any]:
    """One line as it was written; `before` is the digest of the line above, None where there are none."""
    try:
        row = _loads(line)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged in line {number} ({error})") from error
    if not isinstance(row, dict) or (before is not None and not _digest_matches(line, before)):
        raise CheckpointError(f"{path} is damaged or was edited in line {number}")
    return {name: value for name, value in row.items() if before is None or name != "sha256"}


def _with_digest(text: bytes, ending: bytes, before: bytes = b"", digits: int = 64) -> bytes:
    return text + hashlib.sha256(before + text).hexdigest()[:digits].encode() + ending


def _line_with_digest(row: dict[str, Any], before: bytes) -> bytes:
    text = json.dumps(row | {"sha256": ""}, allow_nan=False) + "\n"
    return _with_digest(text.encode().removesuffix(_END_OF_LINE), _END_OF_LINE, before, _LINE_DIGITS)


def _digest_matches(line: bytes, before: bytes) -> bool:
    return line == _with_digest(line[:-_TAIL], _END_OF_LINE, before, _LINE_DIGITS)


def _digest_at_end(lines: bytes) -> bytes:
    """The digest in the last line, which is a part of what the next one covers."""
    return lines[-_TAIL : -len(_END_OF_LINE)]


def write_tensors(path: Path, tensors: dict[str, np.ndarray], manifest: dict[str, Any]) -> None:
    """Write arrays and a JSON manifest as one safetensors file that carries its own SHA-256."""
    # Not ascontiguousarray, which would give a single number an axis.
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    # One key, for safetensors writes several in a random order.
    described = json.dumps({"sha256": _NO_DIGEST, "manifest": manifest}, allow_nan=False)
    content = safetensors.numpy.save(contiguous, {_METADATA: described})
    digest = hashlib.sha256(content).hexdigest().encode()
    write_bytes(path, content.replace(_digest_field(_NO_DIGEST), _digest_field(digest.decode()), 1))


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_tensors` wrote; anything damaged or foreign is refused by name."""
    content = read_bytes(path)
    try:
        header_end = 8 + int.from_bytes(content[:8], "little")
        described = json.loads(json.loads(content[8:header_end])["__metadata__"][_METADATA])
        digest, manifest = described["sha256"], described["manifest"]
        blanked = content[:header_end].replace(_digest_field(digest), _digest_field(_NO_DIGEST), 1)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged or not a lapwing file: no manifest") from error
    if hashlib.sha256(blanked + content[header_end:]).hexdigest() != digest:
        raise CheckpointError(f"{path} is damaged: its SHA-256 does not match its content")
    try:
        return safetensors.numpy.load(content), manifest
    except (safetensors.SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} is not a lapwing file ({error})") from error


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


def _digest_field(digest: str) -> bytes:
    return rf"\"sha256\": \"{digest}\"".encode()


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
