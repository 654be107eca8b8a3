"""Arrays as text in a page: base64 of numbers that are no longer than what is shown of them needs."""

import base64
from typing import Any

import numpy as np

BYTES_PER_TEXT = 4 / 3
"""How much longer base64 is than what it encodes."""


def packed(array: np.ndarray) -> dict[str, Any]:
    """Numbers as they are: float32, or the smallest unsigned integers that hold them.

    Example:
        >>> packed(np.array([[1, 2]]))
        {'kind': 'u1', 'shape': [1, 2], 'data': 'AQI='}
    """
    array = np.asarray(array)
    if array.dtype.kind == "f":
        return _as_text("f4", array.shape, array.astype("<f4"))
    kind = next(kind for kind in ("u1", "u2", "u4") if array.max(initial=0) < 256 ** int(kind[1]))
    return _as_text(kind, array.shape, array.astype(f"<{kind}"))


def rounded(array: np.ndarray) -> dict[str, Any]:
    """Floats of three bytes: a mantissa of 16 bits, so a relative error below 2⁻¹⁶."""
    bits = np.ascontiguousarray(array, "<f4").view("<u4").astype(np.uint64)
    shortened = np.minimum((bits + 0x80) >> 8, 0xFFFFFF).astype("<u4")
    return _as_text("f3", np.shape(array), shortened.reshape(-1, 1).view("u1")[:, :3])


def scaled(array: np.ndarray, kind: str = "i2") -> dict[str, Any]:
    """Each column as whole numbers times its largest size: with `i2` to 1/65,000 of that, with `i1` to 1/250.

    Example:
        >>> np.round(127 * np.array(scaled(np.array([[1.0, 0.0], [-0.5, 0.0]]), "i1")["scale"]))
        array([  1., 127.])
    """
    most = np.iinfo(kind).max
    largest = np.abs(array).max(axis=0, initial=0.0)
    scale = np.where(largest > 0, largest / most, 1.0)
    whole = np.rint(np.asarray(array, np.float64) / scale).astype(f"<{kind}")
    return _as_text(kind, array.shape, whole) | {"scale": scale.tolist()}


def text_size(numbers: int, bytes_each: int) -> int:
    """How many characters so many numbers take."""
    return int(numbers * bytes_each * BYTES_PER_TEXT) + 100


def _as_text(kind: str, shape: tuple[int, ...], array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"kind": kind, "shape": list(shape), "data": data}
