import importlib.util
import pickle
import sys

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_moons, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lapwing.errors import ConfigError, DatasetError, LapwingError, LapwingWarning
from lapwing.integrations import sklearn as integration
from lapwing.integrations import sklearn as module
from lapwing.integrations.sklearn import LaplacianEmbedding
from lapwing.settings.learn import LearnSettings
from tests.support.graphs import by_brute_force

QUICK = {"steps": 20, "hidden": (8,), "encoder": "mlp"}
"""A network, where the numbers do not matter."""


def ring(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, count)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.02 * rng.standard_normal((count, 2)), angle


def two_clumps(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two clumps far apart, in turn."""
    rng = np.random.default_rng(seed)
    side = np.arange(count) % 2
    return 0.5 * rng.standard_normal((count, 2)) + 6.0 * side[:, None], side


@pytest.fixture(scope="module")
def roll() -> tuple[np.ndarray, LaplacianEmbedding]:
    """A roll of 2,000 points, and what was learned from it."""
    points, _ = make_swiss_roll(2_000, noise=0.3, random_state=0)
    return points, LaplacianEmbedding(n_components=4).fit(points)


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, LaplacianEmbedding]:
    """A small ring, hardly learned."""
    points, _ = ring(40, seed=0)
    return points, LaplacianEmbedding(**QUICK).fit(points)


@pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")
@parametrize_with_checks([LaplacianEmbedding(), LaplacianEmbedding(**QUICK)])
def test_it_is_an_estimator_as_scikit_learn_asks(estimator, check):
    check(estimator)


def test_defaults_are_stored_as_they_are_given():
    hidden = [8, 8]
    estimator = LaplacianEmbedding(3, filter="heat", hidden=hidden)
    assert estimator.get_params()["hidden"] is hidden
    assert clone(estimator).get_params() == estimator.get_params()


def test_pickled_it_gives_the_same_numbers(small):
    points, estimator = small
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.transform(points), estimator.embedding_)


def test_columns_have_names(small):
    points, estimator = small
    names = ["laplacianembedding0", "laplacianembedding1"]
    assert estimator.get_feature_names_out().tolist() == names
    pytest.importorskip("pandas")
    frame = pickle.loads(pickle.dumps(estimator)).set_output(transform="pandas").transform(points)
    assert frame.columns.tolist() == names


def test_a_pipeline_classifies_points_it_has_not_seen():
    X, y = make_moons(300, noise=0.05, random_state=0)
    unseen, expected = make_moons(200, noise=0.05, random_state=1)
    scaled = X * [1.0, 1e3]
    pipeline = make_pipeline(StandardScaler(), LaplacianEmbedding(), LogisticRegression(C=100))
    pipeline.fit(scaled, y)
    assert pipeline.score(unseen * [1.0, 1e3], expected) > 0.97
    assert make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y).score(unseen, expected) < 0.95


@pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")
def test_a_grid_search_over_components():
    X, y = two_clumps(60, seed=0)
    pipeline = make_pipeline(LaplacianEmbedding(**QUICK), LogisticRegression())
    grid = {"laplacianembedding__n_components": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise", refit=False).fit(X, y)
    assert (search.cv_results_["mean_test_score"] > 0.9).all()


def test_a_roll_is_unrolled_out_of_sample(roll):
    points, estimator = roll
    held_out, along = make_swiss_roll(1_000, noise=0.3, random_state=1)
    rank = abs(spearmanr(estimator.transform(held_out)[:, 0], along)[0])
    flat = abs(spearmanr(PCA(1).fit(points).transform(held_out)[:, 0], along)[0])
    assert rank > 0.98
    assert flat < 0.5


def test_eigenfunctions_are_those_of_the_walk(roll):
    points, estimator = roll
    weights = by_brute_force(points.astype(np.float32).astype(np.float64), 10)
    root = np.sqrt(weights.sum(axis=1))
    values, vectors = eigh(weights / np.outer(root, root), subset_by_index=[1_995, 1_998])
    exact = vectors[:, ::-1]
    learned = estimator.embedding_ * root[:, None]
    assert np.cos(subspace_angles(learned, exact)).min() > 0.999
    each = np.abs(np.sum(learned * exact, axis=0)) / np.linalg.norm(learned, axis=0)
    assert each.min() > 0.999
    np.testing.assert_allclose(estimator.eigenvalues_, 1 - values[::-1], atol=1e-9)


def test_points_are_clustered_as_well_as_by_the_eigenvectors():
    points, digits = load_digits(return_X_y=True)
    points, digits = points[:1_000], digits[:1_000]
    exact = SpectralEmbedding(5, n_neighbors=10, random_state=0).fit_transform(points)
    learned = LaplacianEmbedding(5).fit_transform(points)
    exact, learned = (
        normalized_mutual_info_score(digits, KMeans(10, n_init=10, random_state=0).fit_predict(embedded))
        for embedded in (exact, learned)
    )
    assert learned > exact - 0.02


@pytest.mark.parametrize(
    "asked", [{"steps": 30}, {"hidden": (16,)}, {"learning_rate": 0.02}, {"encoder": "mlp"}]
)
def test_a_network_is_trained_if_it_is_asked_for(asked, monkeypatch):
    suited = {"steps": 20, "hidden": (8,), "learning_rate": 0.01}
    monkeypatch.setattr(module, "EXACT", suited)
    learned = LaplacianEmbedding(**asked).fit(ring(60, seed=0)[0]).representation_
    settings = learned.config["settings"]
    assert settings["estimator"] == "exact"
    expected = LearnSettings(**(suited | asked)).as_json()
    assert {name: settings[name] for name in suited | asked} == {
        name: expected[name] for name in suited | asked
    }


def test_bumps_take_no_steps():
    points, _ = ring(60, seed=0)
    default, named = LaplacianEmbedding().fit(points), LaplacianEmbedding(encoder="bumps").fit(points)
    np.testing.assert_array_equal(default.embedding_, named.embedding_)
    assert default.n_iter_ == 1
    with pytest.raises(ConfigError, match="steps"):
        LaplacianEmbedding(encoder="bumps", steps=10).fit(points)


def test_a_ring_stays_a_ring():
    estimator = LaplacianEmbedding().fit(ring(300, seed=0)[0])
    held_out, angle = ring(200, seed=1)
    x, y = estimator.transform(held_out).T
    turned = np.arctan2(y, x)
    same_way = max(abs(np.mean(np.exp(1j * (turned - sign * angle)))) for sign in (1, -1))
    assert same_way > 0.97
    radius = np.hypot(x, y)
    assert radius.std() / radius.mean() < 0.15


@pytest.mark.parametrize("touching", [True, False])
def test_clumps_that_hardly_touch_are_told_apart(touching):
    points, _ = two_clumps(200, seed=0)
    if touching:
        points = np.concatenate([points, np.linspace([0, 0], [6, 6], 25)])  # stepping stones
    estimator = LaplacianEmbedding(n_components=1)
    if touching:
        estimator.fit(points)
    else:
        with pytest.warns(LapwingWarning, match="2 parts"):
            estimator.fit(points)
    held_out, side = two_clumps(100, seed=1)
    first = estimator.transform(held_out)[:, 0]
    ranges = [(first[side == s].min(), first[side == s].max()) for s in (0, 1)]
    (_, below), (above, _) = sorted(ranges)
    widths = [high - low for low, high in ranges]
    assert above - below > 2 * max(widths)


def test_a_filter_weighs_columns_and_nothing_else(roll):
    points, estimator = roll
    f = np.asarray(estimator.representation_.eigenfunctions(points.astype(np.float32)), np.float64)[:, 1:]
    ratio = estimator.embedding_ / f
    scale = np.median(ratio, axis=0)
    np.testing.assert_allclose(estimator.embedding_, f * scale, atol=1e-3)
    commute = np.sqrt(estimator.eigenvalues_[0] / estimator.eigenvalues_)
    np.testing.assert_allclose(scale / scale[0], commute, rtol=1e-3)


def test_every_component_is_there_though_few_be_trusted(small, monkeypatch):
    """What held-out episodes say of a component is no reason to give a column of zeros."""
    learn, (points, estimator) = integration.learn_target, small

    def learn_and_distrust(*given):
        learned = learn(*given)
        learned.config["trusted"] = [0, 1]
        return learned

    monkeypatch.setattr(integration, "learn_target", learn_and_distrust)
    found = LaplacianEmbedding(**QUICK).fit(points)
    assert found.representation_.config["trusted"] == [0, 1]
    np.testing.assert_allclose(found.embedding_, estimator.embedding_, rtol=1e-4, atol=1e-4)


def corridor_walks(episodes: int, length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Walks through a corridor that turns back beside itself: places in the plane, and along the corridor."""
    rng = np.random.default_rng(seed)
    at = rng.integers(40, size=episodes)
    along = np.empty((episodes, length), int)
    for step in range(length):
        along[:, step] = at
        at = np.clip(at + rng.choice([-1, 1], episodes), 0, 39)
    flat = along.reshape(-1)
    return np.stack([np.minimum(flat, 39 - flat) / 4, flat >= 20], axis=1).astype(float), flat


def test_trajectories_are_near_in_time_not_in_space():
    X, along = corridor_walks(400, 25, seed=0)
    X[:, 1] *= 0.1  # the way back is nearer than the next place
    estimator = LaplacianEmbedding(n_components=1, steps=300, hidden=(64, 64))
    first = estimator.fit_transform(X, lengths=np.full(400, 25))[:, 0]
    assert abs(spearmanr(first, along)[0]) > 0.98


@pytest.mark.parametrize(
    ("lengths", "words"), [([20, 21], "41.* 40"), ([39, 1], "episode 1 "), ([], "no episodes")]
)
def test_lengths_that_do_not_fit_are_refused(small, lengths, words):
    with pytest.raises(DatasetError, match=words):
        LaplacianEmbedding(**QUICK).fit(small[0], lengths=lengths)


def test_of_a_very_large_cloud_some_points_are_learned_from(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 500)
    points, _ = make_swiss_roll(3_000, random_state=0)
    estimator = LaplacianEmbedding(n_neighbors=6).fit(points)
    assert estimator.representation_.config["provenance"]["states"] == 500
    assert estimator.embedding_.shape == (3_000, 2)


@pytest.mark.slow
def test_a_network_walks_through_a_large_cloud():
    points, _ = make_swiss_roll(5_500, noise=0.3, random_state=0)
    estimator = LaplacianEmbedding(steps=1_500).fit(points)
    assert estimator.representation_.config["settings"]["estimator"] == "pairwise"
    held_out, along = make_swiss_roll(1_000, noise=0.3, random_state=1)
    assert abs(spearmanr(estimator.transform(held_out)[:, 0], along)[0]) > 0.95


def test_points_count_once_in_any_order(small):
    points, estimator = small
    order = np.random.default_rng(0).permutation(80) % 40
    again = clone(estimator).fit(points[order])
    np.testing.assert_array_equal(again.transform(points), estimator.embedding_)


def test_chance_comes_from_random_state(small):
    points, estimator = small
    same = clone(estimator).set_params(random_state=np.random.RandomState(0)).fit(points)
    np.testing.assert_array_equal(same.embedding_, estimator.embedding_)
    other = clone(estimator).set_params(random_state=None).fit(points)
    assert (other.embedding_ != estimator.embedding_).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_components": 0}, "n_components.* 0"),
        ({"n_components": None}, "n_components.* None"),
        ({"n_components": 40}, "40 distinct rows.* 41"),
        ({"n_neighbors": 0}, "n_neighbors.* 0"),
        ({"filter": "comute"}, "filter.*'comute'.* commute"),
        ({"filter": "soft"}, "filter.*'soft'"),
        ({"filter": "hitting"}, "filter.*'hitting'"),
        ({"steps": -1}, "steps.* -1"),
        ({"hidden": 64}, "hidden"),
        ({"learning_rate": 0.0}, "learning_rate.* 0"),
        ({"encoder": "conv"}, "encoder.*'conv'"),
    ],
)
def test_what_cannot_be_meant_is_refused(small, settings, words):
    with pytest.raises(ValueError, match=words) as caught:
        LaplacianEmbedding(**settings).fit(small[0])
    assert isinstance(caught.value, LapwingError)


@pytest.mark.parametrize("rows", [np.ones((20, 3)), np.arange(40).reshape(20, 2) // 20])
def test_one_point_over_and_over_is_refused(rows):
    with pytest.raises(DatasetError, match=r"[12] distinct rows.* n_components=1 "):
        LaplacianEmbedding(n_components=1).fit(rows)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_too_large_for_the_network_are_refused(small):
    with pytest.raises(ValueError, match="too large"):
        LaplacianEmbedding(**QUICK).fit(small[0] * 1e39)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    spec = importlib.util.find_spec("lapwing.integrations.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ConfigError, match=r"lapwing\[sklearn\]"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
