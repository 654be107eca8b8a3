"""Every setting of `lapwing options`, documented once; the command line and the file are made from it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from lapwing.errors import ConfigError
from lapwing.settings.checks import (
    MOST_STEPS,
    SavedSettings,
    check_fields,
    check_kinds,
    check_network,
    chosen_by_lapwing,
)

OptionKind = Literal["eigen", "covering"]


@dataclass(frozen=True)
class OptionsSettings(SavedSettings):
    """How options are made of eigenfunctions, and how they are measured."""

    kind: OptionKind = "eigen"
    """eigen: up and down each eigenfunction; covering: between the two ends of the slowest, again and
    again."""
    count: Annotated[int | None, chosen_by_lapwing("16 in mazes, 4 elsewhere, or what φ gives")] = None
    """How many options."""
    exact: bool = False
    """Make them of the true eigenvectors of a maze, in place of a learned φ."""
    dim: Annotated[int | None, chosen_by_lapwing("33 in mazes, for 64 options, or all states; else 10")] = (
        None
    )
    """How many eigenfunctions φ has, where it is learned here."""
    transitions: int = 1_000_000
    """How many random steps φ is learned from, where it is learned here."""
    gamma: float = 0.95
    """The discount of the intrinsic reward: nearer to 1, options pass over lower peaks."""
    longest: Annotated[int | None, chosen_by_lapwing("the number of states in mazes; else 100")] = None
    """Steps after which an option is cut."""
    option_share: float = 0.2
    """The share of decisions that take an option, in the random walk that is measured."""
    walks: int = 100
    """Random walks that the cover time is the mean of."""
    steps: int = 10_000
    """Steps of DQN for each option, where states cannot be listed."""
    batch: int = 128
    """Transitions in an update of DQN."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers of DQN."""
    seed: int = 0
    """The seed of everything random."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        check_kinds(self)
        check_fields(self, "count", whole=True, least=1, most=1_000)
        check_fields(self, "dim", whole=True, least=2, most=5_000)
        check_fields(self, "transitions", "steps", "longest", whole=True, least=1, below=MOST_STEPS)
        check_fields(self, "walks", whole=True, least=2, most=10_000)
        check_fields(self, "batch", whole=True, least=1)
        check_fields(self, "gamma", least=0, below=1)
        check_fields(self, "option_share", above=0, below=1)
        check_fields(self, "seed", whole=True, least=0, below=2**32)
        check_network(self)
        if self.exact and self.dim is not None:
            raise ConfigError(f"dim={self.dim} goes with a learned φ; leave it out, or leave exact out")
