"""The reward f(s') - f(s), of one environment and of a vector of them."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import lapwing
from lapwing.errors import ConfigError
from lapwing.laplacian.encoders import EncoderSpec
from tests.support.environments import restless
from tests.support.representations import random_representation

REP = random_representation(EncoderSpec("mlp", (2,), 5, None, (6,)))


def values(observations, function: int) -> np.ndarray:
    return np.asarray(REP.eigenfunctions(np.asarray(observations, np.float32)), np.float64)[..., function - 1]


@pytest.mark.parametrize(("function", "sign", "scale"), [(2, 1, 1.0), (3, -1, 2.5)])
def test_the_reward_is_the_change_of_the_eigenfunction(function, sign, scale):
    env = gymnasium.make("lapwing/TwoRoom-v0")
    env = lapwing.EigenReward(env, REP, function=function, sign=sign, scale=scale)
    here, _ = env.reset(seed=3)
    for action in (0, 1, 2, 3, 1):
        there, reward, _, _, info = env.step(action)
        change = values(there, function) - values(here, function)
        assert reward == pytest.approx(sign * scale * change, abs=1e-4)
        assert info["env_reward"] == -1.0
        here = there


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_gives_the_rewards_of_single_environments(mode):
    draws = np.random.default_rng(0).integers(4, size=(30, 2))
    vector = lapwing.VectorEigenReward(SyncVectorEnv([restless] * 2, autoreset_mode=mode), REP, function=3)
    vector.reset(seed=[4, 5])
    found, taken, over = [[], []], [[], []], np.zeros(2, bool)
    for actions in draws:
        if mode == AutoresetMode.DISABLED and over.any():
            vector.reset(options={"reset_mask": over})
        _, rewards, terminated, truncated, infos = vector.step(actions)
        over = terminated | truncated
        for i in np.flatnonzero(infos["_env_reward"]):
            found[i].append(rewards[i])
            taken[i].append(actions[i])
        assert (rewards[~infos["_env_reward"]] == 0).all()
    for index in range(2):
        env = lapwing.EigenReward(restless(), REP, function=3)
        env.reset(seed=4 + index)
        for action, expected in zip(taken[index], found[index], strict=True):
            _, reward, terminated, truncated, _ = env.step(action)
            assert reward == pytest.approx(expected, abs=1e-6)
            if terminated or truncated:
                env.reset()


@pytest.mark.parametrize(
    ("how", "named"), [({"function": 1}, "function"), ({"function": 9}, "function"), ({"sign": 2}, "sign")]
)
def test_what_there_is_not_is_refused(how, named):
    with pytest.raises(ConfigError, match=named):
        lapwing.EigenReward(gymnasium.make("lapwing/TwoRoom-v0"), REP, **how)


def test_an_eigenfunction_that_is_not_trusted_is_refused():
    rep = random_representation(EncoderSpec("mlp", (2,), 5, None, (6,)))
    rep.config["trusted"] = [0, 1]
    env = gymnasium.make("lapwing/TwoRoom-v0")
    lapwing.EigenReward(env, rep, function=2)
    with pytest.raises(ConfigError, match="function"):
        lapwing.EigenReward(env, rep, function=3)
