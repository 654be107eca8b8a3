"""Larger mazes of random walls: quality at 40 x 40 and 200 x 200, memory at 200 x 200."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.rows import Row


def random_maze(size: int, walls: float, seed: int) -> str:
    """A square maze whose inner cells are wall with probability `walls`."""
    solid = np.random.default_rng(seed).random((size, size)) < walls
    solid[[0, -1]] = solid[:, [0, -1]] = True
    return "\n".join("".join("#" if wall else "." for wall in row) for row in solid) + "\n"


def learn_in_process(maze: str, *options: str) -> tuple[dict, float, float]:
    """The result of `lapwing learn` in a process of its own, its peak memory in GiB, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "maze.txt"
        path.write_text(maze)
        command = [sys.executable, "-m", "lapwing", "learn", str(path), "--json", "--out", f"{folder}/run"]
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"lapwing learn failed on {maze[:40]!r}…")
    seconds = usage.ru_utime + usage.ru_stime
    return json.loads(output), usage.ru_maxrss / 2**20, seconds


def measure() -> list[Row]:
    rows = []
    for seed in range(3):
        result, _, seconds = learn_in_process(random_maze(40, 0.3, seed), "--dim", "11")
        states = f"{result['states']} states, seed {seed}"
        rows.append(Row("40 x 40 maze, d=11, cosine", result["cosine_mean"], 0.99, note=states))
        rows.append(Row("40 x 40 maze, seconds in all", seconds, 60, True, states))
    for length, least in ((50, 0.90), (2_000, 0.95)):
        rows += large_maze(length, least)
    return rows


def large_maze(episode_length: int, least_cosine: float) -> list[Row]:
    """29,271 states, a million steps."""
    options = ("--episode-length", str(episode_length))
    result, memory, seconds = learn_in_process(random_maze(200, 0.25, 0), *options)
    name = f"200 x 200 maze, episodes of {episode_length:,}"
    states = f"{result['states']} states, {result['settings']['estimator']}, {seconds:.0f} s in all"
    floor = f"floor of the data {result['cosine_floor']:.4f}"
    share = 1 - result["gap"] / result["gap_random"]
    return [
        Row(f"{name}, cosine", result["cosine_mean"], least_cosine, note=floor),
        Row(f"{name}, share of the random gap closed", share, 0.95, note=states),
        Row(f"{name}, peak memory, GiB", memory, 2, True, states),
    ]
