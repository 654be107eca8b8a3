from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import lapwing
from lapwing import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.plane import open_plane, random_walks
from lapwing.errors import CheckpointError, ConfigError, DatasetError, LapwingWarning
from lapwing.reaching.worlds import MazeWorld, PlaneWorld, roll_out
from tests.support.folders import put

SMALL = {"transitions": 20_000, "dim": 10, "steps": 300, "batch": 256, "hidden": (64, 64)}


@pytest.fixture(scope="module")
def two_room():
    phi = lapwing.learn("TwoRoom", transitions=SMALL["transitions"], dim=SMALL["dim"], steps=300, stop=300)
    return lapwing.reach("TwoRoom", representation=phi, **SMALL)


@pytest.fixture(scope="module")
def plane():
    """Data of a plane, and what is made of it."""
    seen, actions = random_walks(open_plane("PlaneTwoRoom"), 40_000, 50, 0, None)
    data = Experience(seen.reshape(-1, 2), [seen.shape[1]] * len(seen), actions=actions.reshape(-1, 2))
    made = {name: value for name, value in SMALL.items() if name != "transitions"}
    phi = lapwing.learn(data, dim=15, trials=2)
    return data, lapwing.reach(data, representation=phi, **made, landmarks=150)


def test_it_goes_to_any_state_of_a_maze(two_room):
    world = GridWorld(lapwing.read_maze("TwoRoom"))
    episodes = roll_out(two_room.act, MazeWorld(world, world.observations("position")), 100, seed=1)
    assert episodes.reached.mean() >= 0.9
    cells = {tuple(row): state for state, row in enumerate(world.observations("position").tolist())}
    starts, goals = (np.array([cells[tuple(row)] for row in end.tolist()]) for end in episodes[:2])
    fewest = np.array([world.steps_to(int(goal))[start] for start, goal in zip(starts, goals, strict=True)])
    assert (episodes.steps >= fewest).all()
    assert episodes.steps[episodes.reached].mean() < 2 * fewest.mean() + 2


def test_it_goes_to_any_place_of_a_plane(plane):
    episodes = roll_out(plane[1].act, PlaneWorld(open_plane("PlaneTwoRoom")), 40, seed=1)
    assert episodes.reached.mean() >= 0.75  # a walk without aim has 0.4


def test_the_network_does_not_lose_to_the_nearest_neighbours(plane):
    data, reacher = plane
    world = PlaneWorld(open_plane("PlaneTwoRoom"))
    settings = {"landmarks": 150, "controller": "neighbours"}
    reference = lapwing.reach(data, representation=reacher.representation, **settings)
    by_network, by_neighbours = (
        roll_out(one.act, world, 30, seed=2).reached.mean() for one in (reacher, reference)
    )
    assert by_network >= by_neighbours - 0.15  # two standard errors of 30 episodes


def test_one_or_a_batch(two_room):
    here, goal = np.array([-0.5, -0.5], np.float32), np.array([0.5, 0.5], np.float32)
    assert two_room.act(here, goal, noise=0.0) in range(4)
    batch = two_room.act(np.stack([here, here]), goal, noise=0.0)
    assert batch.tolist() == [two_room.act(here, goal, noise=0.0)] * 2
    assert two_room.distance(np.stack([here, goal]), goal).shape == (2,)
    assert two_room.distance(goal, goal) < two_room.distance(here, goal)


def test_a_goal_that_phi_has_hardly_seen_is_warned_of_once(plane):
    """φ is as it was, and is told that its data was of the upper part alone."""
    data, reacher = plane
    phi = reacher.representation
    upper = data.observations[data.observations[:, 0] < -0.5][:600]
    places = replace(reacher.places, embedding=replace(phi, reference=phi.eigenfunctions(upper)))
    unsure = replace(reacher, places=places)
    start, seen, unseen = np.array([[-0.8, -0.8], [-0.7, -0.7], [0.8, 0.8]], np.float32)
    unsure.act(start, seen)  # warnings are errors
    with pytest.warns(LapwingWarning, match="thinly sampled"):
        unsure.act(start, unseen)
    unsure.act(start, unseen + 0.01)


def test_a_plan_leads_from_near_the_start_to_the_goal(plane):
    _, reacher = plane
    here, goal = np.array([-0.8, -0.8], np.float32), np.array([0.8, 0.8], np.float32)
    plan = reacher.plan(here, goal)
    np.testing.assert_allclose(plan[-1], goal)
    assert np.linalg.norm(plan[0] - here) < 0.5
    assert np.linalg.norm(np.diff(plan, axis=0), axis=1).max() < 0.8


def test_a_dict_of_a_goal_environment_is_taken_apart(plane):
    _, reacher = plane
    seen = {"observation": np.zeros(2, np.float32), "desired_goal": np.array([0.5, 0.5], np.float32)}
    np.testing.assert_array_equal(
        reacher.act(seen, noise=0.0), reacher.act(seen["observation"], seen["desired_goal"], noise=0.0)
    )
    with pytest.raises(ConfigError, match="observation"):
        reacher.act({"achieved_goal": np.zeros(2)}, np.zeros(2))


@pytest.mark.parametrize("which", ["discrete", "continuous", "neighbours", "euclid"])
def test_what_is_saved_acts_the_same(which, two_room, plane, tmp_path):
    data, reacher = plane
    more = {"landmarks": 50, "steps": 5}
    if which == "discrete":
        reacher = two_room
    elif which == "neighbours":
        reacher = lapwing.reach(data, representation=reacher.representation, controller=which, **more)
    elif which == "euclid":
        reacher = lapwing.reach(data, geometry="observation", **more)
    reacher.save(tmp_path / "reacher.safetensors")
    loaded = lapwing.load_reacher(tmp_path / "reacher.safetensors")
    here = np.array([[-0.5, -0.5], [0.5, 0.2]], np.float32)
    goal = np.array([0.5, 0.5], np.float32)
    np.testing.assert_array_equal(loaded.act(here, goal, noise=0.0), reacher.act(here, goal, noise=0.0))
    np.testing.assert_array_equal(loaded.plan(here[0], goal), reacher.plan(here[0], goal))
    assert loaded.config == reacher.config


def test_a_damaged_file_is_refused(two_room, tmp_path):
    path = tmp_path / "reacher.safetensors"
    two_room.save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    put(path, content)
    with pytest.raises(CheckpointError, match=path.name):
        lapwing.load_reacher(path)


def test_a_representation_is_no_reacher(two_room, tmp_path):
    two_room.representation.save(tmp_path / "phi.safetensors")
    with pytest.raises(CheckpointError, match="reacher"):
        lapwing.load_reacher(tmp_path / "phi.safetensors")


def test_data_without_actions_is_refused():
    with pytest.raises(DatasetError, match="actions"):
        lapwing.reach(Experience(np.random.default_rng(0).normal(size=(200, 2)), [100, 100]))


def test_a_goal_outside_of_the_data_is_refused(plane):
    with pytest.raises(ConfigError, match="goal"):
        plane[1].act(np.zeros(2, np.float32), np.array([40.0, 40.0], np.float32))


def test_where_no_way_leads_the_parts_are_told():
    rng = np.random.default_rng(0)
    moves = rng.uniform(-0.1, 0.1, (40, 100, 2)).astype(np.float32)
    walks = (
        np.clip(np.cumsum(moves, axis=1), -0.4, 0.4) + np.where(np.arange(40) % 2, 3.0, 0.0)[:, None, None]
    )
    data = Experience(walks.reshape(-1, 2), [100] * 40, actions=moves.reshape(-1, 2))
    reacher = lapwing.reach(data, geometry="observation", landmarks=20, steps=5)
    with pytest.raises(ConfigError, match="parts"):
        reacher.plan(np.zeros(2), np.full(2, 3.0))
    assert np.isinf(reacher.distance(np.zeros(2), np.full(2, 3.0)))
    assert np.isfinite(reacher.act(np.zeros(2), np.full(2, 3.0))).all()


def test_an_environment_of_other_actions_is_refused(two_room, plane):
    two_room.check_env(gymnasium.make("lapwing/TwoRoom-v0"))
    for reacher in (two_room, plane[1]):
        with pytest.raises(ConfigError, match="actions"):
            reacher.check_env(gymnasium.make("Pendulum-v1"))


def test_it_goes_to_an_observation_of_any_environment(two_room):
    """By the environment's own steps, and no goals but an observation that was seen there."""
    env = gymnasium.make("lapwing/TwoRoom-v0", observation="position", max_episode_steps=200)
    reached = 0
    for seed in range(10):
        goal, _ = env.reset(seed=100 + seed)
        seen, _ = env.reset(seed=seed)
        for _ in range(200):
            if np.array_equal(seen, goal):
                reached += 1
                break
            seen = env.step(two_room.act(seen, goal))[0]
    assert reached >= 8


def test_wrong_arguments_are_refused(two_room):
    for bad in ({"landmarks": 1}, {"noise": 2.0}, {"temperature": 0.0}, {"nonsense": 1}):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            lapwing.reach("TwoRoom", **bad)
    with pytest.raises(ConfigError, match="goal"):
        two_room.act([0.0, 0.0])
    with pytest.raises(ConfigError, match="observation has shape"):
        two_room.act(np.zeros(3), np.zeros(2))
    with pytest.raises(ConfigError, match="goal has shape"):
        two_room.act({"observation": np.zeros(2), "desired_goal": np.zeros(3)})
    with pytest.raises(ConfigError, match="noise"):
        two_room.act(np.zeros(2), np.zeros(2), noise=-1.0)
    with pytest.raises(ConfigError, match="goals"):
        two_room.act(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(DatasetError, match="NaN"):
        two_room.act(np.zeros(2), np.array([np.nan, 0.0]))
