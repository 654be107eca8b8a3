"""Figure 7: the effect of the penalty weight β, n = 2,000, position, d = 20, 50 and 100."""

from matplotlib.figure import Figure

from lapwing.figures.fig3 import GAP, LEAST_GAP, NOTE
from lapwing.figures.grid import Preset, Row, Run, Study
from lapwing.figures.methods import about_recipe, execute, labels, method_run
from lapwing.figures.statistics import Interval, paired_interval
from lapwing.figures.tables import by_seed, interval, markdown_table
from lapwing.plots import Curve, draw_panels

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
    """The gap over β, one panel for each dimension."""
    panels = {f"d = {d}": _curves(rows, preset, d) for d in DIMS}
    return draw_panels(panels, columns=len(DIMS), x="β", y=GAP, least=LEAST_GAP)


def _curves(rows: list[Row], preset: Preset, d: int) -> dict[str, Curve]:
    curves = {}
    for method in METHODS:
        if found := {beta: one for beta in BETAS if (one := _gap(rows, method, d, beta))}:
            curves[labels(preset)[method]] = Curve.of(found)
    return curves


def _gap(rows: list[Row], method: str, d: int, beta: float) -> Interval | None:
    return interval(rows, metric="gap", method=method, d=d, beta=beta)


def best_beta(rows: list[Row], method: str, d: int) -> float | None:
    """The β with the lowest mean gap."""
    means = {beta: found.mean for beta in BETAS if (found := _gap(rows, method, d, beta))}
    return min(means, key=lambda beta: means[beta]) if means else None


def as_good(rows: list[Row], method: str, d: int) -> str | None:
    """The best β, and all that the seeds do not show to be worse."""
    best = best_beta(rows, method, d)
    if best is None:
        return None
    gaps = {beta: by_seed(rows, metric="gap", method=method, d=d, beta=beta) for beta in BETAS}
    worse = {beta for beta in BETAS if (found := paired_interval(gaps[beta], gaps[best])) and found.low > 0}
    others = [f"{beta:g}" for beta in BETAS if gaps[beta] and beta != best and beta not in worse]
    return f"{best:g}" + (f" (or {', '.join(others)})" if others else "")


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """The gap for each β, and the best β for each d."""
    names = labels(preset)
    lines = [*about_recipe(preset), "## The best β", ""]
    lines += [
        "The lowest mean. In brackets those whose paired difference from it has 0 in its 95 % t-interval.",
        "",
    ]
    best = [[names[method], *(as_good(rows, method, d) for d in DIMS)] for method in METHODS]
    lines += markdown_table(["method", *(f"d = {d}" for d in DIMS)], best)
    for method in METHODS:
        lines += ["", f"## {names[method]}: gap", ""]
        cells = [[f"{beta:g}", *(_gap(rows, method, d, beta) for d in DIMS)] for beta in BETAS]
        lines += markdown_table(["β", *(f"d = {d}" for d in DIMS)], cells)
    return lines


FIG7 = Study("fig7", "What the weight β of the penalty does", runs, execute, draw, describe, NOTE)
