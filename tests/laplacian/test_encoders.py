"""One battery that every encoder goes through, and what each computes, by other means."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import ConfigError
from lapwing.laplacian.bumps import Bumps
from lapwing.laplacian.encoders import (
    MLP,
    ConvNet,
    EncoderSpec,
    Linear,
    default_encoder,
    embed,
    encoder_skeleton,
    fit_encoder,
    fourier_bandwidth,
)
from tests.support.fitted import with_bumps

pytestmark = pytest.mark.numeric

RNG = np.random.default_rng(0)
DIM = 5
SPECS = {
    "linear": EncoderSpec("linear", (), DIM, n_states=9),
    "mlp": EncoderSpec("mlp", (3,), DIM, hidden=(16, 12)),
    "fourier": EncoderSpec("fourier", (2,), DIM, hidden=(16,), n_features=32),
    "conv": EncoderSpec("conv", (9, 7, 3), DIM),
    "bumps": EncoderSpec("bumps", (3,), DIM, stages=((2, 7, 4), (3, 5, DIM))),
    "bumps of images": EncoderSpec("bumps", (3, 4, 2), DIM, stages=((2, 7, DIM),)),
}
OBSERVATIONS = {
    "linear": np.arange(9, dtype=np.int32),
    "mlp": (RNG.standard_normal((9, 3)) * [1, 50, 0.1] + [0, 300, -2]).astype(np.float32),
    "fourier": RNG.uniform(-1, 1, (9, 2)).astype(np.float32),
    "conv": RNG.integers(0, 256, (9, 9, 7, 3), dtype=np.uint8),
    "bumps": RNG.uniform(-1, 1, (9, 3)).astype(np.float32),
    "bumps of images": RNG.integers(0, 256, (9, 3, 4, 2), dtype=np.uint8),
}
FITTED = ("shift", "scale", "projection", "centres", "width")
FROZEN = (*FITTED, "directions")


def build(name: str, seed: int = 0, standardise: bool = True):
    key, seen = jax.random.key(seed), OBSERVATIONS[name]
    encoder = fit_encoder(SPECS[name], seen, standardise=standardise, bandwidth=None, key=key)
    return with_bumps(encoder, seen) if isinstance(encoder, Bumps) else encoder


@eqx.filter_jit
def compiled(function, *arguments):
    return function(*arguments)


def embed_all(encoder, observations) -> np.ndarray:
    return np.asarray(compiled(jax.vmap(embed, in_axes=(None, 0)), encoder, jnp.asarray(observations)))


def named_leaves(tree) -> dict[str, jax.Array]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, eqx.is_array))
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def is_one_of(fields: tuple[str, ...], name: str) -> bool:
    return any(name.endswith(f".{field}") for field in fields)


@pytest.fixture(scope="module")
def encoders() -> dict:
    return {name: build(name) for name in SPECS}


@pytest.mark.parametrize("name", SPECS)
class TestContract:
    def test_a_batch_is_its_single_embeddings_compiled_or_not(self, name, encoders):
        encoder, seen = encoders[name], OBSERVATIONS[name]
        batch = embed_all(encoder, seen)
        assert (batch.shape, batch.dtype) == ((len(seen), DIM), np.float32)
        assert np.isfinite(batch).all()
        assert len(np.unique(batch, axis=0)) == len(batch)
        single = [compiled(embed, encoder, jnp.asarray(one)) for one in seen]
        np.testing.assert_allclose(batch, single, rtol=1e-5, atol=1e-5)
        for as_written in (embed(encoder, jnp.asarray(seen[3])), embed(encoder, seen[3])):
            np.testing.assert_allclose(batch[3], as_written, rtol=1e-5, atol=1e-5)

    def test_learning_reaches_what_is_learned_and_nothing_else(self, name, encoders):
        """By the gradient, and by what a step of Adam, which magnifies any trace of one, then changes."""
        seen = jnp.asarray(OBSERVATIONS[name])
        target = jax.random.normal(jax.random.key(9), (len(seen), DIM))
        optimiser = optax.adam(0.1)

        @eqx.filter_jit
        def step(encoder):
            def loss(encoder):
                return jnp.sum((jax.vmap(embed, in_axes=(None, 0))(encoder, seen) - target) ** 2)

            gradients = eqx.filter_grad(loss)(encoder)
            state = optimiser.init(eqx.filter(encoder, eqx.is_inexact_array))
            return gradients, eqx.apply_updates(encoder, optimiser.update(gradients, state)[0])

        before = named_leaves(encoders[name])
        gradients, after = (named_leaves(tree) for tree in step(encoders[name]))
        assert set(gradients) == set(before) == set(after)
        for leaf, values in before.items():
            assert np.isfinite(gradients[leaf]).all(), leaf
            frozen = is_one_of(FROZEN, leaf) or (name == "bumps" and ".stages[0]" in leaf)  # of two stages
            assert bool(np.any(gradients[leaf])) != frozen, leaf
            assert np.array_equal(values, after[leaf]) == frozen, leaf
        if name == "linear":
            assert np.all(gradients[".weight"])

    def test_same_key_same_bits_and_other_keys_differ_in_every_random_part(self, name, encoders):
        first, same, other = map(named_leaves, (encoders[name], build(name), build(name, seed=1)))
        for leaf, values in first.items():
            assert np.asarray(values).tobytes() == np.asarray(same[leaf]).tobytes(), leaf
            assert np.array_equal(values, other[leaf]) == is_one_of(FITTED, leaf), leaf

    @pytest.mark.parametrize("standardise", [False, True])
    def test_the_skeleton_has_the_same_shapes(self, name, standardise):
        real, skeleton = build(name, standardise=standardise), encoder_skeleton(SPECS[name])
        assert jax.tree.structure(real) == jax.tree.structure(skeleton)
        for leaf, shape in zip(jax.tree.leaves(real), jax.tree.leaves(skeleton), strict=True):
            assert (leaf.shape, leaf.dtype) == (shape.shape, shape.dtype)

    def test_the_encoder_for_such_observations(self, name, encoders):
        kind = {"linear": Linear, "mlp": MLP, "fourier": MLP, "conv": ConvNet}.get(name, Bumps)
        assert type(encoders[name]) is kind
        assert (getattr(encoders[name], "directions", None) is not None) == (name == "fourier")
        other = {"mlp": "fourier", "bumps": "fourier", "bumps of images": "conv"}
        assert default_encoder(SPECS[name].shape) == other.get(name, name)


class TestShapes:
    @pytest.mark.parametrize(
        ("name", "shape", "remedy"),
        [
            ("linear", (2,), "--encoder fourier or mlp or bumps"),
            ("mlp", (), "--encoder linear"),
            ("bumps", (), "--encoder linear"),
            ("fourier", (5, 5, 3), "--encoder conv or bumps"),
            ("conv", (5, 5), "flatten"),
        ],
    )
    def test_observations_that_do_not_fit(self, name, shape, remedy):
        with pytest.raises(ConfigError, match=f"encoder {name} .*{re.escape(str(shape))}.*{remedy}"):
            EncoderSpec(name, shape, DIM)

    def test_observations_that_fit_none(self):
        with pytest.raises(ConfigError, match=r"\(5, 5\)"):
            default_encoder((5, 5))


class TestLinear:
    def test_is_the_product_with_the_one_hot_vector(self, encoders):
        one_hot = np.eye(9, dtype=np.float32)
        expected = one_hot @ np.asarray(encoders["linear"].weight)
        np.testing.assert_array_equal(embed_all(encoders["linear"], np.arange(9)), expected)

    def test_rows_have_mean_square_one(self):
        weight = np.asarray(Linear(20_000, 7, key=jax.random.key(0)).weight)
        assert np.mean(np.sum(weight**2, axis=1)) == pytest.approx(1, abs=0.02)


def forward(layers, values: np.ndarray) -> np.ndarray:
    for number, layer in enumerate(layers):
        values = values @ np.asarray(layer.weight, np.float64).T + np.asarray(layer.bias, np.float64)
        if number < len(layers) - 1:
            values = np.maximum(values, 0)
    return values


class TestVectors:
    def test_mlp_by_matrix_products(self, encoders):
        seen = OBSERVATIONS["mlp"].astype(np.float64)
        scaled = (seen - seen.mean(axis=0)) / seen.std(axis=0)
        expected = forward(encoders["mlp"].layers, scaled)
        np.testing.assert_allclose(embed_all(encoders["mlp"], OBSERVATIONS["mlp"]), expected, atol=1e-4)
        assert [layer.weight.shape for layer in encoders["mlp"].layers] == [(16, 3), (12, 16), (DIM, 12)]

    def test_fourier_by_sines_and_cosines(self, encoders):
        encoder, seen = encoders["fourier"], OBSERVATIONS["fourier"].astype(np.float64)
        scaled = (seen - seen.mean(axis=0)) / seen.std(axis=0)
        angles = scaled @ np.asarray(encoder.directions, np.float64).T
        waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        features = jax.vmap(encoder.features)(jnp.asarray(OBSERVATIONS["fourier"]))
        np.testing.assert_allclose(features, waves, atol=1e-4)
        expected = forward(encoder.layers, waves)
        np.testing.assert_allclose(embed_all(encoder, OBSERVATIONS["fourier"]), expected, atol=1e-4)

    @pytest.mark.parametrize("name", ["mlp", "conv"])
    def test_without_standardisation_numbers_stay(self, name):
        encoder = build(name, standardise=False)
        seen = OBSERVATIONS[name][0]
        expected = seen / np.float32(255) if name == "conv" else seen
        np.testing.assert_allclose(encoder.features(jnp.asarray(seen)), expected, rtol=1e-6)

    def test_standardised_images_as_a_whole(self, encoders):
        """Without their mean image, and with mean square one over all pixels."""
        features = np.asarray(jax.vmap(encoders["conv"].features)(jnp.asarray(OBSERVATIONS["conv"])))
        np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-5)
        assert np.mean(features**2) == pytest.approx(1, rel=1e-4)

    def test_images_are_divided_by_a_scale_that_is_given(self):
        seen = OBSERVATIONS["conv"]
        encoder = fit_encoder(
            SPECS["conv"], seen, standardise=True, bandwidth=None, image_scale=0.5, key=jax.random.key(0)
        )
        expected = (seen - seen.mean(axis=0)) / 255 / 0.5
        np.testing.assert_allclose(jax.vmap(encoder.features)(jnp.asarray(seen)), expected, atol=1e-5)

    def test_a_constant_feature_does_no_harm(self):
        seen = OBSERVATIONS["mlp"].copy()
        seen[:, 1] = 7
        encoder = fit_encoder(SPECS["mlp"], seen, standardise=True, bandwidth=None, key=jax.random.key(0))
        features = np.asarray([encoder.features(row) for row in seen])
        np.testing.assert_allclose(features.std(axis=0), [1, 0, 1], atol=1e-5)

    @pytest.mark.parametrize("name", ["mlp", "conv"])
    def test_observations_all_alike_do_no_harm(self, name):
        seen = np.repeat(OBSERVATIONS[name][:1], 4, axis=0)
        encoder = fit_encoder(SPECS[name], seen, standardise=True, bandwidth=None, key=jax.random.key(0))
        assert np.isfinite(embed_all(encoder, OBSERVATIONS[name])).all()


class TestBandwidth:
    @settings(max_examples=50)
    @given(st.integers(0, 10_000), st.integers(2, 20), st.integers(1, 4), st.floats(0.01, 100))
    def test_against_all_distances(self, seed, size, width, stretch):
        points = stretch * np.random.default_rng(seed).standard_normal((size, width))
        distances = np.linalg.norm(points[:, None] - points[None, :], axis=-1)
        nearest = np.min(distances + np.diag(np.full(size, np.inf)), axis=1)
        assert fourier_bandwidth(points) == pytest.approx(0.8 / np.median(nearest))
        repeated = np.concatenate([points, points[: size // 2]])
        assert fourier_bandwidth(repeated) == pytest.approx(0.8 / np.median(nearest))

    def test_a_single_point(self):
        assert fourier_bandwidth(np.ones((5, 2))) == 1

    def directions(self, bandwidth: float | None) -> np.ndarray:
        spec = EncoderSpec("fourier", (2,), DIM, n_features=8_000)
        points = np.stack(np.meshgrid(np.arange(20), np.arange(20)), axis=-1).reshape(-1, 2)
        key = jax.random.key(0)
        encoder = fit_encoder(
            spec, points.astype(np.float32), standardise=False, bandwidth=bandwidth, key=key
        )
        return np.asarray(encoder.directions)

    @pytest.mark.parametrize("bandwidth", [None, 20.0])
    def test_half_of_the_directions_have_it_the_others_range_from_one(self, bandwidth):
        wanted = 0.8 if bandwidth is None else bandwidth
        directions = self.directions(bandwidth)
        ladder, top = directions[:4_000], directions[4_000:]
        assert top.std() == pytest.approx(wanted, rel=0.05)
        rungs = ladder.reshape(8, -1).std(axis=1)
        np.testing.assert_allclose(rungs, wanted ** ((np.arange(8) + 0.5) / 8), rtol=0.12)
        assert np.abs(directions.mean(axis=0)).max() < 4 * directions.std() / np.sqrt(8_000)


def filled(spec: EncoderSpec, seed: int):
    """An encoder with random numbers in it, without compiling its initialisation."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: jnp.asarray(rng.standard_normal(leaf.shape) * 0.2, leaf.dtype), encoder_skeleton(spec)
    )


def compiled_quickly(function, image: np.ndarray) -> np.ndarray:
    """Each size of image is compiled anew; without optimisation that takes a third of the time."""
    arrays, static = eqx.partition(function, eqx.is_array)

    def run(arrays, image):
        return eqx.combine(arrays, static)(image)

    options = {"xla_backend_optimization_level": 0}
    return np.asarray(jax.jit(run, compiler_options=options)(arrays, image))


def convolved(encoder: ConvNet, values: np.ndarray) -> np.ndarray:
    """The network pixel by pixel: where the kernel reaches past the border it sees zeros."""
    for layer, stride in zip(encoder.convolutions, encoder.STRIDES, strict=True):
        size = np.array(values.shape[:2])
        out = -(-size // stride)
        missing = np.maximum((out - 1) * stride + 4 - size, 0)
        before = missing // 2
        padded = np.pad(values, (*zip(before, missing - before, strict=True), (0, 0)))
        weight, bias = np.asarray(layer.weight), np.asarray(layer.bias)
        values = np.zeros((*out, len(bias)))
        for row, column in np.ndindex(*out):
            top, left = row * stride, column * stride
            values[row, column] = weight @ padded[top : top + 4, left : left + 4].ravel() + bias
        values = np.maximum(values, 0)
    return np.asarray(encoder.output.weight) @ values.ravel() + np.asarray(encoder.output.bias)


class TestConvolution:
    @pytest.mark.parametrize("size", [(1, 2), (7, 14), (13, 8), (9, 12), (11, 10), (15, 20)], ids=str)
    def test_images_of_any_size(self, size):
        encoder = filled(EncoderSpec("conv", (*size, 3), DIM), seed=sum(size))
        image = np.random.default_rng(1).standard_normal((*size, 3)).astype(np.float32)
        expected = convolved(encoder, image)
        np.testing.assert_allclose(
            compiled_quickly(encoder.network, image), expected, atol=1e-5 * np.abs(expected).max()
        )

    def test_the_papers_layers(self, encoders):
        encoder = encoders["conv"]
        assert [layer.weight.shape for layer in encoder.convolutions] == [(16, 48), (16, 256), (16, 256)]
        assert encoder.STRIDES == (2, 2, 1)
        # 9 x 7 pixels halve twice, rounding up, to 3 x 2.
        assert encoder.output.weight.shape == (DIM, 3 * 2 * 16)

    def test_bytes_and_unit_numbers_are_alike(self, encoders):
        seen = OBSERVATIONS["conv"][0]
        as_numbers = encoders["conv"].features(seen / np.float32(255))
        np.testing.assert_allclose(encoders["conv"].features(seen), as_numbers, atol=1e-5)
