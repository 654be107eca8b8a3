import gymnasium
import numpy as np
import pytest

import lapwing  # noqa: F401 (registers the environments)
from lapwing.errors import ConfigError

ENTRY_POINT = "vector_entry_point"


def make(name="PointUMaze", count=3, **options):
    return gymnasium.make_vec(f"lapwing/{name}-v0", num_envs=count, vectorization_mode=ENTRY_POINT, **options)


@pytest.mark.parametrize("name", ["PointUMaze", "AntHookMaze"])
def test_each_body_moves_as_it_would_alone(name):
    """The single environment steps by mj_step, the vector by mujoco.rollout; the bits are the same."""
    many, generator = make(name), np.random.default_rng(0)
    singles = [gymnasium.make(f"lapwing/{name}-v0") for _ in range(3)]
    for seed, env in enumerate(singles):
        env.reset(seed=seed)
    rows = np.concatenate([env.unwrapped._row for env in singles])
    many.reset(options={"rows": rows})
    for _ in range(40):
        actions = generator.uniform(-1, 1, many.action_space.shape).astype(np.float32)
        together = many.step(actions)
        for body, env in enumerate(singles):
            observation, reward, terminated, truncated, info = env.step(actions[body])
            for key, value in observation.items():
                assert np.array_equal(together[0][key][body], value)
            assert together[1][body] == reward
            assert (together[2][body], together[3][body]) == (terminated, truncated)
            assert together[4]["success"][body] == info["success"]


def test_episodes_are_cut_and_begin_anew_with_the_next_step():
    env = make(max_episode_steps=5)
    env.reset(seed=0)
    push = np.zeros(env.action_space.shape, np.float32)
    for step in range(1, 6):
        before, _, terminated, truncated, _ = env.step(push)
        assert not terminated.any()
        assert truncated.all() == (step == 5) == truncated.any()
    after, reward, _, truncated, _ = env.step(push)
    moved = np.linalg.norm(after["achieved_goal"] - before["achieved_goal"], axis=1)
    assert (moved > 0.1).all(), "elsewhere, not where the last episode ended"
    assert (reward == 0).all()
    assert not truncated.any()


def test_the_seed_decides_everything():
    first, second, other = (make(count=4) for _ in range(3))
    seen = [env.reset(seed=seed)[0]["observation"] for env, seed in ((first, 5), (second, 5), (other, 6))]
    assert np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], seen[2])


def test_spaces_are_those_of_the_single_one_many_times():
    env, one = make(count=4), gymnasium.make("lapwing/PointUMaze-v0")
    assert env.single_observation_space == one.observation_space
    assert env.single_action_space == one.action_space
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert env.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP


def test_a_goal_of_ones_own_and_no_body_at_all():
    env = make(count=2, goal=(1, 1))
    observation, _ = env.reset(seed=0)
    assert observation["desired_goal"].tolist() == [[-2.0, 2.0], [-2.0, 2.0]]
    with pytest.raises(ConfigError, match="num_envs must be at least 1, not 0"):
        make(count=0)
