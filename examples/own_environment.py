"""An environment of your own, in ten lines: φ, its eigenfunctions, and a reward that knows the walls.

python examples/own_environment.py [FOLDER] [TRANSITIONS]
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np

import lapwing


class Rooms(gymnasium.Env):
    """A point in the unit square with a wall at x = 0.5 that has a door at its lower end."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = self.np_random.random(2), 0
        return self.at.astype(np.float32), {}

    def step(self, action):
        there = np.clip(self.at + 0.08 * np.asarray(action), 0, 1)
        through_wall = (there[0] > 0.5) != (self.at[0] > 0.5) and there[1] > 0.2
        self.at, self.steps = self.at if through_wall else there, self.steps + 1
        return self.at.astype(np.float32), 0.0, False, self.steps == 100, {}


def main(out: Path, transitions: int) -> None:
    with lapwing.progress_bar() as bar:
        rep = lapwing.learn(Rooms(), transitions=transitions, dim=6, on_progress=bar)
    print("eigenvalues", rep.eigenvalues.round(4))
    left, right, beside = np.array([0.4, 0.9]), np.array([0.6, 0.9]), np.array([0.2, 0.9])
    print("0.2 apart, wall between", rep.distance(left, right))
    print("0.2 apart in one room  ", rep.distance(left, beside))
    env = lapwing.LaplacianReward(Rooms(), rep, goal=right, gamma=0.98, radius=0.1)
    env.reset(seed=0)
    print("a shaped reward        ", env.step(env.action_space.sample())[1])
    rep.save(out / "rooms.safetensors")
    print(out / "rooms.safetensors")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/examples")
    folder.mkdir(parents=True, exist_ok=True)
    main(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 50_000)
