"""Is the Laplacian baseline of zero-shot RL weak because of the idea, or because of its loss?

φ by the literal `lap` loss beside φ as lapwing learns it, from the same steps, five seeds of them, with a
table for an encoder, so that nothing but the loss differs. Beside both the exact eigenfunctions. Means with
95 % t-intervals over the seeds; "less" is the paired difference lapwing - lap.
"""

import numpy as np

from benchmarks.linear import best_value
from benchmarks.rewards import random_rewards, share
from benchmarks.rows import Row
from lapwing.figures.statistics import mean_interval, paired_interval
from lapwing.laplacian.lap_baseline import lap_features
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.target import Target, open_target
from lapwing.runs.solve import target_steps
from lapwing.settings.learn import LearnSettings
from lapwing.solving.model import fit_model

SEEDS = range(5)
DIM = 20
MAZES = ("FourRoom", "HardMaze", "GridRoom-16")
REWARDS = 12
NOISE = 0.5
"""φ is disturbed by so much of the median distance of a step, as a standard deviation of its length."""


def measure() -> list[Row]:
    return [row for maze in MAZES for row in _rows(maze)]


def _rows(maze: str) -> list[Row]:
    found = {name: {seed: {} for seed in SEEDS} for name in ("lapwing", "lap")}
    exact = {}
    for seed in SEEDS:
        settings = LearnSettings(dim=DIM, observation="index", transitions=200_000, seed=seed)
        target = open_target(maze, settings)
        learned = learn_target(target, settings).eigenfunctions(target.states)[:, 1:]
        found["lapwing"][seed] = _measures(target, learned)
        found["lap"][seed] = _measures(target, lap_features(target, DIM, learning_rate=0.01, seed=seed))
        exact = exact or _measures(target, target.truth().eigenpairs(DIM)[1][:, 1:])
    rows = []
    for what, best in exact.items():
        values = {name: {seed: one[what] for seed, one in by.items()} for name, by in found.items()}
        for name, by in values.items():
            rows.append(_row(f"{maze}, {what}: {name}", mean_interval(list(by.values())), best))
        rows.append(_row(f"{maze}, {what}: less", paired_interval(values["lapwing"], values["lap"]), None))
    return rows


def _row(claim: str, interval, exact: float | None) -> Row:
    note = f"[{interval.low:.3f}, {interval.high:.3f}]"
    return Row(claim, interval.mean, note=note if exact is None else f"{note}; exact {exact:.3f}")


def _measures(target: Target, phi: np.ndarray) -> dict[str, float]:
    """How much of the exact span φ has, what the best value in its span returns, and what `solve` does."""
    world, functions = target.world, np.column_stack([np.ones(len(phi)), phi])
    drawn = random_rewards(world, REWARDS, seed=1)
    held = [best_value(world, functions, rewards) for rewards in drawn]
    return {
        "exact span": _span(target, functions),
        "value in the span": _mean(world, held, drawn),
        "solve": _mean(world, _solved(target, phi, drawn, 0.0), drawn),
        "solve, φ disturbed": _mean(world, _solved(target, phi, drawn, NOISE), drawn),
    }


def _mean(world, policies, drawn) -> float:
    return float(np.mean([share(world, *one)[0] for one in zip(policies, drawn, strict=True)]))


def _span(target: Target, functions: np.ndarray) -> float:
    """The mean squared cosine of the exact eigenfunctions with the span of φ."""
    chain = target.truth()
    root = np.sqrt(chain.rho)[:, None]
    basis = np.linalg.qr(root * functions)[0]
    return float(np.mean(np.sum((basis.T @ (root * chain.eigenpairs(DIM)[1])) ** 2, axis=0)))


def _solved(target: Target, phi: np.ndarray, drawn: np.ndarray, noise: float) -> list[np.ndarray]:
    """The moves of each reward's policy, which sees φ with normal noise."""
    moves = target.world.next_state
    step = np.median(np.linalg.norm(phi[moves] - phi[:, None], axis=2)[moves != np.arange(len(phi))[:, None]])
    scale = noise * step / np.sqrt(phi.shape[1])
    seen = phi + scale * np.random.default_rng(0).normal(size=phi.shape)
    model = fit_model(lambda states: phi[states], target_steps(target))
    nearest = model.tree.query(seen)[1]
    return [model.solve(rewards).q_table.argmax(axis=1)[nearest] for rewards in drawn]
