import dataclasses
import warnings
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import spearmanr

from lapwing.errors import LapwingWarning, NonFiniteError
from lapwing.laplacian import estimators
from lapwing.laplacian import train as learning
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.evaluate import exact_spectrum, objective_gap, random_gap
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.target import Target, open_target
from lapwing.laplacian.train import Trained, TrainState, make_optimiser, train
from lapwing.mazes import Maze, parse_maze
from lapwing.settings.learn import LearnSettings, ResolvedSettings
from tests.support import exact
from tests.support.rounding import to_rounding

ESTIMATORS = ("exact", "pairwise", "sampled")
SMALL = {"transitions": 5_000, "dim": 4, "steps": 60, "hidden": (16,), "fourier_features": 16, "batch": 64}


@cache
def opened(maze: str = "FourRoom", **settings) -> tuple[Target, ResolvedSettings]:
    chosen = LearnSettings.from_keywords(settings)
    target = open_target(maze, chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        return target, resolve(chosen, target)


def small(estimator: str, **settings) -> tuple[Target, ResolvedSettings]:
    return opened(**(SMALL | {"estimator": estimator} | settings))


@cache
def small_bits(estimator: str) -> list[bytes]:
    return bits(train(*small(estimator)))


def bits(trained: Trained) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(eqx.filter(trained.encoder, eqx.is_array))]


class Kept:
    """Checkpoints in memory; the process is cut off at some step."""

    def __init__(self, until: int | None = None, states: list | None = None):
        self.until = until
        self.states = [] if states is None else states
        self.rows = []

    def restore(self, like: TrainState):
        return self.states[-1] if self.states else None

    def record(self, row):
        self.rows.append(row)

    def keep(self, state: TrainState, step: int, seconds: float, *, last: bool) -> None:
        self.states.append((state, step, seconds))
        if self.until is not None and step >= self.until:
            raise KeyboardInterrupt


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_different_seeds_differ(estimator):
    target, settings = small(estimator)
    other = bits(train(target, dataclasses.replace(settings, seed=1)))
    assert all(a != b for a, b in zip(other, small_bits(estimator), strict=True) if len(a) > 64)


@pytest.mark.parametrize(
    ("estimator", "chunks"),
    [("exact", 7), ("sampled", 7), ("pairwise", 1), ("pairwise", 7), ("pairwise", 1_000)],
)
def test_the_chunk_size_does_not_change_the_bits(estimator, chunks, monkeypatch):
    monkeypatch.setattr(learning, "CHUNKS", chunks)
    assert bits(train(*small(estimator))) == small_bits(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_going_on_from_a_checkpoint_gives_the_same_bits(estimator, monkeypatch):
    monkeypatch.setattr(learning, "CHUNKS", 12)
    cut = Kept(until=25)
    with pytest.raises(KeyboardInterrupt):
        train(*small(estimator), checkpoints=cut)
    assert cut.rows[-1]["step"] == 25
    going_on = Kept(states=cut.states)
    assert bits(train(*small(estimator), checkpoints=going_on)) == small_bits(estimator)
    assert [row["step"] for row in going_on.rows] == list(range(30, 61, 5))


def test_states_that_are_drawn_give_the_same_bits_after_a_checkpoint(monkeypatch):
    monkeypatch.setattr(estimators, "ALL_STATES", 100)
    monkeypatch.setattr(estimators, "STATES_DRAWN", 32)
    monkeypatch.setattr(learning, "CHUNKS", 12)
    whole, cut = bits(train(*small("exact"))), Kept(until=25)
    assert whole != small_bits("exact")
    with pytest.raises(KeyboardInterrupt):
        train(*small("exact"), checkpoints=cut)
    assert bits(train(*small("exact"), checkpoints=Kept(states=cut.states))) == whole


def test_a_finished_checkpoint_is_not_trained_further():
    kept = Kept()
    first = train(*small("exact"), checkpoints=kept)
    again = Kept(states=kept.states)
    second = train(*small("exact"), checkpoints=again)
    assert bits(second) == bits(first)
    assert again.rows == []
    assert second.learn_seconds == first.learn_seconds


TWO_SMALL_ROOMS = """
#########
#...#...#
#.......#
#...#...#
#########
"""


def learned_functions(maze: str | Maze, **settings):
    """The eigenfunctions over all states, with the target."""
    chosen = LearnSettings.from_keywords(settings)
    target = open_target(maze, chosen)
    representation = learn_target(target, chosen)
    return representation.eigenfunctions(target.states).astype(np.float64), target


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"observation": "index", "steps": 600, "learning_rate": 0.03}, 0.9999),
        ({"observation": "position", "steps": 300}, 0.999),
    ],
)
def test_exact_recovers_the_eigenfunctions_of_the_true_chain(settings, least):
    functions, _ = learned_functions("FourRoom", true_chain=True, dim=4, **settings)
    assert exact.projection_lengths(functions, "FourRoom", 4).min() > least
    np.testing.assert_allclose(np.mean(functions**2, axis=0), 1.0, rtol=1e-3)


@pytest.mark.slow
def test_exact_recovers_the_eigenfunctions_from_images():
    maze = parse_maze(TWO_SMALL_ROOMS, name="two small rooms")
    functions, target = learned_functions(maze, true_chain=True, dim=3, steps=600, observation="image")
    chain = target.truth()
    assert chain is not None
    matrix = np.asarray(chain.kernel()) / len(functions)
    _, vectors = np.linalg.eigh(matrix)
    for index in range(3):
        cosine = vectors[:, -1 - index] @ functions[:, index] / np.linalg.norm(functions[:, index])
        assert abs(cosine) > 0.999


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"estimator": "exact", "steps": 300}, 0.002),
        ({"estimator": "pairwise", "steps": 400}, 0.01),
        ({"estimator": "sampled", "steps": 400}, 0.05),
        ({"estimator": "pairwise", "observation": "index", "steps": 400, "learning_rate": 0.03}, 0.01),
        ({"estimator": "exact", "encoder": "mlp", "steps": 400}, 0.05),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_each_estimator_comes_near_the_eigenspace(settings, share):
    """How much of a random basis's gap is left, from 100,000 transitions and a small budget."""
    functions, target = learned_functions("FourRoom", transitions=100_000, dim=4, **settings)
    chain = target.truth()
    assert chain is not None
    spectrum = exact_spectrum(chain, 4)
    assert objective_gap(spectrum, functions, 4) < share * random_gap(spectrum, 4)


@pytest.mark.parametrize(
    ("maze", "survivors", "correlation"),
    [("OneRoom", 9, 0.622), ("TwoRoom", 11, 0.852), ("HardMaze", 15, 0.683)],
)
def test_the_penalty_is_a_soft_threshold_on_the_spectrum(maze, survivors, correlation):
    """a_i² = max(0, δ - λ_i/(2β)): which dimensions survive, how large, and what distance they give."""
    beta, delta, lam = 5.0, 0.05, 0.9
    target, settings = opened(
        maze,
        true_chain=True,
        observation="index",
        dim=20,
        lam=lam,
        beta=beta,
        delta=delta,
        learning_rate=0.03,
        steps=1_000,
    )
    kept = Kept()
    encoder = train(target, settings, checkpoints=kept).encoder
    phi = np.stack([np.asarray(encoder.network(encoder.features(s))) for s in range(3)])
    np.testing.assert_array_equal(phi, np.asarray(encoder.weight)[:3])

    phi = np.asarray(encoder.weight, np.float64)
    sizes = np.linalg.eigvalsh(phi.T @ phi / len(phi))[::-1]
    eigenvalues = exact.multi_step(exact.spectrum(maze)[0][:25], lam)
    np.testing.assert_allclose(sizes, np.maximum(0, delta - eigenvalues / (2 * beta)), atol=1e-4 * delta)
    assert kept.rows[-1]["surviving_dimensions"] == survivors

    assert target.world is not None
    goal = target.world.goal_state
    assert goal is not None
    found = spearmanr(np.linalg.norm(phi - phi[goal], axis=1), exact.steps_to(maze, goal)).statistic
    assert found == pytest.approx(correlation, abs=0.0015)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_metrics_of_a_run(estimator, monkeypatch):
    monkeypatch.setattr(learning, "CHUNKS", 10)
    target, settings = small(estimator)
    kept, calls = Kept(), []
    trained = train(target, settings, checkpoints=kept, on_chunk=lambda *call: calls.append(call))
    assert [row["step"] for row in kept.rows] == list(range(6, 61, 6))
    assert calls.pop(0)[:2] == (0, 60)
    assert [(step, steps) for step, steps, _ in calls] == [(row["step"], 60) for row in kept.rows]
    assert [row for _, _, row in calls] == kept.rows
    for row in kept.rows:
        assert {"loss", "graph_drawing", "penalty", "steps_per_second"} <= row.keys()
        drawing, penalty = row["graph_drawing"], settings.beta * row["penalty"]
        assert row["loss"] == to_rounding(drawing + penalty, drawing, penalty)
        assert row["steps_per_second"] > 0
        assert row["orthonormality_error"] >= 0
        assert 0 <= row["surviving_dimensions"] <= settings.dim + settings.oversample
        assert all(np.isfinite(value) for value in row.values())
    assert kept.rows[-1]["loss"] < kept.rows[0]["loss"]
    assert kept.rows[-1]["seconds"] == trained.learn_seconds
    assert np.all(np.diff([row["seconds"] for row in kept.rows]) > 0)
    assert trained.compile_seconds > 0


@pytest.mark.parametrize(("steps", "chunks"), [(1, 100), (50, 1)])
def test_a_loss_that_blows_up_names_the_step(steps, chunks, monkeypatch):
    """At step 0 the loss is finite and the update huge; whether a chunk ends there or not, step 1 is bad."""
    monkeypatch.setattr(learning, "CHUNKS", chunks)
    kept = Kept()
    with pytest.raises(NonFiniteError, match=r"step 1;.* --learning-rate"):
        train(*small("exact", learning_rate=1e30, steps=steps), checkpoints=kept)
    assert kept.rows == []
    assert kept.states == []


@pytest.mark.parametrize(
    ("schedule", "sizes"),
    [("constant", np.full(10, 0.1)), ("cosine", 0.05 * (1 + np.cos(np.pi * np.arange(10) / 10)))],
)
def test_the_schedule_of_the_step_size(schedule, sizes):
    """Under a gradient that stays 1, Adam moves by just the step size."""
    optimiser = make_optimiser(ResolvedSettings(schedule=schedule, learning_rate=0.1, steps=10))
    weight = jnp.zeros(1)
    state = optimiser.init(weight)
    for size in sizes:
        update, state = optimiser.update(jnp.ones(1), state, weight)
        assert float(update[0]) == pytest.approx(-size, abs=1e-5)
