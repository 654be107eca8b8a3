"""Recorded data to eigenfunctions: written episode by episode, looked into, learned from, measured.

python examples/offline_data.py [FOLDER] [EPISODES]
"""

import sys
from pathlib import Path

import numpy as np

import lapwing
from lapwing.plots import draw_over_features, save_figure
from lapwing.runs.inspect import inspect


def recorded_walks(episodes: int, steps: int = 100):
    """Walks round a pillar in the square, as a robot's log might hold them."""
    rng = np.random.default_rng(0)
    for _ in range(episodes):
        walk = [rng.uniform(-1, 1, 2) * (1, 0.2) + (0, 0.8)]
        while len(walk) <= steps:
            there = np.clip(walk[-1] + rng.normal(0, 0.15, 2), -1, 1)
            walk.append(walk[-1] if np.hypot(*there) < 0.5 else there)
        yield np.array(walk, np.float32)


def main(out: Path, episodes: int) -> None:
    data = out / "walks"
    lapwing.save_episodes(data, recorded_walks(episodes))  # a folder: it need not fit into memory
    found = inspect(data)
    print({name: found.facts[name] for name in ("episodes", "transitions", "not_finite")}, found.plan)
    with lapwing.progress_bar() as bar:
        rep = lapwing.learn(data, dim=6, out=out / "walks_run", overwrite=True, on_progress=bar)
    settings = lapwing.LearnSettings(dim=6)
    measures = lapwing.evaluate(rep, lapwing.open_target(data, settings))
    print("trusted", len(measures["held_out"]["trusted"]), "of", rep.dim)
    some = lapwing.load_experience(data).observations[::10]
    figure = draw_over_features(some, ("x", "y"), rep.eigenfunctions(some), rep.eigenvalues)
    print(save_figure(figure, out / "offline")[0])


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/examples")
    folder.mkdir(parents=True, exist_ok=True)
    main(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 400)
