"""What a page is made of: a run folder, or a representation with or without observations."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.data.ogbench import OGBenchData
from lapwing.data.source import recall
from lapwing.envs.arena import Arena, parse_arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.plane import Plane
from lapwing.errors import ConfigError
from lapwing.exploring import scenes
from lapwing.exploring.actions import ALONE, CONTINUOUS, REACHED, Actions, actions_of
from lapwing.exploring.network import functions_at
from lapwing.exploring.scenes import Scene
from lapwing.laplacian.representation import Representation, load_representation
from lapwing.laplacian.target import Target
from lapwing.mazes import Maze, parse_maze
from lapwing.progress import OnProgress
from lapwing.reaching.files import load_reacher
from lapwing.reaching.reacher import Reacher
from lapwing.runs.folder import RunFolder
from lapwing.runs.learn import reopen_target

MOST_STATES = 5_000
"""So many states are shown at most, where they can be thinned."""
ON_A_FLOOR = 2_000
"""So many of those that are a sample over a floor plan: nearer ones would say little of which way is down."""
SAMPLED = 20_000
"""So many observations of data are looked at to choose from."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A representation, where its states are, and what is known of how it was learned."""

    representation: Representation
    scene: Scene
    source: dict[str, Any] = field(default_factory=dict)
    """What config.json says of the target."""
    settings: dict[str, Any] = field(default_factory=dict)
    """As they were given."""
    command: str = "learn"
    """The command that made the run."""
    result: dict[str, Any] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    path: Path | None = None
    reacher: Reacher | None = None
    actions: Actions | str = ALONE
    """What actions do, where a maze does not say it; or why that is not known."""


def open_run(path: Path, on_progress: OnProgress | None = None) -> Opened:
    """A finished run of `lapwing learn` or `lapwing reach`; or a file of `Representation.save`."""
    if path.is_file():
        return open_representation(load_representation(path))
    folder = RunFolder(path)
    config = folder.config()
    kind = config.get("kind")
    if kind == "agent":
        raise ConfigError(f"{path} holds an agent; its φ, if it has one, is in {path / 'representation'}")
    if kind not in (None, "reacher"):
        held = "options" if kind == "options" else f"a run of the kind {kind!r}"
        raise ConfigError(f"{path} holds {held}; name the run of lapwing learn or of lapwing reach")
    command = "learn" if kind is None else "reach"
    if not folder.finished:
        raise ConfigError(f"{path} holds an unfinished run; resume it with lapwing {command} … --resume")
    kept: dict[str, Any] = {
        "source": config["target"],
        "settings": config["settings"],
        "command": command,
        "result": folder.result(),
        "metrics": folder.metrics(),
        "path": path,
    }
    if command == "reach":
        return _reach_run(folder, kept)
    representation = load_representation(folder.representation)
    scene = _known_scene(representation, config["target"], folder)
    actions: Actions | str = CONTINUOUS.format(kept["result"].get("target", path))
    if scene is None:
        target = reopen_target(path, on_progress=on_progress)[1]
        scene = _scene_of_data(representation, target, config["target"])
        actions = actions_of(representation, target, scene)
    return Opened(representation, scene, actions=actions, **kept)


def open_representation(representation: Representation, observations: Any = None) -> Opened:
    """A representation by itself: over the maze or arena it knows of, over observations, or by itself."""
    config, scene = representation.config, None
    if observations is not None:
        scene = _of_observations(representation, np.asarray(observations))
    elif config.get("maze"):
        world = GridWorld(parse_maze(config["maze"], name=str(config.get("target", "maze"))))
        scene = scenes.of_maze(world, _observation(representation))
    elif config.get("arena"):
        scene = scenes.of_arena(parse_arena(config["arena"]), _observation(representation), MOST_STATES)
    if scene is None:
        scene = scenes.of_functions(representation.reference, None, constant=representation.rotated)
    return Opened(representation, scene, settings=dict(config.get("settings", {})))


def _reach_run(folder: RunFolder, kept: dict[str, Any]) -> Opened:
    """A reacher, over its maze or over its landmarks."""
    reacher = load_reacher(folder.reacher)
    representation = reacher.representation
    if representation is None:
        raise ConfigError(f"{folder.path} holds a reacher without φ, and φ is what is explored")
    scene = _known_scene(representation, kept["source"], folder)
    if scene is None:
        scene = _of_observations(representation, reacher.landmarks.observations)
    return Opened(representation, scene, reacher=reacher, actions=REACHED, **kept)


def _known_scene(representation: Representation, source: dict[str, Any], folder: RunFolder) -> Scene | None:
    """That of a maze, a plane or an arena, for which no data needs to be opened."""
    if source["kind"] not in ("maze", "plane", "arena"):
        return None
    opened, observation = recall(source, folder.experience), _observation(representation)
    if isinstance(opened, Maze):
        stay = bool(representation.config.get("settings", {}).get("stay", False))
        return scenes.of_maze(GridWorld(opened, stay), observation)
    if isinstance(opened, Plane):
        return scenes.of_plane(opened, MOST_STATES)
    assert isinstance(opened, Arena)
    whole = "state" if representation.spec.shape[0] > 2 else observation
    return scenes.of_arena(opened, whole, MOST_STATES)


def _scene_of_data(representation: Representation, target: Target, source: dict[str, Any]) -> Scene:
    """Every state, where data is of a few; else some of its observations."""
    if target.states is not None:
        scene = _of_observations(representation, target.states)
        return scenes.with_chain(scene, target.one_step)
    images = len(representation.spec.shape) == 3
    seen = target.some_observations(500 if images else SAMPLED, 0)
    if source["kind"] == "ogbench":
        made = OGBenchData(*(source[name] for name in ("name", "seed", "episodes")))
        scene = scenes.of_point_maze(made, seen)
        return scene.taken(scenes.spread_rows(scene.points, ON_A_FLOOR))
    if seen.ndim == 2:  # drawn with replacement
        seen = seen[np.sort(np.unique(seen, axis=0, return_index=True)[1])]
    if seen.ndim == 2 and seen.shape[1] == 2:
        seen = seen[scenes.spread_rows(seen, MOST_STATES)]
    return _of_observations(representation, seen[:MOST_STATES])


def _of_observations(representation: Representation, observations: np.ndarray) -> Scene:
    functions = functions_at(representation, observations)[1]
    constant = representation.rotated and functions.shape[1] > 1
    if len(representation.spec.shape) == 1 and representation.spec.shape[0] > 1:
        return scenes.of_vectors(observations, functions[:, constant:])
    return scenes.of_functions(functions, observations, constant=constant)


def _observation(representation: Representation) -> str:
    return str(representation.config.get("settings", {}).get("observation", "position"))
