"""Stable-Baselines3 with a shaped reward: DQN in TwoRoom, once on the sparse reward and once on ours."""

import sys

import gymnasium
import numpy as np
from stable_baselines3 import DQN

import lapwing

GOAL = np.array([0.125, 0.875], np.float32)


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
    settings = {"learning_starts": 500, "train_freq": 2, "target_update_interval": 250, "gamma": 0.95}
    settings |= {"exploration_fraction": 0.5, "policy_kwargs": {"net_arch": [64, 64]}, "learning_rate": 1e-3}
    return DQN("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(steps)


def main(steps: int) -> None:
    rep = lapwing.learn("TwoRoom", transitions=100_000)
    for form, phi in (("sparse", None), ("mix", rep)):
        env = lapwing.LaplacianReward(gymnasium.make("lapwing/TwoRoom-v0"), phi, GOAL, form=form)
        print(f"{form:7} success after {steps:,} steps: {success(trained(env, steps)):.0%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4_000)
