import sys
import warnings

import numpy as np
import pytest

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, DatasetError, LapwingWarning
from lapwing.laplacian.target import open_target
from lapwing.mazes import parse_maze
from lapwing.settings.learn import LearnSettings
from tests.support import exact
from tests.support.sources import ROOM, walk

FEW = LearnSettings(transitions=300, episode_length=20)


@pytest.mark.parametrize(
    ("observation", "shape", "dtype"),
    [("index", (), np.int32), ("position", (2,), np.float32), ("image", (15, 15, 3), np.uint8)],
)
def test_a_maze_is_walked_through(observation, shape, dtype):
    target = open_target("FourRoom", LearnSettings(transitions=330, observation=observation))
    assert target.name == "FourRoom"
    assert target.n_states == 152
    assert target.observation_shape == shape
    assert target.states is not None
    assert target.states.dtype == dtype
    assert target.experience is not None
    assert target.experience.n_transitions == 330
    assert target.experience.lengths.tolist() == [51] * 6 + [31]
    assert target.experience.n_states == 152


def test_the_truth_of_a_maze_is_its_random_walk():
    target = open_target("FourRoom", FEW)
    truth = target.truth()
    assert truth is not None
    np.testing.assert_allclose(truth.eigenpairs(30)[0], exact.spectrum("FourRoom")[0][:30], atol=1e-9)


def test_the_true_chain_in_place_of_experience():
    target = open_target("FourRoom", LearnSettings(true_chain=True))
    assert target.experience is None
    np.testing.assert_allclose(target.one_step.eigenpairs(9)[0], exact.spectrum("FourRoom")[0][:9], atol=1e-9)
    seen = target.some_observations(50, 0)
    assert seen.shape == (50, 2)


def test_staying_is_an_action_if_asked_for():
    """A fifth action that stays makes every eigenvalue four fifths of what it was."""
    target = open_target("FourRoom", LearnSettings(true_chain=True, stay=True))
    expected = 0.8 * exact.spectrum("FourRoom")[0][:20]
    np.testing.assert_allclose(target.one_step.eigenpairs(20)[0], expected, atol=1e-9)
    assert target.world is not None
    assert target.world.n_actions == 5


def test_more_dimensions_than_a_maze_has_states_are_refused_before_a_step_is_taken(monkeypatch):
    monkeypatch.delattr("lapwing.laplacian.target.open_experience")
    with pytest.raises(ConfigError, match="dim"):
        open_target("FourRoom", LearnSettings(dim=153))


def test_a_maze_file_and_a_maze_object_are_the_same_target(maze_file):
    first, second = (open_target(s, FEW) for s in (maze_file, parse_maze(ROOM, name="room")))
    assert first.n_states == second.n_states == 6
    assert first.experience is not None
    assert second.experience is not None
    np.testing.assert_array_equal(first.experience.observations, second.experience.observations)


def test_a_data_file_whose_states_come_back_is_enumerated(data_file):
    target = open_target(data_file, LearnSettings())
    assert (target.name, target.file, target.world) == ("ring", data_file, None)
    assert target.n_states == 4
    assert target.truth() is None
    assert target.experience is not None
    np.testing.assert_array_equal(target.experience.observe(np.arange(200)), walk())


@pytest.mark.parametrize("count", [10, 6_000])
def test_vectors_that_never_come_back_are_continuous_however_few(count):
    points = np.random.default_rng(0).standard_normal((count, 3))
    target = open_target(Experience(points, [count]), LearnSettings())
    assert target.states is None
    assert target.n_states is None
    assert target.observation_shape == (3,)
    seen = target.some_observations(20, 0)
    assert seen.shape == (20, 3)
    assert {tuple(row) for row in seen} <= {tuple(row) for row in points.astype(np.float32)}


def test_more_states_than_a_table_holds_are_continuous():
    points = np.tile(np.arange(5_001.0), 3)[:, None]
    assert open_target(Experience(points, [len(points)]), LearnSettings()).states is None
    fewer = points[points[:, 0] < 5_000]
    assert open_target(Experience(fewer, [len(fewer)]), LearnSettings()).n_states == 5_000


def test_an_environment_is_stepped_as_often_as_asked():
    done = []
    settings = LearnSettings(transitions=2_500)
    target = open_target("gym:CartPole-v1", settings, on_progress=lambda *call: done.append(call))
    assert target.name == "CartPole-v1"
    assert target.experience is not None
    assert target.experience.n_transitions == 2_500
    assert target.experience.n_episodes > 20
    assert target.states is None
    assert target.truth() is None
    assert target.observation_shape == (4,)
    assert [count // 1_000 for count, _ in done] == [1, 2, 2]
    assert done[-1] == (2_500, 2_500)


def test_what_was_collected_before_is_not_collected_again(tmp_path):
    kept = Experience(walk(), [100, 100])
    kept.save(tmp_path / "experience.npz")
    target = open_target(
        "gym:CartPole-v1", LearnSettings(transitions=300), collected=tmp_path / "experience.npz"
    )
    assert target.experience is not None
    assert target.experience.n_transitions == 198
    fresh = open_target("FourRoom", FEW, collected=tmp_path / "gone.npz")
    assert fresh.experience is not None
    assert fresh.experience.n_transitions == 300


def test_an_environment_that_fails_when_made_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)  # another test may have imported them
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ConfigError, match=r"Ant-v5: .*MuJoCo"):
        open_target("gym:Ant-v5", LearnSettings(transitions=300))


def test_observations_that_cannot_be_embedded_are_refused():
    with pytest.raises(ConfigError, match="Tuple"):
        open_target("gym:Blackjack-v1", LearnSettings(transitions=300))


@pytest.mark.parametrize("source", ["data", "gym:CartPole-v1"])
def test_only_a_maze_has_a_true_chain(source, data_file):
    """And an environment is not stepped before this is said."""
    settings, done = LearnSettings(true_chain=True), []
    with pytest.raises(ConfigError, match="--true-chain"):
        open_target(
            data_file if source == "data" else source, settings, on_progress=lambda *_: done.append(1)
        )
    assert done == []


@pytest.mark.parametrize(
    ("source", "setting"),
    [
        ("data", {"transitions": 300}),
        ("data", {"observation": "image"}),
        ("gym:CartPole-v1", {"stay": True}),
        ("gym:CartPole-v1", {"episode_length": 20}),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(data_file, source, setting):
    (name,) = setting
    with pytest.raises(ConfigError, match=f"{name}="):
        open_target(data_file if source == "data" else source, LearnSettings(**setting))


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_observations_that_are_all_the_same(offset):
    """Or that are, once they are float32."""
    walk = np.full((40, 2), 0.5) if offset == 0 else np.random.default_rng(0).normal(size=(40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        episodes = Experience(walk + offset, [20, 20])
    with pytest.raises(DatasetError, match="the same"):
        open_target(episodes, LearnSettings())


def test_images_that_other_episodes_do_not_show_are_no_states():
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (400, 4, 4, 1)).astype(np.uint8)
    own = [pictures[20 * (episode % 20) + rng.integers(20, size=50)] for episode in range(20)]
    shared = [pictures[rng.integers(20, size=50)] for _ in range(20)]
    assert open_target(Experience.from_episodes(own), LearnSettings()).n_states is None
    assert open_target(Experience.from_episodes(shared), LearnSettings()).n_states == 20
    asked = open_target(Experience.from_episodes(own), LearnSettings(estimator="exact"))
    assert asked.n_states is not None
