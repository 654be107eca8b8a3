"""Arrays and a manifest in one safetensors file that carries its own SHA-256.

The metadata holds, under one key, the SHA-256 of the whole file (taken with the digest itself as zeros) and a
JSON manifest.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from lapwing.errors import CheckpointError
from lapwing.storage.files import read_bytes, write_bytes

_NO_DIGEST = "0" * 64
_METADATA = "lapwing"


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


def _digest_field(digest: str) -> bytes:
    return rf"\"sha256\": \"{digest}\"".encode()
