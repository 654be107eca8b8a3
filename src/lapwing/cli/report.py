"""The report on a learned representation or a data set: tables, a verdict, and figures."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Group
from rich.table import Table
from rich.text import Text

from lapwing import plots
from lapwing.cli.verdict import excess, inside, names_of, trusted_indices, verdict_of
from lapwing.data.extent import CELLS
from lapwing.envs.arena import Arena
from lapwing.envs.simulator import goal_observation, point_observations
from lapwing.laplacian.closed_form import BETTER
from lapwing.laplacian.evaluate import FIRST_EIGENFUNCTIONS
from lapwing.laplacian.held_out import CLEARLY
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import Target
from lapwing.runs.folder import RunFolder
from lapwing.runs.inspect import Inspection
from lapwing.runs.learn import Outcome
from lapwing.settings.learn import ResolvedSettings

NO_GAP = 1e-9
"""A gap below this is none."""
SOME_STATES = 4_000
"""So many states of data are drawn."""
IRREVERSIBLE = 0.1
"""From this share on, what has no way back matters."""
MOST_INSIDE = 4
"""Of so many features the range is told."""
_ROWS = (
    (
        "gap",
        "objective gap",
        "above the smallest G (the paper's metric)",
    ),
    ("gap_floor", "  floor", "exact eigenvectors of the data itself"),
    ("gap_random", "  random basis", ""),
    ("cosine_mean", "cosine", "with the exact eigenfunctions, one by one"),
    ("cosine_floor", "  floor", "exact eigenvectors of the data itself"),
    ("eigenvalue_error", "eigenvalue error", "mean, relative"),
    ("principal_angle", "largest angle", "between learned and exact subspace, radians"),
    ("orthonormality_error", "orthonormality error", "root mean square"),
    ("learn_seconds", "learning, s", "without compilation"),
    ("compile_seconds", "compiling, s", ""),
)


def summary_table(outcome: Outcome) -> Table:
    """The measures that there are, with the operator that they are compared with."""
    result = outcome.result
    operator = result["operator"]
    reference = f"against the {operator}" if operator else "no exact spectrum to compare with"
    table = measure_table(f"{result['target']}: {reference}")
    for name, label, note in _ROWS:
        if result.get(name) is not None:
            if name == "gap_random" and result[name] < NO_GAP:
                note = "all states are spanned: no basis has a gap, so it measures nothing"
            if name == "cosine_mean":
                label = f"cosine, first {min(FIRST_EIGENFUNCTIONS, len(result['cosine'] or ()))}"
            table.add_row(label, f"{result[name]:.4g}", note)
    _add_held_out(table, result.get("held_out"))
    _add_flow(table, result)
    _add_extent(table, result.get("extent"))
    truly = "true steps" if outcome.target.arena is None else "the shortest path to the goal"
    for name, value in (result["distance_correlation"] or {}).items():
        table.add_row(f"distance, {name}", f"{value:.3f}", f"rank correlation with {truly}")
    table.add_row("learned with", "", _chosen(ResolvedSettings.from_json(result["settings"])))
    eigenvalues = ", ".join(f"{_without_rounding(value):.3g}" for value in result["eigenvalues"][:8])
    table.add_row("eigenvalues", "", eigenvalues + (", …" if len(result["eigenvalues"]) > 8 else ""))
    return table


def _without_rounding(eigenvalue: float) -> float:
    """0 for what is 0 but for rounding."""
    return 0.0 if eigenvalue < NO_GAP else eigenvalue


def measure_table(title: str) -> Table:
    """An empty table of measures: name, value, remark."""
    table = Table(title=title, box=None, title_justify="left")
    for column, style in (("measure", "bold"), ("value", "cyan"), ("", "dim")):
        table.add_column(column, style=style, justify="right" if column == "value" else "left")
    return table


def _add_held_out(table: Table, measured: dict[str, Any] | None) -> None:
    """The measures on held-out episodes."""
    if measured is None:
        return
    trusted, dim = trusted_indices(measured), len(measured["agreement"])
    about = f"{names_of(trusted)}, by {measured['transitions']:,} held-out transitions and a second basis"
    if measured.get("fitted_on_held_out", True):
        about += ", on which they were fitted too"
    table.add_row("trusted", f"{len(trusted)} of {dim}", about)
    if "objective" in measured:
        _add_objective(table, measured, dim)
    error = measured["orthonormality_error"]
    table.add_row("orthonormality error", f"{error:.4g}", "root mean square, on held-out episodes")
    spread = ", ".join(
        f"{value:.3g} ± {about:.1g}"
        for value, about in list(zip(measured["eigenvalues"], measured["spread"], strict=False))[1:5]
    )
    table.add_row("held-out λ₂ …", "", spread + (", …" if dim > 5 else ""))
    table.add_row("  ±", "", "half of what two halves of the held-out episodes differ by: a standard error")


def _add_objective(table: Table, measured: dict[str, Any], dim: int) -> None:
    """The sum of eigenvalues on held-out episodes, which runs of the same data can be compared by."""
    ratio = excess(measured)
    about = "200 Gaussian bumps in closed form"
    table.add_row(
        "held-out objective", f"{measured['objective']:.4g}", f"sum of the first {dim} eigenvalues there"
    )
    if ratio > CLEARLY:
        about += f": lower, so φ lacks something ({ratio:.3g} times as much)"
    table.add_row("  reference", f"{measured['objective_reference']:.4g}", about)


def _add_flow(table: Table, result: dict[str, Any]) -> None:
    """Whether the data comes back, and whether it is one piece."""
    share = result.get("irreversibility")
    if share is not None:
        about = "of the flow between states has no way back"
        if share > IRREVERSIBLE:
            about += "; distances are those of the mean of both directions, and do not see it"
        table.add_row("irreversibility", f"{share:.2f}", about)
    if (result.get("parts") or 1) > 1:
        table.add_row("parts", str(result["parts"]), "between which no transition was seen")
    found = result.get("barriers")
    if found and found["walls"]:
        about = f"of {found['places']} places have one, thinner than a step"
        if found["contrast"] is not None:
            about += f"; φ sets its sides {found['contrast']:.1f} times as far apart"
        table.add_row("thin walls", str(found["walls"]), about)


def _add_extent(table: Table, extent: dict[str, Any] | None) -> None:
    """How much of its observation space the data comes to, and the features that stay well inside."""
    if extent is None:
        return
    if extent["covered"] is not None:
        lattice = " × ".join([str(CELLS)] * len(extent["bounds"]))
        others = (
            "" if extent["covered"] == 1 else "; others were not seen, or hold no state, as inside of walls"
        )
        about = f"of {lattice} cells of the box that the observation space declares{others}"
        table.add_row("covered", f"{extent['covered']:.0%}", about)
    for feature, seen, bounds in inside(extent)[:MOST_INSIDE]:
        values, of = (f"{low:.3g} to {high:.3g}" for low, high in (seen, bounds))
        table.add_row(f"  feature {feature}", values, f"seen, of {of} in the observation space")


def tried_table(tried: list[dict[str, Any]]) -> Table:
    """What was tried on validation episodes, the chosen one first."""
    rule = f"lower is better, and what costs more must be lower by {1 - BETTER:.0%} (docs/closed_form.md)"
    table = Table(title=f"tried on validation episodes: {rule}", box=None, title_justify="left")
    table.add_column("sum of eigenvalues", style="cyan", justify="right")
    table.add_column("what")
    for number, trial in enumerate(tried):
        table.add_row(f"{trial['score']:.4g}", trial["what"] + (" (chosen)" if number == 0 else ""))
    return table


def report(outcome: Outcome) -> Group:
    """All of it: the measures, what was tried, and at the end a verdict and a next step."""
    tried = outcome.representation.config.get("tried")
    verdict, next_step = verdict_of(outcome.result)
    lines = Text.assemble(("verdict: ", "bold"), verdict, "\n", ("next: ", "bold"), next_step)
    return Group(summary_table(outcome), *([tried_table(tried)] if tried else []), lines)


def _chosen(settings: ResolvedSettings) -> str:
    words = f"{settings.estimator}, lam={settings.lam:g}, beta={settings.beta:g}, {settings.encoder}"
    if settings.objective != "graph-drawing":
        words = f"{settings.objective}, {settings.estimator}, lam={settings.lam:g}, {settings.encoder}"
    if settings.estimator == "closed-form":
        return words
    if settings.encoder == "fourier" and settings.fourier_bandwidth is not None:
        words += f" (bandwidth {settings.fourier_bandwidth:.3g})"
    stopped = f"{settings.stop:,} of " if settings.stop < settings.steps else ""
    return f"{words}, {stopped}{settings.steps:,} steps"


def draw_all(outcome: Outcome, folder: Path) -> list[Path]:
    """Write every figure that the run has data for; the PNG files are returned."""
    return save_figures(_figures(outcome, RunFolder(folder.parent).metrics()), folder)


def _figures(outcome: Outcome, metrics: list[dict[str, Any]]) -> dict[str, Figure]:
    representation, result, target = outcome
    exact = None if result["eigenvalues_exact"] is None else np.array(result["eigenvalues_exact"])
    figures = {"spectrum": plots.draw_spectrum(representation.eigenvalues, exact, result["operator"])}
    if metrics and "loss" in metrics[0]:
        figures["learning"] = plots.draw_learning(metrics)
    elif tried := representation.config.get("tried"):
        figures["learning"] = plots.draw_trials(
            [trial["what"] for trial in tried], [trial["score"] for trial in tried]
        )
    if representation.dim < 2:
        return figures
    world = target.world
    if target.arena is not None:
        return figures | _arena_figures(representation, result, target.arena)
    if world is None:
        return figures | _data_figures(representation, target)
    states = np.asarray(target.states)
    functions = representation.eigenfunctions(states)
    goal = world.goal_state if world.goal_state is not None else 0
    distances = {"steps": world.steps_to(goal)}
    for name in result["distance_correlation"]:
        distances[f"distance, {name}"] = representation.distance(states, states[goal], name)
    return figures | {
        "eigenfunctions": plots.draw_eigenfunctions(
            world, functions, representation.eigenvalues, first=_first(representation)
        ),
        "distances": plots.draw_distances(world, distances, goal),
    }


def _data_figures(representation: Representation, target: Target) -> dict[str, Figure]:
    """States in the plane of eigenfunctions; these and distances over the two most informative features."""
    reference = target.reference_states() if target.plane else None
    observations = target.some_observations(SOME_STATES, 0) if reference is None else reference
    functions, eigenvalues = representation.eigenfunctions(observations), representation.eigenvalues
    some, first = functions[:: -(-len(functions) // SOME_STATES)], _first(representation)
    figures = {"embedding": plots.draw_scatter(some, eigenvalues, first=first)}
    if len(representation.spec.shape) == 1 and representation.spec.shape[0] > 1:
        features = plots.telling_features(observations, functions[:, first:])
        names = f"feature {features[0]}", f"feature {features[1]}"
        points, downwards = observations[:, list(features)], target.plane is not None  # by row and column
        end = int(np.argmax(np.abs(functions[:, first])))  # a state at an extreme of the slowest function
        distances = {
            f"distance, {name}": representation.distance(observations, observations[end], name)
            for name in representation.distances
        }
        figures["eigenfunctions"] = plots.draw_over_features(
            points, names, functions, eigenvalues, first=first, rows_and_columns=downwards
        )
        figures["distances"] = plots.draw_distances_over_features(
            points, names, distances, end, rows_and_columns=downwards
        )
    return figures


def _first(representation: Representation) -> int:
    """The first column worth drawing: the constant comes before it, where eigenfunctions are rotated."""
    return 1 if representation.rotated else 0


def _arena_figures(representation: Representation, result: dict[str, Any], arena: Arena) -> dict[str, Figure]:
    """Eigenfunctions and distances to the goal, all over an arena."""
    whole = ResolvedSettings.from_json(result["settings"]).observation == "state"
    states = point_observations(arena, whole=whole)
    goal = goal_observation(arena, whole=whole)
    functions, eigenvalues = representation.eigenfunctions(states), representation.eigenvalues
    first = _first(representation)
    shown = range(first, min(first + 8, len(eigenvalues)))
    maps = {plots.title_of(index, eigenvalues): functions[:, index] for index in shown}
    distances = {"shortest path": arena.path_lengths(arena.points)}
    for name, value in result["distance_correlation"].items():
        if name != "l2":
            distances[f"distance, {name}: {value:.2f}"] = representation.distance(states, goal, name)
    return {
        "eigenfunctions": plots.draw_arena_maps(arena, maps, cmap="RdBu_r"),
        "distances": plots.draw_arena_maps(arena, distances, cmap="viridis_r"),
    }


def inspection_table(found: Inspection) -> Table:
    """What is in a data set, and what lapwing would do with it."""
    table = Table(title=found.name, box=None, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, kind in found.arrays.items():
        table.add_row(name, kind)
    for name, value in found.facts.items():
        table.add_row(*_FACTS.get(name, _plain_fact)(name, value))
    plan = found.plan
    if plan:
        kind = "continuous states" if plan["states"] is None else f"{plan['states']:,} states, enumerated"
        table.add_row("lapwing sees", kind + (", read from disk as needed" if plan["on_disk"] else ""))
        words = f"{plan['dim']} eigenfunctions by {plan['estimator']}, {plan['encoder']} encoder"
        if plan["lam"] is not None:
            words += f", lam={plan['lam']:g}, at which {plan['surviving_share']:.0%} of the pairs end in "
            words += "their episode"
        table.add_row("would learn", words)
        if plan["held_out"]:
            table.add_row("would hold out", f"{plan['held_out']:.0%} of the episodes, to measure on")
    for remark in found.remarks:
        table.add_row("warning", remark)
    return table


def _plain_fact(name: str, value: Any) -> tuple[str, str]:
    return name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)


_FACTS: dict[str, Any] = {
    "shape": lambda _, value: ("one observation", str(tuple(value)) if value else "a number"),
    "lengths": lambda _, value: ("lengths", f"{value[0]:,} to {value[2]:,}, median {value[1]:,.0f}"),
    "not_finite": lambda _, value: ("NaN or infinity", f"in {value:,} observations" if value else "none"),
    "first_not_finite": lambda _, value: ("  first at", f"episode {value[0]}, step {value[1]}"),
    "ranges": lambda _, value: ("ranges", "  ".join(map(_range, value))),
    "distinct": lambda _, value: ("distinct", f"{value:.1%} of the observations"),
}


def _range(bounds: list[float] | None) -> str:
    return "none finite" if bounds is None else f"[{bounds[0]:.3g}, {bounds[1]:.3g}]"


def save_figures(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Write each figure under its name; the PNG files are returned."""
    return [plots.save_figure(figure, folder / name)[0] for name, figure in figures.items()]
