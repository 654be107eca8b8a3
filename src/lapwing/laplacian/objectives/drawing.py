"""The graph drawing objective and its orthonormality penalty, as pure functions of embedded states.

The loss is G + β · penalty (Eq. 6), with G = ½ E_{u~ρ, v~P_λ(·|u)} ‖φ(u) - φ(v)‖² (Eq. 5) and penalty = Σ_jk
(E[f_j f_k] - δ·1[j=k])². At the optimum φ_i = a_i f_i up to rotation, with a_i² = max(0, δ - λ_i / (2β)): a
dimension with λ_i ≥ 2βδ vanishes.

There are three estimators of the same loss: `sampled` (the paper), `pairwise` (unbiased, from half the
embedded states) and `exact` (sums over enumerated states, or over a batch of them if they are many). Each
returns the loss and its two terms.

`exact` uses the eigenpairs (μ_k, v_k) of D, μ_k = 1 - λ_k: with D = Σ_k μ_k v_k v_kᵀ, G = E‖φ‖² - Σ_k μ_k
‖E[v_k φ]‖². If only the largest μ_k are known the others count as 0. The minimum is the same, as long as
there are at least as many as dimensions.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

Phi = Float[Array, "batch d"]
Loss = tuple[Float[Scalar, ""], dict[str, Float[Scalar, ""]]]


def graph_drawing(phi_u: Phi, phi_v: Phi) -> Float[Scalar, ""]:
    """G over pairs (u, v) ~ ρ P_λ (Eq. 5, with its ½)."""
    return 0.5 * jnp.mean(jnp.sum((phi_u - phi_v) ** 2, axis=1))


def sampled_penalty(phi_u: Phi, phi_v: Phi, delta: float) -> Float[Scalar, ""]:
    """The penalty over independent u, v ~ ρ (Eq. 7, with δ for the diagonal target).

    E[(φ(u)ᵀφ(v))² - δ‖φ(u)‖² - δ‖φ(v)‖² + δ²d].
    """
    inner = jnp.sum(phi_u * phi_v, axis=1)
    norms = jnp.sum(phi_u**2, axis=1) + jnp.sum(phi_v**2, axis=1)
    return jnp.mean(inner**2 - delta * norms) + delta**2 * phi_u.shape[1]


def pairwise_penalty(phi_u: Phi, phi_v: Phi, delta: float) -> Float[Scalar, ""]:
    """The penalty over all pairs of the 2B embedded states but a state with itself or its partner.

    A U-statistic, so without bias: the pairs (u_i, v_i) are independent of each other. Through ΦᵀΦ it
    costs O(B d²), not O(B² d).
    """
    batch, d = phi_u.shape
    phi = jnp.concatenate([phi_u, phi_v])
    squared_norms = jnp.sum(phi**2, axis=1)
    all_pairs = jnp.sum((phi.T @ phi) ** 2)
    itself = jnp.sum(squared_norms**2)
    partner = 2 * jnp.sum(jnp.sum(phi_u * phi_v, axis=1) ** 2)
    squared_inner = (all_pairs - itself - partner) / (4 * batch * (batch - 1))
    return squared_inner - 2 * delta * jnp.mean(squared_norms) + delta**2 * d


def exact_penalty(phi: Phi, rho: Float[Array, " batch"], delta: float) -> Float[Scalar, ""]:
    """The penalty over all states, each with its probability."""
    second_moment = phi.T @ (rho[:, None] * phi)
    return jnp.sum((second_moment - delta * jnp.eye(phi.shape[1])) ** 2)


def sampled_loss(phi_u: Phi, phi_v: Phi, phi_1: Phi, phi_2: Phi, *, beta: float, delta: float) -> Loss:
    """The paper's estimator: pairs (u, v) for G, two fresh independent batches for the penalty."""
    return _weighed(graph_drawing(phi_u, phi_v), sampled_penalty(phi_1, phi_2, delta), beta)


def pairwise_loss(phi_u: Phi, phi_v: Phi, *, beta: float, delta: float) -> Loss:
    """Both parts from the same pairs (u, v): half the embedding, far less variance."""
    return _weighed(graph_drawing(phi_u, phi_v), pairwise_penalty(phi_u, phi_v, delta), beta)


class PairSums(NamedTuple):
    """Sums over pairs that `pairwise_loss` is a function of, so that pairs can be summed in parts."""

    pairs: Float[Scalar, ""]
    drawing: Float[Scalar, ""]
    """Of ‖φ(u) - φ(v)‖²."""
    moment: Float[Array, "d d"]
    """Of φφᵀ at both ends."""
    excluded: Float[Scalar, ""]
    """Of the squared inner products of states with themselves and their partners."""
    norms: Float[Scalar, ""]
    """Of ‖φ‖² at both ends."""


def pair_sums(phi_u: Phi, phi_v: Phi) -> PairSums:
    """The sums over some pairs."""
    phi = jnp.concatenate([phi_u, phi_v])
    squared_norms = jnp.sum(phi**2, axis=1)
    partner = 2 * jnp.sum(jnp.sum(phi_u * phi_v, axis=1) ** 2)
    return PairSums(
        pairs=jnp.full((), len(phi_u), phi.dtype),
        drawing=jnp.sum((phi_u - phi_v) ** 2),
        moment=phi.T @ phi,
        excluded=jnp.sum(squared_norms**2) + partner,
        norms=jnp.sum(squared_norms),
    )


def loss_of_sums(sums: PairSums, *, beta: float, delta: float) -> Loss:
    """`pairwise_loss` of the pairs that were summed over."""
    pairs, d = sums.pairs, len(sums.moment)
    squared_inner = (jnp.sum(sums.moment**2) - sums.excluded) / (4 * pairs * (pairs - 1))
    penalty = squared_inner - delta * sums.norms / pairs + delta**2 * d
    return _weighed(0.5 * sums.drawing / pairs, penalty, beta)


def exact_loss(
    phi: Phi,
    functions: Float[Array, "batch r"],
    mu: Float[Array, " r"],
    rho: Float[Array, " batch"],
    *,
    beta: float,
    delta: float,
) -> Loss:
    """No sampling: sums over all states, each with its probability; `functions` are the v_k there."""
    weighed = rho[:, None] * phi
    drawing = jnp.sum(weighed * phi) - jnp.sum(mu[:, None] * (functions.T @ weighed) ** 2)
    return _weighed(drawing, exact_penalty(phi, rho, delta), beta)


def batch_loss(
    phi: Phi, functions: Float[Array, "batch r"], mu: Float[Array, " r"], *, beta: float, delta: float
) -> Loss:
    """The same from independent states u ~ ρ: squares of expectations are means over pairs of two states.

    So without bias; a state is not paired with itself.
    """
    batch, d = phi.shape
    pairs = batch * (batch - 1)
    squared_norms = jnp.sum(phi**2, axis=1)
    itself = jnp.sum((functions**2 @ mu) * squared_norms)
    projected = (jnp.sum(mu[:, None] * (functions.T @ phi) ** 2) - itself) / pairs
    squared_inner = (jnp.sum((phi.T @ phi) ** 2) - jnp.sum(squared_norms**2)) / pairs
    size = jnp.mean(squared_norms)
    return _weighed(size - projected, squared_inner - 2 * delta * size + delta**2 * d, beta)


def surviving_scale(eigenvalues: np.ndarray, beta: float, delta: float) -> np.ndarray:
    """a_i = √max(0, δ - λ_i / (2β)), the size of each eigenfunction at the optimum.

    Example:
        >>> surviving_scale(np.array([0.0, 0.3, 0.6]), beta=5.0, delta=0.05).round(3).tolist()
        [0.224, 0.141, 0.0]
    """
    return np.sqrt(np.maximum(0.0, delta - np.asarray(eigenvalues) / (2 * beta)))


def distance_to_identity(second_moment: np.ndarray) -> float:
    """‖E[f fᵀ] - I‖ / √d: how far functions are from orthonormal, root mean square.

    Example:
        >>> distance_to_identity(np.diag([1.0, 1.0, 1.0, 3.0]))
        1.0
    """
    return float(np.linalg.norm(second_moment - np.eye(len(second_moment))) / np.sqrt(len(second_moment)))


def _weighed(drawing: Float[Scalar, ""], penalty: Float[Scalar, ""], beta: float) -> Loss:
    loss = drawing + beta * penalty
    return loss, {"loss": loss, "graph_drawing": drawing, "penalty": penalty}
