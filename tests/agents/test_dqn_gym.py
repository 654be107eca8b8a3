"""DQN on Gymnasium environments, against the log of what the environment did and values by hand."""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import equinox as eqx
import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import lapwing  # noqa: F401 (registers the environments)
from lapwing.agents.dqn import Training
from lapwing.agents.dqn_gym import GymState, train_on_env
from lapwing.agents.replay_buffer import ReplayBuffer, Transitions
from lapwing.errors import ConfigError, DatasetError, NonFiniteError
from lapwing.mazes import parse_maze
from lapwing.runs.folder import RunFolder
from lapwing.settings.agents import AgentSettings
from lapwing.shaping.rewards import Goal, GoalReward
from tests.support import exact
from tests.support.environments import Line
from tests.support.interruptions import Interrupted

TINY = AgentSettings(
    random_steps=60,
    steps=150,
    evaluate_every=50,
    gamma=0.5,
    epsilon=1.0,
    batch=16,
    learning_rate=0.01,
    hidden=(16,),
    target_every=5,
    target_rate=1.0,
)
cartpole = partial(gymnasium.make, "CartPole-v1")


LINE_VALUES = np.array([[-1.9375, -1.875], [-1.9375, -1.75], [-1.875, -1.5], [-1.75, -1.0]])
"""Q* of Line with gamma 1/2: V is -1, -1.5, -1.75 and -1.875 from right to left."""


def line(limit: int = 3, **options: int) -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(Line(**options), limit)


class Logged(gymnasium.Wrapper):
    """Writes down what it is asked and what it answers."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        self.seeds: list[int] = []
        self.episodes: list[list[tuple]] = []
        self.closed = False

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        self.episodes.append([])
        self.here, info = super().reset(seed=seed, options=options)
        return self.here, info

    def step(self, action):
        there, reward, terminated, truncated, info = super().step(action)
        self.episodes[-1].append(
            (np.array(self.here), action, reward, np.array(there), terminated, truncated)
        )
        self.here = there
        return there, reward, terminated, truncated, info

    def close(self):
        self.closed = True
        super().close()

    @property
    def steps(self) -> list[tuple]:
        return [step for episode in self.episodes for step in episode]


class Kept:
    """The last checkpoint, in memory."""

    def __init__(self):
        self.rows: list[dict] = []
        self.state: Any = None
        self.step = 0

    def restore(self, like: Any):
        return None

    def record(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def keep(self, state: GymState, step: int, seconds: float, *, last: bool) -> None:
        self.state, self.step = (
            jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, state),
            step,
        )


def trained(
    make: Callable[[], gymnasium.Env], settings: AgentSettings = TINY, **how: Any
) -> tuple[Training, Kept, Logged, Logged]:
    """What training gives, its last checkpoint, and the logs of both environments."""
    envs: list[Logged] = []

    def make_logged():
        envs.append(Logged(make()))
        return envs[-1]

    kept = Kept()
    training, _ = train_on_env(make_logged, settings, checkpoints=kept, **how)
    return training, kept, *envs


@cache
def on_a_line():
    """Actions are 3 and 4, places 7 to 11; of all but the last, episodes of up to three steps."""
    settings = dataclasses.replace(TINY, steps=1_200, evaluate_every=400, learning_rate=0.02)
    return trained(partial(line, first_action=3, first_place=7), settings)


def weights(training: Training) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(eqx.filter(training.q, eqx.is_array))]


def transitions(kept: Kept) -> Transitions:
    """All that the last checkpoint holds."""
    stored = kept.state.replay
    buffer = ReplayBuffer(len(stored.actions), stored.observations.shape[1:], stored.observations.dtype)
    buffer.fill(stored)
    return buffer.at(np.arange(len(buffer)))


class SlowReset(gymnasium.Wrapper):
    """Takes its time to begin an episode."""

    SECONDS = 0.02

    def reset(self, **how):
        time.sleep(self.SECONDS)
        return super().reset(**how)


def test_seconds_of_training_leave_compilation_and_evaluation_out():
    envs: list[gymnasium.Env] = []

    def make():
        envs.append(SlowReset(line()) if envs else line())  # the second one is for evaluation
        return envs[-1]

    settings, began = dataclasses.replace(TINY, batch=17), time.perf_counter()  # compiled nowhere else
    training, _ = train_on_env(make, settings)
    wall, evaluating = time.perf_counter() - began, 3 * 10 * SlowReset.SECONDS
    assert training.compile_seconds > 0
    assert 0 < training.seconds < wall - training.compile_seconds - evaluating


class TestOnALine:
    def test_values_are_those_by_hand(self):
        """Nothing counts after the right end, and time limits end nothing; actions have an offset."""
        training, *_ = on_a_line()
        np.testing.assert_allclose(np.asarray(training.q.weight)[:4], LINE_VALUES, atol=1e-3)

    def test_the_replay_is_what_the_environment_did(self):
        _, kept, env, _ = on_a_line()
        count = 60 + kept.step
        assert count > 1_200
        here, action, reward, there, terminated, truncated = map(
            np.array, zip(*env.steps[:count], strict=True)
        )
        replay = transitions(kept)
        np.testing.assert_array_equal(replay.observations, here - 7)
        np.testing.assert_array_equal(replay.actions, action - 3)
        np.testing.assert_array_equal(replay.rewards, reward)
        np.testing.assert_array_equal(replay.next_observations[~terminated], there[~terminated] - 7)
        np.testing.assert_array_equal(replay.terminated, terminated)
        assert terminated.sum() > 100
        assert (truncated & ~terminated).sum() > 100

    def test_episodes_go_on_until_they_are_over_but_for_two(self):
        """The one that the random steps break off, and perhaps the last."""
        _, _, env, _ = on_a_line()
        begun = 0
        for number, episode in enumerate(env.episodes):
            over = [terminated or truncated for *_, terminated, truncated in episode]
            assert not any(over[:-1])
            begun += len(episode)
            if number < len(env.episodes) - 1 and begun != 60:
                assert over[-1]

    def test_every_episode_has_a_seed_of_its_own(self):
        _, _, env, judge = on_a_line()
        assert None not in env.seeds + judge.seeds
        assert len(set(env.seeds)) == len(env.seeds) > 400
        assert not set(env.seeds) & set(judge.seeds)
        assert env.closed
        assert judge.closed

    def test_evaluations_are_of_the_same_episodes(self):
        _, _, _, judge = on_a_line()
        each = len(judge.seeds) // 3
        assert each >= 10
        assert judge.seeds == judge.seeds[:each] * 3

    def test_the_return_is_that_of_the_greedy_policy_over_ten_episodes(self):
        training, kept, _, judge = on_a_line()
        assert training.evaluated_at.tolist() == [400, 800, 1_200]
        returns = [sum(reward for _, _, reward, *_ in episode) for episode in judge.episodes if episode]
        assert len(returns) == 30
        expected = np.reshape(returns, (3, 10)).mean(axis=1)
        np.testing.assert_allclose(training.returns, expected)
        np.testing.assert_allclose([row["return"] for row in kept.rows], expected)
        best = np.asarray(training.q.weight).argmax(axis=1)
        for episode in [episode for episode in judge.episodes if episode][20:]:
            for here, action, *_ in episode:
                assert action == 3 + best[here - 7]


def test_what_is_recorded():
    calls = []
    _, kept, *_ = trained(line, on_chunk=lambda *call: calls.append(call))
    assert [(step, steps) for step, steps, _ in calls] == [(50, 150), (100, 150), (150, 150)]
    assert [row for *_, row in calls] == kept.rows
    for row in kept.rows:
        assert set(row) == {"step", "return", "loss", "seconds", "steps_per_second"}
        assert row["loss"] > 0
        assert row["steps_per_second"] > 0
    assert np.all(np.diff([row["seconds"] for row in kept.rows]) > 0)


class Overwriting(gymnasium.ObservationWrapper):
    """Writes each observation over the last one, as some environments do."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        self.observation_space = Box(0, 4, (1,), np.float32)
        self.buffer = np.zeros(1, np.float32)

    def observation(self, observation):
        self.buffer[:] = observation
        return self.buffer


def test_an_environment_may_write_its_next_observation_over_the_last():
    _, kept, *_ = trained(lambda: Overwriting(line()))
    replay = transitions(kept)
    right = (replay.actions == 1) & ~replay.terminated
    moved = (replay.next_observations - replay.observations)[:, 0]
    assert set(moved[right]) == {1.0}


@pytest.mark.slow
def test_cartpole_is_learned():
    """A random policy keeps the pole up for some 20 steps."""
    settings = AgentSettings(
        random_steps=1_000,
        steps=1_500,
        evaluate_every=250,
        learning_rate=2e-3,
        batch=64,
        hidden=(64,),
        target_every=10,
        target_rate=0.2,
    )
    training, spec = train_on_env(cartpole, settings)
    assert (spec.name, spec.shape, spec.dim) == ("mlp", (4,), 2)
    assert training.returns.max() > 60


@pytest.mark.slow
def test_images():
    maze = parse_maze("..G\n...\n", name="small")
    make = partial(gymnasium.make, "lapwing/Maze-v0", maze=maze, observation="image")
    settings = dataclasses.replace(TINY, steps=50, batch=4)
    training, kept, env, _ = trained(make, settings)
    replay = kept.state.replay
    assert replay.observations.dtype == np.uint8
    np.testing.assert_array_equal(replay.observations[:100], [step[0] for step in env.steps[:100]])
    assert training.q.shift.shape == (2, 3, 3)
    np.testing.assert_allclose(
        training.q.shift, replay.observations[:60].mean(axis=0) / 255, rtol=1e-4, atol=1e-6
    )


def test_vectors_are_standardised_by_the_random_steps():
    training, kept, *_ = trained(cartpole, dataclasses.replace(TINY, steps=50))
    seen = kept.state.replay.observations[:60].astype(np.float64)
    np.testing.assert_allclose(training.q.shift, seen.mean(axis=0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(training.q.scale, seen.std(axis=0), rtol=1e-4)


def test_a_goal_reward_is_asked_and_what_it_says_is_learned_from():
    cells, goal = exact.cells("TwoRoom"), exact.goal_of(exact.text_of("TwoRoom"))
    positions = np.array(cells, float)
    goal_reward = GoalReward("l2", Goal(positions[goal], h=lambda state: positions[state]))
    calls = []

    def reward(here, there, terminated):
        value = goal_reward(here, there, terminated)
        calls.append((here, there, terminated, float(value)))
        return value

    settings = dataclasses.replace(TINY, steps=100)
    make = partial(gymnasium.make, "lapwing/TwoRoom-v0", observation="index")
    training, kept, env, judge = trained(make, settings, reward=reward)
    assert kept.step == 100
    assert [call[:3] for call in calls] == [(step[0], step[3], step[4]) for step in env.steps]
    replay = kept.state.replay
    expected = [-np.linalg.norm(positions[step[3]] - positions[goal]) for step in env.steps]
    np.testing.assert_allclose([call[3] for call in calls], expected)
    np.testing.assert_allclose(replay.rewards, expected, rtol=1e-6)
    assert not replay.terminated.any()
    assert np.asarray(training.q.weight).shape == (len(cells), 4)
    # The policy is judged by the environment's own reward.
    own = [sum(step[2] for step in episode) for episode in judge.episodes if episode]
    np.testing.assert_allclose(training.returns, np.reshape(own, (2, 10)).mean(axis=1))
    assert set(np.unique([step[2] for step in judge.steps])) <= {-1.0, 0.0}


def test_the_reward_is_told_of_a_termination_and_not_of_a_time_limit():
    told = []

    def reward(here, there, terminated):
        told.append(bool(terminated))
        return 0.0

    _, kept, env, _ = trained(line, dataclasses.replace(TINY, steps=50), reward=reward)
    assert told == [step[4] for step in env.steps]
    assert not kept.state.replay.rewards.any()
    assert any(told)
    assert any(step[5] and not step[4] for step in env.steps)


class Seeing(gymnasium.Env):
    """Observes noise of any space."""

    action_space = Discrete(2)

    def __init__(self, space: gymnasium.Space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action), False, False, {}


class TestRefused:
    def test_continuous_actions(self):
        envs = []

        def make():
            envs.append(Logged(gymnasium.make("Pendulum-v1")))
            return envs[-1]

        with pytest.raises(ConfigError, match=r"Discrete action.* Box\(-2\.0, 2\.0"):
            train_on_env(make, TINY)
        assert all(env.closed for env in envs)
        assert all(env.seeds == [] for env in envs)

    @pytest.mark.parametrize(
        ("space", "named"),
        [
            (Dict({"position": Box(-1, 1, (2,))}), r"Dict\('position'"),
            (Box(0, 1, (3, 4)), r"Box\(0\.0, 1\.0, \(3, 4\)"),
            (gymnasium.spaces.MultiBinary(3), r"MultiBinary\(3\)"),
        ],
    )
    def test_observations_that_no_network_takes(self, space, named):
        with pytest.raises(ConfigError, match=f"observations.* {named}.*FlattenObservation"):
            train_on_env(lambda: Seeing(space), TINY)


class Patience(gymnasium.Wrapper):
    """Ends the test when an episode goes on forever."""

    def reset(self, **how):
        self.taken = 0
        return super().reset(**how)

    def step(self, action):
        self.taken += 1
        assert self.taken < 20_000, "an episode that never ends"
        return super().step(action)


def test_an_environment_without_a_time_limit_does_not_hang():
    """A greedy policy may walk into a wall forever; to refuse such an environment would do, too."""
    assert gymnasium.spec("CliffWalking-v1").max_episode_steps is None
    settings = dataclasses.replace(TINY, random_steps=20, steps=20)
    with contextlib.suppress(ConfigError):
        train_on_env(lambda: Patience(gymnasium.make("CliffWalking-v1")), settings)


@pytest.mark.parametrize("steps", [150, 1])
def test_values_that_run_away_are_told(steps):
    """After one step the loss was still finite, and the values are no more."""
    with pytest.raises(NonFiniteError, match=f"step {min(steps, 50)};.*--learning-rate"):
        trained(cartpole, dataclasses.replace(TINY, learning_rate=1e30, steps=steps))


@pytest.mark.parametrize("part", ["observation", "reward"])
def test_an_environment_that_gives_nan_is_named_before_it_is_learned(part):
    class Broken(gymnasium.Wrapper):
        def step(self, action):
            there, reward, *rest = super().step(action)
            broken = self.unwrapped.state[2] > 0.1
            if broken and part == "observation":
                there[1] = np.nan
            return there, np.nan if broken and part == "reward" else reward, *rest

    kept = Kept()
    with pytest.raises(DatasetError, match=f"{part}.* in episode"):
        train_on_env(lambda: Broken(cartpole()), TINY, checkpoints=kept)
    assert kept.state is None


class TestBits:
    def test_the_same_seed_gives_the_same_and_others_differ(self):
        first, second = (trained(line)[0] for _ in range(2))
        other = trained(line, dataclasses.replace(TINY, seed=1))[0]
        assert weights(first) == weights(second)
        assert weights(first) != weights(other)

    @pytest.mark.parametrize("stop_at", [50, 100])
    def test_an_interrupted_run_goes_on_to_the_same(self, tmp_path, often, stop_at):
        settings = dataclasses.replace(TINY, epsilon=0.3)

        def stop(step, steps, row):
            if step == stop_at:
                raise Interrupted

        with pytest.raises(Interrupted):
            train_on_env(cartpole, settings, checkpoints=RunFolder(tmp_path), on_chunk=stop)
        kept = sorted(int(path.stem.split("-")[1]) for path in tmp_path.glob("checkpoint*"))
        assert 0 < kept[-1] < stop_at
        chunks = []
        again, _ = train_on_env(
            cartpole,
            settings,
            checkpoints=RunFolder(tmp_path),
            on_chunk=lambda step, *rest: chunks.append(step),
        )
        assert chunks == list(range(stop_at, 151, 50))
        straight = whole_cartpole(settings)
        assert weights(again) == weights(straight)
        np.testing.assert_array_equal(again.returns, straight.returns)
        assert [row["step"] for row in RunFolder(tmp_path).metrics()] == [50, 100, 150]

    def test_going_on_does_not_repeat_the_random_steps(self, tmp_path, often):
        envs = []

        def make():
            envs.append(Logged(line()))
            return envs[-1]

        def stop(step, steps, row):
            raise Interrupted

        with pytest.raises(Interrupted):
            train_on_env(make, TINY, checkpoints=RunFolder(tmp_path), on_chunk=stop)
        train_on_env(make, TINY, checkpoints=RunFolder(tmp_path))
        first, _, again, _ = envs
        assert len(first.steps) == 60 + 50
        assert 100 <= len(again.steps) < 105
        assert not set(again.seeds) & set(first.seeds[:20]), "episodes of up to three steps"


@cache
def whole_cartpole(settings: AgentSettings) -> Training:
    return train_on_env(cartpole, settings)[0]
