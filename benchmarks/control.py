"""A step of the Point at the paper's sizes against the DDPG update alone, and against a loop in PyTorch."""

import time

import jax
import numpy as np

from benchmarks.agents import torch_network
from benchmarks.rows import Row
from lapwing.agents.ddpg_arena import Trainer
from lapwing.envs.arena import open_arena
from lapwing.envs.simulator import Simulator
from lapwing.settings.agents import ResolvedControl

ROUNDS = 20
REPEATS = 5


def measure() -> list[Row]:
    simulator, settings = Simulator(open_arena("PointUMaze")), ResolvedControl(steps=16_000)
    trainer = Trainer(simulator, settings, lambda _, seen: -np.linalg.norm(seen[:, :2], axis=1))
    state = trainer.with_random_steps(trainer.first_state())
    trainer.compile(state)
    torch_round = make_torch_round(simulator, settings, state.replay)
    alone, step, torchs = [], [], []
    t = trainer.schedule.random
    for _ in range(REPEATS):  # interleaved, so that a busy moment hits all alike
        batches = trainer.batches(state.replay, t, np.random.default_rng(0))
        began, learner = time.perf_counter(), state.learner
        for _ in range(ROUNDS):
            learner, _, _ = trainer.learn(learner, None, batches, None, None)
        jax.block_until_ready(learner)
        alone.append(time.perf_counter() - began)
        began = time.perf_counter()
        for _ in range(ROUNDS):
            state, _ = trainer.vector_step(state, t)
            t += 1
        jax.block_until_ready(state.learner)
        step.append(time.perf_counter() - began)
        if torch_round:
            began = time.perf_counter()
            for _ in range(ROUNDS // 4):
                torch_round()
            torchs.append(4 * (time.perf_counter() - began))
    updates = ROUNDS * settings.envs
    best, whole = min(alone) / updates, min(step) / updates
    rows = [
        Row("Point, DDPG at the paper's sizes, steps/s", 1 / whole, None, note="with one update each"),
        Row("… a step over the update alone", whole / best, 1.35, at_most=True, note=f"{best * 1e3:.2f} ms"),
    ]
    if torchs:
        theirs = min(torchs) / updates
        rows.append(Row("… over a plain PyTorch loop", theirs / whole, 1.7, note=f"{theirs * 1e3:.2f} ms"))
    return rows


def make_torch_round(simulator: Simulator, settings: ResolvedControl, replay):
    """A round of the same loop as one would write it in eager PyTorch; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    k, a = simulator.n_observations, simulator.n_actions
    actor, actor_target = (torch_network(torch, (k, *settings.hidden, a)) for _ in range(2))
    critic, critic_target = (torch_network(torch, (k + a, *settings.hidden, 1)) for _ in range(2))
    optimisers = [
        torch.optim.Adam(actor.parameters(), lr=settings.actor_rate),
        torch.optim.Adam(critic.parameters(), lr=settings.critic_rate),
    ]
    filled = settings.random_steps
    seen, acted, after = (
        torch.as_tensor(array.reshape(-1, array.shape[-1])[:filled].copy())
        for array in (replay.observations, replay.actions, replay.next_observations)
    )
    rewards = torch.as_tensor(replay.rewards.reshape(-1)[:filled].copy())
    generator = np.random.default_rng(0)
    rows = simulator.at_rest(simulator.arena.random_positions(settings.envs, generator))
    place = 0

    def update() -> None:
        at = torch.randint(filled, (settings.batch,))
        s, b, r, t = seen[at], acted[at], rewards[at], after[at]
        with torch.no_grad():
            following = critic_target(torch.cat([t, torch.tanh(actor_target(t))], 1))[:, 0]
        loss = ((critic(torch.cat([s, b], 1))[:, 0] - (r + settings.gamma * following)) ** 2).mean()
        optimisers[1].zero_grad()
        loss.backward()
        optimisers[1].step()
        loss = -critic(torch.cat([s, torch.tanh(actor(s))], 1)).mean()
        optimisers[0].zero_grad()
        loss.backward()
        optimisers[0].step()
        with torch.no_grad():
            for old, new in ((actor_target, actor), (critic_target, critic)):
                for o, n in zip(old.parameters(), new.parameters(), strict=True):
                    o.lerp_(n, settings.target_rate)

    def one_round() -> None:
        nonlocal rows, place
        here = torch.as_tensor(simulator.observe(rows))
        with torch.no_grad():
            actions = torch.tanh(actor(here)) + 0.2 * torch.randn(settings.envs, a)
        rows = simulator.step(rows, actions.numpy())
        there = torch.as_tensor(simulator.observe(rows))
        to = slice(place, place + settings.envs)
        seen[to], acted[to], after[to] = here, actions.clamp(-1, 1), there
        rewards[to] = -there[:, :2].norm(dim=1)
        place = (place + settings.envs) % filled
        for _ in range(settings.envs):
            update()

    return one_round
