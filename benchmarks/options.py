"""Options in mazes: those of a learned φ beside those of exact eigenvectors, and the random walk without any.

Diffusion time: expected decisions between two random states. Cover time: steps until every state was seen,
100 walks. A fifth of the decisions take an option.
"""

from typing import Any

from benchmarks.rows import Row
from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.target import open_target
from lapwing.mazes import read_maze
from lapwing.runs.option_maze import COUNTS, exact_functions, learned_functions, measured
from lapwing.settings.learn import LearnSettings
from lapwing.settings.options import OptionsSettings

COMPARED = ("FourRoom", "HardMaze", "GridMaze-19", "GridMaze-26", "GridMaze-32")
LARGE = ("GridRoom-16", "GridRoom-32", "GridRoom-64")
COVERED = ("FourRoom", "GridRoom-32", "GridRoom-64")
DIM = 33


def measure() -> list[Row]:
    return [row for name in (*COMPARED, *LARGE) for row in maze_rows(name, measure_maze(name))]


def measure_maze(name: str) -> dict[str, list[dict[str, Any]]]:
    """What was measured with eigenoptions and with covering options, φ learned from a million steps."""
    world, chosen = GridWorld(read_maze(name)), LearnSettings(dim=DIM)
    target = open_target(name, chosen)
    representation = learn_target(target, chosen)
    learned = learned_functions(world, world.observations("position"), representation, max(COUNTS))
    found = {}
    for kind in ("eigen", "covering"):
        settings = OptionsSettings(kind=kind)
        exact = exact_functions(world, world.n_states if kind == "covering" else DIM, learned)
        sources = {"learned": learned, "exact": exact}
        counts = list(COUNTS) if kind == "eigen" else [4, 16, 64]
        found[kind] = measured(world, sources, settings, counts=counts)
    return found


def maze_rows(name: str, found: dict[str, list[dict[str, Any]]]) -> list[Row]:
    """The claims on a maze."""
    rows = []
    for kind, measures in found.items():
        by = {(row["source"], row["options"]): row for row in measures}
        counts = sorted({row["options"] for row in measures[1:]})
        ratios = {
            count: by["learned", count]["decisions"] / by["exact", count]["decisions"]
            for count in counts
            if by["learned", count]["decisions"] and by["exact", count]["decisions"]
        }
        times = "; ".join(f"{count}: {_both(by, count, 'decisions')}" for count in counts)
        rows.append(
            Row(
                f"{name}, {kind}: diffusion time, learned over exact, the worst of {_listed(ratios)} options",
                max(ratios.values()),
                1.1,
                True,
                f"decisions, primitive {measures[0]['decisions']:.0f}; learned/exact {times}",
            )
        )
        base = measures[0]["cover"]
        best = min(counts, key=lambda count: by["learned", count]["cover"])
        covers = "; ".join(f"{count}: {_both(by, count, 'cover')}" for count in counts)
        rows.append(
            Row(
                f"{name}, {kind}: cover time over the random walk's, learned, {best} options",
                by["learned", best]["cover"] / base,
                0.5 if name in COVERED and kind == "eigen" else None,
                True,
                f"steps, random {base:.0f}; learned/exact {covers} (given up at {3 * base:.0f})",
            )
        )
        steps = "; ".join(f"{count}: {_both(by, count, 'steps')}" for count in counts)
        fewest = min((by["learned", count]["steps"] or float("inf")) for count in counts)
        rows.append(
            Row(
                f"{name}, {kind}: steps between two states over the random walk's, the best number",
                fewest / measures[0]["steps"],
                note=f"steps, learned/exact {steps}",
            )
        )
    return rows


def _both(by: dict[Any, dict[str, Any]], count: int, measure: str) -> str:
    values = (by[source, count][measure] for source in ("learned", "exact"))
    return "/".join("> 1e9" if value is None else f"{value:.0f}" for value in values)


def _listed(ratios: dict[int, float]) -> str:
    return ", ".join(map(str, ratios))
