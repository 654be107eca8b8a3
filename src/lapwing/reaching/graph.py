"""The graph over landmarks: an edge where the data really went, with the steps that it took.

A state counts as at a landmark if it is among the nearest fifth of those that belong to it. Of all the times
at which the data was at i and k steps later at j, the tenth part that was quickest says how many steps it
takes: data wanders, and a way is as long as it can be walked. Edges are directed.

Where single steps cross from one landmark's states to another's, and nobody went from landmark to landmark,
an edge is a last resort: φ may lump states on two sides of a gap, and such steps do not say on which.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from lapwing.reaching.landmarks import Nearest

CORE = 0.2
"""The share of a landmark's states that are at it."""
QUICKEST = 0.1
"""The share of the times that says how many steps an edge takes."""
FEWEST = 3
"""An edge was gone along at least so often; where data is scarce, once."""
LONGER, MOST_TRIES = 1.6, 6
"""How much longer edges are allowed to be while parts are not joined, and how often."""
UNWALKED = 1_000.0
"""What an edge costs along which single steps went, but never from landmark to landmark."""
CHANCE = 10_000.0
"""What a step costs whose outcome is chance, over its probability: it is a last resort."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Landmarks joined by edges."""

    count: int
    begins: np.ndarray
    ends: np.ndarray
    steps: np.ndarray
    """One row an edge."""
    _paths: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list, init=False, repr=False)

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """Steps from row to column."""
        return sparse.csr_array((self.steps, (self.begins, self.ends)), shape=(self.count, self.count))

    @property
    def distances(self) -> np.ndarray:
        """The fewest steps from row to column; infinite where no way leads."""
        return self._shortest()[0]

    @property
    def following(self) -> np.ndarray:
        """The next landmark from row on the way to column; negative where there is none."""
        return self._shortest()[1]

    def _shortest(self) -> tuple[np.ndarray, np.ndarray]:
        if not self._paths:
            # Backwards from each goal: what precedes a state there is what follows it on the way.
            steps, before = dijkstra(self.matrix.T.tocsr(), return_predecessors=True)
            self._paths.append((steps.T.astype(np.float32), np.ascontiguousarray(before.T)))
        return self._paths[0]

    @cached_property
    def parts(self) -> np.ndarray:
        """The number of the part that each landmark is in; between parts there is no way there and back."""
        return connected_components(self.matrix, connection="strong")[1]


def build_graph(nearest: Nearest, horizons: np.ndarray, count: int) -> Graph:
    """The graph of the data.

    Args:
        nearest: of each observation, its landmark.
        horizons: how many steps follow each observation within its episode.
        count: how many landmarks there are.
    """
    at, fewest = _core(nearest, count), FEWEST if len(horizons) >= 100 * count else 1
    beside = _beside(nearest.landmark, horizons, count, fewest)
    longest = _crossing_time(nearest.landmark, horizons)
    found = _steps_between(nearest.landmark, at, horizons, count, longest, fewest)
    for _ in range(MOST_TRIES):
        if _reach(found) >= _reach(beside):
            break
        longest = min(int(LONGER * longest) + 1, int(horizons.max()))
        found = _steps_between(nearest.landmark, at, horizons, count, longest, fewest)
    missing = beside.toarray() & ~np.isfinite(found)
    found[missing] = UNWALKED
    begins, ends = np.nonzero(np.isfinite(found))
    return Graph(count, begins.astype(np.int32), ends.astype(np.int32), found[begins, ends])


def with_chances(graph: Graph, landmark: np.ndarray, jumps: np.ndarray) -> Graph:
    """The same with edges along steps whose outcome is chance, where there is no other."""
    pairs, times = np.unique(np.stack([landmark[jumps], landmark[jumps + 1]]), axis=1, return_counts=True)
    joined = set(zip(graph.begins.tolist(), graph.ends.tolist(), strict=True))
    new = [index for index, (i, j) in enumerate(pairs.T.tolist()) if i != j and (i, j) not in joined]
    leaving = np.bincount(landmark[jumps], minlength=graph.count)
    price = CHANCE * leaving[pairs[0]] / times
    return Graph(
        graph.count,
        np.append(graph.begins, pairs[0][new]).astype(np.int32),
        np.append(graph.ends, pairs[1][new]).astype(np.int32),
        np.append(graph.steps, price[new]).astype(np.float32),
    )


def _core(nearest: Nearest, count: int) -> np.ndarray:
    """Which observations are at their landmark: the nearest share of those that belong to it."""
    order = np.lexsort((nearest.distance, nearest.landmark))
    sizes = np.bincount(nearest.landmark, minlength=count)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return (rank < np.maximum(CORE * sizes[nearest.landmark], 1)) | (nearest.distance == 0)


def _crossing_time(landmark: np.ndarray, horizons: np.ndarray) -> int:
    """Three times the steps after which half of the states belong to another landmark."""
    lag, longest = 1, int(horizons.max())
    while lag < longest:
        here = np.flatnonzero(horizons >= lag)
        here = here[:: max(1, len(here) // 50_000)]
        if np.mean(landmark[here] != landmark[here + lag]) > 0.5:
            break
        lag = min(longest, int(1.3 * lag) + 1)
    return min(3 * lag, longest)


def _beside(landmark: np.ndarray, horizons: np.ndarray, count: int, fewest: int) -> sparse.csr_array:
    """Between which landmarks single steps of the data went."""
    here = np.flatnonzero(horizons >= 1)
    times = _counts(landmark[here], landmark[here + 1], count).reshape(count, count) >= fewest
    np.fill_diagonal(times, False)
    return sparse.csr_array(times)


def _steps_between(
    landmark: np.ndarray, at: np.ndarray, horizons: np.ndarray, count: int, longest: int, fewest: int
) -> np.ndarray:
    """(count, count): the steps of each edge, infinite where there is none."""
    where = np.flatnonzero(at)
    by_lag = []
    for lag in range(1, longest + 1):
        here = where[horizons[where] >= lag]
        here = here[at[here + lag]]
        by_lag.append(_counts(landmark[here], landmark[here + lag], count))
    needed = np.maximum(fewest, QUICKEST * np.sum(by_lag, axis=0, dtype=np.int32))
    steps, so_far = np.full(count * count, np.inf, np.float32), np.zeros(count * count, np.int32)
    for lag, times in enumerate(by_lag, 1):
        so_far += times
        steps[(so_far >= needed) & np.isinf(steps)] = lag
    steps = steps.reshape(count, count)
    np.fill_diagonal(steps, np.inf)
    return steps


def _counts(begins: np.ndarray, ends: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(begins * count + ends, minlength=count * count).astype(np.int32)


def _reach(edges: sparse.csr_array | np.ndarray) -> int:
    """Between how many pairs of landmarks a way leads."""
    there = edges if isinstance(edges, sparse.csr_array) else sparse.csr_array(np.isfinite(edges))
    return int(np.isfinite(dijkstra(there, unweighted=True)).sum())
