"""What an estimator passes to an objective: φ of the drawn states, as two independent samples.

Every objective is built from G, E[φφᵀ] and E[φ(u)φ(v)ᵀ]. A product of two of these is estimated without bias
if each factor has its own sample, so there are two. `exact` draws nothing, so both are the same.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.laplacian.objectives.drawing import (
    Loss,
    Phi,
    batch_loss,
    exact_loss,
    pairwise_loss,
    sampled_loss,
)

Matrix = Float[Array, "d d"]
Pairs = Float[Array, "pairs d"]


class Sample(NamedTuple):
    """φ at some states, and at what follows some."""

    here: Pairs
    """φ(u)."""
    ahead: Pairs
    """φ(v), v ~ P_λ(·|u), or its expectation; the walk is as likely to go from v to u."""
    pair_weights: Float[Array, " pairs"]
    """The share of each pair; their sum is 1."""
    phi: Float[Array, "states d"]
    """φ(s), s ~ ρ; the others may be the same states."""
    weights: Float[Array, " states"]
    """The share of each state; their sum is 1."""

    def moment(self) -> Matrix:
        """E[φφᵀ]."""
        return self.phi.T @ (self.weights[:, None] * self.phi)

    def drawing(self) -> Float[Array, " d"]:
        """½ E[(φ_k(u) - φ_k(v))²] of each dimension, whose sum is G (Eq. 5)."""
        return self.pair_weights @ (self.here * (self.here - self.ahead))

    def correlation(self) -> Matrix:
        """E[φ(u)φ(v)ᵀ]."""
        return self.here.T @ (self.pair_weights[:, None] * self.ahead)

    def lazy_correlation(self) -> Matrix:
        """The same of a walk that stays where it is every other time, so that no eigenvalue is negative."""
        return (self.correlation() + self.here.T @ (self.pair_weights[:, None] * self.here)) / 2


@runtime_checkable
class Batch(Protocol):
    """What one step of an estimator gives."""

    def samples(self) -> tuple[Sample, Sample]:
        """Two samples that are independent of each other, or both exact."""
        ...

    def graph_drawing(self, beta: float, delta: float) -> Loss:
        """The graph drawing loss, by the estimate with the least noise."""
        ...


class SampledBatch(NamedTuple):
    """Pairs (u, v), and two batches of states."""

    phi_u: Phi
    phi_v: Phi
    phi_1: Phi
    phi_2: Phi

    def samples(self) -> tuple[Sample, Sample]:
        """Half of the pairs with each batch of states."""
        halves = zip(*(_halves(phi) for phi in (self.phi_u, self.phi_v)), strict=True)
        first, second = (
            Sample(*_both_ways(u, v), phi, _uniform(phi))
            for (u, v), phi in zip(halves, (self.phi_1, self.phi_2), strict=True)
        )
        return first, second

    def graph_drawing(self, beta: float, delta: float) -> Loss:
        """`sampled_loss`."""
        return sampled_loss(*self, beta=beta, delta=delta)


class PairwiseBatch(NamedTuple):
    """Pairs (u, v), whose ends are the states too."""

    phi_u: Phi
    phi_v: Phi

    def samples(self) -> tuple[Sample, Sample]:
        """The two halves of the pairs."""
        halves = zip(_halves(self.phi_u), _halves(self.phi_v), strict=True)
        first, second = (_of_states(*_both_ways(u, v)) for u, v in halves)
        return first, second

    def graph_drawing(self, beta: float, delta: float) -> Loss:
        """`pairwise_loss`."""
        return pairwise_loss(*self, beta=beta, delta=delta)


class ExactBatch(NamedTuple):
    """All states, and what is known of D."""

    phi: Phi
    functions: Float[Array, "batch r"]
    mu: Float[Array, " r"]
    rho: Float[Array, " batch"]

    def samples(self) -> tuple[Sample, Sample]:
        """Twice the expectation itself."""
        ahead = self.functions @ (self.mu[:, None] * (self.functions.T @ (self.rho[:, None] * self.phi)))
        sample = _of_states(self.phi, ahead, self.rho)
        return sample, sample

    def graph_drawing(self, beta: float, delta: float) -> Loss:
        """`exact_loss`."""
        return exact_loss(*self, beta=beta, delta=delta)


class StatesBatch(NamedTuple):
    """Some of many states, drawn independently, and what is known of D there."""

    phi: Phi
    functions: Float[Array, "batch r"]
    mu: Float[Array, " r"]

    def samples(self) -> tuple[Sample, Sample]:
        """The two halves of the states."""
        first, second = (
            self._sample(*half) for half in zip(_halves(self.phi), _halves(self.functions), strict=True)
        )
        return first, second

    def _sample(self, phi: Phi, functions: Float[Array, "batch r"]) -> Sample:
        """What is ahead of a quarter, as the other quarter of the half estimates it."""
        quarters = tuple(zip(_halves(phi), _halves(functions), strict=True))
        ahead = [
            at @ (self.mu[:, None] * (known.T @ other) / len(other))
            for (_, at), (other, known) in zip(quarters, quarters[::-1], strict=True)
        ]
        weights = jnp.concatenate([_uniform(part) / 2 for part, _ in quarters])
        return _of_states(phi, jnp.concatenate(ahead), weights)

    def graph_drawing(self, beta: float, delta: float) -> Loss:
        """`batch_loss`."""
        return batch_loss(*self, beta=beta, delta=delta)


def prefix_weights(d: int) -> Matrix:
    """The share of the prefixes 1…i, i = 1…d, that both j and k are in: (d + 1 - max(j, k)) / d.

    A loss of E[φφᵀ] and the like that is averaged over the prefixes has single eigenfunctions, in order, for
    its minimum: those are best for each prefix, and nothing else is.
    """
    last = jnp.maximum(jnp.arange(d)[:, None], jnp.arange(d)[None, :])
    return (d - last) / d


def _halves(array: Array) -> tuple[Array, Array]:
    return array[: len(array) // 2], array[len(array) // 2 :]


def _uniform(phi: Phi) -> Float[Array, " batch"]:
    return jnp.full(len(phi), 1 / len(phi), phi.dtype)


def _both_ways(phi_u: Phi, phi_v: Phi) -> tuple[Pairs, Pairs, Float[Array, " pairs"]]:
    """Each pair from u to v and from v to u, with its share."""
    here = jnp.concatenate([phi_u, phi_v])
    return here, jnp.concatenate([phi_v, phi_u]), _uniform(here)


def _of_states(phi: Phi, ahead: Phi, weights: Float[Array, " batch"]) -> Sample:
    return Sample(phi, ahead, weights, phi, weights)
