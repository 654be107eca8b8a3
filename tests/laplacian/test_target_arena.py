"""Arenas as what is learned from: by their names, in config.json, and as experience."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from lapwing.data.experience import Experience
from lapwing.data.source import DataFile, describe, read_source, recall
from lapwing.envs.arena import BODIES, Arena, make_arena, open_arena
from lapwing.envs.simulator import Simulator, random_episodes
from lapwing.errors import ConfigError
from lapwing.laplacian.evaluate import evaluate, path_correlations
from lapwing.laplacian.target import open_target
from lapwing.mazes import Maze, arena_names, parse_maze
from lapwing.settings.learn import LearnSettings
from tests.support.representations import Known

ROOM = "#####\n#..G#\n#...#\n#####\n"
FEW = LearnSettings(transitions=700)


def oracle(states: np.ndarray) -> np.ndarray:
    """The way to the goal, as test_arena knows it to be."""
    return open_arena("PointUMaze").path_lengths(states[:, :2])


@pytest.mark.parametrize("name", arena_names())
def test_an_arena_is_read_by_its_name(name):
    source = read_source(name)
    assert source == open_arena(name)
    assert read_source(source) is source


def test_an_arena_is_read_from_a_file_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "room.txt").write_text(ROOM)
    source = read_source("Ant:room.txt")
    assert isinstance(source, Arena)
    assert (source.body.name, source.maze.text, source.goal_cell) == ("Ant", ROOM, (1, 3))
    assert isinstance(read_source("room.txt"), Maze), "without a body it is a gridworld"
    (tmp_path / "room.txt").unlink()
    assert recall(describe(source), tmp_path) == source, "the file is not needed"


@pytest.mark.parametrize(
    ("typo", "hint"), [("antumaze", r"AntUMaze\?"), ("xyz", "PointHookMaze.* AntHookMaze")]
)
def test_an_unknown_name_is_refused_with_the_nearest_arena(typo, hint):
    with pytest.raises(ConfigError, match=f"'{typo}'.*{hint}"):
        read_source(typo)


@pytest.mark.parametrize("name", ["Point:gone.txt", "Ant:FourRoom", "Point:"])
def test_an_arena_that_cannot_be_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=name.partition(":")[2] or "''"):
        read_source(name)


SEVERAL = [
    open_arena("PointUMaze"),
    open_arena("AntUMaze"),
    open_arena("PointHookMaze"),
    open_arena("PointUMaze", fast=True),
    open_arena("PointUMaze", cell=1.5),
    open_arena("PointUMaze", goal=(1, 1)),
    make_arena(BODIES["Ant"], parse_maze(ROOM, name="room"), goal=(2, 1), cell=4.0, fast=True),
]


@pytest.mark.parametrize("arena", SEVERAL, ids=lambda arena: arena.name)
def test_an_arena_is_recalled_from_its_description(arena, tmp_path):
    description = describe(arena)
    assert description["kind"] == "arena"
    again = recall(json.loads(json.dumps(description)), tmp_path / "unused")
    assert again == arena
    assert describe(again) == description


def test_different_arenas_have_different_descriptions():
    assert len({json.dumps(describe(arena)) for arena in SEVERAL}) == len(SEVERAL)


def test_an_arena_is_walked_at_random_in_whole_episodes():
    """Three episodes of 300 steps are the fewest that are 700."""
    target = open_target("PointUMaze", LearnSettings(transitions=7))
    assert target.experience is not None
    assert target.experience.lengths.tolist() == [8]
    target = open_target("PointUMaze", FEW)
    assert (target.name, target.arena) == ("PointUMaze", open_arena("PointUMaze"))
    assert (target.world, target.states, target.n_states, target.file) == (None, None, None, None)
    assert target.truth() is None
    assert target.experience is not None
    assert target.experience.lengths.tolist() == [301] * 3
    assert target.experience.n_transitions == 900
    assert target.observation_shape == (2,)


def test_position_is_the_beginning_of_the_whole_state():
    position, state = (
        open_target("PointUMaze", dataclasses.replace(FEW, observation=name))
        for name in ("position", "state")
    )
    assert (position.observation_shape, state.observation_shape) == ((2,), (6,))
    assert position.experience is not None
    assert state.experience is not None
    np.testing.assert_array_equal(position.experience.observations, state.experience.observations[:, :2])
    episodes, _ = random_episodes(Simulator(open_arena("PointUMaze")), 700, 0)
    np.testing.assert_array_equal(state.experience.observations, episodes.reshape(-1, 6))
    ant = open_target("AntUMaze", LearnSettings(transitions=5, observation="state"))
    assert ant.observation_shape == (29,)


def test_the_body_stays_where_there_is_room_and_moves_little_by_little():
    target = open_target("PointUMaze", FEW)
    assert target.experience is not None
    seen = target.experience.observations.reshape(3, 301, 2)
    assert open_arena("PointUMaze").on_floor(seen).all()
    moved = np.linalg.norm(np.diff(seen, axis=1), axis=-1)
    assert 0 < moved.mean() < moved.max() < 1


def test_the_seed_decides_where_the_body_goes():
    first, again, other = (
        open_target("PointUMaze", dataclasses.replace(FEW, seed=seed)).experience for seed in (0, 0, 1)
    )
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.sha256() == again.sha256() != other.sha256()


@pytest.mark.parametrize("seen", ["index", "image"])
def test_what_a_body_cannot_see_is_refused(seen):
    with pytest.raises(ConfigError, match=f"observation.* '{seen}'"):
        open_target("PointUMaze", LearnSettings(observation=seen))


@pytest.mark.parametrize("setting", [{"episode_length": 20}, {"stay": True}, {"true_chain": True}])
def test_a_setting_that_would_do_nothing_is_refused(setting):
    """Before the body takes a step."""
    (name,) = setting
    with pytest.raises(ConfigError, match=name):
        open_target(
            "PointUMaze", LearnSettings(**setting), on_progress=lambda *_: pytest.fail("a body moved")
        )


@pytest.mark.parametrize("source", ["OneRoom", "gym:CartPole-v1", "data"])
def test_the_whole_state_goes_with_arenas_alone(tmp_path, source):
    given = source
    if source == "data":
        Experience(np.zeros((4, 2)), [4]).save(tmp_path / "data.npz")
        given = DataFile(tmp_path / "data.npz")
    with pytest.raises(ConfigError, match="observation"):
        open_target(given, LearnSettings(observation="state", preset="default"))


def states_of(count: int = 500, seed: int = 0, numbers: int = 2) -> np.ndarray:
    generator = np.random.default_rng(seed)
    at = open_arena("PointUMaze").random_positions(count, generator)
    return np.column_stack([at, generator.standard_normal((count, numbers - 2))]).astype(np.float32)


KNOWN = {
    "soft": oracle,
    "unit": lambda states: -oracle(states),
    "commute": lambda states: np.exp(oracle(states)),
    "biharmonic": lambda states: oracle(states) ** 3,
    "heat": lambda states: states[:, 0] + 3,
    "hitting": lambda states: 5 - oracle(states),
}


@pytest.mark.parametrize("numbers", [2, 6])
def test_correlations_are_spearmans_for_each_filter_and_l2(numbers):
    phi, states = Known(KNOWN), states_of(numbers=numbers)
    at_rest, ways = np.array([-2, -2, 0, 0, 0, 0][:numbers]), oracle(states)
    found = path_correlations(phi, states, at_rest, ways)
    assert list(found) == ["soft", "unit", "commute", "biharmonic", "heat", "hitting", "l2"]
    assert found["soft"] == pytest.approx(1)
    assert found["unit"] == pytest.approx(-1)
    assert found["commute"] == found["biharmonic"] == pytest.approx(1)
    assert found["hitting"] == pytest.approx(-1)
    assert found["heat"] == pytest.approx(spearmanr(states[:, 0], ways).statistic)
    straight = np.hypot(states[:, 0] + 2, states[:, 1] + 2)
    assert found["l2"] == pytest.approx(spearmanr(straight, ways).statistic)
    assert found["l2"] < 0.8, "the plane misleads in this maze"
    for goal in phi.asked:
        np.testing.assert_array_equal(goal, at_rest)


@pytest.mark.parametrize("less", [{"rotate": False}, {"dim": 1}])
def test_without_single_eigenfunctions_there_is_soft_and_l2_alone(less):
    states = states_of()
    found = path_correlations(Known(KNOWN, **less), states, np.array([-2, -2]), oracle(states))
    assert list(found) == ["soft", "l2"]


def test_a_representation_of_an_arena_is_measured_by_the_way_to_the_goal_alone():
    """The states are not enumerated, so there is no spectrum; the seed draws the states that count."""
    target = open_target("PointUMaze", LearnSettings(transitions=3_000, held_out=0.0))
    measures = evaluate(Known(KNOWN), target)
    states = target.some_observations(4_000, 5)
    expected = path_correlations(Known(KNOWN), states, target.goal_observation(), oracle(states))
    assert measures.pop("distance_correlation") == expected
    assert measures.pop("eigenvalues") == [0, 0.5, 1]
    assert 0 <= measures.pop("irreversibility") <= 1
    assert measures.pop("parts") >= 1
    assert measures.pop("barriers")["walls"] == 0  # they are thick
    assert set(measures.values()) == {None}
