"""20,000 frames of environments that others made: CPU seconds, memory, and how good φ is."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.rooms import states_and_flow
from benchmarks.rows import Row
from lapwing.data.files import load_experience
from lapwing.laplacian.chain import empirical_chain, true_chain
from lapwing.laplacian.evaluate import FIRST_EIGENFUNCTIONS, cosine_similarities, exact_spectrum
from lapwing.laplacian.representation import load_representation

ROOMS = "gym:benchmarks/rooms.py:SeenFromAbove"
TARGETS = {"Freeway": "gym:ALE/Freeway-v5", "Pong": "gym:ALE/Pong-v5", "MiniGrid FourRooms": ROOMS}
TRANSITIONS, DIM = 20_000, 20
MOST_SECONDS, MOST_GIB = 180.0, 2.0


def measure() -> list[Row]:
    """`lapwing learn` of each, as a process of its own, from collecting to the pictures."""
    return [row for name, target in TARGETS.items() for row in _of(name, target)]


def _of(name: str, target: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        result, seconds, gib = _learned(target, out)
        rows = [
            Row(f"{name}: CPU seconds, from collecting to drawing", seconds, MOST_SECONDS, True),
            Row(f"{name}: peak memory, GiB", gib, MOST_GIB, True),
        ]
        if result["held_out"]:
            found = result["held_out"]
            words = f"reference {found['objective_reference']:.3g}, {len(found['trusted'])} trusted"
            return [*rows, Row(f"{name}: held-out sum of {DIM} eigenvalues", found["objective"], note=words)]
        own = Row(f"{name}: cosine with the data's own", result["cosine_mean"], 0.95)
        return [*rows, own, *_truly(name, out)]


def _learned(target: str, out: Path) -> tuple[dict, float, float]:
    """The measures, CPU seconds and GiB of a run."""
    command = [sys.executable, "-m", "lapwing", "learn", target, "--transitions", str(TRANSITIONS), "--json"]
    command += ["--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"lapwing learn failed on {target}")
    return json.loads(output), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def _truly(name: str, out: Path) -> list[Row]:
    """The cosine with the eigenfunctions of the true chain, beside what the counts themselves give."""
    images, transition, visits = states_and_flow()
    spectrum = exact_spectrum(true_chain(transition, rho=visits), DIM)
    phi = load_representation(out / "representation.safetensors").eigenfunctions(images).astype(np.float64)
    experience = load_experience(out / "experience.npz")
    assert experience.table is not None
    numbers = {state.tobytes(): number for number, state in enumerate(experience.table)}
    _, counted = empirical_chain(experience).eigenpairs(DIM)
    known = np.array([numbers.get(image.tobytes(), -1) for image in images])
    floor = np.where(known[:, None] >= 0, counted[known], counted.mean(axis=0))
    cosines = (cosine_similarities(spectrum, functions) for functions in (phi, floor))
    ours, most = (float(found[:FIRST_EIGENFUNCTIONS].mean()) for found in cosines)
    words = f"{ours:.3f} of {most:.3f}"
    return [Row(f"{name}: cosine with the true chain's, over the floor", ours / most, 0.95, note=words)]
