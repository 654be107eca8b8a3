"""The settings of `lapwing.reach`. The command line and the saved file are generated from them."""

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
    """How a goal-reaching policy is learned from data with actions."""

    dim: Annotated[int | None, chosen_by_lapwing("50, or all states if fewer")] = None
    """Number of eigenfunctions, if φ is learned by this command."""
    transitions: int = 1_000_000
    """Number of random steps to collect, if the target is an environment."""
    observation_key: str | None = None
    """Entry of Dict observations to use, for an environment or a Minari data set."""
    past_termination: bool = False
    """Continue an episode after the environment reports termination, until it is truncated."""
    geometry: Geometry = "phi"
    """Distance: phi, eigenfunctions over √λ; or observation, Euclidean distance, for comparison."""
    landmarks: int = 500
    """Maximum number of landmarks, states of the data that the planner uses."""
    plan: bool = True
    """Whether to plan over landmarks; otherwise the controller aims at the goal itself."""
    ahead: Annotated[float | None, chosen_by_lapwing("twice the steps between landmarks")] = None
    """Steps between the state and the waypoint that the controller aims at."""
    controller: ControllerName = "network"
    """Controller: a network trained on the data, or the nearest states of the data."""
    lag: Annotated[int | None, chosen_by_lapwing("a quarter of ahead")] = None
    """Number of steps over which the progress of an action is measured."""
    temperature: float = 2.0
    """Weight of actions that make progress: e to the power of this, per standard deviation."""
    noise: float = 0.2
    """Standard deviation of the action noise, relative to half the range of the data's actions; for discrete
    actions, the share of random actions. Without noise, a mean action into a wall gets stuck there."""
    steps: int = 2_000
    """Gradient steps of the controller."""
    batch: int = 512
    """States per batch."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of its hidden layers."""
    learning_rate: float = 2e-3
    """Adam's initial learning rate, with cosine decay to zero."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        """Validate the values."""
        check_kinds(self)
        check_fields(self, "transitions", "steps", "lag", whole=True, least=1, below=MOST_STEPS)
        check_fields(self, "dim", "landmarks", whole=True, least=2, most=20_000)
        check_fields(self, "noise", least=0, most=1)
        check_fields(self, "batch", whole=True, least=2)
        check_fields(self, "ahead", "temperature", "learning_rate", above=0)
        check_fields(self, "seed", whole=True, least=0, below=2**32)
        check_network(self)
        check_size("landmarks", 16 * self.landmarks**2)  # steps between all pairs, and who is next
