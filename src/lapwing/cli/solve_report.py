"""The report on a solved reward: a table and a figure."""

from pathlib import Path

from rich.table import Table

from lapwing import plots
from lapwing.cli.report import measure_table, save_figures
from lapwing.runs.solve_maze import Solved


def solved_table(solved: Solved) -> Table:
    """The return of the policy beside the best there is."""
    result = solved.result
    table = measure_table(f"{result['maze']}, {result['dim']} eigenfunctions, gamma {result['gamma']:g}")
    table.add_row("return", f"{result['return']:.4g}", f"discounted, mean over {result['states']:,} starts")
    note = "value iteration on the true maze"
    if result["share"] is not None:
        note = f"{note}; {result['share']:.1%} of it are reached"
    table.add_row("  optimum", f"{result['optimal_return']:.4g}", note)
    table.add_row(
        "solving, ms", f"{result['milliseconds']:.1f}", "for this reward, φ and the moves being known"
    )
    (row, column), length = result["path"][0], len(result["path"]) - 1
    table.add_row("path", f"{length}", f"steps from ({row},{column}) until it stays or comes back")
    return table


def draw_solved(solved: Solved, folder: Path) -> Path:
    """The reward, its value, the moves and the path, as `solution.png` and `.svg`."""
    figure = plots.draw_solution(solved.world, solved.rewards, solved.values, solved.actions, solved.path)
    return save_figures({"solution": figure}, folder)[0]
