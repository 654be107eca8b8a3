"""Whether the data covers a state, judged by its neighbours in the embedding.

Without data φ extrapolates, often to values far from every visited state. An environment that ends at its
goal leaves such a gap: following the distance to that goal may lead elsewhere.
"""

import warnings

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

from lapwing.errors import LapwingWarning
from lapwing.laplacian.representation import Representation
from lapwing.settings.learn import Distance

NEIGHBOURS = 5
THIN = 3.0
"""A state is thinly sampled if its neighbours are so many times as far away as those of a median state, and
farther than those of nearly every state of the data."""
NEARLY = 0.99
"""Of the data: single states, such as those that an episode ended in, lie in the hole themselves."""
OR_NO_STATE = "; where no data can come, as inside of a wall, give a goal that it has been to"
"""What follows the remedies where a goal may be anything: none of them moves a wall."""
FEWEST = 100
"""By fewer states than these nothing is judged."""


class Coverage:
    """How dense embedded states of the data are.

    Example:
        >>> coverage = Coverage(np.arange(100.0)[:, None])
        >>> coverage.sparseness(np.array([[50.0], [130.0]])).round(1).tolist(), round(coverage.largest, 1)
        ([0.7, 11.7], 1.7)
    """

    def __init__(self, states: Float[np.ndarray, "n d"]):
        """Of states at least two of which differ; one that recurs counts once."""
        different = np.unique(states, axis=0)
        self._tree, self._nearest = KDTree(different), min(NEIGHBOURS, len(different) - 1)
        own = self._tree.query(different, self._nearest + 1)[0][
            :, -1
        ]  # the nearest of all is the state itself
        self._median = float(np.median(own))
        self.largest = float(own.max() / self._median)
        """The sparseness of the most solitary state of the data."""
        self.usual = float(np.quantile(own, NEARLY) / self._median)
        """What that of nearly every state is below."""

    @classmethod
    def of(cls, representation: Representation, filter: Distance) -> "Coverage | None":
        """Of the states that φ keeps of its data; None where they are too few, or all alike.

        The embedding `soft` is not judged, for the states are kept as eigenfunctions.
        """
        if filter == "soft" or len(representation.reference) < FEWEST:
            return None
        states = representation.reference[:, 1:] * representation.filter_weights(filter)
        return cls(states.astype(np.float64)) if np.ptp(states, axis=0).any() else None

    def sparseness(self, points: Float[np.ndarray, "m d"]) -> Float[np.ndarray, " m"]:
        """How far points are from the fifth nearest state, in medians of how far states are from theirs."""
        away = self._tree.query(points, self._nearest)[0].reshape(len(points), -1)[:, -1]
        return away / self._median

    def times_too_far(self, points: np.ndarray, *, of_many: bool = False) -> float | None:
        """How many times as far from the data as is usual the farthest point is, if it is thinly sampled.

        Args:
            points: one or several.
            of_many: whether many are asked after, one by one. Some of these will be beyond nearly every state
                by chance, so each is compared with the most solitary one.
        """
        farthest = float(self.sparseness(np.atleast_2d(points)).max())
        return farthest if farthest > max(THIN, self.largest if of_many else self.usual) else None


def warn_if_thin(
    coverage: Coverage | None,
    goals: np.ndarray,
    remedy: str,
    *,
    of_many: bool = False,
    no_state: str | None = None,
    stacklevel: int,
) -> bool:
    """Warn if φ was learned from hardly any state near a goal.

    Args:
        coverage: of the states that φ was learned from; None is never warned of.
        goals: φ of the goal, or of several.
        remedy: what to do about it.
        of_many: whether many goals are asked after, one by one.
        no_state: what speaks against the goal being a state at all; it is warned of in any case.
        stacklevel: as `warnings.warn` takes it, counted from the caller.

    Returns:
        Whether it warned.
    """
    if no_state is not None:
        warnings.warn(
            f"the goal may not be a state at all: {no_state}; give an observation of the environment",
            LapwingWarning,
            stacklevel=stacklevel + 1,
        )
        return True
    times = None if coverage is None else coverage.times_too_far(goals, of_many=of_many)
    if times is None:
        return False
    warnings.warn(
        "the goal lies in thinly sampled states, so its distance may lead elsewhere: in the embedding it is "
        f"{times:.0f} times as far from the data that φ was learned from as is usual; {remedy}",
        LapwingWarning,
        stacklevel=stacklevel + 1,
    )
    return True
