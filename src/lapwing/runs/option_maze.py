"""Options of a maze: from a learned φ and from exact eigenvectors, and their effect on a random walk."""

from typing import Any

import numpy as np

from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.laplacian.chain import Chain, true_chain
from lapwing.laplacian.evaluate import SAME_EIGENVALUE, exact_spectrum
from lapwing.laplacian.representation import Representation
from lapwing.options.covering import covering_options
from lapwing.options.eigenoptions import eigenoptions
from lapwing.options.purpose import usable_functions
from lapwing.options.table import OptionTable, no_options
from lapwing.options.walk import MOST_STATES, cover_times, diffusion_time
from lapwing.progress import OnProgress
from lapwing.settings.options import OptionsSettings

COUNT = 16
COUNTS = (4, 8, 16, 32, 64)
"""So many options are measured, as far as there are eigenfunctions."""
GIVEN_UP = 3
"""A walk is given up after so many times the cover time of primitive actions."""
TOO_LONG = 1e9
"""A diffusion time beyond this cannot be distinguished from rounding."""

Functions = tuple[np.ndarray, np.ndarray]
"""Eigenvalues and eigenfunctions (states, functions) without the constant."""


def check_maze(world: GridWorld, settings: OptionsSettings) -> None:
    """Refuse a maze that is too large or too small for the options that are asked for."""
    if not 2 <= world.n_states <= MOST_STATES:
        raise ConfigError(
            f"{world.maze.name} has {world.n_states:,} states, and lapwing options takes mazes of 2 to "
            f"{MOST_STATES:,}; draw another one"
        )
    most = 2 * (world.n_states - 1)
    if (settings.count or 0) > most:
        raise ConfigError(
            f"count={settings.count} is more than {most}, two for each eigenfunction after the constant of "
            f"the {world.n_states} states of {world.maze.name}; lower count"
        )


def counts_for(settings: OptionsSettings, most: int) -> list[int]:
    """How many options are measured: the usual numbers, and the one that is asked for."""
    count = default_count(settings, most)
    return sorted({count, *(number for number in COUNTS if number <= most)})


def default_count(settings: OptionsSettings, most: int) -> int:
    """How many options are made."""
    return min(COUNT, most) if settings.count is None else settings.count


def learned_functions(states: np.ndarray, representation: Representation) -> Functions:
    """The trusted eigenfunctions of φ at the states."""
    columns = np.array(usable_functions(representation)) - 1
    functions = np.asarray(representation.eigenfunctions(states), np.float64)
    return representation.eigenvalues[columns].astype(np.float64), functions[:, columns]


def exact_functions(world: GridWorld, dim: int, learned: Functions | None = None) -> Functions:
    """At most `dim` exact eigenfunctions; where eigenvalues repeat, the basis that is nearest to the learned.

    Any basis of such an eigenspace is as exact as another, and each gives other options: only one and the
    same can be compared.
    """
    spectrum = exact_spectrum(true_chain(world.transition_matrix()), min(dim, world.n_states))
    values, functions = spectrum.eigenvalues, spectrum.functions.copy()
    if learned is not None:
        padded = np.column_stack([np.ones(world.n_states), learned[1]])
        functions = aligned(spectrum.chain, values, functions, padded)
    return values[1:dim], functions[:, 1:dim]


def aligned(chain: Chain, values: np.ndarray, functions: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Exact eigenfunctions, within each eigenspace rotated to be as near as can be to other functions.

    Where those are fewer than the eigenspace has dimensions, the rest of its basis is orthogonal to them.
    """
    turned, begin = functions.copy(), 0
    while begin < len(values):
        end = int(np.searchsorted(values, values[begin] + SAME_EIGENVALUE, side="right"))
        space, wanted = functions[:, begin:end], like[:, begin:end]
        near = wanted.shape[1]
        if end - begin > 1 and near:
            left, _, right = np.linalg.svd(space.T @ (chain.rho[:, None] * wanted))
            turned[:, begin:end] = space @ np.column_stack([left[:, :near] @ right, left[:, near:]])
        begin = end
    return turned


def make_table(world: GridWorld, functions: Functions, count: int, settings: OptionsSettings) -> OptionTable:
    """The options."""
    if settings.kind == "covering":
        return covering_options(world, *functions, count)
    return eigenoptions(world.next_state, functions[1], count, settings.gamma)


def measured(
    world: GridWorld,
    sources: dict[str, Functions],
    settings: OptionsSettings,
    on_progress: OnProgress | None = None,
    counts: list[int] | None = None,
) -> list[dict[str, Any]]:
    """The random walk without options, then with 4 to 64 options of each source.

    Args:
        world: the maze.
        sources: eigenvalues and eigenfunctions, by what they are.
        settings: which options, and how a walk uses them.
        on_progress: called with (phase, done, all, metrics).
        counts: how many options; None is the usual numbers.
    """
    most = 2 * min(functions.shape[1] for _, functions in sources.values())
    counts = counts_for(settings, most) if counts is None else counts
    rows = [_row(world, "primitive", no_options(world.n_states), settings, 10**6)]
    given_up = int(GIVEN_UP * rows[0]["cover"])
    done, total = 1, 1 + len(sources) * len(counts)
    for name, functions in sources.items():
        table = make_table(world, functions, max(counts), settings)
        for count in counts:
            if on_progress:
                on_progress("measuring", done, total, {})
            rows.append(_row(world, name, table.first(count), settings, given_up))
            done += 1
    if on_progress:
        on_progress("measuring", total, total, {})
    return rows


def _row(
    world: GridWorld, source: str, table: OptionTable, settings: OptionsSettings, most: int
) -> dict[str, Any]:
    longest = settings.longest
    shared = diffusion_time(world.next_state, table, settings.option_share, longest=longest)
    alike = diffusion_time(world.next_state, table, None, longest=longest)
    times = cover_times(
        world.next_state,
        table,
        settings.option_share,
        seeds=settings.walks,
        most=most,
        longest=longest,
        seed=settings.seed,
    )
    return {
        "source": source,
        "options": len(table.names),
        "decisions": _resolved(shared.decisions),
        "steps": _resolved(shared.steps),
        "decisions_alike": _resolved(alike.decisions),
        "steps_alike": _resolved(alike.steps),
        "cover": float(times.mean()),
        "cover_spread": float(times.std(ddof=1)),
        "covered": float(np.mean(times < most)),
    }


def _resolved(time: float) -> float | None:
    return time if 0 <= time < TOO_LONG else None
