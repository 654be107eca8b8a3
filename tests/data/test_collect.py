"""Collecting: gridworlds through their tables, environments alone and in vectors by their steps."""

import itertools
import re
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from scipy.stats import chisquare

from lapwing.data.action_spaces import random_actions
from lapwing.data.collect import collect, collect_walks
from lapwing.data.experience import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, DatasetError, LapwingWarning
from lapwing.mazes import read_maze


class TestCollectWalks:
    WORLD = GridWorld(read_maze("FourRoom"))

    @pytest.mark.parametrize(
        ("transitions", "lengths"),
        [(100, [51, 51]), (110, [51, 51, 11]), (51, [51, 2]), (1, [2])],
    )
    def test_lengths(self, transitions, lengths):
        experience = collect_walks(self.WORLD, "position", transitions, key=jax.random.key(0))
        np.testing.assert_array_equal(experience.lengths, lengths)
        assert experience.n_transitions == transitions

    def test_every_pair_within_an_episode_is_a_move(self):
        experience = collect_walks(self.WORLD, "index", 5_003, episode_length=7, key=jax.random.key(1))
        possible = self.WORLD.transition_matrix().toarray() > 0
        places = np.flatnonzero(experience.horizons > 0)
        ids = experience.observations
        assert possible[ids[places], ids[places + 1]].all()
        # Starts are anywhere, so most pairs across an end could not have been moves.
        ends = np.flatnonzero(experience.horizons == 0)[:-1]
        assert possible[ids[ends], ids[ends + 1]].mean() < 0.2
        moved = self.WORLD.next_state[ids[places], experience.actions[places]]
        np.testing.assert_array_equal(moved, ids[places + 1])
        assert experience.actions.dtype == np.uint8

    def test_same_seed_same_bits_and_others_differ(self):
        digests = [
            collect_walks(self.WORLD, "index", 500, key=jax.random.key(seed)).sha256()
            for seed in (0, 0, 1, 2, 3)
        ]
        assert digests[0] == digests[1]
        assert len(set(digests)) == 4

    def test_nothing_to_collect(self):
        with pytest.raises(ConfigError, match=r"transitions .* 0"):
            collect_walks(self.WORLD, "index", 0, key=jax.random.key(0))


class Counter(gymnasium.Env):
    """Counts its steps in one buffer that it writes over; ends after `length` steps, in either way."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, length: int, terminates: bool):
        self.length, self.terminates = length, terminates
        self.buffer = np.array([-1.0, 0.0], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.buffer += [1, 0]
        self.buffer[1] = 0
        return self.buffer, {}

    def step(self, action):
        self.buffer[1] += 1
        ended = self.buffer[1] == self.length
        return self.buffer, 0.0, bool(ended and self.terminates), bool(ended and not self.terminates), {}


class TestCollect:
    @pytest.mark.parametrize("terminates", [False, True])
    @pytest.mark.parametrize(("transitions", "lengths"), [(10, [5, 5, 3]), (8, [5, 5]), (1, [2])])
    def test_episodes_and_their_last_observations(self, terminates, transitions, lengths):
        """Also where the environment gives the same array each time."""
        experience = collect(Counter(4, terminates), transitions)
        np.testing.assert_array_equal(experience.lengths, lengths)
        expected = [(episode, step) for episode, length in enumerate(lengths) for step in range(length)]
        np.testing.assert_array_equal(experience.observations, expected)

    @pytest.mark.parametrize(("env_id", "states"), [("FrozenLake-v1", 16), ("CliffWalking-v1", 48)])
    def test_discrete_observations_become_ids(self, env_id, states):
        experience = collect(gymnasium.make(env_id), 300, seed=0)
        assert experience.n_states == states
        assert experience.observation_shape == ()
        assert experience.n_transitions == 300

    def test_same_seed_same_bits_and_others_differ(self):
        first, again, other = (
            collect(gymnasium.make("lapwing/FourRoom-v0"), 200, seed=seed).sha256() for seed in (5, 5, 6)
        )
        assert first == again
        assert first != other

    def test_a_policy_of_the_users(self):
        env = gymnasium.make("lapwing/FourRoom-v0", observation="position")
        seen = []

        def always_down(observation):
            seen.append(np.array(observation))
            return 1

        experience = collect(env, 60, policy=always_down, seed=0)
        np.testing.assert_array_equal(seen, experience.observations[experience.horizons > 0])
        down = np.diff(experience.observations, axis=0)[experience.horizons[:-1] > 0]
        assert (down[:, 1] == 0).all()
        assert (down[:, 0] >= 0).all()
        assert (down[:, 0] > 0).any()

    def test_progress(self):
        calls = []
        collect(Counter(10, False), 2_500, on_progress=lambda done, of: calls.append((done, of)))
        assert calls == [(1_000, 2_500), (2_000, 2_500), (2_500, 2_500)]

    def test_observations_that_cannot_be_embedded(self):
        env = Counter(4, False)
        env.observation_space = spaces.Dict({"a": spaces.Discrete(2)})
        for key in (None, "b"):
            with pytest.raises(ConfigError, match="observation_key"):
                collect(env, 10, observation_key=key)

    @pytest.mark.parametrize("shape", [(), (1, 2), (3,)])
    def test_observations_that_are_not_of_the_space(self, shape):
        """NumPy would stretch most of them to fit."""
        env = Counter(4, False)
        env.buffer = np.zeros(shape, np.float32)
        env.reset = lambda **_: (env.buffer, {})
        with pytest.raises(DatasetError, match=r"\(2,\)"):
            collect(env, 10)

    @pytest.mark.parametrize(("shape", "other"), [((8, 12, 3), (3, 8, 12)), ((2, 3), (6,)), ((4,), (2, 2))])
    @pytest.mark.parametrize("at", [3, 5])
    def test_a_shape_that_changes_later(self, shape, other, at):
        """Of as many numbers, which would be stored scrambled: at a step, or as an episode begins."""
        space = spaces.Box(0, 9, shape, np.float32)
        env = Seen(space, lambda count: np.zeros(other if count == at else shape, np.float32))
        with pytest.raises(DatasetError) as caught:
            collect(env, 30)
        assert f"{other}" in str(caught.value)
        assert f"{shape}" in str(caught.value)

    @pytest.mark.parametrize("vector", [False, True])
    @pytest.mark.parametrize("method", ["step", "reset"])
    def test_an_environment_that_raises(self, vector, method):
        def fail(*_, **__):
            raise RuntimeError("out of fuel")

        env = Counter(4, False)
        setattr(env, method, fail)
        with pytest.raises(
            ConfigError, match=rf"RuntimeError: out of fuel \(.*{Path(__file__).name}"
        ) as told:
            collect(SyncVectorEnv([lambda: env]) if vector else env, 10)
        assert isinstance(told.value.__cause__, RuntimeError)

    @pytest.mark.parametrize("action", [9, (0, None), None])
    @pytest.mark.parametrize("vector", [False, True])
    def test_an_action_that_there_is_not(self, action, vector):
        env = SyncVectorEnv([lambda: Counter(4, False)]) if vector else Counter(4, False)
        with pytest.raises(ConfigError, match=f"action .*{re.escape(str(action))}"):
            collect(env, 10, policy=lambda _: action)

    @pytest.mark.parametrize(
        ("space", "action"),
        [
            (spaces.Discrete(3), jnp.asarray(1)),
            (spaces.Discrete(3), torch.tensor(1)),
            (spaces.Discrete(3), np.bool_(True)),
            (spaces.Discrete(3), 1.0),
            (spaces.Discrete(3, start=5), 7),
            (spaces.MultiDiscrete([2, 3]), [1, 2]),
            (spaces.MultiBinary(2), np.array([True, False])),
            (spaces.Box(-1, 1, (2,)), np.array([5.0, 0.5])),
            (spaces.Dict({"a": spaces.Box(-1, 1, (2,))}), {"a": np.zeros(2)}),
            (spaces.Tuple([spaces.Box(-1, 1, (1,)), spaces.Discrete(2)]), ([0.5], 1)),
            (spaces.Text(5), "left"),
        ],
        ids=str,
    )
    def test_actions_that_an_environment_may_take(self, space, action):
        env = Counter(4, False)
        env.action_space = space
        assert collect(env, 10, policy=lambda _: action).n_transitions == 10

    @pytest.mark.parametrize(
        ("space", "action"),
        [
            (spaces.Discrete(3), 1.5),
            (spaces.MultiDiscrete([2, 3]), [1, 3]),
            (spaces.MultiBinary(2), [2, 0]),
            (spaces.Box(-1, 1, (2,)), [0.5, np.nan]),
            (spaces.Dict({"a": spaces.Discrete(2)}), {"b": 1}),
            (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), (1, 2)),
        ],
        ids=str,
    )
    def test_actions_that_none_takes(self, space, action):
        env = Counter(4, False)
        env.action_space = space
        with pytest.raises(ConfigError, match="action"):
            collect(env, 10, policy=lambda _: action)

    def test_actions_that_are_no_numbers_are_not_kept(self):
        env = Counter(4, False)
        env.action_space = spaces.Box(-1, 1, (2,))
        with pytest.warns(LapwingWarning, match="actions are not kept"):
            experience = collect(env, 10, policy=lambda _: torch.ones(2, requires_grad=True))
        assert experience.actions is None
        assert experience.rewards is not None

    @pytest.mark.parametrize("vector", [False, True])
    @pytest.mark.parametrize("reward", [np.nan, np.inf, None, [1.0, 2.0]])
    def test_rewards_that_are_no_numbers_are_not_kept(self, reward, vector):
        class Odd(gymnasium.vector.VectorWrapper if vector else gymnasium.Wrapper):
            def step(self, action):
                observation, _, *rest = self.env.step(action)
                return observation, np.array([reward], object) if vector else reward, *rest

        env = SyncVectorEnv([lambda: Counter(4, False)]) if vector else Counter(4, False)
        with pytest.warns(LapwingWarning, match="rewards are not kept"):
            experience = collect(Odd(env), 10, policy=lambda _: np.zeros(1, int) if vector else 0)
        assert experience.rewards is None
        assert experience.actions.tolist() == [0] * len(experience.observations)

    @pytest.mark.parametrize(
        ("space", "dtype", "shape"),
        [
            (spaces.Discrete(4), np.uint8, ()),
            (spaces.Discrete(1_000, start=-3), np.int32, ()),
            (spaces.MultiDiscrete([3, 4]), np.int32, (2,)),
            (spaces.MultiBinary(3), np.uint8, (3,)),
            (spaces.Box(-1, 1, (2,), np.float64), np.float32, (2,)),
            (spaces.Box(-1, 1, ()), np.float32, (1,)),
            (spaces.Box(0, 9, (2, 3), np.int8), np.int8, (6,)),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("vector", [False, True])
    def test_actions_of_any_space_are_kept(self, space, dtype, shape, vector):
        taken = []

        class Told(Counter):
            def step(self, action):
                taken.append(np.array(action))
                return super().step(action)

        def made():
            env = Told(4, False)
            env.action_space = space
            return env

        experience = collect(SyncVectorEnv([made]) if vector else made(), 9, seed=1)
        assert (experience.actions.dtype, experience.actions.shape[1:]) == (dtype, shape)
        kept = experience.actions[experience.horizons > 0]
        np.testing.assert_allclose(kept, np.array(taken).reshape(9, *shape), rtol=1e-6)

    @pytest.mark.parametrize("space", [spaces.Tuple([spaces.Discrete(2)]), spaces.Text(3)], ids=str)
    def test_actions_of_parts_or_words_are_not_kept(self, space):
        env = Counter(4, False)
        env.action_space = space
        assert collect(env, 9).actions is None

    def test_a_policy_that_writes_its_actions_over_each_other(self):
        env, buffer = Counter(4, False), np.zeros(1)
        env.action_space = spaces.Box(-9, 99, (1,))

        def policy(observation):
            buffer[:] = observation[:1]
            return buffer

        experience = collect(env, 9, policy=policy)
        within = experience.horizons > 0
        np.testing.assert_array_equal(experience.actions[within], experience.observations[within, :1])

    def test_what_progress_raises_is_its_own(self):
        def stop(*_):
            raise InterruptedError("cancelled")

        with pytest.raises(InterruptedError, match="cancelled"):
            collect(Counter(4, False), 5_000, on_progress=stop)

    def test_an_environment_without_a_space(self):
        env = Counter(4, False)
        env.action_space = None
        with pytest.raises(ConfigError, match="action_space"):
            collect(env, 10)

    def test_a_part_that_the_space_promises_and_the_environment_lacks(self):
        env = Counter(4, False)
        env.observation_space = spaces.Dict({"pos": spaces.Box(-9, 9, (2,))})
        said = "position, time, .*'pos'"
        wrong = {"position": np.zeros(2), "time": 0}
        env.reset = lambda **_: ({"pos": np.zeros(2)}, {})
        env.step = lambda _: (wrong, 0.0, False, False, {})
        with pytest.raises(ConfigError, match=said):
            collect(env, 10, observation_key="pos")
        env.reset = lambda **_: (wrong, {})
        with pytest.raises(ConfigError, match=said):
            collect(env, 10, observation_key="pos")

    def test_nan_stops_it_early(self):
        env = Seen(spaces.Box(-np.inf, np.inf, (2,), np.float64), lambda count: np.array([count, 0.0]))
        env.show = lambda count: np.array([0.0, np.nan if count == 13 else count])
        steps, taken = env.step, []
        env.step = lambda action: taken.append(action) or steps(action)
        with pytest.raises(DatasetError, match="episode 2, step 3;"):
            collect(env, 100_000)
        assert len(taken) == 1_000

    @pytest.mark.parametrize("told", [np.zeros(2), (np.zeros(2),), [np.zeros(2), {}], None])
    def test_a_reset_of_the_old_interface(self, told):
        env = Counter(4, False)
        env.reset = lambda **_: told
        with pytest.raises(ConfigError, match=r"reset\(\) .*\(observation, info\)"):
            collect(env, 10)

    @pytest.mark.parametrize("told", [np.zeros(2), (np.zeros(2), 0.0, False, {}), None])
    def test_a_step_of_the_old_interface(self, told):
        env = Counter(4, False)
        env.step = lambda _: told
        with pytest.raises(ConfigError, match=r"step\(\) .*\(observation, rew"):
            collect(env, 10)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
    def test_nan_is_named_by_episode_and_step(self, bad, dtype):
        """Without a warning where float32 cannot hold a number."""
        space = spaces.Box(-np.inf, np.inf, (2,), dtype)
        env = Seen(space, lambda count: np.array([0.0, bad if count == 13 else count]))
        for each in (env, SyncVectorEnv([lambda: env])):
            with pytest.raises(DatasetError, match="episode 2, step 3;"):
                collect(each, 30)

    @pytest.mark.parametrize(("name", "wrong"), [("transitions", 0), ("transitions", 10**13), ("seed", -1)])
    def test_nothing_to_collect(self, name, wrong):
        with pytest.raises(ConfigError, match=f"{name} .* {wrong}"):
            collect(Counter(4, False), **({"transitions": 10} | {name: wrong}))

    @pytest.mark.parametrize("vector", [False, True])
    def test_more_than_any_machine_holds(self, vector):
        """It is refused before a step is taken."""
        space = spaces.Box(shape=(1_000, 1_000, 3), **BOX)
        env = two_of(space, pytest.fail, "NextStep") if vector else Seen(space, pytest.fail)
        with pytest.raises(ConfigError, match="transitions"):
            collect(env, 2**30)

    @pytest.mark.parametrize(("dtype", "wrong"), [(np.uint8, 0.5), (np.uint8, 300), (np.int32, 1.5)])
    @pytest.mark.parametrize("last", [False, True])
    def test_numbers_that_the_space_does_not_promise(self, dtype, wrong, last):
        """Cast as they are, images in [0, 1] would become black."""
        space = spaces.Box(0, 255, (2,), dtype)
        env = Seen(space, lambda count: np.array([0, wrong if count % 5 == 4 * last else 1]))
        with pytest.raises(ConfigError, match=f"{wrong}, .* {np.dtype(dtype)}"):
            collect(env, 30)


class Seen(gymnasium.Env):
    """Shows `show(count)`, the count of observations so far, in any space; episodes have four steps."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, show):
        self.observation_space, self.show, self.count = space, show, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.count = -1
        self.steps = -1
        return self._next(), {}

    def step(self, action):
        return self._next(), 0.0, False, self.steps == 4, {}

    def _next(self):
        self.count, self.steps = self.count + 1, self.steps + 1
        return self.show(self.count)


def image(shape, count: int) -> np.ndarray:
    return (np.arange(np.prod(shape)) * 7 + count).astype(np.uint8).reshape(shape)


BOX = {"low": 0, "high": 255, "dtype": np.uint8}
SPACES = {
    "discrete": (spaces.Discrete(9, start=-4), lambda n: np.int64(n % 9 - 4), lambda n: n % 9),
    "float64": (
        spaces.Box(-np.inf, np.inf, (2,), np.float64),
        lambda n: np.array([n / 3, 0.1]),
        lambda n: np.array([n / 3, 0.1]).astype(np.float32),
    ),
    "one number": (spaces.Box(-9, 99, (), np.float32), lambda n: np.float32(n), lambda n: [n]),
    "grey": (spaces.Box(shape=(5, 6), **BOX), lambda n: image((5, 6), n), lambda n: image((5, 6, 1), n)),
    "colours first": (
        spaces.Box(shape=(3, 5, 6), **BOX),
        lambda n: image((3, 5, 6), n),
        lambda n: np.stack([image((3, 5, 6), n)[channel] for channel in range(3)], axis=-1),
    ),
}
"""A space; what is shown n-th; what φ sees of that, by hand."""


class TestKindsOfObservations:
    @pytest.mark.parametrize("in_dict", [False, True])
    @pytest.mark.parametrize("kind", SPACES)
    @pytest.mark.parametrize("mode", [None, *AutoresetMode], ids=str)
    def test_each_is_kept_as_phi_sees_it(self, kind, in_dict, mode):
        space, show, seen = SPACES[kind]
        key = "mine" if in_dict else None
        if in_dict:
            space = spaces.Dict({"other": spaces.Discrete(2), "mine": space})
        shown = (lambda n: {"other": 0, "mine": show(n)}) if in_dict else show
        env = Seen(space, shown) if mode is None else two_of(space, shown, mode)
        experience = collect(env, 11, observation_key=key)
        once = [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13]
        twice = [0, 1, 2, 3, 4], [5, 6, 7], [0, 1, 2, 3, 4], [5, 6]
        episodes = once if mode is None else twice
        assert experience.lengths.tolist() == [len(episode) for episode in episodes]
        expected = np.array([seen(n) for episode in episodes for n in episode])
        assert experience.observe(np.arange(len(expected))).dtype == (
            np.int32 if kind == "discrete" else np.uint8 if expected.dtype == np.uint8 else np.float32
        )
        np.testing.assert_array_equal(experience.observe(np.arange(len(expected))), expected)
        assert experience.n_states == (9 if kind == "discrete" else None)

    @pytest.mark.parametrize("short", [100, 20])
    def test_more_resets_than_were_reckoned_with(self, short):
        """Episodes of one step, to the end or before a long one."""
        env = Seen(spaces.Box(-1, 999, (1,)), lambda count: np.array([count], np.float32))
        step, taken = env.step, itertools.count(1)
        env.step = lambda action: (*step(action)[:2], next(taken) <= short, False, {})
        experience = collect(env, 100)
        lengths = [2] * short + [101 - short] * (short < 100)
        assert experience.lengths.tolist() == lengths
        np.testing.assert_array_equal(experience.observations[:, 0], np.arange(sum(lengths)))


def two_of(space, show, mode) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: Seen(space, show)] * 2, autoreset_mode=mode)


class Numbered(gymnasium.Env):
    """Shows (its number, the episode, the step, the last action); chance and the actions end an episode."""

    observation_space = spaces.Box(-1, np.inf, (4,), np.float64)
    action_space = spaces.Discrete(5)

    def __init__(self, number: int):
        self.number, self.episode = number, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.at = self.episode + 1, 0
        return np.array([self.number, self.episode, 0.0, -1.0]), {}

    def step(self, action):
        self.at += 1
        chance = self.np_random.random()
        over = chance < 0.1 + 0.05 * action
        shown = np.array([self.number, self.episode, self.at, action], float)
        return shown, self.at / 4, bool(over and chance < 0.1), bool(over and chance >= 0.1), {}


def acting(observations: np.ndarray) -> np.ndarray:
    """An action that tells which observation it was chosen for."""
    return (observations @ [1, 3, 7, 2]).astype(int) % 5


def alone(number: int, seed: int, steps: int) -> list[np.ndarray]:
    """The episodes of one environment in so many steps, by the plainest loop."""
    env = Numbered(number)
    observation, _ = env.reset(seed=seed)
    episodes = [[observation]]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(acting(observation))
        episodes[-1].append(observation)
        if terminated or truncated:
            observation, _ = env.reset()
            episodes.append([observation])
    return [np.array(episode) for episode in episodes if len(episode) > 1]


def assert_followed(experience: Experience) -> None:
    """Each action is the one that was chosen for its observation, each reward the one of the step."""
    within = np.flatnonzero(experience.horizons > 0)
    np.testing.assert_array_equal(experience.actions[within], acting(experience.observations)[within])
    np.testing.assert_array_equal(4 * experience.rewards[within], experience.observations[within + 1, 2])


def episodes_of(experience: Experience) -> list[np.ndarray]:
    return np.split(experience.observations, np.cumsum(experience.lengths)[:-1])


class TestVectors:
    @pytest.mark.parametrize("transitions", [1, 3, 1_000, 1_003])
    @pytest.mark.parametrize("copied", [True, False])
    @pytest.mark.parametrize("mode", AutoresetMode, ids=str)
    def test_the_episodes_are_those_of_each_environment_alone(self, mode, copied, transitions):
        envs = [lambda number=number: Numbered(number) for number in range(4)]
        vector = SyncVectorEnv(envs, copy=copied, autoreset_mode=mode)
        experience = collect(vector, transitions, policy=acting, seed=17)
        assert experience.n_transitions == transitions
        found = episodes_of(experience)
        steps, rounds = [], []
        for number in range(4):
            mine = [episode for episode in found if episode[0, 0] == number]
            steps.append(sum(len(episode) - 1 for episode in mine))
            expected = alone(number, 17 + number, steps[-1])
            assert len(mine) == len(expected)
            for one, other in zip(mine, expected, strict=True):
                np.testing.assert_array_equal(one, other)
            resets = max(len(mine) - 1, 0) if mode == AutoresetMode.NEXT_STEP else 0
            rounds.append(steps[-1] + resets)
        assert_followed(experience)
        # All were stepped equally often, but for a last reset, and for what was too much at the end.
        assert max(rounds) - min(rounds[:-1]) <= 1
        assert rounds[-1] >= rounds[0] - 4

    def test_the_policy_is_given_the_batch_as_it_is(self):
        whole = spaces.Dict({"mine": spaces.Box(-1, 99, (1,)), "other": spaces.Discrete(2)})
        seen = []

        def policy(observations):
            seen.append(sorted(observations))
            assert observations["mine"].shape == (2, 1)
            return np.zeros(2, int)

        vector = two_of(whole, lambda n: {"mine": np.array([n], np.float32), "other": 0}, "NextStep")
        collect(vector, 20, policy=policy, observation_key="mine")
        assert seen == [["mine", "other"]] * len(seen)
        assert len(seen) >= 10

    def test_a_vector_form_of_its_own(self):
        """Of CartPole: within an episode x' = x + 0.02 v, and from one to the next it is not."""
        vector = gymnasium.make_vec("CartPole-v1", 5, gymnasium.VectorizeMode.VECTOR_ENTRY_POINT)
        experience = collect(vector, 3_000, seed=0)
        assert experience.n_transitions == 3_000
        assert experience.n_episodes > 50
        x, v = experience.observations[:, 0], experience.observations[:, 1]
        within = experience.horizons[:-1] > 0
        follows = np.isclose(x[1:], x[:-1] + 0.02 * v[:-1], atol=1e-5)
        assert follows[within].all()
        assert not follows[~within].all()
        begins = experience.observations[np.append(0, experience.ends[:-1] + 1)]
        assert (np.abs(begins) <= 0.05).all()

    @pytest.mark.parametrize("final", [False, True])
    def test_a_shape_that_changes_later(self, final):
        """In a step, or in the last observation of an episode alone."""

        class Turned(gymnasium.vector.VectorWrapper):
            def step(self, actions):
                observations, *rest, infos = self.env.step(actions)
                if final and "final_obs" in infos:
                    infos["final_obs"] = np.array([one.T.copy() for one in infos["final_obs"]])
                return observations if final else observations.transpose(0, 3, 1, 2), *rest, infos

        space = spaces.Box(0, 255, (8, 12, 3), np.uint8)
        shown = two_of(space, lambda n: np.zeros((8, 12, 3), np.uint8), AutoresetMode.SAME_STEP)
        with pytest.raises(DatasetError) as caught:
            collect(Turned(shown), 30)
        for shape in ((3, 12, 8) if final else (3, 8, 12), (8, 12, 3)):
            assert f"{shape}" in str(caught.value)

    def test_a_last_observation_that_is_not_told(self):
        class Silent(gymnasium.vector.VectorWrapper):
            def step(self, actions):
                *rest, _ = self.env.step(actions)
                return *rest, {}

        vector = Silent(SyncVectorEnv([lambda: Numbered(0)], autoreset_mode=AutoresetMode.SAME_STEP))
        with pytest.raises(ConfigError, match="final_obs"):
            collect(vector, 200)


def uniform(counts: np.ndarray) -> bool:
    return chisquare(counts).pvalue > 1e-4


class Noisy(gymnasium.Env):
    """Draws one random number a step, none at the start, and tells what it was."""

    observation_space = spaces.Box(-2, 2, (2,), np.float32)

    def __init__(self, action_space):
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        if isinstance(self.action_space, spaces.Box):
            noise, acted = self.np_random.uniform(-1, 1), float(action[0])
        else:
            noise, acted = self.np_random.integers(2), float(np.ravel(action)[0])
        return np.array([noise, acted], np.float32), 0.0, False, False, {}


class TestRandomActions:
    @pytest.mark.parametrize(
        ("space", "codes", "cells"),
        [
            (spaces.Discrete(7), [1], 7),
            (spaces.MultiDiscrete([3, 4]), [4, 1], 12),
            (spaces.MultiBinary(3), [4, 2, 1], 8),
            (spaces.Box(0, 3, (2,), np.int64), [4, 1], 16),
        ],
        ids=str,
    )
    def test_every_action_is_as_likely_and_independent(self, space, codes, cells):
        drawn = itertools.islice(random_actions(space, 0), 20_000)
        actions = (np.array([np.ravel(action) for action in drawn]) @ codes).astype(int)
        assert uniform(np.bincount(actions, minlength=cells))
        assert uniform(np.bincount(cells * actions[:-1:2] + actions[1::2], minlength=cells**2))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_boxes(self, dtype):
        low, high = np.array([-1.0, 0, 5], dtype), np.array([1.0, 10, 5.5], dtype)
        space = spaces.Box(low, high, dtype=dtype)
        actions = np.array(list(itertools.islice(random_actions(space, 0), 20_000)))
        assert actions.dtype == dtype
        assert space.contains(actions[0])
        bins = np.minimum((actions - low) / (high - low) * 5, 4).astype(int)
        assert uniform(np.bincount(bins @ [25, 5, 1], minlength=125))

    @pytest.mark.parametrize(
        "space",
        [
            spaces.Discrete(1_000),
            spaces.Box(-1, 1, (3,)),
            spaces.Box(-1, 1, ()),
            spaces.Box(-np.inf, np.inf, (3,)),
            spaces.MultiDiscrete([100, 100]),
        ],
        ids=str,
    )
    def test_seeded(self, space):
        first, again, other = (
            np.array(list(itertools.islice(random_actions(space, seed), 50))) for seed in (4, 4, 5)
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()

    @pytest.mark.parametrize(
        "space", [spaces.Box(-1, 1, (1,)), spaces.Discrete(2), spaces.MultiDiscrete([2])]
    )
    def test_they_have_nothing_to_do_with_the_noise_of_the_environment(self, space):
        """Which draws from a generator of the same seed, and here as often."""
        experience = collect(Noisy(space), 4_000, seed=11)
        noise, acted = experience.observations[1:].T
        assert abs(np.corrcoef(noise, acted)[0, 1]) < 0.1
