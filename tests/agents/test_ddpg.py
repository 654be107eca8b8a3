"""DDPG's pure functions, against the same networks, gradients and steps of Adam in NumPy."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, truncnorm

from lapwing.agents import ddpg
from lapwing.agents.ddpg import Learner, Networks, Optimisers, Transitions
from lapwing.laplacian.encoders import MLP
from tests.support.rounding import to_rounding

pytestmark = pytest.mark.numeric

SEEN, PUSHED, HIDDEN = 3, 2, (5,)
ACTOR_RATE, CRITIC_RATE = 0.003, 0.01
OPTIMISERS = Optimisers(optax.adam(ACTOR_RATE), optax.adam(CRITIC_RATE))
SPECS = ddpg.network_specs(SEEN, PUSHED, HIDDEN)
GAMMA = 0.9


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


OBSERVATIONS = numbers(0, 40, SEEN) * np.float32([1, 10, 0.1]) + np.float32([0, -5, 2])
"""Of no common scale."""


@cache
def learner(seed: int = 0) -> Learner:
    return ddpg.init_learner(SPECS, OBSERVATIONS, OPTIMISERS, key=jax.random.key(seed))


def some_batch(seed: int = 1, size: int = 6) -> Transitions:
    places = np.random.default_rng(seed).integers(len(OBSERVATIONS), size=(2, size))
    actions = np.tanh(numbers(seed, size, PUSHED))
    here, there = (jnp.asarray(OBSERVATIONS[place]) for place in places)
    return Transitions(here, jnp.asarray(actions), jnp.asarray(numbers(seed + 1, size)), there)


Parameters = list[np.ndarray]
"""Weight and bias of each layer in turn."""


def parameters(network: MLP) -> Parameters:
    return [np.asarray(array, float) for layer in network.layers for array in (layer.weight, layer.bias)]


def through(network: MLP, values: Parameters, inputs) -> np.ndarray:
    """The network with other numbers in its layers."""
    found = (np.asarray(inputs, float) - np.asarray(network.shift)) / np.asarray(network.scale)
    for place in range(0, len(values), 2):
        found = np.maximum(found, 0) if place else found
        found = found @ values[place].T + values[place + 1]
    return found


def policy(actor: MLP, values: Parameters, seen) -> np.ndarray:
    return np.tanh(through(actor, values, seen))


def judged(critic: MLP, values: Parameters, seen, actions) -> np.ndarray:
    return through(critic, values, np.hstack([np.asarray(seen, float), np.asarray(actions, float)]))[:, 0]


def wanted(target: Networks, batch: Transitions, gamma: float) -> np.ndarray:
    actor, (critic,) = target
    following = policy(actor, parameters(actor), batch.next_observations)
    values = judged(critic, parameters(critic), batch.next_observations, following)
    return np.asarray(batch.rewards, float) + gamma * values


def slopes(function, values: Parameters, by: float = 1e-6) -> Parameters:
    """How `function(values)`, a number or an array, changes with each of the numbers."""
    found = []
    for place, array in enumerate(values):
        rows = []
        for index in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in values]
                moved[place][index] += sign * by
                ends.append(function(moved))
            rows.append((ends[0] - ends[1]) / (2 * by))
        found.append(np.array(rows).reshape(*array.shape, *np.shape(rows[0])))
    return found


class TestNetworks:
    def test_their_shapes(self):
        (actor, (critic,)), target, _ = learner()
        for one, other in zip(jax.tree.leaves((actor, critic)), jax.tree.leaves(target), strict=True):
            np.testing.assert_array_equal(one, other)
        assert [layer.weight.shape for layer in actor.layers] == [(5, 3), (2, 5)]
        assert [layer.weight.shape for layer in critic.layers] == [(5, 5), (1, 5)]
        assert SPECS[0].hidden == SPECS[1].hidden == HIDDEN
        assert [len(network.layers) for network in (target.actor, *target.critics)] == [2, 2]

    def test_the_key_decides_and_the_two_do_not_share_it(self):
        online, other = learner(0).online, learner(1).online
        for one, two in ((online.actor, other.actor), (online.actor, online.critics[0])):
            assert not np.isin(np.asarray(one.layers[0].bias), np.asarray(two.layers[0].bias)).any()

    def test_they_standardise_what_they_see_and_leave_actions_as_they_are(self):
        actor, (critic,) = learner().online
        seen = np.asarray(jax.jit(jax.vmap(actor.features))(jnp.asarray(OBSERVATIONS)))
        offset = np.abs(OBSERVATIONS.mean(axis=0) / OBSERVATIONS.std(axis=0)).max()  # subtracted in float32
        np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-6 * offset)
        np.testing.assert_allclose(seen.std(axis=0), 1, atol=1e-5)
        actions = numbers(3, 40, PUSHED)
        pairs = np.asarray(
            jax.jit(jax.vmap(critic.features))(jnp.asarray(np.hstack([OBSERVATIONS, actions])))
        )
        np.testing.assert_array_equal(pairs[:, SEEN:], actions)
        np.testing.assert_allclose(pairs[:, :SEEN], seen, atol=1e-5)

    def test_observations_that_never_change_do_not_divide_by_zero(self):
        constant = np.full((10, SEEN), 7.0, np.float32)
        (actor, (critic,)), *_ = ddpg.init_learner(SPECS, constant, OPTIMISERS, key=jax.random.key(0))
        assert np.asarray(actor.scale).min() > 0
        near = jnp.asarray(constant + np.float32(0.01))
        actions = eqx.filter_jit(ddpg.act)(actor, near)
        assert np.isfinite(actions).all()
        values = np.asarray(eqx.filter_jit(ddpg.q_values)(critic, near, actions))
        assert np.isfinite(values).all()
        assert np.abs(values).max() < 100, "a hundredth off is not taken for much"


class TestActions:
    @given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 100.0, 1e6]))
    def test_lie_between_minus_one_and_one(self, seed, size):
        seen = (size * np.random.default_rng(seed).normal(size=(6, SEEN))).astype(np.float32)
        actor = learner().online.actor
        found = np.asarray(eqx.filter_jit(ddpg.act)(actor, jnp.asarray(seen)))
        assert found.shape == (6, PUSHED)
        assert (np.abs(found) <= 1).all()
        np.testing.assert_allclose(
            found, policy(actor, parameters(actor), seen), atol=1e-3 if size < 1e6 else 1
        )


class TestCriticLoss:
    @pytest.mark.parametrize("gamma", [0.01, 0.5, 0.99])
    @pytest.mark.parametrize("seed", [1, 2])
    def test_is_the_mean_square_against_what_the_target_networks_say(self, seed, gamma):
        (critic,), target, batch = learner(0).online.critics, learner(1).online, some_batch(seed)
        loss, metrics = eqx.filter_jit(ddpg.critic_loss)((critic,), target, batch, gamma)
        values = judged(critic, parameters(critic), batch.observations, batch.actions)
        expected = np.mean((values - wanted(target, batch, gamma)) ** 2)
        assert float(loss) == pytest.approx(expected, rel=1e-4)
        assert float(metrics["critic/loss"]) == float(loss)
        assert float(metrics["critic/q"]) == to_rounding(values.mean(), values)
        assert float(metrics["critic/q_highest"]) == to_rounding(values.max(), values)

    def test_no_gradient_goes_into_the_target(self):
        critics, target, batch = learner(0).online.critics, learner(1).online, some_batch()
        into = eqx.filter_grad(lambda each: ddpg.critic_loss(critics, each, batch, GAMMA)[0])
        gradient = eqx.filter_jit(into)(target)
        assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient))

    def test_of_two_the_lower_value_at_a_smoothed_action_is_wanted(self):
        start = ddpg.init_learner(SPECS, OBSERVATIONS, OPTIMISERS, n_critics=2, key=jax.random.key(0))
        target = ddpg.init_learner(SPECS, OBSERVATIONS, OPTIMISERS, n_critics=2, key=jax.random.key(1)).online
        batch, noise = some_batch(size=30), 3 * numbers(5, 30, PUSHED)
        loss, metrics = eqx.filter_jit(ddpg.critic_loss)(start.online.critics, target, batch, GAMMA, noise)
        there = batch.next_observations
        following = np.clip(policy(target.actor, parameters(target.actor), there) + noise, -1, 1)
        both = [judged(critic, parameters(critic), there, following) for critic in target.critics]
        assert 0 < np.mean(both[0] < both[1]) < 1, "each is the lower one somewhere"
        aim = np.asarray(batch.rewards, float) + GAMMA * np.minimum(*both)
        values = [
            judged(critic, parameters(critic), batch.observations, batch.actions)
            for critic in start.online.critics
        ]
        errors = [np.mean((found - aim) ** 2) for found in values]
        assert abs(errors[0] - errors[1]) > 1e-3, "they began apart"
        assert float(loss) == pytest.approx(sum(errors), rel=1e-4)
        assert float(metrics["critic/q"]) == to_rounding(np.mean(values), np.abs(values))

    def test_the_first_critic_does_not_depend_on_whether_there_is_a_second(self):
        (one,) = learner().online.critics
        first, second = ddpg.init_learner(
            SPECS, OBSERVATIONS, OPTIMISERS, n_critics=2, key=jax.random.key(0)
        ).online.critics
        np.testing.assert_array_equal(one.layers[0].weight, first.layers[0].weight)
        assert not np.isin(np.asarray(first.layers[0].bias), np.asarray(second.layers[0].bias)).any()


class TestActorLoss:
    def test_a_penalty_is_on_what_comes_before_tanh(self):
        (actor, (critic,)), batch = learner().online, some_batch()
        plain, _ = eqx.filter_jit(ddpg.actor_loss)(actor, critic, batch)
        loss, metrics = eqx.filter_jit(ddpg.actor_loss)(actor, critic, batch, 0.7)
        outputs = through(actor, parameters(actor), batch.observations)
        assert float(loss) == pytest.approx(float(plain) + 0.7 * np.mean(outputs**2), rel=1e-4)
        assert float(metrics["actor/saturated"]) == np.mean(np.abs(np.tanh(outputs)) > 0.99)

    def test_is_what_the_critic_says_of_the_policy(self):
        (actor, (critic,)), batch = learner().online, some_batch()
        actions = policy(actor, parameters(actor), batch.observations)
        values = judged(critic, parameters(critic), batch.observations, actions)
        loss, metrics = eqx.filter_jit(ddpg.actor_loss)(actor, critic, batch)
        assert float(loss) == to_rounding(-values.mean(), values)
        assert float(metrics["actor/loss"]) == float(loss)


def adam(value, gradient, first, second, count: int, rate: float):
    """Kingma and Ba, 2015, algorithm 1."""
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient**2
    scaled = (first / (1 - 0.9**count)) / (np.sqrt(second / (1 - 0.999**count)) + 1e-8)
    return value - rate * scaled, first, second


class TestUpdate:
    def test_by_hand_over_three_steps(self):
        """The critic learns from the old target, the actor from the old critic, the target comes last."""
        start, rate, batch = learner(0)._replace(target=learner(1).online), 0.25, some_batch()
        step = eqx.filter_jit(lambda now: ddpg.update(now, OPTIMISERS, batch, GAMMA, rate))
        now, states = start, []
        online = [parameters(network) for network in (start.online.actor, *start.online.critics)]
        target = [parameters(network) for network in (start.target.actor, *start.target.critics)]
        moments = [[(np.zeros(v.shape), np.zeros(v.shape)) for v in values] for values in online]
        (actor, (critic,)), seen = start.online, batch.observations
        for count in (1, 2, 3):
            now, metrics = step(now)
            states.append(now)
            following = policy(actor, target[0], batch.next_observations)
            aim = np.asarray(batch.rewards) + GAMMA * judged(
                critic, target[1], batch.next_observations, following
            )
            judge = online[1]

            def actor_loss(values, judge=judge):
                return -judged(critic, judge, seen, policy(actor, values, seen)).mean()

            def critic_loss(values, aim=aim):
                return np.mean((judged(critic, values, seen, batch.actions) - aim) ** 2)

            assert float(metrics["critic/loss"]) == pytest.approx(critic_loss(judge), rel=1e-3)
            assert float(metrics["actor/loss"]) == pytest.approx(actor_loss(online[0]), rel=1e-3)
            gradients = [slopes(actor_loss, online[0]), slopes(critic_loss, judge)]
            for which, learning_rate in enumerate((ACTOR_RATE, CRITIC_RATE)):
                for place, gradient in enumerate(gradients[which]):
                    some = np.abs(gradient[np.abs(gradient) > 1e-9])
                    assert some.min(initial=1) > 1e-5, "too near zero for single precision: another seed"
                    online[which][place], *moment = adam(
                        online[which][place], gradient, *moments[which][place], count, learning_rate
                    )
                    moments[which][place] = tuple(moment)
                target[which] = [
                    rate * new + (1 - rate) * old
                    for new, old in zip(online[which], target[which], strict=True)
                ]
            for network, expected in zip((now.online.actor, *now.online.critics), online, strict=True):
                for one, other in zip(parameters(network), expected, strict=True):
                    np.testing.assert_allclose(one, other, atol=2e-5)
            for network, expected in zip((now.target.actor, *now.target.critics), target, strict=True):
                for one, other in zip(parameters(network), expected, strict=True):
                    np.testing.assert_allclose(one, other, atol=2e-5)
        ends = ((each.online.actor, *each.online.critics) for each in (states[-1], start))
        for network, before in zip(*ends, strict=True):
            np.testing.assert_array_equal(network.shift, before.shift)
            np.testing.assert_array_equal(network.scale, before.scale)


def test_a_problem_of_one_step_is_soon_solved():
    """The reward is -(a - ½)², whatever the state, and little is left of what follows."""
    optimisers = Optimisers(optax.adam(0.001), optax.adam(0.02))
    rng, steps = np.random.default_rng(0), 600
    seen = rng.normal(size=(256, 2)).astype(np.float32)
    specs = ddpg.network_specs(2, 1, (32,))
    start = ddpg.init_learner(specs, seen, optimisers, key=jax.random.key(0))
    here, there = seen[rng.integers(256, size=(2, steps, 64))]
    actions = rng.uniform(-1, 1, (steps, 64, 1)).astype(np.float32)
    batches = Transitions(here, actions, -((actions[..., 0] - 0.5) ** 2), there)
    _, static = eqx.partition(start, eqx.is_array)

    def step(arrays, batch):
        now, metrics = ddpg.update(eqx.combine(arrays, static), optimisers, batch, 0.01, 0.1)
        return eqx.filter(now, eqx.is_array), metrics["critic/loss"]

    run = jax.jit(lambda arrays, batches: jax.lax.scan(step, arrays, batches))
    arrays, losses = run(eqx.filter(start, eqx.is_array), batches)
    end, act = eqx.combine(arrays, static), eqx.filter_jit(ddpg.act)
    before, after = (np.asarray(act(each.online.actor, jnp.asarray(seen))) for each in (start, end))
    assert np.abs(before - 0.5).mean() > 0.3
    assert np.abs(after - 0.5).mean() < 0.1
    assert np.abs(after - 0.5).max() < 0.2
    assert float(losses[-1]) < 0.01 * float(losses[0])


def walk(settle: float, spread: float, steps: int, size: int = 1_000) -> np.ndarray:
    """The process from 0, step by step, for many bodies at once."""
    generator, noise, found = np.random.default_rng(0), np.zeros((size // 2, 2)), []
    for _ in range(steps):
        noise = ddpg.next_noise(noise, settle, spread, generator)
        found.append(noise)
    return np.array(found).reshape(steps, size)


class TestNoise:
    def test_smoothing_is_normal_and_cut_off(self):
        noise = ddpg.smoothing_noise((200, 50, 2), np.random.default_rng(0))
        assert noise.dtype == np.float32
        assert np.abs(noise).max() == 0.5
        inside = noise[np.abs(noise) < 0.5] / 0.2
        assert kstest(inside[:2_000], truncnorm(-2.5, 2.5).cdf).pvalue > 1e-3

    @pytest.mark.parametrize(("settle", "spread"), [(0.15, 0.2), (0.5, 1.0), (1.0, 0.3)])
    def test_settles_to_its_variance_and_forgets_at_its_rate(self, settle, spread):
        noise = walk(settle, spread, 160)[60:]
        kept = 1 - settle
        assert noise.var() == pytest.approx(spread**2 / (1 - kept**2), rel=0.04)
        assert abs(noise.mean()) < 0.02 * max(1.0, noise.std() / settle)
        for lag in (1, 3):
            correlation = np.mean(noise[lag:] * noise[:-lag]) / noise.var()
            assert correlation == pytest.approx(kept**lag, abs=0.02)

    def test_what_a_step_adds_is_normal_and_independent(self):
        noise = walk(0.15, 0.2, 21, 200)
        added = (noise[1:] - 0.85 * noise[:-1]) / 0.2
        assert kstest(added.ravel(), "norm").pvalue > 1e-3
        assert abs(np.corrcoef(added[:, ::2].ravel(), added[:, 1::2].ravel())[0, 1]) < 0.06
