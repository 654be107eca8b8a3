"""Earlier methods: eigenfunctions from stacked transitions (2017) and from successor features (2018).

Both methods of Machado et al. find eigenoptions e_i, directions in the space of some features ψ, and with
them the functions f_i(s) = ψ(s)ᵀe_i. With tabular ψ and every transition once these span the eigenspaces of
the Laplacian; otherwise they are the best approximation linear in ψ.

States are enumerated here, so a sum over transitions is a sum over their counts C(s, s'). What the methods
learn from small batches is computed from exact expectations: their limit, without sampling noise.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, nearest
from lapwing.laplacian.batches import checked_batch, embed_batch
from lapwing.laplacian.chain import Matrix, fixed_signs, pair_counts
from lapwing.laplacian.encoders import Encoder, EncoderSpec, default_encoder, fit_encoder
from lapwing.laplacian.evaluate import exact_spectrum, objective_gap, orthonormal_basis
from lapwing.laplacian.ritz import RANK_TOLERANCE
from lapwing.laplacian.target import Target

Reading = Literal["sampled", "distinct", "literal"]
Features = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Eigenoptions:
    """Functions f_i(s) = ψ(s)ᵀe_i, to be measured as the eigenfunctions of a `Representation` are."""

    psi: Features
    """ψ of a batch of observations, one row each."""
    coefficients: np.ndarray
    """How `[1, ψ]` combines to the functions: the e_i as columns, and above them what the constant adds."""
    singular_values: np.ndarray
    """Root mean square of each function over the stacked rows; it sets their order."""
    n_states: int
    shape: tuple[int, ...]
    """The shape of one observation; () for an index."""

    @property
    def dim(self) -> int:
        """How many functions there are: fewer than asked for if ψ has too few directions."""
        return self.coefficients.shape[1]

    def eigenfunctions(self, observations) -> np.ndarray:
        """f_1 … f_d at a batch of observations, one row each."""
        batch = np.asarray(observations)
        if batch.ndim == 0 or batch.shape[1:] != self.shape:
            raise ConfigError(
                f"observations have shape {batch.shape}; give a batch of observations of shape {self.shape}"
            )
        psi = self.psi(checked_batch(batch, self.shape, self.n_states))
        return psi @ self.coefficients[1:] + self.coefficients[0]


def stacked_transitions(target: Target, dim: int, reading: Reading = "sampled") -> Eigenoptions:
    """Eigenoptions of 2017: ψ is what is observed, and the rows ψ(s') - ψ(s) are stacked.

    The e_i are the right singular vectors of the smallest singular values, so f_i changes least in a step.

    Args:
        target: experience over enumerated states.
        dim: how many functions.
        reading: `sampled` stacks each transition as often as it was made. Directions along which no state
            of the experience differs from another, as a pixel of wall has, would come first and be of no
            use: they are left out, and the constant, the one function they stand for, is put in once.
            `distinct` does the same, but stacks each different transition once: a model of which states are
            neighbours, exact on indices as soon as every transition was made.
            `literal` leaves nothing out and puts nothing in: on images, constants are all it finds.
    """
    experience, states = _enumerated(target, dim)
    known = get_args(Reading)
    if reading not in known:
        raise ConfigError(
            f"reading must be one of {', '.join(known)}, not {reading!r}; {nearest(reading, known)}"
        )
    counts: Matrix = pair_counts(experience, 1)
    counts = (counts > 0).astype(np.float64) if reading == "distinct" else counts
    psi = partial(raw_features, n_states=len(states))
    table = psi(states)
    seen = np.isin(np.arange(len(states)), experience.observations)
    table = table - table[seen].mean(axis=0)
    basis = np.eye(table.shape[1]) if reading == "literal" else row_space(table[seen])
    squares, directions = np.linalg.eigh(transition_gram(table @ basis, counts) / counts.sum())
    kept = dim if reading == "literal" else dim - 1
    coefficients = np.pad(basis @ directions[:, :kept], ((1, 0), (0, 0)))
    if reading != "literal":
        constant = np.eye(len(coefficients), 1)
        squares, coefficients = np.append(0.0, squares), np.hstack([constant, coefficients])
    return _eigenoptions(psi, coefficients, squares, states)


def successor_features(
    target: Target,
    dim: int,
    *,
    features: np.ndarray | None = None,
    width: int | None = None,
    steps: int = 1_500,
    gamma: float = 0.9,
    seed: int = 0,
) -> Eigenoptions:
    """Eigenoptions of 2018: ψ is learned, and the successor features of the sampled states are stacked.

    A network learns to predict what is observed next; ψ is what its last, linear layer is given, and the
    constant 1, so that the first eigenfunction can be had exactly. TD(0) learns Σ_t γ^t ψ(s_t) as a linear
    function of ψ. The e_i are the right singular vectors of the largest singular values, with one row for
    each time that a state was left.

    Args:
        target: experience over enumerated states.
        dim: how many functions.
        features: ψ as a table, one row a state, in place of the network and the constant; for indices.
        width: how many features the network has before its last layer; None is 256, or 64 for images
            where that is twice `dim` or more, which had the lowest gap on FourRoom at d = 20.
        steps: Adam steps of the network.
        gamma: the discount γ.
        seed: of the network's first weights.
    """
    experience, states = _enumerated(target, dim)
    if not 0 <= gamma < 1:
        raise ConfigError(f"gamma must be at least 0 and below 1, not {gamma!r}; 0.9 is usual")
    counts = pair_counts(experience, 1)
    if features is None:
        if width is None:
            width = 64 if states.ndim == 4 and 2 * dim <= 64 else 256
        psi = learned_features(states, counts, width=width, steps=steps, seed=seed)
        table = np.hstack([np.ones((len(states), 1)), psi(states)])
    else:
        rows = _checked_table(features, states)
        psi, table = partial(np.take, rows, axis=0), rows
    left = np.asarray(counts.sum(axis=1)).reshape(-1)
    successors = table @ td_fixed_point(table, counts, gamma)
    gram = successors.T @ (left[:, None] * successors) / left.sum()
    squares, directions = (part[..., ::-1][..., :dim] for part in np.linalg.eigh(gram))
    coefficients = directions if features is None else np.pad(directions, ((1, 0), (0, 0)))
    return _eigenoptions(psi, coefficients, squares, states)


def measure(embedding: Eigenoptions, target: Target, dim: int) -> dict[str, float | int]:
    """The gap and the rank of the functions, against the true chain where there is one."""
    assert target.states is not None
    functions = embedding.eigenfunctions(target.states)
    chain = target.truth() or target.one_step
    return {
        "gap": objective_gap(exact_spectrum(chain, dim), functions, dim),
        "rank": orthonormal_basis(chain, functions).shape[1],
    }


def raw_features(observations: np.ndarray, n_states: int) -> np.ndarray:
    """ψ as observed: the one-hot vector of an index, a vector, the pixels of an image in [0, 1].

    Example:
        >>> raw_features(np.array([2, 0]), n_states=3).tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if observations.ndim == 1:
        return (observations[:, None] == np.arange(n_states)).astype(np.float64)
    flat = observations.reshape(len(observations), math.prod(observations.shape[1:])).astype(np.float64)
    return flat / 255 if observations.dtype == np.uint8 else flat


def transition_gram(psi: np.ndarray, counts: Matrix) -> np.ndarray:
    """Σ C(s, s') (ψ(s') - ψ(s))(ψ(s') - ψ(s))ᵀ, which is Ψᵀ(diag(C1 + Cᵀ1) - C - Cᵀ)Ψ."""
    both = counts + counts.T
    degrees = np.asarray(both.sum(axis=1)).reshape(-1, 1)
    return psi.T @ (degrees * psi - both @ psi)


def row_space(matrix: np.ndarray) -> np.ndarray:
    """An orthonormal basis, as columns, of the directions in which the matrix has any size."""
    _, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    return right[sizes > RANK_TOLERANCE * sizes.max(initial=0)].T


def td_fixed_point(psi: np.ndarray, counts: Matrix, gamma: float) -> np.ndarray:
    """M such that ψ(s)ᵀM are the successor features at which linear TD(0) from zero comes to rest.

    Where TD rests, Ψᵀ(diag(c) - γC)Ψ M = Ψᵀ diag(c) Ψ, with c(s) = Σ C(s, ·) how often s was left. Each
    update is a combination of the ψ(s) of states that were left, so M never leaves their span; within it
    the solution is unique, also where the features are not independent.
    """
    left = np.asarray(counts.sum(axis=1)).reshape(-1, 1)
    basis = row_space(np.sqrt(left) * psi)
    inside = psi @ basis
    system = inside.T @ (left * inside - gamma * (counts @ inside))
    return basis @ np.linalg.lstsq(system, inside.T @ (left * psi), rcond=None)[0]


class Predictor(eqx.Module):
    """A network that predicts the next observation: an encoder, relu, and a linear layer."""

    body: Encoder
    output: eqx.nn.Linear

    def __call__(self, features) -> Float[Array, " size"]:
        """What is observed next, its mean taken off."""
        return self.output(jax.nn.relu(self.body.network(features)))


def learned_features(states: np.ndarray, counts: Matrix, *, width: int, steps: int, seed: int) -> Features:
    """ψ of a `Predictor` that was trained on these transitions, by Adam with step size 0.001."""
    for name, value in (("width", width), ("steps", steps)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, not {value!r}")
    left = np.asarray(counts.sum(axis=1)).reshape(-1)
    raw = raw_features(states, len(states))
    chosen = left > 0
    following = (counts @ raw)[chosen] / left[chosen, None]
    weights = left[chosen] / left.sum()
    predictor = _untrained(states, width, raw.shape[1], seed)
    inputs = jax.vmap(predictor.body.features)(jnp.asarray(states[chosen]))
    centred = jnp.asarray(following - weights @ following, jnp.float32)
    trained, _ = train_predictor(predictor, inputs, centred, jnp.asarray(weights, jnp.float32), steps)
    return lambda observations: np.maximum(embed_batch(trained.body, observations), 0).astype(np.float64)


@eqx.filter_jit
def train_predictor(
    predictor: Predictor,
    inputs: jax.Array,
    following: Float[Array, "states size"],
    weights: Float[Array, " states"],
    steps: int,
) -> tuple[Predictor, Float[Array, " steps"]]:
    """Adam on Σ_s c(s)/n ‖g(s) - E[x(s')|s]‖², x as observed, and its value before each step.

    That is the expected squared error over the transitions, less what no prediction from s can avoid.
    """
    optimiser = optax.adam(1e-3)
    learned, fixed = eqx.partition(predictor, eqx.is_inexact_array)

    def loss(learned):
        predicted = jax.vmap(eqx.combine(learned, fixed))(inputs)
        return weights @ jnp.sum((predicted - following) ** 2, axis=1)

    def step(carry, _):
        learned, state = carry
        value, gradient = jax.value_and_grad(loss)(learned)
        updates, state = optimiser.update(gradient, state)
        return (eqx.apply_updates(learned, updates), state), value

    (learned, _), losses = jax.lax.scan(step, (learned, optimiser.init(learned)), length=steps)
    return eqx.combine(learned, fixed), losses


def _untrained(states: np.ndarray, width: int, size: int, seed: int) -> Predictor:
    """The paper's encoder for such observations, with `width` outputs, and a last layer."""
    shape, key = states.shape[1:], jax.random.key(seed)
    name = "mlp" if len(shape) == 1 else default_encoder(shape)
    hidden = (200, 200) if name == "mlp" else ()
    spec = EncoderSpec(name, shape, width, n_states=len(states), hidden=hidden)
    body = fit_encoder(spec, states, standardise=True, bandwidth=None, key=jax.random.fold_in(key, 1))
    return Predictor(body, eqx.nn.Linear(width, size, key=jax.random.fold_in(key, 2)))


def _eigenoptions(
    psi: Features, coefficients: np.ndarray, squares: np.ndarray, states: np.ndarray
) -> Eigenoptions:
    values = np.sqrt(np.maximum(squares[: coefficients.shape[1]], 0.0))
    found = Eigenoptions(psi, coefficients, values, len(states), states.shape[1:])
    signs = fixed_signs(found.eigenfunctions(states))
    return dataclasses.replace(found, coefficients=coefficients * signs)


def _enumerated(target: Target, dim: int) -> tuple[Experience, np.ndarray]:
    """The experience of a target and the observation of each of its states."""
    if target.experience is None:
        raise ConfigError(f"{target.name} has no transitions to stack; collect some (no --true-chain)")
    if target.states is None:
        raise ConfigError(
            f"the states of {target.name} are not enumerated, and the earlier methods need that; "
            "give a maze, or data whose observations recur"
        )
    if not 1 <= dim <= len(target.states):
        raise ConfigError(f"dim must be between 1 and {len(target.states)} states, not {dim!r}")
    return target.experience, target.states


def _checked_table(features: np.ndarray, states: np.ndarray) -> np.ndarray:
    table = np.asarray(features, np.float64)
    if states.ndim > 1:
        raise ConfigError(
            f"features only work with indices, and these observations have shape {states.shape[1:]}; "
            "use observation='index'"
        )
    if table.ndim != 2 or len(table) != len(states) or 0 in table.shape:
        raise ConfigError(
            f"features must have a row for each of the {len(states)} states, not shape {table.shape}"
        )
    if not np.isfinite(table).all():
        raise ConfigError("features hold NaN or infinity; fix them")
    return table
