"""Where a state is: coordinates, in which near means few steps, and features, which a network takes."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lapwing.data.experience import Experience
from lapwing.laplacian.bases import MOST_INPUTS, Reduction
from lapwing.laplacian.batches import checked_batch
from lapwing.laplacian.representation import Representation
from lapwing.settings.reach import Geometry

FEW, LOCAL = 10, 0.5
"""Over so many steps, features move so much of what φ moves."""
GAP = 0.3
"""No eigenvalue counts as less than this share of the next."""
AT_ONCE = 32_768
"""So many observations are embedded at a time."""
SOME = 20_000
"""So many decide the scale of features."""

Embedding = Representation | Callable[[np.ndarray], np.ndarray]
"""φ; or any function of a batch of observations whose distances say what is near, to compare with."""


@dataclass(frozen=True, eq=False)
class Places:
    """What maps observations to coordinates and to features.

    Features are the observation, standardised, where it is a vector; else the coordinates: a network takes
    either, and knows nothing of positions. Coordinates are eigenfunctions over √λ, whose Euclidean distance
    is the root of the commute time, and beside them the features: a few eigenfunctions are flat in dead ends,
    where features still say what is near. Or they are the features alone, to compare with.
    """

    shape: tuple[int, ...]
    """Of one observation."""
    embedding: Embedding | None
    """None: the features are the coordinates."""
    shift: np.ndarray
    scale: np.ndarray
    local: float = 0.0
    """What the features are multiplied with in the coordinates; 0 leaves them out."""

    @classmethod
    def of(cls, experience: Experience, embedding: Embedding | None, geometry: Geometry) -> "Places":
        """Fitted to data.

        Args:
            experience: the data.
            embedding: φ.
            geometry: whether φ gives the coordinates, or the observation does.
        """
        every = -(-len(experience.observations) // SOME)
        some = experience.observe(np.arange(0, len(experience.observations), every))
        shape = some.shape[1:]
        vectors = len(shape) == 1 and shape[0] <= MOST_INPUTS
        places = cls(shape, embedding, np.zeros(1), np.ones(1))
        rows = _flat(some) if vectors or embedding is None else places.coordinates(some)
        reduction = Reduction.of(rows)
        scale = np.diag(reduction.matrix) if reduction.matrix.shape[0] == reduction.matrix.shape[1] else None
        if scale is None:  # wider observations have no use for a network here: one common scale
            scale = np.full(rows.shape[1], 1 / max(float(rows.std()), 1e-9))
        fitted = cls(
            shape,
            embedding if geometry == "phi" else None,
            reduction.shift.astype(np.float32),
            scale.astype(np.float32),
        )
        if embedding is None or geometry != "phi" or not vectors or experience.table is not None:
            return fitted
        return dataclasses.replace(fitted, local=LOCAL * fitted._pace(experience))

    def _pace(self, experience: Experience) -> float:
        """How far φ moves in a few steps, over how far the features do."""
        here = np.flatnonzero(experience.horizons >= FEW)
        here = here[:: max(1, len(here) // SOME)]
        if not len(here):
            return 0.0
        ends = [self(experience.observe(rows)) for rows in (here, here + FEW)]
        phi, features = (
            float(np.sqrt(np.mean(np.sum((after - before) ** 2, axis=1))))
            for before, after in zip(*ends, strict=True)
        )
        return phi / features if features > 0 else 0.0

    def __call__(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and features of a batch."""
        if self.embedding is None:
            features = self._standardised(observations)
            return features, features
        coordinates = self.coordinates(observations)
        seen = observations if len(self.scale) == np.prod(self.shape, dtype=int) else coordinates
        features = self._standardised(seen)
        if self.local:
            coordinates = np.concatenate([coordinates, np.float32(self.local) * features], axis=1)
        return coordinates, features

    def coordinates(self, observations: np.ndarray) -> np.ndarray:
        """f/√λ, scaled; those eigenfunctions that held-out episodes do not trust are left out.

        Where data falls into parts, λ is nearly 0 for the functions that tell them apart, and their errors
        within a part would outweigh all others: so λ has a floor. A φ without single eigenfunctions is taken
        as it is.
        """
        assert self.embedding is not None
        if not isinstance(self.embedding, Representation):
            return self.embedding(observations)
        if "commute" not in self.embedding.filters:
            return self.embedding.embed(observations, "soft")
        kept, weights = self._kept
        return weights * self.embedding.embed(observations, "commute")[:, kept]

    @cached_property
    def _kept(self) -> tuple[np.ndarray, np.ndarray]:
        """What `floored` gives, once."""
        assert isinstance(self.embedding, Representation)
        return floored(self.embedding)

    def _standardised(self, rows: np.ndarray) -> np.ndarray:
        return ((_flat(rows) - self.shift) * self.scale).astype(np.float32)

    def checked(self, observations: np.ndarray) -> np.ndarray:
        """A batch as φ takes it; NaN and wrong indices are refused."""
        states = self.embedding.spec.n_states if isinstance(self.embedding, Representation) else None
        return checked_batch(observations, self.shape, states)


def floored(representation: Representation) -> tuple[np.ndarray, np.ndarray]:
    """Which eigenfunctions after the constant are coordinates, and by what the floor of λ lowers each."""
    kept = representation.filter_weights("commute") > 0
    values = representation.eigenvalues[1:][kept]
    floor = GAP * np.append(values[1:], 0.0)
    weights = np.sqrt(values / np.maximum(values, floor), where=values > 0, out=np.ones_like(values))
    return kept, weights.astype(np.float32)


def of_experience(places: Places, experience: Experience) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and features of every observation; each enumerated state is embedded once."""
    if experience.table is not None:
        coordinates, features = places(experience.table)
        return coordinates[experience.observations], features[experience.observations]
    parts = [places(batch) for batch in _batches(experience)]
    coordinates, features = (np.concatenate(each) for each in zip(*parts, strict=True))
    return coordinates, features


def _batches(experience: Experience) -> Iterator[np.ndarray]:
    for begin in range(0, len(experience.observations), AT_ONCE):
        yield experience.observe(np.arange(begin, min(begin + AT_ONCE, len(experience.observations))))


def _flat(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(len(rows), -1).astype(np.float32)
