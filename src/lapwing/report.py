"""What a person sees of a run: a table of its measures, and its pictures."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from lapwing import plots
from lapwing.runs import RunFolder
from lapwing.workflow import Outcome

_ROWS = (
    (
        "gap",
        "objective gap",
        "above the smallest G (the paper's metric)",
    ),
    ("gap_floor", "  floor", "exact eigenvectors of the data itself"),
    ("gap_random", "  random basis", ""),
    ("cosine_mean", "cosine, first 11", "with the exact eigenfunctions, one by one"),
    ("cosine_floor", "  floor", "exact eigenvectors of the data itself"),
    ("eigenvalue_error", "eigenvalue error", "mean, relative"),
    ("principal_angle", "largest angle", "between learned and exact subspace, radians"),
    ("orthonormality_error", "orthonormality", "how far from it, root mean square"),
    ("learn_seconds", "learning, s", "without compilation"),
    ("compile_seconds", "compiling, s", ""),
)


def summary_table(outcome: Outcome) -> Table:
    """The measures that there are, with the operator that counts as the truth."""
    result = outcome.result
    truth = f"against the {result['operator']}" if result["operator"] else "no truth to compare with"
    table = Table(title=f"{result['target']}: {truth}", box=None, title_justify="left")
    for column, style in (("measure", "bold"), ("value", "cyan"), ("", "dim")):
        table.add_column(column, style=style, justify="right" if column == "value" else "left")
    for name, label, note in _ROWS:
        if result.get(name) is not None:
            table.add_row(label, f"{result[name]:.4g}", note)
    for name, value in (result["distance_correlation"] or {}).items():
        table.add_row(f"distance, {name}", f"{value:.3f}", "rank correlation with true steps")
    table.add_row("learned with", "", _chosen(result["settings"]))
    eigenvalues = ", ".join(f"{value:.4f}" for value in result["eigenvalues"][:8])
    table.add_row("eigenvalues", "", eigenvalues + (", …" if len(result["eigenvalues"]) > 8 else ""))
    return table


def _chosen(settings: dict[str, Any]) -> str:
    words = (
        f"{settings['estimator']}, lam={settings['lam']:g}, beta={settings['beta']:g}, {settings['encoder']}"
    )
    if settings["encoder"] == "fourier":
        words += f" (bandwidth {settings['fourier_bandwidth']:.3g})"
    stopped = f"{settings['stop']:,} of " if settings["stop"] < settings["steps"] else ""
    return f"{words}, {stopped}{settings['steps']:,} steps"


def draw_all(outcome: Outcome, folder: Path) -> list[Path]:
    """Write every figure that the run has data for; the PNG files are returned."""
    figures = _figures(outcome, RunFolder(folder.parent).metrics())
    return [plots.save_figure(figure, folder / name)[0] for name, figure in figures.items()]


def _figures(outcome: Outcome, metrics: list[dict[str, Any]]) -> dict[str, Figure]:
    representation, result, target = outcome
    exact = None if result["eigenvalues_exact"] is None else np.array(result["eigenvalues_exact"])
    figures = {
        "spectrum": plots.draw_spectrum(representation.eigenvalues, exact, result["operator"]),
        "learning": plots.draw_learning(metrics),
    }
    if representation.dim < 2:
        return figures
    world = target.world
    if world is None:
        observations = target.some_observations(2_000, 0)
        functions = representation.eigenfunctions(observations)
        return figures | {"embedding": plots.draw_scatter(functions, representation.eigenvalues)}
    functions = representation.eigenfunctions(target.states)
    goal = world.goal_state if world.goal_state is not None else 0
    distances = {"steps": world.steps_to(goal)}
    for name in result["distance_correlation"]:
        embedded = representation.embed(target.states, name)
        distances[f"distance, {name}"] = np.linalg.norm(embedded - embedded[goal], axis=1)
    return figures | {
        "eigenfunctions": plots.draw_eigenfunctions(world, functions, representation.eigenvalues),
        "distances": plots.draw_distances(world, distances, goal),
    }
