"""The report on a reacher: a table of measures, and figures."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Group
from rich.table import Table
from rich.text import Text

from lapwing import plots
from lapwing.cli.program import program
from lapwing.cli.report import measure_table, save_figures
from lapwing.errors import ConfigError
from lapwing.plots import telling_features
from lapwing.runs.reach import ReachOutcome

MOST_PATHS = 50
"""No more are drawn in one picture."""


def reach_report(outcome: ReachOutcome) -> Group:
    """The measures, and at the end how the policy is used."""
    run = outcome.result["run"]
    use = f'{program()} explore {run}; in Python lapwing.load_reacher("{run}").act(observation, goal).'
    return Group(reach_table(outcome), Text.assemble(("next: ", "bold"), use))


def reach_table(outcome: ReachOutcome) -> Table:
    """How often goals were reached, and what was planned over."""
    result = outcome.result
    table = measure_table(f"{result['target']}, any goal")
    if result["success"] is not None:
        about = f"of {result['episodes']} episodes, {result['mean_steps']:.0f} steps in the mean"
        table.add_row("success", f"{result['success']:.1%}", about)
    else:
        about = "not tried: goals come with mazes, or as desired_goal of an environment's observations"
        table.add_row("success", "-", about)
    if result.get("regenerated"):
        table.add_row("data", "", "made here as OGBench makes it: not the published file")
    if result.get("goals_outside"):
        table.add_row("  outside", str(result["goals_outside"]), "goals the data never came near: failed")
    if result["by_task"]:
        table.add_row(
            "  by task", " ".join(f"{share:.0%}" for share in result["by_task"]), "OGBench's tasks 1 to 5"
        )
    table.add_row("landmarks", str(result["landmarks"]), f"{result['edges']:,} edges where the data went")
    if result["parts"] > 1:
        words = (
            f"the largest of {result['largest_part']} landmarks; no way leads from one to another and back"
        )
        table.add_row("  parts", str(result["parts"]), words)
    if result["jumps"]:
        table.add_row(
            "  chance", f"{result['jumps']:,}", "steps with random outcome, a last resort of the plan"
        )
    table.add_row("aims ahead", f"{result['ahead']:.0f}", "steps")
    table.add_row("making it, s", f"{result['seconds']:.1f}", "φ, plan and controller")
    return table


def draw_reach(outcome: ReachOutcome, folder: Path) -> list[Path]:
    """The landmarks; a plan and the path that was walked, a film of it; all paths; the steps to a goal."""
    reacher = outcome.reacher
    if len(reacher.places.shape) != 1 or reacher.places.shape[0] < 2:
        return []
    arena = outcome.target.arena is not None
    told = telling_features(reacher.landmarks.observations, reacher.landmarks.coordinates)
    drawn = [0, 1] if arena else list(told)
    landmarks = reacher.landmarks.observations[:, drawn]
    edges = np.stack([reacher.graph.begins, reacher.graph.ends], axis=1)
    figures = {"landmarks": plots.draw_landmarks(landmarks, edges, reacher.graph.parts)}
    episodes = outcome.episodes
    if episodes is None:
        return save_figures(figures, folder)
    goal = episodes.goals[_shown(outcome)]
    if not reacher.outside(goal)[0]:
        steps = reacher.distance(reacher.landmarks.observations, goal)
        figures["goal"] = plots.draw_steps_to(landmarks, steps, goal[drawn])
    some = np.unique(np.linspace(0, len(episodes.reached) - 1, MOST_PATHS).astype(int))
    paths = episodes.paths[:, some][..., drawn]
    figures["paths"] = plots.draw_walks(
        landmarks, paths, episodes.goals[some][:, drawn], episodes.reached[some]
    )
    return save_figures(figures | _walk(outcome, drawn, landmarks), folder) + _film(outcome, drawn, folder)


def _shown(outcome: ReachOutcome) -> int:
    """The longest walk that arrived, else the first with a goal that the data came near."""
    assert outcome.episodes is not None
    reached, steps = outcome.episodes.reached, outcome.episodes.steps
    failed = np.where(outcome.reacher.outside(outcome.episodes.goals), -2, -1)
    return int(np.argmax(np.where(reached, steps, failed)))


def _walk(outcome: ReachOutcome, drawn: list[int], landmarks: np.ndarray) -> dict[str, Figure]:
    walk = _planned(outcome)
    if walk is None:
        return {}
    plan, path, reached = walk
    figures = {"plan": plots.draw_plan(landmarks, plan[:, drawn], path[:, drawn], reached)}
    frames = plots.walk_frames(landmarks, plan[:, drawn], path[:, drawn], count=6)
    return figures | {"strip": plots.draw_strip(frames)}


def _film(outcome: ReachOutcome, drawn: list[int], folder: Path) -> list[Path]:
    walk = _planned(outcome)
    if walk is None:
        return []
    plan, path, _ = walk
    landmarks = outcome.reacher.landmarks.observations[:, drawn]
    frames = plots.walk_frames(landmarks, plan[:, drawn], path[:, drawn])
    return [plots.save_animation(frames, folder / "film", milliseconds=80)]


def _planned(outcome: ReachOutcome) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """A plan, the path that was walked and whether it arrived; None where no way leads."""
    episodes, shown = outcome.episodes, _shown(outcome)
    assert episodes is not None
    try:
        plan = outcome.reacher.plan(episodes.starts[shown], episodes.goals[shown])
    except ConfigError:
        return None
    path = episodes.paths[: int(episodes.steps[shown]) + 1, shown]
    return plan, path, bool(episodes.reached[shown])
