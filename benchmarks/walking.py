"""Does a DDPG Ant learn to walk at all, and keep it? In an open room, with its speed along x as the reward.

No goal and no φ: what is left is the body, the networks and the learning rates. One seed, the preset quick.
"""

from functools import partial

import numpy as np

from benchmarks.rows import Row
from lapwing.agents.ddpg import act_now
from lapwing.agents.ddpg_arena import Trainer
from lapwing.agents.evaluation import evaluate_policy
from lapwing.envs.arena import BODIES, make_arena
from lapwing.envs.simulator import Simulator
from lapwing.mazes import parse_maze
from lapwing.settings.agents import CONTROL_PRESETS, ResolvedControl

ROOM = "#####\n#...#\n#...#\n#..G#\n#####\n"
CELL = 40.0
"""So wide that hardly any episode comes to a wall."""
STEPS, EVERY = 144_000, 24_000
RATES = {"the paper's rates": (1e-4, 0.001), "critic 0.001, targets 0.005": (1e-3, 0.005)}


def measure() -> list[Row]:
    """How far along x the policy without noise comes in an episode, on the way and at the end."""
    return [row for name, rates in RATES.items() for row in _learned(name, *rates)]


def _learned(name: str, critic_rate: float, target_rate: float) -> list[Row]:
    quick = CONTROL_PRESETS["quick"]
    settings = ResolvedControl(
        hidden=quick.hidden,
        fast=quick.fast,
        steps=STEPS,
        evaluate_every=EVERY,
        critic_rate=critic_rate,
        target_rate=target_rate,
    )
    maze = parse_maze(ROOM, name="room")
    simulator = Simulator(make_arena(BODIES["Ant"], maze, cell=CELL, fast=settings.fast))
    speed = simulator.model.nq  # the first velocity follows the positions
    trainer = Trainer(simulator, settings, lambda _, seen: seen[:, speed])
    state = trainer.with_random_steps(trainer.first_state())
    trainer.compile(state)
    step, way, metrics = 0, [], {}
    while step < STEPS:
        state, step, metrics = trainer.advance(state, step)
        paths = evaluate_policy(simulator, partial(act_now, state.learner.online.actor)).paths
        way.append(float(np.mean(paths[-1, :, 0] - paths[0, :, 0])))
        print(f"{name}: {step:,} steps, {way[-1]:.2f} along x, Q {metrics['critic/q']:.1f}", flush=True)
    every = f"every {EVERY:,} steps: " + ", ".join(f"{one:.1f}" for one in way)
    bound = f"highest {metrics['critic/q_highest']:.0f}, no return exceeds {metrics['critic/q_bound']:.0f}"
    return [
        Row(f"Ant, reward = speed, {name}: along x in an episode", way[-1], note=every),
        Row("… mean Q at the end", metrics["critic/q"], note=bound),
    ]
