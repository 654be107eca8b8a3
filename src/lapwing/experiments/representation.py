"""How well each method finds the exact subspace from n transitions: what figures 3, 6 and 7 share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lapwing import baselines
from lapwing.experiments.grid import Measure, Measured, Row, Run, recipe
from lapwing.experiments.study import Preset
from lapwing.experiments.tables import interval, markdown_table
from lapwing.settings import LearnSettings
from lapwing.targets import open_target
from lapwing.timing import stopwatch
from lapwing.workflow import OnProgress
from lapwing.workflow import run as learn_into

ENVIRONMENT = "FourRoom"
INPUTS = ("index", "position", "image")
_LABELS = {
    "graph-drawing": "graph drawing",
    "default": "lapwing's default",
    "transitions-2017": "stacked transitions (2017)",
    "successor-2018": "successor features (2018)",
    "transitions-2017-distinct": "stacked transitions, each once",
    "transitions-2017-literal": "stacked transitions, literally",
}
METHODS = tuple(_LABELS)
_RECIPES = {"paper": "graph drawing (the paper's recipe)", "quick": "graph drawing (exact expectation)"}
_READINGS: dict[str, baselines.Reading] = {
    "transitions-2017": "sampled",
    "transitions-2017-distinct": "distinct",
    "transitions-2017-literal": "literal",
}
QUICK_RECIPES: dict[str, dict[str, Any]] = {
    "index": {"estimator": "exact", "steps": 10_000},
    "position": {"estimator": "exact", "steps": 2_000},
    "image": {"estimator": "exact", "steps": 1_500},
}
"""How the preset quick shortens the paper's recipe: the same loss, networks and step size, but the loss in
exact expectation over the data. One such step costs little more than a batch (on images less), and needs no
averaging: far fewer are enough."""


def method_run(
    figure: str, preset: Preset, method: str, observation: str, n: int, d: int, seed: int, **more: Any
) -> Run:
    """A run of a method on n transitions; `more` are settings on top of its recipe."""
    settings: dict[str, Any] = {"observation": observation, "transitions": n, "dim": d, "seed": seed}
    beta, lam = None, None
    if method == "graph-drawing":
        settings |= {"preset": "paper"} | (QUICK_RECIPES[observation] if preset == "quick" else {}) | more
        beta, lam = settings.get("beta", d / 20), 0.0
    elif method == "default":
        settings |= more
        beta = settings.get("beta", 1.0)
    return Run(figure, ENVIRONMENT, method, observation, n, d, beta, lam, seed, preset, recipe(**settings))


def labels(preset: Preset) -> dict[str, str]:
    """What the methods are called in tables and legends."""
    return _LABELS | {"graph-drawing": _RECIPES[preset]}


def about_recipe(preset: Preset) -> list[str]:
    """What the preset makes of the paper's recipe, in words."""
    if preset == "paper":
        return ["Graph drawing is the paper's recipe: batches of 32, 100,000 steps.", ""]
    steps = ", ".join(f"{recipe['steps']:,} steps on {name}" for name, recipe in QUICK_RECIPES.items())
    return [
        "Graph drawing has the paper's loss, networks, β, λ and step size, but the loss is taken in exact "
        f"expectation over the data, not in batches of 32: {steps}. "
        "The recipe to the letter is the preset paper.",
        "",
    ]


def execute(run: Run, folder: Path, on_progress: OnProgress) -> Measured:
    """Learn or solve, then measure against the true chain."""
    settings = LearnSettings.from_keywords(run.settings)
    if run.method in ("graph-drawing", "default"):
        return _learned(settings, folder, on_progress)
    return _solved(run, settings)


def _learned(settings: LearnSettings, folder: Path, on_progress: OnProgress) -> Measured:
    begun = (folder / "config.json").is_file()
    result = learn_into(ENVIRONMENT, settings, folder, resume=begun, on_progress=on_progress).result
    names = ("gap", "rank", "gap_floor", "steps", "compile_seconds")
    measures = [Measure(name, float(result[name])) for name in names]
    return Measured(measures, result["prepare_seconds"] + result["learn_seconds"])


def _solved(run: Run, settings: LearnSettings) -> Measured:
    """A baseline; what it takes is seconds, so an interrupted one starts again."""
    target = open_target(ENVIRONMENT, settings)
    with stopwatch() as watch:
        if run.method == "successor-2018":
            embedding = baselines.successor_features(target, run.d, seed=run.seed)
        else:
            embedding = baselines.stacked_transitions(target, run.d, _READINGS[run.method])
    measures = [
        Measure(name, float(value)) for name, value in baselines.measure(embedding, target, run.d).items()
    ]
    return Measured([*measures, Measure("compile_seconds", watch.compiling)], watch.working)


def gap_tables(rows: list[Row], preset: Preset, d: int, sizes: Sequence[int]) -> list[str]:
    """For each input the gap of every method over n, then what the methods took."""
    lines: list[str] = []
    for observation in INPUTS:
        lines += ["", f"### {observation}, d = {d}: gap", ""]
        cells = [[f"{n:,}", *(_gap(rows, method, observation, n, d) for method in METHODS)] for n in sizes]
        lines += markdown_table(["n", *labels(preset).values()], cells)
        lines += ["", f"### {observation}, d = {d}: seconds", ""]
        cells = [
            [f"{n:,}", *(_seconds(rows, method, observation, n, d) for method in METHODS)] for n in sizes
        ]
        lines += markdown_table(["n", *labels(preset).values()], cells)
    return lines


def comparison(rows: list[Row], d: int, sizes: Sequence[int]) -> list[str]:
    """In each cell: are ours below both baselines, and how does the default stand to graph drawing?"""
    header = ["input", "n", "graph drawing below both baselines", "default below both baselines"]
    header += ["default / graph drawing: gap", "default / graph drawing: seconds"]
    lines = []
    for observation in INPUTS:
        for n in sizes:
            ours, default, *others = (
                _mean(rows, method, observation, n, d)
                for method in ("graph-drawing", "default", "transitions-2017", "successor-2018")
            )
            times = [
                _mean(rows, method, observation, n, d, "seconds") for method in ("default", "graph-drawing")
            ]
            lines.append(
                [
                    observation,
                    f"{n:,}",
                    _below(ours, others),
                    _below(default, others),
                    _ratio(default, ours),
                    _ratio(*times),
                ]
            )
    return markdown_table(header, lines)


def _gap(rows: list[Row], method: str, observation: str, n: int, d: int) -> str | None:
    found = interval(rows, metric="gap", method=method, input=observation, n=n, d=d)
    if found is None:
        return None
    rank = interval(rows, metric="rank", method=method, input=observation, n=n, d=d)
    assert rank is not None
    return f"{found}" + (f" (rank {rank.mean:.0f})" if rank.mean < d - 0.5 else "")


def _seconds(rows: list[Row], method: str, observation: str, n: int, d: int) -> str | None:
    found = _mean(rows, method, observation, n, d, "seconds")
    return None if found is None else f"{found:.2f}" if found < 10 else f"{found:.0f}"


def _mean(
    rows: list[Row], method: str, observation: str, n: int, d: int, column: str = "value"
) -> float | None:
    found = interval(rows, column, metric="gap", method=method, input=observation, n=n, d=d)
    return None if found is None else found.mean


def _below(value: float | None, others: Sequence[float | None]) -> str | None:
    if value is None or any(other is None for other in others):
        return None
    return "yes" if all(value < other for other in others if other is not None) else "**no**"


def _ratio(first: float | None, second: float | None) -> str | None:
    return None if first is None or not second else f"{first / second:.3g}"


def data_floor(rows: list[Row], observation: str, n: int, d: int) -> float | None:
    """The gap of the exact eigenvectors of the data itself, in the mean."""
    found = interval(rows, metric="gap_floor", method="default", input=observation, n=n, d=d)
    return None if found is None else found.mean
