"""Downsampling of large images: each block of pixels is replaced by its mean.

φ never needs every pixel of a screen, and 20,000 screens of 210 x 160 in colour are 2 GB. Blocks of whole
pixels keep uint8, and a rounded mean of integers is the same number in NumPy, JAX and PyTorch, so that φ gets
the same image wherever it is computed.
"""

from typing import Any, NamedTuple

import numpy as np

ROWS_AT_ONCE = 64
"""So many images are shrunk at a time: more would not stay in the cache."""


class Shrinking(NamedTuple):
    """How images become smaller.

    Example:
        >>> shrinking = shrinking_of((210, 160, 3), 64)
        >>> shrinking.block, shrinking.shrunk_shape
        (4, (53, 40, 3))
        >>> shrinking(np.full((2, 210, 160, 3), 7, np.uint8)).shape
        (2, 53, 40, 3)
    """

    block: int
    """How many pixels each way become one."""
    shape: tuple[int, ...]
    """Of an image before: height, width, channels."""

    @property
    def shrunk_shape(self) -> tuple[int, ...]:
        """Of an image after."""
        height, width, channels = self.shape
        return -(-height // self.block), -(-width // self.block), channels

    def __str__(self) -> str:
        before, after = (" × ".join(map(str, shape)) for shape in (self.shape, self.shrunk_shape))
        return f"images of {before} are averaged over {self.block} × {self.block} pixels, to {after}"

    def counts(self) -> np.ndarray:
        """How many pixels each block has, (height, width, 1); at the lower and right edge fewer."""
        rows, columns = (
            np.minimum(self.block, size - np.arange(0, size, self.block)) for size in self.shape[:2]
        )
        return (rows[:, None] * columns)[..., None].astype(np.int32)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """A batch (n, height, width, channels): bytes to bytes, other numbers to float32."""
        shrunk = np.empty((len(images), *self.shrunk_shape), _kept_dtype(images))
        for begin in range(0, len(images), ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            shrunk[some] = self._means(np.asarray(images[some]))
        return shrunk

    def of_arrays(self, images: Any, xp: Any) -> Any:
        """The same of an array of another library that has NumPy's functions, as JAX does."""
        whole = xp.issubdtype(images.dtype, xp.integer)
        (height, width, channels), block = self.shape, self.block
        rows, columns, _ = self.shrunk_shape
        missing = (0, 0), (0, rows * block - height), (0, columns * block - width), (0, 0)
        padded = xp.pad(images.astype(xp.int32 if whole else xp.float32), missing)
        sums = padded.reshape(len(images), rows, block, columns, block, channels).sum(axis=(2, 4))
        counts = xp.asarray(self.counts())
        return ((2 * sums + counts) // (2 * counts)).astype(xp.uint8) if whole else sums / counts

    def _means(self, images: np.ndarray) -> np.ndarray:
        whole = np.issubdtype(images.dtype, np.integer)
        small = np.uint16 if self.block < 256 else np.uint32
        rows = _summed(images, 1, self.block, small if whole else np.float32)
        sums = _summed(rows, 2, self.block, np.uint32 if whole else np.float32)
        counts = self.counts()
        return (2 * sums + counts) // (2 * counts) if whole else sums / counts


def shrinking_of(shape: tuple[int, ...], most: int) -> Shrinking | None:
    """How images become at most `most` pixels high and wide; None where they are, or `most` is 0.

    Example:
        >>> shrinking_of((64, 64, 3), 64) is None, shrinking_of((65, 30, 1), 64).shrunk_shape
        (True, (33, 15, 1))
    """
    if len(shape) != 3 or most == 0 or max(shape[:2]) <= most:
        return None
    return Shrinking(-(-max(shape[:2]) // most), tuple(map(int, shape)))


def as_numbers(shrinking: Shrinking | None) -> np.ndarray | None:
    """The block and the shape in one array, as files hold them."""
    return None if shrinking is None else np.array([shrinking.block, *shrinking.shape])


def _summed(images: np.ndarray, axis: int, block: int, dtype: Any) -> np.ndarray:
    """Sums over blocks along an axis: of every block the first pixels, then the second ones, and so on."""
    before = (slice(None),) * axis
    sums = images[(*before, slice(0, None, block))].astype(dtype)
    for offset in range(1, block):
        further = images[(*before, slice(offset, None, block))]
        sums[(*before, slice(0, further.shape[axis]))] += further
    return sums


def _kept_dtype(images: np.ndarray) -> np.dtype:
    return np.dtype(np.uint8 if np.issubdtype(images.dtype, np.integer) else np.float32)
