"""JSON with checksums.

A checked file ends in the SHA-256 of all that comes before it, and so does each line of a .jsonl file.
"""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from lapwing.errors import CheckpointError
from lapwing.storage.files import is_file, read_bytes, storage_errors, write_bytes

_END_OF_OBJECT, _END_OF_LINE = b'"\n}\n', b'"}\n'
_LINE_DIGITS = 16
_TAIL = _LINE_DIGITS + len(_END_OF_LINE)
_LARGEST_TEXT = 2**28


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
