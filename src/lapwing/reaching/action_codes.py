"""Actions as a controller gives them: vectors, or one of some choices."""

from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from lapwing.errors import ConfigError, DatasetError

MOST_CHOICES = 1_000
"""More whole-numbered actions than this are no choices."""


@dataclass(frozen=True, eq=False)
class ActionCodes:
    """What actions of the data look like.

    Example:
        >>> codes = ActionCodes.of(np.array([3, 1, 3], np.uint8))
        >>> codes.encode(np.array([3, 1])).tolist(), codes.decode(np.array([[0.1, 0.7]])).tolist()
        ([[0.0, 1.0], [1.0, 0.0]], [3])
    """

    discrete: bool
    rows: np.ndarray
    """The choices, one a row; or the smallest and the largest vector that was taken."""
    shape: tuple[int, ...]
    """Of one action."""

    @classmethod
    def of(cls, actions: np.ndarray) -> "ActionCodes":
        """Those that data has; actions of a transition each, no others."""
        rows = actions.reshape(len(actions), -1)
        if not np.issubdtype(actions.dtype, np.integer):
            return cls(False, np.stack([rows.min(axis=0), rows.max(axis=0)]), actions.shape[1:])
        choices = np.unique(rows, axis=0)
        if len(choices) > MOST_CHOICES:
            raise DatasetError(
                f"actions take {len(choices):,} different whole-numbered values, too many to choose from; "
                "give them as floats"
            )
        return cls(True, choices, actions.shape[1:])

    @property
    def size(self) -> int:
        """How many numbers a controller gives."""
        return len(self.rows) if self.discrete else self.rows.shape[1]

    def encode(self, actions: np.ndarray) -> np.ndarray:
        """Vectors scaled to [-1, 1], or ones at the choices."""
        rows = actions.reshape(len(actions), -1)
        if self.discrete:
            same = (rows[:, None] == self.rows[None]).all(axis=2)
            return same.astype(np.float32)
        return ((rows - self._middle) / self._half).astype(np.float32)

    def disturb(self, outputs: np.ndarray, noise: float, generator: np.random.Generator) -> np.ndarray:
        """Outputs with Gaussian noise, or with choices drawn at random for this share of them."""
        if noise == 0:
            return outputs
        if not self.discrete:
            return np.clip(outputs, -1, 1) + noise * generator.normal(size=outputs.shape)
        drawn = generator.random(outputs.shape)
        return np.where(generator.random((len(outputs), 1)) < noise, drawn, outputs)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        """The likeliest choice, or the vector, no larger than those of the data."""
        if self.discrete:
            chosen = self.rows[outputs.argmax(axis=1)]
        else:
            chosen = (np.clip(outputs, -1, 1) * self._half + self._middle).astype(np.float32)
        return chosen.reshape(len(outputs), *self.shape)

    @property
    def _middle(self) -> np.ndarray:
        return self.rows.mean(axis=0)

    @property
    def _half(self) -> np.ndarray:
        half = (self.rows[1] - self.rows[0]) / 2
        return np.where(half > 0, half, 1.0)

    def check_space(self, space: spaces.Space) -> None:
        """Refuse an environment whose actions are none of these."""
        if self.discrete:
            fits = not isinstance(space, spaces.Box) or np.issubdtype(space.dtype, np.integer)
            fits = fits and all(space.contains(_as_of(space, row, self.shape)) for row in self.rows)
        else:
            fits = isinstance(space, spaces.Box) and space.shape == self.shape
        if not fits:
            kind = f"{len(self.rows)} choices" if self.discrete else f"vectors of shape {self.shape}"
            raise ConfigError(
                f"the data has {kind} as actions, and the environment takes {space}; use data of this "
                "environment"
            )


def _as_of(space: spaces.Space, row: np.ndarray, shape: tuple[int, ...]):
    return row.reshape(shape).astype(space.dtype or row.dtype)[()]
