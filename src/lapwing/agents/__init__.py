"""Agents that learn from rewards: DQN over a maze or any Gymnasium environment, DDPG over arenas."""
