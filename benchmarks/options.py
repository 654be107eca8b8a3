"""Options in mazes: those of a learned φ beside those of exact eigenvectors, and the random walk without any.

Diffusion time: expected decisions between two random states. Cover time: steps until every state was seen,
100 walks. A fifth of the decisions take an option. What was measured is kept in
`results/options.json`, and what is interrupted resumes there.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.rows import Row
from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.target import open_target
from lapwing.mazes import read_maze
from lapwing.options.table import no_options
from lapwing.options.walk import cover_times
from lapwing.runs.option_maze import (
    COUNTS,
    Functions,
    exact_functions,
    learned_functions,
    make_table,
    measured,
)
from lapwing.settings.learn import LearnSettings
from lapwing.settings.options import OptionsSettings

TABLE = Path("results/options.json")
KINDS: dict[Any, tuple[int, ...]] = {"eigen": COUNTS, "covering": (4, 16, 64)}
COMPARED = (
    *("FourRoom", "HardMaze", "GridMaze-17", "GridMaze-19"),
    *("GridRoom-1", "GridRoom-4", "GridRoom-16", "GridRoomSym-4"),
)
LARGE = ("GridRoom-32", "GridRoom-64")
"""Of 544 and 1,088 states; of these the cover time alone is measured."""
DIM, USUAL = 33, 16


def measure() -> list[Row]:
    done = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for name in (*COMPARED, *LARGE):
        if name not in done:
            done[name] = measure_maze(name) if name in COMPARED else measure_cover(name)
            TABLE.write_text(json.dumps(done) + "\n")
    compared = [row for name in COMPARED for row in maze_rows(name, done[name])]
    return compared + [cover_row(name, done[name]) for name in LARGE]


def learned_in(world: GridWorld) -> Functions:
    """The eigenfunctions of a φ that is learned from a million steps."""
    chosen = LearnSettings(dim=DIM)
    representation = learn_target(open_target(world.maze, chosen), chosen)
    return learned_functions(world.observations("position"), representation)


def measure_maze(name: str) -> dict[str, list[dict[str, Any]]]:
    """What was measured with eigenoptions and with covering options."""
    world = GridWorld(read_maze(name))
    learned, found = learned_in(world), {}
    for kind, counts in KINDS.items():
        exact = exact_functions(world, world.n_states if kind == "covering" else DIM, learned)
        sources = {"learned": learned, "exact": exact}
        found[kind] = measured(world, sources, OptionsSettings(kind=kind), counts=list(counts))
    return found


def measure_cover(name: str) -> dict[str, float]:
    """The mean cover time, without options and with some of the learned φ."""
    world, settings = GridWorld(read_maze(name)), OptionsSettings()
    functions, how = learned_in(world), {"seeds": settings.walks}
    walk = partial(cover_times, world.next_state, **how)
    found = {"random": float(walk(no_options(world.n_states), None, most=10**6).mean())}
    for kind, counts in KINDS.items():
        chosen = OptionsSettings(kind=kind)
        table = make_table(world, functions, max(counts), chosen)
        for count in counts[-3:]:
            most = int(3 * found["random"])
            times = walk(table.first(count), settings.option_share, most=most)
            found[f"{kind} {count}"] = float(times.mean())
    return found


def cover_row(name: str, found: dict[str, float]) -> Row:
    """The best cover time of a large maze."""
    with_options = {how: time for how, time in found.items() if how != "random"}
    best = min(with_options, key=lambda how: with_options[how])
    note = "; ".join(f"{how}: {time:.0f}" for how, time in found.items())
    claim = f"{name}: cover time over the random walk's, learned, {best} options"
    return Row(claim, found[best] / found["random"], 0.5, True, f"steps, {note}")


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
        about = f"decisions, primitive {measures[0]['decisions']:.0f}; learned/exact {times}"
        ratio = "diffusion time, learned over exact"
        rows.append(Row(f"{name}, {kind}: {ratio}, {USUAL} options", ratios[USUAL], 1.1, True, about))
        worst = max(ratios, key=lambda count: ratios[count])
        rows.append(Row(f"{name}, {kind}: {ratio}, the worst, {worst} options", ratios[worst]))
        base = measures[0]["cover"]
        best = min(counts, key=lambda count: by["learned", count]["cover"])
        covers = "; ".join(f"{count}: {_both(by, count, 'cover')}" for count in counts)
        rows.append(
            Row(
                f"{name}, {kind}: cover time over the random walk's, learned, {best} options",
                by["learned", best]["cover"] / base,
                0.5 if name == "FourRoom" and kind == "eigen" else None,
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
