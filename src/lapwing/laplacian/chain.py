"""The finite chain, exactly: ρ, P_λ, D, L and its eigenpairs.

Everything follows from W, the symmetric joint distribution of pairs: W = ½(J + Jᵀ), where J(u, v) is the
probability of drawing the pair (u, v). Then ρ = W1, D(u, v) = W(u, v) / (ρ(u) ρ(v)) integrates to one against
ρ, and L = I - D is self-adjoint in ⟨f, g⟩ = Σ f g ρ. If ρ is stationary this is the paper's D.

There are four chains: the true one, the true one with resets (appendix B), the one from the counts of an
experience, and the one that the pair sampler draws from.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, splu

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError
from lapwing.laplacian.eigensolvers import DENSE_EIGEN_LIMIT, Matrix, dense, operator_of, smallest
from lapwing.laplacian.sampling import PastEnd

DENSE_LIMIT = 5_000
"""Up to this many states the P_λ of a chain that need not be reversible is written out."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A joint distribution of pairs, and the Laplacian that it defines.

    Args:
        weights: W, symmetric, with sum 1; dense, sparse, or only as a product with vectors.
        name: which operator this is.

    Example:
        >>> two_states = Chain(np.array([[0.4, 0.1], [0.1, 0.4]]), name="two states")
        >>> two_states.eigenpairs(2)[0].round(6).tolist()
        [0.0, 0.4]
    """

    weights: Matrix
    name: str

    @property
    def n_states(self) -> int:
        """How many states the chain has, visited or not."""
        return self.weights.shape[0]

    @cached_property
    def rho(self) -> np.ndarray:
        """ρ = W1; zero where a state is never visited."""
        return np.asarray(self.weights @ np.ones(self.n_states)).reshape(-1)

    def kernel(self) -> np.ndarray:
        """D(u, v) as a dense matrix; zero where a state is never visited."""
        inverse = _inverse_where_positive(self.rho)
        return inverse[:, None] * dense(self.weights) * inverse[None, :]

    def objective(self, phi: np.ndarray) -> float:
        """G = Σ_k ⟨f_k, L f_k⟩ of the columns of `phi` (Eq. 3), orthonormal or not."""
        phi = np.asarray(phi, dtype=np.float64)
        return float(np.sum(phi**2 * self.rho[:, None]) - np.sum(phi * (self.weights @ phi)))

    def trace(self) -> float:
        """The sum of all eigenvalues of L over the visited states."""
        if isinstance(self.weights, LinearOperator):
            raise ConfigError(f"the trace of a chain with lam > 0 is known up to {DENSE_LIMIT:,} states only")
        diagonal, rho = self.weights.diagonal(), self.rho
        return float(np.sum(rho > 0) - np.sum(diagonal * _inverse_where_positive(rho)))

    def eigenpairs(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """The `d` smallest eigenvalues of L and their eigenfunctions, as columns with E_ρ[f²] = 1.

        The first is the constant (on a connected chain). On states that are never visited, each function
        takes its mean: 1 for the constant, 0 for the others.
        """
        rho = self.rho
        visited = rho > 0
        if d > visited.sum():
            raise ConfigError(
                f"dim must be at most {visited.sum()}, the visited states, not {d}; lower --dim"
            )
        root = np.sqrt(rho[visited])
        values, vectors = smallest(self._normalised(visited, root), d)
        functions = np.zeros((self.n_states, d))
        functions[visited] = _with_constant_first(vectors, values, root) / root[:, None]
        functions[~visited] = rho @ functions
        return np.maximum(values, 0.0), functions

    def resolvent(self, functions: np.ndarray, lam: float) -> np.ndarray:
        """(I - λP)⁻¹ f of each column, with P = diag(ρ)⁻¹ W, the reversible walk; zero where never visited.

        From it follows all that P_λ = (1-λ) P (I-λP)⁻¹ does to f, by one sparse factorisation: P_λ itself
        would be dense. L_λ f = f - P_λ f is L of what is returned.
        """
        visited = self.rho > 0
        remaining = self._remaining(visited, lam)
        weighed = self.rho[visited, None] * functions[visited]
        found = np.zeros_like(functions, dtype=np.float64)
        if sparse.issparse(remaining):
            found[visited] = splu(remaining.tocsc()).solve(weighed)
        else:
            found[visited] = np.linalg.solve(remaining, weighed)
        return found

    def _remaining(self, visited: np.ndarray, lam: float) -> Matrix:
        """diag(ρ) - λW on the visited states."""
        inside, rho = self.weights[visited][:, visited], self.rho[visited]
        return (sparse.diags_array(rho) if sparse.issparse(inside) else np.diag(rho)) - lam * inside

    def _normalised(self, visited: np.ndarray, root: np.ndarray) -> Matrix:
        """I - L in an orthonormal basis: diag(ρ)^-½ W diag(ρ)^-½ on the visited states."""
        scale = 1 / root
        if isinstance(self.weights, LinearOperator):
            whole, index = self.weights, np.flatnonzero(visited)

            def multiply(vector):
                padded = np.zeros(whole.shape[0])
                padded[index] = scale * np.ravel(vector)
                return scale * whole.matvec(padded)[index]

            return operator_of(len(index), multiply)
        inside = self.weights[visited][:, visited]
        if sparse.issparse(inside):
            return (sparse.diags_array(scale) @ inside @ sparse.diags_array(scale)).tocsc()
        return scale[:, None] * inside * scale[None, :]


def true_chain(transition: Matrix, lam: float = 0.0, rho: np.ndarray | None = None) -> Chain:
    """The chain of a transition matrix, at its stationary distribution unless `rho` is given.

    Args:
        transition: P(v|u), one row a state.
        lam: λ of P_λ; 0 is one step.
        rho: the distribution of u, if not the stationary one.
    """
    rho = stationary_distribution(transition) if rho is None else np.asarray(rho)
    return Chain(_joint(transition, rho, lam), f"true chain, lam={lam:g}")


def reset_chain(transition: Matrix, start: np.ndarray, episode_length: float, lam: float = 0.0) -> Chain:
    """The chain of appendix B, which resets to `start` with probability 1/`episode_length` a step.

    ρ is stationary for the chain with resets; pairs that span a reset are left out, so a pair τ steps
    apart keeps the weight (1 - 1/T)^τ.
    """
    going_on = 1 - 1 / episode_length
    remaining = sparse.eye_array(transition.shape[0]) - going_on * sparse.csr_array(transition)
    rho = splu(remaining.T.tocsc()).solve(np.asarray(start, dtype=np.float64) / episode_length)
    return Chain(_joint(transition * going_on, rho, lam), f"reset chain, lam={lam:g}")


def empirical_chain(experience: Experience) -> Chain:
    """The chain that the one-step counts of an experience give.

    ρ comes from `steadied_visits`, P from the counts of what followed each state.
    """
    counts = pair_counts(experience, 1)
    leaving = np.asarray(counts.sum(axis=1)).reshape(-1)
    transition: Matrix = sparse.diags_array(_inverse_where_positive(leaving)) @ counts
    weights = _joint(transition.tocsr(), steadied_visits(experience), 0.0)
    return Chain(weights, "empirical chain (visits steadied), lam=0")


def steadied_visits(experience: Experience) -> np.ndarray:
    """How often each state is left, drawn towards uniform as far as chance explains the differences.

    Within an episode neighbouring states are visited together, so visit frequencies carry much more noise
    than transition frequencies do, and it disturbs just the smoothest eigenfunctions. Noise does not repeat
    between two halves of the episodes: their covariance over the variance of the whole is the share of the
    differences that is real, and only that share is kept (the James-Stein idea).
    """
    episode = np.repeat(np.arange(experience.n_episodes), experience.lengths)
    halves = ((experience.horizons > 0) & (episode % 2 == half) for half in (0, 1))
    size = cast(int, experience.n_states)
    first, second = (np.bincount(experience.observations[half], minlength=size) for half in halves)
    visits = first + second
    seen = visits > 0
    rho = visits / visits.sum()
    uniform = seen / seen.sum()
    if not (first.any() and second.any()):
        return rho
    repeated = np.sum((first / first.sum() - uniform) * (second / second.sum() - uniform))
    spread = np.sum((rho - uniform) ** 2)
    real = float(np.clip(repeated / spread, 0.0, 1.0)) if spread > 0 else 1.0
    return uniform + real * (rho - uniform)


def sampled_chain(experience: Experience, lam: float, past_end: PastEnd = "discard") -> Chain:
    """What `sampling.sample_pairs` draws from: pairs up to the end of each episode, and no further."""
    joint = pair_counts(experience, 1).astype(np.float64)
    weight = 1.0
    for tau in range(2, int(experience.horizons.max()) + 1):
        weight *= lam
        if weight < 1e-12:
            break
        joint = joint + weight * pair_counts(experience, tau)
    if past_end == "truncate":
        # The pairs (s_t, last state) stand for every τ beyond the end, with weight λ^m.
        indices = np.flatnonzero(experience.horizons > 0)
        horizons = experience.horizons[indices]
        beyond = _counts(experience, indices, indices + horizons, lam ** horizons.astype(np.float64))
        joint = (1 - lam) * joint + beyond
    return Chain(_symmetric(joint), f"sampled chain, lam={lam:g}, {past_end}")


def graph_chain(weights: Matrix) -> Chain:
    """The chain of a walk on a graph, a step of which goes along an edge in proportion to its weight.

    Such a walk is reversible, and its stationary distribution is in proportion to the weights at each state.

    Args:
        weights: of the edges; symmetric and sparse, with an edge at each state.

    Example:
        >>> graph_chain(sparse.csr_array([[0.0, 2.0], [2.0, 0.0]])).eigenpairs(2)[0].round(6).tolist()
        [0.0, 2.0]
    """
    return Chain(_symmetric(weights), "walk on a graph, lam=0")


def stationary_distribution(transition: Matrix) -> np.ndarray:
    """ρ with ρ = Pᵀρ; a chain with more than one is refused. Transient states get zero."""
    matrix: Matrix = sparse.csr_array(transition, copy=True)
    matrix.eliminate_zeros()  # a stored zero would count as a way from one state to another
    n_classes, label = connected_components(matrix, connection="strong")
    leaves = np.zeros(n_classes, dtype=bool)
    here, there = matrix.nonzero()
    leaves[label[here[label[here] != label[there]]]] = True
    if np.sum(~leaves) != 1:
        raise ConfigError(
            f"the chain has {np.sum(~leaves)} closed classes, so no unique stationary distribution; "
            "give rho, or keep the states of one class"
        )
    recurrent = np.flatnonzero(label == np.argmin(leaves))
    closed = matrix[recurrent][:, recurrent]
    rho = np.zeros(matrix.shape[0])
    rho[recurrent[0]] = 1.0
    if len(recurrent) > 1:
        # With ρ of the first state fixed at 1, the others solve (I - P)ᵀ x = P(first, ·).
        rest = sparse.eye_array(len(recurrent) - 1) - closed[1:, 1:].T
        rho[recurrent[1:]] = splu(rest.tocsc()).solve(closed[[0], 1:].toarray().ravel())
    return rho / rho.sum()


def multi_step_eigenvalues(eigenvalues: np.ndarray, lam: float) -> np.ndarray:
    """Eigenvalues of the Laplacian of P_λ from one-step ones: λ_i / ((1-λ) + λ·λ_i).

    Exact on a reversible chain with an infinite horizon.
    """
    return eigenvalues / ((1 - lam) + lam * eigenvalues)


def one_step_eigenvalues(eigenvalues: np.ndarray, lam: float) -> np.ndarray:
    """The inverse of `multi_step_eigenvalues`.

    Example:
        >>> one_step_eigenvalues(np.array([0.0, 0.5]), lam=0.9).round(4).tolist()
        [0.0, 0.0909]
    """
    return (1 - lam) * eigenvalues / (1 - lam * eigenvalues)


def _joint(transition, rho: np.ndarray, lam: float) -> Matrix:
    """W of u ~ ρ, v ~ P_λ(·|u), normalised to sum 1 (P may lose mass: resets, last states)."""
    if lam == 0:
        if sparse.issparse(transition):
            return _symmetric(sparse.diags_array(rho) @ transition)
        return _symmetric(rho[:, None] * transition)
    if transition.shape[0] <= DENSE_LIMIT:
        written = dense(transition)
        remaining = np.eye(len(written)) - lam * written
        return _symmetric(rho[:, None] * np.linalg.solve(remaining, written))
    return _multi_step_operator(sparse.csr_array(transition), rho, lam)


def _multi_step_operator(transition, rho: np.ndarray, lam: float) -> Matrix:
    """½(J + Jᵀ) with J = diag(ρ) P (I-λP)⁻¹, through sparse solves alone."""
    solver = splu((sparse.eye_array(len(rho)) - lam * transition).tocsc())

    def joint(vector):
        return rho * (transition @ solver.solve(vector))

    def joint_transposed(vector):
        return solver.solve(transition.T @ (rho * vector), trans="T")

    total = float(np.sum(joint(np.ones(len(rho)))))

    def multiply(vector):
        vector = np.ravel(vector)
        return (joint(vector) + joint_transposed(vector)) / (2 * total)

    return operator_of(len(rho), multiply)


def _symmetric(joint):
    return (joint + joint.T) / (2 * joint.sum())


def pair_counts(experience: Experience, tau: int) -> sparse.csr_array:
    """How often each (s_t, s_{t+τ}) occurs within an episode."""
    indices = np.flatnonzero(experience.horizons >= tau)
    return _counts(experience, indices, indices + tau, np.ones(len(indices)))


def _counts(experience: Experience, here, there, weights) -> sparse.csr_array:
    size = cast(int, experience.n_states)
    ids = experience.observations
    if size <= DENSE_EIGEN_LIMIT:  # many times quicker than summing duplicates of a sparse matrix
        flat = np.bincount(ids[here].astype(np.int64) * size + ids[there], weights, size * size)
        return sparse.csr_array(flat.reshape(size, size))
    entries = (weights, (ids[here], ids[there]))
    return sparse.coo_array(entries, shape=(size, size)).tocsr()


def _with_constant_first(vectors: np.ndarray, values: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Within the null space, rotate the constant to the front; then fix signs."""
    zero = int(np.sum(values < 1e-9))
    if zero:
        null = vectors[:, :zero]
        basis, _ = np.linalg.qr(np.column_stack([null.T @ root, np.eye(zero)]))
        vectors = np.column_stack([null @ basis, vectors[:, zero:]])
    return vectors * fixed_signs(vectors / root[:, None])


def fixed_signs(functions: np.ndarray) -> np.ndarray:
    """±1 for each column: it is positive on the first state where it reaches half its largest size.

    Example:
        >>> fixed_signs(np.array([[0.1, 1.0], [-2.0, 1.0]])).tolist()
        [-1.0, 1.0]
    """
    large = np.abs(functions) >= 0.5 * np.abs(functions).max(axis=0)
    first = functions[np.argmax(large, axis=0), np.arange(functions.shape[1])]
    return np.where(first < 0, -1.0, 1.0)


def _inverse_where_positive(values: np.ndarray) -> np.ndarray:
    return np.divide(1.0, values, out=np.zeros_like(values, dtype=np.float64), where=values > 0)
