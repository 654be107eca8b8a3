"""lapwing: Laplacian state representations from reinforcement-learning experience.

The names below are imported when they are first used, so that `import lapwing` is quick. Importing lapwing
registers its environments with Gymnasium.
"""

import importlib
from typing import TYPE_CHECKING

from lapwing._version import __version__
from lapwing.envs import register_environments

if TYPE_CHECKING:
    from lapwing.agents.agent import Agent, load_agent
    from lapwing.collecting import collect
    from lapwing.comparing import compare_rewards
    from lapwing.data_files import load_experience, save_episodes
    from lapwing.embedding import LaplacianEmbedding as LaplacianEmbedding
    from lapwing.errors import LapwingError, LapwingWarning
    from lapwing.evaluation import evaluate
    from lapwing.experience import Experience
    from lapwing.forward import Forward
    from lapwing.mazes import Maze, parse_maze, read_maze
    from lapwing.online_learner import OnlineLearner
    from lapwing.progress import progress_bar
    from lapwing.representation import Representation
    from lapwing.rewards import Goal, GoalReward
    from lapwing.settings import LearnSettings
    from lapwing.targets import open_target
    from lapwing.torch_module import to_torch as to_torch
    from lapwing.training import train
    from lapwing.vector_wrappers import VectorLaplacianObservation, VectorLaplacianReward
    from lapwing.workflow import learn, load
    from lapwing.wrappers import LaplacianObservation, LaplacianReward

_HOMES = {
    "Agent": "agents.agent",
    "Experience": "experience",
    "Forward": "forward",
    "Goal": "rewards",
    "GoalReward": "rewards",
    "LaplacianEmbedding": "embedding",
    "LaplacianObservation": "wrappers",
    "LaplacianReward": "wrappers",
    "LapwingError": "errors",
    "LapwingWarning": "errors",
    "LearnSettings": "settings",
    "Maze": "mazes",
    "OnlineLearner": "online_learner",
    "Representation": "representation",
    "VectorLaplacianObservation": "vector_wrappers",
    "VectorLaplacianReward": "vector_wrappers",
    "collect": "collecting",
    "compare_rewards": "comparing",
    "evaluate": "evaluation",
    "learn": "workflow",
    "load": "workflow",
    "load_agent": "agents.agent",
    "load_experience": "data_files",
    "save_episodes": "data_files",
    "open_target": "targets",
    "parse_maze": "mazes",
    "progress_bar": "progress",
    "read_maze": "mazes",
    "to_torch": "torch_module",
    "train": "training",
}
__all__ = [
    "Agent",
    "Experience",
    "Forward",
    "Goal",
    "GoalReward",
    "LaplacianObservation",
    "LaplacianReward",
    "LapwingError",
    "LapwingWarning",
    "LearnSettings",
    "Maze",
    "OnlineLearner",
    "Representation",
    "VectorLaplacianObservation",
    "VectorLaplacianReward",
    "__version__",
    "collect",
    "compare_rewards",
    "evaluate",
    "learn",
    "load",
    "load_agent",
    "load_experience",
    "open_target",
    "parse_maze",
    "progress_bar",
    "read_maze",
    "save_episodes",
    "train",
]

WITH_EXTRA = ("LaplacianEmbedding", "to_torch")
"""Names that need an optional package, and so are not among those of `from lapwing import *`."""

register_environments()


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lapwing.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, *WITH_EXTRA]
