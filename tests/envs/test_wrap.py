"""Wrappers that are named on the command line."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from lapwing.data.open import open_experience
from lapwing.data.source import GymEnv
from lapwing.envs.make import make_envs
from lapwing.envs.wrap import wrapped
from lapwing.errors import ConfigError
from lapwing.settings.learn import LearnSettings

OWN = """
import gymnasium

class Halved(gymnasium.ObservationWrapper):
    def __init__(self, env, by=2.0):
        super().__init__(env)
        self.by = by

    def observation(self, observation):
        return observation / self.by

def both(env):
    return Halved(Halved(env))

def nothing(env):
    return None
"""


@pytest.fixture
def own_wrappers(tmp_path):
    path = tmp_path / "own_wrappers.py"
    path.write_text(OWN)
    return path


def first_observation(*names: str) -> np.ndarray:
    return wrapped(gymnasium.make("CartPole-v1"), names).reset(seed=0)[0]


def test_the_first_wrapper_is_innermost(own_wrappers):
    plain = first_observation()
    time_last = first_observation(f"{own_wrappers}:Halved", "gymnasium.wrappers:TimeAwareObservation")
    np.testing.assert_allclose(time_last, [*(plain / 2), 0.0])


def test_arguments_in_parentheses(own_wrappers):
    np.testing.assert_allclose(first_observation(f"{own_wrappers}:Halved(by=4)"), first_observation() / 4)
    np.testing.assert_allclose(first_observation(f"{own_wrappers}:both"), first_observation() / 4)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("FlattenObservation", "FlattenObservation"),
        ("gymnasium.wrappers:FlatenObservation", "FlattenObservation"),
        ("no_such_module:Wrapper", "no_such_module"),
        ("gymnasium.wrappers:TimeLimit", "max_episode_steps"),
        ("gymnasium.wrappers:TimeLimit(5)", "TimeLimit"),
        ("gymnasium.wrappers:TimeLimit(max_episode_steps=", "TimeLimit"),
        ("gymnasium.wrappers:TimeLimit(max_episode_steps=open('x'))", "TimeLimit"),
        ("{own}:nothing", "nothing"),
        ("{own}:gone", "gone"),
        ("gone.py:Halved", "gone.py"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(name, named, own_wrappers):
    with pytest.raises(ConfigError, match=named):
        first_observation(name.format(own=own_wrappers))


def test_every_copy_of_an_environment_is_wrapped(own_wrappers):
    """Also where the environment has a vector form of its own, which cannot be wrapped."""

    def halved(env):
        return wrapped(env, [f"{own_wrappers}:Halved"])

    vector = make_envs("CartPole-v1", 3, halved)
    assert isinstance(vector, SyncVectorEnv)
    plain = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 3)
    np.testing.assert_allclose(vector.reset(seed=0)[0], plain.reset(seed=0)[0] / 2)
    assert not isinstance(make_envs("CartPole-v1", None, halved), SyncVectorEnv)


def test_experience_is_collected_from_the_wrapped_environment():
    settings = LearnSettings(transitions=30, wrap=("gymnasium.wrappers:TimeAwareObservation",))
    experience = open_experience(GymEnv("CartPole-v1"), settings)
    assert experience.observation_shape == (5,)
    assert LearnSettings.from_keywords({"wrap": "a:B"}).wrap == ("a:B",)
