"""Thin walls: neighbouring states that no step joins, and how far φ sets them apart.

A wall that is thinner than a step separates states that look alike. A smooth φ passes through it, and so does
every other smooth basis: held-out eigenvalues of both agree, and neither has seen the wall. The steps have:
around a place in the data, hardly any goes from one side of the wall to the other.
"""

from typing import TypedDict

import numpy as np
from scipy.spatial import KDTree

from lapwing.data.experience import Experience
from lapwing.laplacian.representation import Representation

DIMENSIONS = (2, 3)
"""Vectors of so many numbers are looked at: in more, no place has enough steps around it."""
PLACES, MOST_AROUND, MOST_TRANSITIONS = 1_000, 500, 200_000
DIRECTIONS = {2: 12, 3: 24}
RADIUS, NEAR = 1.0, 0.75
"""Steps that begin within this of a place, and beside a wall; in standard deviations of a step."""
OFFSETS = np.linspace(-0.5, 0.5, 41)
LEAST_EXPECTED, MOST_SHARE = 15.0, 0.1
"""A wall is where at least so many steps should have crossed, and no more than this share of them did."""
LEAST_SIDE = 10
"""So many states there are on either side."""
LEAST_WALLS = 3
"""Fewer may be chance."""


class Barriers(TypedDict):
    """What was found, as JSON can hold it."""

    places: int
    """Where enough steps begin to tell."""
    walls: int
    """Those with a wall."""
    contrast: float | None
    """How far φ sets the sides of a wall apart, in what it sets joined neighbours apart; the median."""


def find_barriers(representation: Representation, experience: Experience) -> Barriers | None:
    """Thin walls around some places in the data; None where they cannot be looked for.

    Args:
        representation: φ.
        experience: the episodes that it was learned from.
    """
    shape = experience.observation_shape
    if experience.table is not None or len(shape) != 1 or shape[0] not in DIMENSIONS:
        return None
    rng = np.random.default_rng(0)
    some = rng.integers(experience.n_transitions, size=min(experience.n_transitions, MOST_TRANSITIONS))
    begins = experience.transitions(np.unique(some))
    seen, there = (experience.observe(begins + step).astype(np.float64) for step in (0, 1))
    unit = np.std(there - seen, axis=0)
    if not unit.all():
        return None
    here, steps = seen / unit, (there - seen) / unit
    normals = _normals(shape[0])
    tree, places, contrasts = KDTree(here), 0, []
    for place in rng.choice(len(here), min(PLACES, len(here)), replace=False):
        around = rng.permutation(tree.query_ball_point(here[place], RADIUS))[:MOST_AROUND]
        if len(around) < 4 * LEAST_SIDE:
            continue
        places += 1
        positions = here[around] - here[place]
        wall = _wall(positions, steps[around], normals)
        if wall is not None:
            contrasts.append(_contrast(representation, seen[around], positions, *wall))
    known = [contrast for contrast in contrasts if contrast is not None]
    return Barriers(places=places, walls=len(contrasts), contrast=float(np.median(known)) if known else None)


def has_walls(found: Barriers | None) -> bool:
    """Whether there are thin walls, by more than chance.

    Distances may pass through them even where the sides are set well apart: a corridor behind a wall may be
    hundreds of steps away, and how many is not known.
    """
    return found is not None and found["walls"] >= LEAST_WALLS


def _normals(dimensions: int) -> np.ndarray:
    """Directions a wall may face, evenly spread over half of the circle or sphere."""
    count = DIRECTIONS[dimensions]
    if dimensions == 2:
        angles = np.pi * np.arange(count) / count
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    heights = (np.arange(count) + 0.5) / count
    angles = np.pi * (1 + 5**0.5) * np.arange(count)
    flat = np.sqrt(1 - heights**2)
    return np.stack([flat * np.cos(angles), flat * np.sin(angles), heights], axis=1)


def _wall(positions: np.ndarray, steps: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, float] | None:
    """The normal and the offset of the plane that the fewest steps cross of those that should, if few do.

    How many should is what the steps around would do if they began at each state in turn.
    """
    best, found = np.inf, None
    for normal in normals:
        along, moved = positions @ normal, steps @ normal
        gaps = OFFSETS - along[:, None]
        near, below = np.abs(gaps) < NEAR, gaps > 0
        share_below = np.searchsorted(np.sort(moved), gaps) / len(moved)
        expected = np.sum(np.where(below, 1 - share_below, share_below) * near, axis=0)
        crossed = np.sum(near & ((moved[:, None] > gaps) == below), axis=0)
        sides = np.minimum(np.sum(near & below, axis=0), np.sum(near & ~below, axis=0))
        possible = (sides >= LEAST_SIDE) & (expected >= LEAST_EXPECTED)
        shares = np.where(possible, crossed / np.maximum(expected, 1.0), np.inf)
        at = int(np.argmin(shares))
        if shares[at] <= MOST_SHARE and shares[at] < best:
            best, found = shares[at], (normal, float(OFFSETS[at]))
    return found


def _contrast(
    representation: Representation, seen: np.ndarray, positions: np.ndarray, normal: np.ndarray, offset: float
) -> float | None:
    """How far apart the sides of a wall are in φ, over how far states are that lie as far along it.

    None where all states lie at the same place along it.
    """
    coordinates = representation.coordinates(seen.astype(np.float32), "biharmonic")
    along = positions @ normal - offset
    beside = positions - np.outer(positions @ normal, normal)
    beside = beside @ np.linalg.svd(beside, full_matrices=False)[2][0]
    slopes = []
    for side in (along, beside - np.median(beside)):
        above = side > 0
        if not above.any():  # half of the states and more may lie at the border of the space
            above = side == side.max()
        if above.all():
            return None
        between = np.linalg.norm(coordinates[above].mean(axis=0) - coordinates[~above].mean(axis=0))
        slopes.append(between / (side[above].mean() - side[~above].mean()))
    return float(slopes[0] / max(slopes[1], 1e-9))
