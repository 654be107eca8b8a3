"""Whether a state lies where the data was, judged by its neighbours in the embedding.

Where data is missing φ is a guess, and guesses are often far from every state that was seen. An environment
that ends at its goal leaves such a hole: following the distance to that goal may lead elsewhere.
"""

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

from lapwing.laplacian.representation import Representation
from lapwing.settings.learn import Filter

NEIGHBOURS = 5
THIN = 3.0
"""A state is thinly sampled if its neighbours are so many times as far away as those of a median state, and
farther than those of every state of the data."""
FEWEST = 100
"""By fewer states than these nothing is judged."""


def sparseness(
    states: Float[np.ndarray, "n d"], points: Float[np.ndarray, "m d"]
) -> tuple[Float[np.ndarray, " m"], float]:
    """How far points are from the data, in medians of how far its states are from one another.

    Args:
        states: embedded states of the data, at least two of them different.
        points: embedded states to be judged.

    Returns:
        The distance of each point to the fifth nearest of the different states, and the largest such
        distance of a state of the data itself, both over the median of the latter.

    Example:
        >>> line = np.arange(100.0)[:, None]
        >>> found, largest = sparseness(line, np.array([[50.0], [130.0]]))
        >>> found.round(1).tolist(), round(largest, 1)
        ([0.7, 11.7], 1.7)
    """
    states = np.unique(states, axis=0)
    tree, nearest = KDTree(states), min(NEIGHBOURS, len(states) - 1)
    own = tree.query(states, nearest + 1)[0][:, -1]  # the nearest of all is the state itself
    away = tree.query(points, nearest)[0].reshape(len(points), -1)[:, -1]
    return away / np.median(own), float(own.max() / np.median(own))


def times_too_far(representation: Representation, filter: Filter, points: np.ndarray) -> float | None:
    """How many times as far from the data as is usual the farthest of `points` is, if it is thinly sampled.

    Args:
        representation: φ, which keeps some states of its data.
        filter: of the embedding; `soft` is not judged, for the states are kept as eigenfunctions.
        points: embedded by that filter, one or a batch.
    """
    if filter == "soft" or len(representation.reference) < FEWEST:
        return None
    states = representation.reference[:, 1:] * representation.filter_weights(filter)
    if not np.ptp(states, axis=0).any():
        return None
    found, largest = sparseness(states.astype(np.float64), np.atleast_2d(points))
    farthest = float(found.max())
    return farthest if farthest > max(THIN, largest) else None
