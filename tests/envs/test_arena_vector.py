import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import lapwing  # noqa: F401 (registers the environments)
from lapwing.errors import ConfigError

ENTRY_POINT = "vector_entry_point"


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """No GL, whatever this machine has."""
    monkeypatch.setenv("MUJOCO_GL", "off")


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
    with pytest.raises(ConfigError, match=r"num_envs.* 0"):
        make(count=0)
    with pytest.raises(ConfigError, match="num_envs"):
        make(count=10**13)


def synchronous(count=3, mode=AutoresetMode.NEXT_STEP, **options):
    """Gymnasium's own vector of single environments."""
    return gymnasium.make_vec(
        "lapwing/PointUMaze-v0",
        num_envs=count,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **options,
    )


def assert_same(mine, theirs):
    """What a reset or a step gives; Gymnasium's infos have masks beside them."""
    for one, other in zip(mine[:-1], theirs[:-1], strict=True):
        if isinstance(other, dict):
            for key, value in other.items():
                np.testing.assert_array_equal(one[key], value)
        else:
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(mine[-1]["success"], theirs[-1]["success"])
    np.testing.assert_allclose(mine[-1]["distance"], theirs[-1]["distance"], rtol=1e-6)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_episode_after_episode_it_is_gymnasiums_own_vector(mode):
    mine, theirs = make(max_episode_steps=4, autoreset_mode=mode), synchronous(mode=mode, max_episode_steps=4)
    assert_same(mine.reset(seed=7), theirs.reset(seed=7))
    mine.action_space.seed(0)
    ended = 0
    for step in range(14):
        if step == 6:  # one of them begins anew, so that they end apart
            mask = np.array([False, True, False])
            mine.reset(options={"reset_mask": mask})
            theirs.reset(options={"reset_mask": mask})
        actions = mine.action_space.sample()
        one, other = mine.step(actions), theirs.step(actions)
        assert_same(one, other)
        assert ("final_obs" in one[-1]) == ("final_obs" in other[-1])
        if "final_obs" in one[-1]:
            ended += 1
            np.testing.assert_array_equal(one[-1]["_final_obs"], other[-1]["_final_obs"])
            np.testing.assert_array_equal(
                one[-1]["final_info"]["success"], other[-1]["final_info"]["success"]
            )
            for last, expected in zip(one[-1]["final_obs"], other[-1]["final_obs"], strict=True):
                assert (last is None) == (expected is None)
                for key in expected or {}:
                    np.testing.assert_array_equal(last[key], expected[key])
    assert (ended > 2) == (mode == AutoresetMode.SAME_STEP)
    assert mine.metadata["autoreset_mode"] is mode


def test_without_autoreset_an_ended_episode_must_be_reset():
    env = make(max_episode_steps=2, autoreset_mode="Disabled")
    env.reset(seed=0)
    push = np.zeros(env.action_space.shape, np.float32)
    env.step(push)
    *_, truncated, _ = env.step(push)
    assert truncated.all()
    with pytest.raises(ConfigError, match=r"\[0, 1, 2\]"):
        env.step(push)
    env.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ConfigError, match=r"\[1\]"):
        env.step(push)
    env.reset(options={"reset_mask": np.array([False, True, False])})
    assert not env.step(push)[3].any()


def test_each_body_has_a_seed_of_its_own():
    seen = {
        seed: gymnasium.make("lapwing/PointUMaze-v0").reset(seed=seed)[0]["observation"]
        for seed in (3, 7, 8, 9)
    }
    env = make()
    np.testing.assert_array_equal(env.reset(seed=7)[0]["observation"], [seen[7], seen[8], seen[9]])
    np.testing.assert_array_equal(env.reset(seed=[9, 3, 7])[0]["observation"], [seen[9], seen[3], seen[7]])
    assert env.np_random_seed == (9, 3, 7)
    first, *_ = env.reset(seed=[None, 3, None])[0]["observation"]
    assert not np.array_equal(first, seen[9]), "a generator without a seed goes on"
    assert env.np_random_seed == (9, 3, 7)
    with pytest.raises(ConfigError, match=r"seed.* 2 .* 3"):
        env.reset(seed=[1, 2])


def test_some_are_reset_and_the_others_stay():
    env = make()
    before, _ = env.reset(seed=0)
    after, _ = env.reset(options={"reset_mask": np.array([False, True, False])})
    moved = (before["observation"] != after["observation"]).any(axis=1)
    assert moved.tolist() == [False, True, False]
    after, _ = env.reset(options={"position": (-2.0, 2.0), "reset_mask": np.array([True, False, False])})
    assert after["achieved_goal"][0].tolist() == [-2.0, 2.0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": np.zeros((2, 7))}, r"rows.*\(3, 7\).*\(2, 7\)"),
        ({"rows": np.full((3, 7), np.nan)}, "rows"),
        ({"rows": "x"}, "rows.*'x'"),
        ({"reset_mask": np.array([True, False])}, "reset_mask"),
        ({"reset_mask": np.array([1, 0, 1])}, "reset_mask"),
        ({"reset_mask": np.zeros(3, bool)}, "True at least"),
        ({"position": (0.0, 0.0)}, r"position \(0\.0, 0\.0\)"),
        ({"position": "x"}, "position.*'x'"),
    ],
    ids=str,
)
def test_what_cannot_be_reset_changes_nothing(options, words):
    env, twin = make(), make()
    for each in (env, twin):
        each.reset(seed=0)
    with pytest.raises(ConfigError, match=words):
        env.reset(seed=5, options=options)
    push = np.ones(env.action_space.shape, np.float32)
    assert_same(env.step(push), twin.step(push))
    assert_same(env.reset(), twin.reset())


def test_pictures_of_all():
    env, one = (
        make(count=2, render_mode="rgb_array"),
        gymnasium.make("lapwing/PointUMaze-v0", render_mode="rgb_array"),
    )
    env.reset(seed=1)
    one.reset(seed=2)
    pictures = env.render()
    assert [picture.shape for picture in pictures] == [(360, 360, 3)] * 2
    np.testing.assert_array_equal(pictures[1], one.render())
    assert (pictures[0] != pictures[1]).any()
    env.close()
    assert make().render() is None
    with pytest.raises(ConfigError, match=r"render_mode.*'human'"):
        make(render_mode="human")


def test_a_mode_that_there_is_not():
    with pytest.raises(ConfigError, match=r"autoreset_mode.*'never'"):
        make(autoreset_mode="never")


@pytest.mark.parametrize("actions", [[[0, 0], [np.nan, 0], [0, 0]], [[0, 0]]])
def test_actions_that_are_none(actions):
    env, twin = make(), make()
    for each in (env, twin):
        each.reset(seed=0)
    with pytest.raises(ConfigError, match="actions"):
        env.step(np.array(actions, np.float32))
    push = np.ones(env.action_space.shape, np.float32)
    assert_same(env.step(push), twin.step(push))
