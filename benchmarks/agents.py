"""DQN updates a second at the paper's sizes, against a plain PyTorch loop."""

import time
from itertools import pairwise

import numpy as np

from benchmarks.rows import Row
from lapwing.agents.dqn_maze import train_on_maze
from lapwing.envs.gridworld import GridWorld
from lapwing.mazes import read_maze
from lapwing.settings.agents import AgentSettings
from lapwing.shaping.tasks import GridTask, grid_task

STEPS = 3_000
REPEATS = 3


def measure() -> list[Row]:
    task = grid_task(GridWorld(read_maze("HardMaze")))
    settings = AgentSettings(steps=STEPS)
    rewards = task.rewards("l2", task.distances(), settings.gamma)
    ours, torchs = 0.0, 0.0
    for _ in range(REPEATS):  # interleaved, so that a busy moment hits both alike
        ours = max(ours, STEPS / train_on_maze(task, rewards, settings)[0].seconds)
        torchs = max(torchs, torch_loop(task, rewards, settings))
    rows = [Row("HardMaze, DQN at the paper's sizes, updates/s", ours, 500)]
    if torchs:
        rows.append(Row("… over a plain PyTorch loop", ours / torchs, 2, note=f"{torchs:,.0f} updates/s"))
    return rows


def torch_loop(task: GridTask, rewards: np.ndarray, settings: AgentSettings, steps: int = 1_000) -> float:
    """The same algorithm as one would write it in eager PyTorch; 0 where PyTorch is not installed."""
    try:
        import torch
    except ImportError:
        return 0.0
    torch.set_num_threads(1)
    table = torch.as_tensor(task.world.observations("position"))
    next_state = torch.as_tensor(task.world.next_state).long()
    reward = torch.as_tensor(rewards, dtype=torch.float32)
    n_states, n_actions = rewards.shape
    online, target = (torch_network(torch, (2, *settings.hidden, n_actions)) for _ in range(2))
    target.load_state_dict(online.state_dict())
    optimiser = torch.optim.Adam(online.parameters(), lr=settings.learning_rate)
    states = torch.randint(n_states, (settings.random_steps + steps + 100,))
    actions = torch.randint(n_actions, states.shape)
    state, began = torch.randint(n_states, ()), 0.0
    for step in range(steps + 100):
        if step == 100:
            began = time.perf_counter()
        filled = settings.random_steps + step
        with torch.no_grad():
            greedy = online(table[state]).argmax()
        action = torch.randint(n_actions, ()) if torch.rand(()) < settings.epsilon else greedy
        states[filled], actions[filled] = state, action
        state = next_state[state, action]
        if (step + 1) % settings.episode_length == 0:
            state = torch.randint(n_states, ())
        places = torch.randint(filled + 1, (settings.batch,))
        s, a = states[places], actions[places]
        with torch.no_grad():
            wanted = reward[s, a] + settings.gamma * target(table[next_state[s, a]]).max(1).values
        loss = ((online(table[s]).gather(1, a[:, None])[:, 0] - wanted) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (step + 1) % settings.target_every == 0:
            with torch.no_grad():
                for old, new in zip(target.parameters(), online.parameters(), strict=True):
                    old.lerp_(new, settings.target_rate)
    return steps / (time.perf_counter() - began)


def torch_network(torch, sizes: tuple[int, ...]):
    layers = []
    for m, n in pairwise(sizes):
        layers += [torch.nn.Linear(m, n), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])
