"""Stable-Baselines3's DQN on HardMaze's sparse goal, with options among its actions and without.

What counts is steps of the environment, not decisions: how many until the greedy policy comes to the goal
from 90 % of some cells within 100 steps, and how often the goal was seen in all of them. Runs are kept in
`results/option_agents.json`, and what is interrupted resumes there.
"""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import lapwing
from benchmarks.rows import Row
from lapwing.options.option_set import MazeOptions

TABLE = Path("results/option_agents.json")
MAZE, SEEDS, GAMMA = "HardMaze", 5, 0.98
BUDGET, EVERY, WITHIN, EPISODE = 10_000, 500, 100, 50
VARIANTS: dict[str, dict[str, Any] | None] = {
    "no options": None,
    "16 eigenoptions": {"count": 16},
    "64 eigenoptions": {"count": 64},
    "16 covering options": {"count": 16, "kind": "covering"},
}


def measure() -> list[Row]:
    done = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    learned = None
    for variant, how in VARIANTS.items():
        for seed in range(SEEDS):
            if f"{variant}, {seed}" in done:
                continue
            options = None
            if how is not None:
                learned = learned or lapwing.learn(MAZE, dim=33)
                options = lapwing.discover_options(MAZE, representation=learned, **how)
            done[f"{variant}, {seed}"] = _run(options, seed)
            TABLE.write_text(json.dumps(done, indent=1) + "\n")
    return rows(done)


def rows(done: dict[str, dict[str, Any]]) -> list[Row]:
    """The claims, from what the runs gave."""
    found = []
    for measure, claim in (
        ("visits", "steps at the goal (staying counts), of"),
        ("steps", "steps to success, of"),
    ):
        plain = np.array([done[f"no options, {seed}"][measure] for seed in range(SEEDS)], float)
        for variant in VARIANTS:
            taken = [done[f"{variant}, {seed}"][measure] for seed in range(SEEDS)]
            note = "seeds: " + ", ".join(
                "never" if measure == "steps" and t >= BUDGET else f"{t:,}" for t in taken
            )
            if variant != "no options":
                better = np.sum(plain > taken) if measure == "steps" else np.sum(plain < taken)
                note += f"; better than without in {better} of {SEEDS}"
            found.append(
                Row(
                    f"SB3's DQN, {MAZE}, {variant}: {claim} {BUDGET:,} steps",
                    float(np.mean(taken)),
                    note=note,
                )
            )
    return found


class _Counted(gymnasium.Wrapper):
    """Counts the steps of the environment, and how often it was at the goal."""

    steps, visits = 0, 0

    def step(self, action):
        found = self.env.step(action)
        self.steps += 1
        self.visits += found[1] == 0
        return found


def _run(options: MazeOptions | None, seed: int) -> dict[str, int]:
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    counted = _Counted(gymnasium.make(f"lapwing/{MAZE}-v0", max_episode_steps=EPISODE))
    env = counted if options is None else lapwing.LaplacianOptions(counted, options, gamma=GAMMA)

    class Watch(BaseCallback):
        reached, due = BUDGET, EVERY

        def _on_step(self) -> bool:
            if counted.steps >= self.due:
                self.due += EVERY
                if self.reached == BUDGET and _success(self.model, options) >= 0.9:
                    self.reached = counted.steps
            return counted.steps < BUDGET

    settings = {"learning_starts": 200, "train_freq": 4, "target_update_interval": 250, "gamma": GAMMA}
    settings |= {"batch_size": 128, "exploration_fraction": 0.3, "learning_rate": 1e-3}
    settings |= {"policy_kwargs": {"net_arch": [64, 64]}, "exploration_final_eps": 0.1}
    watch = Watch()
    DQN("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(BUDGET, callback=watch)
    return {"steps": min(watch.reached, BUDGET), "visits": counted.visits}


def _success(model: Any, options: MazeOptions | None) -> float:
    """The share of cells from which the greedy policy comes to the goal in time."""
    inner = _Counted(gymnasium.make(f"lapwing/{MAZE}-v0", max_episode_steps=WITHIN))
    env = inner if options is None else lapwing.LaplacianOptions(inner, options, gamma=GAMMA)
    world = inner.unwrapped.world  # type: ignore[attr-defined]
    chosen, _ = model.predict(world.observations("position"), deterministic=True)
    starts, came = world.cells[::4].tolist(), 0
    for start in starts:
        inner.visits, over = 0, False
        _, info = env.reset(options={"cell": tuple(start)})
        while not over and not inner.visits:
            _, _, terminated, truncated, info = env.step(int(chosen[info["state"]]))
            over = terminated or truncated
        came += inner.visits > 0
    env.close()
    return came / len(starts)
