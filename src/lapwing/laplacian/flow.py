"""The flow of the data between states, or cells of continuous ones: is it reversible, is it connected?

The method averages a chain and its reverse, so it loses transitions that go one way only. And there is no
distance between components of the data that no transition connects.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lapwing.data.experience import Experience
from lapwing.laplacian.bases import Reduction, spread_centres
from lapwing.laplacian.chain import pair_counts

CELLS = 100
"""Continuous states are put into so many cells at most,"""
PER_CELL = 100
"""with so many transitions at least in the mean."""
MOST_TRANSITIONS = 200_000
SOME_ROWS = 10_000
"""So many transitions are counted; so many observations are clustered, fewer if they are large."""
BYTES = 1 << 25
"""Observations are read in batches of this size."""


class Flow(NamedTuple):
    """What the counts of transitions say."""

    irreversibility: float
    """The share of the flow that has no way back: 0 in a reversible chain, 1 in a cycle."""
    parts: int
    """How many parts there are between which no transition was seen."""


def sampled_flow(experience: Experience) -> Flow:
    """The flow between the states of an experience, or between cells of them where they are continuous."""
    counts = pair_counts(experience, 1) if experience.table is not None else cell_counts(experience)
    return Flow(irreversibility(counts), connected_parts(counts))


def irreversibility(counts: sparse.csr_array) -> float:
    """Σ_{i<j} √((J_ij - J_ji)² - 4(J_ij + J_ji))₊ / Σ_{i≠j} J_ij of counts J.

    J_ij + J_ji is the variance of a difference that is chance alone: within two standard deviations it
    counts as none.

    Example:
        >>> cycle = sparse.csr_array(np.roll(10_000 * np.eye(4), 1, axis=1))
        >>> round(irreversibility(cycle), 2), irreversibility(sparse.csr_array(cycle + cycle.T))
        (1.0, 0.0)
    """
    there, back = sparse.triu(counts, 1, "csr"), sparse.tril(counts, -1, "csr").T
    both_ways = sparse.csr_array(there + back)
    squares = sparse.csr_array(there - back).power(2) - 4 * both_ways
    total = float(both_ways.sum())
    return float(squares.maximum(0).power(0.5).sum()) / total if total else 0.0


def connected_parts(counts: sparse.csr_array) -> int:
    """How many parts there are of the states that were seen, each joined by transitions in any direction."""
    seen = np.flatnonzero(counts.sum(axis=0) + counts.sum(axis=1))
    return int(connected_components(counts[seen][:, seen], directed=False)[0])


def cell_counts(experience: Experience) -> sparse.csr_array:
    """How often the data goes from one cell to another, each cell being what is nearest to its centre."""
    rng = np.random.default_rng(0)
    a_row = max(1, experience.observations[:1].nbytes)
    some = np.sort(rng.integers(len(experience.observations), size=min(SOME_ROWS, max(200, BYTES // a_row))))
    observed = experience.observe(some)
    reduction = Reduction.of(observed)
    count = int(np.clip(experience.n_transitions // PER_CELL, 1, CELLS))
    centres, _ = spread_centres(reduction(observed), count, seed=0)
    numbers = np.arange(min(experience.n_transitions, MOST_TRANSITIONS))
    if experience.n_transitions > MOST_TRANSITIONS:
        numbers = np.sort(rng.integers(experience.n_transitions, size=MOST_TRANSITIONS))
    begins = experience.transitions(numbers)
    batch = max(1, min(8_192, BYTES // a_row))
    ends = [
        [
            _nearest(reduction(experience.observe(begins[at : at + batch] + step)), centres)
            for at in range(0, len(begins), batch)
        ]
        for step in (0, 1)
    ]
    here, there = (np.concatenate(cells) for cells in ends)
    size = (len(centres), len(centres))
    return sparse.coo_array((np.ones(len(here)), (here, there)), shape=size).tocsr()


def _nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The index of the nearest centre of each point."""
    return np.argmin(np.sum(centres**2, axis=1) - 2 * points @ centres.T, axis=1)
