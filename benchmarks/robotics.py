"""gymnasium-robotics' point mazes and classic control, random actions: held-out sums against networks."""

import warnings
from typing import Any

import gymnasium
import numpy as np

from benchmarks.geodesics import path_lengths, ranks
from benchmarks.others import NETWORKS, held_out, learn, states
from benchmarks.rows import Row
from lapwing.laplacian.target import Target, open_target
from lapwing.settings.learn import LearnSettings

MAZES = ("UMaze", "Medium", "Large")
KEYS = ("achieved_goal", "observation")
CLASSIC = ("MountainCar-v0", "Acrobot-v1", "Pendulum-v1", "CartPole-v1")
STEPS = 50_000
MANY_STEPS = 500_000


def measure() -> list[Row]:
    rows = [row for size in MAZES for key in KEYS for row in _maze(size, key, STEPS, NETWORKS)]
    only_mlp = {"mlp": NETWORKS["mlp"]}  # by far the better network at 50,000 steps
    rows += [row for size in MAZES for key in KEYS for row in _maze(size, key, MANY_STEPS, only_mlp)]
    sums = {name: _sums(open_target(f"gym:{name}", LearnSettings(transitions=STEPS))) for name in CLASSIC}
    ratios = [found["bumps"] / found["fourier"] for found in sums.values()]
    for name, found in sums.items():
        words = ", ".join(f"{network} {value:.3g}" for network, value in found.items())
        rows.append(Row(f"{name}: held-out sum over the earlier default's", ratios.pop(0), 1.02, True, words))
    ratios = [found["bumps"] / found["fourier"] for found in sums.values()]
    return [*rows, Row("… in the mean", float(np.mean(ratios)), 0.7, True)]


def _sums(target: Target) -> dict[str, float]:
    found = {name: held_out(learn(target, **how)[0], target)[0] for name, how in NETWORKS.items()}
    return found | {"bumps": held_out(learn(target)[0], target)[0]}


def _maze(size: str, key: str, steps: int, networks: dict[str, dict[str, Any]]) -> list[Row]:
    env = _env(size)
    target = open_target(env, LearnSettings(transitions=steps, observation_key=key))
    representation, seconds = learn(target)
    ours, _ = held_out(representation, target)
    others = {name: held_out(learn(target, **how)[0], target)[0] for name, how in networks.items()}
    maze = env.unwrapped.maze
    floor = np.array([[cell != 1 for cell in row] for row in maze.maze_map])
    goals, points = states(target)
    unit = maze.maze_size_scaling
    origin = np.array([-maze.x_map_center + unit / 2, maze.y_map_center - unit / 2])
    turned = np.array([1, -1])  # there y grows upwards, and rows downwards
    ways = path_lengths(floor, origin * turned, unit, goals[:, :2] * turned, points[:, :2] * turned)
    found = ranks(representation, goals, points, ways)
    best = max(found[name] for name in ("biharmonic", "commute", "hitting"))
    words = ", ".join(f"{name} {value:.3g}" for name, value in others.items())
    about = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    title = f"PointMaze_{size}, {key}, {steps:,} steps"
    return [
        Row(
            f"{title}: held-out sum over the best network's",
            ours / min(others.values()),
            1.0,
            True,
            f"{ours:.3g}; {words}; {seconds:.0f} s",
        ),
        Row("… rank of the best distance with the way", best, 0.90, note=about),
    ]


def _env(size: str) -> gymnasium.Env:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import gymnasium_robotics

        gymnasium.register_envs(gymnasium_robotics)
        return gymnasium.make(f"PointMaze_{size}-v3", continuing_task=True)
