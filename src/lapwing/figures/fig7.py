"""Figure 7: what the weight β of the penalty does, n = 2,000, position, d = 20, 50 and 100."""

from matplotlib.figure import Figure

from lapwing.figures.gaps import NOTE, beta_panels
from lapwing.figures.grid import Row, Run
from lapwing.figures.methods import about_recipe, execute, labels, method_run
from lapwing.figures.study import Preset, Study
from lapwing.figures.tables import difference, interval, markdown_table

DIMS = (20, 50, 100)
SIZE = 2_000
BETAS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)
METHODS = ("graph-drawing", "default")


def runs(preset: Preset, seeds: int) -> list[Run]:
    """The paper's recipe and the default with every β; seed by seed."""
    return [
        method_run("fig7", preset, method, "position", SIZE, d, seed, beta=beta)
        for seed in range(seeds)
        for d in DIMS
        for beta in BETAS
        for method in METHODS
    ]


def draw(rows: list[Row], preset: Preset) -> Figure:
    """One panel for each dimension."""
    return beta_panels(rows, preset, METHODS, DIMS, BETAS)


def best_beta(rows: list[Row], method: str, d: int) -> float | None:
    """The β with the lowest mean gap."""
    means = {
        beta: found.mean
        for beta in BETAS
        if (found := interval(rows, metric="gap", method=method, d=d, beta=beta))
    }
    return min(means, key=lambda beta: means[beta]) if means else None


def as_good(rows: list[Row], method: str, d: int) -> str | None:
    """The best β, and all that five seeds cannot tell from it."""
    best = best_beta(rows, method, d)
    if best is None:
        return None
    cell = {"metric": "gap", "method": method, "d": d}
    apart = {beta: difference(rows, cell | {"beta": beta}, cell | {"beta": best}) for beta in BETAS}
    others = [f"{beta:g}" for beta, found in apart.items() if beta != best and found and found.low <= 0]
    return f"{best:g}" + (f" (or {', '.join(others)})" if others else "")


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """The gap for each β, and the best β for each d."""
    names = labels(preset)
    lines = [*about_recipe(preset), "## The best β", ""]
    lines += ["In brackets those whose difference to it, seed by seed, has 0 in its 95 % interval.", ""]
    best = [[names[method], *(as_good(rows, method, d) for d in DIMS)] for method in METHODS]
    lines += markdown_table(["method", *(f"d = {d}" for d in DIMS)], best)
    for method in METHODS:
        lines += ["", f"## {names[method]}: gap", ""]
        cells = [
            [f"{beta:g}", *(interval(rows, metric="gap", method=method, d=d, beta=beta) for d in DIMS)]
            for beta in BETAS
        ]
        lines += markdown_table(["β", *(f"d = {d}" for d in DIMS)], cells)
    return lines


STUDY = Study("fig7", "What the weight β of the penalty does", runs, execute, draw, describe, NOTE)
