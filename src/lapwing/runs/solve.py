"""`lapwing.solve`: the policy of any reward, from a representation and steps with actions."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lapwing.compilation import kept_programs
from lapwing.data.experience import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, DatasetError, nearest
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import MOST_ENUMERATED, Target
from lapwing.mazes import parse_maze
from lapwing.runs.learn import reopen_target
from lapwing.solving.model import LANDMARKS, ActionModel, Embed, Policy, fit_model
from lapwing.solving.rewards import Reward
from lapwing.solving.steps import Steps, experienced_steps, maze_steps

NEAR = ("observation", "both", "phi")
"""What landmarks of continuous vectors can be compared by."""


@kept_programs()
def solve(
    source: ActionModel | Representation | str | Path,
    reward: Reward,
    *,
    gamma: float = 0.98,
    experience: Experience | None = None,
) -> Policy:
    """The policy of a reward, for discrete actions: value iteration, and no training.

    Args:
        source: what `action_model` returned, to solve many rewards; or what it takes.
        reward: of arriving in a state: a function from a batch of observations to a number each; an array
            with a number for each enumerated state; or a pair of observations and their rewards.
        gamma: the discount.
        experience: as for `action_model`.

    Example:
        >>> import lapwing
        >>> rep = lapwing.learn("GridMaze-7", transitions=5_000, dim=5, steps=200)
        >>> policy = lapwing.solve(rep, lambda positions: positions[:, 0] < -0.4)  # the upper end
        >>> policy.act([0.25, 0.6])  # up
        0
    """
    if isinstance(source, ActionModel):
        if experience is not None:
            raise ConfigError("experience goes with a representation, and this is an action model of its own")
        return source.solve(reward, gamma)
    return action_model(source, experience).solve(reward, gamma)


@kept_programs()
def action_model(
    source: Representation | str | Path,
    experience: Experience | None = None,
    *,
    landmarks: int = LANDMARKS,
    near: str | None = None,
) -> ActionModel:
    """What each action does, computed once for all rewards.

    Args:
        source: a representation, or the folder of a run of `lapwing learn`, with what it was learned from.
        experience: steps with discrete actions; None is what the run was learned from, or, for a
            representation of a maze, the maze itself.
        landmarks: how many states stand for all, where states are not enumerated.
        near: where those are continuous vectors, by what a landmark is near: `observation`, the vectors
            (None); `phi`, the embedding f/√λ; or `both`, for vectors that walls part.
    """
    if landmarks < 1:
        raise ConfigError(f"landmarks must be at least 1, not {landmarks!r}")
    if isinstance(source, Representation):
        representation, steps = source, _steps_for(source, experience)
    else:
        representation, target = reopen_target(Path(source))
        steps = target_steps(target) if experience is None else _steps_for(representation, experience)
    return fit_model(embedding_for(representation, steps, near), steps, landmarks=landmarks)


def embedding_for(representation: Representation, steps: Steps, near: str | None = None) -> Embed:
    """The embedding that landmarks are compared in.

    φ is slow: what is quick but decides what an action does, such as the velocity of a pole, is hardly in it.
    But vectors alone reach through walls. So continuous vectors can be compared by either, or by both side by
    side, each in units of its own steps.
    """
    vectors = not steps.enumerated and steps.observations.ndim == 2
    if near is not None and near not in NEAR:
        raise ConfigError(f"near must be one of {', '.join(NEAR)}, not {near!r}; {nearest(near, NEAR)}")
    if near in ("observation", "both") and not vectors:
        raise ConfigError(
            f"near={near!r} goes with continuous vectors, and these states are none; leave it out"
        )
    slow = partial(embedding, representation)
    if near == "phi" or not vectors:
        return slow
    spread = steps.observations.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)

    def quick(seen: np.ndarray) -> np.ndarray:
        return np.asarray(seen, np.float64) / scale

    return _in_steps((quick, slow), steps) if near == "both" else quick


def _in_steps(parts: Sequence[Embed], steps: Steps) -> Embed:
    """Embeddings side by side, each in units of the median length of a step."""
    units = []
    for part in parts:
        points = part(steps.observations)
        lengths = np.linalg.norm(points[steps.there] - points[steps.here], axis=1)
        units.append(float(np.median(lengths[lengths > 0])) if lengths.any() else 1.0)
    return lambda seen: np.hstack([part(seen) / unit for part, unit in zip(parts, units, strict=True)])


def embedding(representation: Representation, observations: np.ndarray) -> np.ndarray:
    """f/√λ of a batch of observations; φ itself where there are no single eigenfunctions."""
    filter = "commute" if "commute" in representation.filters else "soft"
    return np.asarray(representation.embed(observations, filter), np.float64)


def target_steps(target: Target) -> Steps:
    """The steps of what a representation was learned from."""
    if target.experience is None:
        if target.world is None:
            raise ConfigError(
                f"{target.name} is a graph, which has no actions; solve a maze, or data with them"
            )
        assert target.states is not None
        return maze_steps(target.world, target.states)
    return experienced_steps(target.experience)


def _steps_for(representation: Representation, experience: Experience | None) -> Steps:
    if experience is None:
        return _steps_of_maze(representation)
    shape = representation.spec.shape
    if experience.observation_shape != shape:
        raise DatasetError(
            f"experience has observations of shape {experience.observation_shape}, and the representation "
            f"takes {shape}; give the kind of data that it was learned from"
        )
    return experienced_steps(experience.tabulated(MOST_ENUMERATED))


def _steps_of_maze(representation: Representation) -> Steps:
    """Every move of the maze that a representation was learned on."""
    text, settings = representation.config.get("maze"), representation.config.get("settings", {})
    if text is None:
        raise ConfigError(
            f"a representation of {representation.config.get('target', 'data')} does not say what actions "
            "do; give experience=, steps with actions, or the folder of its run"
        )
    world = GridWorld(parse_maze(text, name=representation.config["target"]), settings.get("stay", False))
    return maze_steps(world, world.observations(settings.get("observation", "position")))
