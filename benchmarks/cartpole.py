"""CartPole balanced by `lapwing.solve` from random steps: what landmarks should be compared by."""

import gymnasium
import numpy as np

import lapwing
from benchmarks.rows import Row
from lapwing.runs.solve import NEAR

STEPS = 30_000
EPISODES = 6
LONGEST = 200


def measure() -> list[Row]:
    env = gymnasium.make("CartPole-v1")
    experience = lapwing.collect(env, STEPS, seed=0)
    representation = lapwing.learn(experience, dim=10)
    rows = [_row("random actions", env, lambda seen: env.action_space.sample())]
    for near in NEAR:
        model = lapwing.action_model(representation, experience, near=near)
        policy = model.solve(lambda seen: -np.abs(seen[:, 2]) - 0.1 * np.abs(seen[:, 0]), 0.95)
        rows.append(_row(f"near = {near}", env, policy.act))
    return rows


def _row(name: str, env: gymnasium.Env, act) -> Row:
    env.action_space.seed(0)
    lengths = [_balanced(env, act, seed) for seed in range(EPISODES)]
    claim = f"CartPole, {name}: mean steps until the pole falls, of {LONGEST}"
    return Row(claim, float(np.mean(lengths)), note=", ".join(map(str, lengths)))


def _balanced(env: gymnasium.Env, act, seed: int) -> int:
    seen, _ = env.reset(seed=seed)
    for step in range(1, LONGEST + 1):
        seen, _, fallen, _, _ = env.step(act(seen))
        if fallen:
            return step
    return LONGEST
