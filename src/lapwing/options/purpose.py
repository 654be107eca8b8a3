"""The intrinsic reward of an eigenoption, and the number of options that a representation can give."""

from typing import Any

import numpy as np

from lapwing.errors import ConfigError
from lapwing.laplacian.distances import trusted_mask
from lapwing.laplacian.forward import Forward
from lapwing.laplacian.representation import Representation
from lapwing.settings.checks import checked

PLACE = (2,)
"""The shape of what φ sees of an arena's states: (x, y)."""


class EigenPurpose:
    """r(s, s') = ±(f(s') - f(s)), with f an eigenfunction (Machado et al. 2017).

    Args:
        representation: whose eigenfunction it is.
        function: which one; 1 is the constant.
        sign: 1 to climb it, -1 to descend.
        scale: multiplies the reward.
    """

    def __init__(self, representation: Representation, function: int, sign: int = 1, scale: float = 1.0):
        if sign not in (1, -1):
            raise ConfigError(f"sign must be 1 or -1, not {sign!r}")
        usable = usable_functions(representation)
        if function not in usable:
            raise ConfigError(
                f"function must be one of the eigenfunctions after the constant that can be trusted, "
                f"{_listed(usable)}, not {function!r}"
            )
        self.forward = Forward(representation, "eigenfunctions", np.float64)
        self._column, self._factor = int(function) - 2, sign * checked("scale", scale, above=0)

    def value(self, seen: Any) -> Any:
        """±f of one observation or of a batch, whose differences are the reward."""
        return self.forward(seen)[..., self._column] * self._factor

    def __call__(self, here: Any, there: Any, terminated: Any = False) -> float:
        """The reward of a step."""
        return float(self.value(there) - self.value(here))


def seen_in(observations: Any, shape: tuple[int, ...]) -> Any:
    """What φ sees of states, one or a batch: all of them, or in an arena (x, y), their first numbers.

    Example:
        >>> seen_in(np.arange(6.0), (2,)).tolist()
        [0.0, 1.0]
    """
    return observations[..., : shape[0]] if len(shape) == 1 else observations


def usable_functions(representation: Representation) -> list[int]:
    """The eigenfunctions after the constant that can be trusted, counted from 1 as in pictures."""
    if not representation.rotated:
        raise ConfigError(
            "options need single eigenfunctions, and this representation was learned with rotate=False; "
            "learn it with rotate=True"
        )
    kept = trusted_mask(representation.config.get("trusted"), representation.dim)
    return [2 + index for index in np.flatnonzero(kept).tolist()]


def functions_for(representation: Representation, count: int) -> list[int]:
    """The eigenfunctions that `count` options climb and descend, counted from 1."""
    usable, needed = usable_functions(representation), (count + 1) // 2
    if not usable:
        raise ConfigError(
            f"none of the {representation.dim} eigenfunctions can be trusted, and options need one after the "
            "constant; learn φ with a larger dim or from more data"
        )
    if needed > len(usable):
        raise ConfigError(
            f"count={count} needs {needed} eigenfunctions after the constant, and of these "
            f"{representation.dim} {len(usable)} can be trusted; lower count to {2 * len(usable)}, or learn "
            "φ with a larger dim or from more data"
        )
    return usable[:needed]


def option_count(representation: Representation, asked: int | None, usual: int) -> int:
    """How many options there will be.

    Args:
        representation: whose eigenfunctions they climb and descend.
        asked: so many, refused if the eigenfunctions are too few; None leaves it open.
        usual: so many where it is open, or as many as the eigenfunctions give.
    """
    count = min(usual, 2 * len(usable_functions(representation))) if asked is None else asked
    functions_for(representation, count)
    return count


def _listed(functions: list[int]) -> str:
    return ", ".join(map(str, functions)) if functions else "of which there are none"
