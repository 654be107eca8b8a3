"""Data in: collection against `env.step` alone, loading, and learning from more than is held in memory."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gymnasium
import numpy as np

from benchmarks.rows import Row
from lapwing.data.action_spaces import random_actions
from lapwing.data.collect import collect
from lapwing.data.experience import Experience
from lapwing.data.files import load_experience

STEPS = 50_000
REPEATS = 15
GIBIBYTES = 4
LIMIT = 1.5
"""GiB above what importing takes."""


def measure() -> list[Row]:
    return [*collecting(), *loading(), on_disk()]


def collecting() -> list[Row]:
    rows = []
    for env_id in ("CartPole-v1", "lapwing/TwoRoom-v0"):
        env = gymnasium.make(env_id)
        alone, whole = [], []
        for _ in range(REPEATS):  # interleaved, so that a busy moment hits both
            alone.append(_stepping(env))
            began = time.process_time()
            collect(env, STEPS)
            whole.append(time.process_time() - began)
        note = f"{STEPS / min(whole):,.0f} steps/s; the median of {REPEATS} pairs"
        ratio = float(np.median(np.array(alone) / np.array(whole)))
        rows.append(Row(f"{env_id}: collection over env.step alone", ratio, 0.8, note=note))
    return rows


def _stepping(env: gymnasium.Env) -> float:
    """Seconds of nothing but steps, and resets where episodes end."""
    drawn = random_actions(env.action_space, 0)
    actions = [next(drawn) for _ in range(STEPS)]
    env.reset(seed=0)
    began = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.process_time() - began


def loading() -> list[Row]:
    rng = np.random.default_rng(0)
    experience = Experience(rng.normal(size=(1_010_000, 8)).astype(np.float32), np.full(10_000, 101))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        experience.save(path)
        seconds = min(_timed(lambda: load_experience(path)) for _ in range(REPEATS))
    return [Row("10⁶ transitions of 8 floats: loading and checking, s", seconds, 2.0, at_most=True)]


def _timed(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


_LEARN = """
import json, resource, sys, time
import jax, numpy, lapwing
from lapwing.laplacian.target import open_target
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
jax.numpy.ones(3).sum().block_until_ready()
before, began = used(), time.perf_counter()
lapwing.learn(sys.argv[1], dim=5, steps=500, hidden=(64, 64))
print(json.dumps([used() - before, time.perf_counter() - began]))
"""
_WRITE = """
import sys
import numpy as np, lapwing
rng = np.random.default_rng(0)
wanted, rows = int(sys.argv[2]), 10_000
walk = lambda: np.clip(np.cumsum(rng.normal(0, 0.1, (rows, 8)), axis=0), -3, 3).astype(np.float32)
lapwing.save_episodes(sys.argv[1], (walk() for _ in range(wanted // (rows * 32))))
"""


def on_disk() -> Row:
    """The peak of memory while learning from a folder that is larger than it."""
    with tempfile.TemporaryDirectory() as folder:
        size = str(GIBIBYTES << 30)
        subprocess.run([sys.executable, "-c", _WRITE, folder, size], check=True, env=os.environ)
        printed = subprocess.run(
            [sys.executable, "-c", _LEARN, folder], check=True, capture_output=True, text=True, env=os.environ
        ).stdout
    used, seconds = json.loads(printed.splitlines()[-1])
    note = f"500 steps, {seconds:.0f} s with reading and checking it"
    return Row(f"{GIBIBYTES} GiB on disk: memory above import, GiB", used, LIMIT, at_most=True, note=note)
