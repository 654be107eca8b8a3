import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lapwing.chain import true_chain
from lapwing.envs.gridworld import GridWorld
from lapwing.estimators import make_loss
from lapwing.learning import untrained_encoder
from lapwing.mazes import parse_maze
from lapwing.representation import embed_batch
from lapwing.resolving import resolve
from lapwing.settings import LearnSettings
from lapwing.targets import open_target

MAZE = parse_maze("#######\n#..#..#\n#.....#\n#######\n", name="small")


def prepared(**settings):
    small = {"dim": 3, "oversample": 1, "transitions": 20_000, "hidden": (16,), "fourier_features": 8}
    chosen = LearnSettings(**small, beta=1.5, delta=0.5, **settings)
    target = open_target(MAZE, chosen)
    resolved = resolve(chosen, target)
    encoder = untrained_encoder(target, resolved)
    return target, resolved, encoder, make_loss(target, resolved, encoder)


@eqx.filter_jit
def evaluated(loss, encoder, step, key):
    return loss(encoder, step, key)


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


@pytest.mark.parametrize("estimator", ["sampled", "pairwise"])
def test_the_mean_over_many_steps_is_the_exact_loss(estimator):
    target, settings, encoder, loss = prepared(estimator=estimator, lam=0.0, batch=64)
    steps = jnp.arange(1_500)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(1), steps)
    values = np.asarray(jax.jit(jax.vmap(lambda step, key: loss(encoder, step, key)[0]))(steps, keys))
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
    values = [float(evaluated(one, encoder, 3, jax.random.key(2))[0]) for one in (loss, gathered, continuous)]
    assert values[1] == pytest.approx(values[0], rel=1e-5)
    assert values[2] == pytest.approx(values[0], rel=1e-5)


def test_annealing_starts_at_lam_and_ends_at_lam_final():
    *_, encoder, annealed = prepared(estimator="pairwise", lam=0.0, lam_final=0.9, steps=11)
    for step, lam in ((0, 0.0), (5, 0.45), (10, 0.9)):
        *_, fixed = prepared(estimator="pairwise", lam=lam)
        fixed = dataclasses.replace(fixed, sampler=annealed.sampler)
        wanted, _ = evaluated(fixed, encoder, step, jax.random.key(0))
        value, _ = evaluated(annealed, encoder, step, jax.random.key(0))
        assert float(value) == pytest.approx(float(wanted), rel=1e-4)


def test_the_loss_is_a_pytree_whose_data_are_its_leaves():
    *_, loss = prepared(estimator="pairwise", lam=0.0)
    assert any(leaf.shape == loss.observations.shape for leaf in jax.tree.leaves(loss))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(loss))
