"""Rayleigh-Ritz: single eigenfunctions from any basis of their span."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lapwing.data.experience import Experience
from lapwing.laplacian.chain import Chain, sampled_chain, true_chain
from lapwing.laplacian.ritz import (
    Ritz,
    moments_of_chain,
    moments_of_experience,
    rayleigh_ritz,
    ritz_of_chain,
    unrotated,
    with_fixed_signs,
)

pytestmark = pytest.mark.numeric

SIZE = 12


def random_chain(seed: int, *, reversible: bool) -> Chain:
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(SIZE, SIZE)) ** 2
    weights = weights + weights.T if reversible else weights
    return true_chain(weights / weights.sum(axis=1, keepdims=True))


def exact_eigenpairs(chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    """By a solver for general matrices, on L f = f - Σ_v D(u,v) f(v) ρ(v)."""
    rho, W = chain.rho, np.asarray(chain.weights)
    values, vectors = np.linalg.eig(np.eye(SIZE) - W / rho[:, None])
    order = np.argsort(values.real)
    vectors = vectors.real[:, order]
    return values.real[order], vectors / np.sqrt(rho @ vectors**2)


def mixing(seed: int, size: int, condition: float) -> np.ndarray:
    """An invertible matrix whose singular values range over `condition`."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(2))
    return left @ np.diag(np.geomspace(1, 1 / condition, size)) @ right


def functions_of(ritz: Ritz, phi: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(phi)), phi]) @ ritz.coefficients


def cosines(first: np.ndarray, second: np.ndarray, rho: np.ndarray) -> np.ndarray:
    inner = np.abs(np.sum(first * rho[:, None] * second, axis=0))
    return inner / np.sqrt(np.sum(first**2 * rho[:, None], axis=0) * np.sum(second**2 * rho[:, None], axis=0))


class TestRecovery:
    @settings(max_examples=200)
    @given(
        st.integers(0, 500),
        st.booleans(),
        st.integers(1, 6),
        st.booleans(),
        st.floats(1, 30),
        st.floats(0.1, 10),
        st.integers(0, 1_000),
    )
    def test_any_mixture_of_eigenfunctions(
        self, seed, reversible, count, with_constant, condition, scale, mixture
    ):
        """Whether or not the columns span the constant, and however large they are."""
        chain = random_chain(seed, reversible=reversible)
        values, f = exact_eigenpairs(chain)
        assume(np.diff(values[: count + 2]).min() > 1e-3)
        chosen = f[:, :count] if with_constant else f[:, 1 : count + 1]
        phi = scale * chosen @ mixing(mixture, count, condition)
        known = count if with_constant else count + 1
        ritz = rayleigh_ritz(*moments_of_chain(chain, phi), dim=known)
        assert ritz.rank == known
        np.testing.assert_allclose(ritz.eigenvalues, values[:known], atol=1e-8)
        np.testing.assert_allclose(cosines(functions_of(ritz, phi), f[:, :known], chain.rho), 1, atol=1e-8)

    @settings(max_examples=50)
    @given(st.integers(0, 500), st.integers(1, 8))
    def test_in_any_subspace_orthonormal_and_diagonal(self, seed, count):
        """Values are Rayleigh quotients, ascending; by Courant-Fischer none is below the exact one."""
        chain = random_chain(seed, reversible=False)
        phi = np.random.default_rng(seed).standard_normal((SIZE, count))
        ritz = rayleigh_ritz(*moments_of_chain(chain, phi), dim=count + 1)
        found = functions_of(ritz, phi)
        rho, W = chain.rho, np.asarray(chain.weights)
        np.testing.assert_allclose(found.T @ (rho[:, None] * found), np.eye(count + 1), atol=1e-8)
        np.testing.assert_allclose(found.T @ (np.diag(rho) - W) @ found, np.diag(ritz.eigenvalues), atol=1e-8)
        assert (np.diff(ritz.eigenvalues) >= -1e-12).all()
        assert (ritz.eigenvalues >= exact_eigenpairs(chain)[0][: count + 1] - 1e-9).all()

    def test_only_the_first_are_kept(self):
        chain = random_chain(1, reversible=True)
        values, f = exact_eigenpairs(chain)
        ritz = rayleigh_ritz(*moments_of_chain(chain, f[:, :8] @ mixing(0, 8, 3.0)), dim=3)
        assert ritz.coefficients.shape == (9, 3)
        assert ritz.rank == 8
        np.testing.assert_allclose(ritz.eigenvalues, values[:3], atol=1e-10)


class TestManySteps:
    """By P_λ of the reversible walk the eigenfunctions are the same, and roughness counts for less."""

    @pytest.mark.parametrize("lam", [0.0, 0.6, 0.99])
    @pytest.mark.parametrize("seed", range(3))
    def test_of_the_span_of_eigenfunctions(self, lam, seed):
        chain = random_chain(seed, reversible=False)
        values, f = exact_eigenpairs(chain)
        phi = f[:, 1:5] @ mixing(seed, 4, 5.0)
        ritz = ritz_of_chain(chain, phi, 5, lam)
        np.testing.assert_allclose(ritz.eigenvalues, values[:5], atol=1e-8)
        np.testing.assert_allclose(cosines(functions_of(ritz, phi), f[:, :5], chain.rho), 1, atol=1e-8)

    @pytest.mark.parametrize("lam", [0.6, 0.99])
    def test_moments_with_p_lambda_written_out(self, lam):
        chain = random_chain(3, reversible=False)
        rho, W = chain.rho, np.asarray(chain.weights)
        P = W / rho[:, None]
        W_lam = rho[:, None] * ((1 - lam) * P @ np.linalg.inv(np.eye(SIZE) - lam * P))
        phi = np.random.default_rng(0).standard_normal((SIZE, 2))
        found, written = moments_of_chain(chain, phi, lam), moments_of_chain(Chain(W_lam, "written"), phi)
        for ours, theirs in zip(found, written, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-10)

    @settings(max_examples=50)
    @given(st.integers(0, 500), st.sampled_from([0.5, 0.9, 0.999]))
    def test_eigenvalues_are_bounds_from_above_and_nearer_than_those_of_one_step(self, seed, lam):
        chain = random_chain(seed, reversible=True)
        phi = np.random.default_rng(seed).standard_normal((SIZE, 4))
        one_step, many = (ritz_of_chain(chain, phi, 5, steps).eigenvalues for steps in (0.0, lam))
        assert (many >= exact_eigenpairs(chain)[0][:5] - 1e-9).all()
        assert (many <= one_step + 1e-9).all()

    def test_slow_functions_are_found_beneath_the_same_roughness(self):
        """Of a path of 300 states; the noise has far more energy at one step than the slow functions."""
        here, size = np.arange(300), 300
        P = np.zeros((size, size))
        P[here, np.maximum(here - 1, 0)] += 0.5
        P[here, np.minimum(here + 1, size - 1)] += 0.5
        chain = true_chain(P)
        slow = np.cos(np.pi * np.outer(here + 0.5, np.arange(1, 5)) / size) * np.sqrt(2)
        noise = np.random.default_rng(0).standard_normal((size, 4)) * [0.3, 0.02, 0.02, 0.02]
        phi = slow + noise
        found = [functions_of(ritz_of_chain(chain, phi, 5, lam), phi)[:, 1:] for lam in (0.0, 0.999)]
        at_one_step, at_many = (cosines(functions, slow, chain.rho) for functions in found)
        assert at_many.min() > 0.95
        assert at_one_step.min() < 0.5


class TestRank:
    """Dimensions vanish under the penalty, and columns may repeat each other."""

    CHAIN = random_chain(2, reversible=True)
    VALUES, F = exact_eigenpairs(CHAIN)

    @pytest.mark.parametrize(
        "extra",
        {
            "zero columns": lambda f: np.zeros((SIZE, 2)),
            "nearly zero columns": lambda f: 1e-9 * np.random.default_rng(0).standard_normal((SIZE, 2)),
            "a repeated column": lambda f: f[:, [0, 1]],
            "sums of columns": lambda f: f @ np.random.default_rng(1).standard_normal((3, 2)),
            "constants": lambda f: np.full((SIZE, 2), [0.3, -2.0]),
        }.items(),
        ids=lambda item: item[0],
    )
    def test_columns_that_add_nothing(self, extra):
        f = self.F[:, 1:4]
        phi = np.column_stack([f @ mixing(3, 3, 5.0), extra[1](f)])
        ritz = rayleigh_ritz(*moments_of_chain(self.CHAIN, phi), dim=6)
        assert ritz.rank == 4
        assert ritz.coefficients.shape == (6, 4)
        assert np.isfinite(ritz.coefficients).all()
        np.testing.assert_allclose(ritz.eigenvalues, self.VALUES[:4], atol=1e-8)
        np.testing.assert_allclose(
            cosines(functions_of(ritz, phi), self.F[:, :4], self.CHAIN.rho), 1, atol=1e-8
        )

    def test_everything_vanished(self):
        phi = np.zeros((SIZE, 3))
        ritz = rayleigh_ritz(*moments_of_chain(self.CHAIN, phi), dim=3)
        assert ritz.rank == 1
        np.testing.assert_allclose(ritz.eigenvalues, [0], atol=1e-12)
        np.testing.assert_allclose(np.abs(functions_of(ritz, phi)), 1)

    def test_small_dimensions_are_not_vanished_ones(self):
        """A column near the threshold of the penalty is small, yet a function of its own."""
        phi = self.F[:, 1:4] * [1.0, 0.1, 0.005]
        ritz = rayleigh_ritz(*moments_of_chain(self.CHAIN, phi), dim=4)
        assert ritz.rank == 4
        np.testing.assert_allclose(ritz.eigenvalues, self.VALUES[:4], atol=1e-8)

    def test_no_eigenvalue_is_negative(self):
        ritz = rayleigh_ritz(np.diag([-1e-15, 0.5]), np.eye(2), dim=2)
        assert ritz.eigenvalues.tolist() == [0.0, 0.5]


def table_experience(seed: int = 0) -> tuple[Experience, np.ndarray]:
    """Episodes over six states (one never seen), and φ of each state."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 30, size=40)
    ids = rng.integers(5, size=lengths.sum())
    return Experience(ids, lengths, np.arange(6)[:, None]), rng.standard_normal((6, 3))


class TestMoments:
    def test_of_a_chain_by_double_sums(self):
        chain = random_chain(4, reversible=False)
        phi = np.random.default_rng(0).standard_normal((SIZE, 2))
        g, W = np.column_stack([np.ones(SIZE), phi]), np.asarray(chain.weights)
        A = sum(0.5 * W[u, v] * np.outer(g[u] - g[v], g[u] - g[v]) for u in range(SIZE) for v in range(SIZE))
        B = sum(chain.rho[u] * np.outer(g[u], g[u]) for u in range(SIZE))
        drawing, second = moments_of_chain(chain, phi)
        np.testing.assert_allclose(drawing, A, atol=1e-12)
        np.testing.assert_allclose(second, B, atol=1e-12)

    @pytest.mark.parametrize("batch", [1, 7, 8_192])
    def test_of_experience_are_those_of_its_one_step_pairs(self, batch):
        experience, phi = table_experience()
        drawing, second = moments_of_experience(
            experience, lambda seen: phi[seen[:, 0].astype(int)], batch=batch
        )
        expected = moments_of_chain(sampled_chain(experience, 0.0), phi)
        np.testing.assert_allclose(drawing, expected[0], atol=1e-12)
        np.testing.assert_allclose(second, expected[1], atol=1e-12)

    def test_of_experience_without_a_table(self):
        experience, phi = table_experience(1)
        rows = Experience(phi[experience.observations], experience.lengths)
        exact = moments_of_chain(sampled_chain(experience, 0.0), phi.astype(np.float32))
        for ours, expected in zip(moments_of_experience(rows, lambda seen: seen), exact, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-12)

    def test_sums_are_in_double_precision(self):
        """A small difference between large embeddings, many times over."""
        seen = np.full((40_000, 1), 1_000.0)
        seen[1::2] += 0.125
        drawing, _ = moments_of_experience(Experience(seen, [40_000]), lambda seen: seen.astype(np.float32))
        assert drawing[1, 1] == pytest.approx(0.5 * 0.125**2, rel=1e-12)

    def test_some_of_the_pairs_at_random_whatever_the_length_of_episodes(self):
        """Every second step of these episodes moves, so that an even spacing would see all or none."""
        length, episodes = 50, 400
        positions = (np.arange(length + 1) // 2).astype(np.float32)
        experience = Experience.from_episodes([positions[:, None]] * episodes)
        asked = []

        def embed(seen):
            asked.append(len(seen))
            return seen

        drawing, _ = moments_of_experience(experience, embed, most=episodes, batch=33)
        assert sum(asked) == 2 * episodes
        assert drawing[1, 1] == pytest.approx(0.25, abs=5 * 0.25 / np.sqrt(episodes))


class TestSigns:
    @settings(max_examples=100)
    @given(st.integers(0, 1_000), st.lists(st.sampled_from([-1.0, 1.0]), min_size=4, max_size=4))
    def test_whatever_the_signs_before(self, seed, signs):
        chain = random_chain(seed, reversible=False)
        phi = np.random.default_rng(seed).standard_normal((SIZE, 3))
        ritz = rayleigh_ritz(*moments_of_chain(chain, phi), dim=4)
        turned = ritz._replace(coefficients=ritz.coefficients * signs)
        fixed, fixed_too = (with_fixed_signs(each, phi) for each in (ritz, turned))
        np.testing.assert_array_equal(fixed.coefficients, fixed_too.coefficients)
        np.testing.assert_array_equal(fixed.eigenvalues, ritz.eigenvalues)
        for function in functions_of(fixed, phi).T:
            first = next(value for value in function if abs(value) >= 0.5 * np.abs(function).max())
            assert first > 0


class TestAsLearned:
    def test_columns_stay_in_place_and_get_size_one(self):
        chain = random_chain(5, reversible=True)
        values, f = exact_eigenpairs(chain)
        order, sizes = [3, 1, 2], np.array([0.2, -3.0, 1.0])
        phi = f[:, order] * sizes
        learned = unrotated(*moments_of_chain(chain, phi), dim=3)
        np.testing.assert_allclose(learned.eigenvalues, values[order], atol=1e-9)
        np.testing.assert_allclose(functions_of(learned, phi), f[:, order] * np.sign(sizes), atol=1e-9)
        assert learned.rank == 3

    def test_rayleigh_quotients_of_any_columns(self):
        chain = random_chain(6, reversible=False)
        phi = np.random.default_rng(0).standard_normal((SIZE, 4))
        assert unrotated(*moments_of_chain(chain, phi), dim=2).coefficients.shape == (5, 2)
        learned = unrotated(*moments_of_chain(chain, phi), dim=4)
        quotients = [chain.objective(phi[:, [k]]) / (chain.rho @ phi[:, k] ** 2) for k in range(4)]
        np.testing.assert_allclose(learned.eigenvalues, quotients, atol=1e-10)

    def test_a_vanished_column(self):
        chain = random_chain(8, reversible=True)
        phi = np.column_stack([exact_eigenpairs(chain)[1][:, 1], np.zeros(SIZE)])
        learned = unrotated(*moments_of_chain(chain, phi), dim=2)
        assert learned.rank == 1
        assert np.isfinite(functions_of(learned, phi)).all()
        assert np.isfinite(learned.eigenvalues).all()
