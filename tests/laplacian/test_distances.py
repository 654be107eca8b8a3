"""Distances of eigenfunctions against what they stand for: linear solves and inverses of small chains."""

import numpy as np
import pytest

from lapwing.errors import ConfigError
from lapwing.laplacian.chain import Chain
from lapwing.laplacian.distances import (
    check_distance,
    check_filter,
    euclidean,
    hitting_time,
    measure_of,
    spectral_weights,
    trusted_mask,
)

pytestmark = pytest.mark.numeric


def random_weights(states: int, seed: int, *, regular: bool = False) -> np.ndarray:
    """Symmetric weights with sum 1; a regular chain visits all states alike."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((states, states)) * (rng.random((states, states)) < 0.3), 1)
    path = np.arange(states - 1)
    weights[path, path + 1] += 0.2  # so that there is a way between any two
    weights += weights.T
    if regular:
        weights += np.diag(weights.sum(axis=1).max() - weights.sum(axis=1))
    return weights / weights.sum()


def transition(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum(axis=1, keepdims=True)


def solved_hitting_times(weights: np.ndarray) -> np.ndarray:
    """(from, to): the solution of h = 1 + P h away from the goal, and h = 0 there."""
    P, states = transition(weights), len(weights)
    times = np.zeros((states, states))
    for goal in range(states):
        others = np.delete(np.arange(states), goal)
        system = np.eye(states - 1) - P[np.ix_(others, others)]
        times[others, goal] = np.linalg.solve(system, np.ones(states - 1))
    return times


def weighed(weights: np.ndarray, filter, dim: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and weighed eigenfunctions of the chain, the constant left out."""
    values, functions = Chain(weights, "a test").eigenpairs(dim or len(weights))
    return values[1:], functions[:, 1:] * spectral_weights(values[1:], filter)


@pytest.mark.parametrize("seed", range(5))
def test_hitting_is_the_expected_number_of_steps(seed):
    """With all eigenfunctions, on a reversible chain that does not visit all states alike."""
    weights = random_weights(9 + seed, seed)
    _, coordinates = weighed(weights, "hitting")
    found = hitting_time(coordinates[:, None], coordinates[None])
    expected = solved_hitting_times(weights)
    assert np.abs(expected - expected.T).max() > 1, "it matters which is which"
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_its_mean_and_its_change_by_a_step():
    """Σ 1/λ and √(2 Σ 1/λ), by sums over all pairs and over all steps."""
    weights = random_weights(12, 7)
    values, _ = weighed(weights, "hitting")
    rho, times = weights.sum(axis=1), solved_hitting_times(weights)
    assert rho @ times @ rho == pytest.approx(np.sum(1 / values))
    changes = (times[:, None, :] - times[None, :, :]) ** 2  # of steps from the first to the second
    square = np.einsum("uv,uvg,g->", weights, changes, rho)
    assert np.sqrt(square) == pytest.approx(np.sqrt(2 * np.sum(1 / values)))


def test_the_first_functions_of_a_path_undershoot_and_are_not_clipped():
    """From beyond the goal, the few smooth functions say less than nothing."""
    path = np.eye(30, k=1) + np.eye(30, k=-1)
    _, coordinates = weighed(path / path.sum(), "hitting", dim=3)
    times = hitting_time(coordinates, coordinates[5])
    assert (times[:5] < -1).all()
    assert times[5] == 0
    assert (times[6:] > 1).all()
    assert (np.diff(times) > 0).all(), "states beyond the goal are still told apart"


def test_commute_is_the_way_there_and_back():
    weights = random_weights(11, 3)
    _, coordinates = weighed(weights, "commute")
    both = solved_hitting_times(weights) + solved_hitting_times(weights).T
    squares = euclidean(coordinates[:, None], coordinates[None]) ** 2
    np.testing.assert_allclose(squares / squares[0, 1], both / both[0, 1], atol=1e-8)


def test_biharmonic_is_of_the_squared_inverse_of_the_laplacian():
    """‖L⁺(e_s - e_g)‖, where all states are visited alike and L is symmetric."""
    weights = random_weights(11, 4, regular=True)
    laplacian = np.eye(11) - transition(weights)
    assert np.allclose(laplacian, laplacian.T)
    inverse = np.linalg.pinv(laplacian)
    expected = np.linalg.norm(inverse[:, None] - inverse[None], axis=-1)
    _, coordinates = weighed(weights, "biharmonic")
    found = euclidean(coordinates[:, None], coordinates[None])
    np.testing.assert_allclose(found / found[0, 1], expected / expected[0, 1], atol=1e-8)


def test_where_the_data_falls_into_parts_they_are_far_apart_and_nothing_is_infinite():
    values = np.array([0.0, 0.1, 0.4])
    for filter in ("commute", "biharmonic", "hitting"):
        weights = spectral_weights(values, filter)
        assert np.isfinite(weights).all()
        assert weights[0] > 1e5 * weights[1] > 1e5 * weights[2] > 0


def test_only_hitting_is_no_norm():
    assert measure_of("hitting") is hitting_time
    for filter in ("soft", "unit", "commute", "biharmonic", "heat"):
        assert measure_of(filter) is euclidean


@pytest.mark.parametrize(
    ("trusted", "expected"),
    [(None, [1, 1, 1]), ([], [0, 0, 0]), ([0], [0, 0, 0]), ([2], [0, 1, 0]), ([0, 1, 3, 3], [1, 0, 1])],
)
def test_which_eigenfunctions_are_trusted(trusted, expected):
    np.testing.assert_array_equal(trusted_mask(trusted, 4), np.array(expected, bool))


@pytest.mark.parametrize("index", [-1, 4, 1.5, True, "1", None])
def test_an_index_of_no_eigenfunction_is_refused(index):
    with pytest.raises(ConfigError, match=f"trusted.* 3.* {index!r}"):
        trusted_mask([0, index], 4)


def test_hitting_is_a_distance_and_no_filter():
    check_distance("hitting")
    with pytest.raises(ConfigError, match="'hitting'"):
        check_filter("hitting")
    for check in (check_filter, check_distance):
        with pytest.raises(ConfigError, match=r"'biharmonik'.* biharmonic"):
            check("biharmonik")
        with pytest.raises(ConfigError, match=r"t=3\.0.*'biharmonic'"):
            check("biharmonic", 3.0)
    with pytest.raises(ConfigError, match=r"t=3\.0.*'hitting'"):
        check_distance("hitting", 3.0)
