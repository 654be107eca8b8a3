"""φ out: what a wrapped step costs, and DQN of Stable-Baselines3 on a shaped reward and on the sparse one."""

import time

import gymnasium
import numpy as np

import lapwing
from benchmarks.rows import Row
from lapwing.data.action_spaces import random_actions

STEPS = 5_000
REPEATS = 5
GOAL = np.array([0.125, 0.875], np.float32)
"""Of TwoRoom."""
SEEDS = 5
BUDGET, EVERY, GAMMA = 10_000, 500, 0.95


def measure() -> list[Row]:
    rep = lapwing.learn("TwoRoom", transitions=100_000)
    small = lapwing.learn("TwoRoom", transitions=100_000, hidden=(64, 64), fourier_features=32)
    return [*steps(rep, "default network"), *steps(small, "(64, 64), 32 directions"), *stable_baselines(rep)]


def steps(rep: lapwing.Representation, words: str) -> list[Row]:
    plain = gymnasium.make("lapwing/TwoRoom-v0")
    shaped = lapwing.LaplacianReward(gymnasium.make("lapwing/TwoRoom-v0"), rep, GOAL)
    drawn = random_actions(plain.action_space, 0)
    actions = [next(drawn) for _ in range(STEPS)]
    alone, wrapped = [], []
    for _ in range(REPEATS):
        alone.append(_stepping(plain, actions))
        wrapped.append(_stepping(shaped, actions))
    added = (min(wrapped) - min(alone)) / STEPS * 1e6
    ratio = min(wrapped) / min(alone)
    note = f"adds {added:.0f} µs to {min(alone) / STEPS * 1e6:.0f} µs"
    return [Row(f"TwoRoom, a step with LaplacianReward over env.step, {words}", ratio, None, note=note)]


def _stepping(env: gymnasium.Env, actions: list) -> float:
    env.reset(seed=0)
    began = time.process_time()
    for action in actions:
        if env.step(action)[3]:
            env.reset()
    return time.process_time() - began


def stable_baselines(rep: lapwing.Representation) -> list[Row]:
    """Steps to 90 % success from all starts, medians over seeds; the budget where it is never reached."""
    scale = _in_steps(rep)
    found = {
        form: [_steps_to_success(form, rep, scale, seed) for seed in range(SEEDS)]
        for form in ("sparse", "potential")
    }
    rows = [
        Row(
            f"SB3's DQN in TwoRoom, {form}: steps to 90 % success", float(np.median(taken)), note=_each(taken)
        )
        for form, taken in found.items()
    ]
    ratio = float(np.median(found["sparse"]) / np.median(found["potential"]))
    return [
        *rows,
        Row("… sparse over potential (a run that never gets there counts as the budget)", ratio, 1.5),
    ]


def _each(taken: list[float]) -> str:
    return "seeds: " + ", ".join("never" if steps >= BUDGET else f"{steps:,.0f}" for steps in taken)


def _in_steps(rep: lapwing.Representation) -> float:
    """What makes a step change the distance to the goal by 1 in the mean."""
    walks = lapwing.collect(gymnasium.make("lapwing/TwoRoom-v0"), 5_000)
    here = walks.transitions(np.arange(5_000))
    reward = lapwing.GoalReward("potential", lapwing.Goal(GOAL), rep, filter="commute", gamma=GAMMA)
    return reward.in_steps(walks.observe(here), walks.observe(here + 1)).scale


def _steps_to_success(form: str, rep: lapwing.Representation, scale: float, seed: int) -> float:
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)

    class Watch(BaseCallback):
        reached = float(BUDGET)

        def _on_step(self) -> bool:
            if self.num_timesteps % EVERY or _success(self.model) < 0.9:
                return True
            self.reached = float(self.num_timesteps)
            return False

    env = gymnasium.make("lapwing/TwoRoom-v0")
    env = lapwing.LaplacianReward(env, rep, GOAL, form=form, gamma=GAMMA, scale=scale)
    settings = {"learning_starts": 200, "train_freq": 1, "target_update_interval": 250, "gamma": GAMMA}
    settings |= {"batch_size": 128, "exploration_fraction": 0.15, "learning_rate": 1e-3}
    settings |= {"policy_kwargs": {"net_arch": [64, 64]}}
    watch = Watch()
    DQN("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(BUDGET, callback=watch)
    return watch.reached


def _success(model) -> float:
    """The share of all cells from which the greedy policy comes to the goal within 50 steps."""
    from lapwing.envs.gridworld import GridWorld
    from lapwing.mazes import read_maze

    world = GridWorld(read_maze("TwoRoom"))
    seen = world.observations("position")
    actions, _ = model.predict(seen, deterministic=True)
    states, reached = np.arange(world.n_states), np.zeros(world.n_states, bool)
    for _ in range(50):
        reached |= states == world.goal_state
        states = world.next_state[states, actions[states]]
    return float((reached | (states == world.goal_state)).mean())
