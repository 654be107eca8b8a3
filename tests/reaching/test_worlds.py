import gymnasium
import numpy as np
import pytest

from lapwing.reaching.worlds import GymWorld, roll_out

pytest.importorskip("ogbench")


def test_a_point_maze_steps_as_ogbench_itself():
    import ogbench.locomaze  # noqa: F401

    from lapwing.reaching.worlds import PointMazeWorld

    world = PointMazeWorld("medium")
    starts, goals = world.begin(5, np.random.default_rng(0))
    env = gymnasium.make("pointmaze-medium-v0", terminate_at_goal=False)
    for task in range(5):
        _, info = env.reset(seed=0, options={"task_id": task + 1})
        assert np.linalg.norm(info["goal"] - goals[task]) <= 2 * np.sqrt(2) + 1e-6
        env.unwrapped.set_xy(world._points[task, :2])
        env.unwrapped.set_goal(goal_xy=world._goals[task])
        rng = np.random.default_rng(task)
        one = np.array([task])
        for _ in range(60):
            action = rng.uniform(-1, 1, 2)
            seen, _, _, _, info = env.step(action)
            np.testing.assert_array_equal(world.step(one, action[None])[0], seen.astype(np.float32))
            assert bool(world.there(one)[0]) == bool(info["success"])
    assert starts.shape == goals.shape == (5, 2)


def test_an_environment_with_goals_in_its_info_is_rolled_out():
    import ogbench.locomaze  # noqa: F401

    def make():
        return gymnasium.make("pointmaze-medium-v0", max_episode_steps=30)

    world = GymWorld(make, np.asarray, steps=20)
    episodes = roll_out(lambda seen, goals: np.sign(goals - seen), world, 2, seed=0)
    assert episodes.paths.shape == (21, 2, 2)
    assert not episodes.reached.any()
    assert (episodes.steps == 20).all()
