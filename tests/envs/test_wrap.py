"""Wrappers that are named on the command line, and past termination."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import lapwing
from lapwing.data.open import open_experience
from lapwing.data.source import GymEnv
from lapwing.envs.make import make_envs
from lapwing.envs.wrap import wrapped
from lapwing.errors import ConfigError
from lapwing.laplacian.target import open_target
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


def test_a_folder_with_parentheses_in_its_name(tmp_path):
    folder = tmp_path / "Program Files (x86)"
    folder.mkdir()
    (folder / "own.py").write_text(OWN)
    np.testing.assert_allclose(first_observation(f"{folder}/own.py:Halved(by=4)"), first_observation() / 4)
    np.testing.assert_allclose(first_observation(f"{folder}/own.py:Halved"), first_observation() / 2)


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


class Ladder(gymnasium.Env):
    """Up by one a step; terminates from 3 on."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,))
    action_space = gymnasium.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.height = 0.0
        return self._seen(), {}

    def step(self, action):
        self.height += 1
        return self._seen(), 0.0, self.height >= 3, False, {"height": self.height}

    def _seen(self):
        return np.array([self.height], np.float32)


def test_episodes_are_stepped_past_their_end():
    env = gymnasium.wrappers.TimeLimit(Ladder(), 5)
    ended, past = (lapwing.collect(env, 10, past_termination=stepped) for stepped in (False, True))
    assert ended.lengths.tolist() == [4, 4, 4, 2]
    assert past.lengths.tolist() == [6, 6]
    assert past.observations[:6, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_what_the_environment_said_is_in_the_info():
    env = lapwing.PastTermination(Ladder())
    env.reset()
    steps = [env.step(0) for _ in range(4)]
    assert [step[2] for step in steps] == [False] * 4
    assert [step[4]["terminated"] for step in steps] == [False, False, True, True]
    assert steps[0][4]["height"] == 1


def test_an_absorbing_end_repeats_the_last_state():
    env = lapwing.AbsorbingEnd(Ladder(), steps=2)
    for _ in range(2):  # also after a reset
        env.reset()
        steps = [env.step(0) for _ in range(5)]
        assert [step[2] for step in steps] == [False] * 4 + [True]
        np.testing.assert_array_equal(steps[3][0], steps[2][0])
        np.testing.assert_array_equal(steps[4][0], steps[2][0])
    seen = lapwing.collect(lapwing.AbsorbingEnd(Ladder(), steps=2), 10)
    assert seen.lengths.tolist() == [6, 6]
    with pytest.raises(ConfigError, match="steps"):
        lapwing.AbsorbingEnd(Ladder(), steps=0)


def test_an_absorbing_end_by_name():
    env = wrapped(Ladder(), ["lapwing:AbsorbingEnd(steps=3)"])
    assert isinstance(env, lapwing.AbsorbingEnd)


@pytest.mark.filterwarnings("ignore:.*has already returned terminated")  # CartPole's own
def test_past_termination_of_several_copies_of_a_named_environment():
    settings = {"transitions": 4_000, "num_envs": 2, "past_termination": True}
    target = open_target("gym:CartPole-v1", LearnSettings.from_keywords(settings))
    assert target.experience.lengths.max() == 501


def test_a_vector_that_resets_itself_is_not_stepped_past_the_end():
    envs = SyncVectorEnv([Ladder])
    with pytest.raises(ConfigError, match="past_termination"):
        lapwing.collect(envs, 10, past_termination=True)
    with pytest.raises(ConfigError, match="past_termination"):
        lapwing.learn("TwoRoom", past_termination=True)
