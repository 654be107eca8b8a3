"""`lapwing.solve`: the policy of any reward, from a representation and steps with actions."""

from pathlib import Path

import numpy as np

from lapwing.compilation import kept_programs
from lapwing.data.experience import Experience
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError, DatasetError
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import MOST_ENUMERATED, Target
from lapwing.mazes import parse_maze
from lapwing.runs.learn import reopen_target
from lapwing.solving.embedding import embedding_for
from lapwing.solving.model import LANDMARKS, ActionModel, Policy, fit_model
from lapwing.solving.rewards import Reward
from lapwing.solving.steps import Steps, experienced_steps, maze_steps


@kept_programs()
def solve(
    source: ActionModel | Representation | str | Path,
    reward: Reward,
    *,
    gamma: float = 0.98,
    experience: Experience | None = None,
) -> Policy:
    """The policy of a reward, for discrete actions, by value iteration without training.

    Args:
        source: the result of `action_model`, to solve many rewards; or its `source`.
        reward: the reward on arrival in a state: a function from a batch of observations to one number
            each; an array with a number for each enumerated state; or a pair of observations and rewards.
        gamma: the discount factor.
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
            raise ConfigError(
                "experience only works with a representation, and this is an action model of its own"
            )
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
    """The effects of actions, computed once for all rewards.

    Args:
        source: a representation, or the folder of a run of `lapwing learn`, with its experience.
        experience: steps with discrete actions; None is the experience of the run, or, for a
            representation of a maze, the maze itself.
        landmarks: the number of landmark states, if states are not enumerated.
        near: for continuous vectors, the space in which landmarks are compared: `observation`, the vectors
            (None); `phi`, the embedding f/√λ; or `both`, for vectors that walls separate.
    """
    if landmarks < 1:
        raise ConfigError(f"landmarks must be at least 1, not {landmarks!r}")
    if isinstance(source, Representation):
        representation, steps = source, _steps_for(source, experience)
    else:
        representation, target = reopen_target(Path(source))
        steps = target_steps(target) if experience is None else _steps_for(representation, experience)
    return fit_model(embedding_for(representation, steps, near), steps, landmarks=landmarks)


def target_steps(target: Target) -> Steps:
    """The steps of the experience that a representation was learned from."""
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
    if representation.config.get("maze") is None:
        raise ConfigError(
            f"a representation of {representation.config.get('target', 'data')} does not say what actions "
            "do; give experience=, steps with actions, or the folder of its run"
        )
    return maze_steps(*maze_of(representation))


def maze_of(representation: Representation) -> tuple[GridWorld, np.ndarray]:
    """The maze of a representation, and the observation of each state."""
    config = representation.config
    settings = config.get("settings", {})
    world = GridWorld(parse_maze(config["maze"], name=config["target"]), settings.get("stay", False))
    return world, world.observations(settings.get("observation", "position"))
