import inspect

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.linalg import subspace_angles

from lapwing.data.experience import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, DatasetError
from lapwing.laplacian import baselines
from lapwing.laplacian.baselines import measure, stacked_transitions, successor_features
from lapwing.laplacian.encoders import EncoderSpec, fit_encoder
from lapwing.laplacian.target import Target, open_target
from lapwing.mazes import read_maze
from lapwing.settings.learn import LearnSettings
from tests.support import exact
from tests.support.rounding import to_rounding

KINDS = ("index", "position", "image")


def every_transition_once(kind: str) -> Target:
    """FourRoom with each of its 152 x 4 moves as an episode of its own."""
    moves = (4 * exact.transition("FourRoom")).astype(int)
    ends = np.repeat(np.argwhere(moves), moves[moves > 0], axis=0)
    assert len(ends) == 608
    return four_room(ends, kind)


def four_room(episodes, kind: str) -> Target:
    world = GridWorld(read_maze("FourRoom"))
    ids = np.concatenate([np.asarray(episode) for episode in episodes])
    table = world.observations(kind)
    return Target("FourRoom", Experience(ids, [len(e) for e in episodes], table), world, table)


def data(episodes, table) -> Target:
    """A target that is nothing but data; its states may be vectors or indices."""
    ids = np.concatenate([np.asarray(episode) for episode in episodes])
    experience = Experience(ids, [len(e) for e in episodes], table)
    return Target("data", experience, None, experience.table)


def walked(kind: str, transitions: int, seed: int = 0) -> Target:
    return open_target("FourRoom", LearnSettings(observation=kind, transitions=transitions, seed=seed))


def gap_by_hand(functions: np.ndarray, dim: int) -> float:
    """G of an orthonormal basis of as many independent functions, above the sum of the eigenvalues."""
    assert functions.shape[1] == dim
    basis, _ = np.linalg.qr(functions)
    values, _ = exact.spectrum("FourRoom")
    return np.trace(basis.T @ (np.eye(152) - exact.transition("FourRoom")) @ basis) - values[:dim].sum()


def random_episodes(seed: int, n_states: int = 9, episodes: int = 12, length: int = 7) -> list[np.ndarray]:
    """Uniformly random ids: far from any geometry, with states left unequally often."""
    return list(np.random.default_rng(seed).integers(n_states, size=(episodes, length)))


def transitions_of(episodes) -> tuple[np.ndarray, np.ndarray]:
    here = np.concatenate([episode[:-1] for episode in episodes])
    return here, np.concatenate([episode[1:] for episode in episodes])


def count_matrix(episodes, n_states: int) -> np.ndarray:
    counts = np.zeros((n_states, n_states))
    np.add.at(counts, transitions_of(episodes), 1)
    return counts


def largest_angle(first: np.ndarray, second: np.ndarray) -> float:
    return float(subspace_angles(first, second).max())


@pytest.mark.parametrize(
    ("kind", "reading"),
    [("index", "sampled"), ("image", "sampled"), ("index", "distinct"), ("index", "literal")],
)
def test_every_transition_once_gives_the_laplacians_subspace(kind, reading):
    target = every_transition_once(kind)
    for dim in (1, 5, 20):
        found = stacked_transitions(target, dim, reading)
        functions = found.eigenfunctions(target.states)
        assert found.dim == dim
        assert gap_by_hand(functions, dim) == pytest.approx(0, abs=1e-6)
        assert measure(found, target, dim) == {"gap": pytest.approx(0, abs=1e-6), "rank": dim}


def test_the_functions_come_in_the_order_of_the_eigenvalues():
    target = every_transition_once("index")
    found = stacked_transitions(target, 20)
    functions = found.eigenfunctions(target.states)
    np.testing.assert_allclose(functions[:, 0], 1.0)
    np.testing.assert_allclose(exact.projection_lengths(functions, "FourRoom", 20), 1.0, atol=1e-6)
    # One row of (e(s') - e(s))² in the mean is 2 eᵀLe / 152.
    values = exact.spectrum("FourRoom")[0][:20]
    np.testing.assert_allclose(found.singular_values**2, 2 * values / 152, atol=1e-12)


def test_read_literally_images_give_nothing_but_constants():
    target = every_transition_once("image")
    found = stacked_transitions(target, 20, "literal")
    functions = found.eigenfunctions(target.states)
    assert found.dim == 20
    np.testing.assert_allclose(functions, np.broadcast_to(functions[:1], functions.shape), atol=1e-9)
    measures = measure(found, target, 20)
    values, _ = exact.spectrum("FourRoom")
    completed = 19 * values.sum() / 151 - values[:20].sum()
    assert measures == {"gap": pytest.approx(completed, abs=1e-6), "rank": 1}
    assert completed == pytest.approx(14.3, abs=0.05)


@pytest.mark.parametrize(("reading", "rank"), [("sampled", 3), ("distinct", 3), ("literal", 2)])
def test_a_position_has_two_directions_and_the_constant(reading, rank):
    target = every_transition_once("position")
    found = stacked_transitions(target, 20, reading)
    assert found.dim == rank
    assert measure(found, target, 20)["rank"] == rank


@pytest.mark.parametrize("reading", ["sampled", "distinct", "literal"])
def test_the_eigenoptions_are_the_singular_vectors_of_the_stacked_rows(reading):
    episodes = random_episodes(3)
    table = np.random.default_rng(3).standard_normal((9, 6)).astype(np.float32)
    target = data(episodes, table)
    here, there = transitions_of(episodes)
    if reading == "distinct":
        here, there = np.unique(np.stack([here, there]), axis=1)
    rows = table[there].astype(np.float64) - table[here]
    _, sizes, right = np.linalg.svd(rows)
    found = stacked_transitions(target, 4, reading)
    count = 4 if reading == "literal" else 3
    wanted = (table @ right[::-1][:count].T).T
    functions = found.eigenfunctions(table).T[-count:]
    for ours, theirs in zip(functions, wanted, strict=True):
        assert largest_angle(ours[:, None], theirs[:, None]) < 1e-5
    np.testing.assert_allclose(
        found.singular_values[-count:], sizes[::-1][:count] / np.sqrt(len(rows)), rtol=1e-6
    )


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), repeats=st.lists(st.integers(1, 6), min_size=12, max_size=12))
def test_distinct_ignores_how_often_a_transition_was_made(seed, repeats):
    episodes = random_episodes(seed)
    table = np.random.default_rng(seed).standard_normal((9, 6)).astype(np.float32)
    uneven = [episode for episode, count in zip(episodes, repeats, strict=True) for _ in range(count)]
    once = stacked_transitions(data(episodes, table), 4, "distinct")
    again = stacked_transitions(data(uneven, table), 4, "distinct")
    np.testing.assert_array_equal(once.coefficients, again.coefficients)


def test_sampled_does_not():
    episodes = random_episodes(1)
    table = np.random.default_rng(1).standard_normal((9, 6)).astype(np.float32)
    once = stacked_transitions(data(episodes, table), 3)
    again = stacked_transitions(data([*episodes, *episodes[:1] * 9], table), 3)
    assert largest_angle(once.eigenfunctions(table), again.eigenfunctions(table)) > 1e-3


def test_what_no_seen_state_differs_in_is_left_out():
    """A feature that only a state without visits has would come first, for no transition changes it."""
    episodes = [[0, 1, 2, 1, 0], [2, 1, 2]]
    table = np.array([[0, 5, 0], [1, 5, 0], [2, 5, 0], [9, 5, 7]], np.float32)
    found = stacked_transitions(data(episodes, table), 4)
    assert found.dim == 2
    np.testing.assert_allclose(found.eigenfunctions(table)[:, 1] ** 2, [0, 1, 4, 81], atol=1e-9)


def test_tabular_successor_features_give_the_laplacians_subspace():
    target = every_transition_once("index")
    for dim in (1, 5, 20):
        found = successor_features(target, dim, features=np.eye(152))
        assert gap_by_hand(found.eigenfunctions(target.states), dim) == pytest.approx(0, abs=1e-6)
        assert measure(found, target, dim) == {"gap": pytest.approx(0, abs=1e-6), "rank": dim}
    values, _ = exact.spectrum("FourRoom")
    expected = 1 / (1 - 0.9 * (1 - values[:20])) / np.sqrt(152)
    np.testing.assert_allclose(found.singular_values, expected, rtol=1e-9)


def test_the_eigenoptions_are_the_singular_vectors_of_the_stacked_successor_features():
    episodes = random_episodes(4)
    psi = np.random.default_rng(4).standard_normal((9, 5))
    found = successor_features(data(episodes, np.arange(9)), 3, features=psi, gamma=0.7)
    here, there = transitions_of(episodes)
    # The fixed point from the transitions one by one.
    system = sum(np.outer(psi[s], psi[s] - 0.7 * psi[t]) for s, t in zip(here, there, strict=True))
    answer = sum(np.outer(psi[s], psi[s]) for s in here)
    rows = psi[here] @ np.linalg.solve(system, answer)
    _, sizes, right = np.linalg.svd(rows)
    functions = found.eigenfunctions(np.arange(9))
    for index in range(3):
        assert largest_angle(functions[:, [index]], psi @ right[[index]].T) < 1e-6
    np.testing.assert_allclose(found.singular_values, sizes[:3] / np.sqrt(len(here)), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_bits_and_another_does_not(kind):
    target = walked(kind, 500)
    first, again, other = (
        successor_features(target, 4, steps=3, seed=seed).eigenfunctions(target.states) for seed in (7, 7, 8)
    )
    assert first.tobytes() == again.tobytes()
    assert not np.allclose(first, other)


def small_predictor(table: np.ndarray) -> baselines.Predictor:
    spec = EncoderSpec("mlp", (2,), 16, hidden=(20,))
    body = fit_encoder(spec, table, standardise=True, bandwidth=None, key=jax.random.key(0))
    return baselines.Predictor(body, eqx.nn.Linear(16, 2, key=jax.random.key(1)))


def test_the_loss_is_the_expected_error_over_transitions():
    """Up to what is lost by predicting from s alone: the variance of s' given s."""
    episodes = random_episodes(2)
    counts = count_matrix(episodes, 9)
    table = np.random.default_rng(2).standard_normal((9, 2)).astype(np.float32)
    predictor = small_predictor(table)
    inputs = jax.vmap(predictor.body.features)(jnp.asarray(table))
    left = counts.sum(axis=1, keepdims=True)
    following = counts @ table / left
    _, losses = baselines.train_predictor(
        predictor,
        inputs,
        jnp.asarray(following, jnp.float32),
        jnp.asarray(left[:, 0] / left.sum(), jnp.float32),
        2,
    )
    here, there = transitions_of(episodes)
    predicted = np.asarray(jax.vmap(predictor)(inputs))
    errors = np.sum((predicted[here] - table[there]) ** 2, axis=1)
    unavoidable = np.sum((following[here] - table[there]) ** 2, axis=1)
    assert float(losses[0]) == to_rounding(np.mean(errors - unavoidable), np.mean(errors))
    assert losses[1] < losses[0]


def test_learned_features_go_beyond_the_raw_ones():
    target = walked("position", 10_000)
    learned = measure(successor_features(target, 20, width=128, steps=500), target, 20)
    assert learned["rank"] == 20
    assert learned["gap"] < 2
    assert measure(stacked_transitions(target, 20), target, 20)["gap"] > 10


def test_the_constant_is_among_the_features():
    """Whatever the network, constants lie in the span of all the functions there are."""
    target = walked("position", 2_000)
    found = successor_features(target, 152, width=8, steps=3)
    functions = found.eigenfunctions(target.states)
    assert found.dim == 9
    rest = np.linalg.lstsq(functions, np.ones(152), rcond=None)[1]
    assert float(np.sum(rest)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "dim", "width"), [("index", 2, 256), ("position", 2, 256), ("image", 32, 64), ("image", 33, 256)]
)
def test_the_width_that_is_chosen(kind, dim, width):
    target = walked(kind, 500)
    assert successor_features(target, dim, steps=3).coefficients.shape == (1 + width, dim)


@pytest.mark.parametrize("kind", KINDS)
def test_states_that_were_never_seen_have_finite_functions(kind):
    target = walked(kind, 40)
    assert target.experience is not None
    assert len(np.unique(target.experience.observations)) < 30
    made = [stacked_transitions(target, 20, reading) for reading in ("sampled", "distinct", "literal")]
    for found in [*made, successor_features(target, 20, steps=3)]:
        functions = found.eigenfunctions(target.states)
        assert functions.shape == (152, found.dim)
        assert np.isfinite(functions).all()
        assert np.isfinite(measure(found, target, 20)["gap"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["stacked", "successor"])
def test_functions_take_any_batch_of_the_same_kind(kind, method):
    target = walked(kind, 500)
    assert target.states is not None
    found = stacked_transitions(target, 3) if method == "stacked" else successor_features(target, 3, steps=3)
    whole = found.eigenfunctions(target.states)
    np.testing.assert_allclose(
        found.eigenfunctions(target.states[[5, 5, 151]]), whole[[5, 5, 151]], atol=1e-5
    )
    assert found.eigenfunctions(target.states[:0]).shape == (0, 3)
    assert found.eigenfunctions(jnp.asarray(target.states[:2])).shape == (2, 3)
    if kind == "position":
        assert np.isfinite(found.eigenfunctions(np.array([[0.123, 0.456]]))).all()
    if kind == "image":
        wide = target.states.astype(np.int64)
        np.testing.assert_array_equal(found.eigenfunctions(wide), whole)


@pytest.mark.parametrize(
    ("kind", "observations", "words"),
    [
        ("index", np.array([[1]]), r"shape \(1, 1\)"),
        ("index", np.array([0.5]), "float64"),
        ("index", np.array([0, 152]), "152 .* 151"),
        ("position", np.zeros(2), r"shape \(2,\)"),
        ("position", np.array([[0.0, np.nan]]), "NaN"),
        ("image", np.full((1, 15, 15, 3), 256), "255"),
    ],
)
def test_observations_of_another_kind_are_refused(kind, observations, words):
    found = stacked_transitions(walked(kind, 200), 2)
    with pytest.raises((ConfigError, DatasetError), match=words):
        found.eigenfunctions(observations)


@pytest.mark.parametrize("method", [stacked_transitions, successor_features])
def test_targets_that_do_not_do_are_refused(method):
    chain_alone = open_target("FourRoom", LearnSettings(true_chain=True))
    with pytest.raises(ConfigError, match=r"FourRoom.* transitions"):
        method(chain_alone, 5)
    continuous = Experience(np.random.default_rng(0).standard_normal((50, 3)), [50])
    with pytest.raises(ConfigError, match=r"data.* enumerated"):
        method(Target("data", continuous), 2)
    for dim in (0, -3, 153):
        with pytest.raises(ConfigError, match=f"dim.* 152.* {dim}"):
            method(walked("index", 200), dim)


def test_settings_that_cannot_be_meant_are_refused():
    target = walked("index", 200)
    with pytest.raises(ConfigError, match=r"'leteral'.* literal"):
        inspect.unwrap(stacked_transitions)(target, 2, "leteral")
    for setting in ({"gamma": 1.0}, {"width": 0}, {"steps": -1}):
        ((name, value),) = setting.items()
        with pytest.raises(ConfigError, match=f"{name}.* {value}"):
            successor_features(target, 2, **setting)
    for features, words in ((np.ones((3, 4)), r"152.*\(3, 4\)"), (np.full((152, 2), np.inf), "NaN")):
        with pytest.raises(ConfigError, match=f"features.*{words}|{words}"):
            successor_features(target, 2, features=features)
    with pytest.raises(ConfigError, match=r"features.* indices"):
        successor_features(walked("position", 200), 2, features=np.eye(152))
