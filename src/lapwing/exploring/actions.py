"""What actions do, for a page that solves painted rewards: landmarks of `lapwing.solve`, and their chain."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from lapwing.errors import ConfigError, DatasetError
from lapwing.exploring.arrays import packed
from lapwing.exploring.network import functions_at
from lapwing.exploring.scenes import Scene
from lapwing.laplacian.forward import Forward
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import Target
from lapwing.runs.solve import target_steps
from lapwing.solving.embedding import embedding_for
from lapwing.solving.landmarks import nearest
from lapwing.solving.model import ActionModel, fit_model
from lapwing.solving.steps import Steps, experienced_steps

MOST_IMAGES = 1_000
"""So many steps say what actions do where states are images and not enumerated, for φ of each is computed."""
MOST_NAMED = 8
"""Landmarks of so many features have these in the page, to be named by them."""
LARGEST_SHARE = 65_535
CONTINUOUS = "{} has continuous actions, and lapwing.solve takes a few numbered ones: record steps with such"
ALONE = (
    "a representation alone does not say what actions do: explore the folder of its run, whose data has them"
)
REACHED = "the page of a reacher has its plans in place of a painted reward: explore the run of lapwing learn"


@dataclass(frozen=True, eq=False)
class Actions:
    """What each action does at landmarks, and where these are drawn."""

    model: ActionModel
    observations: np.ndarray
    """Of each landmark."""
    points: np.ndarray
    """(landmarks, 2), as those of the scene."""
    remarks: tuple[str, ...] = ()


def actions_of(representation: Representation, target: Target, scene: Scene) -> Actions | str:
    """The model of a run's data; where there is none, why."""
    try:
        steps, remarks = _steps(target)
    except (ConfigError, DatasetError) as error:
        return str(error)
    embed = _embedding(representation, steps)
    embedded = embed(steps.observations)
    model = fit_model(lambda seen: embedded if seen is steps.observations else embed(seen), steps)
    if model.states is not None:
        return Actions(model, model.samples, scene.points[model.states], remarks)
    rows = nearest(KDTree(embedded), model.landmarks, 1)[1][:, 0]
    observations = steps.observations[rows]
    points = scene.placed(functions_at(representation, observations)[1], observations)
    return Actions(model, observations, points, remarks)


def described_actions(actions: Actions, scene: Scene) -> dict[str, Any]:
    """What the page needs: where landmarks are, and what follows each action at each of them."""
    model, seen = actions.model, actions.observations
    transition = model.transition.tocsr()
    named = seen.ndim == 2 and seen.shape[1] <= MOST_NAMED
    return {
        "points": packed(actions.points.astype(np.float32)),
        "observations": packed(seen.astype(np.float32)) if named else None,
        "states": None if model.states is None else packed(model.states),
        "enumerated": model.n_states,
        "actions": model.seen.shape[1],
        "entries": packed(np.diff(transition.indptr)),
        "ends": packed(transition.indices),
        "shares": packed(np.rint(LARGEST_SHARE * transition.data).astype(np.uint32)),
        "drawn": scene.expression,
    }


def _steps(target: Target) -> tuple[Steps, tuple[str, ...]]:
    """Those that `lapwing.solve` takes; of images that are not enumerated fewer."""
    experience = target.experience
    if experience is None or experience.table is not None or len(experience.observation_shape) < 2:
        return target_steps(target), ()
    steps = experienced_steps(experience, most=MOST_IMAGES)
    few = f"a painted reward is solved from {len(steps.action):,} steps, so that the page is there at once"
    return steps, (few,) if len(steps.action) < experience.n_transitions else ()


def _embedding(representation: Representation, steps: Steps) -> Callable[[np.ndarray], np.ndarray]:
    """As `lapwing.solve` has it; but φ in NumPy, for which nothing is compiled."""
    if not steps.enumerated and steps.observations.ndim == 2:
        return embedding_for(representation, steps)
    return Forward(representation, "commute" if "commute" in representation.filters else "soft", np.float64)
