"""ALLO's benchmark: every objective in its twelve mazes, compared with the published numbers."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lapwing.figures.grid import Measure, Measured, Preset, Row, Run, Study, recipe
from lapwing.figures.tables import interval, markdown_table, mean
from lapwing.laplacian.evaluate import cosine_similarities, exact_spectrum, single_cosines
from lapwing.mazes import BENCHMARK, read_maze
from lapwing.plots import draw_shortfalls
from lapwing.progress import OnProgress
from lapwing.runs.learn import Outcome
from lapwing.runs.learn import run as learn_into
from lapwing.settings.learn import OBJECTIVES, LearnSettings

STEPS, CHAIN = 1_000_000, 0
"""Random steps in the data; 0 stands for the true chain."""
MOST_DIMENSIONS, LARGE = 50, 60
"""d = 50 is asked of mazes with more than so many states."""
METHODS = ("default", *OBJECTIVES)
LABELS = {"default": "lapwing's default"}
AUTHORS = {
    "estimator": "sampled",
    "encoder": "mlp",
    "hidden": (256, 256, 256),
    "batch": 1_024,
    "steps": 200_000,
    "learning_rate": 1e-3,
    "schedule": "constant",
    "lam": 0.9,
    "oversample": 0,
    "rotate": False,
}
"""The settings of ALLO's authors, with the steps of their job scripts (their configuration file has a tenth,
too few for the duals of small mazes); of images the network is lapwing's."""
LONGER = {"GridMaze-26": 400_000, "GridMaze-32": 400_000}
"""The steps of their sweep over barriers, in the two mazes where functions of neighbouring eigenvalues are
not resolved after 200,000."""
QUICK = {
    "estimator": "pairwise",
    "batch": 1_024,
    "steps": 2_000,
    "lam": 0.9,
    "oversample": 0,
    "rotate": False,
}
"""A hundredth of the steps, with lapwing's network, step size and pairwise estimate, which need fewer."""
PUBLISHED = {
    "GridMaze-7": (0.9996, 0.2959),
    "GridMaze-9": (0.9989, 0.3755),
    "GridMaze-17": (0.9994, 0.9993),
    "GridMaze-19": (0.9989, 0.9936),
    "GridMaze-26": (0.9984, 0.9331),
    "GridMaze-32": (0.9908, 0.8014),
    "GridRoom-1": (0.9912, 0.9906),
    "GridRoom-4": (0.9965, 0.9073),
    "GridRoom-16": (0.9990, 0.9980),
    "GridRoom-32": (0.9982, 0.9857),
    "GridRoom-64": (0.9917, 0.7617),
    "GridRoomSym-4": (0.8411, 0.8326),
}
"""ALLO and GGDO, mean cosine of 60 seeds, d = 11, (x, y), 10⁶ samples (Gomez et al., 2024)."""
_ABOUT: dict[Preset, str] = {
    "paper": "The objectives have the settings of ALLO's authors: `sampled`, 200,000 steps (400,000 in "
    "GridMaze-26 and -32), three layers of 256 (of images lapwing's convolutions), Adam 0.001;",
    "quick": "The objectives have lapwing's network and step size, `pairwise`, 2,000 steps (ALLO's authors "
    "take 200,000; the preset paper has their settings);",
}
METRICS = ("cosine", "single", "floor", "single_floor")


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Seed by seed, and within a seed what is quick first."""
    large = {maze for maze in BENCHMARK if read_maze(maze).floor.sum() > LARGE}
    return [
        _run(preset, maze, method, observation, n, d, seed)
        for seed in range(seeds)
        for method in METHODS
        for observation in ("position", "image")
        for d in (11, MOST_DIMENSIONS)
        for n in (CHAIN, STEPS)
        for maze in BENCHMARK
        if d < MOST_DIMENSIONS or maze in large
    ]


def _run(preset: Preset, maze: str, method: str, observation: str, n: int, d: int, seed: int) -> Run:
    settings: dict[str, Any] = {"observation": observation, "dim": d, "seed": seed}
    settings |= {"true_chain": True} if n == CHAIN else {"transitions": n}
    if method != "default":
        settings |= (AUTHORS if preset == "paper" else QUICK) | {"objective": method}
        if preset == "paper":
            settings["steps"] = LONGER.get(maze, AUTHORS["steps"])
        if n == CHAIN:
            settings |= {"estimator": "exact"}
        if observation == "image":
            settings = {name: value for name, value in settings.items() if name not in ("encoder", "hidden")}
    lam = settings.get("lam")
    return Run("mazes12", maze, method, observation, n, d, None, lam, seed, preset, recipe(**settings))


def settings_of(run: Run) -> LearnSettings:
    """The recipe as settings; JSON has lists for tuples."""
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in run.settings.items()
    }
    return LearnSettings.from_keywords(values)


def execute(run: Run, folder: Path, on_progress: OnProgress) -> Measured:
    """Learn, then measure against the true chain."""
    settings = settings_of(run)
    begun = (folder / "config.json").is_file()
    outcome = learn_into(read_maze(run.environment), settings, folder, resume=begun, on_progress=on_progress)
    seconds = outcome.result["prepare_seconds"] + outcome.result["learn_seconds"]
    measures = [Measure(name, value) for name, value in zip(METRICS, _cosines(outcome, run.d), strict=True)]
    measures.append(Measure("steps", float(outcome.result["steps"])))
    return Measured(measures, seconds)


def _cosines(outcome: Outcome, d: int) -> tuple[float, ...]:
    """With repeated eigenvalues as one space, then one by one; of φ, then of the data's own eigenvectors."""
    target = outcome.target
    chain = target.truth()
    assert chain is not None
    spectrum = exact_spectrum(chain, d)
    learned = outcome.representation.eigenfunctions(target.states).astype(np.float64)
    learned = np.pad(learned, ((0, 0), (0, d - learned.shape[1])))
    visited = int(np.sum(target.one_step.rho > 0))
    _, floor = target.one_step.eigenpairs(min(d, visited))
    return tuple(
        float(np.mean(measure(spectrum, functions)))
        for functions in (learned, floor)
        for measure in (cosine_similarities, single_cosines)
    )


def _value(rows: list[Row], metric: str, cell: dict[str, Any]) -> str | None:
    found = mean(rows, metric=metric, **cell)
    return None if found is None else f"{found:.4f}"


def _cells(rows: list[Row]) -> list[tuple[str, int, int]]:
    """What has been run: input, n and d, in the order of the grid."""
    order = [
        (observation, n, d) for observation in ("position", "image") for d in (11, 50) for n in (CHAIN, STEPS)
    ]
    done = {(row["input"], row["n"], row["d"]) for row in rows}
    return [cell for cell in order if cell in done]


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """For each input, d and data the cosines of every method, with the floor; then the seconds."""
    lines = [
        "Mean cosine with the exact eigenfunctions of the true chain, the constant among the d. A cell is "
        "*eigenspace / one by one*: repeated eigenvalues as one space, then each function with one "
        "eigenvector. Within a repeated eigenvalue any basis is exact, so there one by one is a matter of "
        "chance. The floor is what the data allows: its own exact eigenvectors, measured likewise.",
        "",
        f"{_ABOUT[preset]} λ = 0.9, batches of 1,024 (from the true chain `exact`), no Rayleigh-Ritz. "
        "Published: Gomez et al., *Proper Laplacian Representation "
        "Learning* (2024), (x, y), 10⁶ samples, 60 seeds. Their code takes eigenvalues as one space where "
        "they agree to many digits, so their number lies between our two where eigenvalues repeat.",
        "",
    ]
    for observation, n, d in _cells(rows):
        lines += _tables(rows, observation, n, d)
    return lines[:-1]


def _tables(rows: list[Row], observation: str, n: int, d: int) -> list[str]:
    shared = {"input": observation, "n": n, "d": d}
    cell_rows = [row for row in rows if all(row[name] == value for name, value in shared.items())]
    methods = [method for method in METHODS if any(row["method"] == method for row in cell_rows)]
    published = (observation, n, d) == ("position", STEPS, 11)
    header = ["maze", "floor", *(LABELS.get(method, method) for method in methods)]
    header += ["ALLO, published", "GGDO, published"] if published else []
    table = []
    for maze in BENCHMARK:
        cells = [{"environment": maze, "method": method} for method in methods]
        pairs = [
            _pair(_value(cell_rows, "cosine", cell), _value(cell_rows, "single", cell)) for cell in cells
        ]
        if not any(pairs):
            continue
        floors = [
            _pair(_value(cell_rows, "floor", cell), _value(cell_rows, "single_floor", cell)) for cell in cells
        ]
        beside = [f"{value:.4f}" for value in PUBLISHED[maze]] if published else []
        table.append([maze, next(filter(None, floors)), *pairs, *beside])
    data = "the true chain" if n == CHAIN else f"{n:,} steps"
    lines = [
        f"## {observation}, d = {d}, from {data}",
        "",
        *markdown_table(header, table),
        "",
        "Seconds:",
        "",
    ]
    return [
        *lines,
        *markdown_table(["maze", *header[2 : 2 + len(methods)]], _seconds(cell_rows, methods)),
        "",
    ]


def _pair(first: str | None, second: str | None) -> str | None:
    return None if first is None else f"{first} / {second}"


def _seconds(rows: list[Row], methods: list[str]) -> list[list[Any]]:
    lines = []
    for maze in BENCHMARK:
        found = [mean(rows, "seconds", metric="cosine", environment=maze, method=name) for name in methods]
        if any(one is not None for one in found):
            lines.append([maze, *(None if one is None else f"{one:.1f}" for one in found)])
    return lines


def draw(rows: list[Row], preset: Preset) -> Figure:
    """How far each method is from 1 in each maze, (x, y), d = 11, from 10⁶ steps."""
    cell = {"input": "position", "n": STEPS, "d": 11}
    values = {
        (maze, LABELS.get(method, method)): 1 - found.mean
        for maze in BENCHMARK
        for method in METHODS
        if (found := interval(rows, metric="cosine", environment=maze, method=method, **cell))
    }
    values |= {(maze, "ALLO, published"): 1 - PUBLISHED[maze][0] for maze in BENCHMARK}
    for maze in BENCHMARK:
        floor = mean(rows, metric="floor", environment=maze, method="default", **cell)
        if floor is not None:
            values[maze, "floor of the data"] = 1 - floor
    return draw_shortfalls(tuple(BENCHMARK), values, "1 - mean cosine (lower is better)")


MAZES12 = Study(
    "mazes12",
    "ALLO's benchmark: every objective in twelve mazes",
    runs,
    execute,
    draw,
    describe,
    "a seed is one of the data and of the network. Seconds are of one core, compilation taken off",
)
