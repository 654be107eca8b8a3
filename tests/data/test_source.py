"""What names mean, how config.json names them, and how environments are made by name."""

import inspect
import json
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv, VectorEnv

from lapwing.data.experience import Experience
from lapwing.data.folders import save_episodes
from lapwing.data.source import (
    DataFile,
    GymEnv,
    describe,
    read_data,
    read_source,
    recall,
)
from lapwing.envs.arena import Arena
from lapwing.envs.make import env_name, make_env, make_envs
from lapwing.envs.plane import Plane
from lapwing.errors import ConfigError, DatasetError, MazeError
from lapwing.mazes import Maze, parse_maze
from tests.support import exact
from tests.support.sources import ROOM, walk

# What a name means


@pytest.mark.parametrize("name", ["OneRoom", "TwoRoom", "HardMaze", "FourRoom"])
def test_a_built_in_maze_by_its_name(name):
    source = read_source(name)
    assert isinstance(source, Maze)
    assert source.name == name
    assert int(source.floor.sum()) == len(exact.cells(name))


@pytest.mark.parametrize("as_type", [str, Path])
def test_files_and_folders_by_their_paths(maze_file, data_file, tmp_path, as_type):
    source = read_source(as_type(maze_file))
    assert isinstance(source, Maze)
    assert (source.name, source.text) == ("room", ROOM)
    save_episodes(tmp_path / "walks", [walk(), walk(seed=1)])
    for path in (data_file, tmp_path / "walks"):
        assert read_source(as_type(path)) == DataFile(path)


def test_an_environment_by_its_id():
    for name in ("CartPole-v1", "minigrid:MiniGrid-Empty-8x8-v0", "my/own.py:Rooms"):
        assert read_source(f"gym:{name}") == GymEnv(name)


def test_a_folder_of_data_that_is_not_finished(tmp_path):
    np.save(tmp_path / "observations.npy", walk())
    with pytest.raises(ConfigError, match=r"manifest\.json"):
        read_source(tmp_path)


@pytest.mark.parametrize("read", [read_source, read_data])
def test_a_folder_of_other_files_is_refused_with_what_to_do(tmp_path, read):
    (tmp_path / "walks.csv").touch()
    with pytest.raises(ConfigError, match=r"manifest\.json.*name a file") as refusal:
        read(tmp_path)
    assert "OneRoom" not in str(refusal.value)


@pytest.mark.parametrize("name", ["FourRoom", "gym:CartPole-v1", "walks"])
def test_what_is_no_data_set_is_refused_without_a_list_of_mazes(name):
    with pytest.raises(ConfigError, match=name) as refusal:
        read_data(name)
    assert "OneRoom" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gymnasium_robotics:PointMaze_UMaze-v3", "gym:gymnasium_robotics:PointMaze_UMaze-v3"),
        ("CartPole-v1", "gym:CartPole-v1"),
        ("Gym:CartPole-v1", "gym:CartPole-v1"),
    ],
)
def test_an_environment_without_its_scheme_is_suggested_with_it(name, meant):
    with pytest.raises(ConfigError, match=rf"'{name}'.*did you mean {meant}\?"):
        read_source(name)


def test_a_plane_and_an_arena_by_their_names():
    assert isinstance(read_source("PlaneFourRoom"), Plane)
    assert isinstance(read_source("PointUMaze"), Arena)


def test_environments_stand_for_themselves():
    env, vector = gymnasium.make("CartPole-v1"), gymnasium.make_vec("CartPole-v1", 2)
    assert read_source(env) is env
    assert read_source(vector) is vector


@pytest.mark.parametrize("as_type", [list, tuple, iter])
def test_episodes_become_experience(as_type):
    source = read_source(as_type([walk(), walk(seed=1)[:50]]))
    assert isinstance(source, Experience)
    assert source.lengths.tolist() == [200, 50]


def test_what_is_at_hand_stands_for_itself():
    for source in (parse_maze(ROOM, name="room"), Experience(walk(), [200]), GymEnv("CartPole-v1")):
        assert read_source(source) is source


def test_a_built_in_maze_comes_before_a_file_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("FourRoom").write_text(ROOM)
    source = read_source("FourRoom")
    assert isinstance(source, Maze)
    assert source.floor.shape == (15, 15)


@pytest.mark.parametrize(
    ("typo", "hint"), [("hardmaze", r"did you mean HardMaze\?"), ("xyz", "known: OneRoom")]
)
def test_an_unknown_name_is_refused_with_the_nearest(typo, hint):
    with pytest.raises(ConfigError, match=f"unknown target '{typo}'.*{hint}.* gym:ENV_ID"):
        read_source(typo)


@pytest.mark.parametrize("name", ["gone.txt", "gone.npz", "", ".", "x" * 300])
def test_a_file_that_is_not_there_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"unknown target|no data file"):
        read_source(name)


@pytest.mark.parametrize("name", ["data.pkl", "data.PT", "data.parquet", "data.csv"])
def test_data_of_another_format_is_refused_with_what_to_do(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps({"observations": [1, 2]}))
    with pytest.raises(ConfigError, match=rf"{name} .*\.npz"):
        read_source(tmp_path / name)


def test_a_file_that_is_no_text_is_not_taken_for_a_maze(tmp_path):
    (tmp_path / "what.bin").write_bytes(b"\x80\x04\x95" * 9)
    with pytest.raises(ConfigError, match=r"what\.bin .*\.npz, \.hdf5"):
        read_source(tmp_path / "what.bin")


def test_a_maze_file_that_cannot_be_walked_is_refused(tmp_path):
    (tmp_path / "bad.txt").write_text("###\n###\n")
    with pytest.raises(MazeError, match=r"maze bad: .*no floor"):
        read_source(tmp_path / "bad.txt")


def test_a_source_can_be_recalled_from_its_description(tmp_path, data_file):
    save_episodes(tmp_path / "walks", [walk()])
    sources = [parse_maze(ROOM, name="room"), GymEnv("CartPole-v1"), DataFile(data_file)]
    sources += [DataFile(tmp_path / "walks"), read_source("PlaneFourRoom"), read_source("PointUMaze")]
    for source in sources:
        description = json.loads(json.dumps(describe(source)))
        assert recall(description, tmp_path / "unused") == source


def test_experience_from_memory_is_recalled_from_the_run(tmp_path):
    experience = Experience(walk(), [100, 100])
    experience.save(tmp_path / "experience.npz")
    again = recall(describe(experience), tmp_path / "experience.npz")
    assert isinstance(again, Experience)
    assert again.sha256() == experience.sha256()


def test_an_environment_at_hand_is_recalled_from_what_it_gave(tmp_path):
    env = gymnasium.make("CartPole-v1")
    assert describe(env) == {"kind": "env", "name": "CartPole-v1"}
    Experience(walk(), [100, 100]).save(tmp_path / "experience.npz")
    assert isinstance(recall(describe(env), tmp_path / "experience.npz"), Experience)


def test_a_kind_that_is_not_known():
    with pytest.raises(ConfigError, match="'hologram'"):
        recall({"kind": "hologram"}, Path("unused"))


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_data_that_has_changed_is_refused(tmp_path, kind):
    path = tmp_path / "walks"

    def save(seed: int) -> None:
        if kind == "folder":
            save_episodes(path, [walk(seed=seed), walk(seed=1)])
        else:
            Experience(walk(seed=seed), [100, 100]).save(path)

    save(0)
    description = describe(DataFile(path))
    save(2)
    with pytest.raises(DatasetError, match="walks is no longer the file"):
        recall(description, tmp_path)
    (path / "manifest.json" if kind == "folder" else path).unlink()
    with pytest.raises(DatasetError, match="walks is no longer the file"):
        recall(description, tmp_path)


def test_different_sources_have_different_descriptions(tmp_path, data_file):
    save_episodes(tmp_path / "walks", [walk()])
    save_episodes(tmp_path / "others", [walk(seed=1)])
    sources = [
        parse_maze(ROOM, name="room"),
        parse_maze(ROOM.replace("G", "."), name="room"),
        parse_maze(ROOM, name="other"),
        DataFile(data_file),
        DataFile(tmp_path / "walks"),
        DataFile(tmp_path / "others"),
        read_source("PlaneFourRoom"),
        read_source("PlaneTwoRoom"),
        GymEnv("CartPole-v1"),
        GymEnv("Acrobot-v1"),
        Experience(walk(), [100, 100]),
        Experience(walk(), [50, 150]),
        Experience(walk(seed=1), [100, 100]),
        Experience(walk(), [100, 100], actions=np.zeros(200, int)),
        Experience(walk(), [100, 100], actions=np.ones(200, int)),
        Experience(walk(), [100, 100], rewards=np.zeros(200)),
    ]
    descriptions = [str(describe(source)) for source in sources]
    assert len(set(descriptions)) == len(sources)


def test_a_run_folder_is_pointed_to_what_reads_it(four_room_run):
    with pytest.raises(ConfigError, match=r"run folder.* lapwing evaluate"):
        read_source(str(four_room_run))


@pytest.mark.parametrize("source", [np.zeros((10, 2)), {"observations": np.zeros((10, 2))}, 7, None])
def test_what_is_no_source_is_refused(source):
    anything: Any = inspect.unwrap(read_source)  # without the tests' type checks
    with pytest.raises(ConfigError, match=f"target .* {type(source).__name__}"):
        anything(source)


OWN = """
from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import CartPoleEnv


@dataclass
class State:
    at: float = 0.0


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.steps = State(self.np_random.uniform(-1, 1)), 0
        return self._seen(), {}

    def step(self, action):
        self.state.at = float(np.clip(self.state.at + 0.1 * (2 * action - 1), -1, 1))
        self.steps += 1
        return self._seen(), 0.0, False, self.steps == 20, {}

    def _seen(self):
        return np.array([self.state.at], np.float32)


class Picky(Line):
    def __init__(self, size):
        self.size = size


class Broken(Line):
    def __init__(self):
        raise RuntimeError("no licence")
"""


@pytest.fixture
def own_file(tmp_path) -> Path:
    path = tmp_path / "own_env.py"
    path.write_text(OWN)
    return path


class TestMakeEnv:
    def test_a_module_that_registers_it(self, tmp_path, monkeypatch):
        module = "class_that_registers"
        (tmp_path / f"{module}.py").write_text(
            OWN + "\ngymnasium.register('OwnLine-v0', entry_point=Line, max_episode_steps=5)\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ConfigError, match="'OwnLine-v0'"):
            make_env("OwnLine-v0")
        try:
            assert make_env(f"{module}:OwnLine-v0").reset(seed=0)[0].shape == (1,)
            assert make_env("OwnLine-v0").spec is not None
        finally:
            gymnasium.registry.pop("OwnLine-v0", None)
            sys.modules.pop(module, None)

    def test_a_package_that_is_known_to_register_it(self):
        assert env_name(make_env("MiniGrid-Empty-5x5-v0")) == "MiniGrid-Empty-5x5-v0"

    def test_a_class_in_a_users_own_file(self, own_file):
        env = make_env(f"{own_file}:Line")
        observation, _ = env.reset(seed=0)
        assert env.observation_space.contains(observation)
        assert env_name(env) == "Line"

    def test_a_file_named_like_a_module_does_not_become_it(self, tmp_path):
        """Before, a user's random.py was run inside Python's own."""
        (tmp_path / "random.py").write_text(OWN + "\ndef randint(a, b):\n    return 'mine'\n")
        assert env_name(make_env(f"{tmp_path / 'random.py'}:Line")) == "Line"
        assert random.randint(3, 3) == 3
        assert sys.modules["random"] is random
        assert not hasattr(random, "Line")

    def test_two_files_of_one_name_are_two(self, tmp_path):
        for folder, step in (("a", "0.1"), ("b", "0.5")):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "env.py").write_text(OWN.replace("0.1 *", f"{step} *"))
        moved = []
        for folder in ("a", "b", "a"):
            env = make_env(f"{tmp_path / folder / 'env.py'}:Line")
            before = env.reset(seed=1)[0]
            moved.append(abs(float(env.step(0)[0][0] - before[0])))
        assert moved == pytest.approx([0.1, 0.5, 0.1])

    def test_a_file_that_was_changed_is_run_again(self, own_file):
        make_env(f"{own_file}:Line")
        own_file.write_text(
            OWN.replace("class Line", "class Curve").replace("(Line)", "(Curve)") + "# longer\n"
        )
        assert env_name(make_env(f"{own_file}:Curve")) == "Curve"
        with pytest.raises(ConfigError, match="'Line'"):
            make_env(f"{own_file}:Line")

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("CartPol-v1", r"'CartPol-v1'.* CartPole-v1\?"),
            ("qqqqqqqq", r"'qqqqqqqq'.* gymnasium\.pprint_registry"),
            ("", "''"),
            ("no_such_module:Env-v0", "'no_such_module'.* pip install no-such-module"),
            ("{own}:Lin", r"own_env\.py .*'Lin'.* Line\?"),
            ("{own}:CartPoleEnv", r"own_env\.py .*'CartPoleEnv'.* Line, Picky, Broken"),
            ("{own}:State", r"own_env\.py .*'State'"),
            ("{own}:Picky", r"own_env\.py:Picky: .*'size'"),
            ("{own}:Broken", r"own_env\.py:Broken: no licence"),
            ("{folder}/gone.py:Line", r"gone\.py"),
        ],
    )
    def test_what_cannot_be_made(self, name, words, own_file):
        with pytest.raises(ConfigError, match=words):
            make_env(name.format(own=own_file, folder=own_file.parent))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("def f(:", "SyntaxError"),
            ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
            ("1 / 0", "ZeroDivisionError"),
            ("import sys; sys.exit(3)", "SystemExit: 3"),
        ],
    )
    def test_a_file_that_cannot_be_run(self, text, message, tmp_path):
        path = tmp_path / "bad_env.py"
        path.write_text(text)
        with pytest.raises(ConfigError, match=rf"bad_env\.py .*\({message}"):
            make_env(f"{path}:Line")
        assert not [name for name in sys.modules if "bad_env" in name]

    def test_a_function_that_needs_arguments_and_a_wrapper(self, tmp_path):
        path = tmp_path / "factories.py"
        path.write_text(
            "import gymnasium\ndef made(size): ...\ndef _inner(): ...\nclass Outer(gymnasium.Wrapper): ...\n",
            encoding="utf8",
        )
        with pytest.raises(ConfigError, match=r"size.*defaults"):
            make_env(f"{path}:made")
        with pytest.raises(ConfigError, match=r"--wrap .*factories\.py:Outer"):
            make_env(f"{path}:Outer")
        with pytest.raises(ConfigError, match="made") as refused:
            make_env(f"{path}:other")
        assert "_inner" not in str(refused.value)

    def test_a_wrapper_that_makes_its_own_environment(self, tmp_path):
        path = tmp_path / "wrapped.py"
        path.write_text(
            "import gymnasium\n"
            "class Short(gymnasium.Wrapper):\n"
            "    def __init__(self, steps=7):\n"
            "        super().__init__(gymnasium.make('CartPole-v1', max_episode_steps=steps))\n",
            encoding="utf8",
        )
        assert make_env(f"{path}:Short").spec.max_episode_steps == 7  # pyright: ignore[reportOptionalMemberAccess]

    def test_a_function_that_makes_one(self, tmp_path):
        path = tmp_path / "factories.py"
        path.write_text(
            "import gymnasium\n"
            "def make():\n    return gymnasium.make('CartPole-v1', max_episode_steps=7)\n"
            "def number():\n    return 3\n"
            "def needs(size):\n    return None\n"
            "def vec():\n"
            "    from stable_baselines3.common.env_util import make_vec_env\n"
            "    return make_vec_env('CartPole-v1', 2)\n"
        )
        assert make_env(f"{path}:make").spec.max_episode_steps == 7  # pyright: ignore[reportOptionalMemberAccess]
        assert make_envs(f"{path}:make", 2).num_envs == 2  # pyright: ignore[reportAttributeAccessIssue]
        for name, named in (("number", "int"), ("needs", "size"), ("mak", "make"), ("vec", "VecEnv")):
            with pytest.raises(ConfigError, match=named):
                make_env(f"{path}:{name}")

    def test_a_package_that_registers_it_is_found_or_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "shimmy", None)  # as if it were not installed
        with pytest.raises(ConfigError, match=r"dm_control/x-v0.*pip install shimmy"):
            make_env("dm_control/x-v0")
        with pytest.raises(ConfigError, match=r"gym:PACKAGE:Own-v0"):
            make_env("Own-v0")
        assert env_name(make_env("PointMaze_UMaze-v3")) == "PointMaze_UMaze-v3"

    def test_a_file_without_environments(self, tmp_path):
        (tmp_path / "plain.py").write_text("x = 1\n")
        with pytest.raises(ConfigError, match=r"plain\.py .* Line"):
            make_env(f"{tmp_path / 'plain.py'}:Line")


class TestMakeEnvs:
    def test_one_is_one(self):
        assert isinstance(make_envs("Acrobot-v1", None), gymnasium.Env)
        assert isinstance(make_envs("CartPole-v1", 1), gymnasium.Env)

    @pytest.mark.parametrize(("num_envs", "made"), [(None, 16), (3, 3)])
    def test_a_vector_form_of_its_own(self, num_envs, made):
        vector = make_envs("CartPole-v1", num_envs)
        assert isinstance(vector, VectorEnv)
        assert not isinstance(vector, SyncVectorEnv)
        assert vector.num_envs == made

    def test_several_of_another(self, own_file):
        for name in ("Acrobot-v1", f"{own_file}:Line"):
            vector = make_envs(name, 3)
            assert isinstance(vector, SyncVectorEnv)
            assert vector.num_envs == 3
            observations, _ = vector.reset(seed=0)
            assert len(np.unique(observations, axis=0)) == 3

    def test_a_file_is_run_once_for_all(self, own_file):
        vector = make_envs(f"{own_file}:Line", 3)
        assert isinstance(vector, SyncVectorEnv)
        assert len({type(env) for env in vector.envs}) == 1

    def test_a_module_that_registers_a_vector_form(self, tmp_path, monkeypatch):
        """Also when it is imported for the first time."""
        module = "class_with_vector"
        (tmp_path / f"{module}.py").write_text(
            "import gymnasium\n"
            "gymnasium.register('OwnPole-v0', max_episode_steps=9,\n"
            "    entry_point='gymnasium.envs.classic_control.cartpole:CartPoleEnv',\n"
            "    vector_entry_point='gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv')\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        try:
            vector = make_envs(f"{module}:OwnPole-v0", None)
            assert isinstance(vector, VectorEnv)
            assert vector.num_envs == 16
        finally:
            gymnasium.registry.pop("OwnPole-v0", None)
            sys.modules.pop(module, None)

    @pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1"])
    def test_more_than_any_machine_holds(self, env_id):
        """By a vector form of its own, or one by one."""
        with pytest.raises(ConfigError, match="num_envs"):
            make_envs(env_id, 10**13)

    @pytest.mark.parametrize("num_envs", [None, 1, 4])
    def test_what_cannot_be_made(self, num_envs):
        with pytest.raises(ConfigError, match="did you mean CartPole-v1"):
            make_envs("CartPol-v1", num_envs)


def test_data_on_disk_is_its_folder_if_it_is_all_of_it(tmp_path, monkeypatch):
    """With other actions than the folder's it is not: a run that named the folder would forget them."""
    monkeypatch.setattr("lapwing.data.memory_map.IN_MEMORY", 10)
    whole = save_episodes(tmp_path / "walks", [{"observations": walk(), "actions": np.zeros(199, int)}])
    assert read_source(whole) == DataFile(tmp_path / "walks")
    for actions in (np.ones(200, int), None):
        other = Experience(whole.observations, whole.lengths, actions=actions)
        assert read_source(other) is other
    alone = save_episodes(tmp_path / "alone", [walk()])
    other = Experience(alone.observations, alone.lengths, rewards=np.ones(200))
    assert read_source(other) is other
