"""φ as a PyTorch module: frozen, with gradients for its input. Needs the extra `sb3`."""

from typing import Any

import numpy as np

from lapwing.data.shrink import Shrinking
from lapwing.errors import ConfigError
from lapwing.laplacian.batches import is_single
from lapwing.laplacian.encoders import ConvNet, same_padding
from lapwing.laplacian.forward import Weights, What, folded
from lapwing.laplacian.representation import Representation

EXTRA_MISSING = (
    "{} needs {}, which is not installed; install lapwing with its extra sb3: pip install 'lapwing[sb3]'"
)
try:
    import torch
    from torch.nn import functional
except ImportError as error:
    raise ConfigError(EXTRA_MISSING.format("lapwing.to_torch", "PyTorch")) from error


def to_torch(
    representation: Representation, what: What = "eigenfunctions"
) -> "Rows | Vectors | Images | Bumps | Shrunk":
    """φ, its eigenfunctions or an embedding as a module that maps a batch to (n, d) in float32.

    Its tensors are buffers: they move with `.to(device)` and are in the `state_dict`, but optimisers and
    initialisers do not touch them. The module has `dim`, the number of outputs, and `shape`, that of one
    observation.

    Args:
        representation: what `lapwing.learn` returns or `lapwing.load` reads.
        what: as for `lapwing.laplacian.forward.Forward`; `eigenfunctions` omits the constant.

    Example:
        >>> import lapwing
        >>> rep = lapwing.learn("TwoRoom", transitions=20_000, dim=5, steps=100, hidden=(32,))
        >>> module = to_torch(rep)
        >>> module(torch.zeros(3, 2)).shape
        torch.Size([3, 4])
        >>> list(module.parameters())
        []
    """
    shape, weights = representation.spec.shape, folded(representation, what)
    if not shape:
        return Rows(weights)
    kind = Bumps if weights.centres is not None else Vectors if len(shape) == 1 else Images
    module, shrinking = kind(weights, shape), representation.spec.shrinking
    return module if shrinking is None else Shrunk(module, shrinking)


class Rows(torch.nn.Module):
    """A row for each index."""

    table: torch.Tensor

    def __init__(self, weights: Weights):
        super().__init__()
        weight, bias = weights.layers[-1]
        self.shape, self.dim = (), len(bias)
        self.register_buffer("table", _tensor(weight + bias))

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        """(n,) whole numbers to (n, d)."""
        _check_shape(indices, self.shape)
        if indices.is_floating_point() or indices.dtype == torch.bool:
            raise ConfigError(f"observations must be integer indices, not {indices.dtype}")
        return functional.embedding(indices.long(), self.table)


class Vectors(torch.nn.Module):
    """Fully connected layers, perhaps over Fourier features."""

    shift: torch.Tensor
    directions: torch.Tensor | None

    def __init__(self, weights: Weights, shape: tuple[int, ...]):
        super().__init__()
        self.register_buffer("shift", _tensor(weights.shift))
        self.register_buffer("directions", _transposed(weights.directions))
        self.layers = torch.nn.ModuleList(Affine(weight.T, bias) for weight, bias in weights.layers)
        self.shape, self.dim = shape, len(weights.layers[-1][1])

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """(n, k) to (n, d)."""
        _check_shape(vectors, self.shape)
        x = vectors.to(self.shift.dtype) - self.shift
        if self.directions is not None:
            angles = functional.linear(x, self.directions)
            x = torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)
        for index, layer in enumerate(self.layers):
            x = layer(functional.relu(x) if index else x)
        return x


class Images(torch.nn.Module):
    """Convolutions, then a linear layer; images are (height, width, channels), as lapwing has them."""

    shift: torch.Tensor

    def __init__(self, weights: Weights, shape: tuple[int, ...]):
        super().__init__()
        self.register_buffer("shift", _tensor(weights.shift))
        self.convolutions = torch.nn.ModuleList()
        height, width, channels = shape
        for (weight, bias), stride in zip(weights.layers[:-1], weights.strides, strict=True):
            height, *rows = same_padding(height, ConvNet.KERNEL, stride)
            width, *columns = same_padding(width, ConvNet.KERNEL, stride)
            filters = _channels_first(weight.T, ConvNet.KERNEL, ConvNet.KERNEL, channels)
            self.convolutions.append(Convolution(filters, bias, stride, [*columns, *rows]))
            channels = len(bias)
        weight, bias = weights.layers[-1]
        self.shape, self.dim = shape, len(bias)
        last = _channels_first(weight.T, height, width, channels)
        self.output = Affine(last.reshape(self.dim, -1), bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(n, height, width, channels), bytes or numbers, to (n, d)."""
        _check_shape(images, self.shape)
        x = _unit_range(images, self.shift) - self.shift
        x = x.permute(0, 3, 1, 2)
        for convolution in self.convolutions:
            x = convolution(x)
        return self.output(x.flatten(1))


class Bumps(torch.nn.Module):
    """Stages of Gaussian bumps over vectors or images."""

    shift: torch.Tensor

    def __init__(self, weights: Weights, shape: tuple[int, ...]):
        super().__init__()
        self.register_buffer("shift", _tensor(weights.shift))
        self.stages = torch.nn.Sequential(*map(Stage, (*weights.before, weights)))
        self.shape, self.dim = shape, len(weights.layers[-1][1])

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """(n, *shape) to (n, d); images are bytes or numbers."""
        _check_shape(observations, self.shape)
        centred = _unit_range(observations, self.shift) - self.shift
        return self.stages(centred.flatten(1))


class Shrunk(torch.nn.Module):
    """A module for images that are averaged over blocks of pixels first."""

    def __init__(self, module: Images | Bumps | Vectors, shrinking: Shrinking):
        super().__init__()
        self.module, self.block = module, shrinking.block
        self.shape, self.dim = shrinking.shape, module.dim

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(n, height, width, channels), bytes or numbers, to (n, d)."""
        _check_shape(images, self.shape)
        whole = not images.is_floating_point()
        numbers = images.to(torch.float32) if whole else images
        # Of blocks that reach over the edge, the mean of what is inside, as everywhere in lapwing.
        means = functional.avg_pool2d(numbers.permute(0, 3, 1, 2), self.block, ceil_mode=True)
        means = means.permute(0, 2, 3, 1)
        return self.module(torch.floor(means + 0.5).to(torch.uint8) if whole else means)


class Stage(torch.nn.Module):
    """Coordinates and Gaussian bumps over them, then a linear layer."""

    projection: torch.Tensor
    centres: torch.Tensor
    width: torch.Tensor

    def __init__(self, weights: Weights):
        super().__init__()
        self.register_buffer("projection", _transposed(weights.directions))
        self.register_buffer("centres", _tensor(weights.centres))
        self.register_buffer("width", _tensor(weights.width))
        weight, bias = weights.layers[-1]
        self.output = Affine(weight.T, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, inputs) to (n, functions)."""
        coordinates = functional.linear(x, self.projection)
        bumps = torch.exp(-self._squares(coordinates) / (2 * self.width**2))
        return self.output(torch.cat([coordinates, bumps], dim=1))

    def _squares(self, coordinates: torch.Tensor) -> torch.Tensor:
        """Squared distances (n, bumps) to the centres, by differences, one coordinate after the other."""
        first, *others = zip(coordinates.unbind(1), self.centres.unbind(0), strict=True)
        squares = (first[0][:, None] - first[1]) ** 2
        for coordinate, centres in others:
            squares = squares + (coordinate[:, None] - centres) ** 2
        return squares


class Affine(torch.nn.Module):
    """x → Wx + b, with buffers; Stable-Baselines3 would fill a `torch.nn.Linear` with new numbers."""

    weight: torch.Tensor
    bias: torch.Tensor

    def __init__(self, weight: np.ndarray, bias: np.ndarray):
        super().__init__()
        self.register_buffer("weight", _tensor(weight))
        self.register_buffer("bias", _tensor(bias))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, inputs) to (n, outputs)."""
        return functional.linear(x, self.weight, self.bias)


class Convolution(torch.nn.Module):
    """A convolution with SAME padding and relu, with buffers."""

    weight: torch.Tensor
    bias: torch.Tensor

    def __init__(self, weight: np.ndarray, bias: np.ndarray, stride: int, padding: list[int]):
        super().__init__()
        self.register_buffer("weight", _tensor(weight))
        self.register_buffer("bias", _tensor(bias))
        self.stride, self.padding = stride, padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, channels, height, width) likewise."""
        padded = functional.pad(x, self.padding)
        return functional.relu(functional.conv2d(padded, self.weight, self.bias, stride=self.stride))


def tracing() -> bool:
    """Whether PyTorch records what is done, so that nothing may depend on the numbers."""
    return torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]


def _check_shape(batch: torch.Tensor, shape: tuple[int, ...]) -> None:
    # The number of rows is not checked, so that an exported module takes any.
    if tracing() or (batch.dim() == len(shape) + 1 and tuple(batch.shape[1:]) == shape):
        return
    if is_single(tuple(batch.shape), shape):
        raise ConfigError(f"a module takes a batch of observations, not one of shape {shape}; add [None]")


def _unit_range(observations: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Images of bytes as numbers in [0, 1]; others as they are. All in the precision of `like`."""
    numbers = observations.to(like.dtype)
    return numbers if observations.is_floating_point() or like.dim() < 3 else numbers / 255


def _channels_first(weight: np.ndarray, height: int, width: int, channels: int) -> np.ndarray:
    """(outputs, height * width * channels) to (outputs, channels, height, width)."""
    return weight.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)


def _transposed(array: np.ndarray | None) -> torch.Tensor | None:
    return None if array is None else _tensor(array.T)


def _tensor(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array, np.float32, order="C"))
