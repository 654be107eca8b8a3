"""Stable-Baselines3 with a shaped reward: DQN in TwoRoom, once on the sparse reward and once on ours."""

import sys

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN

import lapwing

GOAL, GAMMA = np.array([0.125, 0.875], np.float32), 0.95


def in_steps(rep: lapwing.Representation, walks: lapwing.Experience) -> float:
    """What makes a step change the distance to the goal by 1 on average, as a potential needs."""
    here = walks.transitions(np.arange(5_000))
    reward = lapwing.GoalReward("potential", lapwing.Goal(GOAL), rep, filter="commute", gamma=GAMMA)
    return reward.in_steps(walks.observe(here), walks.observe(here + 1)).scale


def success(model: DQN, episodes: int = 40) -> float:
    """The share of starts from which the greedy policy comes to the goal."""
    env = lapwing.LaplacianReward(gymnasium.make("lapwing/TwoRoom-v0"), goal=GOAL, form="sparse")
    reached = 0
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, _, over, info = env.step(int(action))
            if info["goal_reached"]:
                reached += 1
                break
    return reached / episodes


def trained(env: gymnasium.Env, steps: int, seed: int = 0) -> DQN:
    """DQN with small networks; the same for both rewards."""
    settings = {"learning_starts": 200, "train_freq": 1, "target_update_interval": 250, "gamma": GAMMA}
    settings |= {"batch_size": 128, "exploration_fraction": 0.3, "learning_rate": 1e-3}
    settings |= {"policy_kwargs": {"net_arch": [64, 64]}}
    return DQN("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(steps)


def main(steps: int) -> None:
    torch.set_num_threads(1)  # networks as small as these gain nothing from more
    walks = lapwing.collect(gymnasium.make("lapwing/TwoRoom-v0"), 50_000)
    rep = lapwing.learn(walks)
    scale = in_steps(rep, walks)
    for form in ("sparse", "potential"):
        env = gymnasium.make("lapwing/TwoRoom-v0")
        env = lapwing.LaplacianReward(env, rep, GOAL, form=form, gamma=GAMMA, scale=scale)
        print(f"{form:9} success after {steps:,} steps: {success(trained(env, steps)):.0%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_500)
