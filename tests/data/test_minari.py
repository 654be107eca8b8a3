import gc
import io
import json
import shutil
import sys
import textwrap
import warnings
from pathlib import Path

import gymnasium
import h5py
import hypothesis.strategies as st
import minari
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.serialization import serialize_space
from PIL import Image

from lapwing.data.collect import experience_of
from lapwing.data.minari import MinariData, open_minari
from lapwing.data.minari_spaces import space_from_json
from lapwing.data.source import describe, read_source, recall
from lapwing.errors import ConfigError, DatasetError, LapwingWarning
from tests.support.folders import put

DESCRIBED = {
    "algorithm_name": "random",
    "author": "lapwing",
    "author_email": "none",
    "code_permalink": "none",
    "description": "for a test",
}
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


class Rooms(gymnasium.Env):
    """Observations that are dicts of dicts, drawn at random."""

    observation_space = spaces.Dict(
        agent=spaces.Box(-9, 9, (2,)),
        seen=spaces.Dict(room=spaces.Discrete(3), doors=spaces.MultiBinary(4)),
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, bool(self.np_random.random() < 0.2), False, {}


def collect(name: str, env: gymnasium.Env, episodes: int = 3) -> None:
    collector = minari.DataCollector(env)
    for seed in range(episodes):
        collector.reset(seed=seed)
        collector.action_space.seed(seed)
        over = False
        while not over:
            over = any(collector.step(collector.action_space.sample())[2:4])
    collector.create_dataset(name, **DESCRIBED)
    collector.close()


def write(name: str, space: spaces.Space, episodes: list, **options) -> None:
    buffers = [
        EpisodeBuffer(
            observations=observations,
            actions=np.zeros(steps, np.int64),
            rewards=np.zeros(steps),
            terminations=np.zeros(steps, bool),
            truncations=np.arange(steps) == steps - 1,
        )
        for observations, steps in episodes
    ]
    minari.create_dataset_from_buffers(
        name, buffers, observation_space=space, action_space=spaces.Discrete(2), **DESCRIBED, **options
    )


def pictures(seed: int, *shape: int) -> np.ndarray:
    """Smooth pictures that JPEG makes something of."""
    ramps = np.linspace(0, 2 * np.pi, shape[1])[:, None] + np.linspace(0, 3, shape[2])
    phases = np.random.default_rng(seed).uniform(0, 6, (shape[0], *[1] * (len(shape) - 1)))
    waves = np.sin((ramps if len(shape) == 3 else ramps[..., None] * np.arange(1, shape[3] + 1)) + phases)
    return (127 + 120 * waves).astype(np.uint8)


def write_all() -> None:
    random = np.random.default_rng(0)
    collect("cartpole/random-v0", gymnasium.make("CartPole-v1"))
    collect("frozen/lake-v1", gymnasium.make("FrozenLake-v1"))
    collect("rooms/nested-v0", Rooms())
    small, large, grey = (
        spaces.Box(0, 255, shape, np.uint8) for shape in ((16, 16, 3), (40, 40, 3), (40, 36))
    )
    write("images/small-v0", small, [(pictures(n, 3 + n, 16, 16, 3), 2 + n) for n in range(3)])
    write("images/large-v0", large, [(pictures(n, 3 + n, 40, 40, 3), 2 + n) for n in range(3)])
    write("images/grey-v0", grey, [(pictures(n, 3 + n, 40, 36), 2 + n) for n in range(3)])
    write("images/plain-v0", large, [(np.full((4, 40, 40, 3), 90, np.uint8), 3)])
    write("images/exact-v0", large, [(pictures(0, 4, 40, 40, 3), 3)], jpeg_encoding=False)
    both = spaces.Tuple([spaces.MultiDiscrete([3, 4]), spaces.Box(-1, 1, (), np.float64)])
    write("tuples-v0", both, [((random.integers(0, 3, (5, 2)), random.uniform(-1, 1, 5)), 4)])
    told = spaces.Dict({"mission": spaces.Text(20), "place/now": spaces.Box(-1, 1, (2,))})
    words = {
        "mission": ["go", "on", "to", "it"],
        "place/now": random.uniform(-1, 1, (4, 2)).astype(np.float32),
    }
    write("words-v0", told, [(words, 3)])


NAMES = (
    *("cartpole/random-v0", "frozen/lake-v1", "rooms/nested-v0", "tuples-v0"),
    *("images/small-v0", "images/large-v0", "images/grey-v0", "images/plain-v0", "images/exact-v0"),
)
LOSSY = ("images/large-v0", "images/grey-v0", "images/plain-v0")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """MINARI_DATASETS_PATH, with a data set of each kind."""
    folder = tmp_path_factory.mktemp("minari")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        # DataCollector leaves its temporary folders to the garbage collector.
        warnings.filterwarnings("ignore", "Implicitly cleaning up <TemporaryDirectory", ResourceWarning)
        warnings.filterwarnings("ignore", "`eval_env` is set to None", UserWarning)
        warnings.filterwarnings("ignore", "env_spec is None, no environment spec is provided", UserWarning)
        write_all()
        gc.collect()
        yield folder


@pytest.fixture
def cartpole(root, tmp_path) -> Path:
    """A copy of a data set, to be damaged."""
    return Path(shutil.copytree(root / "cartpole" / "random-v0", tmp_path / "cartpole"))


@pytest.fixture
def nested(root, tmp_path) -> Path:
    return Path(shutil.copytree(root / "rooms" / "nested-v0", tmp_path / "nested"))


def data_of(folder: Path) -> Path:
    return folder / "data" / "main_data.hdf5"


def metadata_of(folder: Path) -> Path:
    return folder / "data" / "metadata.json"


def rewrite(folder: Path, **changes) -> None:
    """Change the metadata; None takes a key out."""
    metadata = json.loads(metadata_of(folder).read_text()) | changes
    kept = {key: value for key, value in metadata.items() if value is not None}
    metadata_of(folder).write_text(json.dumps(kept))


def refusal(name: str | Path, kind=DatasetError) -> str:
    """What refuses the data set, when it is opened or when it is read."""
    with pytest.raises(kind) as caught:
        list(open_minari(str(name)).episodes())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def quietly(data: MinariData, only: str | None = None) -> list:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        return list(data.episodes(only))


def assert_same(found, expected) -> None:
    assert type(found) is type(expected)
    if isinstance(found, dict):
        assert found.keys() == expected.keys()
        for key in found:
            assert_same(found[key], expected[key])
    elif isinstance(found, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


class TestReading:
    @pytest.mark.parametrize("name", NAMES)
    def test_what_minari_reads(self, name, root):
        expected, found = minari.load_dataset(name), open_minari(name)
        assert found.name == name
        assert found.path == root / name
        assert found.observation_space == expected.observation_space
        assert found.n_episodes == expected.total_episodes
        assert found.n_steps == expected.total_steps
        episodes = quietly(found)
        assert len(episodes) == found.n_episodes
        for episode, theirs in zip(episodes, expected.iterate_episodes(), strict=True):
            assert_same(episode, theirs.observations)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_warning_where_images_are_lossy_and_only_there(self, name, root):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            list(open_minari(name).episodes())
        assert [each.category for each in caught] == [LapwingWarning] * (name in LOSSY)
        assert all(name in str(each.message) for each in caught)

    def test_one_part_of_dict_observations(self, root):
        data = open_minari("rooms/nested-v0")
        for part, whole in zip(data.episodes("seen"), data.episodes(), strict=True):
            assert_same(part, {"seen": whole["seen"]})

    def test_a_part_beside_text(self, root):
        data = open_minari("words-v0")
        found = next(data.episodes("place/now"))["place/now"]
        theirs = minari.load_dataset("words-v0").storage.data_path.joinpath("main_data.hdf5")
        with h5py.File(theirs) as file:
            np.testing.assert_array_equal(found, file["episode_0/observations/place/now"][()])
        assert "'mission'" in refusal("words-v0")

    @pytest.mark.parametrize(
        ("name", "only", "hint"),
        [("rooms/nested-v0", "agnt", r"agent\?"), ("cartpole/random-v0", "agent", "Box")],
    )
    def test_a_part_that_is_not_there(self, name, only, hint, root):
        with pytest.raises(ConfigError, match=f"'{only}'.*{hint}"):
            open_minari(name).episodes(only)

    def test_by_path(self, cartpole, root, monkeypatch):
        expected = list(open_minari("cartpole/random-v0").episodes())
        monkeypatch.chdir(cartpole.parent)
        for name in ("./cartpole", str(cartpole), f"minari:{cartpole}", "./cartpole/data"):
            for episode, other in zip(open_minari(name).episodes(), expected, strict=True):
                assert_same(episode, other)

    def test_as_a_source_that_a_run_recalls(self, cartpole, root, monkeypatch, tmp_path):
        monkeypatch.chdir(cartpole.parent)
        for name in ("cartpole/random-v0", "./cartpole"):
            source = read_source(f"minari:{name}")
            assert isinstance(source, MinariData)
            assert source.name == name
            again = recall(describe(source), tmp_path / "unused")
            assert isinstance(again, MinariData)
            assert again.path.resolve() == source.path.resolve()
        description = describe(source)
        rewrite(cartpole, author="someone else")
        with pytest.raises(DatasetError, match="cartpole"):
            recall(description, tmp_path / "unused")

    def test_in_the_home_folder(self, cartpole, tmp_path, monkeypatch):
        monkeypatch.delenv("MINARI_DATASETS_PATH", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        shutil.copytree(cartpole, tmp_path / ".minari" / "datasets" / "mine" / "poles-v0")
        assert open_minari("mine/poles-v0").n_episodes == 3


def pendulum(root: Path) -> MinariData:
    """A data set whose actions are vectors, collected once."""
    if not (root / "pendulum").exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            collect("pendulum/random-v0", gymnasium.make("Pendulum-v1", max_episode_steps=20), 2)
            gc.collect()
    return open_minari("pendulum/random-v0")


class TestActions:
    @pytest.mark.parametrize("name", ["cartpole/random-v0", "frozen/lake-v1", "pendulum/random-v0"])
    def test_those_that_minari_reads(self, name, root):
        data = pendulum(root) if name.startswith("pendulum") else open_minari(name)
        expected = minari.load_dataset(name)
        assert data.action_space == expected.action_space
        experience = experience_of(*data.read())
        theirs = list(expected.iterate_episodes())
        within = experience.horizons > 0
        for kept, field in ((experience.actions, "actions"), (experience.rewards, "rewards")):
            joined = np.concatenate([getattr(episode, field) for episode in theirs])
            np.testing.assert_array_equal(kept[within], joined.astype(kept.dtype))
        assert experience.n_transitions == expected.total_steps

    def test_without_a_space_none_are_kept(self, cartpole):
        rewrite(cartpole, action_space=None)
        recorded = open_minari(str(cartpole)).read()
        assert recorded.actions is None
        assert recorded.rewards is not None

    @pytest.mark.parametrize("name", ["actions", "rewards"])
    def test_episodes_without_them(self, name, cartpole):
        with h5py.File(data_of(cartpole), "r+") as file:
            del file[f"episode_1/{name}"]
        assert getattr(open_minari(str(cartpole)).read(), name) is None

    @pytest.mark.parametrize("name", ["actions", "rewards"])
    @pytest.mark.parametrize("wrong", [np.zeros(2), np.zeros((500, 3)), np.array(3.0)], ids=str)
    def test_other_shapes_are_refused(self, name, wrong, cartpole):
        with h5py.File(data_of(cartpole), "r+") as file:
            del file[f"episode_1/{name}"]
            file[f"episode_1/{name}"] = wrong
        with pytest.raises(DatasetError, match=f"episode 1.*{name}"):
            open_minari(str(cartpole)).read()

    def test_links_in_place_of_them(self, cartpole):
        with h5py.File(data_of(cartpole), "r+") as file:
            del file["episode_1/actions"]
            file["episode_1/actions"] = h5py.ExternalLink("elsewhere.hdf5", "actions")
        with pytest.raises(DatasetError, match=r"episode 1 .*actions"):
            open_minari(str(cartpole)).read()


class TestDigest:
    def test_it_is_that_of_a_copy_and_of_nothing_else(self, cartpole, root):
        original, copy = open_minari("cartpole/random-v0"), open_minari(str(cartpole))
        assert copy.digest() == original.digest()
        rewrite(cartpole, author="someone else")
        changed = copy.digest()
        with h5py.File(data_of(cartpole), "r+") as file:
            file["episode_0/observations"][0, 0] += 1
        assert len({original.digest(), changed, copy.digest()}) == 3

    def test_of_what_is_no_longer_there(self, cartpole):
        data = open_minari(str(cartpole))
        data_of(cartpole).unlink()
        with pytest.raises(DatasetError, match=r"main_data\.hdf5 is missing"):
            data.digest()


class TestNames:
    @pytest.mark.parametrize(
        "name", ["../other-v0", "a/../../other-v0", "a//etc/passwd", "a\\b-v0", "", "a/"]
    )
    def test_ids_that_lead_elsewhere(self, name, root):
        assert f"minari:{name} is neither an id nor a path" in refusal(name)

    @pytest.mark.parametrize("name", ["x" * 300, "./" + "x" * 300, "./none"])
    def test_a_path_to_nowhere(self, name, root):
        assert name in refusal(name)

    def test_the_nearest_is_named_or_all(self, root):
        assert refusal("cartpole/randon-v0") == (
            f"no Minari data set 'cartpole/randon-v0' in {root}; did you mean cartpole/random-v0?"
        )
        assert "'a\\x00b'" in refusal("a\0b")
        assert all(name in refusal("zzz") for name in (*NAMES, "words-v0"))

    def test_no_data_sets_at_all(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "none"))
        assert "minari download" in refusal("cartpole/random-v0")

    def test_a_namespace_is_no_data_set(self, root):
        assert "metadata.json is missing" in refusal("cartpole")

    @pytest.mark.parametrize("name", ["metadata.json", "main_data.hdf5"])
    def test_a_missing_file(self, name, cartpole):
        (cartpole / "data" / name).unlink()
        assert f"{name} is missing" in refusal(cartpole)


class TestLinks:
    @pytest.mark.parametrize("name", ["data/metadata.json", "data/main_data.hdf5", "data"])
    def test_out_of_the_folder(self, name, cartpole, tmp_path):
        (cartpole / name).rename(tmp_path / "elsewhere")
        (cartpole / name).symlink_to(tmp_path / "elsewhere")
        assert "link" in refusal(cartpole)

    def test_within_the_folder_and_to_it(self, cartpole, tmp_path):
        data_of(cartpole).rename(cartpole / "kept")
        data_of(cartpole).symlink_to("../kept")
        (tmp_path / "link").symlink_to(cartpole)
        assert open_minari(str(cartpole)).n_episodes == open_minari(str(tmp_path / "link")).n_episodes == 3

    def test_in_a_circle(self, cartpole):
        data_of(cartpole).unlink()
        data_of(cartpole).symlink_to("main_data.hdf5")
        assert str(cartpole) in refusal(cartpole)


@pytest.fixture
def intruder(tmp_path, monkeypatch) -> Path:
    """What a module on the path writes when it is imported."""
    canary = tmp_path / "canary"
    (tmp_path / "lapwing_intruder.py").write_text(
        textwrap.dedent(f"""
            open({str(canary)!r}, "w").close()
            from gymnasium.envs.classic_control.cartpole import CartPoleEnv
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lapwing_intruder", raising=False)
    return canary


class TestMetadata:
    @pytest.mark.parametrize("key", ["observation_space", "action_space"])
    def test_the_environment_is_never_made(self, key, cartpole, intruder):
        spec = json.loads(json.loads(metadata_of(cartpole).read_text())["env_spec"])
        spec |= {"id": "Intruder-v0", "entry_point": "lapwing_intruder:CartPoleEnv"}
        rewrite(cartpole, **{key: None}, env_spec=json.dumps(spec))
        if key == "observation_space":
            assert "observation_space" in refusal(cartpole)
        else:
            assert len(list(open_minari(str(cartpole)).episodes())) == 3
        assert not intruder.exists()
        assert "lapwing_intruder" not in sys.modules
        minari.MinariDataset(cartpole / "data")  # the canary is a live one: Minari imports the module
        assert intruder.exists()

    @pytest.mark.parametrize("form", ["arrow", 7, None])
    def test_other_formats(self, form, cartpole):
        rewrite(cartpole, data_format=form)
        assert f"data_format {form!r}" in refusal(cartpole)

    @pytest.mark.parametrize(
        "content", [b"", b"\xff\xfe", b"[" * 100_000, b'{"a": ' + b"9" * 9999 + b"}", b"[1, 2]"]
    )
    def test_no_json_or_of_something_else(self, content, cartpole):
        put(metadata_of(cartpole), content)
        assert "metadata.json is damaged: it is not" in refusal(cartpole)

    def test_too_much(self, cartpole):
        with metadata_of(cartpole).open("r+b") as file:
            file.truncate(2**26 + 1)
        assert "67,108,865 bytes" in refusal(cartpole)

    @pytest.mark.parametrize(
        ("key", "value"), [("total_episodes", -1), ("total_steps", "3"), ("total_steps", None)]
    )
    def test_counts_that_are_none(self, key, value, cartpole):
        rewrite(cartpole, **{key: value})
        assert f"{key} is {value!r}" in refusal(cartpole)

    def test_no_episodes(self, cartpole):
        rewrite(cartpole, total_episodes=0, total_steps=0)
        assert "no episodes" in refusal(cartpole)

    @pytest.mark.parametrize("space", [{"type": "Discrete", "n": 3, "start": 0}, '{"type": "Graph"}'])
    def test_a_space_that_is_not_known(self, space, cartpole):
        rewrite(cartpole, observation_space=space)
        assert "observation_space" in refusal(cartpole)


boxes = st.one_of(
    st.builds(
        lambda shape, dtype: spaces.Box(0, 100, tuple(shape), dtype),
        st.lists(st.integers(1, 3), max_size=3),
        st.sampled_from([np.float16, np.float32, np.float64, np.uint8, np.int8, np.int64]),
    ),
    st.just(spaces.Box(-np.inf, np.inf, (3,))),
    st.just(spaces.Box(np.array([-1.5, 0.1]), np.array([np.inf, 0.3]), dtype=np.float64)),
)
leaves = st.one_of(
    boxes,
    st.builds(spaces.Discrete, st.integers(1, 2**40), start=st.integers(-5, 5)),
    st.builds(spaces.MultiDiscrete, st.lists(st.integers(1, 9), min_size=1, max_size=3)),
    st.just(spaces.MultiDiscrete([[2, 3], [4, 5]], np.int32, start=[[1, 0], [0, -1]])),
    st.builds(spaces.MultiBinary, st.integers(1, 9) | st.lists(st.integers(1, 3), min_size=1, max_size=2)),
    st.builds(lambda most: spaces.Text(most, min_length=1, charset="abc"), st.integers(1, 20)),
)
any_space = st.recursive(
    leaves,
    lambda inner: (
        st.builds(spaces.Dict, st.dictionaries(st.text("abc/", min_size=1, max_size=3), inner, max_size=3))
        | st.builds(spaces.Tuple, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=4,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


class TestSpaces:
    @given(any_space)
    def test_what_minari_writes(self, space):
        assert space_from_json(serialize_space(space)) == space

    @settings(max_examples=300)
    @given(st.data())
    def test_what_was_tampered_with_is_a_space_or_refused(self, data):
        described = json.loads(serialize_space(data.draw(any_space)))
        described[data.draw(st.sampled_from(sorted(described)))] = data.draw(json_values)
        try:
            found = space_from_json(json.dumps(described))
        except DatasetError as error:
            assert "its observation_space" in str(error)  # noqa: PT017
        else:
            assert isinstance(found, spaces.Space)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("[]", "is damaged"),
            ("{}", "no 'type'"),
            ('{"type": ["Box"]}', "the type ['Box']"),
            ('{"type": "Dict", "subspaces": {"a": {"type": "os.system"}}}', "the type 'os.system'"),
            ('{"type": "Discrete", "start": 0}', "no 'n'"),
            ('{"type": "Box", "dtype": "object", "shape": [], "low": 0, "high": 1}', "dtype 'object'"),
            ('{"type": "Box", "dtype": "float32", "shape": [99999999999], "low": 0, "high": 1}', "bounds of"),
            ('{"type": "Box", "dtype": "uint8", "shape": [1], "low": [-1], "high": [256]}', "is damaged"),
        ],
    )
    def test_refusals(self, text, reason):
        with pytest.raises(DatasetError) as caught:
            space_from_json(text)
        assert reason in str(caught.value)

    def test_a_space_too_deep(self):
        deep = '{"type": "Tuple", "subspaces": [' * 50_000
        with pytest.raises(DatasetError, match="its observation_space is damaged"):
            space_from_json(deep)


def replace(folder: Path, name: str, **dataset) -> None:
    """Put another dataset in place of one, of float32 unless told."""
    if "data" not in dataset:
        dataset = {"dtype": "f4"} | dataset
    with h5py.File(data_of(folder), "r+") as file:
        del file[name]
        file.create_dataset(name, **dataset)


class TestEpisodes:
    @pytest.mark.parametrize(
        ("damage", "words"),
        [
            (lambda file: file.pop("episode_1"), ("no episode_1", "3")),
            (lambda file: file.move("episode_0", "episode_3"), ("no episode_0",)),
            (lambda file: file.copy("episode_0", "episode_03"), ("'episode_03'", "3")),
            (lambda file: file.pop("episode_2/observations"), ("episode 2", "'observations'", "actions")),
            (lambda file: file["episode_1"].clear(), ("episode 1", "'observations'", "nothing")),
        ],
        ids=["missing", "misnumbered", "one too many", "without observations", "empty"],
    )
    def test_that_are_not_those_of_the_metadata(self, damage, words, cartpole):
        with h5py.File(data_of(cartpole), "r+") as file:
            damage(file)
        assert all(word in refusal(cartpole) for word in words)

    @pytest.mark.parametrize("other", [np.dtype("f8"), None], ids=["type", "group"])
    def test_what_is_in_place_of_observations(self, other, cartpole):
        with h5py.File(data_of(cartpole), "r+") as file:
            del file["episode_1/observations"]
            if other is None:
                file.create_group("episode_1/observations")
            else:
                file["episode_1/observations"] = other
        assert "episode 1 is not an array" in refusal(cartpole)

    def test_more_than_any_file_can_hold(self, cartpole):
        rewrite(cartpole, total_episodes=10**18)
        assert "1,000,000,000,000,000,000" in refusal(cartpole)

    def test_a_missing_part(self, nested):
        with h5py.File(data_of(nested), "r+") as file:
            del file["episode_0/observations/seen/room"]
        assert "episode 0, part 'seen' has no 'room'" in refusal(nested)

    def test_parts_of_different_lengths(self, nested):
        with h5py.File(data_of(nested), "r+") as file:
            length = len(file["episode_1/observations/agent"])
            file["episode_1/observations/agent"].resize(length - 1, 0)
        assert f"episode 1 has parts of the lengths {length - 1}, {length}, {length}" in refusal(nested)

    @pytest.mark.parametrize(
        "dataset",
        [
            {"data": ["a", "b"], "dtype": h5py.string_dtype()},
            {"data": np.zeros(2, [("x", "f4")])},
            {"shape": (2,), "dtype": h5py.vlen_dtype(np.float32)},
            {"shape": (2,), "dtype": h5py.ref_dtype},
            {"data": np.zeros((2, 4), complex)},
        ],
        ids=lambda dataset: str(dataset.get("dtype", dataset.get("data", np.zeros(0)))),
    )
    def test_what_is_not_a_number(self, dataset, cartpole):
        replace(cartpole, "episode_1/observations", **dataset)
        assert "episode 1 holds text or objects (" in refusal(cartpole)

    @pytest.mark.parametrize(
        "dataset", [{"data": 7.0}, {"data": h5py.Empty("f4")}, {"shape": (5,)}, {"shape": (5, 3)}]
    )
    def test_another_shape(self, dataset, cartpole):
        replace(cartpole, "episode_1/observations", **dataset)
        assert "('n', 4)" in refusal(cartpole)


class TestOutOfTheFile:
    """Each leads to data that would be read, were it followed."""

    @pytest.fixture
    def elsewhere(self, root, tmp_path) -> Path:
        return Path(shutil.copy(data_of(root / "cartpole" / "random-v0"), tmp_path / "elsewhere.hdf5"))

    @pytest.mark.parametrize("name", ["episode_1", "episode_1/observations"])
    def test_external_links(self, name, cartpole, elsewhere):
        with h5py.File(data_of(cartpole), "r+") as file:
            del file[name]
            file[name] = h5py.ExternalLink(str(elsewhere), name)
            assert file[name].name == f"/{name}"  # it could be followed
        assert "episode 1 has a link in place of" in refusal(cartpole)

    @pytest.mark.parametrize("name", ["episode_1", "episode_1/observations"])
    def test_soft_links(self, name, cartpole):
        with h5py.File(data_of(cartpole), "r+") as file:
            del file[name]
            file[name] = h5py.SoftLink("/" + name.replace("1", "0"))
        assert "episode 1 has a link in place of" in refusal(cartpole)

    def test_soft_links_to_a_part(self, nested):
        with h5py.File(data_of(nested), "r+") as file:
            file.move("episode_0/observations/seen/room", "episode_0/room")
            file["episode_0/observations/seen/room"] = h5py.SoftLink("/episode_0/room")
        assert "part 'seen' has a link in place of 'room'" in refusal(nested)

    def test_virtual_datasets(self, cartpole, elsewhere):
        with h5py.File(data_of(cartpole), "r+") as file:
            shape = file["episode_1/observations"].shape
            layout = h5py.VirtualLayout(shape, "f4")
            layout[:] = h5py.VirtualSource(str(elsewhere), "episode_1/observations", shape)
            del file["episode_1/observations"]
            file.create_virtual_dataset("episode_1/observations", layout)
        assert "episode 1 is kept in another file" in refusal(cartpole)

    def test_external_storage(self, cartpole, tmp_path):
        (tmp_path / "secret").write_bytes(bytes(5 * 4 * 4))
        where = [(str(tmp_path / "secret"), 0, h5py.h5f.UNLIMITED)]
        replace(cartpole, "episode_1/observations", shape=(5, 4), dtype="f4", external=where)
        assert "episode 1 is kept in another file" in refusal(cartpole)

    def test_filters_for_which_a_library_would_be_loaded(self, cartpole):
        with h5py.File(data_of(cartpole), "r+") as file:
            del file["episode_1/observations"]
            created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            created.set_chunk((5, 4))
            created.set_filter(305, h5py.h5z.FLAG_OPTIONAL)
            space, group = h5py.h5s.create_simple((5, 4)), file["episode_1"].id
            h5py.h5d.create(group, b"observations", h5py.h5t.IEEE_F32LE, space, created)
        assert "episode 1 is compressed by the HDF5 filters [305]" in refusal(cartpole)

    @pytest.mark.parametrize(
        "how", [{"compression": "gzip", "shuffle": True}, {"compression": "lzf"}, {"fletcher32": True}]
    )
    def test_filters_that_h5py_has(self, how, cartpole):
        data = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
        replace(cartpole, "episode_1/observations", data=data, **how)
        np.testing.assert_array_equal(list(open_minari(str(cartpole)).episodes())[1], data)


class TestSizes:
    @pytest.mark.parametrize(
        ("shape", "how", "size"),
        [((2**26 + 1, 4), {"compression": "gzip"}, "1.0"), ((2**40, 4), {}, "16384.0")],
    )
    def test_more_than_there_is(self, shape, how, size, cartpole):
        replace(cartpole, "episode_1/observations", shape=shape, chunks=(2**16, 4), **how)
        assert f"episode 1 holds {size} GiB in 0 bytes" in refusal(cartpole)

    def test_parts_that_are_too_large_together(self, nested):
        parts = {f"part{number}": spaces.Discrete(2) for number in range(9)}
        rewrite(nested, observation_space=serialize_space(spaces.Dict(parts)))
        with h5py.File(data_of(nested), "r+") as file:
            del file["episode_0/observations"]
            for part in parts:
                file.create_dataset(f"episode_0/observations/{part}", (2**27,), "f8", chunks=(2**16,))
        assert "episode 0 unpacks to 9.0 GiB" in refusal(nested)

    def test_chunks_that_are_too_large(self, nested):
        names = ("agent", "seen/doors", "seen/room")
        with h5py.File(data_of(nested), "r+") as file:
            for name in names:
                kept = file[f"episode_0/observations/{name}"]
                shape, dtype = kept.shape, kept.dtype
                del file[f"episode_0/observations/{name}"]
                rest = int(np.prod(shape[1:])) * dtype.itemsize
                options = {"maxshape": (None, *shape[1:]), "chunks": ((2**32 - 2**10) // rest, *shape[1:])}
                file.create_dataset(f"episode_0/observations/{name}", shape, dtype, **options)
        assert "episode 0 unpacks to 12.0 GiB" in refusal(nested)

    def test_what_was_never_written_is_read_as_minari_reads_it(self, cartpole):
        replace(cartpole, "episode_1/observations", shape=(5, 4), chunks=(5, 4))
        assert not list(open_minari(str(cartpole)).episodes())[1].any()


class TestJpeg:
    @pytest.fixture
    def photos(self, root, tmp_path) -> Path:
        return Path(shutil.copytree(root / "images" / "large-v0", tmp_path / "photos"))

    def packed(self, picture: np.ndarray, form: str = "JPEG") -> np.ndarray:
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, form)
        return np.frombuffer(buffer.getvalue(), np.uint8)

    def put(self, folder: Path, content: np.ndarray) -> None:
        with h5py.File(data_of(folder), "r+") as file:
            file["episode_1/observations"][2] = content

    @pytest.fixture(autouse=True)
    def lossy(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LapwingWarning)
            yield

    @pytest.mark.parametrize("shape", [(41, 40, 3), (40, 40), (32, 50, 3)])
    def test_another_size(self, shape, photos):
        self.put(photos, self.packed(np.zeros(shape, np.uint8)))
        assert "episode 1 has a damaged JPEG image 2" in refusal(photos)

    def test_what_is_no_jpeg(self, photos):
        self.put(photos, self.packed(np.zeros((40, 40, 3), np.uint8), "PNG"))
        assert "episode 1 has a damaged JPEG image 2" in refusal(photos)

    @pytest.mark.parametrize("kept", [0, 100])
    def test_cut_short(self, kept, photos):
        self.put(photos, self.packed(pictures(0, 1, 40, 40, 3)[0])[:kept])
        assert "episode 1 has a damaged JPEG image 2" in refusal(photos)

    @pytest.mark.parametrize("side", [10_000, 60_000])
    def test_a_bomb(self, side, photos):
        """Of 100 million pixels Pillow warns, of 3,600 million it raises."""
        content = self.packed(np.zeros((40, 40, 3), np.uint8)).copy()
        at = content.tobytes().index(b"\xff\xc0") + 5
        content[at : at + 4] = np.frombuffer(side.to_bytes(2, "big") * 2, np.uint8)
        self.put(photos, content)
        assert "decompression bomb" in refusal(photos)

    @pytest.mark.parametrize(
        "dataset",
        [
            {"data": np.zeros((5, 40, 40, 3), np.uint8)},
            {"shape": (3,), "dtype": h5py.vlen_dtype(np.float32)},
            {"shape": (3, 2), "dtype": h5py.vlen_dtype(np.uint8)},
            {"data": h5py.Empty("u1")},
        ],
        ids=str,
    )
    def test_other_content(self, dataset, photos):
        replace(photos, "episode_1/observations", **dataset)
        assert "no JPEG images" in refusal(photos)

    def test_any_number_of_images_is_too_much(self, photos):
        replace(
            photos, "episode_1/observations", shape=(2**21,), dtype=h5py.vlen_dtype(np.uint8), chunks=(99,)
        )
        assert "episode 1 unpacks to 9.4 GiB" in refusal(photos)


class TestDamage:
    def test_h5py_is_missing(self, cartpole, monkeypatch):
        monkeypatch.setitem(sys.modules, "h5py", None)
        assert "lapwing[hdf5]" in refusal(cartpole, ConfigError)

    @pytest.mark.parametrize("content", [b"", b"text", b"\x89HDF\r\n\x1a\n" + bytes(100)])
    def test_no_hdf5(self, content, cartpole):
        put(data_of(cartpole), content)
        assert f"{data_of(cartpole)} is damaged" in refusal(cartpole)

    @in_one_folder
    @given(st.floats(0, 1, exclude_max=True))
    def test_cut_short(self, root, tmp_path, share):
        whole = data_of(root / "cartpole" / "random-v0").read_bytes()
        folder = tmp_path / "cut"
        if not folder.exists():
            shutil.copytree(root / "cartpole" / "random-v0", folder)
        put(data_of(folder), whole[: int(share * len(whole))])
        assert f"{data_of(folder)} is damaged" in refusal(folder)

    def test_bytes_flipped_all_over_the_file(self, root, tmp_path):
        """Always the same bytes, and of numbers: HDF5 itself may hang or crash on damaged rows of images."""
        folder = Path(shutil.copytree(root / "tuples-v0", tmp_path / "copy"))
        whole = data_of(folder).read_bytes()
        refused = 0
        places = range(0, len(whole), 499)
        for place in places:
            damaged = bytearray(whole)
            damaged[place] ^= 0xFF
            put(data_of(folder), damaged)
            try:
                quietly(open_minari(str(folder)))
            except DatasetError:
                refused += 1
        assert 0 < refused < len(places)
