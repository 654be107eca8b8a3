"""How far one step goes, in the observations and in the embedding: the natural unit of both.

It is measured once, when φ is learned, and kept with it, so that a wrapped environment knows how near is
there and how large a potential must be.
"""

from typing import Any

import numpy as np

from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import Target

SOME_TRANSITIONS, SOME_GOALS = 512, 32


def step_size(representation: Representation, target: Target, seed: int) -> dict[str, Any]:
    """The size of a step of `target`, as JSON can hold it.

    Returns:
        `observation`, the median length of a step between continuous vectors, or None; and `distance`, for
        each spectral filter, by how much a step changes the distance to a goal in the mean, if at all.
    """
    ends = target.some_transitions(SOME_TRANSITIONS, seed)
    length = None
    if target.states is None and ends[0].ndim == 2:
        lengths = np.linalg.norm(ends[1] - ends[0], axis=1)
        length = float(np.median(lengths[lengths > 0])) if lengths.any() else None
    changes = {
        name: _change(*(representation.embed(end, name) for end in ends)) for name in representation.filters
    }
    return {"observation": length, "distance": {name: change for name, change in changes.items() if change}}


def _change(here: np.ndarray, there: np.ndarray) -> float:
    """The mean change of the distance to some of the states, over the steps that change it."""
    goals = here[:SOME_GOALS]
    before, after = (np.linalg.norm(end[:, None] - goals[None], axis=2) for end in (here, there))
    change = np.abs(after - before)
    return float(change[change > 0].mean()) if change.any() else 0.0
