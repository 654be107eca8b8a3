"""Every setting of an agent, documented once; the command line and the saved file are made from it."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from lapwing.errors import ConfigError
from lapwing.settings.checks import SavedSettings, check_field, check_kinds, checked_hidden, chosen_by_lapwing
from lapwing.settings.learn import Filter, RewardForm


@dataclass(frozen=True)
class AgentSettings(SavedSettings):
    """How a DQN agent is trained to reach a goal; the defaults are those of the paper."""

    reward: Annotated[
        RewardForm | None, chosen_by_lapwing("potential in mazes; else the environment's own")
    ] = None
    """sparse, l2, rawmix; or shaped by φ: laplacian, mix, potential."""
    filter: Annotated[Filter | None, chosen_by_lapwing("commute; soft where φ is of a paper's preset")] = None
    """The spectral filter of φ's distance: soft, unit, commute or heat."""
    scale: Annotated[
        float | None, chosen_by_lapwing("potential: a step is 1; else the mean is 1; soft: as learned")
    ] = None
    """Multiplies φ's distance."""
    online: bool = False
    """Learn φ while the agent learns, in place of before, by the paper's recipe with λ annealed to 0.95."""
    goal: Annotated[str | None, chosen_by_lapwing("the maze's own"), tyro.conf.arg(metavar="ROW,COLUMN")] = (
        None
    )
    """The cell to be reached."""
    observation: Literal["index", "position", "image"] = "position"
    """What the agent and φ see of a maze."""
    stay: bool = False
    """Give mazes a fifth action that does nothing."""
    episode_length: int = 50
    """Steps in an episode of a maze."""
    random_steps: int = 10_000
    """Steps of the random policy that fill the replay before learning."""
    steps: int = 30_000
    """Steps of the agent, with one update each."""
    evaluate_every: int = 1_000
    """Steps between evaluations of the greedy policy."""
    gamma: float = 0.98
    """The discount."""
    epsilon: float = 0.2
    """The share of random actions while learning."""
    batch: int = 128
    """Transitions in an update."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the hidden layers of Q (index is a table, images have the paper's ConvNet)."""
    target_every: int = 50
    """Steps between moves of the target network."""
    target_rate: float = 0.05
    """How far it then moves towards Q."""
    seed: int = 0
    """The seed of everything random."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        check_kinds(self)
        for name in ("episode_length", "batch", "evaluate_every", "target_every"):
            check_field(self, name, whole=True, least=1)
        for name in ("steps", "random_steps"):
            check_field(self, name, whole=True, least=1, below=2**30)
        check_field(self, "seed", whole=True, least=0, below=2**32)
        check_field(self, "gamma", above=0, below=1)
        for name in ("scale", "learning_rate"):
            check_field(self, name, above=0)
        for name in ("epsilon", "target_rate"):
            check_field(self, name, least=0, most=1)
        object.__setattr__(self, "hidden", checked_hidden(self.hidden))
        self.goal_cell  # noqa: B018 (refuses a goal that is no cell)

    @property
    def goal_cell(self) -> tuple[int, int] | None:
        """The goal as (row, column)."""
        return None if self.goal is None else read_cell(self.goal)


def read_cell(text: str) -> tuple[int, int]:
    """A cell as the command line names it.

    Example:
        >>> read_cell("10,3")
        (10, 3)
    """
    try:
        row, _, column = text.partition(",")
        return int(row), int(column)
    except (AttributeError, ValueError):
        raise ConfigError(f"goal must be ROW,COLUMN such as 10,3, not {text!r}") from None
