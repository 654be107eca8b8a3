"""Objectives: what gradient steps minimise. Each is one class; `lapwing.learn` also accepts your own.

`drawing` has the equations of graph drawing, `batch` the samples that an estimator passes to an objective.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Float

from lapwing.errors import ConfigError
from lapwing.laplacian.objectives.allo import Allo
from lapwing.laplacian.objectives.batch import Batch, Matrix
from lapwing.laplacian.objectives.drawing import Loss
from lapwing.laplacian.objectives.generalised import Generalised
from lapwing.laplacian.objectives.graph_drawing import GraphDrawing
from lapwing.laplacian.objectives.nested import NestedLowRank
from lapwing.laplacian.objectives.omm import OrbitalMinimisation
from lapwing.settings.learn import LearnSettings, ResolvedSettings


@runtime_checkable
class Objective(Protocol):
    """What an objective has; `State` is any tree of arrays, and is part of every checkpoint."""

    def init(self, d: int) -> Any:
        """What is learned besides φ, of `d` dimensions: duals and the like; () if nothing is."""
        ...

    def loss(self, state: Any, batch: Batch) -> Loss:
        """The loss of a batch, and metrics by name, `loss` among them; its gradient moves φ alone."""
        ...

    def update(self, state: Any, batch: Batch) -> Any:
        """The state after a step, from the batch as φ embedded it before."""
        ...

    def eigenvalues(self, state: Any, moment: Matrix) -> Float[Array, " d"] | None:
        """Eigenvalues of P_λ's Laplacian, if the objective knows them, from E[φφᵀ]; None if not."""
        ...


METHODS = ("init", "loss", "update", "eigenvalues")
_MAKERS: dict[str, Callable[[ResolvedSettings], Objective]] = {
    "graph-drawing": lambda settings: GraphDrawing(settings.beta, settings.delta),
    "generalised": lambda settings: Generalised(settings.beta, settings.delta),
    "allo": lambda settings: Allo(settings.beta, settings.delta),
    "omm": lambda settings: OrbitalMinimisation(),
    "nested": lambda settings: NestedLowRank(),
}


def find_objective(settings: ResolvedSettings, own: Objective | None = None) -> Objective:
    """The objective that the settings name; `own`, if they name one of the user's."""
    check_own(settings, own)
    return own if own is not None else _MAKERS[settings.objective](settings)


def check_own(settings: LearnSettings, own: Objective | None) -> None:
    """Refuse the name of a user's objective without the object; nothing that a file names is imported."""
    if own is None and settings.objective not in _MAKERS:
        raise ConfigError(
            f"objective={settings.objective} is a class of your own; give the object itself to "
            "lapwing.learn(objective=…)"
        )


def name_of(objective: Any) -> str:
    """What settings call an objective: its name, or of a user's object its module, class and fields.

    Example:
        >>> name_of("allo"), name_of(Allo(barrier=1.0)).partition("Allo")[0]
        ('allo', 'lapwing.laplacian.objectives.allo:')
    """
    if isinstance(objective, str):
        return objective
    kind = type(objective)
    missing = [name for name in METHODS if not callable(getattr(objective, name, None))]
    if isinstance(objective, type) or missing:
        what = f"the class {objective.__name__}" if isinstance(objective, type) else f"a {kind.__name__}"
        remedy = "give an object of it" if not missing else f"it lacks {', '.join(missing)}"
        raise ConfigError(
            f"objective must be a name or an object with the methods {', '.join(METHODS)}, "
            f"not {what}; {remedy}"
        )
    text = repr(objective)
    described = text if " object at 0x" not in text else kind.__qualname__
    return f"{kind.__module__}:{described}"


def check_objective(settings: LearnSettings, estimator: str) -> None:
    """Refuse settings that an objective has no use for."""
    if settings.objective == "graph-drawing":
        return
    if estimator == "closed-form":
        raise ConfigError(
            f"objective={settings.objective} is minimised by gradient descent, and estimator closed-form "
            "takes no steps; use exact, pairwise or sampled"
        )
    with_penalty = settings.objective in ("generalised", "allo")
    for name, default in (("beta", None), ("delta", 1.0)):
        if getattr(settings, name) != default and not with_penalty:
            raise ConfigError(
                f"{name}={getattr(settings, name):g} is of the penalty, and objective {settings.objective} "
                "has none; leave it out"
            )
