"""Where a step of the Ant goes with the preset quick, in CPU time, and what its arithmetic alone takes."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.rows import Row
from lapwing.agents.ddpg import act_now
from lapwing.agents.ddpg_arena import Trainer
from lapwing.envs.arena import open_arena
from lapwing.envs.simulator import Simulator
from lapwing.settings.agents import CONTROL_PRESETS, ResolvedControl

ROUNDS, REPEATS, PRODUCTS = 20, 7, 200


def measure() -> list[Row]:
    """Milliseconds of one step, by its parts; the least of several repeats, which are interleaved."""
    quick = {name: value for name, value in vars(CONTROL_PRESETS["quick"]).items() if value is not None}
    settings = ResolvedControl(**(quick | {"steps": 16_000}))
    simulator = Simulator(open_arena("AntUMaze", fast=settings.fast))
    trainer = Trainer(simulator, settings, lambda _, seen: np.full(len(seen), -1.0, np.float32))
    state = trainer.with_random_steps(trainer.first_state())
    trainer.compile(state)
    t, generator = trainer.schedule.random, np.random.default_rng(0)
    actions = generator.uniform(-1, 1, (settings.envs, simulator.n_actions))
    batches, smoothing = trainer.batches(state.replay, t, generator), trainer.smoothing(generator)
    width = settings.hidden[0]
    square = jnp.full((settings.batch, width), 0.5), jnp.full((width, width), 1 / width)
    parts: dict[str, Callable[[], Any]] = {
        "whole": lambda: trainer.vector_step(state, t)[0].learner,
        "update": lambda: trainer.learn(state.learner, None, batches, smoothing, None)[0],
        "simulation": lambda: simulator.step(state.rows, actions),
        "policy": lambda: act_now(state.learner.online.actor, simulator.observe(state.rows)),
        "replay": lambda: trainer.batches(state.replay, t, generator).rewards,
        "products": lambda: _products(*square),
    }
    least = dict.fromkeys(parts, float("inf"))
    for _ in range(REPEATS):
        for name, part in parts.items():
            least[name] = min(least[name], _milliseconds(part))
    step = {name: value / settings.envs for name, value in least.items()}
    rate = 2 * settings.batch * width**2 * PRODUCTS / least["products"]  # operations a millisecond
    arithmetic = _operations(simulator.n_observations, simulator.n_actions, settings) / rate
    speed = f"{rate / 1e6:.0f} GFLOP/s, products of {settings.batch} x {width} x {width}"
    bound = step["whole"] / (arithmetic + step["simulation"])
    return [
        Row(
            "Ant, quick, ms a step", step["whole"], note=f"{1e3 / step['whole']:.0f} steps/s, an update each"
        ),
        *(Row(f"… {name}", step[name]) for name in ("update", "simulation", "policy", "replay")),
        Row("… the update's matrix products alone, at full speed", arithmetic, note=speed),
        Row(
            "… most that one core can gain with an update a step", bound, note="products and simulation left"
        ),
    ]


def _milliseconds(part: Callable[[], Any]) -> float:
    jax.block_until_ready(part())
    began = time.process_time()
    jax.block_until_ready([part() for _ in range(ROUNDS)])
    return 1e3 * (time.process_time() - began) / ROUNDS


@jax.jit
def _products(left, right):
    """Matrix products that need each other, as those of a network do."""
    return jax.lax.fori_loop(0, PRODUCTS, lambda _, carried: carried @ right, left)


def _operations(seen: int, pushed: int, settings: ResolvedControl) -> int:
    """Of one update's matrix products: the targets; the critics, back; policy and a critic, back."""
    first, second = settings.hidden
    actor = seen * first + first * second + second * pushed
    critic = (seen + pushed) * first + first * second + second
    critics = 2 if settings.twin_critics else 1
    not_needed = (seen + critics * (seen + pushed)) * first  # the gradient of what the networks see
    return 2 * settings.batch * (4 * actor + (4 * critics + 2) * critic - not_needed)
