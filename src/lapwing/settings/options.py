"""The settings of `lapwing options`. The command line and the saved file are generated from them."""

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
    """How options are built from eigenfunctions, and how they are evaluated."""

    kind: OptionKind = "eigen"
    """eigen: up and down each eigenfunction; covering: connect the extremes of the slowest, repeatedly."""
    count: Annotated[int | None, chosen_by_lapwing("16 in mazes, 4 elsewhere, or what φ gives")] = None
    """Number of options."""
    exact: bool = False
    """Use the true eigenvectors of a maze instead of a learned φ."""
    dim: Annotated[int | None, chosen_by_lapwing("33 in mazes, for 64 options, or all states; else 10")] = (
        None
    )
    """Number of eigenfunctions, if φ is learned by this command."""
    transitions: int = 1_000_000
    """Number of random steps to learn φ from, if it is learned by this command."""
    gamma: float = 0.95
    """Discount factor of the intrinsic reward: close to 1, options pass over lower peaks."""
    longest: Annotated[int | None, chosen_by_lapwing("the number of states in mazes; else 100")] = None
    """Maximum number of steps of an option."""
    option_share: float = 0.2
    """Share of decisions that take an option, in the measured random walk."""
    walks: int = 100
    """Number of random walks to average the cover time over."""
    observation_key: str | None = None
    """Entry of Dict observations to use (environments)."""
    steps: Annotated[
        int | None, chosen_by_lapwing("10,000, or 20,000 of DDPG where actions are continuous")
    ] = None
    """Steps of DQN or DDPG for each option, if states cannot be enumerated."""
    batch: int = 128
    """Transitions per update of DQN or DDPG."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers of their networks."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        """Validate the values."""
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
            raise ConfigError(f"dim={self.dim} only works with a learned φ; leave it out, or leave exact out")
