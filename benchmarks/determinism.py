"""On which axes the same seed gives the same bits: threads, processes, instruction sets."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import lapwing
from benchmarks.rows import Row
from lapwing.data.shards import shard

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
VARIANTS = {
    "again": {},
    "two threads": {
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=true",
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
    },
    "instructions of AVX2": {
        "XLA_FLAGS": f"{ONE_THREAD['XLA_FLAGS']} --xla_cpu_max_isa=AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "instructions of SSE4.2": {
        "XLA_FLAGS": f"{ONE_THREAD['XLA_FLAGS']} --xla_cpu_max_isa=SSE4_2",
        "OPENBLAS_CORETYPE": "Nehalem",
    },
}
SCRIPT = """
import json, os, sys, warnings
os.sched_setaffinity(0, range(os.cpu_count()))
warnings.simplefilter("ignore")
import lapwing
target, settings = sys.argv[1], json.loads(sys.argv[2])
rep = lapwing.learn(target, **settings)
print(json.dumps([rep.sha256(), rep.eigenvalues.tolist()]))
"""
KINDS = {
    "exact": ("FourRoom", {"transitions": 50_000, "dim": 10, "steps": 200}),
    "closed form": ("walks", {"dim": 8, "trials": 2}),
    "pairwise": (
        "walks-shards",
        {"dim": 8, "estimator": "pairwise", "encoder": "mlp", "lam": 0.9, "steps": 200},
    ),
}


def learned(target: str, settings: dict, changed: dict[str, str]) -> tuple[str, np.ndarray]:
    """The digest and the eigenvalues that a process of its own finds."""
    environment = os.environ | ONE_THREAD | changed | {"LAPWING_COMPILATION_CACHE": "off"}
    words = [sys.executable, "-c", SCRIPT, target, json.dumps(settings)]
    done = subprocess.run(words, env=environment, capture_output=True, check=True, text=True)
    digest, eigenvalues = json.loads(done.stdout)
    return digest, np.array(eigenvalues)


def walks(folder: Path, shards: int = 4) -> Path:
    """Positions in a square, and their shards."""
    rng = np.random.default_rng(0)
    steps = rng.normal(0, 0.05, (200, 201, 2)).cumsum(axis=1) + rng.uniform(0, 1, (200, 1, 2))
    lapwing.save_episodes(folder / "walks", (1 - np.abs(1 - steps % 2)).astype(np.float32))
    shard(folder / "walks", shards)
    return folder


def measure() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = walks(Path(name))
        for kind, (target, settings) in KINDS.items():
            path = str(folder / target) if target.startswith("walks") else target
            digest, eigenvalues = learned(path, settings, {})
            for variant, changed in VARIANTS.items():
                other, found = learned(path, settings, changed)
                same = "the same bits" if other == digest else "other bits"
                apart = float(np.max(np.abs(found - eigenvalues)))
                target_ = 0.0 if variant == "again" else None
                claim = f"{kind}, {variant}: largest difference of an eigenvalue"
                rows.append(Row(claim, apart, target_, at_most=True, note=same))
    return rows
