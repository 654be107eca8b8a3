"""The settings of agents. The command line and the saved file are generated from these dataclasses."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro

from lapwing.errors import ConfigError
from lapwing.settings.checks import (
    MOST_STEPS,
    SavedSettings,
    check_fields,
    check_kinds,
    check_known,
    check_network,
    check_size,
    chosen_by_lapwing,
    from_preset,
)
from lapwing.settings.learn import Distance, RewardForm

ControlReward = Literal["sparse", "l2", "rawmix", "laplacian", "mix", "fullmix"]
ControlPreset = Literal["quick", "paper"]
RANDOM_STEPS = 10_000
"""Default number of steps of the random policy."""


@dataclass(frozen=True)
class AgentSettings(SavedSettings):
    """How a DQN agent is trained to reach a goal; the defaults are those of the paper."""

    reward: Annotated[
        RewardForm | None, chosen_by_lapwing("potential in mazes; else the environment's own")
    ] = None
    """sparse, l2, rawmix; or shaped by φ: laplacian, mix, potential."""
    filter: Annotated[Distance | None, chosen_by_lapwing("commute; soft if φ has a paper preset")] = None
    """Distance in φ: a spectral filter (soft, unit, commute, biharmonic, heat), or hitting."""
    scale: Annotated[
        float | None, chosen_by_lapwing("potential: a step is 1; else the mean is 1; soft: as learned")
    ] = None
    """Factor on φ's distance."""
    online: bool = False
    """Learn φ together with the agent, not beforehand, by the paper's recipe with λ annealed to 0.95."""
    goal: Annotated[str | None, chosen_by_lapwing("the maze's own"), tyro.conf.arg(metavar="ROW,COLUMN")] = (
        None
    )
    """Goal cell."""
    observation: Literal["index", "position", "image"] = "position"
    """Input of the agent and of φ in a maze."""
    stay: bool = False
    """Add a fifth action to mazes that does nothing."""
    episode_length: int = 50
    """Steps per episode of a maze."""
    random_steps: int = 10_000
    """Warm-up steps of the random policy that fill the replay buffer."""
    steps: int = 30_000
    """Steps of the agent, with one update each."""
    evaluate_every: int = 1_000
    """Steps between evaluations of the greedy policy."""
    gamma: float = 0.98
    """Discount factor."""
    epsilon: float = 0.2
    """Probability of a random action during training."""
    batch: int = 128
    """Transitions per update."""
    learning_rate: float = 1e-3
    """Adam's learning rate."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the hidden layers of Q (index uses a table, images the paper's ConvNet)."""
    target_every: int = 50
    """Steps between updates of the target network."""
    target_rate: float = 0.05
    """Rate of these soft updates towards Q."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        """Validate the values."""
        check_kinds(self)
        periods = ("episode_length", "evaluate_every", "target_every")
        check_fields(self, *periods, whole=True, least=1, below=MOST_STEPS)
        check_fields(self, "steps", "random_steps", whole=True, least=1, below=2**30)
        check_fields(self, "batch", whole=True, least=1)
        check_fields(self, "seed", whole=True, least=0, below=2**32)
        check_fields(self, "gamma", above=0, below=1)
        check_fields(self, "scale", "learning_rate", above=0)
        check_fields(self, "epsilon", "target_rate", least=0, most=1)
        check_network(self)
        check_size("steps", 8 * (self.random_steps + self.steps))
        self.goal_cell  # noqa: B018 (refuses a goal that is no cell)

    @classmethod
    def from_keywords(cls, values: dict[str, Any]) -> "AgentSettings":
        """The settings with these values; unknown names raise an error."""
        check_known(values, cls)
        return cls(**values)

    @property
    def goal_cell(self) -> tuple[int, int] | None:
        """The goal as (row, column)."""
        return None if self.goal is None else read_cell(self.goal)


@dataclass(frozen=True)
class ControlSettings(SavedSettings):
    """How a DDPG agent is trained to reach a goal in an arena; the defaults are those of the paper."""

    reward: ControlReward = "mix"
    """sparse, l2, rawmix; or shaped by φ of (x, y): laplacian, mix; or of the whole state: fullmix."""
    filter: Annotated[Distance | None, chosen_by_lapwing("commute; soft with --online")] = None
    """Distance in φ: a spectral filter (soft in the paper, unit, commute, biharmonic, heat), or hitting."""
    online: bool = False
    """Learn φ together with the agent, not beforehand, with λ annealed to 0.95."""
    goal: Annotated[str | None, chosen_by_lapwing("the maze's own"), tyro.conf.arg(metavar="ROW,COLUMN")] = (
        None
    )
    """Goal cell."""
    cell: Annotated[float | None, chosen_by_lapwing("2 for Point, 3 for Ant")] = None
    """Width of a corridor."""
    fast: Annotated[bool, tyro.conf.FlagConversionOff] = False
    """Whether to simulate with the integrator implicitfast, several times faster than RK4."""
    envs: int = 16
    """Robots simulated at once; each step of all is followed by as many updates."""
    random_steps: Annotated[int | None, chosen_by_lapwing("10,000")] = None
    """Warm-up steps of the random policy that fill the replay buffer."""
    steps: Annotated[
        int | None, chosen_by_lapwing("60,000 for Point; for Ant 1,000,000, or 300,000 in quick")
    ] = None
    """Steps of the agent, over all robots, with one update each."""
    evaluate_every: Annotated[int | None, chosen_by_lapwing("2,000 for Point, 20,000 for Ant")] = None
    """Steps between evaluations of the policy, without noise, from a fixed set of starts."""
    gamma: float = 0.995
    """Discount factor."""
    batch: int = 100
    """Transitions per update."""
    hidden: tuple[int, ...] = (400, 300)
    """Widths of the hidden layers of actor and critic."""
    actor_rate: float = 1e-4
    """Adam's learning rate for the actor."""
    critic_rate: Annotated[float | None, chosen_by_lapwing("0.001; paper: 0.0001 for Ant")] = None
    """Adam's learning rate for the critic."""
    target_rate: float = 0.001
    """Rate of the target networks' soft update with each update."""
    relative_values: Annotated[
        bool | None, chosen_by_lapwing("False; in quick True, unless with --online")
    ] = None
    """Whether to train the critic on values relative to those of standing still, so that each step is
    rewarded by its gain. The optimal policy does not change."""
    twin_critics: Annotated[bool, tyro.conf.FlagConversionOff] = False
    """Whether to train two critics and take the lower value as target, at a smoothed action (TD3)."""
    action_penalty: float = 0.0
    """Weight of the mean square of the actor's outputs before tanh: keeps actions from all or nothing."""
    noise_settle: float = 0.15
    """Mean reversion θ of the Ornstein-Uhlenbeck noise, per step."""
    noise_spread: float = 0.2
    """Its standard deviation σ, per step."""
    seed: int = 0
    """Random seed."""
    preset: ControlPreset = "paper"
    """paper, or quick: smaller networks, the integrator implicitfast, shorter training of φ, and a DDPG
    with two critics, relative values and a penalty on large actions, which learns in fewer steps."""

    def __post_init__(self) -> None:
        """Validate the values."""
        check_kinds(self)
        check_fields(self, "envs", "batch", whole=True, least=1)
        for name in ("steps", "random_steps", "evaluate_every"):
            check_fields(self, name, whole=True, least=1, below=2**30)
            if (getattr(self, name) or 0) % self.envs:
                asked = getattr(self, name)
                raise ConfigError(
                    f"{name} must be a multiple of envs, which is {self.envs}, not {asked}, for all bodies "
                    f"take a step at once; give {-(-asked // self.envs) * self.envs}"
                )
        check_fields(self, "seed", whole=True, least=0, below=2**32)
        check_fields(self, "gamma", above=0, below=1)
        check_fields(self, "cell", "actor_rate", "critic_rate", above=0)
        check_fields(self, "target_rate", "noise_settle", least=0, most=1)
        check_fields(self, "noise_spread", "action_penalty", least=0)
        check_network(self)
        check_size("envs", 4 * self.envs * self.batch)
        self.goal_cell  # noqa: B018 (refuses a goal that is no cell)

    def in_whole_rounds(self, steps: int) -> int:
        """`steps` rounded up to a multiple of the number of robots.

        Example:
            >>> ControlSettings(envs=32).in_whole_rounds(10_000)
            10016
        """
        return -(-steps // self.envs) * self.envs

    @property
    def has_relative_values(self) -> bool:
        """Whether values are relative; not by default where φ changes, for they multiply its changes."""
        if self.relative_values is not None:
            return self.relative_values
        return self.preset == "quick" and not self.online

    @property
    def goal_cell(self) -> tuple[int, int] | None:
        """The goal as (row, column)."""
        return None if self.goal is None else read_cell(self.goal)

    @classmethod
    def from_keywords(cls, values: dict[str, Any]) -> "ControlSettings":
        """The preset that `values` names, updated with the other values; unknown names raise an error."""
        return from_preset(CONTROL_PRESETS, "quick", values)


@dataclass(frozen=True)
class ResolvedControl(ControlSettings):
    """Settings in which every required value is set."""

    random_steps: int = RANDOM_STEPS
    steps: int = 60_000
    evaluate_every: int = 2_000
    critic_rate: float = 1e-3


CONTROL_PRESETS: dict[str, ControlSettings] = {
    "paper": ControlSettings(),
    "quick": ControlSettings(
        preset="quick",
        hidden=(128, 128),
        fast=True,
        critic_rate=1e-3,
        target_rate=0.005,
        twin_critics=True,
        action_penalty=0.1,
    ),
}


_FOR_MAZES = ("reward", "filter", "scale", "online", "goal", "observation", "stay", "episode_length")
"""The settings of a DQN agent that are about a maze."""


def check_for_environment(options: AgentSettings, representation: Any) -> None:
    """Refuse what is about mazes for an agent in an environment: an option that does nothing misleads.

    Args:
        options: the settings, which need not have been validated.
        representation: φ, or None.
    """
    values = {name: getattr(options, name) for name in _FOR_MAZES}
    given = [f"{name}={value!r}" for name, value in values.items() if value != getattr(AgentSettings, name)]
    if representation is not None:
        given = ["representation", *given]
    if given:
        raise ConfigError(
            f"{given[0]} only works with mazes, and this target is an environment, whose own reward is "
            "trained on; for a reward that φ shapes, wrap it as lapwing.LaplacianReward(env, representation, "
            "goal) and train an agent of yours, such as Stable-Baselines3's (docs/any_agent.md)"
        )


def read_cell(text: str, role: str = "goal") -> tuple[int, int]:
    """The cell that a command-line argument names.

    Example:
        >>> read_cell("10,3")
        (10, 3)
    """
    try:
        row, _, column = text.partition(",")
        return int(row), int(column)
    except (AttributeError, ValueError):
        raise ConfigError(f"{role} must be ROW,COLUMN such as 10,3, not {text!r}") from None
