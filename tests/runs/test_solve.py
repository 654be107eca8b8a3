"""`lapwing.solve` and `lapwing.action_model`: from a representation or a run to the policy of a reward."""

import numpy as np
import pytest

import lapwing
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import CheckpointError, ConfigError, DatasetError
from tests.support.exact import moves, text_of
from tests.support.fitted import OBSERVATIONS, REPRESENTATIONS
from tests.support.folders import put

GAMMA = 0.95
TABLE = np.array(moves(text_of("FourRoom")))


def optimum(rewards: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
    """The best return from each state of FourRoom, by sweeping its table; of these moves, if not of all."""
    values, forbidden = np.zeros(len(TABLE)), 0.0 if allowed is None else np.where(allowed, 0.0, -np.inf)
    for _ in range(500):
        values = ((rewards + GAMMA * values)[TABLE] + forbidden).max(axis=1)
    return values


def returned(actions: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """The return of a policy from each state of FourRoom, by following it."""
    values = np.zeros(len(TABLE))
    following = TABLE[np.arange(len(TABLE)), actions]
    for _ in range(500):
        values = (rewards + GAMMA * values)[following]
    return values


@pytest.fixture(scope="module")
def states() -> np.ndarray:
    return GridWorld(lapwing.read_maze("FourRoom")).observations("position")


@pytest.mark.parametrize("seed", range(3))
def test_any_reward_from_the_data_of_a_run(four_room_run, states, seed):
    """A reward is a goal, a region, or anything; no move is better than those that were tried."""
    experience, tried = lapwing.load_experience(four_room_run / "experience.npz"), np.zeros(TABLE.shape, bool)
    within = experience.horizons > 0
    tried[experience.observations[within], experience.actions[within]] = True
    rng = np.random.default_rng(seed)
    rewards = [np.eye(len(TABLE))[rng.integers(len(TABLE))], rng.normal(size=len(TABLE))]
    rewards.append(np.sign(states[:, 0]) * (states[:, 1] > 0.5))
    model = lapwing.action_model(four_room_run)
    for reward in rewards:
        actions = lapwing.solve(model, reward, gamma=GAMMA).act(states)
        np.testing.assert_allclose(returned(actions, reward), optimum(reward, tried), atol=1e-3)


def test_a_representation_of_a_maze_knows_its_moves(four_room, states):
    policy = lapwing.solve(four_room, lambda x: x[:, 0] > 0.8, gamma=GAMMA)
    reward = (states[:, 0] > 0.8).astype(float)
    np.testing.assert_allclose(policy.values(states), optimum(reward), atol=1e-3)


def test_labelled_observations(four_room, states):
    reward = states[:, 0] + states[:, 1]
    policy = lapwing.solve(four_room, (states, reward), gamma=GAMMA)
    np.testing.assert_allclose(policy.values(states), optimum(reward), atol=1e-3)


def test_experience_of_the_users(four_room, states):
    """What leads where comes from the data: here everything leads back."""
    walk = [3, 4, 3, 4, 3]
    experience = lapwing.Experience(walk, [5], states, actions=[0, 1, 0, 1])
    policy = lapwing.solve(four_room, np.arange(len(states)), experience=experience, gamma=GAMMA)
    assert policy.act(states[3]) == 0
    assert policy.values(states[4]) == pytest.approx((3 + 4 * GAMMA) / (1 - GAMMA**2), rel=1e-3)


def test_representations_that_do_not_say_what_actions_do():
    with pytest.raises(ConfigError, match="experience"):
        lapwing.solve(REPRESENTATIONS["mlp"], lambda x: x[:, 0])


def test_data_without_actions_or_of_another_shape(four_room):
    seen = OBSERVATIONS["fourier"]
    with pytest.raises(DatasetError, match="actions"):
        lapwing.solve(four_room, lambda x: x[:, 0], experience=lapwing.Experience(seen, [9]))
    wide = lapwing.Experience(np.zeros((4, 3)), [4], actions=[0, 1, 0])
    with pytest.raises(DatasetError, match="experience"):
        lapwing.solve(four_room, lambda x: x[:, 0], experience=wide)


def test_a_model_needs_no_more_data(four_room, states):
    model = lapwing.action_model(four_room)
    experience = lapwing.Experience([3, 4], [2], states, actions=[0])
    with pytest.raises(ConfigError, match="experience"):
        lapwing.solve(model, np.zeros(len(states)), experience=experience)


@pytest.mark.parametrize(("near", "size"), [(None, 2), ("observation", 2), ("phi", 3), ("both", 5)])
def test_what_is_near_of_continuous_vectors(near, size):
    """Vectors of 2 numbers, a φ of 3 functions and the constant."""
    seen = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    experience = lapwing.Experience(seen, [30, 30], actions=np.arange(60) % 2)
    model = lapwing.action_model(REPRESENTATIONS["fourier"], experience, landmarks=7, near=near)
    assert model.landmarks.shape == (7, size)
    policy = lapwing.solve(model, lambda x: x[:, 0])
    assert set(policy.act(seen.astype(np.float32)).tolist()) <= {0, 1}
    assert np.isfinite(policy.q(seen.astype(np.float32))).all()


def test_what_is_near_goes_with_vectors(four_room):
    with pytest.raises(ConfigError, match="near"):
        lapwing.action_model(four_room, near="both")
    with pytest.raises(ConfigError, match="near"):
        lapwing.action_model(four_room, near="far")


def test_no_landmarks(four_room):
    with pytest.raises(ConfigError, match="landmarks"):
        lapwing.action_model(four_room, landmarks=0)


def test_a_saved_policy_is_the_same(four_room, states, tmp_path):
    policy = lapwing.solve(four_room, lambda x: x[:, 0] > 0.8, gamma=GAMMA)
    policy.save(tmp_path / "policy.safetensors")
    loaded = lapwing.load_policy(tmp_path / "policy.safetensors")
    np.testing.assert_array_equal(loaded.q(states), policy.q(states))
    other = np.eye(len(states))[5]
    np.testing.assert_array_equal(loaded.model.solve(other).q(states), policy.model.solve(other).q(states))


def test_a_policy_of_vectors_is_saved_with_what_they_are_compared_in(tmp_path):
    representation, observations = REPRESENTATIONS["fourier"], OBSERVATIONS["fourier"]
    rng = np.random.default_rng(0)
    walk = observations[rng.integers(len(observations), size=400)] + rng.normal(0, 0.01, (400, 1))
    data = lapwing.Experience(walk.astype(np.float32), [200, 200], actions=rng.integers(3, size=400))
    model = lapwing.action_model(representation, data, landmarks=20, near="both")
    policy = model.solve(lambda seen: seen[:, 0])
    policy.save(tmp_path / "policy.safetensors")
    loaded = lapwing.load_policy(tmp_path / "policy.safetensors")
    np.testing.assert_array_equal(loaded.act(walk[:50]), policy.act(walk[:50]))


def test_a_damaged_or_foreign_file_is_no_policy(four_room, tmp_path):
    path = tmp_path / "mine.safetensors"
    lapwing.solve(four_room, lambda x: x[:, 0], gamma=GAMMA).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    put(path, content)
    four_room.save(tmp_path / "phi.safetensors")
    for wrong in (path, tmp_path / "phi.safetensors"):
        with pytest.raises(CheckpointError, match=wrong.name):
            lapwing.load_policy(wrong)
    with pytest.raises(ConfigError, match="policy"):
        lapwing.load_policy(tmp_path)
