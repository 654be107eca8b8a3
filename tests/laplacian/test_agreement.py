"""Whether two sets of eigenfunctions are the same, and how far more data would turn one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.laplacian.agreement import COMPARABLE, NEARLY_SAME, agreements, stability
from lapwing.laplacian.ritz import Ritz, mean_moments, rayleigh_ritz


def functions(columns: np.ndarray, eigenvalues) -> Ritz:
    return Ritz(np.asarray(eigenvalues, float), columns, len(columns))


def turned(first: int, second: int, angle: float, size: int = 5) -> np.ndarray:
    """The rotation by an angle in the plane of two axes."""
    matrix = np.eye(size)
    matrix[first, first] = matrix[second, second] = np.cos(angle)
    matrix[second, first] = np.sin(angle)
    matrix[first, second] = -np.sin(angle)
    return matrix


def orthonormal_under(second: np.ndarray) -> np.ndarray:
    """Columns w with wᵀ B w = 1."""
    return np.linalg.inv(np.linalg.cholesky(second)).T


@st.composite
def moments(draw) -> np.ndarray:
    """Some B."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    half = rng.standard_normal((8, 5))
    return half.T @ half / 8 + 0.1 * np.eye(5)


@given(moments(), st.floats(0, np.pi / 2), st.integers(1, 3), st.integers(0, 2**16))
def test_a_rotation_between_two_eigenspaces_costs_its_cosine(second, angle, first, seed):
    """Whatever B is, and whatever the length and the sign of functions."""
    apart = [0.0, 0.1, 0.2, 0.4, 0.8]
    columns = orthonormal_under(second)
    scales = np.random.default_rng(seed).uniform(0.5, 2, 5) * np.array([1, -1, 1, -1, 1])
    one = functions(columns * scales, apart)
    other = functions(columns @ turned(first, first + 1, angle), apart)
    expected = np.ones(5)
    expected[[first, first + 1]] = np.cos(angle)
    np.testing.assert_allclose(agreements(one, other, second), expected, atol=1e-9)
    np.testing.assert_allclose(agreements(other, one, second), expected, atol=1e-9)


@given(moments(), st.floats(0, np.pi / 2), st.floats(0, 0.99 * NEARLY_SAME))
def test_a_repeated_eigenvalue_is_one_eigenspace(second, angle, difference):
    """Any basis of it is as good as another, also where the two eigenvalues differ a little."""
    columns = orthonormal_under(second)
    eigenvalues = [0.0, 0.1, 0.3 * (1 - difference), 0.3, 0.8]
    one = functions(columns, eigenvalues)
    other = functions(columns @ turned(2, 3, angle), eigenvalues)
    np.testing.assert_allclose(agreements(one, other, second), 1, atol=1e-9)


def test_functions_that_change_places_agree_only_within_an_eigenspace():
    swapped = np.eye(3)[:, [0, 2, 1]]
    for eigenvalues, expected in (([0, 0.1, 0.2], [1, 0, 0]), ([0, 0.1, 0.105], [1, 1, 1])):
        one, other = functions(np.eye(3), eigenvalues), functions(swapped, eigenvalues)
        np.testing.assert_allclose(agreements(one, other, np.eye(3)), expected, atol=1e-12)


def test_a_function_that_vanishes_agrees_with_nothing():
    gone = np.eye(3)
    gone[2, 2] = 0
    found = agreements(functions(gone, [0, 0.1, 0.2]), functions(np.eye(3), [0, 0.1, 0.2]), np.eye(3))
    np.testing.assert_allclose(found, [1, 1, 0], atol=1e-12)


def test_walks_that_never_meet_share_the_eigenvalue_0():
    """Any combination of the constants of the two parts is an eigenfunction, and 0 comes with rounding."""
    mixed = turned(0, 1, 0.7, 3)
    one, other = functions(np.eye(3), [0, 3e-9, 0.2]), functions(mixed, [1e-13, 2e-10, 0.2])
    np.testing.assert_allclose(agreements(one, other, np.eye(3)), 1)


def test_fewer_functions_on_one_side():
    whole, part = functions(np.eye(3), [0, 0.1, 0.2]), functions(np.eye(3)[:, :2], [0, 0.1])
    np.testing.assert_allclose(agreements(part, whole, np.eye(3)), [1, 1, 0])
    np.testing.assert_allclose(agreements(whole, part, np.eye(3)), [1, 1])


def test_eigenfunctions_of_one_index_are_compared_although_one_eigenvalue_is_a_bound():
    """Every basis gives upper bounds, so a coarse one has the same function at a larger eigenvalue."""
    for factor, expected in ((0.99 * COMPARABLE, 1.0), (1.01 * COMPARABLE, 0.0)):
        exact, coarse = functions(np.eye(3), [0, 0.1, 0.3]), functions(np.eye(3), [0, 0.1 * factor, 0.3])
        np.testing.assert_allclose(agreements(exact, coarse, np.eye(3)), [1, expected, 1], atol=1e-12)


def test_a_function_that_nearly_separates_two_parts_is_the_one_that_does():
    """Its eigenvalue is many times a 0 that is not exact, and little beside the next."""
    exact = functions(np.eye(3), [0, 1e-9, 0.1])
    for eigenvalue, expected in ((0.009, 1.0), (0.02, 0.0)):
        found = agreements(exact, functions(np.eye(3), [0, eigenvalue, 0.1]), np.eye(3))
        np.testing.assert_allclose(found, [1, expected, 1], atol=1e-12)


@given(st.floats(0, np.pi / 2))
def test_a_repeated_eigenvalue_whose_bounds_are_larger_is_one_eigenspace_too(angle):
    exact = functions(np.eye(4), [0, 0.1, 0.101, 1])
    coarse = functions(turned(1, 2, angle, 4), [0, 0.15, 0.17, 1])
    np.testing.assert_allclose(agreements(exact, coarse, np.eye(4)), 1, atol=1e-9)


@given(moments(), st.integers(0, 2**16))
def test_the_eigenspace_may_be_given_by_any_functions(second, seed):
    """Also by some that are not orthonormal, as those of one data set are not on another."""
    columns = orthonormal_under(second)
    mixed = columns.copy()
    mixed[:, 2:4] = columns[:, 2:4] @ np.random.default_rng(seed).uniform(0.5, 2, (2, 2))
    apart = [0, 0.1, 0.3, 0.3, 0.8]
    one, other = functions(mixed, apart), functions(columns, apart)
    if abs(np.linalg.det(np.linalg.lstsq(columns[:, 2:4], mixed[:, 2:4], rcond=None)[0])) > 0.05:
        np.testing.assert_allclose(agreements(one, other, second), 1, atol=1e-6)


# What more episodes would give


SIZE = 6
TRUE = np.diag([0, 0.1, 0.2, 0.4, 0.6, 0.8])
"""A of functions that are orthonormal, B = I."""


def sampled(count: int, rng: np.random.Generator):
    """Moments of a sample of so many pairs, in which the error falls as 1/√count."""
    noise = rng.standard_normal((2, SIZE, SIZE)) / np.sqrt(count)
    noise[:, 0] = noise[:, :, 0] = 0
    drawing, second = noise + noise.transpose(0, 2, 1)
    return (TRUE + 0.2 * drawing, np.eye(SIZE) + 0.2 * second), count


@pytest.mark.parametrize(("learned", "part"), [(1_000, 100), (1_000, 1_000), (10_000, 250)])
def test_it_estimates_the_cosine_with_the_truth(learned, part):
    """In the mean over samples, of whatever sizes."""
    rng, true, estimated = np.random.default_rng(0), [], []
    for _ in range(60):
        seen = sampled(learned, rng)
        found = stability(seen, [sampled(part, rng) for _ in range(4)], SIZE)
        ritz = rayleigh_ritz(*seen[0], SIZE)
        exact = Ritz(np.diag(TRUE), np.eye(SIZE), SIZE)
        true.append(1 - agreements(exact, ritz, np.eye(SIZE)) ** 2)
        estimated.append(1 - found.cosines**2)
    ratio = np.mean(estimated, axis=0)[1:] / np.mean(true, axis=0)[1:]
    assert np.all((ratio > 0.5) & (ratio < 2)), ratio


def test_eigenvalues_are_as_uncertain_as_they_are():
    rng, shifts, estimated = np.random.default_rng(1), [], []
    for _ in range(60):
        seen = sampled(1_000, rng)
        estimated.append(stability(seen, [sampled(100, rng) for _ in range(4)], SIZE).uncertain)
        shifts.append(rayleigh_ritz(*seen[0], SIZE).eigenvalues - np.diag(TRUE))
    ratio = np.mean(estimated, axis=0)[1:] / np.sqrt(np.mean(np.square(shifts), axis=0))[1:]
    assert np.all((ratio > 0.5) & (ratio < 2)), ratio


def test_data_that_says_the_same_turns_nothing():
    same = (TRUE, np.eye(SIZE))
    found = stability((same, 100), [(same, 10), (same, 20)], SIZE)
    np.testing.assert_allclose(found.cosines, 1)
    np.testing.assert_allclose(found.uncertain, 0, atol=1e-12)
    assert mean_moments([(same, 1), (same, 2)])[0] == pytest.approx(TRUE)


def test_functions_that_the_basis_lacks_are_not_stable():
    """Where fewer are independent than were asked for."""
    flat = np.eye(SIZE)
    flat[4:, 4:] = 0
    found = stability(((TRUE * flat, flat), 100), [((TRUE * flat, flat), 10)] * 2, SIZE)
    np.testing.assert_allclose(found.cosines, [1, 1, 1, 1, 0, 0], atol=1e-9)
    assert np.isfinite(found.uncertain).all()
