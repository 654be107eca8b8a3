"""Drawing states u ~ ρ and pairs (u, v) ~ ρ P_λ from experience, exactly in distribution.

A pair is (s_t, s_{t+τ}) with τ ~ (1-λ) λ^(τ-1). The paper discards a pair that runs past its episode's end,
so the distribution is p(t, τ) ∝ λ^(τ-1) · 1[t+τ ≤ T]. It is drawn here without rejection: first the number of
steps that follow t (its horizon m, with probability ∝ count(m) · (1 - λ^m)), then t among those, then τ ≤ m.
λ may change from draw to draw, so that it can be annealed inside a compiled loop.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, Scalar, UInt32

from lapwing.data.experience import Experience

PastEnd = Literal["discard", "truncate"]
TRIES = 16
"""How many indices of a replay are drawn for a pair, of which the first that is not discarded is taken."""
_MOST_DRAWN = 1 << 20


class PairSampler(NamedTuple):
    """The indices of an experience, grouped by how many steps follow them."""

    indices: Int[Array, " indices"]
    """Every index that has a successor, ordered by horizon."""
    horizons: Int[Array, " groups"]
    """The distinct horizons m ≥ 1, ascending."""
    first: Int[Array, " groups"]
    """Where each group begins in `indices`."""
    counts: Int[Array, " groups"]
    """How many indices have each horizon."""


def pair_sampler(experience: Experience, largest_lam: float | None = None) -> PairSampler:
    """Group the indices of `experience` by horizon, once.

    Args:
        experience: where pairs are drawn from.
        largest_lam: the largest λ that will be asked for, if known. Horizons that τ passes with less than
            float32 can tell from never become one group, so that long episodes need few.
    """
    indices = np.flatnonzero(experience.horizons > 0)
    horizon = np.minimum(experience.horizons[indices], _longest_tau(largest_lam))
    order = np.argsort(horizon, kind="stable")
    horizons, first, counts = np.unique(horizon[order], return_index=True, return_counts=True)
    arrays = (indices[order], horizons, first, counts)
    return PairSampler(*(jnp.asarray(array, dtype=jnp.int32) for array in arrays))


def _longest_tau(lam: float | None) -> int:
    """The smallest τ with λ^τ < 2⁻²⁵; no limit if λ is not known."""
    if lam is None:
        return np.iinfo(np.int32).max
    return 1 if lam == 0 else int(np.ceil(-25 * np.log(2) / np.log(lam)))


def annealed_lam(lam: float, lam_final: float, progress):
    """λ after this share of the training, on a line from `lam` to `lam_final`."""
    return lam + (lam_final - lam) * progress


def survival(horizon, log_lam, xp: Any = jnp):
    """1 - λ^m: the chance that τ ends within the m steps that follow."""
    return -xp.expm1(horizon * log_lam)


def truncated_geometric(uniform, horizon, inside, log_lam, xp: Any = jnp):
    """τ ~ (1-λ) λ^(τ-1) given τ ≤ `horizon`, from uniform numbers by the inverse distribution function.

    Args:
        uniform: numbers in [0, 1).
        horizon: how many steps follow, as integers.
        inside: `survival` of the horizon; 1 puts the whole tail on the horizon itself.
        log_lam: log λ; of λ = 0 it is -∞, and τ = 1.
        xp: NumPy or its twin in JAX.

    Example:
        >>> truncated_geometric(np.array([0.0, 0.5, 0.99]), np.array([9, 9, 2]), 1.0, np.log(0.5), np)
        array([1, 2, 2])
    """
    tau = 1 + xp.floor(xp.log1p(-uniform * inside) / log_lam)
    return xp.clip(tau.astype(horizon.dtype), 1, horizon)


def sample_pairs(
    sampler: PairSampler,
    lam: float | Float[Scalar, ""],
    batch: int,
    past_end: PastEnd = "discard",
    *,
    key: PRNGKeyArray,
) -> tuple[Int[Array, " batch"], Int[Array, " batch"]]:
    """The indices of `batch` independent pairs (u, v) ~ ρ P_λ.

    Args:
        sampler: what `pair_sampler` made.
        lam: λ in [0, 1); 0 is one step.
        batch: how many pairs.
        past_end: what becomes of a pair that runs past the end of its episode: `discard` it (the paper) or
            `truncate` it to the last state (the authors' later code).
        key: a typed random key.
    """
    group_key, index_key, step_key = jax.random.split(key, 3)
    log_lam = _log(lam)
    chance = survival(sampler.horizons, log_lam) if past_end == "discard" else 1.0
    cumulative = jnp.cumsum(sampler.counts * chance)
    threshold = jax.random.uniform(group_key, (batch,)) * cumulative[-1]
    group = jnp.searchsorted(cumulative, threshold, side="right")
    group = jnp.minimum(group, len(sampler.horizons) - 1)
    offset = jax.random.randint(index_key, (batch,), 0, sampler.counts[group])
    index, horizon = sampler.indices[sampler.first[group] + offset], sampler.horizons[group]
    uniform = jax.random.uniform(step_key, (batch,))
    inside = survival(horizon, log_lam) if past_end == "discard" else 1.0
    return index, index + truncated_geometric(uniform, horizon, inside, log_lam)


def draw_pairs(
    experience: Experience, lam: float, batch: int, past_end: PastEnd, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """`sample_pairs` in NumPy, which keeps nothing for each index: for data on disk, or that grows.

    An index is thrown away as often as its pair would run past the end of the episode, and another one drawn;
    compared with the longest episode, so that half of those from episodes as long are kept even near λ = 1.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> u, v = draw_pairs(Experience(np.arange(6), [3, 3]), 0.9, 100, "discard", rng)
        >>> sorted({(int(a), int(b)) for a, b in zip(u, v)})
        [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]
    """
    log_lam = np.log(lam) if lam > 0 else -np.inf
    found: list[np.ndarray] = []
    drawn, kept = 0, 0
    while kept < batch:
        count = min(int((batch - kept) * (drawn + 1) / (kept + 1)) + 8, _MOST_DRAWN)
        indices = experience.transitions(rng.integers(experience.n_transitions, size=count))
        horizons = experience.ends[np.searchsorted(experience.ends, indices)] - indices
        inside = np.ones(count)
        if past_end == "discard":
            inside = survival(horizons, log_lam, np)
            survives = rng.random(count) * survival(experience.longest, log_lam, np) < inside
            indices, horizons, inside = indices[survives], horizons[survives], inside[survives]
        tau = truncated_geometric(rng.random(len(indices)), horizons, inside, log_lam, np)
        found.append(np.stack([indices, indices + tau]))
        drawn, kept = drawn + count, kept + len(indices)
    u, v = np.concatenate(found, axis=1)[:, :batch]
    return u, v


def sample_recent_pairs(
    horizon: Callable[[Int[Array, "..."]], Int[Array, "..."]],
    filled,
    lam: float | Float[Scalar, ""],
    batch: int,
    *,
    key: PRNGKeyArray,
) -> tuple[Int[Array, " batch"], Int[Array, " batch"]]:
    """Places t of a growing replay and numbers of steps τ ~ (1-λ) λ^(τ-1) that stay within the episode.

    A pair that runs past the end of its episode is drawn again, time and index, as the paper discards it.

    Args:
        horizon: how many steps follow an index; at least 1.
        filled: how many indices there are.
        lam: λ in (0, 1).
        batch: how many pairs.
        key: a typed random key.
    """
    index_key, keep_key, rest_key, step_key = jax.random.split(key, 4)
    log_lam = jnp.log(jnp.asarray(lam, jnp.float32))
    indices = jax.random.randint(index_key, (batch, TRIES), 0, filled)
    ends = horizon(indices)
    within = survival(ends, log_lam)
    kept = jax.random.uniform(keep_key, indices.shape) < within
    # Where all were discarded, one of them by its chance: nearly the same law, and λ must be near 1 for it.
    chosen = jnp.where(
        kept.any(axis=1), jnp.argmax(kept, axis=1), jax.random.categorical(rest_key, jnp.log(within))
    )
    index, end, inside = (
        jnp.take_along_axis(values, chosen[:, None], axis=1)[:, 0] for values in (indices, ends, within)
    )
    return index, truncated_geometric(jax.random.uniform(step_key, (batch,)), end, inside, log_lam)


def _log(lam):
    """Of λ; of a plain number in double precision, for near 1 float32 has few digits left of it."""
    if isinstance(lam, int | float):
        return jnp.float32(np.log(lam)) if lam > 0 else -jnp.inf
    return jnp.log(jnp.asarray(lam, jnp.float32))


def sample_states(n_observations: int, batch: int, *, key: PRNGKeyArray) -> Int[Array, " batch"]:
    """Indices drawn uniformly from all observations: u ~ ρ of the buffer."""
    return jax.random.randint(key, (batch,), 0, n_observations)


def cumulative(rho: np.ndarray) -> UInt32[Array, " states"]:
    """The distribution function of `rho` in units of 2⁻³²: float32 could not distinguish many states."""
    shares = np.cumsum(rho) / np.sum(rho)
    return jnp.asarray(np.minimum(shares * 2.0**32, 2**32 - 1).astype(np.uint32))


def sample_by(cumulative: UInt32[Array, " states"], batch: int, *, key: PRNGKeyArray) -> Int[Array, " batch"]:
    """Independent states with the distribution function `cumulative`."""
    drawn = jnp.searchsorted(cumulative, jax.random.bits(key, (batch,)), side="right")
    return jnp.minimum(drawn, len(cumulative) - 1)


def surviving_share(experience: Experience, lam: float) -> float:
    """The share of pairs that the discard rule keeps, out of all draws (t, τ) with t < T."""
    if lam == 0:
        return 1.0
    steps = experience.lengths - 1
    # Of an episode of T steps, Σ_{m=1}^T (1 - λ^m) = T - λ (1 - λ^T) / (1 - λ).
    kept = steps + lam * np.expm1(steps * np.log(lam)) / (1 - lam)
    return float(kept.sum() / steps.sum())
