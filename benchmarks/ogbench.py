"""OGBench's point mazes at full size: eigenvalues against the best bound known, distances against the way."""

import dataclasses

import numpy as np

from benchmarks.geodesics import path_lengths, ranks
from benchmarks.others import geometric_mean, held_out, learn, states
from benchmarks.rows import Row
from lapwing.envs.ogbench import PointMaze
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings

BOUNDS = (
    {"bumps": (600,), "bump_width": (2.0,), "slowness": (0.0,), "cutoff": (1e-9,)},
    {"bumps": (600,), "bump_width": (3.0,), "slowness": (0.0,), "cutoff": (1e-9,)},
)
"""Larger bases, whose held-out eigenvalues are upper bounds as well; a fine lattice of cells is far above."""
FIRST = slice(1, 11)


def measure(name: str) -> list[Row]:
    return _noise() if name == "noise" else _maze(*name.split("-"))


def _maze(size: str, kind: str) -> list[Row]:
    name = f"ogbench:pointmaze-{size}-{kind}"
    target = open_target(name, LearnSettings())
    representation, seconds = learn(target)
    _, values = held_out(representation, target)
    bounds = [held_out(learn(target, **bound)[0], target)[1] for bound in BOUNDS]
    lowest = min([*bounds, values], key=lambda found: np.log(found[FIRST]).sum())
    ratio = geometric_mean(values[FIRST] / lowest[FIRST])
    found = _ranks(representation, target, size)
    best = max(found[name] for name in ("biharmonic", "commute", "hitting"))
    words = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    note = f"λ₂ = {values[1]:.6f}, {seconds:.0f} s, {representation.config['tried'][0]['what']}"
    return [
        Row(f"{size}-{kind}: held-out λ₂ … λ₁₁ over the best bound known", ratio, 1.25, True, note),
        Row("… rank of the best distance with the way", best, 0.90, note=words),
        Row("… seconds to learn, all in", seconds, 60, True),
    ]


def _ranks(representation, target, size: str) -> dict[str, float]:
    maze = PointMaze(size)
    goals, points = states(target)
    origin = maze.centres(np.array([[0, 0]]))[0]
    ways = path_lengths(maze.floor, origin, maze.unit, goals[:, :2], points[:, :2])
    return ranks(representation, goals, points, ways)


def _noise() -> list[Row]:
    """Eight dimensions of noise beside the position."""
    target = open_target("ogbench:pointmaze-medium-navigate", LearnSettings())
    seen = target.experience
    assert seen is not None
    noise = np.random.default_rng(0).normal(0, 5, (len(seen.observations), 8)).astype(np.float32)
    noisy = type(seen)(np.hstack([seen.observations, noise]), seen.lengths)
    target = dataclasses.replace(open_target(noisy, LearnSettings()), name="noise")
    representation, seconds = learn(target)
    found = _ranks(representation, target, "medium")
    words = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    best = max(found[name] for name in ("biharmonic", "commute", "hitting"))
    return [
        Row("medium-navigate with 8 noise dimensions: rank", best, 0.85, note=f"{words}; {seconds:.0f} s")
    ]
