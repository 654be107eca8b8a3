"""Figures of mazes, and of a learned representation."""

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lapwing.envs.gridworld import AGENT, GridWorld
from lapwing.laplacian.evaluate import rank_correlation
from lapwing.plots.style import DISTANCES, DIVERGING, EXACT, LEARNED, WALL


def draw_map(axis, world: GridWorld, values: np.ndarray, **options: Any):
    """A number for each state, in colours; returns the image."""
    grid = np.full(world.maze.floor.shape, np.nan)
    grid[world.maze.floor] = values
    axis.set_facecolor(WALL)
    axis.imshow(np.zeros((*grid.shape, 3)) + to_rgb(WALL))
    return axis.imshow(grid, **options)


def draw_eigenfunctions(
    world: GridWorld, functions: np.ndarray, eigenvalues: np.ndarray, *, first: int = 1, most: int = 12
) -> Figure:
    """Eigenfunctions as heat maps over the maze, from column `first` on: the constant is left out."""
    shown = min(most, functions.shape[1] - first)
    columns = max(1, min(4, shown))
    rows = max(1, -(-shown // columns))
    figure = Figure(figsize=(2.4 * columns, 2.6 * rows), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axis in axes:
        axis.set_axis_off()
    for axis, index in zip(axes, range(first, first + shown), strict=False):
        values = functions[:, index]
        limit = np.abs(values).max() or 1.0
        draw_map(axis, world, values, cmap=DIVERGING, vmin=-limit, vmax=limit)
        axis.set_title(title_of(index, eigenvalues), fontsize=9)
    return figure


def title_of(index: int, eigenvalues: np.ndarray) -> str:
    """What the eigenfunction of a column is called, counted from 1."""
    return f"$f_{{{index + 1}}}$   λ = {eigenvalues[index]:.4f}"


def draw_spectrum(eigenvalues: np.ndarray, exact: np.ndarray | None, operator: str | None) -> Figure:
    """Learned eigenvalues against the exact ones."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axis = figure.subplots()
    index = np.arange(1, len(eigenvalues) + 1)
    if exact is not None:
        axis.plot(
            np.arange(1, len(exact) + 1),
            exact,
            "o",
            color=EXACT,
            mfc="none",
            ms=8,
            label=f"exact ({operator})",
        )
    axis.plot(index, eigenvalues, ".", color=LEARNED, label="learned")
    axis.set_xlabel("eigenfunction")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel("eigenvalue of the Laplacian")
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_distances(world: GridWorld, distances: dict[str, np.ndarray], goal_state: int) -> Figure:
    """Distance to a goal, in steps and in the embedding: a map for each, by title."""
    columns = max(1, min(4, len(distances)))
    rows = max(1, -(-len(distances) // columns))
    figure = Figure(figsize=(2.9 * columns, 3.1 * rows), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    row, column = world.cells[goal_state]
    for axis in axes[len(distances) :]:
        axis.set_axis_off()
    for axis, (title, values) in zip(axes, distances.items(), strict=False):
        image = draw_map(axis, world, values, cmap=DISTANCES)
        axis.plot(column, row, "*", color="red", ms=9)
        axis.set_title(title, fontsize=9)
        axis.set_axis_off()
        figure.colorbar(image, ax=axis, shrink=0.7)
    return figure


def draw_learning(metrics: list[dict[str, Any]]) -> Figure:
    """The loss over the steps, and its two parts where it has them."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axis = figure.subplots()
    steps = [row["step"] for row in metrics]
    for name, label in (
        ("loss", "loss"),
        ("graph_drawing", "graph drawing G"),
        ("penalty", "orthonormality penalty"),
    ):
        if name in metrics[0]:
            axis.plot(steps, [row[name] for row in metrics], label=label)
    axis.set_yscale("symlog", linthresh=0.01)
    axis.set_xlabel("step")
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_trials(names: list[str], scores: list[float]) -> Figure:
    """What was tried, with its score as a bar: lower is better. The first was chosen."""
    figure = Figure(figsize=(7, 0.6 * len(names) + 0.8), layout="constrained")
    axis = figure.subplots()
    places = np.arange(len(names))
    bars = axis.barh(places, scores, color=[LEARNED, *["0.7"] * (len(names) - 1)], height=0.4)
    axis.bar_label(bars, fmt="%.4g", padding=3, fontsize=8)
    for place, name in zip(places, names, strict=True):
        axis.text(0, place - 0.25, name, fontsize=7, va="bottom")
    axis.set_yticks([])
    axis.set_ylim(len(names) - 0.5, -0.9)
    axis.margins(x=0.15)
    axis.set_xlabel("sum of eigenvalues on validation episodes")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_scatter(functions: np.ndarray, eigenvalues: np.ndarray, *, first: int = 1) -> Figure:
    """States in the plane of columns `first` and the next, coloured by the one after: f₂, f₃ and f₄."""
    figure = Figure(figsize=(4.6, 4), layout="constrained")
    axis = figure.subplots()
    x, y, colour = (min(index, functions.shape[1] - 1) for index in range(first, first + 3))
    points = axis.scatter(functions[:, x], functions[:, y], c=functions[:, colour], s=6)
    figure.colorbar(points, ax=axis, label=title_of(colour, eigenvalues))
    axis.set_xlabel(title_of(x, eigenvalues))
    axis.set_ylabel(title_of(y, eigenvalues))
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_over_features(
    points: np.ndarray,
    names: tuple[str, str],
    functions: np.ndarray,
    eigenvalues: np.ndarray,
    *,
    first: int = 1,
    rows_and_columns: bool = False,
    most: int = 8,
) -> Figure:
    """Eigenfunctions over two features of the states.

    Args:
        points: the two features, one row a state.
        names: of the features.
        functions: eigenfunctions at those states, as columns.
        eigenvalues: of the functions.
        first: the first column that is drawn, so that the constant is left out.
        rows_and_columns: whether the features are a row, which counts downwards, and a column.
        most: how many are drawn.
    """
    shown = range(first, min(first + most, functions.shape[1]))
    maps = {title_of(index, eigenvalues): functions[:, index] for index in shown}
    return _scattered(points, names, maps, DIVERGING, rows_and_columns=rows_and_columns)


def draw_distances_over_features(
    points: np.ndarray,
    names: tuple[str, str],
    distances: dict[str, np.ndarray],
    goal: int,
    *,
    rows_and_columns: bool = False,
) -> Figure:
    """Distances to one of the states, over two features of them.

    Args:
        points: the two features, one row a state.
        names: of the features.
        distances: of all states, by title.
        goal: the state that they lead to, which gets a star.
        rows_and_columns: whether the features are a row, which counts downwards, and a column.
    """
    figure = _scattered(points, names, distances, DISTANCES, rows_and_columns=rows_and_columns)
    there = points[goal, ::-1] if rows_and_columns else points[goal]
    for axis in figure.axes[: len(distances)]:
        axis.plot(*there, "*", color="red", ms=10)
    return figure


def _scattered(
    points: np.ndarray,
    names: tuple[str, str],
    maps: dict[str, np.ndarray],
    cmap: str,
    *,
    rows_and_columns: bool,
) -> Figure:
    """A panel of coloured points for each of the maps."""
    columns = max(1, min(4, len(maps)))
    rows = max(1, -(-len(maps) // columns))
    figure = Figure(figsize=(3 * columns, 2.7 * rows + 0.3), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True))
    x, y = points[:, ::-1].T if rows_and_columns else points.T
    size = float(np.clip(20_000 / len(points), 1, 8))
    for axis in axes[len(maps) :]:
        axis.set_axis_off()
    for axis, (title, values) in zip(axes, maps.items(), strict=False):
        limit = np.quantile(np.abs(values), 0.99) or 1.0
        least = min(0.0, float(np.min(values)))
        if cmap == DIVERGING and least < 0:  # with 0 in the middle
            least = -limit
        dots = axis.scatter(x, y, c=values, s=size, lw=0, cmap=cmap, vmin=least, vmax=limit, rasterized=True)
        figure.colorbar(dots, ax=axis, shrink=0.7)
        axis.set_title(title, fontsize=9)
        axis.set_facecolor("0.85")  # for zero may be white
        axis.spines[["top", "right"]].set_visible(False)
    lay_out_features(figure, axes[: len(maps)], names, rows_and_columns=rows_and_columns)
    return figure


def lay_out_features(
    figure: Figure, axes: np.ndarray, names: tuple[str, str], *, rows_and_columns: bool
) -> None:
    """Name the two features that panels are over, or have rows downwards as in a maze.

    Args:
        figure: that the panels are in.
        axes: of the panels, which are shared.
        names: of the features, across and upwards.
        rows_and_columns: whether the features are a row, which counts downwards, and a column.
    """
    if not rows_and_columns:
        figure.supxlabel(names[0], fontsize=9)
        figure.supylabel(names[1], fontsize=9)
        return
    for axis in axes:
        axis.set_aspect("equal")
    axes[0].invert_yaxis()


def draw_observations(world: GridWorld, state: int) -> Figure:
    """A maze with the agent at `state`, and that state as index, position and image."""
    figure = Figure(figsize=(12, 3.3), layout="constrained")
    maze, index, position, image = figure.subplots(1, 4, width_ratios=(1, 1.2, 1, 1))
    row, column = world.cells[state]
    for axis, title in ((maze, world.maze.name), (image, "image: pixels")):
        axis.set_axis_off()
        axis.set_title(title)
    maze.imshow(np.kron(world.background(), np.ones((16, 16, 1), np.uint8)))
    maze.plot(16 * column + 7.5, 16 * row + 7.5, "o", color=np.array(AGENT) / 255, ms=8)
    image.imshow(world.observations("image")[state])
    index.bar(np.arange(world.n_states), np.arange(world.n_states) == state, width=1.0, color=LEARNED)
    index.set(title=f"index: state {state} of {world.n_states}", xlabel="entry of the one-hot vector")
    everywhere = world.observations("position")
    position.plot(everywhere[:, 1], everywhere[:, 0], ".", color="0.8", ms=4)
    position.plot(*everywhere[state, ::-1], "o", color=LEARNED, ms=8)
    position.set(title="position: row and column", xlim=(-1, 1), ylim=(1, -1), aspect="equal")
    for axis in (index, position):
        axis.spines[["top", "right"]].set_visible(False)
    return figure


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
