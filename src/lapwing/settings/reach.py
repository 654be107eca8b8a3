"""Every setting of `lapwing.reach`, documented once; the command line and the saved file are made from it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from lapwing.settings.checks import (
    MOST_STEPS,
    SavedSettings,
    check_fields,
    check_kinds,
    check_network,
    check_size,
    chosen_by_lapwing,
)

Geometry = Literal["phi", "observation"]
ControllerName = Literal["network", "neighbours"]


@dataclass(frozen=True)
class ReachSettings(SavedSettings):
    """How a goal-reaching policy is made of data with actions."""

    dim: Annotated[int | None, chosen_by_lapwing("50, or all states if fewer")] = None
    """How many eigenfunctions φ has, where it is learned here."""
    transitions: int = 1_000_000
    """How many random steps to collect, where the target is an environment."""
    observation_key: str | None = None
    """Which part of Dict observations is seen, of an environment or a Minari data set."""
    geometry: Geometry = "phi"
    """What is near: phi, eigenfunctions over √λ; or observation, Euclidean distance, to compare with."""
    landmarks: int = 500
    """How many states of the data the plan goes over, at most."""
    plan: bool = True
    """Whether to plan over landmarks; without, the controller aims at the goal itself."""
    ahead: Annotated[float | None, chosen_by_lapwing("twice the steps between landmarks")] = None
    """How many steps ahead the way point is that the controller aims at."""
    controller: ControllerName = "network"
    """What chooses actions: a network trained on the data, or the nearest states of the data."""
    lag: Annotated[int | None, chosen_by_lapwing("a quarter of ahead")] = None
    """Over how many steps an action is judged by how much nearer it came."""
    temperature: float = 2.0
    """How much an action counts that came nearer: e to the power of this, a standard deviation."""
    noise: float = 0.2
    """The standard deviation of what is added to an action, over half the range of the data's; of choices,
    the share that is drawn at random. Without, a state whose mean action runs into a wall stays there."""
    steps: int = 2_000
    """Gradient steps of the controller."""
    batch: int = 512
    """States in a batch."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of its hidden layers."""
    learning_rate: float = 2e-3
    """Adam's step size at the start; it falls to zero along a cosine."""
    seed: int = 0
    """The seed of everything random."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        check_kinds(self)
        check_fields(self, "transitions", "steps", "lag", whole=True, least=1, below=MOST_STEPS)
        check_fields(self, "dim", "landmarks", whole=True, least=2, most=20_000)
        check_fields(self, "noise", least=0, most=1)
        check_fields(self, "batch", whole=True, least=2)
        check_fields(self, "ahead", "temperature", "learning_rate", above=0)
        check_fields(self, "seed", whole=True, least=0, below=2**32)
        check_network(self)
        check_size("landmarks", 16 * self.landmarks**2)  # steps between all pairs, and who is next
