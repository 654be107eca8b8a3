"""Agents that learn from rewards: DQN over a finite maze, and over any Gymnasium environment."""
