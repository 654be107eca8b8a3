"""φ as a network: one observation in, one embedding out; use `jax.vmap` for batches.

Each encoder has two stages. `features(observation)` is fixed: it scales, and perhaps expands, the
observation. `network(features)` is learned. Over a table of states the features are computed once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, Scalar
from scipy.spatial import KDTree

from lapwing.data.shrink import Shrinking
from lapwing.errors import ConfigError
from lapwing.laplacian.bumps import Bumps, StageSizes
from lapwing.settings.learn import EncoderName

Numbers = jax.Array | np.ndarray
_LARGEST_OBSERVATION = 2**28
IMAGES_AT_ONCE = 128
"""So many are brought to double precision at a time."""


class Linear(eqx.Module):
    """A linear map of the one-hot vector of an index: one row of weights a state (the paper, index)."""

    weight: Float[Array, "states d"]

    def __init__(self, n_states: int, dim: int, *, key: PRNGKeyArray):
        """Rows of independent normal numbers with E‖φ‖² = 1."""
        self.weight = jax.random.normal(key, (n_states, dim)) / np.sqrt(dim)

    def features(self, observation):
        """The index itself."""
        return observation

    def network(self, features) -> Float[Array, " d"]:
        """The row of the index."""
        return self.weight[features]


class MLP(eqx.Module):
    """Fully connected layers with relu between them (the paper, position).

    On random Fourier features, if it has directions: they let it bend within a cell's width.
    """

    layers: tuple[eqx.nn.Linear, ...]
    shift: Float[Array, " k"]
    scale: Float[Array, " k"]
    directions: Float[Array, "f k"] | None

    def __init__(
        self,
        shift: Numbers,
        scale: Numbers,
        hidden: Sequence[int],
        dim: int,
        directions: Float[Array, "f k"] | None = None,
        *,
        key: PRNGKeyArray,
    ):
        """Layers from the input through `hidden` to `dim`; inputs become (x - shift) / scale."""
        self.shift, self.scale, self.directions = jnp.asarray(shift), jnp.asarray(scale), directions
        sizes = [len(shift) if directions is None else 2 * len(directions), *hidden, dim]
        keys = jax.random.split(key, len(sizes) - 1)
        layers = zip(sizes[:-1], sizes[1:], keys, strict=True)
        self.layers = tuple(eqx.nn.Linear(size, following, key=key) for size, following, key in layers)

    def features(self, observation) -> Float[Array, " features"]:
        """The standardised vector, or sines and cosines of it along the directions."""
        vector = _standardised(self, observation)
        if self.directions is None:
            return vector
        angles = jax.lax.stop_gradient(self.directions) @ vector
        return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)])

    def network(self, features) -> Float[Array, " d"]:
        """The layers."""
        for layer in self.layers[:-1]:
            features = jax.nn.relu(layer(features))
        return self.layers[-1](features)


def fourier_directions(
    inputs: int, n_features: int, bandwidth: float | Float[Scalar, ""], *, key: PRNGKeyArray
) -> Float[Array, "f k"]:
    """Random directions, each of which gives a sine and a cosine.

    Half of them have standard deviation `bandwidth`, for what bends within a cell; the others range from 1
    to `bandwidth`, for what spans the whole space.
    """
    ladder = jnp.logspace(0.0, jnp.log10(bandwidth), n_features // 2)
    deviations = jnp.append(ladder, jnp.full(n_features - len(ladder), bandwidth))
    return deviations[:, None] * jax.random.normal(key, (n_features, inputs))


class ConvNet(eqx.Module):
    """Three convolutions of 16 channels, kernels 4, strides 2, 2, 1, then linear (the paper, image).

    With SAME padding, so that it takes images of any size. A convolution is written as shifted, strided
    slices and one matrix product: on a CPU, XLA's own is several times slower inside a loop.
    """

    convolutions: tuple[eqx.nn.Linear, ...]
    output: eqx.nn.Linear
    shift: Float[Array, "height width channels"]
    scale: Float[Scalar, ""]

    CHANNELS = 16
    KERNEL = 4
    STRIDES = (2, 2, 1)

    def __init__(self, shift: Numbers, scale: Numbers, dim: int, *, key: PRNGKeyArray):
        """For images of the shape of `shift` (height, width, channels)."""
        *keys, output_key = jax.random.split(key, len(self.STRIDES) + 1)
        self.shift, self.scale = jnp.asarray(shift), jnp.asarray(scale)
        height, width, depth = shift.shape
        convolutions = []
        for stride, layer_key in zip(self.STRIDES, keys, strict=True):
            convolutions.append(eqx.nn.Linear(self.KERNEL**2 * depth, self.CHANNELS, key=layer_key))
            height, width, depth = -(-height // stride), -(-width // stride), self.CHANNELS
        self.convolutions = tuple(convolutions)
        self.output = eqx.nn.Linear(height * width * depth, dim, key=output_key)

    def features(self, observation) -> Float[Array, "height width channels"]:
        """Bytes become numbers in [0, 1]; then the mean image is taken off."""
        return _standardised(self, _unit_range(observation))

    def network(self, features) -> Float[Array, " d"]:
        """The convolutions, then the linear layer."""
        for layer, stride in zip(self.convolutions, self.STRIDES, strict=True):
            patches = _patches(features, self.KERNEL, stride)
            assert layer.bias is not None
            # Not vmap of the layer: XLA then puts the channels first, and needs half as long again.
            features = jax.nn.relu(patches @ layer.weight.T + layer.bias)
        return self.output(features.reshape(-1))


Encoder = Linear | MLP | ConvNet | Bumps


def embed(encoder: Encoder, observation) -> Float[Array, " d"]:
    """φ of one observation."""
    return encoder.network(encoder.features(observation))


@dataclass(frozen=True)
class EncoderSpec:
    """What must be known to build an encoder of the right shape."""

    name: EncoderName
    shape: tuple[int, ...]
    """The shape of one observation; () for an index."""
    dim: int
    n_states: int | None = None
    """How many indices there are, for `linear`."""
    hidden: tuple[int, ...] = ()
    n_features: int = 128
    stages: tuple[StageSizes, ...] = ()
    """Of `bumps`: how many coordinates, bumps and functions each stage has."""
    block: int = 1
    """Images are averaged over so many pixels each way before `shape` is what is left of them."""
    raw_shape: tuple[int, ...] = ()
    """The shape of such an image before."""

    @property
    def shrinking(self) -> Shrinking | None:
        """How images are made smaller before the encoder sees them."""
        return Shrinking(self.block, self.raw_shape) if self.raw_shape else None

    def shrunk_by(self, shrinking: Shrinking | None) -> "EncoderSpec":
        """The same for images that are made smaller first."""
        if shrinking is None:
            return self
        return replace(self, block=shrinking.block, raw_shape=shrinking.shape)

    def as_json(self) -> dict[str, Any]:
        """As JSON can hold it; what earlier versions did not know is left out where it says nothing."""
        values = asdict(self)
        if not self.raw_shape:
            del values["block"], values["raw_shape"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "EncoderSpec":
        """What `dataclasses.asdict` gave, with lists for tuples; earlier versions knew no stages."""
        fields: dict[str, Any] = values | {name: tuple(values[name]) for name in ("shape", "hidden")}
        fields["stages"] = tuple(map(tuple, values.get("stages", ())))
        fields["raw_shape"] = tuple(values.get("raw_shape", ()))
        return cls(**fields)

    def __post_init__(self) -> None:
        """Refuse an encoder that cannot take such observations."""
        if self.raw_shape and Shrinking(self.block, self.raw_shape).shrunk_shape != self.shape:
            raise ValueError(f"images of {self.raw_shape} do not become {self.shape} by {self.block}")
        if len(self.shape) not in _AXES[self.name]:
            fitting = [name for name, axes in _AXES.items() if len(self.shape) in axes]
            remedy = f"use --encoder {' or '.join(fitting)}" if fitting else "flatten them to vectors"
            raise ConfigError(
                f"encoder {self.name} does not take observations of shape {self.shape}; {remedy}"
            )


_AXES: dict[EncoderName, tuple[int, ...]] = {
    "linear": (0,),
    "fourier": (1,),
    "mlp": (1,),
    "conv": (3,),
    "bumps": (1, 3),
}


@eqx.filter_jit
def init_encoder(
    spec: EncoderSpec,
    shift: Numbers,
    scale: Numbers,
    bandwidth: float | Float[Scalar, ""] = 1.0,
    *,
    key: PRNGKeyArray,
) -> Encoder:
    """An untrained encoder; `shift` and `scale` are not for `linear`, `bandwidth` is for `fourier`.

    A `bandwidth` that is a plain number is compiled into the program, so each has one of its own.
    """
    if spec.name == "linear":
        return Linear(spec.n_states or 0, spec.dim, key=key)
    if spec.name == "conv":
        return ConvNet(shift, scale, spec.dim, key=key)
    if spec.name == "bumps":
        return Bumps(shift, spec.stages, key=key)
    directions = None
    if spec.name == "fourier":
        direction_key, key = jax.random.split(key)
        directions = fourier_directions(len(shift), spec.n_features, bandwidth, key=direction_key)
    return MLP(shift, scale, spec.hidden, spec.dim, directions, key=key)


def fit_encoder(
    spec: EncoderSpec,
    observations: np.ndarray,
    *,
    standardise: bool,
    bandwidth: float | None,
    image_scale: float | None = None,
    key: PRNGKeyArray,
) -> Encoder:
    """An untrained encoder for observations like these.

    Args:
        spec: which encoder.
        observations: some of them, or all.
        standardise: whether vectors are brought to mean 0 and standard deviation 1 first, and images
            freed of the mean image and scaled as a whole.
        bandwidth: standard deviation of the Fourier directions; None chooses it from the observations.
        image_scale: what standardised images are divided by; None takes their spread.
        key: a typed random key.
    """
    shift, scale = _standardisation(spec, observations, standardise)
    if image_scale is not None:
        scale = np.asarray(image_scale, np.float32)
    if bandwidth is None and spec.name == "fourier":
        bandwidth = data_bandwidth(spec, observations, standardise)
    return init_encoder(spec, shift, scale, jnp.float32(bandwidth or 1.0), key=key)


def data_bandwidth(
    spec: EncoderSpec,
    observations: np.ndarray,
    standardise: bool,
    steps: np.ndarray | None = None,
) -> float:
    """The `fourier_bandwidth` of observations as the encoder will see them.

    The spacing of continuous observations shrinks as data grows; for them give `steps`, some differences
    s' - s: nothing finer than the median of those is worth resolving.
    """
    shift, scale = _standardisation(spec, observations, standardise)
    bandwidth = fourier_bandwidth((observations - shift) / scale)
    if steps is None:
        return bandwidth
    length = float(np.median(np.linalg.norm(steps / scale, axis=1)))
    return min(bandwidth, 0.8 / length) if length > 0 else bandwidth


def encoder_skeleton(spec: EncoderSpec) -> Encoder:
    """The encoder with shapes in place of numbers, to be filled from a file."""
    if math.prod(spec.shape) > _LARGEST_OBSERVATION:
        raise ValueError(f"observations of shape {spec.shape} are too large")
    shift, scale = _standardisation(spec, np.zeros((1, *spec.shape), np.float32), False)
    return eqx.filter_eval_shape(
        lambda key: init_encoder(spec, shift, scale, 1.0, key=key), jax.random.key(0)
    )


def default_encoder(shape: tuple[int, ...]) -> EncoderName:
    """The encoder for observations of that shape, if none is asked for."""
    for name, axes in _AXES.items():
        if len(shape) in axes:
            return name
    raise ConfigError(
        f"observations of shape {shape} cannot be embedded; "
        "flatten them to vectors or make them images (height, width, channels)"
    )


def fourier_bandwidth(points: np.ndarray) -> float:
    """0.8 over the median distance between nearest neighbours: half of it blurs walls, twice over-fits."""
    distinct = np.unique(points, axis=0)
    if len(distinct) < 2:
        return 1.0
    distances, _ = KDTree(distinct).query(distinct, k=2)
    return float(0.8 / np.median(distances[:, 1]))


def _standardisation(
    spec: EncoderSpec, observations: np.ndarray, standardise: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What features subtract and divide by: a scale for each feature of a vector, one for an image."""
    if not standardise or spec.name == "linear":
        scale = np.ones(spec.shape if len(spec.shape) == 1 else (), np.float32)
        return np.zeros(spec.shape, np.float32), scale
    if len(spec.shape) == 1:
        seen = np.asarray(_unit_range(observations), np.float64)
        mean, spread = seen.mean(axis=0), seen.std(axis=0)
        scale = np.where(spread > 1e-6 * spread.max(initial=0), spread, 1.0)
    else:
        mean, variance = _image_moments(observations)
        scale = np.sqrt(np.mean(np.sqrt(variance) ** 2)) or 1.0
    return mean.astype(np.float32), np.asarray(scale, np.float32)


def _image_moments(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each pixel; a few images at a time, for in double precision they are large."""

    def averaged(of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        total = np.zeros(images.shape[1:])
        for begin in range(0, len(images), IMAGES_AT_ONCE):
            some = np.asarray(_unit_range(images[begin : begin + IMAGES_AT_ONCE]), np.float64)
            total = np.add.reduce(np.concatenate([total[None], of(some)]), axis=0)
        return total / len(images)

    mean = averaged(lambda some: some)
    return mean, averaged(lambda some: (some - mean) ** 2)


def _unit_range(observation):
    """Whole numbers, which are bytes whatever their type, become numbers in [0, 1]; others stay."""
    return observation / 255.0 if np.issubdtype(observation.dtype, np.integer) else observation


def _standardised(encoder, observation):
    shift, scale = jax.lax.stop_gradient((encoder.shift, encoder.scale))
    return (jnp.asarray(observation) - shift) / scale


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int, int]:
    """How many outputs a convolution with SAME padding has along an axis, and the zeros before and after.

    Example:
        >>> same_padding(13, 4, 2)
        (7, 1, 2)
    """
    outputs = -(-size // stride)
    zeros = max((outputs - 1) * stride + kernel - size, 0)
    return outputs, zeros // 2, zeros - zeros // 2


def _patches(image: Float[Array, "h w c"], kernel: int, stride: int) -> Float[Array, "y x k"]:
    """Each output pixel's kernel x kernel neighbourhood in a row, with SAME padding."""
    height, width, _ = image.shape
    (rows, *above_below), (columns, *left_right) = (
        same_padding(size, kernel, stride) for size in (height, width)
    )
    padded = jnp.pad(image, (above_below, left_right, (0, 0)))
    slices = [
        padded[row : row + rows * stride : stride, column : column + columns * stride : stride][
            :rows, :columns
        ]
        for row in range(kernel)
        for column in range(kernel)
    ]
    return jnp.concatenate(slices, axis=-1)
