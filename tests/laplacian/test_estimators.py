import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing
from lapwing.data import memory_map as mapped
from lapwing.data.folders import save_episodes
from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian import estimators
from lapwing.laplacian.chain import true_chain
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.encoders import MLP
from lapwing.laplacian.estimators import (
    DiskEstimator,
    ExactEstimator,
    PairEstimator,
    StatesEstimator,
    make_estimator,
)
from lapwing.laplacian.objectives import drawing
from lapwing.laplacian.objectives.graph_drawing import GraphDrawing
from lapwing.laplacian.representation import embed_batch
from lapwing.laplacian.target import open_target
from lapwing.laplacian.train import untrained_encoder
from lapwing.mazes import parse_maze
from lapwing.settings.learn import LearnSettings, ResolvedSettings
from tests.support.rounding import to_rounding

pytestmark = pytest.mark.numeric

MAZE = parse_maze("#######\n#..#..#\n#.....#\n#######\n", name="small")


BETA, DELTA = 1.5, 0.5


def prepared(**settings):
    small = {"dim": 3, "oversample": 1, "transitions": 20_000, "hidden": (16,), "fourier_features": 8}
    chosen = LearnSettings(**small, beta=BETA, delta=DELTA, **settings)
    target = open_target(MAZE, chosen)
    resolved = resolve(chosen, target)
    encoder = untrained_encoder(target, resolved)
    return target, resolved, encoder, make_estimator(target, resolved, encoder)


@eqx.filter_jit
def evaluated(estimator, encoder, step, key):
    """The graph drawing loss of what an estimator gives."""
    return GraphDrawing(BETA, DELTA).loss((), estimator(encoder, step, key))


def phi_of(encoder, observations) -> np.ndarray:
    return embed_batch(encoder, observations).astype(np.float64)


def expected_loss(phi, weights, beta, delta) -> float:
    """G + β · penalty by the definitions, over every pair of states."""
    apart = np.sum((phi[:, None] - phi[None]) ** 2, axis=-1)
    moment = np.einsum("s,si,sj->ij", weights.sum(1), phi, phi)
    return float(0.5 * np.sum(weights * apart) + beta * np.sum((moment - delta * np.eye(phi.shape[1])) ** 2))


@pytest.mark.parametrize("lam", [0.0, 0.8])
def test_exact_is_the_definition_over_all_pairs_of_states(lam):
    target, settings, encoder, loss = prepared(true_chain=True, lam=lam)
    P = GridWorld(MAZE).transition_matrix().toarray()
    P_lam = (1 - lam) * sum(lam**t * np.linalg.matrix_power(P, t + 1) for t in range(400))
    value, parts = evaluated(loss, encoder, 0, jax.random.key(0))
    wanted = expected_loss(phi_of(encoder, target.states), P_lam / len(P), settings.beta, settings.delta)
    assert float(value) == pytest.approx(wanted, rel=1e-5)
    assert float(parts["loss"]) == float(value)


def test_many_states_are_drawn_and_the_mean_is_the_sum_over_all(monkeypatch):
    """Within what chance leaves over so many batches."""
    *_, whole = prepared(lam=0.8)
    assert type(whole) is ExactEstimator
    monkeypatch.setattr(estimators, "ALL_STATES", 8)
    monkeypatch.setattr(estimators, "STATES_DRAWN", 16)
    *_, encoder, drawn = prepared(lam=0.8)
    assert type(drawn) is StatesEstimator
    keys = jax.random.split(jax.random.key(1), 4_000)
    values = np.asarray(jax.jit(jax.vmap(lambda key: evaluated(drawn, encoder, 0, key)[0]))(keys))
    wanted, _ = evaluated(whole, encoder, 0, jax.random.key(0))
    assert values.mean() == pytest.approx(float(wanted), abs=4 * values.std() / np.sqrt(len(values)))
    assert values.std() / np.sqrt(len(values)) < 0.02 * float(wanted)


def test_a_table_is_summed_over_however_many_states_it_has(monkeypatch):
    """A row of a table learns from its own state alone, so each must be there at every step."""
    monkeypatch.setattr(estimators, "ALL_STATES", 8)
    *_, loss = prepared(observation="index")
    assert type(loss) is ExactEstimator


@pytest.mark.parametrize("true_chain", [True, False])
def test_exact_is_the_same_with_the_first_eigenpairs_as_with_all_in_their_span(true_chain, monkeypatch):
    target, settings, _, whole = prepared(lam=0.8, true_chain=true_chain)
    monkeypatch.setattr(estimators, "eigenpairs_known", lambda *_: 6)
    few = make_estimator(target, settings, untrained_encoder(target, settings))
    assert few.functions.shape[1] == 6
    inside = whole.functions[:, :6] @ np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    weights = {"beta": settings.beta, "delta": settings.delta}
    (value, parts), (wanted, _) = (
        drawing.exact_loss(inside, loss.functions, loss.mu, loss.rho, **weights) for loss in (few, whole)
    )
    assert float(value) == to_rounding(float(wanted), *parts.values())


@pytest.mark.parametrize("estimator", ["sampled", "pairwise"])
def test_the_mean_over_many_steps_is_the_exact_loss(estimator):
    target, settings, encoder, loss = prepared(estimator=estimator, lam=0.0, batch=64)
    steps = jnp.arange(1_500)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(1), steps)
    values = np.asarray(
        jax.jit(jax.vmap(lambda step, key: evaluated(loss, encoder, step, key)[0]))(steps, keys)
    )
    weights = true_chain(GridWorld(MAZE).transition_matrix()).weights.toarray()
    wanted = expected_loss(phi_of(encoder, target.states), weights, settings.beta, settings.delta)
    # 20,000 transitions are not the chain itself: some per cent are left to them.
    assert values.mean() == pytest.approx(wanted, rel=0.04)


@pytest.mark.parametrize("estimator", ["sampled", "pairwise"])
def test_the_table_embedded_whole_or_gathered_or_not_enumerated_is_the_same_loss(estimator):
    target, _, encoder, loss = prepared(estimator=estimator, lam=0.5, batch=16)
    assert len(loss.features) <= 2 * 16
    tiled = jnp.tile(loss.features, (20, 1))  # a table larger than the batches: rows are gathered first
    gathered = dataclasses.replace(loss, features=tiled)
    seen = jnp.asarray(target.experience.observe(np.arange(len(target.experience.observations))))
    continuous = dataclasses.replace(loss, features=None, observations=seen)
    values = [evaluated(one, encoder, 3, jax.random.key(2)) for one in (loss, gathered, continuous)]
    expected, parts = values[0]
    for value, _ in values[1:]:
        assert float(value) == to_rounding(float(expected), *parts.values())


def test_annealing_starts_at_lam_and_ends_at_lam_final():
    *_, encoder, annealed = prepared(estimator="pairwise", lam=0.0, lam_final=0.9, steps=11)
    for step, lam in ((0, 0.0), (5, 0.45), (10, 0.9)):
        *_, fixed = prepared(estimator="pairwise", lam=lam)
        fixed = dataclasses.replace(fixed, sampler=annealed.sampler)
        wanted, parts = evaluated(fixed, encoder, step, jax.random.key(0))
        value, _ = evaluated(annealed, encoder, step, jax.random.key(0))
        assert float(value) == to_rounding(float(wanted), *parts.values())


def test_the_loss_is_a_pytree_whose_data_are_its_leaves():
    *_, loss = prepared(estimator="pairwise", lam=0.0)
    assert any(leaf.shape == loss.observations.shape for leaf in jax.tree.leaves(loss))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(loss))


EPISODES, STEPS = 300, 100
SIGMA = 0.15


def walks_on_a_line() -> np.ndarray:
    """Gaussian steps on [0, 1], mirrored at both ends; observations (x, x²)."""
    rng = np.random.default_rng(0)
    free = rng.random((EPISODES, 1)) + np.cumsum(rng.normal(0, SIGMA, (EPISODES, STEPS)), axis=1)
    x = 1 - np.abs(1 - free % 2)
    return np.stack([x, x**2], axis=-1).astype(np.float32)


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    path = tmp_path_factory.mktemp("disk") / "line"
    save_episodes(path, walks_on_a_line())
    return path


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """Observations that tell where they stand in the data."""
    places = np.arange(EPISODES * STEPS, dtype=np.float32).reshape(EPISODES, STEPS)
    return save_episodes(
        tmp_path_factory.mktemp("disk") / "numbered", np.stack([places, places % 7], axis=-1)
    )


def disk_loss(experience, **settings) -> DiskEstimator:
    plain = {"estimator": "pairwise", "lam": 0.8, "batch": 32, "steps": 2_000, "beta": 1.5, "delta": 0.5}
    return DiskEstimator.of(experience, ResolvedSettings(**(plain | settings)))


@pytest.mark.parametrize(("bytes_held", "kind"), [(1 << 29, PairEstimator), (0, DiskEstimator)])
def test_data_in_memory_and_on_disk_have_their_own_loss(line, monkeypatch, bytes_held, kind):
    monkeypatch.setattr(mapped, "IN_MEMORY", bytes_held)
    target = open_target(line, LearnSettings())
    settings = ResolvedSettings(encoder="mlp", estimator="pairwise", dim=2)
    assert type(make_estimator(target, settings, untrained_encoder(target, settings))) is kind


@pytest.mark.parametrize("estimator", ["pairwise", "sampled"])
def test_the_numbers_are_the_same_whatever_the_chunks(numbered, estimator, monkeypatch):
    whole = disk_loss(numbered, estimator=estimator)
    assert whole.most_steps == 20  # a hundredth of the steps
    together = np.asarray(whole.at(100, 120).batches)
    for at_once, chunk in ((1, 1), (5_000, 4), (1 << 26, 7), (1 << 26, 20)):
        monkeypatch.setattr(estimators, "READ_AT_ONCE", at_once)
        loss = disk_loss(numbered, estimator=estimator)
        assert chunk <= loss.most_steps <= max(1, at_once // 512)
        for begin in range(100, 120, chunk):
            end = min(begin + chunk, 120)
            part = np.asarray(loss.at(begin, end).batches)[: end - begin]
            np.testing.assert_array_equal(part, together[begin - 100 : end - 100])


@pytest.mark.parametrize("estimator", ["pairwise", "sampled"])
def test_from_disk_it_is_the_loss_of_the_batches_that_were_drawn(numbered, estimator):
    encoder = MLP(np.array([15_000.0, 3]), np.array([8_000.0, 2]), (16,), 3, key=jax.random.key(0))
    loss = disk_loss(numbered, estimator=estimator)
    chunk = loss.at(40, 60)
    by_definition = getattr(drawing, f"{estimator}_loss")
    for step in (40, 47, 59):
        drawn = np.asarray(chunk.batches)[step - 40]
        assert drawn.shape == ((2 if estimator == "pairwise" else 4), 32, 2)
        phi = [jnp.asarray(embed_batch(encoder, batch)) for batch in drawn]
        wanted, _ = by_definition(*phi, beta=BETA, delta=DELTA)
        value, parts = evaluated(chunk, encoder, step, jax.random.key(0))
        assert float(value) == to_rounding(float(wanted), *parts.values())
        assert set(parts) == {"loss", "graph_drawing", "penalty"}


def test_what_is_read_from_disk_are_pairs_within_episodes_and_any_states(numbered):
    loss = disk_loss(numbered, estimator="sampled", batch=64)
    chunks = [np.asarray(loss.at(begin, begin + 20).batches) for begin in range(0, 400, 20)]
    drawn = np.concatenate(chunks)
    assert (drawn[..., 1] == drawn[..., 0] % 7).all()
    u, v, *states = (drawn[:, kind, :, 0].astype(int).reshape(-1) for kind in range(4))
    np.testing.assert_array_equal(u // STEPS, v // STEPS)
    # τ is geometric, but for the few per cent that an episode's end cuts off.
    assert np.mean(v - u) == pytest.approx(5, rel=0.06)
    assert np.mean(v - u == 1) == pytest.approx(0.2, rel=0.1)
    for places in (u, *states):
        shares = np.bincount(places * 10 // (EPISODES * STEPS), minlength=10) / len(places)
        np.testing.assert_allclose(shares, 0.1, atol=0.01)
    assert np.corrcoef(*states)[0, 1] == pytest.approx(0, abs=0.03)


def test_images_stay_bytes(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (6, 20, 8, 8, 3), dtype=np.uint8)
    chunk = disk_loss(save_episodes(tmp_path, images), steps=200, batch=8).at(0, 2)
    assert chunk.batches.dtype == jnp.uint8
    known = {image.tobytes() for image in images.reshape(-1, 8, 8, 3)}
    drawn = np.asarray(chunk.batches).reshape(-1, 8, 8, 3)
    assert {image.tobytes() for image in drawn} <= known


def line_quality(representation) -> tuple[np.ndarray, np.ndarray]:
    """Of eigenfunctions 1 to 3 the correlation with cos kπx; and their eigenvalues over the exact ones."""
    x = np.linspace(0, 1, 501)
    found = representation.eigenfunctions(np.stack([x, x**2], axis=1).astype(np.float32))
    order = np.arange(1, 4)
    cosines = [abs(np.corrcoef(found[:, k], np.cos(k * np.pi * x))[0, 1]) for k in order]
    exact = 1 - np.exp(-((order * np.pi * SIGMA) ** 2) / 2)
    return np.array(cosines), representation.eigenvalues[1:4] / exact


@pytest.mark.parametrize("bytes_held", [1 << 29, 0])
def test_learning_from_disk_is_as_good_as_from_memory(line, monkeypatch, bytes_held):
    """Against the closed form: mirrored Gaussian steps have the eigenfunctions cos kπx."""
    monkeypatch.setattr(mapped, "IN_MEMORY", bytes_held)
    settings = {"dim": 4, "lam": 0.5, "steps": 600, "batch": 128, "hidden": (32,), "fourier_features": 16}
    cosines, ratios = line_quality(lapwing.learn(line, **settings))
    assert (cosines > 0.97).all()
    np.testing.assert_allclose(ratios, 1, atol=0.1)
