"""The loss and its estimators, against double sums, full enumerations and the closed-form optimum."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.chain import true_chain
from lapwing.laplacian.objectives.drawing import (
    batch_loss,
    exact_loss,
    exact_penalty,
    graph_drawing,
    pairwise_loss,
    pairwise_penalty,
    sampled_loss,
    sampled_penalty,
    surviving_scale,
)
from lapwing.mazes import parse_maze

pytestmark = pytest.mark.numeric


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@st.composite
def functions(draw) -> np.ndarray:
    """φ of a few states; few shapes, for each is compiled anew."""
    shape = draw(st.sampled_from([(3, 1), (3, 4), (6, 2), (6, 5)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.standard_normal(shape) * draw(st.floats(0.01, 3))


def distribution(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(size))


deltas = st.floats(0, 2)


class TestPenaltyIdentity:
    """Σ_jk (E[f_j f_k] - δ·1[j=k])² = E[(φ(u)ᵀφ(v))² - δ‖φ(u)‖² - δ‖φ(v)‖² + δ²d]."""

    @settings(max_examples=500)
    @given(functions(), deltas, st.integers(0, 1_000))
    def test_the_sum_over_dimensions_is_the_sum_over_states(self, phi, delta, seed):
        size, d = phi.shape
        rho = distribution(size, seed)
        over_states = sum(
            rho[u] * rho[v] * ((phi[u] @ phi[v]) ** 2 - delta * phi[u] @ phi[u] - delta * phi[v] @ phi[v])
            for u, v in itertools.product(range(size), repeat=2)
        )
        over_states += delta**2 * d
        over_dimensions = sum(
            (sum(rho[s] * phi[s, j] * phi[s, k] for s in range(size)) - delta * (j == k)) ** 2
            for j, k in itertools.product(range(d), repeat=2)
        )
        ours = float(exact_penalty(jnp.asarray(phi), jnp.asarray(rho), delta))
        scale = max(1.0, over_dimensions)
        assert abs(over_states - over_dimensions) < 1e-10 * scale
        assert abs(ours - over_dimensions) < 1e-10 * scale
        assert abs(ours - over_states) < 1e-10 * scale

    @settings(max_examples=100)
    @given(functions(), deltas)
    def test_sampled_over_every_pair_of_states_is_exact(self, phi, delta):
        u, v = np.array(list(itertools.product(range(len(phi)), repeat=2))).T
        rho = jnp.full(len(phi), 1 / len(phi))
        sampled = sampled_penalty(jnp.asarray(phi[u]), jnp.asarray(phi[v]), delta)
        exact = exact_penalty(jnp.asarray(phi), rho, delta)
        assert float(sampled) == pytest.approx(float(exact), rel=1e-10, abs=1e-10)


class TestBruteForce:
    @settings(max_examples=50)
    @given(functions(), st.integers(0, 1_000))
    def test_graph_drawing_is_half_the_mean_squared_distance(self, phi, seed):
        other = np.random.default_rng(seed).standard_normal(phi.shape)
        expected = np.mean([0.5 * np.linalg.norm(u - v) ** 2 for u, v in zip(phi, other, strict=True)])
        assert float(graph_drawing(jnp.asarray(phi), jnp.asarray(other))) == pytest.approx(
            expected, rel=1e-12
        )

    @settings(max_examples=100)
    @given(functions(), deltas, st.integers(0, 1_000))
    def test_pairwise_is_the_sum_over_all_pairs_but_self_and_partner(self, phi_u, delta, seed):
        phi_v = np.random.default_rng(seed).standard_normal(phi_u.shape)
        batch, d = phi_u.shape
        states = np.concatenate([phi_u, phi_v])
        terms = [
            (states[i] @ states[j]) ** 2 - delta * states[i] @ states[i] - delta * states[j] @ states[j]
            for i, j in itertools.product(range(2 * batch), repeat=2)
            if i % batch != j % batch
        ]
        assert len(terms) == 4 * batch * (batch - 1)
        expected = np.mean(terms) + delta**2 * d
        ours = float(pairwise_penalty(jnp.asarray(phi_u), jnp.asarray(phi_v), delta))
        assert ours == pytest.approx(expected, rel=1e-10, abs=1e-10)


def spectrum(weights: np.ndarray) -> tuple[jax.Array, jax.Array, jax.Array]:
    """v_k, μ_k and ρ of a symmetric joint distribution, by a solver for general matrices."""
    rho = weights.sum(axis=1)
    mu, vectors = np.linalg.eig(weights / rho[:, None])
    order = np.argsort(-mu.real)
    root = np.sqrt(rho)[:, None]
    # An orthonormal basis also where eigenvalues coincide, and eigenvectors of the general solver are not.
    vectors = np.linalg.qr(root * vectors.real[:, order])[0] / root
    return jnp.asarray(vectors), jnp.asarray(mu.real[order]), jnp.asarray(rho)


def dense_loss(phi, weights: np.ndarray, *, beta: float, delta: float):
    """The loss with W written out: G = Σ φ (diag(ρ) - W) φ."""
    rho = jnp.asarray(weights.sum(axis=1))
    laplacian = jnp.diag(rho) - jnp.asarray(weights)
    drawing, penalty = jnp.sum(phi * (laplacian @ phi)), exact_penalty(phi, rho, delta)
    return drawing + beta * penalty, {"graph_drawing": drawing, "penalty": penalty}


class TestByEigenpairs:
    """`exact` is the loss with P_λ written out, and so is its gradient."""

    def walk(self, seed: int, size: int = 7) -> np.ndarray:
        weights = np.random.default_rng(seed).exponential(size=(size, size))
        return (weights + weights.T) / (2 * weights.sum())

    def multi_step(self, weights: np.ndarray, lam: float) -> np.ndarray:
        """W of P_λ = (1-λ) P (I-λP)⁻¹, which is symmetric for the walk is reversible."""
        rho = weights.sum(axis=1)
        P = weights / rho[:, None]
        return rho[:, None] * ((1 - lam) * P @ np.linalg.inv(np.eye(len(P)) - lam * P))

    @pytest.mark.parametrize("lam", [0.0, 0.7, 0.99])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_loss_and_its_gradient(self, lam, seed):
        one_step = self.walk(seed)
        functions, mu, rho = spectrum(one_step)
        mu = 1 - (1 - mu) / ((1 - lam) + lam * (1 - mu))
        phi = jnp.asarray(np.random.default_rng(seed).standard_normal((7, 3)))

        def ours(phi):
            return exact_loss(phi, functions, mu, rho, beta=BETA, delta=DELTA)[0]

        def written_out(phi):
            return dense_loss(phi, self.multi_step(one_step, lam), beta=BETA, delta=DELTA)[0]

        (value, gradient), (wanted, wanted_gradient) = (
            jax.value_and_grad(loss)(phi) for loss in (ours, written_out)
        )
        assert float(value) == pytest.approx(float(wanted), rel=1e-10)
        np.testing.assert_allclose(gradient, wanted_gradient, atol=1e-10)

    def test_what_is_not_known_of_d_counts_as_nothing(self):
        """With the first r pairs, G is that of a D without the others."""
        functions, mu, rho = spectrum(self.walk(0))
        phi = jnp.asarray(np.random.default_rng(0).standard_normal((7, 3)))
        r = 4
        D = sum(mu[k] * jnp.outer(functions[:, k], functions[:, k]) for k in range(r))
        wanted, _ = dense_loss(phi, np.asarray(rho[:, None] * D * rho[None, :]), beta=BETA, delta=DELTA)
        ours, _ = exact_loss(phi, functions[:, :r], mu[:r], rho, beta=BETA, delta=DELTA)
        assert float(ours) == pytest.approx(float(wanted), rel=1e-10)


# Not symmetric, with marginals that differ: what the discard rule makes of a chain.
J = np.random.default_rng(0).dirichlet(np.ones(16) / 2).reshape(4, 4)
W = (J + J.T) / 2
PHI = np.random.default_rng(1).standard_normal((4, 3))
BETA, DELTA = 1.7, 0.3


class TestUnbiased:
    """The expectation, summed over every batch that can be drawn, is the exact loss."""

    def exact(self, rho: np.ndarray):
        """By the definition; the penalty may be over another distribution than that of the pairs."""
        drawing = float(jnp.sum(jnp.asarray(PHI) * ((np.diag(W.sum(axis=1)) - W) @ PHI)))
        penalty = float(exact_penalty(jnp.asarray(PHI), jnp.asarray(rho), DELTA))
        loss = drawing + BETA * penalty
        return loss, {"loss": loss, "graph_drawing": drawing, "penalty": penalty}

    @pytest.mark.parametrize("batch", [2, 3])
    def test_a_batch_of_states(self, batch):
        """Every batch of independent states ~ ρ, with the chance that it is drawn."""
        functions, mu, rho = spectrum(W)
        drawn = np.array(list(itertools.product(range(4), repeat=batch)))
        chance = np.asarray(rho)[drawn].prod(axis=1)

        def loss(states):
            return batch_loss(jnp.asarray(PHI)[states], functions[states], mu, beta=BETA, delta=DELTA)

        losses, parts = jax.vmap(loss)(jnp.asarray(drawn))
        exact, exact_parts = self.exact(W.sum(axis=1))
        assert chance @ np.asarray(losses) == pytest.approx(exact, rel=1e-10)
        for name, value in exact_parts.items():
            assert chance @ np.asarray(parts[name]) == pytest.approx(value, rel=1e-10)

    def test_pairwise(self):
        """Both marginals matter: u and v are alike, so the distribution is ρ_W = W1."""
        pairs = np.array(list(itertools.product(range(4), repeat=2)))
        first, second = np.array(list(itertools.product(range(16), repeat=2))).T
        u, v = (np.stack([pairs[first, end], pairs[second, end]], axis=1) for end in (0, 1))
        chance = J.ravel()[first] * J.ravel()[second]

        def loss(u, v):
            return pairwise_loss(jnp.asarray(PHI)[u], jnp.asarray(PHI)[v], beta=BETA, delta=DELTA)

        losses, parts = jax.vmap(loss)(jnp.asarray(u), jnp.asarray(v))
        exact, exact_parts = self.exact(W.sum(axis=1))
        assert chance @ np.asarray(losses) == pytest.approx(exact, rel=1e-12)
        for name, value in exact_parts.items():
            assert chance @ np.asarray(parts[name]) == pytest.approx(value, rel=1e-12)

    def test_sampled(self):
        """Pairs ~ J for G, two independent states ~ ρ of the buffer for the penalty."""
        rho = distribution(4, 5)
        u, v, first, second = np.array(list(itertools.product(range(4), repeat=4))).T
        chance = J[u, v] * rho[first] * rho[second]

        def loss(*places):
            return sampled_loss(*(jnp.asarray(PHI)[at][None] for at in places), beta=BETA, delta=DELTA)

        losses, parts = jax.vmap(loss)(*(jnp.asarray(at) for at in (u, v, first, second)))
        exact, exact_parts = self.exact(rho)
        assert chance @ np.asarray(losses) == pytest.approx(exact, rel=1e-12)
        for name, value in exact_parts.items():
            assert chance @ np.asarray(parts[name]) == pytest.approx(value, rel=1e-12)

    def test_partners_in_the_sum_would_be_biased(self):
        """What the exclusion is for: with partners counted the expectation is another."""
        partners = np.sum(J * (PHI @ PHI.T) ** 2)
        rho = W.sum(axis=1)
        assert abs(partners - rho @ (PHI @ PHI.T) ** 2 @ rho) > 0.1


class TestOptimum:
    """At the optimum φ_i = a_i f_i up to rotation, a_i² = max(0, δ - λ_i/(2β))."""

    CHAIN = true_chain(GridWorld(parse_maze("....#\n.#...\n...#.\n", name="small")).transition_matrix())

    @pytest.fixture(params=[(0.2, 0.8), (5.0, 0.05), (100.0, 1.0)], ids=str)
    def problem(self, request):
        beta, delta = request.param
        known = spectrum(self.CHAIN.weights.toarray())

        @jax.jit
        def loss(phi):
            return exact_loss(phi, *known, beta=beta, delta=delta)[0]

        values, f = self.CHAIN.eigenpairs(5)
        return loss, f * surviving_scale(values, beta, delta), values, beta, delta

    def test_the_value_in_closed_form(self, problem):
        """Each dimension costs a²λ + β(a² - δ)² at its best a, or βδ² where it has vanished."""
        loss, optimum, values, beta, delta = problem
        by_hand = sum(
            value * delta - value**2 / (4 * beta) if value < 2 * beta * delta else beta * delta**2
            for value in values
        )
        assert float(loss(jnp.asarray(optimum))) == pytest.approx(by_hand, rel=1e-10)

    def test_no_descent_from_anywhere_gets_below(self, problem):
        loss, optimum, *_ = problem
        best = float(loss(jnp.asarray(optimum)))
        gradient = jax.jit(jax.value_and_grad(lambda flat: loss(flat.reshape(optimum.shape))))
        rng = np.random.default_rng(0)
        for _ in range(2):
            found = minimize(
                lambda flat: tuple(np.asarray(part) for part in gradient(jnp.asarray(flat))),
                rng.standard_normal(optimum.size),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 5_000, "ftol": 1e-15, "gtol": 1e-10},
            )
            assert found.fun == pytest.approx(best, rel=1e-6)
            assert found.fun > best - 1e-10
            # The same up to a rotation: the Gram matrices agree.
            phi = found.x.reshape(optimum.shape)
            np.testing.assert_allclose(
                phi @ phi.T, optimum @ optimum.T, atol=2e-3 * np.abs(optimum).max() ** 2
            )

    def test_surviving_scale(self):
        values = np.array([0.0, 0.1, 0.4999, 0.5, 0.7])
        scale = surviving_scale(values, beta=5.0, delta=0.05)
        np.testing.assert_allclose(scale**2, [0.05, 0.04, 0.00001, 0, 0], atol=1e-12)


def test_drawing_over_enumerated_states_is_the_chains_objective():
    chain = TestOptimum.CHAIN
    phi = np.random.default_rng(0).standard_normal((chain.n_states, 3))
    _, parts = exact_loss(jnp.asarray(phi), *spectrum(chain.weights.toarray()), beta=1.0, delta=1.0)
    assert float(parts["graph_drawing"]) == pytest.approx(chain.objective(phi), rel=1e-12)


@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0])
def test_the_loss_is_the_sum_of_its_parts(beta):
    phi = jnp.asarray(PHI)
    functions, mu, rho = spectrum(W)
    for loss, parts in (
        sampled_loss(phi, phi[::-1], phi, phi[::-1], beta=beta, delta=DELTA),
        pairwise_loss(phi, phi[::-1], beta=beta, delta=DELTA),
        exact_loss(phi, functions, mu, rho, beta=beta, delta=DELTA),
        batch_loss(phi, functions, mu, beta=beta, delta=DELTA),
    ):
        assert set(parts) == {"loss", "graph_drawing", "penalty"}
        assert float(loss) == float(parts["loss"])
        assert float(loss) == pytest.approx(
            float(parts["graph_drawing"] + beta * parts["penalty"]), rel=1e-12
        )
