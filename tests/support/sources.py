"""A small maze and a walk, to be written to files and read from them."""

import numpy as np

ROOM = "#####\n#..G#\n#...#\n#####\n"


def walk(states: int = 4, steps: int = 200, seed: int = 0) -> np.ndarray:
    """A walk around a ring, as vectors on a circle."""
    moves = np.random.default_rng(seed).choice([-1, 1], steps).cumsum() % states
    angles = 2 * np.pi * moves / states
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
