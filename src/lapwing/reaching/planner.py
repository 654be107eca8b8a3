"""From a state and a goal to the way point to aim at, over the graph of landmarks."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lapwing.reaching.graph import Graph
from lapwing.reaching.landmarks import squared_distances

ENTRIES = 4
"""From how many landmarks near a state a way may begin, and near a goal end."""
MOST_HOPS = 100
"""A way point is never farther than so many landmarks."""


class Ways(NamedTuple):
    """For each state and its goal the way over landmarks."""

    begins: np.ndarray
    """The first landmark."""
    ends: np.ndarray
    """The last one."""
    first: np.ndarray
    """Steps to the first; 0 if none is nearer, for then the state is at it, or if the state is past it: one
    that goes back to where a way begins would never leave."""
    steps: np.ndarray
    """Steps of the whole way; infinite where none leads."""


@dataclass(frozen=True, eq=False)
class Planner:
    """Ways over landmarks.

    Near a landmark the steps to it are its distance in the coordinates, times the steps that an edge there
    takes for its length. A way begins at whichever of the landmarks near the state makes it shortest: the
    nearest may be a corner that the data left by a detour.
    """

    graph: Graph
    coordinates: np.ndarray
    """Of the landmarks."""
    ahead: float
    """How many steps ahead a way point is."""

    @cached_property
    def steps_per_length(self) -> np.ndarray:
        """Of each landmark, the median over its edges."""
        apart = self.coordinates[self.graph.begins] - self.coordinates[self.graph.ends]
        ratio = self.graph.steps / np.maximum(np.linalg.norm(apart, axis=1), 1e-9)
        overall = float(np.median(ratio)) if len(ratio) else 1.0
        order = np.argsort(self.graph.begins, kind="stable")
        groups = np.split(ratio[order], np.cumsum(np.bincount(self.graph.begins, minlength=self.graph.count)))
        return np.array([np.median(one) if len(one) else overall for one in groups[: self.graph.count]])

    def ways(self, here: np.ndarray, goals: np.ndarray) -> Ways:
        """The shortest way for each row of coordinates to its goal's."""
        near, to_near = self._entries(here)
        last, from_last = self._entries(goals)
        between = self.graph.distances[near[:, :, None], last[:, None, :]]
        total = (to_near[:, :, None] + between + from_last[:, None, :]).reshape(len(here), -1)
        best, row = total.argmin(axis=1), np.arange(len(here))
        begin, end = np.divmod(best, last.shape[1])
        begins, ends = near[row, begin], last[row, end]
        left = (begin == to_near.argmin(axis=1)) | self._past(here, begins, self._onward(begins, ends))
        return Ways(begins, ends, np.where(left, 0.0, to_near[row, begin]), total[row, best])

    def way_points(self, here: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """The landmark to aim at for each row; -1 for the goal itself: it is near, or no way leads there.

        It is the one on the way whose steps are nearest to `ahead`: one beyond a long edge may be so far that
        going straight for it leads into a wall. Nearer ones that the state is past are not aimed at.
        """
        ways = self.ways(here, goals)
        nowhere = np.isinf(ways.steps)
        ends = np.where(nowhere, ways.begins, ways.ends)
        distances = self.graph.distances
        target, whole = ways.begins.copy(), distances[ways.begins, ends]
        past = np.ones(len(here), bool)
        for _ in range(MOST_HOPS):
            onward = self._onward(target, ends)
            gone, then = (ways.first + whole - distances[one, ends] for one in (target, onward))
            if past.any():  # farther away, coordinates may cut across a ring, and "past" means nothing
                past &= (gone < self.ahead) & self._past(here, target, onward)
            further = ((gone <= 0) | past | (gone + then <= 2 * self.ahead)) & (target != ends)
            if not further.any():
                break
            target = np.where(further, onward, target)
        near = (target == ends) & (ways.first + whole < self.ahead)
        return np.where(near | nowhere, -1, target)

    def _onward(self, landmarks: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The next landmark on the way; the same at its end, and where no way leads."""
        following = self.graph.following[landmarks, ends]
        return np.where(following < 0, landmarks, following)

    def _past(self, here: np.ndarray, landmarks: np.ndarray, onward: np.ndarray) -> np.ndarray:
        """Whether each row is nearer to the next landmark on the way than the given one is."""
        then = self.coordinates[onward]
        between = np.sum((then - self.coordinates[landmarks]) ** 2, axis=1)
        return np.sum((then - here) ** 2, axis=1) < between

    def route(self, here: np.ndarray, goal: np.ndarray) -> list[int] | None:
        """The landmarks on the way from one row of coordinates to another; None where no way leads."""
        ways = self.ways(here[None], goal[None])
        if np.isinf(ways.steps[0]):
            return None
        route, end = [int(ways.begins[0])], int(ways.ends[0])
        while route[-1] != end:
            route.append(int(self.graph.following[route[-1], end]))
        return route

    def _entries(self, here: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The landmarks near each row, and the steps to each."""
        squares = squared_distances(here, self.coordinates)
        count = min(ENTRIES, squares.shape[1])
        near = np.argpartition(squares, count - 1, axis=1)[:, :count]
        apart = np.sqrt(np.take_along_axis(squares, near, axis=1))
        return near, apart * self.steps_per_length[near]


def usual_ahead(graph: Graph) -> float:
    """Twice the steps between landmarks: to the second nearest, for three in four of them."""
    steps = np.full((graph.count, graph.count), np.inf)
    steps[graph.begins, graph.ends] = graph.steps
    second = np.sort(steps, axis=1)[:, min(1, graph.count - 1)]
    second = second[np.isfinite(second)]
    return max(2.0, 2 * float(np.quantile(second, 0.75))) if len(second) else 2.0
