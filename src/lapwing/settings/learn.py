"""Every setting of learning, documented once; the command line and the saved file are made from it.

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
"""What `objective` can be; besides, a user's own, as module:Class."""
Schedule = Literal["constant", "cosine"]
Filter = Literal["soft", "unit", "commute", "biharmonic", "heat"]
Distance = Literal[Filter, "hitting"]
RewardForm = Literal["sparse", "l2", "rawmix", "laplacian", "mix", "potential"]
Preset = Literal["default", "paper", "paper-shaping", "paper-control"]


@dataclass(frozen=True)
class LearnSettings(SavedSettings):
    """How a representation is learned."""

    dim: Annotated[int | None, chosen_by_lapwing("20, or all states if fewer")] = None
    """How many eigenfunctions, the constant among them."""
    observation: Literal["index", "position", "image", "state"] = "position"
    """What φ sees of a maze: index, position or image; of an arena: position or the whole state."""
    transitions: int = 1_000_000
    """How many random steps to collect, where the target is an environment."""
    episode_length: int = 50
    """Steps in an episode of a maze or a plane."""
    observation_key: str | None = None
    """Which part of Dict observations φ sees, of an environment or a Minari data set."""
    image_size: int = 64
    """Larger images are averaged over blocks of pixels, to at most so many each way; 0 keeps them (not of
    mazes, whose images are small)."""
    keys: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=ARRAY ...", help_behavior_hint="")] = ()
    """Which array of a data file is which, where it has names of its own: observations=obs ends=done."""
    wrap: Annotated[tuple[str, ...], tyro.conf.arg(metavar="MODULE:CLASS ...", help_behavior_hint="")] = ()
    """Wrappers for gym:ENV_ID, the first innermost: gymnasium.wrappers:AtariPreprocessing, or in quotes with
    arguments, 'gymnasium.wrappers:AtariPreprocessing(frame_skip=1)'."""
    num_envs: Annotated[int | None, chosen_by_lapwing("16 if an environment has a vector form, else 1")] = (
        None
    )
    """How many copies of an environment are stepped at once."""
    past_termination: bool = False
    """Step on where an environment says that the episode terminated, as at a goal, until it is truncated.
    Otherwise few steps are seen around the goal, and none from it."""
    stay: bool = False
    """Give mazes a fifth action that does nothing."""
    true_chain: bool = False
    """Learn from a maze's transition matrix itself in place of experience."""
    estimator: Annotated[
        Estimator | None,
        chosen_by_lapwing("exact for enumerated states, else closed-form"),
    ] = None
    """How the loss is estimated: sampled (the paper), pairwise (less noise), exact (none); or closed-form,
    which takes no gradient steps: the best combination of bumps is solved for."""
    objective: Annotated[str, tyro.conf.arg(metavar="NAME")] = "graph-drawing"
    """What is minimised: graph-drawing (the paper), generalised, allo, omm or nested, whose functions are
    single eigenfunctions in order."""
    lam: Annotated[float | None, chosen_by_lapwing("1 - λ near the dim-th eigenvalue")] = None
    """λ of the multi-step transitions P_λ; 0 is one step."""
    lam_final: Annotated[float | None, chosen_by_lapwing("lam")] = None
    """Anneal λ linearly to this value over the steps (not with exact)."""
    past_end: Literal["discard", "truncate"] = "discard"
    """What becomes of a pair that runs past its episode's end."""
    beta: Annotated[float | None, chosen_by_lapwing("1; in the preset paper dim/20; with allo 2")] = None
    """β, the weight of the orthonormality penalty; with allo what the barrier begins with."""
    delta: float = 1.0
    """δ, what the penalty draws E[φ_i²] to; dimensions with eigenvalue over 2βδ vanish."""
    steps: Annotated[int | None, chosen_by_lapwing("exact 1,000 to 4,000, else 6,000")] = None
    """Gradient steps."""
    stop: Annotated[int | None, chosen_by_lapwing("steps, or as held-out episodes say if data is scarce")] = (
        None
    )
    """Stop after so many of the steps, lest the data be over-fitted."""
    batch: int = 256
    """Pairs in a batch (not with exact)."""
    learning_rate: Annotated[float | None, chosen_by_lapwing("0.002; linear 0.01, conv 0.001")] = None
    """Adam's step size at the start."""
    schedule: Schedule = "cosine"
    """What becomes of the step size: constant, or down to zero along a cosine."""
    encoder: Annotated[EncoderName | None, chosen_by_lapwing("by the observation")] = None
    """The network: linear for indices; fourier or mlp for vectors; conv for images; bumps for both, with
    closed-form."""
    hidden: Annotated[
        tuple[int, ...] | None, chosen_by_lapwing("256 256, or 128 128 for continuous states")
    ] = None
    """Widths of the hidden layers of mlp and fourier."""
    fourier_features: int = 128
    """Random directions of the Fourier features."""
    fourier_bandwidth: Annotated[
        float | None,
        chosen_by_lapwing("0.8 over the median distance of nearest neighbours; a third if data is scarce"),
    ] = None
    """The standard deviation of half of those directions; that of the others ranges from 1 to it."""
    bumps: Annotated[tuple[int, ...] | None, chosen_by_lapwing("150 or 300, by validation episodes")] = None
    """How many Gaussian bumps are combined, a number for each stage (with closed-form, as the next three)."""
    bump_width: Annotated[tuple[float, ...] | None, chosen_by_lapwing("by validation episodes")] = None
    """Their standard deviation, in median distances between neighbouring centres."""
    slowness: Annotated[tuple[float, ...] | None, chosen_by_lapwing("by validation episodes")] = None
    """How much less a coordinate counts the faster it changes: the power of its eigenvalue, 0, 0.5 or 1."""
    cutoff: Annotated[tuple[float, ...] | None, chosen_by_lapwing("by validation episodes")] = None
    """Directions with less than this share of the largest variance are not used, 1e-9 to 1e-3."""
    trials: int = 6
    """How many bases are tried on validation episodes at most; from 7 on, networks are among them."""
    standardise: Annotated[
        bool | None,
        chosen_by_lapwing("True; in the preset paper for images alone"),
        tyro.conf.FlagConversionOff,
    ] = None
    """Whether vectors are freed of their mean and scaled, and images of the mean image, at first."""
    image_scale: Annotated[
        float | None, chosen_by_lapwing("their spread; in the preset paper, with sampled, 1")
    ] = None
    """What images, as numbers from 0 to 1, are divided by once the mean image is off."""
    oversample: Annotated[int | None, chosen_by_lapwing("dim/4, at least 4")] = None
    """Dimensions learned beyond dim, and dropped by the rotation."""
    held_out: Annotated[
        float | None, chosen_by_lapwing("0.1 for continuous states in the preset default, else 0")
    ] = None
    """The share of episodes of continuous states that is held out from learning, to measure eigenfunctions
    on."""
    rotate: bool = True
    """Whether Rayleigh-Ritz finds the single eigenfunctions; else the columns of φ stay unrotated."""
    seed: int = 0
    """The seed of everything random."""
    preset: Preset = "default"
    """default; or of Wu, Tucker and Nachum (2019): paper, the recipe of their study of representations;
    paper-shaping and paper-control, those of their shaped rewards in mazes and in arenas."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant; the command line's parser accepts nan, inf and negative numbers."""
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
        """The preset that `values` names, with the other values on top; unknown names are refused."""
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
    """Keywords as the command line has them; for `keys` a mapping is as good, for `wrap` a single name."""
    keys, wrap = values.get("keys"), values.get("wrap")
    if isinstance(keys, Mapping):
        values = values | {"keys": tuple(f"{role}={name}" for role, name in keys.items())}
    if isinstance(wrap, str | list):
        values = values | {"wrap": (wrap,) if isinstance(wrap, str) else tuple(wrap)}
    return values


def _check_stages(settings: LearnSettings) -> None:
    """Refuse stages that cannot be meant, or not the same number of them for each setting."""
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
    """Settings in which nothing is left open; `choose.resolve` makes them."""

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
"""For the Point; the Ant has λ = 0.999 and a tenth of the step size. Not the paper's: `pairwise`, which is
the same loss with less noise; inputs are standardised, for metres and metres a second are of no common scale;
and Rayleigh-Ritz, which leaves φ itself as it is."""
PRESETS: dict[str, LearnSettings] = {
    "default": LearnSettings(),
    "paper": _PAPER,
    "paper-shaping": _PAPER_SHAPING,
    "paper-control": _PAPER_CONTROL,
}
