"""DQN's pure functions, against their formulas in NumPy."""

from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.agents.dqn import (
    Learner,
    epsilon_greedy,
    init_learner,
    moved_target,
    not_finite,
    q_spec,
    q_values,
    td_loss,
    td_targets,
    update,
)
from lapwing.errors import ConfigError, NonFiniteError
from lapwing.laplacian.encoders import MLP, ConvNet, Linear, encoder_skeleton

pytestmark = pytest.mark.numeric


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@cache
def table(seed: int = 0) -> Linear:
    return Linear(5, 3, key=jax.random.key(seed))


@cache
def network(seed: int = 0) -> MLP:
    return eqx.filter_jit(MLP)(
        np.array([0.5, -1.0], np.float32), np.ones(2, np.float32), (8,), 3, key=jax.random.key(seed)
    )


def arrays(tree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


class TestTargets:
    @given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
    def test_what_follows_counts_unless_the_episode_terminated(self, seed, gamma):
        rng = np.random.default_rng(seed)
        rewards, following = rng.normal(size=(2, 6)).astype(np.float32)
        terminated = rng.random(6) < 0.5
        following[terminated & (rng.random(6) < 0.5)] = np.inf  # does not matter there
        found = td_targets(jnp.array(rewards), jnp.array(following), jnp.array(terminated), gamma)
        steps = zip(rewards, following, terminated, strict=True)
        expected = [r if end else r + gamma * v for r, v, end in steps]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


class TestLoss:
    @pytest.mark.parametrize("seed", range(3))
    def test_is_the_mean_square_over_the_chosen_actions(self, seed):
        values, targets = numbers(seed, 7, 4), numbers(seed + 10, 7)
        actions = np.random.default_rng(seed).integers(4, size=7)
        expected = np.mean([(values[i, actions[i]] - targets[i]) ** 2 for i in range(7)])
        assert float(td_loss(jnp.array(values), jnp.array(actions), jnp.array(targets))) == pytest.approx(
            expected, rel=1e-5
        )

    def test_its_gradient_is_that_of_the_chosen_actions_alone(self):
        values, targets, actions = numbers(0, 6, 3), numbers(1, 6), np.array([0, 2, 1, 1, 0, 2])
        gradient = jax.jit(jax.grad(td_loss))(jnp.array(values), jnp.array(actions), jnp.array(targets))
        expected = np.zeros((6, 3))
        for row, action in enumerate(actions):
            expected[row, action] = 2 / 6 * (values[row, action] - targets[row])
        np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_values_of_a_batch_are_those_of_each():
    q, seen = network(), numbers(3, 5, 2)
    found = eqx.filter_jit(q_values)(q, jnp.array(seen))
    first, second = ((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in q.layers)
    for row, observation in zip(found, seen, strict=True):
        hidden = np.maximum(first[0] @ (observation - [0.5, -1.0]) + first[1], 0)
        np.testing.assert_allclose(row, second[0] @ hidden + second[1], rtol=1e-4, atol=1e-6)


def make_step(optimiser, seen, actions, targets):
    """`update` on a fixed batch, which hands the values of its first state on."""

    def loss_of(q):
        values = q_values(q, jnp.array(seen))
        return td_loss(values, jnp.array(actions), jnp.array(targets)), values[0]

    return eqx.filter_jit(lambda learner: update(learner, optimiser, loss_of))


class TestUpdate:
    def test_at_first_q_is_its_own_target(self):
        q = table()
        learner = init_learner(q, optax.adam(0.1))
        assert learner.q is q
        assert learner.target is q

    def test_the_first_step_of_adam(self):
        """It goes by the learning rate along the sign of the gradient; what is not in the batch stays."""
        q, optimiser = table(), optax.adam(0.01)
        before = np.asarray(q.weight)
        targets = [before[1, 0] + 1.0, before[1, 2] - 1.0, before[4, 2] + 3.0]
        step = make_step(optimiser, [1, 1, 4], [0, 2, 2], targets)
        learner, loss, more = step(init_learner(q, optimiser))
        moved = np.asarray(learner.q.weight) - before
        expected = np.zeros((5, 3))
        expected[1, 0], expected[1, 2], expected[4, 2] = 0.01, -0.01, 0.01
        np.testing.assert_allclose(moved, expected, atol=1e-6)
        assert float(loss) == pytest.approx((1 + 1 + 9) / 3, rel=1e-5)
        np.testing.assert_array_equal(more, before[1])
        np.testing.assert_array_equal(learner.target.weight, before)


class TestMovedTarget:
    @pytest.mark.parametrize("make", [table, network])
    @pytest.mark.parametrize("rate", [0.0, 0.05, 0.5, 1.0])
    def test_is_the_convex_combination_of_every_array(self, make, rate):
        online, target = make(1), make(2)
        learner = Learner(online, target, (jnp.arange(3.0),))
        moved = eqx.filter_jit(partial(moved_target, rate=rate))(learner)
        assert type(moved.target) is type(target)
        for new, q, old in zip(arrays(moved.target), arrays(online), arrays(target), strict=True):
            np.testing.assert_allclose(new, rate * q + (1 - rate) * old, rtol=1e-5, atol=1e-7)
        for now, before in zip(
            arrays(moved._replace(target=None)), arrays(learner._replace(target=None)), strict=True
        ):
            np.testing.assert_array_equal(now, before)


class TestEpsilonGreedy:
    VALUES = jnp.array([0.1, -3.0, 2.5, 2.4])
    DRAWS = 4_000

    def counts(self, epsilon: float, seed: int = 0) -> np.ndarray:
        keys = jax.random.split(jax.random.key(seed), self.DRAWS)
        draw = jax.jit(jax.vmap(lambda key: epsilon_greedy(self.VALUES, epsilon, key=key)))
        return np.bincount(np.asarray(draw(keys)), minlength=4)

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
    def test_how_often_each_action_is_taken(self, epsilon):
        """Exploration may pick the best too; each count is binomial, and within five deviations."""
        counts = self.counts(epsilon)
        assert counts.sum() == self.DRAWS
        shares = np.full(4, epsilon / 4) + (1 - epsilon) * np.array([0, 0, 1, 0])
        deviation = np.sqrt(self.DRAWS * shares * (1 - shares))
        assert np.all(np.abs(counts - self.DRAWS * shares) <= 5 * deviation)

    def test_the_key_decides(self):
        assert self.counts(1.0, seed=1).tolist() == self.counts(1.0, seed=1).tolist()
        assert self.counts(1.0, seed=1).tolist() != self.counts(1.0, seed=2).tolist()

    def test_of_equal_values_the_first_counts_as_best(self):
        """As NumPy's argmax, by which policies are evaluated."""
        assert int(epsilon_greedy(jnp.array([1.0, 2.0, 2.0]), 0.0, key=jax.random.key(0))) == 1


class TestNetwork:
    @pytest.mark.parametrize(
        ("shape", "n_states", "name", "kind"),
        [((), 7, "linear", Linear), ((2,), None, "mlp", MLP), ((6, 8, 3), None, "conv", ConvNet)],
    )
    def test_is_chosen_by_the_shape_of_an_observation(self, shape, n_states, name, kind):
        spec = q_spec(shape, n_states, 5, (12, 9))
        assert (spec.name, spec.shape, spec.dim, spec.n_states) == (name, shape, 5, n_states)
        q = encoder_skeleton(spec)
        assert isinstance(q, kind)
        seen = jax.ShapeDtypeStruct((3, *shape), np.int32 if shape == () else np.float32)
        assert eqx.filter_eval_shape(q_values, q, seen).shape == (3, 5)

    def test_hidden_are_the_widths_of_the_mlp(self):
        spec = q_spec((2,), None, 4, (12, 9))
        q = encoder_skeleton(spec)
        assert [layer.weight.shape for layer in q.layers] == [(12, 2), (9, 12), (4, 9)]

    def test_other_shapes_are_refused(self):
        with pytest.raises(ConfigError, match=r"\(3, 3\)"):
            q_spec((3, 3), None, 4, (8,))


def test_values_that_run_away_are_named_with_a_remedy():
    error = not_finite(40)
    assert isinstance(error, NonFiniteError)
    assert "step 40" in str(error)
    assert "--learning-rate" in str(error)
