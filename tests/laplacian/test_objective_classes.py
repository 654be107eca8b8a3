"""One battery for every objective: its minimum, its estimates without bias, jit, and resuming."""

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lapwing
from lapwing.errors import ConfigError
from lapwing.laplacian import train as learning
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.objectives import name_of
from lapwing.laplacian.objectives.allo import Allo
from lapwing.laplacian.objectives.batch import (
    ExactBatch,
    PairwiseBatch,
    SampledBatch,
    StatesBatch,
    prefix_weights,
)
from lapwing.laplacian.objectives.checks import checked_metrics
from lapwing.laplacian.objectives.generalised import Generalised
from lapwing.laplacian.objectives.graph_drawing import GraphDrawing
from lapwing.laplacian.objectives.nested import NestedLowRank
from lapwing.laplacian.objectives.omm import OrbitalMinimisation
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import OBJECTIVES, LearnSettings
from tests.support.interruptions import Interrupted, stop_at
from tests.support.training import Kept


@dataclass(frozen=True)
class Mine:
    """As a user would write one: the generalised objective with a state that counts the steps."""

    weight: float = 1.0

    def init(self, d):
        return {"steps": jnp.zeros(())}

    def loss(self, state, batch):
        one, other = batch.samples()
        drawing = (one.drawing() + other.drawing()) / 2
        weights, identity = prefix_weights(len(drawing)), jnp.eye(len(drawing))
        squares = (one.moment() - identity) * (other.moment() - identity)
        loss = jnp.diag(weights) @ drawing + self.weight * jnp.sum(weights * squares)
        return loss, {"loss": loss, "steps": state["steps"]}

    def update(self, state, batch):
        return {"steps": state["steps"] + 1}

    def eigenvalues(self, state, moment):
        return None


ALL = {
    "graph-drawing": GraphDrawing(1.5, 0.8),
    "generalised": Generalised(1.5, 0.8),
    "allo": Allo(2.0, 0.8),
    "omm": OrbitalMinimisation(),
    "nested": NestedLowRank(),
    "mine": Mine(),
}
every_objective = pytest.mark.parametrize("objective", ALL.values(), ids=ALL.keys())


@pytest.fixture
def double_precision():
    with jax.enable_x64(True):
        yield


def walk(seed: int, size: int) -> np.ndarray:
    """W of a random reversible walk that is drawn to stay near where it is."""
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    weights = np.random.default_rng(seed).exponential(size=(size, size)) * np.exp(-1.5 * distance)
    return (weights + weights.T) / (2 * weights.sum())


def spectrum(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f_k, μ_k and ρ, by a dense symmetric solver."""
    rho = weights.sum(axis=1)
    root = np.sqrt(rho)
    mu, vectors = np.linalg.eigh(weights / np.outer(root, root))
    return vectors[:, ::-1] / root[:, None], mu[::-1], rho


def minimised(objective, weights: np.ndarray, d: int, steps: int = 6_000):
    """φ as a table, and the state, after Adam on the expectation itself."""
    known = tuple(map(jnp.asarray, spectrum(weights)))
    adam = optax.adam(optax.cosine_decay_schedule(0.03, steps))
    phi = jnp.asarray(np.random.default_rng(0).standard_normal((len(weights), d)))

    def step(_, carry):
        phi, optimiser, state = carry
        gradient = jax.grad(lambda phi: objective.loss(state, ExactBatch(phi, *known))[0])(phi)
        updates, optimiser = adam.update(gradient, optimiser)
        return phi + updates, optimiser, objective.update(state, ExactBatch(phi, *known))

    begin = (phi, adam.init(phi), objective.init(d))
    phi, _, state = jax.jit(lambda begin: jax.lax.fori_loop(0, steps, step, begin))(begin)
    return np.asarray(phi), state


@every_objective
@pytest.mark.usefixtures("double_precision")
def test_the_minimum_over_tables_is_the_exact_eigenfunctions(objective):
    """Each column is one, in order; of graph drawing, which any rotation minimises, the span is theirs."""
    weights, d = walk(3, 8), 3
    exact, mu, rho = spectrum(weights)
    assert np.min(-np.diff(mu[: d + 1])) > 0.05
    phi, state = minimised(objective, weights, d)
    sizes = np.sqrt(rho @ phi**2)
    overlaps = np.abs(exact.T @ (rho[:, None] * phi / sizes))[:d]
    if isinstance(objective, GraphDrawing):
        basis = np.linalg.qr(np.sqrt(rho)[:, None] * phi)[0]
        overlaps = np.linalg.svd(basis.T @ (np.sqrt(rho)[:, None] * exact[:, :d]), compute_uv=False)
        np.testing.assert_allclose(overlaps, 1, atol=1e-6)
    else:
        np.testing.assert_allclose(overlaps, np.eye(d), atol=1e-3)
    known = objective.eigenvalues(state, jnp.asarray(phi.T @ (rho[:, None] * phi)))
    if isinstance(objective, Generalised | NestedLowRank):
        np.testing.assert_allclose(known, 1 - mu[:d], atol=1e-4)
    elif not isinstance(objective, Allo):
        assert known is None


@pytest.mark.usefixtures("double_precision")
def test_the_duals_of_allo_become_the_eigenvalues():
    """With steps that are large enough to get there: the published ones take 20,000 of φ."""
    weights, d = walk(3, 8), 3
    objective = Allo(dual_rate=0.05, barrier_rate=0.0)
    phi, state = minimised(objective, weights, d)
    _, mu, rho = spectrum(weights)
    np.testing.assert_allclose(objective.eigenvalues(state, jnp.eye(d)), 1 - mu[:d], atol=1e-3)
    np.testing.assert_allclose(phi.T @ (rho[:, None] * phi), np.eye(d), atol=1e-2)


@pytest.mark.usefixtures("double_precision")
def test_the_barrier_of_allo_grows_by_the_errors_that_are_left():
    objective, phi = (
        Allo(barrier=2.0, barrier_rate=0.5),
        jnp.asarray(np.random.default_rng(0).standard_normal((8, 3))),
    )
    batch = ExactBatch(phi, *map(jnp.asarray, spectrum(walk(3, 8))))
    first = objective.update(objective.init(3), batch)
    errors = np.tril(np.asarray(phi).T @ (np.asarray(batch.rho)[:, None] * np.asarray(phi)) - np.eye(3))
    assert float(first.barrier) == pytest.approx(2 + 0.5 * np.mean(errors**2))
    np.testing.assert_allclose(first.duals, 1e-4 * errors, atol=1e-12)


PAIRS = np.random.default_rng(0).dirichlet(np.ones(9) / 2).reshape(3, 3)
SYMMETRIC = (PAIRS + PAIRS.T) / 2
RHO = SYMMETRIC.sum(axis=1)


def every_batch(kind: str):
    """Every batch that can be drawn over three states, as functions of φ, with the chance of each."""
    functions, mu, _ = spectrum(SYMMETRIC)
    pairs = np.array(list(itertools.product(range(3), repeat=2)))
    if kind == "states":
        drawn = np.array(list(itertools.product(range(3), repeat=4)))
        return (
            drawn,
            RHO[drawn].prod(axis=1),
            lambda phi, at: StatesBatch(phi[at], jnp.asarray(functions)[at], jnp.asarray(mu)),
        )
    twice = np.array(list(itertools.product(range(9), repeat=2)))
    ends, chance = pairs[twice], PAIRS.ravel()[twice].prod(axis=1)  # two pairs, and their two ends
    if kind == "pairwise":
        return ends, chance, lambda phi, at: PairwiseBatch(phi[at[:, 0]], phi[at[:, 1]])
    states = np.array(list(itertools.product(range(3), repeat=4)))
    drawn = np.concatenate(
        [np.repeat(ends.reshape(-1, 4), len(states), axis=0), np.tile(states, (len(ends), 1))], axis=1
    )
    chance = np.repeat(chance, len(states)) * np.tile(RHO[states].prod(axis=1), len(ends))

    def sampled(phi, at):
        return SampledBatch(phi[at[:4:2]], phi[at[1:4:2]], phi[at[4:6]], phi[at[6:]])

    return drawn, chance, sampled


@every_objective
@pytest.mark.parametrize("kind", ["pairwise", "sampled", "states"])
@pytest.mark.usefixtures("double_precision")
def test_estimates_of_the_loss_and_its_gradient_are_without_bias(objective, kind):
    """Summed over every batch that can be drawn, with its chance, they are those of the expectation."""
    drawn, chance, batch = every_batch(kind)
    assert chance.sum() == pytest.approx(1)
    phi = jnp.asarray(np.random.default_rng(1).standard_normal((3, 2)))
    known = tuple(map(jnp.asarray, spectrum(SYMMETRIC)))
    exact = ExactBatch(phi, *known)
    state = objective.update(objective.init(2), exact)  # with duals that are not 0

    def mean(phi):
        losses = jax.vmap(lambda at: objective.loss(state, batch(phi, at))[0])(jnp.asarray(drawn))
        return jnp.asarray(chance) @ losses

    value, gradient = jax.jit(jax.value_and_grad(mean))(phi)
    wanted, wanted_gradient = jax.value_and_grad(
        lambda phi: objective.loss(state, ExactBatch(phi, *known))[0]
    )(phi)
    assert float(value) == pytest.approx(float(wanted), rel=1e-9)
    np.testing.assert_allclose(gradient, wanted_gradient, atol=1e-9)


@every_objective
def test_under_jit_it_is_the_same_and_the_state_keeps_its_form(objective):
    rng = np.random.default_rng(0)
    batch = PairwiseBatch(*(jnp.asarray(rng.standard_normal((16, 3)), jnp.float32) for _ in range(2)))
    state = objective.init(3)
    (loss, metrics), compiled = objective.loss(state, batch), jax.jit(objective.loss)(state, batch)
    assert float(compiled[0]) == pytest.approx(float(loss), rel=1e-4)
    assert checked_metrics(objective, state, batch) == tuple(sorted(metrics))
    assert jax.tree.structure(jax.jit(objective.update)(state, batch)) == jax.tree.structure(state)


SMALL: dict[str, Any] = {
    **{"transitions": 3_000, "dim": 3, "lam": 0.5, "steps": 60, "hidden": (16,)},
    **{"batch": 32, "encoder": "mlp", "estimator": "pairwise"},
}


def bits(trained) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(trained.encoder)]


@pytest.mark.parametrize("name", [*OBJECTIVES[1:], "mine"])
def test_resuming_gives_the_same_bits(name, monkeypatch):
    """What the objective itself has learned is in the checkpoint."""
    monkeypatch.setattr(learning, "CHUNKS", 12)
    own = ALL["mine"] if name == "mine" else None
    settings = LearnSettings.from_keywords(SMALL | {"objective": name_of(own or name)})
    target = open_target("OneRoom", settings)
    train = partial(learning.train, target, resolve(settings, target), objective=own)
    kept = Kept()
    whole = train(checkpoints=kept)
    again = Kept(states=[one for one in kept.states if one[1] == 25])
    assert bits(train(checkpoints=again)) == bits(whole)
    assert again.rows[0]["step"] == 30
    if own is not None:
        assert again.rows[-1]["steps"] == 57  # the mean of 55 to 59: none was counted twice or left out


def test_learning_with_each_name_from_the_chain_itself():
    """Without Rayleigh-Ritz the functions are single eigenfunctions; with it too, which is tried of one."""
    maze = lapwing.parse_maze("#######\n#..#..#\n#.....#\n#..####\n#######\n", name="small")
    for name, rotate in [*((name, False) for name in OBJECTIVES[1:]), ("allo", True)]:
        settings = {"observation": "index", "true_chain": True, "dim": 3, "oversample": 0, "lam": 0.8}
        rep = lapwing.learn(maze, objective=name, rotate=rotate, steps=1_500, learning_rate=0.03, **settings)
        target = open_target(maze, LearnSettings(observation="index", true_chain=True))
        found = lapwing.evaluate(rep, target)
        assert min(found["cosine"]) > 0.99, name
        assert rep.config["settings"]["objective"] == name


def test_a_run_of_your_own_objective_is_resumed_with_the_object(tmp_path):
    """The settings have its name and its fields; another one cannot resume it, nor its name alone."""
    learn = partial(lapwing.learn, "OneRoom", out=tmp_path / "run", **SMALL)
    with pytest.raises(Interrupted):
        learn(objective=Mine(2.0), on_progress=stop_at("learning", 30))
    for other in (Mine(3.0), name_of(Mine(2.0))):
        with pytest.raises(ConfigError, match="objective"):
            learn(objective=other, resume=True)
    rep = learn(objective=Mine(2.0), resume=True)
    assert rep.config["settings"]["objective"].endswith(":Mine(weight=2.0)")


class OnlyALoss:
    def loss(self, state, batch):
        return 0.0


class NoMetrics(Mine):
    def loss(self, state, batch):
        return super().loss(state, batch)[0]


class Growing(Mine):
    def update(self, state, batch):
        return {"steps": jnp.append(state["steps"], 1.0)}


@pytest.mark.parametrize(
    ("objective", "names"),
    [
        (OnlyALoss(), "init, update, eigenvalues"),
        (Mine, "object of it"),
        (3, "init"),
        ("alo", "allo"),
        (NoMetrics(), "loss must return"),
        (Growing(), "update must return"),
    ],
    # Not of the objects themselves, whose text differs from worker to worker.
    ids=["loss alone", "class", "number", "unknown name", "no metrics", "growing"],
)
def test_what_is_no_objective_is_refused(objective, names):
    with pytest.raises(ConfigError, match=names):
        lapwing.learn("OneRoom", objective=objective, **SMALL)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"objective": "allo", "estimator": "closed-form"}, "objective"),
        ({"objective": "omm", "beta": 2.0}, "beta"),
        ({"objective": "nested", "delta": 0.5}, "delta"),
        ({"objective": "allo", "bumps": (150,)}, "objective"),
    ],
    ids=str,
)
def test_an_objective_that_does_not_go_with_another_setting_is_refused(settings, field):
    with pytest.raises(ConfigError, match=field):
        lapwing.learn("PlaneOneRoom", transitions=500, **settings)


def test_another_objective_takes_gradient_steps_where_the_default_would_not():
    settings = LearnSettings(objective="omm", transitions=500)
    resolved = resolve(settings, open_target("PlaneOneRoom", settings))
    assert resolved.estimator == "pairwise"
