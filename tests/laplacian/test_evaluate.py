import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.linalg import subspace_angles
from scipy.stats import spearmanr

from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian import evaluate as evaluation
from lapwing.laplacian.chain import Chain, true_chain
from lapwing.laplacian.evaluate import exact_spectrum, objective_gap, random_gap
from lapwing.mazes import read_maze
from tests.support import exact

pytestmark = pytest.mark.numeric


@pytest.fixture(scope="module")
def chain() -> Chain:
    """FourRoom's true chain, from the matrix that the tests themselves compute."""
    return true_chain(exact.transition("FourRoom"))


@pytest.fixture(scope="module")
def uneven() -> Chain:
    """A random reversible chain whose ρ is far from uniform."""
    weights = np.random.default_rng(5).gamma(0.3, size=(30, 30))
    return Chain((weights + weights.T) / (2 * weights.sum()), "uneven")


def laplacian_form(chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    """ρ and the symmetric form of L in an orthonormal basis, from W by hand."""
    weights = np.asarray(chain.kernel()) * np.outer(chain.rho, chain.rho)
    rho = weights.sum(axis=1)
    return rho, np.eye(len(rho)) - weights / np.sqrt(np.outer(rho, rho))


@pytest.mark.parametrize(("dim", "gap"), [(20, 15.04), (50, 27.70), (100, 28.45)])
def test_the_gap_of_a_random_basis_is_the_published_one(chain, dim, gap):
    assert random_gap(exact_spectrum(chain, dim), dim) == pytest.approx(gap, abs=0.005)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 25))
def test_exact_eigenfunctions_have_no_gap_however_they_are_mixed(chain, seed, dim):
    mixing = np.random.default_rng(seed).standard_normal((dim, dim))
    assume(np.linalg.cond(mixing) < 1e4)
    _, functions = exact.spectrum("FourRoom")
    assert objective_gap(exact_spectrum(chain, dim), functions[:, :dim] @ mixing, dim) == pytest.approx(
        0, abs=1e-9
    )


@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 10))
def test_no_functions_lie_below_the_optimum_and_mixing_changes_nothing(uneven, seed, dim):
    generator = np.random.default_rng(seed)
    functions, mixing = generator.standard_normal((30, dim)), generator.standard_normal((dim, dim))
    assume(np.linalg.cond(mixing) < 1e4)
    spectrum = exact_spectrum(uneven, dim)
    gap = objective_gap(spectrum, functions, dim)
    assert gap >= -1e-9
    assert objective_gap(spectrum, functions @ mixing, dim) == pytest.approx(gap, abs=1e-8)


def test_the_gap_is_that_of_the_orthonormalised_functions(uneven):
    """Gram-Schmidt in ⟨f, g⟩ = Σ f g ρ, then Σ ⟨f, L f⟩, with no SVD."""
    functions = np.random.default_rng(0).standard_normal((30, 4))
    rho, form = laplacian_form(uneven)
    basis = []
    for column in functions.T:
        for other in basis:
            column = column - other * np.sum(other * column * rho)
        basis.append(column / np.sqrt(np.sum(column**2 * rho)))
    vectors = np.sqrt(rho)[:, None] * np.stack(basis, axis=1)
    expected = np.trace(vectors.T @ form @ vectors) - np.linalg.eigvalsh(form)[:4].sum()
    assert objective_gap(exact_spectrum(uneven, 4), functions, 4) == pytest.approx(expected, abs=1e-10)


def test_too_few_functions_are_completed_at_random_in_the_mean(uneven):
    """The formula against 4,000 completions drawn from all orthonormal ones."""
    generator = np.random.default_rng(1)
    rho, form = laplacian_form(uneven)
    two = generator.standard_normal((30, 2))
    functions = np.column_stack([two, two @ generator.standard_normal((2, 3))])
    kept, _ = np.linalg.qr(np.sqrt(rho)[:, None] * two)
    objectives = []
    for _ in range(4_000):
        full, _ = np.linalg.qr(np.column_stack([kept, generator.standard_normal((30, 3))]))
        objectives.append(np.trace(full.T @ form @ full))
    expected = np.mean(objectives) - np.linalg.eigvalsh(form)[:5].sum()
    error = np.std(objectives) / np.sqrt(len(objectives))
    assert objective_gap(exact_spectrum(uneven, 5), functions, 5) == pytest.approx(expected, abs=4 * error)


def test_vanished_columns_count_as_missing(chain):
    _, functions = exact.spectrum("FourRoom")
    spectrum = exact_spectrum(chain, 6)
    few = objective_gap(spectrum, functions[:, :4], 6)
    with_zeros = objective_gap(spectrum, np.column_stack([functions[:, :4], np.zeros((152, 2))]), 6)
    with_noise = functions[:, [0, 1, 2, 3, 0, 1]] + 1e-9 * np.random.default_rng(0).standard_normal((152, 6))
    assert few == pytest.approx(with_zeros)
    assert few == pytest.approx(objective_gap(spectrum, with_noise, 6))
    assert 0 < few < random_gap(spectrum, 6)


def test_of_too_many_functions_the_principal_ones_count(chain):
    """The paper's protocol: the d directions in which φ is largest."""
    _, functions = exact.spectrum("FourRoom")
    scaled = functions[:, :8] * np.array([1, 1, 1, 1, 0.1, 0.1, 0.1, 0.1])
    assert objective_gap(exact_spectrum(chain, 4), scaled, 4) == pytest.approx(0, abs=1e-9)
    assert objective_gap(exact_spectrum(chain, 4), scaled[:, ::-1], 4) == pytest.approx(0, abs=1e-9)


def test_states_that_are_never_visited_do_not_matter(uneven):
    padded = np.zeros((33, 33))
    padded[:30, :30] = np.asarray(uneven.kernel()) * np.outer(uneven.rho, uneven.rho)
    with_unseen = Chain(padded, "with three states that nobody visits")
    functions = np.random.default_rng(2).standard_normal((33, 4))
    for dim in (4, 6):
        assert objective_gap(exact_spectrum(with_unseen, dim), functions, dim) == pytest.approx(
            objective_gap(exact_spectrum(uneven, dim), functions[:30], dim), abs=1e-10
        )
    assert random_gap(exact_spectrum(with_unseen, 4), 4) == pytest.approx(
        random_gap(exact_spectrum(uneven, 4), 4)
    )


def test_the_spectrum_goes_on_to_the_end_of_its_last_eigenspace(chain):
    """FourRoom's eigenvalue .25 has the indices 20 to 23 (from 1), so d=20 cuts through it."""
    values, _ = exact.spectrum("FourRoom")
    np.testing.assert_allclose(values[19:23], 0.25, atol=1e-9)
    assert values[18] < 0.25 - 1e-4
    assert values[23] > 0.25 + 1e-4
    assert len(exact_spectrum(chain, 20).eigenvalues) == 23
    assert len(exact_spectrum(chain, 19).eigenvalues) == 19
    assert len(exact_spectrum(chain, 152).eigenvalues) == 152


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_cosines_do_not_depend_on_the_basis_of_an_eigenspace(chain, seed):
    values, functions = exact.spectrum("FourRoom")
    turned = functions.copy()
    generator = np.random.default_rng(seed)
    for space in (np.flatnonzero(np.abs(values - value) < 1e-9) for value in np.unique(values.round(9))):
        rotation, _ = np.linalg.qr(generator.standard_normal((len(space), len(space))))
        turned[:, space] = turned[:, space] @ rotation
    scales = generator.uniform(0.1, 10, 20) * generator.choice([-1, 1], 20)
    cosines = evaluation.cosine_similarities(exact_spectrum(chain, 20), turned[:, :20] * scales)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-9)


def test_a_cosine_is_the_angle_to_the_eigenspace_of_the_index(chain):
    _, functions = exact.spectrum("FourRoom")
    spectrum = exact_spectrum(chain, 5)
    tilted = functions[:, :5].copy()
    tilted[:, 3] = np.cos(0.3) * functions[:, 3] + np.sin(0.3) * functions[:, 40]
    cosines = evaluation.cosine_similarities(spectrum, tilted)
    np.testing.assert_allclose(cosines, [1, 1, 1, np.cos(0.3), 1], atol=1e-9)
    swapped = evaluation.cosine_similarities(spectrum, functions[:, [0, 1, 2, 4, 3]])
    np.testing.assert_allclose(swapped, [1, 1, 1, 0, 0], atol=1e-7)
    vanished = evaluation.cosine_similarities(spectrum, functions[:, :5] * [1, 1, 1, 1, 0])
    np.testing.assert_allclose(vanished, [1, 1, 1, 1, 0], atol=1e-9)


def test_cosines_weigh_states_by_rho(uneven):
    rho, form = laplacian_form(uneven)
    _, vectors = np.linalg.eigh(form)
    functions = np.random.default_rng(3).standard_normal((30, 6))
    weighed = np.sqrt(rho)[:, None] * functions
    expected = np.abs(np.sum(vectors[:, :6] * weighed, axis=0)) / np.linalg.norm(weighed, axis=0)
    cosines = evaluation.cosine_similarities(exact_spectrum(uneven, 6), functions)
    np.testing.assert_allclose(cosines, expected, atol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 8))
def test_principal_angles_are_those_of_scipy(uneven, seed, dim):
    rho, form = laplacian_form(uneven)
    _, vectors = np.linalg.eigh(form)
    functions = np.random.default_rng(seed).standard_normal((30, dim))
    expected = subspace_angles(vectors[:, :dim], np.sqrt(rho)[:, None] * functions)
    angles = evaluation.principal_angles(exact_spectrum(uneven, dim), functions)
    np.testing.assert_allclose(np.sort(angles), np.sort(expected), atol=1e-6)


def test_orthonormality_error(uneven):
    rho, form = laplacian_form(uneven)
    _, vectors = np.linalg.eigh(form)
    orthonormal = vectors[:, :4] / np.sqrt(rho)[:, None]
    assert evaluation.orthonormality_error(uneven, orthonormal) == pytest.approx(0, abs=1e-10)
    assert evaluation.orthonormality_error(uneven, np.sqrt(1.5) * orthonormal) == pytest.approx(0.5)
    assert evaluation.orthonormality_error(uneven, 0 * orthonormal) == pytest.approx(1.0)


def test_eigenvalue_error_is_relative_and_leaves_the_constant_out():
    exact_values = np.array([0.0, 0.1, 0.2, 0.4])
    assert evaluation.eigenvalue_error(np.array([0.0, 0.11, 0.18, 0.4]), exact_values) == pytest.approx(
        0.2 / 3
    )
    assert evaluation.eigenvalue_error(np.array([7.0, 0.1]), exact_values) == pytest.approx(0, abs=1e-12)
    assert evaluation.eigenvalue_error(np.array([0.0]), exact_values) is None


@given(
    hnp.arrays(np.int64, st.integers(2, 40), elements=st.integers(0, 8)).flatmap(
        lambda a: st.tuples(st.just(a), hnp.arrays(np.int64, len(a), elements=st.integers(0, 8)))
    )
)
def test_rank_correlation_is_spearmans_with_ties(pair):
    first, second = pair
    assume(len(set(first)) > 1)
    assume(len(set(second)) > 1)
    expected = spearmanr(first, second).statistic
    assert evaluation.rank_correlation(first, second) == pytest.approx(expected, abs=1e-12)


def test_what_never_varies_correlates_with_nothing():
    assert evaluation.rank_correlation(np.ones(5), np.arange(5.0)) == 0.0


def test_distance_correlation_is_the_mean_over_goals():
    world = GridWorld(read_maze("FourRoom"))
    embedded = np.random.default_rng(0).standard_normal((152, 3))
    each = []
    for goal in (3, 77, 150):
        distance = np.linalg.norm(embedded - embedded[goal], axis=1)
        each.append(spearmanr(distance, exact.steps_to("FourRoom", goal)).statistic)
    found = evaluation.distance_correlation(world, embedded, np.array([3, 77, 150]))
    assert found == pytest.approx(np.mean(each), abs=1e-12)


def test_distance_correlation_by_another_measure():
    """Of a state's coordinates with the goal's, in that order."""
    world = GridWorld(read_maze("FourRoom"))
    steps = np.array(exact.steps_to("FourRoom", 77))[:, None]
    for sign, expected in ((1, 1), (-1, -1)):
        found = evaluation.distance_correlation(
            world, steps, np.array([77]), lambda here, goal, sign=sign: sign * (here - goal)[:, 0]
        )
        assert found == pytest.approx(expected)


def test_each_distance_is_correlated_as_the_representation_gives_it(four_room, four_room_target):
    found = evaluation.evaluate(four_room, four_room_target)["distance_correlation"]
    states, goals = four_room_target.states, np.unique(np.linspace(0, 151, 100).astype(int))
    for name in ("biharmonic", "hitting"):
        each = [
            spearmanr(
                four_room.distance(states, states[goal], name), exact.steps_to("FourRoom", goal)
            ).statistic
            for goal in goals
        ]
        assert found[name] == pytest.approx(np.mean(each), abs=1e-3)


@pytest.fixture(scope="module")
def four_room_target(four_room_run):
    from lapwing.runs.learn import reopen

    return reopen(four_room_run).target


def test_evaluate_holds_a_representation_against_the_true_chain(four_room, four_room_target):
    measures = evaluation.evaluate(four_room, four_room_target)
    functions = four_room.eigenfunctions(four_room_target.states).astype(np.float64)
    cosines = exact.projection_lengths(functions, "FourRoom", 4)
    values, _ = exact.spectrum("FourRoom")
    assert measures["operator"] == "true chain, lam=0"
    np.testing.assert_allclose(measures["cosine"], cosines, atol=1e-6)
    assert measures["cosine_mean"] == pytest.approx(cosines.mean())
    np.testing.assert_allclose(measures["eigenvalues_exact"], values[:4], atol=1e-9)
    assert measures["eigenvalues"] == four_room.eigenvalues.tolist()
    assert measures["gap_random"] == pytest.approx(4 * np.mean(values) - values[:4].sum())
    assert 0 < measures["gap"] < measures["gap_random"]
    assert 0 < measures["gap_floor"] < measures["gap"]
    assert measures["rank"] == 4
    assert 0 <= measures["principal_angle"] <= np.pi / 2
    assert tuple(measures["distance_correlation"]) == four_room.distances


def test_the_floors_are_those_of_the_datas_own_eigenvectors(four_room, four_room_target):
    measures = evaluation.evaluate(four_room, four_room_target)
    _, functions = four_room_target.one_step.eigenpairs(4)
    cosines = exact.projection_lengths(functions, "FourRoom", 4)
    assert measures["cosine_floor"] == pytest.approx(cosines.mean(), abs=1e-6)
    basis, _ = np.linalg.qr(functions)
    values, _ = exact.spectrum("FourRoom")
    objective = np.trace(basis.T @ (np.eye(152) - exact.transition("FourRoom")) @ basis)
    assert measures["gap_floor"] == pytest.approx(objective - values[:4].sum(), abs=1e-9)
