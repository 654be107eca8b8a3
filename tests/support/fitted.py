"""A representation of each kind of encoder, fitted to a few observations but not trained."""

import dataclasses

import jax
import numpy as np

from lapwing.laplacian.distances import mean_distance
from lapwing.laplacian.encoders import EncoderSpec, fit_encoder
from lapwing.laplacian.representation import Representation

EIGENVALUES = np.array([0.0, 0.01, 0.02, 0.08])


def untrained(spec: EncoderSpec, observations: np.ndarray) -> Representation:
    """A representation whose numbers are random and whose parts fit together."""
    encoder = fit_encoder(spec, observations, standardise=True, bandwidth=None, key=jax.random.key(0))
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


OBSERVATIONS = {
    "linear": np.arange(9, dtype=np.int32),
    "fourier": np.random.default_rng(1).uniform(-1, 1, (9, 2)).astype(np.float32),
    "mlp": np.random.default_rng(1).uniform(-1, 1, (9, 5)).astype(np.float32),
    "conv": np.random.default_rng(1).integers(0, 256, (9, 5, 6, 3)).astype(np.uint8),
}
REPRESENTATIONS = {
    "linear": untrained(EncoderSpec("linear", (), 6, n_states=9), OBSERVATIONS["linear"]),
    "fourier": untrained(EncoderSpec("fourier", (2,), 6, None, (16,), 8), OBSERVATIONS["fourier"]),
    "mlp": untrained(EncoderSpec("mlp", (5,), 6, None, (16, 8)), OBSERVATIONS["mlp"]),
    "conv": untrained(EncoderSpec("conv", (5, 6, 3), 6), OBSERVATIONS["conv"]),
}
