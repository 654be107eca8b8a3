"""Any goal in OGBench's point mazes: `lapwing reach` compared with published results, and its ablations."""

import dataclasses
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from lapwing.data.ogbench import OGBenchData
from lapwing.errors import ConfigError
from lapwing.figures.grid import Measure, Measured, Preset, Row, Run, Study, recipe
from lapwing.figures.tables import interval, markdown_table
from lapwing.laplacian.cells import CellPhi, cell_phi
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import Target, open_target
from lapwing.plots import draw_success_table
from lapwing.progress import OnProgress, uncounted
from lapwing.reaching.build import DIM, build_reacher, check_actions, without_chance
from lapwing.reaching.build import recipe as reach_recipe
from lapwing.runs.reach import by_task, evaluate_reacher, more_data, run_reach, world_of
from lapwing.settings.reach import ReachSettings
from lapwing.timing import stopwatch

SETS = tuple(f"{size}-{kind}" for kind in ("navigate", "stitch") for size in ("medium", "large", "giant"))
CHANCE = ("teleport-navigate", "teleport-stitch")
QUICK = ("medium-navigate", "giant-navigate")
PUBLISHED = {
    "medium-navigate": {"GCBC": 9, "GCIVL": 63, "GCIQL": 53, "QRL": 82, "CRL": 29, "HIQL": 79, "SAW": 97},
    "large-navigate": {"GCBC": 29, "GCIVL": 45, "GCIQL": 34, "QRL": 86, "CRL": 39, "HIQL": 58, "SAW": 85},
    "giant-navigate": {
        "GCBC": 1,
        "GCIVL": 0,
        "GCIQL": 0,
        "QRL": 68,
        "CRL": 27,
        "HIQL": 46,
        "SAW": 68,
        "ALPS": 67,
    },
    "medium-stitch": {"GCBC": 23, "GCIVL": 70, "GCIQL": 21, "QRL": 80, "CRL": 0, "HIQL": 74},
    "large-stitch": {"GCBC": 7, "GCIVL": 12, "GCIQL": 31, "QRL": 84, "CRL": 0, "HIQL": 13, "ALPS": 96},
    "giant-stitch": {"GCBC": 0, "GCIVL": 0, "GCIQL": 0, "QRL": 50, "CRL": 0, "HIQL": 0, "ALPS": 98},
    "teleport-navigate": {"GCBC": 25, "GCIVL": 45, "GCIQL": 24, "QRL": 8, "CRL": 24, "HIQL": 18},
    "teleport-stitch": {"GCBC": 31, "GCIVL": 44, "GCIQL": 25, "QRL": 9, "CRL": 4, "HIQL": 34},
}
"""Success in percent. Those of navigate but teleport, GCBC to HIQL, are of Park et al. (OGBench, 2025); all
others are second-hand and were not checked against their papers. Of these, ALPS's, and QRL's of large- and
giant-stitch, agree with a published summary of the ALPS paper (Shehmar et al., 2026, arXiv 2602.05031)."""
SECOND_HAND = (*(name for name in PUBLISHED if not name.endswith("navigate")), "teleport-navigate")
PERCENT = (0.0, 100.0)
NAMES = ("GCBC", "GCIVL", "GCIQL", "QRL", "CRL", "HIQL", "SAW", "ALPS")
METHODS: dict[str, dict[str, Any]] = {
    "reach": {},
    "neighbours": {"controller": "neighbours"},
    "euclid": {"geometry": "observation"},
    "no plan": {"plan": False},
    "network": {},
    "cells": {},
}
"""What is left out, as settings; what else φ may be is in OTHER_PHI."""
MEANINGS = {
    "reach": "lapwing reach",
    "neighbours": "nearest states of the data in place of the network",
    "euclid": "Euclidean distance in place of φ",
    "no plan": "no plan: the network aims at the goal",
    "network": "φ is a network with Fourier features, learned from sampled pairs (lapwing's first default)",
    "cells": "φ is exact on the chain between the cells of a lattice, and constant on each",
}


def runs(preset: Preset, seeds: int) -> list[Run]:
    """Every data set with every method; seed by seed."""
    sets = QUICK if preset == "quick" else (*SETS, *CHANCE)
    return [_run(preset, name, method, seed) for seed in range(seeds) for method in METHODS for name in sets]


def _run(preset: Preset, name: str, method: str, seed: int) -> Run:
    episodes = 100 if preset == "quick" else None
    size = OGBenchData(f"pointmaze-{name}-v0", seed, episodes).size
    return Run(
        figure="ogbench",
        environment=name,
        method=method,
        input="position",
        n=size[0] * (size[1] - 1),
        d=50,
        beta=None,
        lam=None,
        seed=seed,
        preset=preset,
        recipe=recipe(episodes=episodes, **METHODS[method]),
        reward="goal",
    )


def execute(run: Run, folder: Path, on_progress: OnProgress | None) -> Measured:
    """Success by task, over fifty episodes each; the data is made with the run's seed."""
    settings = run.settings
    data = OGBenchData(f"pointmaze-{run.environment}-v0", run.seed, settings.pop("episodes"))
    chosen = ReachSettings(**settings, dim=run.d, seed=run.seed)
    if run.method in OTHER_PHI:
        return _with_other_phi(run.method, data, chosen, on_progress)
    outcome = run_reach(
        data, chosen, folder / "run", resume=(folder / "run").exists(), on_progress=on_progress
    )
    result = outcome.result
    if result["by_task"] is None:
        raise ConfigError(f"{run} was not evaluated")
    return _measured(result["by_task"], result["seconds"])


def _measured(by_task: list[float], seconds: float) -> Measured:
    """Success in percent: of all tasks, which have as many episodes each, and of each."""
    measures = [Measure("success", 100 * sum(by_task) / len(by_task))]
    measures += [Measure("task", 100 * share, step) for step, share in enumerate(by_task, 1)]
    return Measured(measures, seconds)


def _with_other_phi(
    method: str, data: OGBenchData, settings: ReachSettings, on_progress: OnProgress | None
) -> Measured:
    """The same plan and controller, with another φ."""
    target = open_target(data, reach_recipe(settings))
    experience = check_actions(target.experience, target.name)
    with stopwatch() as watch:
        phi = OTHER_PHI[method](target, settings, on_progress)
        reacher = build_reacher(experience, phi, settings, name=target.name, on_progress=on_progress)
    world, count = world_of(reacher, target, data)
    assert world is not None
    episodes = evaluate_reacher(reacher, world, count, settings.seed, more_data(data))
    return _measured(by_task(episodes) or [], watch.working + watch.compiling)


def _network_phi(target: Target, settings: ReachSettings, on_progress: OnProgress | None) -> Representation:
    how = reach_recipe(settings, dim=settings.dim, estimator="pairwise", encoder="fourier")
    assert target.experience is not None
    whole = dataclasses.replace(target, experience=without_chance(target.experience))
    return learn_target(whole, how, on_progress=on_progress)


def _cell_phi(target: Target, settings: ReachSettings, on_progress: OnProgress | None) -> CellPhi:
    assert target.experience is not None
    with uncounted("solving", on_progress):
        return cell_phi(without_chance(target.experience), settings.dim or DIM)


OTHER_PHI = {"network": _network_phi, "cells": _cell_phi}


def draw(rows: list[Row], preset: Preset) -> Figure:
    """Bars by data set, with the best published number."""
    sets = QUICK if preset == "quick" else (*SETS, *CHANCE)
    found = {(name, method): _success(rows, name, method) for name in sets for method in METHODS}
    values = {key: one.mean for key, one in found.items() if one is not None}
    best = {name: float(max(PUBLISHED[name].values())) for name in sets}
    methods = [method for method in METHODS if any(key[1] == method for key in values)] or list(METHODS)
    return draw_success_table(sets, methods, values, best)


def _success(rows: list[Row], name: str, method: str) -> Any:
    return interval(rows, within=PERCENT, metric="success", environment=name, method=method)


def describe(rows: list[Row], preset: Preset) -> list[str]:
    """Success beside the published numbers, and without the parts."""
    sets = QUICK if preset == "quick" else (*SETS, *CHANCE)
    lines = [
        "Success in percent over OGBench's five tasks, 50 episodes of at most 1,000 steps each. **The data "
        "was made again** by the benchmark's recipe, with other random numbers; it is not what was published"
        + (", and only 100 episodes of each set." if preset == "quick" else "."),
        "",
    ]
    head = ["data set", *METHODS, *NAMES]
    cells = [
        [
            name + (" *" if name in SECOND_HAND else ""),
            *(_success(rows, name, method) for method in METHODS),
            *(_published(name, other) for other in NAMES),
        ]
        for name in sets
    ]
    lines += markdown_table(head, cells)
    lines += ["", *(f"- `{method}`: {meaning}." for method, meaning in MEANINGS.items()), ""]
    lines += [
        "Published: GCBC to HIQL of Park et al., *OGBench: Benchmarking Offline Goal-Conditioned RL*, 2025. "
        "Rows with an asterisk, and all of SAW and ALPS (Shehmar et al., ICML 2026), are second-hand and not "
        "read in the papers. Those of ALPS, and of QRL in large- and giant-stitch, agree with a published "
        "summary of the ALPS paper; the others were not found elsewhere.",
        "",
        "## By task",
        "",
    ]
    tasks = [[name, *(_task(rows, name, task) for task in range(1, 6))] for name in sets]
    return lines + markdown_table(["data set", *(f"task {task}" for task in range(1, 6))], tasks)


def _published(name: str, method: str) -> str | None:
    value = PUBLISHED[name].get(method)
    return None if value is None else str(value)


def _task(rows: list[Row], name: str, task: int) -> Any:
    return interval(rows, within=PERCENT, metric="task", environment=name, method="reach", step=task)


OGBENCH = Study(
    "ogbench",
    "Any goal in OGBench's point mazes",
    runs,
    execute,
    draw,
    describe,
    "a seed is one of the data and of everything after it",
)
