"""φ as plain NumPy, fast enough for one observation at every environment step.

For one observation, JAX spends most of a call outside the network. Here the encoder is a few matrices, with
all linear parts at its ends folded into them, and a call is a few vector-matrix products. A batch is the same
product for each row, not one matrix product, which would round differently.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike

from lapwing.errors import ConfigError, DatasetError, nearest
from lapwing.laplacian.batches import as_batch, checked_batch
from lapwing.laplacian.bumps import Bumps, Stage
from lapwing.laplacian.distances import check_filter
from lapwing.laplacian.encoders import ConvNet, Linear, same_padding
from lapwing.laplacian.representation import Representation
from lapwing.settings.learn import Filter

What = Literal["phi", "eigenfunctions", Filter]
_INTEGERS = (int, np.integer)
_LARGEST_BATCH = 256


class Forward:
    """φ, its eigenfunctions or an embedding in NumPy: call it with one observation or a batch.

    Each row of a batch equals the result for the single observation, bit for bit. The object holds only
    arrays and has no state, so it can be copied, sent to other processes, and shared by threads.

    Args:
        representation: what `lapwing.learn` returns or `lapwing.load` reads.
        what: `phi`: every learned column. `eigenfunctions`: without the constant, so one fewer than
            `representation.dim` (with `rotate=False` none is constant, and all are returned). `soft`, `unit`,
            `commute`, `biharmonic`, `heat`: the embedding of that filter.
        dtype: of the arithmetic and the result, float32 or float64.
        trusted_only: as for `Representation.embed`.

    Example:
        >>> import lapwing
        >>> rep = lapwing.learn("TwoRoom", transitions=20_000, dim=5, steps=100, hidden=(32,))
        >>> forward = Forward(rep, "eigenfunctions")
        >>> forward(np.array([0.0, 0.5])).shape, forward(np.zeros((7, 2))).shape
        ((4,), (7, 4))
        >>> bool(np.allclose(forward([0.0, 0.5]), rep.eigenfunctions([0.0, 0.5])[1:], atol=1e-4))
        True
    """

    def __init__(
        self,
        representation: Representation,
        what: What = "phi",
        dtype: DTypeLike = np.float32,
        *,
        trusted_only: bool = True,
    ):
        self.what = what
        self.spec = representation.spec
        self.shape = representation.shape
        """Of one observation; () for an index."""
        self.n_states = representation.spec.n_states
        self.dtype = checked_dtype(dtype)
        self._weights = folded(representation, what, trusted_only=trusted_only).astype(self.dtype)
        weight, bias = self._weights.layers[-1]
        self.dim = len(bias)
        """How many numbers it gives for an observation."""
        self._table = None if self.shape else weight + bias

    def __repr__(self) -> str:
        return f"Forward({self.what}: {self.dim} numbers of observations of shape {self.shape})"

    def __call__(self, observations: Any) -> np.ndarray:
        """(d,) for one observation, (n, d) for a batch; a new array each time."""
        if self._table is not None and isinstance(observations, _INTEGERS):
            return self._row(observations)
        x = np.asarray(observations)
        if x.ndim == 1 and x.shape == self.shape:
            x = x.astype(np.float32, copy=False)  # as φ was learned, and as `Representation` takes it
            if b"\0" in np.isfinite(x).tobytes():  # half the time of `all()`
                raise DatasetError("observation 0 holds NaN or infinity")
            return _of_vectors(self._weights, x)
        batch, single = as_batch(self.spec, x)
        return self._of_batch(batch)[0] if single else self._of_batch(batch)

    def _row(self, index: Any) -> np.ndarray:
        assert self._table is not None
        if index is True or index is False or not 0 <= index < len(self._table):
            checked_batch(np.asarray([index]), self.shape, self.n_states)  # which says what is wrong
        return self._table[index].copy()

    def _of_batch(self, batch: np.ndarray) -> np.ndarray:
        """A batch of any size, in bounded memory."""
        if self._table is not None:
            return self._table[batch]
        of, stack = (_of_vectors, batch[:, None]) if len(self.shape) == 1 else (_of_images, batch)
        answer = np.empty((len(batch), 1, self.dim), self.dtype)
        for begin in range(0, len(batch), _LARGEST_BATCH):
            some = slice(begin, begin + _LARGEST_BATCH)
            answer[some] = of(self._weights, stack[some])
        return answer[:, 0]


@dataclass(frozen=True, eq=False)
class Weights:
    """An encoder as matrices that take rows: x → relu(xW + b) → …; the last layer gives the answer itself.

    The scale of the standardisation is in the first matrix or in the directions. The shift is not: where it
    is large against the scale, float32 would lose digits by it.
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    """W (inputs, outputs) and b; of a convolution, the inputs are its kernel's rows, columns, channels."""
    shift: np.ndarray | None = None
    directions: np.ndarray | None = None
    """(inputs, directions), for the sines and then the cosines that the first layer takes; with `centres`,
    for coordinates, which it takes before the bumps."""
    centres: np.ndarray | None = None
    """(coordinates, bumps)."""
    width: np.ndarray | None = None
    """Of a bump, its standard deviation."""
    before: tuple["Weights", ...] = ()
    """What vectors, free of the shift, go through first."""
    strides: tuple[int, ...] = ()
    """One for each convolution; the layers that follow are not convolved."""

    def astype(self, dtype: np.dtype) -> "Weights":
        """The same in numbers of another kind."""

        def cast(array: np.ndarray | None) -> Any:
            return None if array is None else np.asarray(array, dtype, order="C")

        return Weights(
            layers=tuple((cast(weight), cast(bias)) for weight, bias in self.layers),
            shift=cast(self.shift),
            directions=cast(self.directions),
            centres=cast(self.centres),
            width=cast(self.width),
            before=tuple(stage.astype(dtype) for stage in self.before),
            strides=self.strides,
        )


def folded(representation: Representation, what: What, *, trusted_only: bool = True) -> Weights:
    """The encoder with `what` folded into its last layer, in float64."""
    encoder = representation.encoder
    matrix, offset = _last_map(representation, what, trusted_only)
    if isinstance(encoder, Linear):
        return Weights(((_float64(encoder.weight) @ matrix, offset),))  # of the one-hot vector
    if isinstance(encoder, Bumps):
        return _folded_bumps(encoder, matrix, offset)
    convolved = isinstance(encoder, ConvNet)
    stack = (*encoder.convolutions, encoder.output) if convolved else encoder.layers
    layers = [(_float64(layer.weight).T, _float64(layer.bias)) for layer in stack]
    scale, directions = _float64(encoder.scale)[..., None], None
    if not convolved and encoder.directions is not None:
        directions = _float64(encoder.directions).T / scale
    else:
        layers[0] = (layers[0][0] / scale, layers[0][1])
    weight, bias = layers[-1]
    layers[-1] = (weight @ matrix, bias @ matrix + offset)
    strides = ConvNet.STRIDES if convolved else ()
    return Weights(tuple(layers), _float64(encoder.shift), directions, strides=strides)


def _folded_bumps(encoder: Bumps, matrix: np.ndarray, offset: np.ndarray) -> Weights:
    *before, last = map(_stage_weights, encoder.stages)
    weight, bias = last.layers[0]
    layers = ((weight @ matrix, bias @ matrix + offset),)
    return dataclasses.replace(last, layers=layers, shift=_float64(encoder.shift), before=tuple(before))


def _stage_weights(stage: Stage) -> Weights:
    return Weights(
        layers=((_float64(stage.layer.weight).T, _float64(stage.layer.bias)),),
        directions=_float64(stage.projection),
        centres=_float64(stage.centres).T,
        width=_float64(stage.width),
    )


def check_what(what: str) -> None:
    """Refuse what cannot be made of φ, and `hitting`, which has no embedding."""
    if what == "hitting":
        check_filter(what)
    if what not in get_args(What):
        raise ConfigError(f"unknown what {what!r}; {nearest(str(what), get_args(What))}")


def checked_dtype(dtype: DTypeLike) -> np.dtype:
    """float32 or float64; others are refused."""
    chosen = np.dtype(dtype)
    if chosen not in (np.float32, np.float64):
        raise ConfigError(f"dtype must be float32 or float64, not {chosen}")
    return chosen


def _last_map(
    representation: Representation, what: What, trusted_only: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The matrix and the offset that make `what` of φ."""
    check_what(what)
    coefficients = _float64(representation.coefficients)
    if what in ("phi", "soft"):
        columns = len(coefficients) - 1
        return np.eye(columns), np.zeros(columns)
    if what != "eigenfunctions":
        chosen = coefficients[:, 1:] * representation.filter_weights(what, trusted_only=trusted_only)
    else:
        chosen = coefficients[:, 1:] if representation.rotated else coefficients
    if chosen.shape[1] == 0:
        raise ConfigError("'eigenfunctions' leaves out the constant and needs dim of 2 or more, not 1")
    return chosen[1:], chosen[0]


def _of_vectors(weights: Weights, x: np.ndarray) -> np.ndarray:
    """(k,) to (d,), or a stack (n, 1, k) to (n, 1, d), of which each is multiplied by itself."""
    return _of_centred(weights, x - weights.shift)


def _of_centred(weights: Weights, x: np.ndarray) -> np.ndarray:
    """The same of vectors that are free of the shift."""
    for stage in weights.before:
        x = _of_centred(stage, x)
    if weights.directions is not None:
        along = _product(x, weights.directions)
        x = _waves(along) if weights.centres is None else _bumps(weights, along)
    for weight, bias in weights.layers[:-1]:
        x = _relu(_product(x, weight), bias)
    weight, bias = weights.layers[-1]
    x = _product(x, weight)
    x += bias
    return x


def _waves(angles: np.ndarray) -> np.ndarray:
    """The sines, then the cosines."""
    half = angles.shape[-1]
    waves = np.empty((*angles.shape[:-1], 2 * half), angles.dtype)
    np.sin(angles, out=waves[..., :half])
    np.cos(angles, out=waves[..., half:])
    return waves


def _bumps(weights: Weights, coordinates: np.ndarray) -> np.ndarray:
    """The coordinates, then the bumps."""
    assert weights.centres is not None
    assert weights.width is not None
    n_coordinates, n_bumps = weights.centres.shape
    features = np.empty((*coordinates.shape[:-1], n_coordinates + n_bumps), coordinates.dtype)
    features[..., :n_coordinates] = coordinates
    # By differences, for |z|² + |c|² - 2zc cancels: of the last digits of z the bumps make the most.
    squares = coordinates[..., None] - weights.centres
    squares *= squares
    exponents = np.add.reduce(squares, axis=-2)
    exponents /= -2 * weights.width * weights.width
    np.exp(exponents, out=features[..., n_coordinates:])
    return features


def _of_images(weights: Weights, images: np.ndarray) -> np.ndarray:
    """(n, height, width, channels), as bytes or as numbers, to (n, 1, d), each image multiplied by itself."""
    assert weights.shift is not None
    unit = weights.shift.dtype.type(255 if images.dtype == np.uint8 else 1)
    x = images / unit - weights.shift
    if weights.centres is not None:
        return _of_centred(weights, x.reshape(len(images), 1, -1))
    for (weight, bias), stride in zip(weights.layers[:-1], weights.strides, strict=True):
        patches = _patches(x, ConvNet.KERNEL, stride)
        count, rows, columns = patches.shape[:3]
        x = _relu(patches.reshape(count, rows * columns, -1) @ weight, bias).reshape(count, rows, columns, -1)
    weight, bias = weights.layers[-1]
    return x.reshape(len(images), 1, len(weight)) @ weight + bias


def _product(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """xW; both ways are the same call of BLAS for each row, and `dot` is the quicker one for a single row."""
    return x.dot(weight) if x.ndim == 1 else x @ weight


def _relu(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    x += bias
    return np.maximum(x, _ZERO[x.dtype.char], out=x)


_ZERO = {kind: np.zeros((), kind) for kind in "fd"}
"""NumPy takes its time to turn a Python zero into one of these."""


def _patches(images: np.ndarray, kernel: int, stride: int) -> np.ndarray:
    """Each output pixel's neighbourhood, (n, rows, columns, kernel, kernel, channels), with SAME padding."""
    count, height, width, channels = images.shape
    rows, above, below = same_padding(height, kernel, stride)
    columns, left, right = same_padding(width, kernel, stride)
    padded = np.zeros((count, above + height + below, left + width + right, channels), images.dtype)
    padded[:, above : above + height, left : left + width] = images
    n, y, x, c = padded.strides
    return as_strided(
        padded,
        (count, rows, columns, kernel, kernel, channels),
        (n, stride * y, stride * x, y, x, c),
        writeable=False,
    )


def _float64(array: Any) -> np.ndarray:
    return np.asarray(array, np.float64)
