"""Functions that are combined in closed form, against SciPy and processes that are known."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lapwing.laplacian.bases import (
    MOST_COORDINATES,
    MOST_INPUTS,
    ROWS,
    Basis,
    Combined,
    Coordinates,
    Pairs,
    Reduction,
    spread_centres,
)
from lapwing.laplacian.ritz import pair_moments

RNG = np.random.default_rng(0)


def basis_of(k: int, coordinates: int, bumps: int) -> Basis:
    rng = np.random.default_rng(1)
    return Basis(rng.standard_normal((k, coordinates)), rng.standard_normal((bumps, coordinates)), 0.7)


class TestReduction:
    def test_vectors_are_standardised(self):
        seen = RNG.standard_normal((500, 3)) * [1, 50, 0.1] + [0, 300, -2]
        reduced = Reduction.of(seen)(seen)
        np.testing.assert_allclose(reduced.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(reduced.std(axis=0), 1)

    def test_what_is_constant_counts_nothing(self):
        seen = np.column_stack([RNG.standard_normal(100), np.full(100, 7.0)])
        reduction = Reduction.of(seen)
        np.testing.assert_array_equal(reduction(seen + np.array([0, 3]))[:, 1], 0)
        assert not Reduction.of(np.ones((5, 2))).matrix.any()

    def test_of_many_numbers_the_principal_components(self):
        """What varies in three directions alone is kept whole."""
        hidden = RNG.standard_normal((300, 3))
        seen = hidden @ RNG.standard_normal((3, MOST_INPUTS + 300)) + 5
        reduced = Reduction.of(seen)(seen)
        assert reduced.shape == (300, 3)
        np.testing.assert_allclose(cdist(reduced, reduced) > 0, ~np.eye(300, dtype=bool))
        explained, *_ = np.linalg.lstsq(np.column_stack([np.ones(300), reduced]), hidden)
        np.testing.assert_allclose(np.column_stack([np.ones(300), reduced]) @ explained, hidden, atol=1e-8)

    def test_all_features_can_have_one_scale(self):
        seen = RNG.standard_normal((500, 8)) * np.array([1, 50, 0.1, 1, 1, 1, 1, 1])
        reduced = Reduction.of(seen, one_scale=True)(seen)
        ratios = cdist(reduced, reduced)[0, 1:] / cdist(seen, seen)[0, 1:]
        np.testing.assert_allclose(ratios, ratios[0])
        assert Reduction.of(seen, one_scale=True, most=3)(seen).shape == (500, 3)

    def test_pixels_have_one_scale(self):
        """A pixel that hardly changes stays faint."""
        images = RNG.integers(0, 256, (400, 12, 10, 3)).astype(np.uint8)
        images[:, 0, 0, 0] = np.arange(400) % 2
        matrix = Reduction.of(images).matrix
        assert matrix.shape[1] == min(MOST_INPUTS, 400)
        assert np.abs(matrix[0]).max() < 0.05 * np.abs(matrix).max()


class TestBasis:
    def test_coordinates_and_bumps_by_distances(self):
        basis, x = basis_of(5, 2, 9), RNG.standard_normal((40, 5))
        z = x @ basis.projection
        bumps = np.exp(-(cdist(z, basis.centres) ** 2) / (2 * 0.7**2))
        np.testing.assert_allclose(basis(x), np.hstack([z, bumps]), rtol=1e-12, atol=1e-12)

    def test_combined_with_the_constant_first(self):
        basis, x = basis_of(5, 2, 9), RNG.standard_normal((40, 5))
        coefficients = RNG.standard_normal((12, 4))
        expected = np.column_stack([np.ones(40), basis(x)]) @ coefficients
        np.testing.assert_allclose(Combined(basis, coefficients)(x), expected, atol=1e-12)

    @pytest.mark.parametrize("count", [1, ROWS - 1, ROWS + 1])
    def test_moments_a_few_rows_at_a_time(self, count):
        basis = basis_of(3, 2, 4)
        pairs = Pairs(*RNG.standard_normal((2, count, 3)))
        expected = pair_moments(*pairs.mapped(basis))
        np.testing.assert_allclose(pairs.moments(basis), expected, rtol=1e-10, atol=1e-12)


class TestCoordinates:
    DECAYS = np.array([0.99, 0.9, 0.5, 0.0, 0.0])

    def pairs(self, mixing: np.ndarray) -> Pairs:
        """Stationary x' = a x + noise in each hidden coordinate: its eigenvalue is 1 - a."""
        here = RNG.standard_normal((100_000, len(self.DECAYS)))
        there = self.DECAYS * here + np.sqrt(1 - self.DECAYS**2) * RNG.standard_normal(here.shape)
        return Pairs(here @ mixing, there @ mixing)

    def test_the_slow_ones_are_found_whatever_they_are_mixed_with(self):
        mixing = RNG.standard_normal((5, 5))
        found = Coordinates.of(self.pairs(mixing))
        np.testing.assert_allclose(found.eigenvalues, 1 - self.DECAYS, atol=0.01)
        hidden = mixing @ found.functions  # the hidden coordinates in each function
        np.testing.assert_allclose(np.abs(hidden[:3, :3]), np.eye(3), atol=0.03)

    @pytest.mark.parametrize("slowness", [0.0, 0.5, 1.0])
    def test_fast_ones_count_less(self, slowness):
        found = Coordinates.of(self.pairs(np.eye(5)))
        sizes = np.linalg.norm(found.projection(slowness), axis=0)
        np.testing.assert_allclose(sizes, (0.01 / (1 - self.DECAYS)) ** slowness, rtol=0.1)

    def test_copies_are_counted_once(self):
        mixing = np.hstack([np.eye(5), np.ones((5, 2)), np.zeros((5, 1))])
        found = Coordinates.of(self.pairs(mixing))
        np.testing.assert_allclose(found.eigenvalues, 1 - self.DECAYS, atol=0.01)

    def test_no_more_than_some_of_the_slowest(self):
        here, there = RNG.standard_normal((2, 500, MOST_COORDINATES + 10))
        assert Coordinates.of(Pairs(here, there)).functions.shape == (
            MOST_COORDINATES + 10,
            MOST_COORDINATES,
        )


class TestCentres:
    def test_of_clusters_their_means(self):
        means = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 20.0]])
        points = np.concatenate([mean + RNG.uniform(-1, 1, (200, 2)) for mean in means])
        centres, apart = spread_centres(points, 3, seed=4)
        assert cdist(means, centres).min(axis=1).max() < 0.2
        assert apart == pytest.approx(10, abs=0.3)

    @pytest.mark.parametrize("count", [1, 5, 200])
    def test_no_more_than_distinct_points(self, count):
        points = np.repeat(RNG.standard_normal((5, 2)), 40, axis=0)
        centres, apart = spread_centres(points, count, seed=0)
        assert len(centres) == min(count, 5)
        assert np.isfinite(centres).all()
        assert apart > 0

    @pytest.mark.parametrize("decimals", [0, 1, 9])
    def test_as_many_as_there_are_points_are_these_in_order(self, decimals):
        points = np.round(RNG.standard_normal((200, 3)), decimals)
        centres, _ = spread_centres(points, len(points), seed=0)
        np.testing.assert_array_equal(centres, np.unique(points, axis=0))

    def test_the_seed_decides(self):
        points = RNG.standard_normal((500, 2))
        first, again, other = (spread_centres(points, 20, seed)[0] for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_as_many_again_are_the_same(self):
        """The fit finds again what a trial had, by their number alone."""
        points = np.round(RNG.standard_normal((300, 1)), 1)
        centres, apart = spread_centres(points, 40, seed=0)
        again, same = spread_centres(points, len(centres), seed=0)
        np.testing.assert_array_equal(centres, again)
        assert apart == same
