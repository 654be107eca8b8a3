"""Several processes that learn one φ: throughput, bytes, streaming; and a sweep on Ray beside a local one."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import lapwing
from benchmarks.determinism import walks
from benchmarks.rows import Row
from lapwing.laplacian.spread import bytes_a_step

DIM, HIDDEN, BATCH, PAIRS = 20, 256, 4_096, 1_024
"""A shard gives so many pairs a step."""
JOBS = {BATCH: (2, 4), 4 * BATCH: (2,)}
"""Pairs a step, and the numbers of processes beside one."""
STEPS, STOP = 2_000, 140
"""A checkpoint may follow every hundredth part of the steps; so many are made."""
WORKER = """
import json, os, pathlib, sys, time, warnings
place, number, count = map(int, sys.argv[1:4])
port, shards = sys.argv[4:6]
# As many cores as processes, for all of them: a process bound to its own has its collectives wait for its
# computing (a sum of 75,000 numbers takes 4.4 ms in place of 1). Only the thread that computes is bound: the
# kernel would wake it where a message came from, beside the other process.
cores = min(count, os.cpu_count())
os.sched_setaffinity(0, {place} if count == 1 else set(range(cores)))
def bind():
    threads = [path for path in pathlib.Path("/proc/self/task").iterdir()]
    busiest = max(threads, key=lambda path: int((path / "stat").read_text().rpartition(")")[2].split()[11]))
    os.sched_setaffinity(int(busiest.name), {place % cores})
warnings.simplefilter("ignore")
import jax
if count > 1:
    jax.distributed.initialize(f"127.0.0.1:{port}", count, number)
import lapwing
settings = json.loads(sys.argv[6])
def sent():
    lines = open("/proc/net/dev").read().splitlines()
    return int(next(line for line in lines if line.strip().startswith("lo:")).split()[9])
seen = []
def on_progress(phase, done, all_, metrics):
    if phase == "learning" and done:
        if not seen and count > 1:
            bind()
        seen.append((done, time.perf_counter(), time.process_time(), sent()))
lapwing.learn(shards, on_progress=on_progress, **settings)
first, last = seen[len(seen) // 5], seen[-1]
print("FOUND", json.dumps([end - begin for begin, end in zip(first, last)]))
if count > 1:
    jax.distributed.shutdown()
"""


def start(
    place: int, number: int, processes: int, port: int, shards: Path, batch: int = BATCH
) -> subprocess.Popen:
    """Process `number` of a job, on core `place`."""
    settings = {"dim": DIM, "estimator": "pairwise", "encoder": "mlp", "hidden": [HIDDEN, HIDDEN]}
    settings |= {"batch": batch, "lam": 0.9, "steps": STEPS, "stop": STOP}
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    words = [str(place), str(number), str(processes), str(port), str(shards), json.dumps(settings)]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"NPROC": "1", "XLA_FLAGS": flags, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


def found_by(begun: list[subprocess.Popen]) -> list[list[float]]:
    """Of each process: steps, seconds, CPU seconds and bytes over loopback, without the first steps."""
    lines = [process.communicate()[0].splitlines() for process in begun]
    return [
        json.loads(next(line for line in told if line.startswith("FOUND")).removeprefix("FOUND"))
        for told in lines
    ]


def run(processes: int, shards: Path, batch: int) -> list[list[float]]:
    """One job of so many processes, with so many pairs a step in all."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return found_by([start(number, number, processes, port, shards, batch) for number in range(processes)])


def throughput() -> list[Row]:
    """Pairs a second of 1, 2 and 4 processes, and what they send; a shard has as many pairs in every job."""
    rows = [row for batch, counts in JOBS.items() for row in _jobs(batch, counts)]
    with tempfile.TemporaryDirectory() as name:
        shards = walks(Path(name)) / "walks-shards"
        alone = _rate(found_by([start(0, 0, 1, 0, shards)]))
        apart = _rate(found_by([start(place, 0, 1, 0, shards) for place in range(2)]))
    claim = "2 jobs of one process each, which share nothing: their throughput over one's alone"
    return [*rows, Row(claim, apart / alone, note="what two cores of this machine give at most")]


def _rate(found: list[list[float]]) -> float:
    """Steps a second of all jobs."""
    return sum(steps / seconds for steps, seconds, *_ in found)


def _jobs(batch: int, counts: tuple[int, ...]) -> list[Row]:
    """Several numbers of processes, with so many pairs a step in all."""
    rows, alone, busy_alone, columns = [], 0.0, 0.0, DIM + max(4, DIM // 4)
    parameters = 2 * HIDDEN + HIDDEN + HIDDEN**2 + HIDDEN + (HIDDEN + 1) * columns + 4
    with tempfile.TemporaryDirectory() as name:
        shards = walks(Path(name), batch // PAIRS) / "walks-shards"
        for processes in (1, *counts):
            found = run(processes, shards, batch)
            steps, seconds, _, sent = found[0]
            busy = max(cpu for _, _, cpu, _ in found) / steps
            rate = steps / seconds
            alone, busy_alone = alone or rate, busy_alone or busy
            job = f"{processes} process{'es' * (processes > 1)}, {batch:,} pairs a step"
            note = f"{rate * batch:,.0f} pairs/s; {1e3 * busy:.0f} ms of CPU a step, in the busiest"
            target = 1.6 if processes == 2 else None
            rows.append(Row(f"{job}: throughput over one process", rate / alone, target, note=note))
            if processes > 1:
                claim = f"{job}: CPU time of one process over that of the busiest"
                rows.append(Row(claim, busy_alone / busy))
                formula = processes * bytes_a_step(parameters, columns, batch // PAIRS, processes)
                note = f"{sent / steps:,.0f} bytes, by the formula {formula:,.0f}; loopback, with its headers"
                rows.append(Row(f"{job}: bytes a step over the formula", sent / steps / formula, note=note))
    return rows


STREAM = """
import json, os, sys, time, resource
from pathlib import Path
import numpy as np
import lapwing
from lapwing.laplacian.estimators import read_at
from lapwing.laplacian.sampling import draw_pairs
def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, began = memory(), time.process_time()
seen = lapwing.load_experience(sys.argv[1])
checked, after = time.process_time() - began, memory()
began = time.process_time()
for step in range(100):
    read_at(seen, np.stack(draw_pairs(seen, 0.9, 4096, "discard", np.random.default_rng([0, step]))))
drawn = time.process_time() - began
print(json.dumps([seen.n_transitions, checked, drawn, after - before, memory() - before]))
"""


def stream(transitions: int = 100_000_000) -> list[Row]:
    """A sparse folder of 10⁸ transitions, checked once and then drawn from."""
    length = 1_001
    episodes = transitions // (length - 1)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name) / "walks"
        lapwing.save_episodes(folder, [np.ones((length, 2), np.float32)])
        header = {"descr": "<f4", "fortran_order": False, "shape": (episodes * length, 2)}
        with (folder / "observations.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 8 * episodes * length)
        np.save(folder / "lengths.npy", np.full(episodes, length))
        manifest = json.loads((folder / "manifest.json").read_text())
        del manifest["sha256"]
        (folder / "manifest.json").write_text(json.dumps(manifest))
        done = subprocess.run(
            [sys.executable, "-c", STREAM, str(folder)], capture_output=True, check=True, text=True
        )
    count, checked, drawn, grown, grown_later = json.loads(done.stdout.splitlines()[-1])
    return [
        Row(
            "10⁸ transitions checked: million a CPU second",
            count / checked / 1e6,
            note=f"{checked:.1f} CPU s, once",
        ),
        Row("… MiB of memory for it", grown, 300, at_most=True, note="0.8 GB of observations"),
        Row("pairs drawn and read: thousand a CPU second", 100 * 4096 / drawn / 1e3, note="batches of 4,096"),
        Row("… MiB of memory for it", grown_later, 300, at_most=True),
    ]


def ray_sweep() -> list[Row]:
    """Eight jobs on two nodes of a Ray cluster, and by two local processes."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    seconds = {}
    for on in ("local", f"ray:{cluster.address}"):
        began = time.perf_counter()
        runs = lapwing.sweep(
            "FourRoom", {"seed": list(range(8)), "transitions": [100_000], "steps": [3_000]}, on=on, jobs=2
        )
        assert not any(run.error for run in runs)
        seconds[on[:3]] = time.perf_counter() - began
    cluster.shutdown()
    note = f"{seconds['ray']:.0f} s and {seconds['loc']:.0f} s"
    return [
        Row(
            "8 jobs on 2 Ray nodes: seconds over those of local processes",
            seconds["ray"] / seconds["loc"],
            1.15,
            at_most=True,
            note=note,
        )
    ]


def measure(part: str) -> list[Row]:
    return {"throughput": throughput, "stream": stream, "ray": ray_sweep}[part]()
