"""Attempts from the fixed starts, against the same steps taken one body at a time."""

import math
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.agents import evaluation
from lapwing.agents.ddpg import act_now
from lapwing.agents.evaluation import EvaluationEpisodes, evaluate_policy, evaluation_steps
from lapwing.envs.arena import BODIES, make_arena, open_arena
from lapwing.envs.simulator import Simulator
from lapwing.laplacian.encoders import MLP, EncoderSpec, init_encoder
from lapwing.mazes import parse_maze

STEPS = 30


@pytest.fixture(autouse=True, scope="module")
def short_episodes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "EPISODE_LENGTH", STEPS)
        yield


@cache
def simulator() -> Simulator:
    return Simulator(open_arena("PointUMaze", fast=True))


def untrained(seed: int = 0) -> MLP:
    spec = EncoderSpec("mlp", (6,), 2, hidden=(8,))
    shift, scale = np.zeros(6, np.float32), np.full(6, 0.5, np.float32)
    actor: Any = init_encoder(spec, shift, scale, 1.0, key=jax.random.key(seed))
    return actor


def constant(push: tuple[float, float]) -> MLP:
    """A policy that pushes the same way everywhere."""

    def last(actor):
        return actor.layers[-1].weight, actor.layers[-1].bias

    return eqx.tree_at(last, untrained(), (jnp.zeros((2, 8)), jnp.arctanh(jnp.array(push, jnp.float32))))


def policy(actor: MLP, observation: np.ndarray) -> np.ndarray:
    """μ(s) in NumPy."""
    values = (observation - np.asarray(actor.shift)) / np.asarray(actor.scale)
    first, second = actor.layers
    values = np.maximum(np.asarray(first.weight) @ values + np.asarray(first.bias), 0)
    return np.tanh(np.asarray(second.weight) @ values + np.asarray(second.bias))


def followed(actor: MLP, starts: np.ndarray, steps: int) -> np.ndarray:
    """(x, y) over time, body by body, by MuJoCo's own step: (steps + 1, starts, 2)."""
    paths = []
    for row in simulator().at_rest(starts):
        path = [row[1:3]]
        for _ in range(steps):
            row = simulator().step_one(row, policy(actor, simulator().observe(row[None])[0]))
            path.append(row[1:3])
        paths.append(path)
    return np.swapaxes(np.array(paths), 0, 1)


LEFT = (-0.999, 0.0)


def attempt(simulator: Simulator, actor: MLP, steps: int | None = None) -> EvaluationEpisodes:
    return evaluate_policy(simulator, partial(act_now, actor), steps=steps)


class TestAttempt:
    @pytest.mark.parametrize("push", [LEFT, (0.25, 0.75), (0.0, 0.0)])
    def test_a_constant_push(self, push):
        arena, found = simulator().arena, attempt(simulator(), constant(push))
        expected = followed(constant(push), found.paths[0], STEPS)
        assert found.paths.shape == (STEPS + 1, 49, 2)
        np.testing.assert_allclose(found.paths, expected, atol=1e-6)
        goal, radius = (-2.0, -2.0), 0.6
        reached = [
            any(math.dist(place, goal) <= radius for place in expected[:, start]) for start in range(49)
        ]
        assert found.reached.tolist() == reached
        np.testing.assert_allclose(found.left, arena.path_lengths(expected[-1]), atol=1e-5)

    def test_starts_are_spread_evenly_over_the_floor_and_at_rest(self):
        """49 in the seven cells, nearest to 48."""
        starts = attempt(simulator(), constant((0.0, 0.0))).paths
        cells, many = np.unique(simulator().arena.cell_at(starts[0]), axis=0, return_counts=True)
        assert len(cells) == 7
        assert (many == 7).all()
        np.testing.assert_array_equal(starts[0], starts[-1])

    def test_a_policy_sees_where_it_is(self):
        actor = untrained(3)
        found = attempt(simulator(), actor)
        some = slice(0, 49, 8)
        expected = followed(actor, found.paths[0, some], 12)
        np.testing.assert_allclose(found.paths[:13, some], expected, atol=1e-3)
        assert np.abs(found.paths[12, some] - found.paths[0, some]).max() > 0.1

    def test_a_maze_of_many_cells_has_a_start_in_each(self):
        text = "\n".join(["#" * 12, *["#" + "." * 10 + "#"] * 9, "#" + "." * 9 + "G#", "#" * 12])
        arena = make_arena(BODIES["Point"], parse_maze(text, name="hall"), fast=True)
        found = attempt(Simulator(arena), constant((0.0, 0.0)), steps=1)
        assert found.paths.shape == (2, 100, 2)
        assert len(np.unique(arena.cell_at(found.paths[0]), axis=0)) == 100


def test_what_is_compiled_is_the_policy():
    actor = untrained(1)
    seen = np.random.default_rng(0).normal(size=(49, 6)).astype(np.float32)
    expected = [policy(actor, each) for each in seen]
    np.testing.assert_allclose(act_now(actor, seen), expected, atol=1e-5)


@given(st.integers(1, 400), st.integers(1, 500))
def test_evaluations_are_regular_and_one_is_at_the_end(steps, every):
    found = evaluation_steps(steps, every)
    assert found.tolist() == [s for s in range(1, steps + 1) if s % every == 0 or s == steps]
