"""DQN in one file, with the reward shaped by a learned Laplacian representation.

Everything that trains is here, to be read from top to bottom and changed: PyTorch, a replay buffer, one loop.
Only two lines are lapwing's: `lapwing.learn` and `lapwing.LaplacianReward`. With `--form sparse` the
same agent learns from the sparse reward.

    python examples/dqn_single_file.py                    # TwoRoom, shaped: 15 s of CPU time
    python examples/dqn_single_file.py --form sparse      # to compare with
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from torch import nn

import lapwing


def parse_arguments() -> argparse.Namespace:
    """The settings, each with its default."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--env-id", default="lapwing/TwoRoom-v0")
    parser.add_argument("--goal", type=float, nargs="+", default=[0.125, 0.875], help="an observation")
    parser.add_argument("--form", default="potential", choices=["sparse", "mix", "potential"])
    parser.add_argument("--phi-transitions", type=int, default=50_000, help="random steps, for φ")
    parser.add_argument("--total-timesteps", type=int, default=4_000)
    parser.add_argument("--learning-starts", type=int, default=200)
    parser.add_argument("--buffer-size", type=int, default=50_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--target-network-frequency", type=int, default=250)
    parser.add_argument("--start-epsilon", type=float, default=1.0)
    parser.add_argument("--end-epsilon", type=float, default=0.05)
    parser.add_argument("--exploration-fraction", type=float, default=0.3)
    parser.add_argument("--evaluation-episodes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


class QNetwork(nn.Module):
    """Values of all actions at an observation."""

    def __init__(self, env: gymnasium.Env):
        super().__init__()
        inputs, actions = int(np.prod(env.observation_space.shape)), int(env.action_space.n)
        self.network = nn.Sequential(
            *(nn.Linear(inputs, 64), nn.ReLU()),
            *(nn.Linear(64, 64), nn.ReLU()),
            nn.Linear(64, actions),
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.network(observations)


class ReplayBuffer:
    """The last transitions, in a ring of arrays."""

    def __init__(self, size: int, shape: tuple[int, ...]):
        self.observations = np.zeros((size, *shape), np.float32)
        self.next_observations = np.zeros((size, *shape), np.float32)
        self.actions = np.zeros(size, np.int64)
        self.rewards, self.terminations = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.added = 0

    def add(self, observation, action, reward, next_observation, terminated) -> None:
        place = self.added % len(self.actions)
        self.observations[place], self.next_observations[place] = observation, next_observation
        self.actions[place], self.rewards[place], self.terminations[place] = action, reward, terminated
        self.added += 1

    def sample(self, size: int, rng: np.random.Generator) -> list[torch.Tensor]:
        places = rng.integers(min(self.added, len(self.actions)), size=size)
        arrays = (self.observations, self.actions, self.rewards, self.next_observations, self.terminations)
        return [torch.from_numpy(array[places]) for array in arrays]


def td_loss(q_network: QNetwork, target_network: QNetwork, batch: list[torch.Tensor], gamma: float):
    """The mean squared TD error; a time limit does not end the task, so only terminations cut it off."""
    observations, actions, rewards, next_observations, terminations = batch
    with torch.no_grad():
        best = target_network(next_observations).max(dim=1).values
        target = rewards + gamma * (1 - terminations) * best
    values = q_network(observations).gather(1, actions[:, None]).squeeze(1)
    return nn.functional.mse_loss(values, target)


def epsilon_at(step: int, args: argparse.Namespace) -> float:
    """From the first to the last ε in a straight line."""
    share = min(1.0, step / (args.exploration_fraction * args.total_timesteps))
    return args.start_epsilon + share * (args.end_epsilon - args.start_epsilon)


@torch.no_grad()
def greedy(q_network: QNetwork, observation: np.ndarray) -> int:
    return int(q_network(torch.as_tensor(observation, dtype=torch.float32)[None]).argmax(dim=1))


def success(q_network: QNetwork, env: gymnasium.Env, episodes: int) -> float:
    """The share of starts from which the greedy policy comes to the goal."""
    reached = 0
    for seed in range(episodes):
        observation, over, found = env.reset(seed=seed)[0], False, False
        while not (over or found):
            observation, _, terminated, truncated, info = env.step(greedy(q_network, observation))
            over, found = terminated or truncated, info["goal_reached"]
        reached += found
    return reached / episodes


def train(env: gymnasium.Env, args: argparse.Namespace) -> QNetwork:
    """The loop: act, store, update."""
    rng = np.random.default_rng(args.seed)
    q_network, target_network = QNetwork(env), QNetwork(env)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = torch.optim.Adam(q_network.parameters(), lr=args.learning_rate)
    buffer = ReplayBuffer(args.buffer_size, env.observation_space.shape)
    observation, _ = env.reset(seed=args.seed)
    for step in range(args.total_timesteps):
        explore = rng.random() < epsilon_at(step, args)
        action = int(rng.integers(env.action_space.n)) if explore else greedy(q_network, observation)
        next_observation, reward, terminated, truncated, _ = env.step(action)
        buffer.add(observation, action, reward, next_observation, terminated)
        observation = env.reset()[0] if terminated or truncated else next_observation
        if step >= args.learning_starts:
            optimizer.zero_grad()
            td_loss(q_network, target_network, buffer.sample(args.batch_size, rng), args.gamma).backward()
            optimizer.step()
        if step % args.target_network_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())
    return q_network


if __name__ == "__main__":
    args = parse_arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # networks as small as these gain nothing from more
    goal, env = np.array(args.goal, np.float32), gymnasium.make(args.env_id)

    rep = lapwing.learn(gymnasium.make(args.env_id), transitions=args.phi_transitions, seed=args.seed)
    env = lapwing.LaplacianReward(env, rep, goal, form=args.form, gamma=args.gamma)

    began = time.process_time()
    q_network = train(env, args)
    share, seconds = success(q_network, env, args.evaluation_episodes), time.process_time() - began
    print(f"{args.form}: success {share:.0%} after {args.total_timesteps:,} steps, {seconds:.0f} s of CPU")
