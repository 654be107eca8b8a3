"""φ as Gaussian bumps over slow coordinates, in one stage or several.

z = (x - shift) P are linear functions of the observation, scaled by their slowness. The bumps exp(-‖z - c_j‖²
/ 2w²) have centres c_j chosen from the data, and φ is a linear function of z and of the bumps. If states lie
on a surface of few dimensions, as positions and joint angles do, such functions approximate the
eigenfunctions better than a trained network, and the best combination has a closed form (`closed_form`). In a
second stage the bumps are placed in the space of the first stage's functions, where the two sides of a wall
are far apart.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Scalar

StageSizes = tuple[int, int, int]
"""How many coordinates, bumps and functions a stage has."""


class Stage(eqx.Module):
    """Coordinates, bumps over them, and linear functions of both."""

    projection: Float[Array, "k m"]
    """P, from what the stage is given to coordinates."""
    centres: Float[Array, "c m"]
    width: Float[Scalar, ""]
    """w, the standard deviation of a bump."""
    layer: eqx.nn.Linear

    def __init__(self, inputs: int, sizes: StageSizes, *, key: PRNGKeyArray):
        """Of these sizes; `closed_form` fills in the numbers."""
        coordinates, bumps, functions = sizes
        self.projection = jnp.zeros((inputs, coordinates))
        self.centres = jnp.zeros((bumps, coordinates))
        self.width = jnp.ones(())
        self.layer = eqx.nn.Linear(coordinates + bumps, functions, key=key)

    def features(self, x: Float[Array, " k"]) -> Float[Array, " features"]:
        """The coordinates, then the bumps."""
        coordinates = x @ self.projection
        squares = jnp.sum((coordinates - self.centres) ** 2, axis=1)
        return jnp.concatenate([coordinates, jnp.exp(-squares / (2 * self.width**2))])


class Bumps(eqx.Module):
    """Stages one after the other; all but the last linear layer are features, which do not learn."""

    shift: Float[Array, "..."]
    stages: tuple[Stage, ...]

    def __init__(self, shift, sizes: Sequence[StageSizes], *, key: PRNGKeyArray):
        """For observations of the shape of `shift`."""
        self.shift = jnp.asarray(shift)
        inputs = [self.shift.size, *(functions for _, _, functions in sizes)]
        keys = jax.random.split(key, max(len(sizes), 1))
        self.stages = tuple(map(_stage, inputs, sizes, keys))

    def features(self, observation) -> Float[Array, " features"]:
        """Coordinates and bumps of the last stage; bytes become numbers in [0, 1] first."""
        whole = self.shift.ndim == 3 and jnp.issubdtype(observation.dtype, jnp.integer)
        seen = observation / 255.0 if whole else jnp.asarray(observation)
        shift, stages = jax.lax.stop_gradient((self.shift, self.stages))
        x = (seen - shift).reshape(-1)
        for stage in stages[:-1]:
            x = stage.layer(stage.features(x))
        return stages[-1].features(x)

    def network(self, features) -> Float[Array, " d"]:
        """The last linear layer."""
        return self.stages[-1].layer(features)


def _stage(inputs: int, sizes: StageSizes, key: PRNGKeyArray) -> Stage:
    return Stage(inputs, sizes, key=key)
