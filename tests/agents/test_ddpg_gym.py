"""DDPG on Gymnasium environments: which spaces, actions within them, and values of one-step episodes."""

import dataclasses

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium.spaces import Box, Dict

from lapwing.agents import ddpg
from lapwing.agents.ddpg_gym import REPORTS, checked_bounds, train_on_env
from lapwing.data.action_spaces import Bounds
from lapwing.errors import ConfigError, DatasetError, NonFiniteError
from lapwing.settings.agents import CONTROL_PRESETS, ResolvedControl

QUICK = CONTROL_PRESETS["quick"]


def settings(**values) -> ResolvedControl:
    small = {"steps": 320, "evaluate_every": 320, "random_steps": 160, "hidden": (16,), "batch": 32}
    return ResolvedControl(**vars(QUICK) | small | values)


class OneStep(gymnasium.Env):
    """Episodes of one step, which terminate: the reward is 1 - (a - 0.4)², whatever the state."""

    def __init__(self, low: float = -1.0, high: float = 1.0):
        self.observation_space = Box(-1, 1, (2,), np.float32)
        self.action_space = Box(low, high, (1,), np.float32)
        self.taken: list[float] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.append(float(action[0]))
        reward = 1 - (float(action[0]) - 0.4) ** 2
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), reward, True, False, {}


def test_the_best_action_of_one_step_is_found():
    actor, spec = train_on_env(OneStep, settings(steps=3_200, evaluate_every=3_200, actor_rate=1e-3))
    chosen = np.asarray(ddpg.act_now(actor, np.zeros((1, *spec.shape), np.float32)))
    assert chosen[0, 0] == pytest.approx(0.4, abs=0.2)


def test_what_follows_a_termination_has_no_value():
    """γ for each transition: where it is 0 the target is the reward, whatever Q' says of s'."""
    rng = np.random.default_rng(0)
    specs = ddpg.network_specs(2, 1, (8,))
    optimisers = ddpg.Optimisers(optax.sgd(0.1), optax.sgd(0.1))
    states = rng.standard_normal((4, 2)).astype(np.float32)
    learner = ddpg.init_learner(specs, states, optimisers, key=jax.random.key(0))
    actions, rewards = rng.uniform(-1, 1, (4, 1)), np.arange(4.0)
    batch = ddpg.Transitions(
        *(jnp.asarray(one, jnp.float32) for one in (states, actions, rewards, states[::-1]))
    )
    gamma = jnp.array([0, 0.9, 0, 0.9])
    (critic,), target = learner.online.critics, learner.target
    following = ddpg.act(target.actor, batch.next_observations)
    after = np.asarray(ddpg.q_values(target.critics[0], batch.next_observations, following))
    now = np.asarray(ddpg.q_values(critic, batch.observations, batch.actions))
    wanted = np.where(gamma > 0, batch.rewards + 0.9 * after, batch.rewards)
    loss, _ = ddpg.critic_loss(learner.online.critics, target, batch, gamma)
    assert float(loss) == pytest.approx(float(np.mean((now - wanted) ** 2)), rel=1e-5)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.3), (0.1, 0.7), (-0.003, 100.1)])
def test_actions_stay_in_their_space(low, high):
    """To the last bit, at its ends, where the noise carries many of them."""
    env = OneStep(low, high)
    train_on_env(lambda: env, settings(noise_spread=5.0))
    assert len(env.taken) == 480
    assert min(env.taken) == np.float32(low)
    assert max(env.taken) == np.float32(high)


def test_ends_of_an_action_are_the_ends_of_its_space():
    rng = np.random.default_rng(0)
    low = rng.standard_normal(10_000).astype(np.float32)
    bounds = Bounds(low, (low + rng.exponential(size=low.shape)).astype(np.float32))
    np.testing.assert_array_equal(bounds.scaled(-np.ones(10_000)), bounds.low)
    assert (bounds.scaled(np.ones(10_000)) <= bounds.high).all()
    np.testing.assert_allclose(bounds.scaled(np.ones(10_000)), bounds.high, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(bounds.scaled(np.zeros(10_000)), (low + bounds.high) / 2, rtol=1e-5, atol=1e-6)


def spaces_of(actions: gymnasium.Space, seen: gymnasium.Space | None = None) -> gymnasium.Env:
    env = OneStep()
    env.action_space = actions
    env.observation_space = seen or env.observation_space
    return env


@pytest.mark.parametrize(
    ("env", "named"),
    [
        (spaces_of(gymnasium.spaces.Discrete(3)), "actions"),
        (spaces_of(Box(-1, 1, (2, 2))), "actions"),
        (spaces_of(Box(-np.inf, np.inf, (1,))), "bounded actions"),
        (spaces_of(Box(np.finfo(np.float32).min, np.finfo(np.float32).max, (1,))), "bounded actions"),
        (spaces_of(Box(-2, 2, (1,), np.int64)), "real numbers"),
        (spaces_of(Box(-1, 1, (1,)), Box(0, 255, (8, 8, 3), np.uint8)), "observations"),
        (spaces_of(Box(-1, 1, (1,)), Dict({"a": Box(-1, 1, (2,))})), "observations"),
    ],
)
def test_spaces_that_it_cannot_take_are_refused(env, named):
    with pytest.raises(ConfigError, match=named):
        checked_bounds(env)


def test_the_remedy_for_unbounded_actions_works():
    bounded = Box(-1, 1, (1,), np.float32)
    env = gymnasium.wrappers.TransformAction(spaces_of(Box(-np.inf, np.inf, (1,))), lambda a: a, bounded)
    assert checked_bounds(env).high == 1


def test_what_is_not_finite_is_refused():
    class Broken(OneStep):
        def step(self, action):
            seen, _, *rest = super().step(action)
            return seen, np.nan, *rest

    with pytest.raises(DatasetError, match="reward"):
        train_on_env(Broken, settings())
    with pytest.raises(NonFiniteError, match="actor"):
        train_on_env(OneStep, settings(actor_rate=1e38, critic_rate=1e38))


@pytest.mark.parametrize("method", ["reset", "step"])
def test_what_an_environment_raises_is_told_with_its_place(method):
    def fail(*_, **__):
        raise RuntimeError("motor 3 is broken")

    with pytest.raises(ConfigError, match=r"motor 3 is broken .*test_ddpg_gym\.py, line"):
        train_on_env(type("Broken", (OneStep,), {method: fail}), settings())


def test_the_same_seed_gives_the_same_actor_and_reports_in_moderation():
    told: list[int] = []
    actors = []
    for seed in (0, 0, 1):
        agent = dataclasses.replace(settings(steps=99 * QUICK.envs, evaluate_every=16), seed=seed)
        actors.append(train_on_env(OneStep, agent, on_chunk=lambda step, _, __: told.append(step))[0])
    same, again, other = (jax.tree.leaves(actor) for actor in actors)
    assert all(np.array_equal(one, two) for one, two in zip(same, again, strict=True))
    assert not all(np.array_equal(one, two) for one, two in zip(same, other, strict=True))
    assert len(told) // 3 <= REPORTS + 2
