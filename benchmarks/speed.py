"""Steps a second of the paper's recipe, against bare matrix products and a plain PyTorch loop."""

import time
from itertools import pairwise

import jax
import numpy as np

from benchmarks.rows import Row
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.target import Target, open_target
from lapwing.laplacian.train import train
from lapwing.settings.learn import LearnSettings

SIZES = (2, 200, 200, 20)
STEPS = 10_000
REPEATS = 3


def measure() -> list[Row]:
    settings = LearnSettings.from_keywords({"preset": "paper", "steps": STEPS})
    target = open_target("FourRoom", settings)
    best = {"lapwing": 0.0, "products": 0.0, "torch": 0.0}
    for _ in range(REPEATS):  # interleaved, so that a busy moment hits all alike
        best["lapwing"] = max(best["lapwing"], STEPS / train(target, resolve(settings, target)).learn_seconds)
        best["products"] = max(best["products"], bare_products(rows=128))
        best["torch"] = max(best["torch"], torch_loop(target))
    rows = [
        Row("sampled, paper's settings, steps/s", best["lapwing"], 1_500),
        Row(
            "… over bare matrix products of the same sizes",
            best["lapwing"] / best["products"],
            0.5,
            note=f"{best['products']:,.0f} a second",
        ),
    ]
    if best["torch"]:
        ratio = best["lapwing"] / best["torch"]
        rows.append(Row("… over a plain PyTorch loop", ratio, 3, note=f"{best['torch']:,.0f} steps/s"))
    return rows


def bare_products(rows: int) -> float:
    """A second's worth of the products of one step: forward, and twice as many backward."""
    key = jax.random.key(0)
    weights = [jax.random.normal(key, (m, n)) / m for m, n in pairwise(SIZES)]

    def step(_, values):
        for weight in weights:
            values = values @ weight
        for weight in reversed(weights):
            before = values @ weight.T
            gradient = before.T @ values
            values = before + gradient.sum() * 1e-9
        return values

    @jax.jit
    def run(values):
        return jax.lax.fori_loop(0, STEPS, step, values)

    values = jax.random.normal(key, (rows, SIZES[0]))
    jax.block_until_ready(run(values))
    began = time.perf_counter()
    jax.block_until_ready(run(values))
    return STEPS / (time.perf_counter() - began)


def torch_loop(target: Target, steps: int = 1_500) -> float:
    """The same mathematics as an eager PyTorch training loop; 0 where PyTorch is not installed."""
    try:
        import torch
    except ImportError:
        return 0.0
    torch.set_num_threads(1)
    assert target.experience is not None
    ids = torch.as_tensor(np.asarray(target.experience.observations))
    table = torch.as_tensor(target.states)
    starts = torch.as_tensor(np.flatnonzero(target.experience.horizons > 0))
    layers: list[torch.nn.Module] = []
    for m, n in pairwise(SIZES):
        layers += [torch.nn.Linear(m, n), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers[:-1])
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    began = time.perf_counter()
    for step in range(steps + 100):
        if step == 100:
            began = time.perf_counter()
        at = starts[torch.randint(len(starts), (32,))]
        places = torch.cat([at, at + 1, torch.randint(len(ids), (64,))])
        u, v, first, second = network(table[ids[places]]).split(32)
        drawing = 0.5 * ((u - v) ** 2).sum(1).mean()
        inner = (first * second).sum(1)
        norms = (first**2).sum(1) + (second**2).sum(1)
        loss = drawing + (inner**2 - norms).mean() + SIZES[-1]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return steps / (time.perf_counter() - began)
