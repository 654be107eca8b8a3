"""The literal `lap` loss against lapwing's φ behind `reach`: same random steps, same plan, same controller.

PlaneHardMaze, whose states are continuous. The φ that decides what is near is lapwing's, f/√λ; or that of the
`lap` loss as it is; or the position itself. With a plan over landmarks, and without, where φ alone must say
which way leads to the goal. Means over five seeds of data with 95 % t-intervals; "less" is paired.
"""

from typing import Any

from benchmarks.rows import Row
from lapwing.envs.plane import open_plane
from lapwing.figures.statistics import mean_interval, paired_interval
from lapwing.laplacian.lap_baseline import lap_phi
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.target import Target, open_target
from lapwing.reaching.build import build_reacher
from lapwing.reaching.worlds import PlaneWorld, roll_out
from lapwing.settings.learn import LearnSettings
from lapwing.settings.reach import ReachSettings

PLANE = "PlaneHardMaze"
SEEDS = range(5)
DIM = 20
GOALS = 50
TRANSITIONS = 100_000


def measure() -> list[Row]:
    found = {seed: _of_seed(seed) for seed in SEEDS}
    rows = []
    for how in ("plan", "no plan"):
        values = {
            name: {seed: found[seed][how, name] for seed in SEEDS} for name in ("lapwing", "lap", "euclid")
        }
        for name, by in values.items():
            rows.append(_row(f"{PLANE}, {how}: {name}", mean_interval(list(by.values()))))
        rows.append(_row(f"{PLANE}, {how}: less", paired_interval(values["lapwing"], values["lap"])))
    return rows


def _row(claim: str, interval) -> Row:
    return Row(claim, interval.mean, note=f"[{interval.low:.3f}, {interval.high:.3f}]")


def _of_seed(seed: int) -> dict[tuple[str, str], float]:
    """The share of goals reached, with and without a plan, by each φ."""
    settings = LearnSettings(dim=DIM, transitions=TRANSITIONS, seed=seed)
    target = open_target(PLANE, settings)
    phis: dict[str, Any] = {
        "lapwing": learn_target(target, settings),
        "lap": lap_phi(target, DIM, seed=seed),
        "euclid": None,
    }
    return {
        ("plan" if plan else "no plan", name): _reached(target, phi, plan, seed)
        for plan in (True, False)
        for name, phi in phis.items()
    }


def _reached(target: Target, phi: Any, plan: bool, seed: int) -> float:
    geometry = "observation" if phi is None else "phi"
    settings = ReachSettings(plan=plan, geometry=geometry, landmarks=300, steps=1_000, batch=256, seed=seed)
    assert target.experience is not None
    reacher = build_reacher(target.experience, phi, settings)
    return float(roll_out(reacher.act, PlaneWorld(open_plane(PLANE)), GOALS, seed).reached.mean())
