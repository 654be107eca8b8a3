"""One call for each figure of a representation: `rep.plot()`."""

from typing import Any, Literal, get_args

import numpy as np
from matplotlib.figure import Figure

from lapwing.envs.arena import Arena, parse_arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.simulator import goal_observation, point_observations
from lapwing.errors import ConfigError, nearest
from lapwing.laplacian.representation import Representation
from lapwing.mazes import parse_maze
from lapwing.plots.reaching import draw_arena_maps
from lapwing.plots.representations import (
    draw_distances,
    draw_distances_over_features,
    draw_eigenfunctions,
    draw_over_features,
    draw_scatter,
    draw_spectrum,
    telling_features,
    title_of,
)
from lapwing.plots.style import DISTANCES, DIVERGING

Picture = Literal["eigenfunctions", "distances", "embedding", "spectrum"]
SHOWN_IN_ARENA = 8


def draw_representation(
    representation: Representation, observations: Any = None, kind: Picture | None = None
) -> Figure:
    """A picture of a representation.

    Args:
        representation: φ.
        observations: where to draw it, a batch of vectors; None is all of a maze or an arena that it was
            learned from, and for `embedding` the states that the representation keeps.
        kind: `eigenfunctions` and `distances` (by each name, to the goal of a maze or else to the state
            where f₂ is largest in size) are maps; `embedding` has states in the plane of f₂ and f₃;
            `spectrum` the eigenvalues. None is `eigenfunctions` where there is something to draw them over,
            else `embedding`, and `spectrum` for a single dimension.
    """
    kind = _chosen_kind(representation, observations) if kind is None else kind
    if kind not in get_args(Picture):
        raise ConfigError(f"unknown picture {kind!r}; {nearest(str(kind), get_args(Picture))}")
    if kind == "spectrum":
        return draw_spectrum(representation.eigenvalues, None, None)
    if representation.dim < 2:
        raise ConfigError(
            f"kind {kind!r} needs dim of 2 or more, not {representation.dim}; draw the spectrum"
        )
    if kind == "embedding":
        functions = representation.reference if observations is None else _at(representation, observations)
        return draw_scatter(functions, representation.eigenvalues, first=_first(representation))
    if observations is not None:
        return _over_features(representation, np.asarray(observations), kind)
    if (world := _world(representation)) is not None:
        return _over_maze(representation, world, kind)
    if (arena := _arena(representation)) is not None:
        return _over_arena(representation, arena, kind)
    raise ConfigError(f"kind {kind!r} needs observations to draw over: rep.plot(observations)")


def _chosen_kind(representation: Representation, observations: Any) -> Picture:
    if representation.dim < 2:
        return "spectrum"
    if observations is not None:
        return "eigenfunctions" if _has_features(representation) else "embedding"
    known = representation.config.get("maze") or representation.config.get("arena")
    return "eigenfunctions" if known else "embedding"


def _first(representation: Representation) -> int:
    """The first column worth drawing: the constant comes before it, where eigenfunctions are rotated."""
    return 1 if representation.rotated else 0


def _has_features(representation: Representation) -> bool:
    shape = representation.spec.shape
    return len(shape) == 1 and shape[0] > 1


def _observation_kind(representation: Representation) -> str:
    return representation.config.get("settings", {}).get("observation", "position")


def _at(representation: Representation, observations: Any) -> np.ndarray:
    return np.asarray(representation.eigenfunctions(np.asarray(observations)))


def _world(representation: Representation) -> GridWorld | None:
    text = representation.config.get("maze")
    name = representation.config.get("target", "maze")
    return None if text is None else GridWorld(parse_maze(text, name=name))


def _arena(representation: Representation) -> Arena | None:
    described = representation.config.get("arena")
    return None if described is None else parse_arena(described)


def _distances(representation: Representation, states: np.ndarray, goal: np.ndarray) -> dict[str, np.ndarray]:
    """The distance to a goal by each name."""
    return {
        f"distance, {name}": representation.distance(states, goal, name) for name in representation.distances
    }


def _over_maze(representation: Representation, world: GridWorld, kind: Picture) -> Figure:
    states, first = world.observations(_observation_kind(representation)), _first(representation)
    if kind == "eigenfunctions":
        functions = representation.eigenfunctions(states)
        return draw_eigenfunctions(world, functions, representation.eigenvalues, first=first)
    goal = world.goal_state if world.goal_state is not None else 0
    maps = {"steps": world.steps_to(goal)} | _distances(representation, states, states[goal])
    return draw_distances(world, maps, goal)


def _over_arena(representation: Representation, arena: Arena, kind: Picture) -> Figure:
    whole, first = _observation_kind(representation) == "state", _first(representation)
    states = point_observations(arena, whole=whole)
    if kind == "eigenfunctions":
        functions, eigenvalues = representation.eigenfunctions(states), representation.eigenvalues
        shown = range(first, min(first + SHOWN_IN_ARENA, representation.dim))
        maps = {title_of(index, eigenvalues): functions[:, index] for index in shown}
        return draw_arena_maps(arena, maps, cmap=DIVERGING)
    maps = {"shortest path": arena.path_lengths(arena.points)}
    maps |= _distances(representation, states, goal_observation(arena, whole=whole))
    return draw_arena_maps(arena, maps, cmap=DISTANCES)


def _over_features(representation: Representation, observations: np.ndarray, kind: Picture) -> Figure:
    """Over the two features that go most with the eigenfunctions."""
    if not _has_features(representation):
        raise ConfigError(
            f"kind {kind!r} is drawn over features of vectors, and φ sees observations of shape "
            f"{representation.spec.shape}; draw the embedding"
        )
    functions, first = _at(representation, observations), _first(representation)
    features = telling_features(observations, functions[:, first:])
    names = f"feature {features[0]}", f"feature {features[1]}"
    points = observations[:, list(features)]
    if kind == "eigenfunctions":
        return draw_over_features(points, names, functions, representation.eigenvalues, first=first)
    end = int(np.argmax(np.abs(functions[:, first])))
    maps = _distances(representation, observations, observations[end])
    return draw_distances_over_features(points, names, maps, end)
