"""Where a state is: coordinates, in which near means few steps, and features, which a network takes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lapwing.data.experience import Experience
from lapwing.laplacian.bases import MOST_INPUTS, Reduction
from lapwing.laplacian.batches import checked_batch
from lapwing.laplacian.representation import Representation
from lapwing.settings.reach import Geometry

AT_ONCE = 32_768
"""So many observations are embedded at a time."""
SOME = 20_000
"""So many decide the scale of features."""

Embedding = Representation | Callable[[np.ndarray], np.ndarray]
"""φ; or any function of a batch of observations whose distances say what is near, to compare with."""


@dataclass(frozen=True, eq=False)
class Places:
    """What maps observations to coordinates and to features.

    Coordinates are eigenfunctions over √λ, whose Euclidean distance is the root of the commute time; or
    the features themselves, to compare with. Features are the observation, standardised, where it is a
    vector; else the coordinates: a network takes either, and knows nothing of positions.
    """

    shape: tuple[int, ...]
    """Of one observation."""
    embedding: Embedding | None
    """None: the features are the coordinates."""
    shift: np.ndarray
    scale: np.ndarray

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
        return cls(
            shape,
            embedding if geometry == "phi" else None,
            reduction.shift.astype(np.float32),
            scale.astype(np.float32),
        )

    def __call__(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and features of a batch."""
        if self.embedding is None:
            features = self._standardised(observations)
            return features, features
        coordinates = self.coordinates(observations)
        seen = observations if len(self.scale) == np.prod(self.shape, dtype=int) else coordinates
        return coordinates, self._standardised(seen)

    def coordinates(self, observations: np.ndarray) -> np.ndarray:
        """f/√λ, scaled; those eigenfunctions that held-out episodes do not trust are left out.

        A φ without single eigenfunctions is taken as it is.
        """
        assert self.embedding is not None
        if not isinstance(self.embedding, Representation):
            return self.embedding(observations)
        if "commute" not in self.embedding.filters:
            return self.embedding.embed(observations, "soft")
        weights = self.embedding.filter_weights("commute")
        return self.embedding.embed(observations, "commute")[:, weights > 0]

    def _standardised(self, rows: np.ndarray) -> np.ndarray:
        return ((_flat(rows) - self.shift) * self.scale).astype(np.float32)

    def checked(self, observations: np.ndarray) -> np.ndarray:
        """A batch as φ takes it; NaN and wrong indices are refused."""
        states = self.embedding.spec.n_states if isinstance(self.embedding, Representation) else None
        return checked_batch(observations, self.shape, states)


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
