"""What a person sees of a run: a table of its measures, and its pictures."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from lapwing import plots
from lapwing.envs.arena import Arena
from lapwing.envs.simulator import Simulator, goal_observation, point_observations
from lapwing.envs.top_view import TopView
from lapwing.laplacian.evaluate import rank_correlation
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import Target
from lapwing.runs.compare import Comparison
from lapwing.runs.control import ControlOutcome
from lapwing.runs.folder import RunFolder
from lapwing.runs.inspect import Inspection
from lapwing.runs.learn import Outcome
from lapwing.runs.train import AgentOutcome
from lapwing.shaping.audit import Audit, ranking

ABOUT_AUDIT = (
    "corr.: rank correlation with true steps. optima: cells where every move looks worse. flat: cells where "
    "no move looks better. astray: cells whose best-looking move leads away. greedy: starts from which "
    "taking it arrives. ahead: how many steps an agent must look ahead to come within 2 of the optimum. "
    "contrast: how clearly the best move stands out. best: the return of the policy that is optimal for the "
    "reward."
)
NO_GAP = 1e-9
"""A gap below this is none."""
SOME_STATES = 4_000
"""So many states of data are drawn."""
FILM_FRAMES = 60
"""About so many pictures of an agent at work."""
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
            if name == "gap_random" and result[name] < NO_GAP:
                note = "all states are spanned: no basis has a gap, so it measures nothing"
            table.add_row(label, f"{result[name]:.4g}", note)
    _add_held_out(table, result.get("held_out"))
    truly = "true steps" if outcome.target.arena is None else "the way to the goal"
    for name, value in (result["distance_correlation"] or {}).items():
        table.add_row(f"distance, {name}", f"{value:.3f}", f"rank correlation with {truly}")
    table.add_row("learned with", "", _chosen(result["settings"]))
    eigenvalues = ", ".join(f"{value:.4f}" for value in result["eigenvalues"][:8])
    table.add_row("eigenvalues", "", eigenvalues + (", …" if len(result["eigenvalues"]) > 8 else ""))
    return table


def _add_held_out(table: Table, measured: dict[str, Any] | None) -> None:
    """What episodes say that were not learned from."""
    if measured is None:
        return
    trusted, dim = measured["trusted"], len(measured["agreement"])
    where = f"{measured['transitions']:,} held-out transitions"
    about = f"of {dim}, the constant among them: those that come out again on {where}"
    table.add_row("trusted", str(trusted), about)
    error = measured["orthonormality_error"]
    table.add_row("orthonormality", f"{error:.4g}", "on held-out episodes: how far from it")
    spread = ", ".join(
        f"{value:.4f} ± {about:.4f}"
        for value, about in list(zip(measured["eigenvalues"], measured["spread"], strict=False))[1:5]
    )
    table.add_row("held-out λ₂ …", "", spread + (", …" if dim > 5 else ""))


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
    return _saved(_figures(outcome, RunFolder(folder.parent).metrics()), folder)


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
    if target.arena is not None:
        return figures | _arena_figures(representation, result, target.arena)
    if world is None:
        return figures | _data_figures(representation, target)
    functions = representation.eigenfunctions(target.states)
    goal = world.goal_state if world.goal_state is not None else 0
    distances = {"steps": world.steps_to(goal)}
    for name in result["distance_correlation"]:
        embedded = representation.embed(target.states, name)
        distances[f"distance, {name}"] = np.linalg.norm(embedded - embedded[goal], axis=1)
    return figures | {
        "eigenfunctions": plots.draw_eigenfunctions(
            world, functions, representation.eigenvalues, first=_first(representation)
        ),
        "distances": plots.draw_distances(world, distances, goal),
    }


def _data_figures(representation: Representation, target: Target) -> dict[str, Figure]:
    """States in the plane of eigenfunctions; these and distances over the two features that tell most."""
    reference = target.reference_states() if target.plane else None
    observations = target.some_observations(SOME_STATES, 0) if reference is None else reference
    functions, eigenvalues = representation.eigenfunctions(observations), representation.eigenvalues
    some, first = functions[:: -(-len(functions) // SOME_STATES)], _first(representation)
    figures = {"embedding": plots.draw_scatter(some, eigenvalues, first=first)}
    if len(representation.spec.shape) == 1 and representation.spec.shape[0] > 1:
        features = telling_features(observations, functions[:, first:])
        names = f"feature {features[0]}", f"feature {features[1]}"
        points, downwards = observations[:, list(features)], target.plane is not None  # by row and column
        end = int(np.argmax(np.abs(functions[:, first])))  # a state at one end of the slowest way
        distances = {
            f"distance, {name}": representation.distance(observations, observations[end], name)
            for name in representation.filters
        }
        figures["eigenfunctions"] = plots.draw_over_features(
            points, names, functions, eigenvalues, first=first, rows_and_columns=downwards
        )
        figures["distances"] = plots.draw_distances_over_features(
            points, names, distances, end, rows_and_columns=downwards
        )
    return figures


def _first(representation: Representation) -> int:
    """The first column worth drawing: the constant comes before it, where eigenfunctions are told apart."""
    return 1 if representation.rotated else 0


def telling_features(observations: np.ndarray, functions: np.ndarray) -> tuple[int, int]:
    """The two features that go most with the first of these functions, above all with the very first.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(500, 3))
        >>> telling_features(x, np.stack([x[:, 2], np.tanh(x[:, 0])], axis=1))
        (0, 2)
    """
    if observations.shape[1] == 2:
        return 0, 1
    shown = functions[:, :4].T
    told = [
        sum(rank_correlation(feature, function) ** 2 / place for place, function in enumerate(shown, start=1))
        for feature in observations.T
    ]
    first, second = sorted(np.argsort(told)[-2:].tolist())
    return first, second


def _arena_figures(representation: Representation, result: dict[str, Any], arena: Arena) -> dict[str, Figure]:
    """Eigenfunctions and distances to the goal, all over an arena."""
    whole = result["settings"]["observation"] == "state"
    states = point_observations(arena, whole=whole)
    goal = goal_observation(arena, whole=whole)
    functions, eigenvalues = representation.eigenfunctions(states), representation.eigenvalues
    first = _first(representation)
    shown = range(first, min(first + 8, len(eigenvalues)))
    maps = {plots.title_of(index, eigenvalues): functions[:, index] for index in shown}
    distances = {"the way": arena.path_lengths(arena.points)}
    for name, value in result["distance_correlation"].items():
        if name != "l2":
            distances[f"distance, {name}: {value:.2f}"] = representation.distance(states, goal, name)
    return {
        "eigenfunctions": plots.draw_arena_maps(arena, maps, cmap="RdBu_r"),
        "distances": plots.draw_arena_maps(arena, distances, cmap="viridis_r"),
    }


def agent_table(outcome: AgentOutcome) -> Table:
    """How an agent did, and what was to be expected of its reward."""
    result, shaped = outcome.result, outcome.shaped
    reward = f", reward {result['reward']}" if result["reward"] else ""
    table = Table(title=f"{result['target']}{reward}", box=None, title_justify="left")
    for column, style in (("measure", "bold"), ("value", "cyan"), ("", "dim")):
        table.add_column(column, style=style, justify="right" if column == "value" else "left")
    last = f"{result['evaluated_at'][-1]:,}"
    table.add_row("mean return", f"{result['return']:.3f}", f"of the greedy policy after {last} steps")
    if shaped is not None:
        row, column = result["goal"]
        table.add_row(
            "  optimum", f"{result['optimal_return']:.3f}", f"over all starts, goal ({row},{column})"
        )
        steps = result["steps_to_optimum"]
        table.add_row("steps to it", "never" if steps is None else f"{steps:,}", "to come within 2")
        ahead = _lookahead(shaped.audit)
        table.add_row("lookahead", ahead, "steps that the reward asks an agent to look ahead")
        success = f"{shaped.audit.greedy_success:.2f}"
        table.add_row("greedy success", success, "of just following the reward")
    seconds = f"{result['train_seconds']:.1f}"
    table.add_row("training, s", seconds, "")
    return table


def draw_agent(outcome: AgentOutcome, folder: Path) -> list[Path]:
    """The learning curve; in a maze also the reward, the policy, and the policy at work."""
    result, shaped = outcome.result, outcome.shaped
    curve = plots.draw_returns(result["evaluated_at"], result["returns"], result.get("optimal_return"))
    figures = {"returns": curve}
    if shaped is None:
        return _saved(figures, folder)
    world = shaped.task.world
    values = outcome.agent.values(world.observations(result["settings"]["observation"]))
    figures["reward"] = plots.draw_audits(shaped.task, [shaped.audit])
    figures["policy"] = plots.draw_policy(shaped.task, values)
    frames = plots.policy_frames(shaped.task, values.argmax(axis=1))
    return [*_saved(figures, folder), plots.save_animation(frames, folder / "policy")]


def control_table(outcome: ControlOutcome) -> Table:
    """How an agent did in its arena, and whether φ led to the goal."""
    result = outcome.result
    settings = result["settings"]
    title = f"{result['target']}, reward {result['reward']} ({settings['preset']})"
    table = Table(title=title, box=None, title_justify="left")
    for column, style in (("measure", "bold"), ("value", "cyan"), ("", "dim")):
        table.add_column(column, style=style, justify="right" if column == "value" else "left")
    last = f"{result['evaluated_at'][-1]:,}"
    starts = len(outcome.attempts.reached)
    table.add_row("success", f"{result['success']:.0%}", f"of {starts} starts, after {last} steps")
    table.add_row("way left", f"{result['final_distance']:.2f}", "to the goal at the end, in the mean")
    steps = result["steps_to_success"]
    table.add_row("steps to 90 %", "never" if steps is None else f"{steps:,}", "success")
    if "gate" in result:
        beside = f"rank correlation with the way to the goal ({settings['filter']}); l2: "
        table.add_row("φ's distance", f"{result['gate']:.3f}", f"{beside}{result['gate_l2']:.3f}")
    table.add_row("training, s", f"{result['train_seconds']:.1f}", "")
    return table


def draw_control(outcome: ControlOutcome, folder: Path) -> list[Path]:
    """Success over the steps, φ's distance, where the policy goes, and a film from the farthest start."""
    result, arena, attempts = outcome.result, outcome.arena, outcome.attempts
    figures = {"success": plots.draw_success(result["evaluated_at"], result["successes"])}
    if outcome.representation is not None:
        maps = {f"φ's distance to the goal, {result['settings']['filter']}": outcome.goal_map()}
        figures["goal"] = plots.draw_arena_maps(arena, maps, cmap="viridis_r")
    figures["paths"] = plots.draw_paths(arena, attempts.paths, attempts.reached)
    frames = filmed(outcome)
    figures["strip"] = plots.draw_strip(frames)
    return [*_saved(figures, folder), plots.save_animation(frames, folder / "film", milliseconds=60)]


def filmed(outcome: ControlOutcome) -> list[np.ndarray]:
    """The agent from the start that is farthest from the goal, of those it reaches it from, if any."""
    arena, attempts = outcome.arena, outcome.attempts
    ways = arena.path_lengths(attempts.paths[0])
    start = int(np.argmax(ways + attempts.reached * ways.max()))
    away = np.linalg.norm(attempts.paths[:, start] - arena.goal, axis=1)
    there = np.flatnonzero(away <= arena.goal_radius)
    last = int(there[0]) + 10 if len(there) else len(away) - 1
    simulator = Simulator(arena)
    view, row = TopView(simulator), simulator.at_rest(attempts.paths[:1, start])
    every = max(1, last // FILM_FRAMES)
    frames = []
    for step in range(min(last, len(away) - 1) + 1):
        if step % every == 0:
            frames.append(view(row[0]))
        row = simulator.step(row, outcome.agent.act(simulator.observe(row)))
    view.close()
    return frames


def audit_table(comparison: Comparison) -> Table:
    """The audits, in the order in which the rewards are expected to be learned."""
    row, column = comparison.task.goal_cell
    title = f"{comparison.task.world.maze.name}, goal ({row},{column}): the quickest to learn from first"
    table = Table(title=title, box=None, title_justify="left", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("reward", style="bold", no_wrap=True)
    for name in ("corr.", "optima", "flat", "astray", "greedy", "ahead", "contrast", "best"):
        table.add_column(name, justify="right", style="cyan" if name == "ahead" else None, no_wrap=True)
    for one in ranking(comparison.audits):
        table.add_row(
            one.name,
            f"{one.correlation:.3f}",
            str(one.local_optima),
            f"{one.flat:.0%}",
            f"{one.astray:.0%}",
            f"{one.greedy_success:.0%}",
            _lookahead(one),
            f"{one.contrast:.2f}",
            f"{one.best_return:.2f}",
        )
    return table


def draw_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """A map of each reward, the quickest to learn from first."""
    figure = plots.draw_audits(comparison.task, ranking(comparison.audits))
    return _saved({"audit": figure}, folder)


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
        table.add_row(
            "would learn",
            f"{plan['dim']} eigenfunctions by {plan['estimator']}, {plan['encoder']} encoder, "
            f"lam={plan['lam']:g}, at which {plan['surviving_share']:.0%} of the pairs end in their episode",
        )
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


def _lookahead(audit: Audit) -> str:
    return "never" if audit.lookahead is None else str(audit.lookahead)


def _saved(figures: dict[str, Figure], folder: Path) -> list[Path]:
    return [plots.save_figure(figure, folder / name)[0] for name, figure in figures.items()]
