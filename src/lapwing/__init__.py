"""lapwing: Laplacian state representations from reinforcement-learning experience.

The names below are imported on first use, so that `import lapwing` is fast. Importing lapwing registers its
environments with Gymnasium.
"""

import importlib
from typing import TYPE_CHECKING

from lapwing._version import __version__
from lapwing.envs import register_environments

if TYPE_CHECKING:
    from lapwing.agents.agent import Agent, load_agent
    from lapwing.cli.progress import progress_bar
    from lapwing.data.collect import collect
    from lapwing.data.experience import Experience
    from lapwing.data.files import load_experience
    from lapwing.data.folders import save_episodes
    from lapwing.envs.wrap import AbsorbingEnd, PastTermination
    from lapwing.errors import LapwingError, LapwingWarning
    from lapwing.exploring.explore import explore
    from lapwing.integrations.eigen_reward import EigenReward, VectorEigenReward
    from lapwing.integrations.metric_logger import metric_logger
    from lapwing.integrations.online_learner import OnlineLearner
    from lapwing.integrations.option_wrappers import LaplacianOptions, VectorLaplacianOptions
    from lapwing.integrations.sklearn import LaplacianEmbedding as LaplacianEmbedding
    from lapwing.integrations.torch import to_torch as to_torch
    from lapwing.integrations.vector_wrappers import VectorLaplacianObservation, VectorLaplacianReward
    from lapwing.integrations.wrappers import LaplacianObservation, LaplacianReward
    from lapwing.laplacian.evaluate import evaluate
    from lapwing.laplacian.forward import Forward
    from lapwing.laplacian.representation import Representation
    from lapwing.laplacian.target import open_target
    from lapwing.mazes import Maze, parse_maze, read_maze
    from lapwing.options.option_set import load_options
    from lapwing.reaching.files import load_reacher
    from lapwing.reaching.reacher import Reacher
    from lapwing.runs.compare import compare_rewards
    from lapwing.runs.folder import load
    from lapwing.runs.learn import learn
    from lapwing.runs.options import discover_options
    from lapwing.runs.reach import reach
    from lapwing.runs.solve import action_model, solve
    from lapwing.runs.train import train
    from lapwing.settings.learn import LearnSettings
    from lapwing.shaping.rewards import Goal, GoalReward
    from lapwing.solving.files import load_policy
    from lapwing.solving.model import ActionModel, Policy
    from lapwing.sweeps.grid import SweepRun
    from lapwing.sweeps.sweep import sweep

_HOMES = {
    "ActionModel": "solving.model",
    "AbsorbingEnd": "envs.wrap",
    "Agent": "agents.agent",
    "EigenReward": "integrations.eigen_reward",
    "Experience": "data.experience",
    "Forward": "laplacian.forward",
    "Goal": "shaping.rewards",
    "GoalReward": "shaping.rewards",
    "LaplacianEmbedding": "integrations.sklearn",
    "LaplacianObservation": "integrations.wrappers",
    "LaplacianOptions": "integrations.option_wrappers",
    "LaplacianReward": "integrations.wrappers",
    "LapwingError": "errors",
    "LapwingWarning": "errors",
    "LearnSettings": "settings.learn",
    "Maze": "mazes",
    "OnlineLearner": "integrations.online_learner",
    "Reacher": "reaching.reacher",
    "PastTermination": "envs.wrap",
    "Policy": "solving.model",
    "Representation": "laplacian.representation",
    "VectorEigenReward": "integrations.eigen_reward",
    "VectorLaplacianObservation": "integrations.vector_wrappers",
    "VectorLaplacianOptions": "integrations.option_wrappers",
    "VectorLaplacianReward": "integrations.vector_wrappers",
    "action_model": "runs.solve",
    "collect": "data.collect",
    "compare_rewards": "runs.compare",
    "discover_options": "runs.options",
    "evaluate": "laplacian.evaluate",
    "explore": "exploring.explore",
    "learn": "runs.learn",
    "load": "runs.folder",
    "load_agent": "agents.agent",
    "load_experience": "data.files",
    "load_options": "options.option_set",
    "load_policy": "solving.files",
    "load_reacher": "reaching.files",
    "metric_logger": "integrations.metric_logger",
    "save_episodes": "data.folders",
    "open_target": "laplacian.target",
    "parse_maze": "mazes",
    "progress_bar": "cli.progress",
    "reach": "runs.reach",
    "read_maze": "mazes",
    "solve": "runs.solve",
    "SweepRun": "sweeps.grid",
    "sweep": "sweeps.sweep",
    "to_torch": "integrations.torch",
    "train": "runs.train",
}
__all__ = [
    "AbsorbingEnd",
    "ActionModel",
    "Agent",
    "EigenReward",
    "Experience",
    "Forward",
    "Goal",
    "GoalReward",
    "LaplacianObservation",
    "LaplacianOptions",
    "LaplacianReward",
    "LapwingError",
    "LapwingWarning",
    "LearnSettings",
    "Maze",
    "OnlineLearner",
    "PastTermination",
    "Policy",
    "Reacher",
    "Representation",
    "SweepRun",
    "VectorEigenReward",
    "VectorLaplacianObservation",
    "VectorLaplacianOptions",
    "VectorLaplacianReward",
    "__version__",
    "action_model",
    "collect",
    "compare_rewards",
    "discover_options",
    "evaluate",
    "explore",
    "learn",
    "load",
    "load_agent",
    "load_experience",
    "load_options",
    "load_policy",
    "load_reacher",
    "metric_logger",
    "open_target",
    "parse_maze",
    "progress_bar",
    "reach",
    "read_maze",
    "save_episodes",
    "solve",
    "sweep",
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
