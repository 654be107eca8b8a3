"""Options as actions, of one environment and of a vector of them."""

import dataclasses
import json

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import lapwing
from lapwing.errors import ConfigError
from lapwing.options.option_set import MazeOptions, as_options
from lapwing.options.table import OptionTable
from tests.support.environments import Line, restless
from tests.support.options import arena_options

LEFT, RIGHT = 4, 5


@pytest.fixture(scope="module")
def options():
    return lapwing.discover_options("TwoRoom", count=4, exact=True)


def line_options(first_place: int = 0, longest: int = 10) -> MazeOptions:
    """In `Line`: to the left end, to the right end, and one that goes left and never ends."""
    actions = np.repeat([[0], [1], [0]], 5, axis=1)
    places = np.arange(5)
    stops = np.array([places == 0, places == 4, np.zeros(5, bool)])
    table = OptionTable(actions, ~stops, stops, ("left", "right", "for ever"))
    return MazeOptions(table, places + first_place, 2, longest)


def begun_at(env, place: int):
    env.reset(seed=0)
    env.unwrapped.place = place
    env._observation = env.unwrapped.first_place + place


def test_an_option_runs_to_its_end_and_sums_the_rewards():
    env = lapwing.LaplacianOptions(Line(), line_options())
    assert env.action_space == gymnasium.spaces.Discrete(5)
    begun_at(env, 3)
    place, reward, terminated, truncated, info = env.step(2)
    assert (place, reward, terminated, truncated) == (0, -3.0, False, False)
    assert (info["option"], info["option_steps"], info["option_cut"]) == ("left", 3, False)


def test_rewards_within_an_option_are_discounted():
    env = lapwing.LaplacianOptions(Line(), line_options(), gamma=0.5)
    begun_at(env, 3)
    _, reward, _, _, info = env.step(2)
    assert reward == pytest.approx(-(1 + 0.5 + 0.25))
    assert info["discount"] == pytest.approx(0.125)


def test_the_end_of_an_episode_ends_an_option():
    env = lapwing.LaplacianOptions(Line(), line_options())
    begun_at(env, 1)
    place, reward, terminated, _, info = env.step(3)
    assert (place, reward, terminated, info["option_cut"]) == (4, -3.0, True, False)
    env = lapwing.LaplacianOptions(gymnasium.wrappers.TimeLimit(Line(), 2), line_options())
    begun_at(env, 3)
    place, _, terminated, truncated, info = env.step(2)
    assert (place, terminated, truncated, info["option_steps"]) == (1, False, True, 2)


def test_an_option_that_never_ends_is_cut_and_it_is_told():
    env = lapwing.LaplacianOptions(Line(), line_options(longest=7))
    begun_at(env, 2)
    *_, info = env.step(4)
    assert (info["option_steps"], info["option_cut"]) == (7, True)
    env = lapwing.LaplacianOptions(Line(), line_options(), longest=3)
    begun_at(env, 2)
    assert env.step(4)[4]["option_steps"] == 3


def test_an_action_is_one_step():
    env = lapwing.LaplacianOptions(Line(first_action=3, first_place=1), line_options(first_place=1))
    begun_at(env, 1)
    place, reward, _, _, info = env.step(4)
    assert (place, reward, info["option"], info["option_steps"]) == (3, -1.0, None, 1)
    assert env.step(5)[4]["option"] == "left"
    with pytest.raises(ConfigError, match="action"):
        env.step(8)


def test_an_option_takes_a_step_where_it_would_stop_and_the_mask_says_so():
    env = lapwing.LaplacianOptions(Line(), line_options())
    begun_at(env, 0)
    assert env.action_masks().tolist() == [True, True, False, True, True]
    assert env.step(2)[4]["option_steps"] == 1


def test_gymnasiums_checker_passes(options):
    env = gymnasium.make("lapwing/TwoRoom-v0", max_episode_steps=40)
    with pytest.warns(UserWarning, match="unwrapped"):  # that it is a wrapper
        check_env(lapwing.LaplacianOptions(env, options), skip_render_check=True)


def test_a_path_lets_the_spec_be_written(options, tmp_path):
    options.save(tmp_path / "o.safetensors")
    env = lapwing.LaplacianOptions(
        gymnasium.make("lapwing/TwoRoom-v0"), tmp_path / "o.safetensors", gamma=0.9
    )
    assert "o.safetensors" in json.dumps(json.loads(env.spec.to_json()))
    again = gymnasium.make(env.spec)
    assert again.action_space == env.action_space


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: gymnasium.make("MountainCarContinuous-v0"), "actions"),
        (lambda: gymnasium.make("lapwing/TwoRoom-v0", observation="index"), "shape"),
        (lambda: gymnasium.make("CartPole-v1"), "actions"),
    ],
)
def test_an_environment_that_does_not_fit_is_refused(options, make, named):
    with pytest.raises(ConfigError, match=named):
        lapwing.LaplacianOptions(make(), options)


def test_what_are_no_options_are_refused():
    with pytest.raises(ConfigError, match="options"):
        as_options(3)
    with pytest.raises(ConfigError, match="gamma"):
        lapwing.LaplacianOptions(Line(), line_options(), gamma=1.5)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_makes_the_decisions_of_single_environments(options, mode):
    """Every decision of each environment of the vector, over the ends of episodes, as by itself."""
    count, decisions = 3, 25
    draws = np.random.default_rng(1).integers(8, size=(count, decisions))
    vector = lapwing.VectorLaplacianOptions(
        SyncVectorEnv([restless] * count, autoreset_mode=mode), options, gamma=0.9
    )
    found = [[] for _ in range(count)]
    _, infos = vector.reset(seed=[10, 11, 12])
    over = np.zeros(count, bool)
    while min(map(len, found)) < decisions:
        chosen = [draws[i, min(len(found[i]), decisions - 1)] for i in range(count)]
        assert (infos["deciding"] | ~over).all()
        if mode == AutoresetMode.DISABLED and over.any():
            _, infos = vector.reset(options={"reset_mask": over})
        _, _, terminated, truncated, infos = vector.step(np.array(chosen))
        over = terminated | truncated
        for i in np.flatnonzero(infos["_decision_reward"]):
            found[i].append((infos["option"][i], infos["option_steps"][i], infos["decision_reward"][i]))
    for index in range(count):
        env = lapwing.LaplacianOptions(restless(), options, gamma=0.9)
        env.reset(seed=10 + index)
        for decision in range(decisions):
            _, reward, terminated, truncated, info = env.step(draws[index, decision])
            name, steps, total = found[index][decision]
            assert (name, steps) == (info["option"], info["option_steps"])
            assert total == pytest.approx(reward)
            if terminated or truncated:
                env.reset()


class Drifting(gymnasium.Env):
    """A point that an action moves, in a Dict; φ of the options looks at the first two of its numbers."""

    def __init__(self, high: float = 3.3):
        self.action_space = Box(np.float32([-1, 0.5]), np.float32([high, 0.7]))
        self.observation_space = Dict({"observation": Box(-99, 99, (4,), np.float32)})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-1, 1, 4).astype(np.float32)
        return {"observation": self.at.copy()}, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.at[:2] += action / 10
        return {"observation": self.at.copy()}, float(self.at[0]), bool(self.at[0] > 3), False, {}


def drifting() -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(Drifting(), 12)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_with_continuous_actions_does_as_single_environments(mode):
    options = dataclasses.replace(arena_options(), longest=5)
    vector = lapwing.VectorLaplacianOptions(SyncVectorEnv([drifting] * 2, autoreset_mode=mode), options)
    assert vector.single_action_space == Discrete(2)
    _, infos = vector.reset(seed=[3, 4])
    found, over = [[], []], np.zeros(2, bool)
    while min(map(len, found)) < 6:
        if mode == AutoresetMode.DISABLED and over.any():
            _, infos = vector.reset(options={"reset_mask": over})
        _, _, terminated, truncated, infos = vector.step(np.array([len(rows) % 2 for rows in found]))
        over = terminated | truncated
        for i in np.flatnonzero(infos["_decision_reward"]):
            found[i].append((infos["option"][i], infos["option_steps"][i], infos["decision_reward"][i]))
    for index, rows in enumerate(found):
        env = lapwing.LaplacianOptions(drifting(), options)
        env.reset(seed=3 + index)
        for number, (name, steps, total) in enumerate(rows):
            _, reward, terminated, truncated, info = env.step(number % 2)
            assert (name, steps) == (info["option"], info["option_steps"])
            assert total == pytest.approx(reward)
            if terminated or truncated:
                env.reset()


def test_actions_of_another_range_are_refused():
    with pytest.raises(ConfigError, match="actions"):
        lapwing.LaplacianOptions(Drifting(high=0.9), arena_options())


def test_stable_baselines_trains_on_options(options):
    sb3 = pytest.importorskip("stable_baselines3")
    env = lapwing.LaplacianOptions(gymnasium.make("lapwing/TwoRoom-v0", max_episode_steps=40), options)
    model = sb3.DQN("MlpPolicy", env, learning_starts=50, policy_kwargs={"net_arch": [16]}, seed=0)
    model.learn(200)
    observation, _ = env.reset(seed=1)
    action, _ = model.predict(observation, deterministic=True)
    assert env.action_space.contains(int(action))
    chosen = model.replay_buffer.actions[:200].ravel()
    assert (chosen >= 4).any()
    assert (chosen < 4).any()
