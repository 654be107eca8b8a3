"""Reacher: a policy that goes from any state to any goal, with its plan; and what it is saved as."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from lapwing.data.extent import why_no_state
from lapwing.errors import ConfigError
from lapwing.laplacian.coverage import OR_NO_STATE, Coverage, warn_if_thin
from lapwing.laplacian.representation import Representation
from lapwing.reaching.action_codes import ActionCodes
from lapwing.reaching.controller import Network
from lapwing.reaching.geometry import Places
from lapwing.reaching.graph import Graph
from lapwing.reaching.landmarks import squared_distances
from lapwing.reaching.neighbours import Neighbours
from lapwing.reaching.planner import Planner

OUTSIDE = 2.0
"""A goal this many times as far from a landmark as any of its states is outside of the data."""
ROUNDING = 1e-2
"""Of distances between standardised features."""
LISTED = 5
"""So many parts are told of."""


class Landmarks(NamedTuple):
    """States of the data: what was observed there, coordinates, features, and how far its states are."""

    observations: np.ndarray
    coordinates: np.ndarray
    features: np.ndarray
    radii: np.ndarray
    """In the features, from each landmark to the farthest state that belongs to it."""


@dataclass(frozen=True, eq=False, repr=False)
class Reacher:
    """What `lapwing.reach` returns and `lapwing.load_reacher` reads.

    Every method takes one observation or a batch, and one goal or one for each; a goal is an observation of
    the place to be reached. Of a Dict observation it takes what it was made from, and `desired_goal` is the
    goal where none is given.
    """

    places: Places
    landmarks: Landmarks
    graph: Graph
    ahead: float
    """How many steps ahead the way point is that it aims at."""
    codes: ActionCodes
    controller: Network | Neighbours
    plans: bool = True
    """Whether it plans; else it aims at the goal itself."""
    config: dict[str, Any] = field(default_factory=dict)
    """Target and settings."""

    def __repr__(self) -> str:
        edges = f"{self.graph.count} landmarks, {len(self.graph.steps):,} edges"
        actions = f"{self.codes.size} {'actions' if self.codes.discrete else 'numbers in an action'}"
        return f"Reacher({self.config.get('target', '?')}: {edges}, {actions})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from lapwing.plots.notebooks import reacher_html

        return reacher_html(self)

    @property
    def representation(self) -> Representation | None:
        """φ, where it is what says what is near."""
        embedding = self.places.embedding
        return embedding if isinstance(embedding, Representation) else None

    @cached_property
    def planner(self) -> Planner:
        """The ways over landmarks."""
        return Planner(self.graph, self.landmarks.coordinates, self.ahead)

    def act(self, observation: Any, goal: Any = None, *, noise: float | None = None) -> Any:
        """The action towards the goal: one, or one for each of a batch.

        Args:
            observation: one or a batch.
            goal: one or one for each; None is the `desired_goal` of a Dict.
            noise: as in `ReachSettings`; None is what it was made with. It is drawn anew at each call.
        """
        seen, goals, single = self._pair(observation, goal)
        spread = float(self.config["settings"]["noise"] if noise is None else noise)
        if not 0 <= spread <= 1:
            raise ConfigError(f"noise must be between 0 and 1, not {noise}")
        actions = self.codes.decode(self.codes.disturb(self._outputs(seen, goals), spread, self._generator))
        return _plain(actions[0]) if single else actions

    def plan(self, observation: Any, goal: Any = None) -> np.ndarray:
        """The observations on the way from one state to a goal: landmarks, and the goal last."""
        seen, goals, single = self._pair(observation, goal)
        if not single:
            raise ConfigError("a plan is of one observation and one goal, not of a batch; call it for each")
        (here, _), (there, _) = self.places(seen), self._goals(goals)
        route = self.planner.route(here[0], there[0])
        if route is None:
            raise ConfigError(self._no_way(here[0], there[0]))
        return np.concatenate([self.landmarks.observations[route], goals])

    def distance(self, observation: Any, goal: Any = None) -> Any:
        """How many steps the way to the goal takes, by the data; infinite where none leads there."""
        seen, goals, single = self._pair(observation, goal)
        here, (there, _) = self.places(seen)[0], self._goals(goals)
        steps = self.planner.ways(here, np.broadcast_to(there, here.shape)).steps
        return float(steps[0]) if single else steps

    def save(self, path: str | Path) -> None:
        """Write one .safetensors file, φ inside, checked by SHA-256 when it is loaded."""
        from lapwing.reaching.files import save_reacher

        save_reacher(self, path)

    def check_env(self, env: gymnasium.Env) -> None:
        """Refuse an environment whose actions do not fit the data's."""
        self.codes.check_space(env.action_space)

    def _outputs(self, seen: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """What the controller gives for each state and its goal."""
        (here, features), (there, target) = self.places(seen), self._goals(goals)
        there, target = (np.broadcast_to(one, (len(seen), one.shape[1])) for one in (there, target))
        if self.plans:
            aim = self.planner.way_points(here, there)
            beyond = (aim < 0)[:, None]
            there = np.where(beyond, there, self.landmarks.coordinates[aim])
            target = np.where(beyond, target, self.landmarks.features[aim])
        if isinstance(self.controller, Neighbours):
            return self.controller(features, there)
        return self.controller(features, target)

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([self.config["settings"]["seed"], 4])

    @cached_property
    def _known_goals(self) -> dict[bytes, tuple[np.ndarray, np.ndarray]]:
        """Coordinates and features of goals that were asked for last: an episode has one."""
        return {}

    def _goals(self, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = goals.tobytes()
        if key not in self._known_goals:
            found = self.places(goals)
            self._check_inside(goals, found[1])
            self._warn_if_thin(goals)
            self._known_goals.clear()
            self._known_goals[key] = found
        return self._known_goals[key]

    @cached_property
    def _coverage(self) -> list[Coverage]:
        """Where φ was learned, until a goal has been warned of: it is said once."""
        phi = self.representation
        found = None if phi is None or "commute" not in phi.filters else Coverage.of(phi, "commute")
        return [] if found is None else [found]

    def _warn_if_thin(self, goals: np.ndarray) -> None:
        if self._coverage and self.representation is not None:
            embedded = np.asarray(self.representation.embed(goals, "commute"))
            remedy = f"collect data that comes to the goal, and goes on from there{OR_NO_STATE}"
            no_state = why_no_state(goals, self.representation.config.get("ranges"))
            if warn_if_thin(
                self._coverage[0], embedded, remedy, of_many=True, no_state=no_state, stacklevel=6
            ):
                self._coverage.clear()

    def outside(self, goals: Any) -> np.ndarray:
        """Which goals of a batch are far from all that the data visited: those that `act` refuses."""
        return self._far(self._apart(self.places(self._batch(goals, "goal")[0])[1]))

    def _apart(self, features: np.ndarray) -> np.ndarray:
        """How far each row is from each landmark."""
        return np.sqrt(squared_distances(features, self.landmarks.features))

    def _far(self, apart: np.ndarray) -> np.ndarray:
        return np.asarray((apart > OUTSIDE * self.landmarks.radii + ROUNDING).all(axis=1))

    def _check_inside(self, goals: np.ndarray, features: np.ndarray) -> None:
        """Refuse a goal that is far from all that the data visited."""
        apart = self._apart(features)
        outside = self._far(apart)
        if outside.any():
            row = int(np.argmax(outside))
            nearest = self.landmarks.observations[apart[row].argmin()]
            raise ConfigError(
                f"the goal {short(goals[row])} is outside of what the data visited; the nearest landmark is "
                f"{short(nearest)}"
            )

    def _no_way(self, here: np.ndarray, there: np.ndarray) -> str:
        """That no way leads, and which parts of the data are joined."""
        ends = [
            int(squared_distances(end[None], self.landmarks.coordinates).argmin()) for end in (here, there)
        ]
        parts = self.graph.parts
        sizes = np.sort(np.bincount(parts))[::-1]
        sizes_told = ", ".join(map(str, sizes[:LISTED])) + (", …" if len(sizes) > LISTED else "")
        around = [f"{np.sum(parts == parts[end])} landmarks around it" for end in ends]
        return (
            f"no way in the data leads there: the start is in a part of {around[0]}, the goal "
            f"in one of {around[1]}; within each of {len(sizes)} parts ({sizes_told} landmarks) every state "
            "leads to every other; collect data between them"
        )

    def _pair(self, observation: Any, goal: Any) -> tuple[np.ndarray, np.ndarray, bool]:
        """Batches of observations and goals, and whether one action is wanted; one goal may serve all."""
        if goal is None and isinstance(observation, Mapping):
            goal = observation.get("desired_goal")
        if goal is None:
            raise ConfigError("give a goal: an observation of the place to be reached")
        (seen, one), (goals, one_goal) = self._batch(observation, "observation"), self._batch(goal, "goal")
        if len(goals) not in (1, len(seen)):
            raise ConfigError(
                f"there are {len(seen)} observations and {len(goals)} goals; give one, or each its own"
            )
        return seen, goals, one and one_goal

    def _batch(self, value: Any, name: str) -> tuple[np.ndarray, bool]:
        """A batch as φ takes it, and whether it was one alone; `name` is for what is said of a wrong one."""
        array, shape = self.seen(value), self.places.shape
        if array.shape not in (shape, (*array.shape[:1], *shape)):
            raise ConfigError(
                f"the {name} has shape {array.shape}, and the data's observations have shape {shape}; give "
                "one or a batch of such (of a Dict with goals, --observation-key achieved_goal makes states)"
            )
        single = array.shape == shape
        return self.places.checked(array[None] if single else array), single

    def seen(self, observation: Any) -> np.ndarray:
        """What it takes of an observation: the part of a Dict that the data was of, or all."""
        if not isinstance(observation, Mapping):
            return np.asarray(observation)
        key = self.config.get("settings", {}).get("observation_key") or "observation"
        if key not in observation:
            raise ConfigError(f"observations have the parts {', '.join(observation)}; {key} is missing")
        return np.asarray(observation[key])


def _plain(action: Any) -> Any:
    return int(action) if np.ndim(action) == 0 else action


def short(observation: np.ndarray) -> str:
    """An observation in a sentence: its first numbers."""
    flat = np.ravel(observation)
    shown = ", ".join(f"{number:.3g}" for number in flat[:4])
    return f"({shown}{', …' if flat.size > 4 else ''})"
