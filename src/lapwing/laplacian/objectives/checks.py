"""Checks of a user's objective before anything is compiled."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from lapwing.errors import ConfigError
from lapwing.laplacian.objectives import Objective


def checked_metrics(objective: Objective, state: Any, batch: Any) -> tuple[str, ...]:
    """The names of an objective's metrics; what its methods return is refused if it cannot be used.

    Args:
        objective: any.
        state: what its `init` returned.
        batch: of an estimator, or its shapes alone.
    """
    found = eqx.filter_eval_shape(objective.loss, state, batch)
    named = isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict) and "loss" in found[1]
    if not named or not all(_is_scalar(value) for value in (found[0], *found[1].values())):
        raise _refused(objective, "loss", "the loss and a dict of metrics with 'loss' in it, all scalars")
    updated = eqx.filter_eval_shape(objective.update, state, batch)
    if _description(updated) != _description(state):
        raise _refused(objective, "update", "a state of the same arrays as that of init")
    return tuple(found[1])


def _is_scalar(value: Any) -> bool:
    return getattr(value, "shape", None) == () and np.issubdtype(value.dtype, np.floating)


def _description(state: Any) -> Any:
    leaves, structure = jax.tree.flatten(state)
    return structure, [(getattr(leaf, "shape", None), getattr(leaf, "dtype", None)) for leaf in leaves]


def _refused(objective: Objective, method: str, wanted: str) -> ConfigError:
    return ConfigError(f"objective {type(objective).__name__}: {method} must return {wanted}; look there")
