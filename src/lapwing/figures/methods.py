"""The methods that figures 3, 6 and 7 compare: graph drawing, lapwing's default, and earlier methods."""

from pathlib import Path
from typing import Any

from lapwing.figures.grid import Measure, Measured, Preset, Run, recipe
from lapwing.laplacian import baselines
from lapwing.laplacian.target import open_target
from lapwing.mazes import read_maze
from lapwing.progress import OnProgress
from lapwing.runs.learn import run as learn_into
from lapwing.settings.learn import LearnSettings
from lapwing.timing import stopwatch

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
RECIPES: dict[Preset, dict[str, dict[str, Any]]] = {
    "quick": QUICK_RECIPES,
    "paper": {"image": {"image_scale": 1.0}},
}
"""What each preset sets on top of the paper's recipe. The paper does not say how pixels are scaled."""


def method_run(
    figure: str, preset: Preset, method: str, observation: str, n: int, d: int, seed: int, **more: Any
) -> Run:
    """A run of a method on n transitions; `more` are settings on top of its recipe."""
    settings: dict[str, Any] = {"observation": observation, "transitions": n, "dim": d, "seed": seed}
    beta, lam = None, None
    if method == "graph-drawing":
        settings |= {"preset": "paper"} | RECIPES[preset].get(observation, {}) | more
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
    result = learn_into(
        read_maze(ENVIRONMENT), settings, folder, resume=begun, on_progress=on_progress
    ).result
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
