"""Rewards for reaching a goal, and the tasks they are evaluated on."""
