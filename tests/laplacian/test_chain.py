"""Exact chains, against double sums, power series, simulations and closed forms."""

import itertools
import resource
import sys

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lapwing.data.collect import collect_walks
from lapwing.data.experience import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.laplacian import chain as chain_module
from lapwing.laplacian.chain import (
    Chain,
    empirical_chain,
    fixed_signs,
    multi_step_eigenvalues,
    reset_chain,
    sampled_chain,
    stationary_distribution,
    steadied_visits,
    true_chain,
)
from lapwing.mazes import read_maze

FOUR_ROOM = GridWorld(read_maze("FourRoom"))
# Computed apart from this code.
SPECTRUM = [0, 0.00703, 0.00703, 0.01483, 0.06349, 0.06389, 0.06427, 0.06427, 0.08305, 0.08526, 0.08526]
OPTIMAL = {20: 2.0657, 50: 15.0673, 100: 57.0763}


def random_transition(seed: int, *, reversible: bool, filled: float = 1.0) -> np.ndarray:
    """An irreducible chain of 3 to 30 states; with `filled` < 1 most transitions are impossible."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 31))
    weights = rng.exponential(size=(size, size)) * (rng.random((size, size)) < filled)
    weights += np.roll(np.eye(size), 1, axis=1) * rng.uniform(0.1, 1)
    if reversible:
        weights = weights + weights.T
    return weights / weights.sum(axis=1, keepdims=True)


def stationary_by_powers(P: np.ndarray) -> np.ndarray:
    lazy = np.linalg.matrix_power((np.eye(len(P)) + P) / 2, 2**30)
    return lazy.mean(axis=0) / lazy.mean(axis=0).sum()


def power_series(P: np.ndarray, lam: float) -> np.ndarray:
    """P_λ = Σ_τ (1-λ) λ^(τ-1) P^τ, until nothing is left to add."""
    total, power, weight = np.zeros_like(P), P.copy(), 1 - lam
    while weight > 1e-18:
        total += weight * power
        power, weight = power @ P, weight * lam
    return total


def drawing(rho: np.ndarray, P: np.ndarray, phi: np.ndarray) -> float:
    """G = ½ E ‖φ(u) - φ(v)‖², as it is written (Eq. 5)."""
    return 0.5 * sum(
        rho[u] * P[u, v] * np.sum((phi[u] - phi[v]) ** 2) for u in range(len(P)) for v in range(len(P))
    )


def dense(weights) -> np.ndarray:
    return weights.toarray() if sparse.issparse(weights) else weights @ np.eye(weights.shape[0])


KINDS = {
    "reversible, dense": (True, 1.0, np.asarray),
    "reversible, sparse": (True, 0.2, sparse.csr_array),
    "non-reversible, dense": (False, 1.0, np.asarray),
    "non-reversible, sparse": (False, 0.2, sparse.csr_array),
}


@pytest.mark.parametrize("kind", KINDS)
class TestFiftyRandomChains:
    """Of each of four kinds."""

    def chains(self, kind: str, lam: float = 0.0):
        reversible, filled, form = KINDS[kind]
        for seed in range(50):
            P = random_transition(seed, reversible=reversible, filled=filled)
            yield P, true_chain(form(P), lam)

    @pytest.mark.parametrize("lam", [0.0, 0.7])
    def test_kernel(self, kind, lam):
        """D is the paper's, symmetric, and integrates to one."""
        for P, chain in self.chains(kind, lam):
            rho, P_lam = stationary_by_powers(P), power_series(P, lam)
            D = chain.kernel()
            np.testing.assert_allclose(chain.rho, rho, rtol=1e-8)
            np.testing.assert_allclose(D, 0.5 * P_lam / rho + 0.5 * (P_lam / rho).T, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(D, D.T, atol=1e-12)
            np.testing.assert_allclose(D @ rho, 1, atol=1e-8)

    @pytest.mark.parametrize("lam", [0.0, 0.7])
    def test_objective_at_the_eigenvectors(self, kind, lam):
        """It is the sum of the smallest eigenvalues, which a solver for general matrices finds too."""
        for P, chain in self.chains(kind, lam):
            rho, P_lam = stationary_by_powers(P), power_series(P, lam)
            D = 0.5 * P_lam / rho + 0.5 * (P_lam / rho).T
            expected = np.sort(1 - np.linalg.eigvals(D * rho).real)
            for d in (1, 2, len(P) // 2 + 1, len(P)):
                values, functions = chain.eigenpairs(d)
                np.testing.assert_allclose(values, expected[:d], atol=1e-8)
                assert chain.objective(functions) == pytest.approx(expected[:d].sum(), abs=1e-8)
                assert drawing(rho, P_lam, functions) == pytest.approx(expected[:d].sum(), abs=1e-8)
            assert chain.trace() == pytest.approx(expected.sum(), abs=1e-8)

    def test_eigenfunctions(self, kind):
        """Orthonormal under ρ, in the kernel of L - λ_i, the constant first."""
        for P, chain in self.chains(kind):
            rho = stationary_by_powers(P)
            values, functions = chain.eigenpairs(len(P))
            np.testing.assert_allclose(functions.T @ (rho[:, None] * functions), np.eye(len(P)), atol=1e-8)
            D = 0.5 * P / rho + 0.5 * (P / rho).T
            np.testing.assert_allclose(
                functions - D @ (rho[:, None] * functions), functions * values, atol=1e-6
            )
            np.testing.assert_allclose(functions[:, 0], 1, atol=1e-8)
            assert values[0] == pytest.approx(0, abs=1e-12)

    def test_any_distribution_of_u(self, kind):
        """D still is symmetric and integrates to one, against its own ρ."""
        _, _, form = KINDS[kind]
        for P, _ in self.chains(kind):
            given_rho = np.random.default_rng(len(P)).dirichlet(np.ones(len(P)))
            chain = true_chain(form(P), 0.0, given_rho)
            J = given_rho[:, None] * P
            np.testing.assert_allclose(dense(chain.weights), (J + J.T) / 2, atol=1e-15)
            np.testing.assert_allclose(chain.kernel() @ chain.rho, 1, atol=1e-10)
            phi = np.random.default_rng(0).standard_normal((len(P), 2))
            assert chain.objective(phi) == pytest.approx(drawing(given_rho, P, phi), abs=1e-10)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 0.9, 0.99]))
def test_multi_step_eigenvalues_of_reversible_chains(seed, lam):
    P = random_transition(seed, reversible=True, filled=0.3)
    one_step, functions = true_chain(P).eigenpairs(len(P))
    many_steps, values = true_chain(P, lam), multi_step_eigenvalues(one_step, lam)
    np.testing.assert_allclose(values, many_steps.eigenpairs(len(P))[0], atol=1e-9)
    L_f = functions - many_steps.kernel() @ (many_steps.rho[:, None] * functions)
    np.testing.assert_allclose(L_f, functions * values, atol=1e-7)


@pytest.fixture(scope="module")
def chain() -> Chain:
    """FourRoom under the uniformly random policy."""
    return true_chain(FOUR_ROOM.transition_matrix())


class TestFourRoom:
    def test_spectrum(self, chain):
        values, functions = chain.eigenpairs(152)
        np.testing.assert_allclose(chain.rho, 1 / 152, rtol=1e-10)
        np.testing.assert_allclose(values[:11], SPECTRUM, atol=5e-6)
        np.testing.assert_allclose(values[19:23], 0.25, atol=1e-9)
        assert values[18] < 0.249
        assert values[23] > 0.251
        assert np.sum(values < 1 - 1e-9) == 91, "the positive eigenvalues of D"
        again = true_chain(FOUR_ROOM.transition_matrix())
        np.testing.assert_array_equal(functions, again.eigenpairs(152)[1])

    @pytest.mark.parametrize("d", OPTIMAL)
    def test_optimal_objective(self, chain, d):
        values, functions = chain.eigenpairs(d)
        assert values.sum() == pytest.approx(OPTIMAL[d], abs=5e-5)
        assert chain.objective(functions) == pytest.approx(OPTIMAL[d], abs=5e-5)


def ring(size: int) -> sparse.csr_array:
    """A walk that goes a step either way: eigenvalues 1 - cos(2πk/n), each twice."""
    here = np.arange(size)
    entries = (
        np.full(2 * size, 0.5),
        (np.tile(here, 2), np.concatenate([(here + 1) % size, (here - 1) % size])),
    )
    return sparse.coo_array(entries, shape=(size, size)).tocsr()


def ring_eigenvalues(size: int, count: int) -> np.ndarray:
    return np.sort(1 - np.cos(2 * np.pi * np.arange(size) / size))[:count]


class TestLarge:
    @pytest.mark.parametrize("size", [300, 4_000])
    def test_ring_by_either_solver(self, size):
        chain = true_chain(ring(size))
        values, functions = chain.eigenpairs(9)
        np.testing.assert_allclose(values, ring_eigenvalues(size, 9), atol=1e-12)
        np.testing.assert_allclose(functions.T @ functions / size, np.eye(9), atol=1e-8)
        assert chain.objective(functions) == pytest.approx(values.sum(), abs=1e-10)
        # Each pair of functions is a sine and a cosine, whichever way it is turned.
        angle = 2 * np.pi * np.arange(size) / size
        waves = np.sqrt(2) * np.stack([np.sin(angle), np.cos(angle)], axis=1)
        overlap = np.linalg.svd(waves.T @ functions[:, 1:3] / size, compute_uv=False)
        np.testing.assert_allclose(overlap, 1, atol=1e-6)

    def test_multi_step_ring_never_written_out(self):
        size, lam = 5_500, 0.999
        chain = true_chain(ring(size), lam)
        assert not isinstance(chain.weights, np.ndarray)
        assert not sparse.issparse(chain.weights)
        values, functions = chain.eigenpairs(5)
        np.testing.assert_allclose(values, multi_step_eigenvalues(ring_eigenvalues(size, 5), lam), atol=1e-9)
        np.testing.assert_allclose(functions.T @ functions / size, np.eye(5), atol=1e-7)

    @pytest.mark.slow
    def test_a_hundred_thousand_states_on_a_grid_in_little_memory(self):
        """250 x 400 cells; a move into the border stays. The matrix alone would take 80 GB if dense."""

        def path(size: int) -> sparse.dia_array:
            middle = np.zeros(size)
            middle[[0, -1]] = 0.5
            beside = np.full(size, 0.5)
            return sparse.dia_array((np.stack([beside, middle, beside]), [-1, 0, 1]), shape=(size, size))

        height, width = 250, 400
        P = (
            sparse.kron(path(height), sparse.eye_array(width))
            + sparse.kron(sparse.eye_array(height), path(width))
        ).tocsr() / 2
        before = peak_memory()
        values, _ = true_chain(P).eigenpairs(10)
        assert peak_memory() - before < 800e6
        rows, columns = np.cos(np.pi * np.arange(height) / height), np.cos(np.pi * np.arange(width) / width)
        expected = np.sort(1 - (rows[:, None] + columns[None, :]).ravel() / 2)[:10]
        np.testing.assert_allclose(values, expected, atol=1e-10)


def peak_memory() -> float:
    """Bytes, the most this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024.0


class TestNeverWrittenOut:
    """A chain above the limit of dense matrices is the same chain."""

    @pytest.fixture(params=[True, False], ids=["reversible", "non-reversible"])
    def pair(self, request, monkeypatch) -> tuple[Chain, Chain]:
        P = random_transition(3, reversible=request.param, filled=0.4)
        written = true_chain(P, 0.8)
        monkeypatch.setattr(chain_module, "DENSE_LIMIT", 2)
        return written, true_chain(sparse.csr_array(P), 0.8)

    def test_it_is_the_same_chain(self, pair):
        written, operator = pair
        assert not isinstance(operator.weights, np.ndarray)
        np.testing.assert_allclose(operator.rho, written.rho, atol=1e-12)
        np.testing.assert_allclose(operator.kernel(), written.kernel(), atol=1e-10)
        d = written.n_states // 2
        values, functions = operator.eigenpairs(d)
        expected, expected_functions = written.eigenpairs(d)
        np.testing.assert_allclose(values, expected, atol=1e-9)
        overlap = expected_functions.T @ (written.rho[:, None] * functions)
        np.testing.assert_allclose(np.abs(np.diag(overlap)), 1, atol=1e-6)
        phi = np.random.default_rng(0).standard_normal((written.n_states, 3))
        assert operator.objective(phi) == pytest.approx(written.objective(phi), abs=1e-10)
        with pytest.raises(ConfigError, match="trace"):
            operator.trace()

    def test_with_states_never_visited(self, monkeypatch):
        monkeypatch.setattr(chain_module, "DENSE_LIMIT", 2)
        P = random_transition(3, reversible=True, filled=0.4)
        size = len(P)
        padded = np.zeros((size + 2, size + 2))
        padded[:size, :size] = P
        rho = np.append(stationary_by_powers(P), [0, 0])
        operator = true_chain(sparse.csr_array(padded), 0.5, rho)
        assert not isinstance(operator.weights, np.ndarray)
        values, functions = operator.eigenpairs(3)
        np.testing.assert_allclose(values, true_chain(P, 0.5).eigenpairs(3)[0], atol=1e-9)
        np.testing.assert_allclose(functions[size:], [[1, 0, 0]] * 2, atol=1e-8)


class TestResolvent:
    """(I - λP)⁻¹ f = Σ_t λ^t P^t f of the reversible walk."""

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    @pytest.mark.parametrize("lam", [0.3, 0.99])
    def test_against_the_power_series(self, form, lam):
        P = random_transition(5, reversible=True, filled=0.4)
        rho = stationary_by_powers(P)
        functions = np.random.default_rng(0).standard_normal((len(P), 3))
        summed, term = np.zeros_like(functions), functions
        while np.abs(term).max() > 1e-14:
            summed, term = summed + term, lam * P @ term
        found = Chain(form(rho[:, None] * P), "walk").resolvent(functions, lam)
        np.testing.assert_allclose(found, summed, rtol=1e-8)

    def test_states_never_visited_and_counts_that_are_not_reversible(self):
        """P is the walk on W, symmetric whatever the counts were."""
        ids = np.array([0, 2, 3, 2, 0, 5, 3, 0, 2, 5, 2])
        chain = empirical_chain(Experience(ids, [11], np.arange(7)[:, None]))
        functions = np.random.default_rng(0).standard_normal((7, 2))
        found = chain.resolvent(functions, 0.9)
        np.testing.assert_array_equal(found[[1, 4, 6]], 0)
        W = dense(chain.weights)
        weighed = chain.rho[:, None] * found - 0.9 * W @ found
        np.testing.assert_allclose(weighed, chain.rho[:, None] * functions, atol=1e-12)


class TestStationary:
    @settings(max_examples=100)
    @given(st.integers(0, 10_000), st.booleans(), st.sampled_from([1.0, 0.15]))
    def test_against_powers_of_the_matrix(self, seed, reversible, filled):
        P = random_transition(seed, reversible=reversible, filled=filled)
        for form in (np.asarray, sparse.csr_array, sparse.coo_array):
            np.testing.assert_allclose(stationary_distribution(form(P)), stationary_by_powers(P), atol=1e-10)

    @pytest.mark.parametrize(
        ("P", "rho"),
        [
            (np.roll(np.eye(4), 1, axis=1), np.full(4, 0.25)),
            (np.array([[0.9, 0.1], [0, 1]]), [0, 1]),
            (np.eye(1), [1]),
            (
                np.array([[0.5, 0.25, 0.25, 0], [0, 0.5, 0.5, 0], [0, 1, 0, 0], [0.3, 0.3, 0.3, 0.1]]),
                [0, 2 / 3, 1 / 3, 0],
            ),
        ],
        ids=["periodic", "absorbing", "single", "transient"],
    )
    def test_chains_that_are_special(self, P, rho):
        np.testing.assert_allclose(stationary_distribution(P), rho, atol=1e-12)

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_two_closed_classes(self, form):
        with pytest.raises(ConfigError, match="2 closed classes"):
            stationary_distribution(form(np.array([[1, 0, 0], [0.5, 0, 0.5], [0, 0, 1.0]])))

    def test_stored_zeros_are_not_ways(self):
        """As a policy that never takes some action leaves them."""
        P = sparse.csr_array(
            (np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 1, 2, 1, 2]), np.array([0, 2, 4, 6])),
            (3, 3),
        )
        np.testing.assert_allclose(stationary_distribution(P), [0, 0.5, 0.5])
        assert P.nnz == 6, "the caller's matrix was changed"
        always_up = np.tile([1.0, 0, 0, 0], (152, 1))
        with pytest.raises(ConfigError, match="22 closed classes"):
            stationary_distribution(FOUR_ROOM.transition_matrix(always_up))


class TestReset:
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    @pytest.mark.parametrize("lam", [0.0, 0.6, 0.95])
    def test_against_the_series_over_steps_without_a_reset(self, lam, form):
        P, length = random_transition(5, reversible=False, filled=0.4), 8.0
        size, go_on = len(P), 1 - 1 / length
        start = np.random.default_rng(1).dirichlet(np.ones(size))
        rho = stationary_by_powers(go_on * P + (1 - go_on) * start)
        J = np.zeros_like(P)
        for tau in range(1, 500):
            J += (1 - lam) * lam ** (tau - 1) * go_on**tau * rho[:, None] * np.linalg.matrix_power(P, tau)
        W = (J + J.T) / (2 * J.sum())
        np.testing.assert_allclose(dense(reset_chain(form(P), start, length, lam).weights), W, atol=1e-12)

    def test_uniform_start_leaves_the_eigenfunctions_of_a_symmetric_walk(self):
        P = FOUR_ROOM.transition_matrix()
        reset, plain = reset_chain(P, np.full(152, 1 / 152), 50.0), true_chain(P)
        np.testing.assert_allclose(reset.rho, plain.rho, atol=1e-12)
        np.testing.assert_allclose(reset.eigenpairs(20)[0], plain.eigenpairs(20)[0], atol=1e-10)


def small_experience(seed: int = 0) -> Experience:
    """Six states in episodes of two to nine steps; states 4 (never) and 5 (only last) are odd ones."""
    rng = np.random.default_rng(seed)
    episodes = [rng.integers(4, size=size) for size in (2, 5, 9, 3, 2, 7, 4)]
    episodes[2][-1] = 5
    ids = np.concatenate(episodes)
    return Experience(ids, [len(episode) for episode in episodes], np.arange(6)[:, None])


def episodes_of(experience: Experience) -> list[list[int]]:
    ends = np.cumsum(experience.lengths)[:-1]
    return [part.tolist() for part in np.split(experience.observations, ends)]


def symmetric(J: np.ndarray) -> np.ndarray:
    return (J + J.T) / (2 * J.sum())


class TestSampled:
    @pytest.mark.parametrize("past_end", ["discard", "truncate"])
    @pytest.mark.parametrize("lam", [0.0, 0.4, 0.95])
    def test_against_a_sum_over_all_pairs(self, lam, past_end):
        for experience in map(small_experience, range(5)):
            J = np.zeros((6, 6))
            for episode in episodes_of(experience):
                last = len(episode) - 1
                for t in range(last):
                    for tau in range(1, 400):
                        if t + tau <= last or past_end == "truncate":
                            J[episode[t], episode[min(t + tau, last)]] += (1 - lam) * lam ** (tau - 1)
            W = sampled_chain(experience, lam, past_end).weights.toarray()
            np.testing.assert_allclose(W, symmetric(J), atol=1e-8)

    def test_long_episodes_stop_where_weights_vanish(self):
        """The sum goes on to the longest horizon, or to where λ^τ is nothing."""
        experience = Experience(np.random.default_rng(0).integers(3, size=3_000), [3_000])
        one_step, few_steps = (sampled_chain(experience, lam).weights.toarray() for lam in (0.0, 1e-7))
        np.testing.assert_allclose(one_step, few_steps, atol=1e-6)

    def test_kernel_integrates_to_one_over_visited_states(self):
        chain = sampled_chain(small_experience(), 0.9)
        visited = chain.rho > 0
        assert visited.tolist() == [True, True, True, True, False, True]
        D = chain.kernel()
        np.testing.assert_allclose(D, D.T, atol=1e-14)
        np.testing.assert_allclose(D @ chain.rho, visited, atol=1e-12)


class TestEmpirical:
    @pytest.mark.parametrize("seed", range(5))
    def test_against_counting(self, seed):
        experience = small_experience(seed)
        counts = np.zeros((6, 6))
        for episode in episodes_of(experience):
            for u, v in itertools.pairwise(episode):
                counts[u, v] += 1
        leaving = counts.sum(axis=1, keepdims=True)
        P = np.divide(counts, leaving, out=np.zeros((6, 6)), where=leaving > 0)
        J = steadied_visits(experience)[:, None] * P
        np.testing.assert_allclose(dense(empirical_chain(experience).weights), symmetric(J), atol=1e-12)

    def test_more_data_come_nearer_to_the_truth(self):
        truth = true_chain(FOUR_ROOM.transition_matrix())
        exact = truth.eigenpairs(20)[0]
        errors = []
        for transitions in (10_000, 100_000, 1_000_000):
            experience = collect_walks(FOUR_ROOM, "index", transitions, key=jax.random.key(0))
            chain = empirical_chain(experience)
            gap = truth.objective(orthonormal(chain.eigenpairs(20)[1], truth.rho)) - exact.sum()
            errors.append(gap)
        assert errors[0] > 5 * errors[1] > 25 * errors[2]
        assert errors[2] < 0.01
        np.testing.assert_allclose(chain.eigenpairs(20)[0], exact, atol=0.005)

    def test_more_functions_than_visited_states(self):
        with pytest.raises(ConfigError, match=r"dim.* 5.* 6"):
            empirical_chain(small_experience()).eigenpairs(6)
        assert empirical_chain(small_experience()).eigenpairs(5)[1].shape == (6, 5)


def orthonormal(functions: np.ndarray, rho: np.ndarray) -> np.ndarray:
    root = np.sqrt(rho)[:, None]
    return np.linalg.qr(root * functions)[0] / root


class TestSteadiedVisits:
    def raw(self, experience: Experience) -> np.ndarray:
        visits = np.zeros(experience.n_states)
        for episode in episodes_of(experience):
            for state in episode[:-1]:
                visits[state] += 1
        return visits / visits.sum()

    @pytest.mark.parametrize("seed", range(2))
    def test_noise_around_uniform_is_taken_out(self, seed):
        experience = collect_walks(FOUR_ROOM, "index", 50_000, key=jax.random.key(seed))
        before = np.linalg.norm(self.raw(experience) - 1 / 152)
        after = np.linalg.norm(steadied_visits(experience) - 1 / 152)
        assert after < 0.5 * before

    def test_real_differences_stay(self):
        policy = np.tile([0.4, 0.1, 0.4, 0.1], (152, 1))
        experience = collect_walks(FOUR_ROOM, "index", 200_000, policy=policy, key=jax.random.key(0))
        raw = self.raw(experience)
        np.testing.assert_allclose(steadied_visits(experience), raw, atol=0.02 * raw.max())
        assert raw.max() > 5 / 152, "the visits are not far from uniform"

    @settings(max_examples=100)
    @given(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=6), min_size=1, max_size=6))
    def test_a_distribution_between_uniform_and_the_visits(self, episodes):
        experience = Experience(np.concatenate(episodes), [len(e) for e in episodes], np.arange(5)[:, None])
        raw, steadied = self.raw(experience), steadied_visits(experience)
        uniform = (raw > 0) / np.sum(raw > 0)
        assert steadied.sum() == pytest.approx(1)
        assert (steadied[raw == 0] == 0).all()
        assert (steadied >= np.minimum(raw, uniform) - 1e-12).all()
        assert (steadied <= np.maximum(raw, uniform) + 1e-12).all()


class TestDisconnected:
    def test_the_constant_is_first_in_the_null_space(self):
        W = np.zeros((5, 5))
        W[:2, :2], W[2:, 2:] = 1.0, 2.0
        values, functions = Chain(W / W.sum(), "two parts").eigenpairs(5)
        np.testing.assert_allclose(values, [0, 0, 1, 1, 1], atol=1e-12)
        np.testing.assert_allclose(functions[:, 0], 1, atol=1e-10)
        # The other one is constant on each part.
        np.testing.assert_allclose(functions[1, 1], functions[0, 1])
        np.testing.assert_allclose(functions[2:, 1], functions[2, 1])


class TestSigns:
    @settings(max_examples=200)
    @given(st.lists(st.floats(-10, 10).filter(lambda x: abs(x) > 1e-3), min_size=1, max_size=8))
    def test_the_rule_and_that_it_holds_after_either_sign(self, column):
        function = np.array(column)[:, None]
        for start in (function, -function):
            signed = (start * fixed_signs(start))[:, 0]
            largest = max(abs(x) for x in signed)
            first = next(x for x in signed if abs(x) >= largest / 2)
            assert first > 0

    def test_a_function_of_zeros(self):
        np.testing.assert_array_equal(fixed_signs(np.zeros((3, 2))), [1, 1])

    def test_dense_and_sparse_give_the_same_functions(self):
        P = random_transition(9, reversible=True, filled=0.5)
        _, from_dense = true_chain(P).eigenpairs(5)
        _, from_sparse = true_chain(sparse.csr_array(P)).eigenpairs(5)
        np.testing.assert_allclose(from_dense, from_sparse, atol=1e-8)
