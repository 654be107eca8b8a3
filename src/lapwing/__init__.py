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
    from lapwing.comparing import compare_rewards
    from lapwing.evaluation import evaluate
    from lapwing.experience import Experience, collect, load_experience
    from lapwing.mazes import Maze, parse_maze, read_maze
    from lapwing.progress import progress_bar
    from lapwing.representation import Representation
    from lapwing.rewards import Goal, GoalReward
    from lapwing.targets import open_target
    from lapwing.training import train
    from lapwing.workflow import learn, load

_HOMES = {
    "Agent": "agents.agent",
    "Experience": "experience",
    "Goal": "rewards",
    "GoalReward": "rewards",
    "Maze": "mazes",
    "Representation": "representation",
    "collect": "experience",
    "compare_rewards": "comparing",
    "evaluate": "evaluation",
    "learn": "workflow",
    "load": "workflow",
    "load_agent": "agents.agent",
    "load_experience": "experience",
    "open_target": "targets",
    "parse_maze": "mazes",
    "progress_bar": "progress",
    "read_maze": "mazes",
    "train": "training",
}
__all__ = [
    "Agent",
    "Experience",
    "Goal",
    "GoalReward",
    "Maze",
    "Representation",
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
    "train",
]

register_environments()


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lapwing.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
