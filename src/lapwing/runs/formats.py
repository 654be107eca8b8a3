"""The fields of a run's JSON files, with their types, which are checked when a file is read.

A digest detects damage and edits, not forgery. Fields that are not listed here are not checked.
"""

from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from lapwing.errors import CheckpointError, ConfigError
from lapwing.laplacian.barriers import Barriers
from lapwing.settings.agents import AgentSettings, ControlReward, ControlSettings
from lapwing.settings.checks import SavedSettings, is_finite
from lapwing.settings.learn import Distance, LearnSettings, ResolvedSettings, RewardForm
from lapwing.settings.options import OptionKind, OptionsSettings
from lapwing.settings.reach import ReachSettings

FOLDER_FORMAT, WITHOUT_DIGESTS = 2, 1
"""The formats of config.json: the one that is written, and the one before, which can still be read."""
_KEYS_OF_FORMAT_1 = (
    {"format", "version", "target", "settings", "resolved", "prepare_seconds", "compile_seconds"},
    {"format", "version", "kind", "target", "settings", "phi"},
)
"""What config.json held before it had a digest: that of a representation, and that of an agent."""
_TARGETS_OF_FORMAT_1 = ("maze", "arena", "plane", "gym", "env", "minari", "data", "experience")


class HeldOut(TypedDict):
    """What held-out episodes say of a representation."""

    trusted: list[int] | int
    """The indices; in files of earlier versions how many from the first on."""
    transitions: int
    orthonormality_error: float
    agreement: list[float]
    eigenvalues: list[float]
    spread: list[float]


class Extent(TypedDict):
    """Which part of its observation space the data comes to."""

    ranges: list[tuple[float, float]]
    bounds: list[tuple[float | None, float | None]]
    covered: float | None


class LearnResult(TypedDict):
    """result.json of `lapwing learn`."""

    target: str
    states: int | None
    steps: int
    operator: str | None
    gap: float | None
    gap_floor: float | None
    gap_random: float | None
    cosine: list[float] | None
    cosine_mean: float | None
    cosine_floor: float | None
    eigenvalues: list[float]
    eigenvalues_exact: list[float] | None
    eigenvalue_error: float | None
    principal_angle: float | None
    orthonormality_error: float | None
    distance_correlation: dict[Literal[Distance, "l2"], float] | None
    held_out: NotRequired[HeldOut | None]
    irreversibility: NotRequired[float | None]
    parts: NotRequired[int | None]
    barriers: NotRequired[Barriers | None]
    extent: NotRequired[Extent | None]
    ended_early: NotRequired[bool]
    learn_seconds: float
    compile_seconds: float
    settings: ResolvedSettings


_Return = TypedDict("_Return", {"return": float})  # a word that no class can have


class AgentResult(_Return):
    """result.json of `lapwing train` in an environment."""

    target: str
    reward: RewardForm | None
    evaluated_at: list[int]
    returns: list[float]
    train_seconds: float
    settings: AgentSettings


class MazeAgentResult(AgentResult):
    """result.json of `lapwing train` in a maze."""

    goal: tuple[int, int]
    optimal_return: float
    steps_to_optimum: int | None


class ArenaAgentResult(TypedDict):
    """result.json of `lapwing train` in an arena."""

    target: str
    reward: ControlReward
    success: float
    final_distance: float
    steps_to_success: int | None
    evaluated_at: list[int]
    successes: list[float]
    final_distances: list[float]
    gate: NotRequired[float]
    gate_l2: NotRequired[float]
    train_seconds: float
    settings: ControlSettings


class ReachResult(TypedDict):
    """result.json of `lapwing reach`."""

    target: str
    success: float | None
    episodes: int
    mean_steps: float | None
    goals_outside: NotRequired[int]
    regenerated: NotRequired[bool]
    by_task: list[float] | None
    landmarks: int
    edges: int
    parts: int
    ahead: float
    transitions: int
    seconds: float
    settings: ReachSettings


class OptionsResult(TypedDict):
    """result.json of `lapwing options`."""

    target: str
    kind: OptionKind
    options: int
    states: int | None
    rows: list[dict[str, str | int | float | list[list[float]] | list[list[list[float]]] | None]]
    learner: NotRequired[str | None]
    """What trained the policies where states cannot be listed; earlier versions do not say."""
    settings: OptionsSettings


class AgentRow(TypedDict):
    """A line of metrics.jsonl of `lapwing train`."""

    step: int


class LearnRow(AgentRow):
    """A line of metrics.jsonl of `lapwing learn`."""

    loss: NotRequired[float]
    graph_drawing: NotRequired[float]
    penalty: NotRequired[float]


def result_format(config: dict[str, Any]) -> Any:
    """What result.json holds of the run that config.json describes."""
    if config.get("kind") == "reacher":
        return ReachResult
    if config.get("kind") == "options":
        return OptionsResult
    if config.get("kind") != "agent":
        return LearnResult
    return {"maze": MazeAgentResult, "arena": ArenaAgentResult}.get(config["target"]["kind"], AgentResult)


def row_format(config: dict[str, Any]) -> Any:
    """What a line of metrics.jsonl holds of the run that config.json describes."""
    return AgentRow if config.get("kind") in ("agent", "reacher", "options") else LearnRow


def check_result(path: Path, result: Any, config: dict[str, Any]) -> None:
    """Refuse a result that a run of `config` cannot have, by the first field that does not fit."""
    check_fields(path, result, result_format(config))
    steps = result.get("evaluated_at")
    for name in ("returns", "successes", "final_distances"):
        if steps is not None and name in result and not len(steps) == len(result[name]) > 0:
            raise CheckpointError(
                f"{path} is damaged: {name} has {len(result[name])} numbers for {len(steps)} evaluations"
            )


def check_fields(path: Path, value: Any, described: Any) -> None:
    """Refuse a JSON object that lacks a field of a TypedDict, or has one of another type."""
    value = value if isinstance(value, dict) else {}
    for name, annotation in get_type_hints(described).items():
        if name in value and not fits(value[name], annotation):
            raise CheckpointError(f"{path} is damaged: {name} cannot be {str(value[name])[:60]!r}")
        if name not in value and name in described.__required_keys__:
            raise CheckpointError(f"{path} is damaged: it lacks {name}")


def fits(value: Any, annotation: Any) -> bool:
    """Whether what was read from JSON is of an annotated type; numbers must be finite.

    Example:
        >>> fits([1, 2.5], list[float]), fits([1, 2, 3], tuple[int, int]), fits(True, int | None)
        (True, False, False)
    """
    kind, parts = get_origin(annotation), get_args(annotation)
    if annotation is NoneType:
        return value is None
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if kind in (Union, UnionType):  # the first where a part is no class
        return any(fits(value, part) for part in parts)
    if kind is list:
        return isinstance(value, list) and all(fits(each, parts[0]) for each in value)
    if kind is tuple:
        return isinstance(value, list) and len(value) == len(parts) and all(map(fits, value, parts))
    if kind is dict:
        fitting = isinstance(value, dict) and all(fits(name, parts[0]) for name in value)
        return fitting and all(fits(each, parts[1]) for each in value.values())
    if is_typeddict(annotation):
        hints = get_type_hints(annotation)
        return isinstance(value, dict) and all(fits(value.get(name), hints[name]) for name in hints)
    if issubclass(annotation, SavedSettings):
        return isinstance(value, dict) and can_be_read(annotation, value)
    if annotation in (int, float):
        right = isinstance(value, int if annotation is int else int | float)
        return right and not isinstance(value, bool) and is_finite(value)
    return isinstance(value, annotation)


def check_described(path: Path, config: dict[str, Any]) -> None:
    """Refuse a config.json that describes no run; where there is no digest to tell, by all that it says."""
    target, settings = config.get("target"), config.get("settings")
    described = (
        isinstance(target, dict) and isinstance(target.get("kind"), str) and isinstance(settings, dict)
    )
    if not described or (config["format"] == WITHOUT_DIGESTS and not _is_of_format_1(config)):
        raise CheckpointError(f"{path} is damaged, or not lapwing's: it does not describe a run")


def _is_of_format_1(config: dict[str, Any]) -> bool:
    """Whether version 0.1.0 can have written this: its keys, its kinds of target, settings that it had."""
    settings = config["settings"]
    if config.keys() not in _KEYS_OF_FORMAT_1 or config["version"] != "0.1.0" or "seed" not in settings:
        return False
    if config["target"]["kind"] not in _TARGETS_OF_FORMAT_1:
        return False
    return any(can_be_read(kind, settings) for kind in (LearnSettings, AgentSettings, ControlSettings))


def can_be_read(kind: type[SavedSettings], settings: dict[str, Any]) -> bool:
    """Whether these are settings of this kind."""
    try:
        kind.from_json(settings)
    except (ConfigError, TypeError, AttributeError):
        return False
    return True
