"""The only module that writes files: each appears whole or not at all, and is checked when it is read.

Tensor files are ordinary safetensors files. Their metadata holds, under one key, the SHA-256 of the whole
file (taken with the digest itself as zeros) and a JSON manifest, so that one flipped bit anywhere is noticed.
Equal content gives equal files. Nothing that is read is ever executed.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import safetensors
import safetensors.numpy

from lapwing.errors import CheckpointError, StorageError

_NO_DIGEST = "0" * 64
_METADATA, _PART = "lapwing", ".part"


def write_atomically(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Let `fill` write to a temporary file, flush it to disk and rename it to `path`."""
    with _storage_errors(path):
        descriptor, temporary = tempfile.mkstemp(_PART, f".{path.name}.", path.parent)
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
    with _storage_errors(path):
        content = path.read_bytes()
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: it is not JSON ({error})") from error


def append_json_line(path: Path, row: dict[str, Any]) -> None:
    """Add one row to a .jsonl file."""
    with _storage_errors(path), path.open("ab") as file:
        file.write((json.dumps(row, allow_nan=False) + "\n").encode())


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The whole rows of a .jsonl file; a last line cut short by a crash is left out."""
    if not path.is_file():
        return []
    with _storage_errors(path):
        lines = path.read_bytes().split(b"\n")
    rows = []
    for number, line in enumerate(lines[:-1]):
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{path} is damaged in line {number + 1} ({error})") from error
    return rows


def write_json_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Make `rows` the whole content of a .jsonl file."""
    lines = [json.dumps(row, allow_nan=False) + "\n" for row in rows]
    write_bytes(path, "".join(lines).encode())


def write_tensors(path: Path, tensors: dict[str, np.ndarray], manifest: dict[str, Any]) -> None:
    """Write arrays and a JSON manifest as one safetensors file that carries its own SHA-256."""
    # Not ascontiguousarray, which would give a single number an axis.
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    # One key, for safetensors writes several in an order of chance.
    described = json.dumps({"sha256": _NO_DIGEST, "manifest": manifest}, allow_nan=False)
    content = safetensors.numpy.save(contiguous, {_METADATA: described})
    digest = hashlib.sha256(content).hexdigest().encode()
    write_bytes(path, content.replace(_digest_field(_NO_DIGEST), _digest_field(digest.decode()), 1))


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_tensors` wrote; anything damaged or foreign is refused by name."""
    with _storage_errors(path):
        content = path.read_bytes()
    try:
        header_end = 8 + int.from_bytes(content[:8], "little")
        described = json.loads(json.loads(content[8:header_end])["__metadata__"][_METADATA])
        digest, manifest = described["sha256"], described["manifest"]
        blanked = content[:header_end].replace(_digest_field(digest), _digest_field(_NO_DIGEST), 1)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged or not a lapwing file: no manifest") from error
    if hashlib.sha256(blanked + content[header_end:]).hexdigest() != digest:
        raise CheckpointError(f"{path} is damaged: its SHA-256 does not match its content")
    try:
        return safetensors.numpy.load(content), manifest
    except (safetensors.SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} is not a lapwing file ({error})") from error


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with _storage_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_folder(path: Path) -> list[Path]:
    """Create `path` and its parents where they are missing; the new ones are returned, innermost first."""
    with _storage_errors(path):
        new = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        return new


def remove(path: Path) -> None:
    """Delete a file if it is there."""
    with _storage_errors(path):
        path.unlink(missing_ok=True)


def remove_leftovers(folder: Path, of: str = "") -> None:
    """Delete the temporary files that a killed process left in `folder`, for files whose name begins so."""
    for path in folder.glob(f".{of}*{_PART}"):
        remove(path)


def remove_folders(folders: list[Path]) -> None:
    """Delete these folders, innermost first, as far as they hold nothing but a lock."""
    for folder in folders:
        (folder / ".lock").unlink(missing_ok=True)
        if any(folder.iterdir()):
            return
        folder.rmdir()


def remove_tree(folder: Path) -> None:
    """Delete a folder and all that is in it, if it is there."""
    with _storage_errors(folder):
        if folder.is_dir():
            shutil.rmtree(folder)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold `folder` for this process; a second holder is refused. A killed process lets go."""
    with _storage_errors(folder):
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with _storage_errors(folder):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StorageError(
                    f"another process is writing to {folder}; wait for it or choose another --out"
                ) from error
        yield
    finally:
        os.close(descriptor)


def _digest_field(digest: str) -> bytes:
    return rf"\"sha256\": \"{digest}\"".encode()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space and go on",
    errno.EDQUOT: "the disk quota is used up; free some space and go on",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "permission denied; choose another folder",
    errno.EPERM: "permission denied; choose another folder",
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another folder",
    errno.EEXIST: "a file is in the way; choose another folder",
    errno.EISDIR: "it is a folder, not a file",
}


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, str(error))
        raise StorageError(f"{path}: {remedy}") from error
