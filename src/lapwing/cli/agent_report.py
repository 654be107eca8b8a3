"""The report on a trained agent or a comparison of rewards: a table of measures, and figures."""

from pathlib import Path

import numpy as np
from rich.table import Table

from lapwing import plots
from lapwing.cli.report import measure_table, save_figures
from lapwing.envs.simulator import Simulator, TopView
from lapwing.runs.compare import Comparison
from lapwing.runs.train_ddpg import ControlOutcome
from lapwing.runs.train_dqn import AgentOutcome
from lapwing.settings.agents import AgentSettings, ControlSettings
from lapwing.shaping.audit import Audit, ranking

ABOUT_AUDIT = (
    "corr.: rank correlation with true steps. optima: cells where every move looks worse. flat: cells where "
    "no move looks better. astray: cells whose best-looking move leads away. greedy: starts from which "
    "taking it arrives. ahead: how many steps an agent must look ahead to come within 2 of the optimum. "
    "contrast: how clearly the best move stands out. best: the return of the policy that is optimal for the "
    "reward."
)
FILM_FRAMES = 60
"""About so many pictures of an agent at work."""


def agent_table(outcome: AgentOutcome) -> Table:
    """How an agent performed, and what the audit says of its reward."""
    result, shaped = outcome.result, outcome.shaped
    reward = f", reward {result['reward']}" if result["reward"] else ", the environment's own reward"
    table = measure_table(f"{result['target']}{reward}")
    last = f"{result['evaluated_at'][-1]:,}"
    table.add_row("mean return", f"{result['return']:.3f}", f"of the greedy policy after {last} steps")
    if shaped is not None:
        row, column = result["goal"]
        table.add_row(
            "  optimum", f"{result['optimal_return']:.3f}", f"over all starts, goal ({row},{column})"
        )
        steps = result["steps_to_optimum"]
        table.add_row("  reached", "never" if steps is None else f"{steps:,}", "steps until within 2 of it")
        ahead = _lookahead(shaped.audit)
        table.add_row("lookahead", ahead, "steps that an agent must look ahead with this reward")
        success = f"{shaped.audit.greedy_success:.2f}"
        table.add_row("greedy success", success, "of the policy that is greedy in the reward")
    seconds = f"{result['train_seconds']:.1f}"
    table.add_row("training, s", seconds, "")
    return table


def draw_agent(outcome: AgentOutcome, folder: Path) -> list[Path]:
    """The learning curve; in a maze also the reward, the policy, and the policy at work."""
    result, shaped = outcome.result, outcome.shaped
    curve = plots.draw_returns(result["evaluated_at"], result["returns"], result.get("optimal_return"))
    figures = {"returns": curve}
    if shaped is None:
        return save_figures(figures, folder)
    world = shaped.task.world
    values = outcome.agent.values(world.observations(AgentSettings.from_json(result["settings"]).observation))
    figures["reward"] = plots.draw_audits(shaped.task, [shaped.audit])
    figures["policy"] = plots.draw_policy(shaped.task, values)
    frames = plots.policy_frames(shaped.task, values.argmax(axis=1))
    return [*save_figures(figures, folder), plots.save_animation(frames, folder / "policy")]


def control_table(outcome: ControlOutcome) -> Table:
    """How an agent performed in its arena, and whether φ's distance leads to the goal."""
    result = outcome.result
    settings = ControlSettings.from_json(result["settings"])
    title = f"{result['target']}, reward {result['reward']} ({settings.preset})"
    table = measure_table(title)
    last = f"{result['evaluated_at'][-1]:,}"
    starts = len(outcome.episodes.reached)
    table.add_row("success", f"{result['success']:.0%}", f"of {starts} starts, after {last} steps")
    left = f"{result['final_distance']:.2f}"
    table.add_row("distance left", left, "mean shortest path to the goal at the end")
    steps = result["steps_to_success"]
    table.add_row("steps to 90 %", "never" if steps is None else f"{steps:,}", "success")
    if {"gate", "gate_l2"} <= result.keys():
        beside = f"rank correlation with the shortest path to the goal ({settings.filter}); l2: "
        table.add_row("φ's distance", f"{result['gate']:.3f}", f"{beside}{result['gate_l2']:.3f}")
    table.add_row("training, s", f"{result['train_seconds']:.1f}", "")
    return table


def draw_control(outcome: ControlOutcome, folder: Path) -> list[Path]:
    """Success over the steps, φ's distance, where the policy goes, and a film from the farthest start."""
    result, arena, episodes = outcome.result, outcome.arena, outcome.episodes
    figures = {"success": plots.draw_success(result["evaluated_at"], result["successes"])}
    if outcome.representation is not None:
        filter_ = ControlSettings.from_json(result["settings"]).filter
        maps = {f"φ's distance to the goal, {filter_}": outcome.goal_map()}
        figures["goal"] = plots.draw_arena_maps(arena, maps, cmap="viridis_r")
    figures["paths"] = plots.draw_paths(arena, episodes.paths, episodes.reached)
    frames = filmed(outcome)
    figures["strip"] = plots.draw_strip(frames)
    return [*save_figures(figures, folder), plots.save_animation(frames, folder / "film", milliseconds=60)]


def filmed(outcome: ControlOutcome) -> list[np.ndarray]:
    """The agent from the start that is farthest from the goal, of those it reaches it from, if any."""
    arena, episodes = outcome.arena, outcome.episodes
    ways = arena.path_lengths(episodes.paths[0])
    start = int(np.argmax(ways + episodes.reached * ways.max()))
    away = np.linalg.norm(episodes.paths[:, start] - arena.goal, axis=1)
    there = np.flatnonzero(away <= arena.goal_radius)
    last = int(there[0]) + 10 if len(there) else len(away) - 1
    simulator = Simulator(arena)
    view, row = TopView(simulator), simulator.at_rest(episodes.paths[:1, start])
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
    return save_figures({"audit": figure}, folder)


def _lookahead(audit: Audit) -> str:
    return "never" if audit.lookahead is None else str(audit.lookahead)
