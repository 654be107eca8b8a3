"""Arenas as Gymnasium environments, against the simulator of many bodies and the text of the maze."""

import copy
import itertools
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import check_env

import lapwing  # noqa: F401 (registers the environments)
from lapwing.envs.arena_env import ControlEnv
from lapwing.envs.gridworld import WALL
from lapwing.envs.simulator import Simulator
from lapwing.errors import ConfigError
from lapwing.mazes import parse_maze

BUILT_IN = [f"lapwing/{body}{maze}-v0" for body in ("Point", "Ant") for maze in ("UMaze", "HookMaze")]
IDS = [*BUILT_IN, "lapwing/PointMaze-v0", "lapwing/AntMaze-v0"]
ROOM = parse_maze("...\n.G.\n", name="Room")


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """No GL, whatever this machine has."""
    monkeypatch.setenv("MUJOCO_GL", "off")


def make(env_id: str, **kwargs) -> gymnasium.Env:
    if env_id in ("lapwing/PointMaze-v0", "lapwing/AntMaze-v0"):
        kwargs.setdefault("maze", ROOM)
    return gymnasium.make(env_id, **kwargs)


WRONG_VALUES = """
import gymnasium, lapwing

def told(make):
    try:
        make()
    except lapwing.errors.ConfigError as error:
        print(error)

for kwargs in ({"goal": (1.5, 1)}, {"goal": "1,1"}, {"goal": 3}, {"cell": "2"}):
    told(lambda: gymnasium.make("lapwing/PointUMaze-v0", **kwargs))
told(lambda: gymnasium.make("lapwing/PointMaze-v0"))
env = gymnasium.make("lapwing/PointUMaze-v0").unwrapped
told(lambda: env.reset(options={"position": "x"}))
told(lambda: env.step("x"))
"""


class TestContract:
    def test_all_ids_are_tested_here(self):
        registered = {
            name for name in gymnasium.registry if name.startswith(("lapwing/Point", "lapwing/Ant"))
        }
        assert registered == set(IDS)
        assert {gymnasium.spec(env_id).max_episode_steps for env_id in IDS} == {300}

    @pytest.mark.parametrize("env_id", IDS)
    @pytest.mark.filterwarnings(r"ignore:.*A Box observation space (min|max)imum value is -?infinity")
    def test_check_env_has_nothing_to_say_but_that_space_is_infinite(self, env_id):
        check_env(make(env_id, render_mode="rgb_array").unwrapped)

    @pytest.mark.parametrize("env_id", IDS)
    def test_spaces(self, env_id):
        env = make(env_id)
        numbers, pushes = (6, 2) if "Point" in env_id else (29, 8)
        assert env.action_space == gymnasium.spaces.Box(-1, 1, (pushes,), np.float32)
        shapes = {key: space.shape for key, space in env.observation_space.items()}
        assert shapes == {"observation": (numbers,), "achieved_goal": (2,), "desired_goal": (2,)}
        observation, info = env.reset(seed=0)
        for _ in range(3):
            assert observation in env.observation_space
            assert set(info) == {"success", "is_success", "distance"}
            observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
            assert type(reward) is float
            assert (terminated, truncated) == (False, False)

    @pytest.mark.parametrize("env_id", ["lapwing/PointUMaze-v0", "lapwing/AntUMaze-v0"])
    def test_a_seed_is_an_episode(self, env_id):
        def episode(seed):
            env = make(env_id)
            first, _ = env.reset(seed=seed)
            env.action_space.seed(0)
            later = [env.step(env.action_space.sample())[0]["observation"] for _ in range(5)]
            second, _ = env.reset()
            return np.array([first["observation"], *later, second["observation"]])

        np.testing.assert_array_equal(episode(1), episode(1))
        assert (episode(1)[:, :2] != episode(2)[:, :2]).all()
        assert (episode(1)[0] != episode(1)[-1]).any(), "without a seed the next start is another"

    def test_starts_are_all_over_the_maze(self):
        env = make("lapwing/PointUMaze-v0").unwrapped
        env.reset(seed=0)
        starts = np.array([env.reset()[0]["achieved_goal"] for _ in range(200)], np.float64)
        assert env.arena.has_room(starts).mean() > 0.98  # single precision takes a little away
        cells = {(round(2 - y / 2), round(x / 2 + 2)) for x, y in starts}
        assert cells == {(1, 1), (1, 2), (1, 3), (2, 3), (3, 1), (3, 2), (3, 3)}

    @pytest.mark.parametrize("env_id", IDS)
    def test_its_spec_makes_the_same_environment_again(self, env_id):
        env = make(env_id, goal=(1, 1), cell=3.5, fast=True)
        again = gymnasium.make(env.spec)
        assert again.spec == env.spec
        assert again.unwrapped.arena == env.unwrapped.arena
        assert (again.unwrapped.arena.cell, again.unwrapped.arena.fast) == (3.5, True)
        np.testing.assert_array_equal(
            env.reset(seed=3)[0]["observation"], again.reset(seed=3)[0]["observation"]
        )

    def test_an_observation_is_the_callers_to_write_on(self):
        env = make("lapwing/PointUMaze-v0")
        env.reset(seed=0)
        observation, *_ = env.step(np.zeros(2, np.float32))
        observation["achieved_goal"][:] = 99
        assert np.abs(observation["observation"]).max() < 4
        for part in observation.values():
            part[:] = 99
        observation, *_ = env.step(np.zeros(2, np.float32))
        assert observation["desired_goal"].tolist() == [-2, -2]
        assert np.abs(observation["observation"]).max() < 4


class TestSteps:
    @pytest.mark.parametrize("env_id", ["lapwing/PointUMaze-v0", "lapwing/AntUMaze-v0"])
    @pytest.mark.parametrize("fast", [False, True])
    def test_it_moves_as_one_of_many_in_the_simulator(self, env_id, fast):
        env = make(env_id, fast=fast)
        observation, _ = env.reset(seed=7)
        simulator = Simulator(env.unwrapped.arena)
        generator, _ = seeding.np_random(7)
        mine = simulator.at_rest(simulator.arena.random_positions(1, generator), generator)
        others = simulator.at_rest(simulator.arena.random_positions(2, generator))
        rows = np.concatenate([others[:1], mine, others[1:]])
        env.action_space.seed(0)
        for _ in range(40):
            np.testing.assert_array_equal(observation["observation"], simulator.observe(rows)[1])
            np.testing.assert_array_equal(observation["achieved_goal"], rows[1, 1:3].astype(np.float32))
            action = np.sign(env.action_space.sample())
            observation, *_ = env.step(action)
            rows = simulator.step(rows, np.stack([-action, action, 0 * action]))

    def test_rewards_on_the_way_to_the_goal_past_it_and_away(self):
        """From 1.5 to the right of it to the wall 0.7 to the left of it, and back: 0 within 0.6 of it."""
        env = make("lapwing/PointUMaze-v0")
        env.reset(seed=0, options={"position": (-0.5, -2.0)})
        rewards, distances = [], []
        for push in [-1] * 12 + [1] * 30:
            observation, reward, *_, info = env.step(np.array([push, 0], np.float32))
            x, y = observation["achieved_goal"].tolist()
            distances.append(np.hypot(x + 2, y + 2))
            rewards.append(reward)
            assert info["distance"] == pytest.approx(distances[-1], abs=1e-5)
            assert info["success"] is info["is_success"] is (reward == 0)
        assert rewards == [0.0 if distance <= 0.6 else -1.0 for distance in distances]
        changes = [rewards[0]] + [b for a, b in itertools.pairwise(rewards) if a != b]
        assert changes == [-1, 0, -1, 0, -1], "there, past it, there again, and away"

    @pytest.mark.parametrize(
        ("env_id", "radius"), [("lapwing/PointUMaze-v0", 0.6), ("lapwing/AntHookMaze-v0", 1.5)]
    )
    def test_compute_reward_of_a_batch(self, env_id, radius):
        env = make(env_id).unwrapped
        goal = env.reset(seed=0)[0]["desired_goal"]
        away = (
            np.array([[0, 0], [0.99, 0], [0, -0.99], [1.01, 0], [0.72, -0.72], [0.69, 0.69], [9, 9]]) * radius
        )
        expected = [0, 0, 0, -1, -1, 0, -1]
        achieved = (goal + away).astype(np.float32)
        rewards = env.compute_reward(achieved, np.tile(goal, (7, 1)), [{}] * 7)
        assert rewards.tolist() == expected
        assert env.compute_reward(achieved, goal, {}).tolist() == expected
        assert [float(env.compute_reward(one, goal, {})) for one in achieved] == expected
        assert env.compute_reward(achieved.reshape(7, 1, 2), goal, {}).shape == (7, 1)
        assert env.compute_terminated(goal, goal, {}) is env.compute_truncated(goal, goal, {}) is False
        elsewhere = achieved + np.float32(2)
        assert env.compute_reward(elsewhere, goal + np.float32(2), {}).tolist() == expected, (
            "any goal will do"
        )

    @pytest.mark.parametrize("env_id", BUILT_IN)
    def test_at_the_goal_it_is_a_success(self, env_id):
        env = make(env_id)
        goal = env.unwrapped.arena.goal
        observation, info = env.reset(seed=0, options={"position": goal})
        np.testing.assert_allclose(observation["achieved_goal"], goal, atol=1e-6)
        assert info["success"] is info["is_success"] is True
        _, reward, terminated, truncated, info = env.step(0 * env.action_space.sample())
        assert (reward, terminated, truncated, info["success"]) == (0, False, False, True)

    @pytest.mark.parametrize("env_id", ["lapwing/PointUMaze-v0", "lapwing/AntUMaze-v0"])
    def test_what_is_no_number_is_refused_and_changes_nothing(self, env_id):
        envs = [make(env_id).unwrapped for _ in range(2)]
        for env in envs:
            env.reset(seed=0)
        push = np.ones(envs[0].action_space.shape, np.float32)
        for wrong in (push * np.nan, push[:1]):
            with pytest.raises(ConfigError, match="actions"):
                envs[0].step(wrong)
        np.testing.assert_array_equal(*(env.step(push)[0]["observation"] for env in envs))

    @pytest.mark.parametrize("env_id", ["lapwing/PointUMaze-v0", "lapwing/AntUMaze-v0"])
    def test_a_copy_goes_its_own_way(self, env_id):
        env = make(env_id, render_mode="rgb_array").unwrapped
        env.reset(seed=0)
        env.render()
        twin = copy.deepcopy(env)
        push = np.ones(env.action_space.shape, np.float32)
        for _ in range(3):
            expected = env.step(push)[0]["observation"]
        picture = env.render()
        assert (twin.render() != picture).any()
        for _ in range(3):
            found = twin.step(push)[0]["observation"]
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(twin.render(), picture)
        np.testing.assert_array_equal(twin.reset()[0]["observation"], env.reset()[0]["observation"])


class TestReset:
    @pytest.mark.parametrize("env_id", BUILT_IN)
    def test_at_a_position(self, env_id):
        env = make(env_id)
        place = env.unwrapped.arena.cell * np.array([0.1, 1.0])
        observation, info = env.reset(seed=0, options={"position": tuple(place)})
        np.testing.assert_allclose(observation["achieved_goal"], place, atol=1e-6)
        np.testing.assert_allclose(observation["observation"][:2], place, atol=1e-6)
        assert info["success"] is False
        assert np.abs(observation["observation"][-3:]).max() > 0, "with small deviations all the same"

    @pytest.mark.parametrize(
        "position", [(0.0, 0.0), (-2.0, 2.9), (2.0, 50.0), (1.0, 2.0, 3.0), 2.0, (np.nan, 2.0)]
    )
    def test_where_there_is_no_room(self, position):
        env = make("lapwing/PointUMaze-v0").unwrapped
        with pytest.raises(ConfigError, match=r"position.* Point"):
            env.reset(options={"position": position})

    def test_an_ant_needs_more_room_than_a_point(self):
        place = {"position": (2.0, 3.0 - 0.5)}
        make("lapwing/PointUMaze-v0").reset(options=place)
        with pytest.raises(ConfigError, match=r"position.* Ant"):
            make("lapwing/AntUMaze-v0", cell=2.0).reset(options=place)


class TestMaking:
    def test_a_maze_file_another_goal_and_another_width(self, tmp_path):
        path = tmp_path / "mine.txt"
        path.write_text("G..\n#..\n")
        env = gymnasium.make("lapwing/PointMaze-v0", maze=path)
        assert env.unwrapped.arena.name == "Pointmine"
        assert env.reset(seed=0)[0]["desired_goal"].tolist() == [-2, 1]
        env = gymnasium.make("lapwing/AntMaze-v0", maze=str(path), goal=(1, 2), cell=4.0)
        assert env.reset(seed=0)[0]["desired_goal"].tolist() == [4, -2]

    def test_a_maze_by_its_name(self):
        assert gymnasium.make("lapwing/AntMaze-v0", maze="HookMaze").unwrapped.arena.name == "AntHookMaze"

    @pytest.mark.parametrize(
        ("kwargs", "words"),
        [
            ({"body": "point"}, r"'point'.* Point\?"),
            ({"maze": "UMaz"}, r"'UMaz'.* UMaze\?"),
            ({"maze": "FourRoom"}, "FourRoom.* G"),
            ({"goal": (0, 0)}, r"goal \(0,0\)"),
            ({"cell": 1.0}, "cells of 1 .* Ant"),
            ({"render_mode": "human"}, "render_mode.*'human'"),
        ],
    )
    def test_what_cannot_be_made(self, kwargs, words):
        with pytest.raises(ConfigError, match=words):
            ControlEnv(**({"body": "Ant", "maze": "UMaze"} | kwargs))

    def test_wrong_values_are_told_in_a_sentence(self):
        """In a process without the type checks that only the tests have."""
        printed = subprocess.run(
            [sys.executable, "-c", WRONG_VALUES], capture_output=True, text=True, check=True
        )
        assert printed.stdout.splitlines() == [
            "goal must be a cell (row, column), not (1.5, 1)",
            "goal must be a cell (row, column), not '1,1'",
            "goal must be a cell (row, column), not 3",
            "cell must be a number at most 1,000, not '2'",
            "name a maze: maze='UMaze', the path of a text file, or a Maze",
            "position must be two numbers (x, y), not 'x'",
            "actions must be numbers, not 'x'",
        ]

    def test_without_mujoco_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "mujoco", None)
        with pytest.raises(ConfigError, match=r"pip install 'lapwing\[mujoco\]'"):
            gymnasium.make("lapwing/PointUMaze-v0")


class TestRender:
    @pytest.mark.parametrize("env_id", ["lapwing/PointUMaze-v0", "lapwing/AntHookMaze-v0"])
    def test_pictures(self, env_id):
        env = make(env_id, render_mode="rgb_array")
        env.reset(seed=0)
        first = env.render()
        assert first.dtype == np.uint8
        assert first.shape == ((360, 360, 3) if "UMaze" in env_id else (240, 360, 3))
        assert tuple(first[0, 0]) == WALL
        np.testing.assert_array_equal(env.render(), first)
        for _ in range(10):
            env.step(np.ones_like(env.action_space.sample()))
        assert (env.render() != first).any()

    def test_closed_and_opened_again(self):
        env = ControlEnv("Point", "UMaze", render_mode="rgb_array")
        env.reset(seed=0)
        first = env.render()
        env.close()
        env.close()
        np.testing.assert_array_equal(env.render(), first)
