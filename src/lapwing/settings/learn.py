"""The settings of learning. The command line and the saved file are generated from this dataclass.

A setting left at None is chosen from the data by `choose.resolve` and recorded with its value.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro

from lapwing.errors import ConfigError, nearest
from lapwing.settings.checks import (
    MOST_STEPS,
    SavedSettings,
    check_fields,
    check_kinds,
    check_network,
    check_size,
    checked,
    chosen_by_lapwing,
    from_preset,
)

Estimator = Literal["sampled", "pairwise", "exact", "closed-form"]
EncoderName = Literal["linear", "mlp", "fourier", "conv", "bumps"]
OBJECTIVES = ("graph-drawing", "generalised", "allo", "omm", "nested")
"""The built-in objectives; a user's own is given as module:Class."""
Schedule = Literal["constant", "cosine"]
Filter = Literal["soft", "unit", "commute", "biharmonic", "heat"]
Distance = Literal[Filter, "hitting"]
RewardForm = Literal["sparse", "l2", "rawmix", "laplacian", "mix", "potential"]
Preset = Literal["default", "paper", "paper-shaping", "paper-control"]


@dataclass(frozen=True)
class LearnSettings(SavedSettings):
    """How a representation is learned."""

    dim: Annotated[int | None, chosen_by_lapwing("20, or all states if fewer")] = None
    """Number of eigenfunctions, including the constant."""
    observation: Literal["index", "position", "image", "state"] = "position"
    """Input of φ. Mazes: index, position or image. Arenas: position or the whole state."""
    transitions: int = 1_000_000
    """Number of random steps to collect, if the target is an environment."""
    episode_length: int = 50
    """Steps per episode of a maze or a plane."""
    observation_key: str | None = None
    """Entry of Dict observations to learn from, for an environment or a Minari data set."""
    image_size: int = 64
    """Larger images are averaged over blocks of pixels, to at most this many pixels each way. 0 keeps their
    size. Images of mazes are never resized."""
    keys: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=ARRAY ...", help_behavior_hint="")] = ()
    """Names of the arrays in a data file, if they differ from lapwing's: observations=obs ends=done."""
    wrap: Annotated[tuple[str, ...], tyro.conf.arg(metavar="MODULE:CLASS ...", help_behavior_hint="")] = ()
    """Wrappers for gym:ENV_ID, the first innermost: gymnasium.wrappers:AtariPreprocessing, or in quotes with
    arguments, 'gymnasium.wrappers:AtariPreprocessing(frame_skip=1)'."""
    num_envs: Annotated[int | None, chosen_by_lapwing("16 if an environment has a vector form, else 1")] = (
        None
    )
    """Number of copies of the environment to step at once."""
    past_termination: bool = False
    """Continue an episode after the environment reports termination, for instance at a goal, until it is
    truncated. Otherwise the data has few steps around the goal, and none from it."""
    stay: bool = False
    """Add a fifth action to mazes that does nothing."""
    true_chain: bool = False
    """Learn from a maze's transition matrix itself instead of experience."""
    estimator: Annotated[
        Estimator | None,
        chosen_by_lapwing("exact for enumerated states, else closed-form"),
    ] = None
    """Estimator of the loss: sampled (the paper), pairwise (less noise) or exact (no noise); or closed-form,
    which solves for the best combination of Gaussian bumps without gradient steps."""
    objective: Annotated[str, tyro.conf.arg(metavar="NAME")] = "graph-drawing"
    """Objective: graph-drawing (the paper); or generalised, allo, omm or nested, whose minimisers are the
    individual eigenfunctions in order."""
    lam: Annotated[float | None, chosen_by_lapwing("1 - λ near the dim-th eigenvalue")] = None
    """λ of the multi-step transitions P_λ; 0 is one step."""
    lam_final: Annotated[float | None, chosen_by_lapwing("lam")] = None
    """Anneal λ linearly to this value over the steps (not with exact)."""
    past_end: Literal["discard", "truncate"] = "discard"
    """What to do with a pair that runs past its episode's end."""
    beta: Annotated[float | None, chosen_by_lapwing("1; in the preset paper dim/20; with allo 2")] = None
    """β, the weight of the orthonormality penalty; with allo the initial barrier."""
    delta: float = 1.0
    """δ, the penalty's target for E[φ_i²]; dimensions with eigenvalue over 2βδ vanish."""
    steps: Annotated[
        int | None, chosen_by_lapwing("exact 1000 to 4000, more above 20 dimensions; else 6000")
    ] = None
    """Number of gradient steps."""
    stop: Annotated[int | None, chosen_by_lapwing("steps; if data is scarce, by held-out episodes")] = None
    """Early stopping after this many steps, against overfitting."""
    batch: int = 256
    """Pairs per batch (not with exact)."""
    learning_rate: Annotated[float | None, chosen_by_lapwing("0.002; linear 0.01, conv 0.001")] = None
    """Adam's initial learning rate."""
    schedule: Schedule = "cosine"
    """Learning-rate schedule: constant, or cosine decay to zero."""
    encoder: Annotated[EncoderName | None, chosen_by_lapwing("by the observation")] = None
    """Network: linear for indices; fourier or mlp for vectors; conv for images; bumps for vectors and
    images, with closed-form."""
    hidden: Annotated[
        tuple[int, ...] | None, chosen_by_lapwing("256 256, or 128 128 for continuous states")
    ] = None
    """Widths of the hidden layers of mlp and fourier."""
    fourier_features: int = 128
    """Number of random directions of the Fourier features."""
    fourier_bandwidth: Annotated[
        float | None,
        chosen_by_lapwing("0.8 over the median distance of nearest neighbours; a third if data is scarce"),
    ] = None
    """Standard deviation of half of those directions; that of the others ranges from 1 to it."""
    bumps: Annotated[tuple[int, ...] | None, chosen_by_lapwing("150 or 300, by validation episodes")] = None
    """Number of Gaussian bumps, one value per stage (with closed-form, like the next three)."""
    bump_width: Annotated[tuple[float, ...] | None, chosen_by_lapwing("by validation episodes")] = None
    """Their standard deviation, in median distances between neighbouring centres."""
    slowness: Annotated[tuple[float, ...] | None, chosen_by_lapwing("by validation episodes")] = None
    """How strongly fast coordinates are scaled down: the power of their eigenvalue, 0, 0.5 or 1."""
    cutoff: Annotated[tuple[float, ...] | None, chosen_by_lapwing("by validation episodes")] = None
    """Directions with less than this share of the largest variance are dropped, 1e-9 to 1e-3."""
    trials: int = 8
    """Maximum number of bases to try on validation episodes; from 9 on, networks are included."""
    standardise: Annotated[
        bool | None,
        chosen_by_lapwing("True; in the preset paper for images only"),
        tyro.conf.FlagConversionOff,
    ] = None
    """Whether to centre and scale vectors and images before the network."""
    image_scale: Annotated[
        float | None, chosen_by_lapwing("their standard deviation; in the preset paper, with sampled, 1")
    ] = None
    """Divisor of images (from 0 to 1) after the mean image is subtracted."""
    oversample: Annotated[int | None, chosen_by_lapwing("dim/4, at least 4")] = None
    """Dimensions learned beyond dim, and dropped by the rotation."""
    held_out: Annotated[
        float | None, chosen_by_lapwing("0.1 for continuous states in the preset default, else 0")
    ] = None
    """Share of episodes of continuous states that is held out from learning, to evaluate the
    eigenfunctions."""
    rotate: bool = True
    """--no-rotate leaves the columns of φ as they were learned; otherwise Rayleigh-Ritz resolves the
    individual eigenfunctions."""
    seed: int = 0
    """Random seed."""
    preset: Preset = "default"
    """default; or a recipe of Wu, Tucker and Nachum (2019): paper for their representation study,
    paper-shaping and paper-control for their shaped rewards in mazes and in arenas."""

    def __post_init__(self) -> None:
        """Validate the values; the command line's parser accepts nan, inf and negative numbers."""
        check_kinds(self)
        _check_objective(self.objective)
        _check_keys(self.keys)
        steps = ("episode_length", "transitions", "steps", "stop")
        check_fields(self, *steps, whole=True, least=1, below=MOST_STEPS)
        check_fields(self, "dim", "fourier_features", "num_envs", whole=True, least=1)
        check_fields(self, "trials", whole=True, least=1, most=1_000)
        check_fields(self, "batch", whole=True, least=2)
        check_fields(self, "image_size", whole=True, least=0, most=2**16)
        check_fields(self, "oversample", whole=True, least=0)
        check_fields(self, "held_out", least=0, most=0.5)
        check_fields(self, "seed", whole=True, least=0, below=2**32)
        check_fields(self, "lam", "lam_final", least=0, below=1)
        check_fields(self, "beta", "delta", "learning_rate", "fourier_bandwidth", "image_scale", above=0)
        _check_stages(self)
        check_network(self)
        # A dimension or a feature is at least one weight with its moments; an environment some bytes.
        sizes = {"dim": 12, "oversample": 12, "fourier_features": 12, "num_envs": 1024}
        for name, least in sizes.items():
            check_size(name, least * (getattr(self, name) or 0))

    @classmethod
    def from_keywords(cls, values: dict[str, Any]) -> "LearnSettings":
        """The preset that `values` names, updated with the other values; unknown names raise an error."""
        return from_preset(PRESETS, "default", _in_tuples(values))


def _check_objective(name: Any) -> None:
    if not isinstance(name, str) or (name not in OBJECTIVES and ":" not in name):
        raise ConfigError(
            f"objective must be one of {', '.join(OBJECTIVES)}, not {name!r}; "
            f"{nearest(str(name), OBJECTIVES)}"
        )


def _check_keys(keys: tuple[str, ...]) -> None:
    for pair in keys:
        role, equals, name = pair.partition("=")
        if not (role and equals and name):
            raise ConfigError(f"keys must be pairs such as observations=obs, not {pair!r}")


def _in_tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Keywords in the form of the command line; `keys` may be a mapping, `wrap` a single name."""
    keys, wrap = values.get("keys"), values.get("wrap")
    if isinstance(keys, Mapping):
        values = values | {"keys": tuple(f"{role}={name}" for role, name in keys.items())}
    if isinstance(wrap, str | list):
        values = values | {"wrap": (wrap,) if isinstance(wrap, str) else tuple(wrap)}
    return values


def _check_stages(settings: LearnSettings) -> None:
    """Raise an error for invalid stages, or unless each setting has the same number of them."""
    bounds: dict[str, dict[str, Any]] = {
        "bumps": {"whole": True, "least": 1, "most": 100_000},
        "bump_width": {"above": 0},
        "slowness": {"least": 0, "most": 4},
        "cutoff": {"above": 0, "below": 1},
    }
    given = {name: getattr(settings, name) for name in bounds if getattr(settings, name) is not None}
    for name, values in given.items():
        numbers = tuple(checked(name, value, **bounds[name]) for value in values)
        object.__setattr__(settings, name, numbers)
        first = next(iter(given))
        if not values or len(values) != len(given[first]):
            raise ConfigError(
                f"{name} has {len(values)} values and {first} {len(given[first])}; give one for each stage"
            )


@dataclass(frozen=True)
class ResolvedSettings(LearnSettings):
    """Settings in which every value is set; `choose.resolve` returns them."""

    dim: int = 20
    estimator: Estimator = "exact"
    lam: float = 0.0
    beta: float = 1.0
    steps: int = 1_500
    stop: int = 1_500
    learning_rate: float = 2e-3
    encoder: EncoderName = "fourier"
    hidden: tuple[int, ...] = (256, 256)
    standardise: bool = True
    oversample: int = 0
    held_out: float = 0.0


_PAPER = LearnSettings(
    preset="paper",
    estimator="sampled",
    lam=0.0,
    steps=100_000,
    batch=32,
    learning_rate=1e-3,
    schedule="constant",
    hidden=(200, 200),
    oversample=0,
    rotate=False,
)
_PAPER_SHAPING = dataclasses.replace(
    _PAPER,
    preset="paper-shaping",
    transitions=30_000,
    lam=0.9,
    beta=5.0,
    delta=0.05,
    steps=30_000,
    batch=128,
    hidden=(256, 256, 256),
)
_PAPER_CONTROL = dataclasses.replace(
    _PAPER_SHAPING,
    preset="paper-control",
    dim=20,
    transitions=576_000,
    estimator="pairwise",
    lam=0.99,
    beta=2.0,
    delta=0.1,
    steps=50_000,
    standardise=True,
    rotate=True,
)
"""For the Point; the Ant has λ = 0.999 and a tenth of the learning rate. Three choices are not the paper's:
`pairwise`, which is the same loss with less noise; standardised inputs, because metres and metres per second
have no common scale; and Rayleigh-Ritz, which does not change φ itself."""
PRESETS: dict[str, LearnSettings] = {
    "default": LearnSettings(),
    "paper": _PAPER,
    "paper-shaping": _PAPER_SHAPING,
    "paper-control": _PAPER_CONTROL,
}
