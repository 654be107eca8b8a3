"""Representations whose numbers are random or known, and φ written out to compare lapwing's with."""

import equinox as eqx
import hypothesis.strategies as st
import jax
import numpy as np

from lapwing.laplacian.encoders import EncoderSpec, encoder_skeleton
from lapwing.laplacian.representation import (
    Representation,
)


@st.composite
def specifications(draw) -> tuple:
    """Arguments of an `EncoderSpec` of any size."""
    size, dim = st.integers(1, 12), draw(st.integers(1, 6))
    name = draw(st.sampled_from(["linear", "mlp", "fourier", "conv", "bumps"]))
    if name == "linear":
        return name, (), dim, draw(size)
    if name == "conv":
        return name, (draw(size), draw(size), draw(st.integers(1, 4))), dim
    if name == "bumps":
        shape = draw(st.sampled_from([(1,), (3,), (11,), (2, 3, 1), (4, 1, 3)]))
        inner = draw(st.lists(st.tuples(size, size, size), max_size=2))
        return name, shape, dim, None, (), 0, (*inner, (draw(size), draw(size), dim))
    hidden = tuple(draw(st.lists(size, max_size=3)))
    return name, (draw(st.integers(1, 4)),), dim, None, hidden, draw(size)


def random_representation(spec: EncoderSpec, seed: int = 0) -> Representation:
    """A representation of random numbers, for which JAX need not compile anything."""
    rng = np.random.default_rng(seed)

    def fill(leaf) -> np.ndarray:
        return (0.5 * rng.standard_normal(leaf.shape)).astype(np.float32)

    encoder = jax.tree.map(fill, encoder_skeleton(spec))
    if spec.name == "bumps":
        widths = [np.asarray(np.exp(stage.width)) for stage in encoder.stages]
        encoder = eqx.tree_at(lambda net: [stage.width for stage in net.stages], encoder, widths)
    elif spec.name != "linear":
        encoder = eqx.tree_at(lambda net: net.scale, encoder, np.asarray(np.exp(encoder.scale)))
    coefficients = np.column_stack([np.eye(spec.dim + 1)[0], rng.standard_normal((spec.dim + 1, 3))])
    reference = rng.standard_normal((20, 4)).astype(np.float32)
    eigenvalues = np.array([0.0, 0.01, 0.02, 0.08])
    return Representation(encoder, spec, eigenvalues, coefficients.astype(np.float32), reference, 1.0)


def by_hand(rep: Representation, observation: np.ndarray) -> np.ndarray:
    """φ of one observation, with the encoder's formula written out in float64."""
    net = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), rep.encoder)
    if rep.spec.name == "linear":
        return net.weight[observation]
    x = observation / (255 if observation.dtype == np.uint8 else 1) - net.shift
    if rep.spec.name == "bumps":
        x = x.ravel()
        for stage in net.stages:
            z = x @ stage.projection
            squares = [(z - centre) @ (z - centre) for centre in stage.centres]
            x = stage.layer.weight @ np.append(z, np.exp(-np.array(squares) / (2 * stage.width**2)))
            x = x + stage.layer.bias
        return x
    x = x / net.scale
    if rep.spec.name == "conv":
        for layer, stride in zip(net.convolutions, net.STRIDES, strict=True):
            x = convolved(x, layer.weight, layer.bias, stride)
        return net.output.weight @ x.ravel() + net.output.bias
    if rep.spec.name == "fourier":
        x = np.append(np.sin(net.directions @ x), np.cos(net.directions @ x))
    for layer in net.layers[:-1]:
        x = np.maximum(layer.weight @ x + layer.bias, 0)
    return net.layers[-1].weight @ x + net.layers[-1].bias


def convolved(image: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    """A convolution pixel by pixel, with zeros around the image, then relu."""
    before, rows, columns = [], *(-(-size // stride) for size in image.shape[:2])
    for outputs, size in zip((rows, columns), image.shape, strict=False):
        before.append(max((outputs - 1) * stride + 4 - size, 0) // 2)
    wide = np.pad(image, ((before[0], 8), (before[1], 8), (0, 0)))
    answer = np.empty((rows, columns, len(bias)))
    for row, column in np.ndindex(rows, columns):
        window = wide[row * stride : row * stride + 4, column * stride : column * stride + 4]
        answer[row, column] = np.maximum(weight @ window.ravel() + bias, 0)
    return answer


def random_observations(spec: EncoderSpec, count: int, rng: np.random.Generator) -> np.ndarray:
    if spec.name == "linear":
        return rng.integers(0, spec.n_states, count)
    if len(spec.shape) == 3:
        return rng.integers(0, 256, (count, *spec.shape)).astype(np.uint8)
    return rng.standard_normal((count, *spec.shape)).astype(np.float32)


def answer(rep: Representation, observations, what: str) -> np.ndarray:
    """What JAX says."""
    if what == "phi":
        return rep.phi(observations)
    if what == "eigenfunctions":
        return rep.eigenfunctions(observations)[..., 1:]
    return rep.embed(observations, what)  # type: ignore[arg-type]


def assert_same(found, expected, within: float = 1e-5) -> None:
    """Equal, but for a part in 100,000 of the largest."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=within * np.abs(expected).max())


class Known(Representation):
    """A φ whose distances are known, by filter, as functions of observations."""

    def __init__(self, distances: dict, *, rotate: bool = True, dim: int = 3):
        settings = {"rotate": rotate, "seed": 5, "dim": dim, "observation": "position"}
        for name, value in (
            ("known", distances),
            ("eigenvalues", np.linspace(0, 1, dim)),
            ("config", {"settings": settings}),
            ("asked", []),
        ):
            object.__setattr__(self, name, value)

    def distance(self, a, b, filter="soft", *, t=None):
        self.asked.append(np.asarray(b))
        return self.known[filter](np.asarray(a))
