"""Agents: DQN for mazes and Gymnasium environments, DDPG for arenas."""
