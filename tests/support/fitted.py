"""A representation of each kind of encoder, fitted to a few observations but not trained."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lapwing.laplacian.bumps import Bumps
from lapwing.laplacian.distances import mean_distance
from lapwing.laplacian.encoders import EncoderSpec, fit_encoder
from lapwing.laplacian.representation import Representation

EIGENVALUES = np.array([0.0, 0.01, 0.02, 0.08])


def untrained(spec: EncoderSpec, observations: np.ndarray) -> Representation:
    """A representation whose numbers are random and whose parts fit together."""
    encoder = fit_encoder(spec, observations, standardise=True, bandwidth=None, key=jax.random.key(0))
    if isinstance(encoder, Bumps):
        encoder = with_bumps(encoder, observations)
    coefficients = np.random.default_rng(0).standard_normal((spec.dim + 1, 4)).astype(np.float32)
    coefficients[:, 0] = [1, *np.zeros(spec.dim)]
    bare = Representation(encoder, spec, EIGENVALUES, coefficients, np.zeros((0, 4), np.float32), 1.0)
    reference = bare.eigenfunctions(observations)
    return dataclasses.replace(
        bare,
        reference=reference,
        soft_distance=mean_distance(bare.phi(observations)),
        config={"settings": {"rotate": True}, "note": "é"},
    )


def with_bumps(encoder: Bumps, observations: np.ndarray) -> Bumps:
    """Random coordinates in each stage; a bump at each of the first observations, later anywhere."""
    rng = np.random.default_rng(2)
    scaled = observations / np.float32(255) if observations.dtype == np.uint8 else observations
    seen = (scaled - encoder.shift).reshape(len(observations), -1)
    stages = []
    for stage in encoder.stages:
        projection = rng.standard_normal(stage.projection.shape).astype(np.float32)
        coordinates = rng.standard_normal(stage.centres.shape) if stages else seen @ projection
        centres = jnp.asarray(coordinates[: len(stage.centres)], jnp.float32)
        numbers = (jnp.asarray(projection), centres)
        stages.append(eqx.tree_at(lambda bumps: (bumps.projection, bumps.centres), stage, numbers))
    return eqx.tree_at(lambda bumps: bumps.stages, encoder, tuple(stages))


OBSERVATIONS = {
    "linear": np.arange(9, dtype=np.int32),
    "fourier": np.random.default_rng(1).uniform(-1, 1, (9, 2)).astype(np.float32),
    "mlp": np.random.default_rng(1).uniform(-1, 1, (9, 5)).astype(np.float32),
    "conv": np.random.default_rng(1).integers(0, 256, (9, 5, 6, 3)).astype(np.uint8),
    "bumps": np.random.default_rng(1).uniform(-1, 1, (9, 3)).astype(np.float32),
    "bumps of images": np.random.default_rng(1).integers(0, 256, (9, 4, 2, 3)).astype(np.uint8),
}
REPRESENTATIONS = {
    "linear": untrained(EncoderSpec("linear", (), 6, n_states=9), OBSERVATIONS["linear"]),
    "fourier": untrained(EncoderSpec("fourier", (2,), 6, None, (16,), 8), OBSERVATIONS["fourier"]),
    "mlp": untrained(EncoderSpec("mlp", (5,), 6, None, (16, 8)), OBSERVATIONS["mlp"]),
    "conv": untrained(EncoderSpec("conv", (5, 6, 3), 6), OBSERVATIONS["conv"]),
    "bumps": untrained(EncoderSpec("bumps", (3,), 6, stages=((2, 7, 4), (3, 5, 6))), OBSERVATIONS["bumps"]),
    "bumps of images": untrained(
        EncoderSpec("bumps", (4, 2, 3), 6, stages=((2, 7, 6),)), OBSERVATIONS["bumps of images"]
    ),
}
