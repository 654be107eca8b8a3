"""φ as Gaussian bumps over slow linear coordinates: one layer of radial units, combined linearly.

z = (x - shift) P are linear functions of the observation, scaled by how slowly they change. At centres c_j
that the data chose stand the bumps exp(-‖z - c_j‖² / 2w²), and φ is a linear function of z and of the bumps.
Where states lie on a surface of few dimensions, as positions and joint angles do, such functions come nearer
to the eigenfunctions than a trained network, and the best combination is known in closed form
(`closed_form`).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Scalar


class Bumps(eqx.Module):
    """Coordinates and bumps of an observation, and the linear layer over them."""

    shift: Float[Array, "..."]
    projection: Float[Array, "k m"]
    """P, from observations as vectors to coordinates."""
    centres: Float[Array, "c m"]
    width: Float[Scalar, ""]
    """w, the standard deviation of a bump."""
    layer: eqx.nn.Linear

    def __init__(self, shift, n_coordinates: int, n_bumps: int, dim: int, *, key: PRNGKeyArray):
        """Of these sizes, for observations of the shape of `shift`; `closed_form` fills in the numbers."""
        self.shift = jnp.asarray(shift)
        self.projection = jnp.zeros((self.shift.size, n_coordinates))
        self.centres = jnp.zeros((n_bumps, n_coordinates))
        self.width = jnp.ones(())
        self.layer = eqx.nn.Linear(n_coordinates + n_bumps, dim, key=key)

    def features(self, observation) -> Float[Array, " features"]:
        """The coordinates, then the bumps."""
        bytes_ = self.shift.ndim == 3 and jnp.issubdtype(observation.dtype, jnp.integer)
        seen = observation / 255.0 if bytes_ else jnp.asarray(observation)
        fixed = jax.lax.stop_gradient((self.shift, self.projection, self.centres, self.width))
        shift, projection, centres, width = fixed
        coordinates = (seen - shift).reshape(-1) @ projection
        squares = jnp.sum((coordinates - centres) ** 2, axis=1)
        return jnp.concatenate([coordinates, jnp.exp(-squares / (2 * width**2))])

    def network(self, features) -> Float[Array, " d"]:
        """The linear layer."""
        return self.layer(features)
