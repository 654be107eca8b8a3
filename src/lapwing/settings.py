"""Every setting of learning, documented once: the command line and the saved configuration are made from it.

A setting left at None is chosen from the data by `learning.resolve` and recorded with its value.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lapwing.errors import ConfigError, nearest

Estimator = Literal["sampled", "pairwise", "exact"]
EncoderName = Literal["linear", "mlp", "fourier", "conv"]
Schedule = Literal["constant", "cosine"]
Preset = Literal["default", "paper"]


def _check(
    name: str,
    value: Any,
    *,
    whole: bool = False,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> None:
    if value is None:
        return
    wanted = "a whole number" if whole else "a number"
    bounds = [
        f"{words} {bound:g}"
        for words, bound in (("at least", least), ("above", above), ("below", below))
        if bound is not None
    ]
    right_type = isinstance(value, int | float) and not isinstance(value, bool)
    right_type = right_type and math.isfinite(value) and (not whole or value == int(value))
    if (
        not right_type
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (below is not None and value >= below)
    ):
        raise ConfigError(f"{name} must be {wanted} {' and '.join(bounds)}, not {value!r}")


def _check_choice(name: str, value: Any, annotation: Any) -> None:
    choices = [c for part in (annotation, *get_args(annotation)) for c in get_args(part)]
    words = [choice for choice in choices if isinstance(choice, str)]
    if words and value is not None and value not in words:
        raise ConfigError(
            f"{name} must be one of {', '.join(words)}, not {value!r}; {nearest(str(value), words)}"
        )


@dataclass(frozen=True)
class LearnSettings:
    """How a representation is learned."""

    dim: int | None = None
    """How many eigenfunctions, the constant among them (20, or all states if there are fewer)."""
    observation: Literal["index", "position", "image"] = "position"
    """What φ sees of a maze."""
    transitions: int = 1_000_000
    """How many random steps to collect, where the target is an environment."""
    episode_length: int = 50
    """Steps in an episode of a maze."""
    stay: bool = False
    """Gives mazes a fifth action that does nothing."""
    true_chain: bool = False
    """Learn from a maze's transition matrix itself in place of experience."""
    estimator: Estimator | None = None
    """How the loss is estimated: sampled (the paper), pairwise, or exact (up to 5,000 states, exact is chosen)."""
    lam: float | None = None
    """λ of the multi-step transitions P_λ, 0 being one step (chosen so that 1-λ is near the d-th eigenvalue)."""
    lam_final: float | None = None
    """Anneal λ linearly to this value over the steps (not with exact)."""
    past_end: Literal["discard", "truncate"] = "discard"
    """What becomes of a pair that runs past its episode's end."""
    beta: float | None = None
    """β, the weight of the orthonormality penalty (1; in the preset paper dim/20)."""
    delta: float = 1.0
    """δ, what the penalty draws E[φ_i²] to; dimensions with eigenvalue over 2βδ vanish."""
    steps: int | None = None
    """Gradient steps (1,500 with exact, 6,000 else)."""
    batch: int = 256
    """Pairs in a batch (not with exact)."""
    learning_rate: float = 2e-3
    """Adam's step size at the start."""
    schedule: Schedule = "cosine"
    """What becomes of the step size: constant, or down to zero along a cosine."""
    encoder: EncoderName | None = None
    """The network: linear for indices, mlp or fourier for vectors (fourier is chosen), conv for images."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of mlp and fourier."""
    fourier_features: int = 128
    """Random directions of the Fourier features."""
    fourier_bandwidth: float | None = None
    """Their standard deviation (0.8 over the median distance of nearest neighbours)."""
    standardise: bool = True
    """Bring vectors to mean 0 and standard deviation 1 before they enter the network."""
    oversample: int | None = None
    """Dimensions learned beyond dim (a quarter of it, at least 4)."""
    rotate: bool = True
    """Turn the learned subspace to the single eigenfunctions by Rayleigh-Ritz; off, columns stay as learned."""
    seed: int = 0
    """The seed of everything random."""
    preset: Preset = "default"
    """default, or paper for the recipe of Wu, Tucker and Nachum (2019) to the letter."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant; the command line's parser accepts nan, inf and negative numbers."""
        for name in ("dim", "transitions", "episode_length", "steps", "fourier_features"):
            _check(name, getattr(self, name), whole=True, least=1)
        _check("batch", self.batch, whole=True, least=2)
        _check("oversample", self.oversample, whole=True, least=0)
        _check("seed", self.seed, whole=True, least=0, below=2**32)
        for name in ("lam", "lam_final"):
            _check(name, getattr(self, name), least=0, below=1)
        for name in ("beta", "delta", "learning_rate", "fourier_bandwidth"):
            _check(name, getattr(self, name), above=0)
        for width in self.hidden:
            _check("hidden", width, whole=True, least=1)
        for field in dataclasses.fields(self):
            _check_choice(field.name, getattr(self, field.name), field.type)

    def as_json(self) -> dict[str, Any]:
        """The settings as JSON can hold them."""
        return dataclasses.asdict(self) | {"hidden": list(self.hidden)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "LearnSettings":
        """The settings that `as_json` wrote."""
        return cls.from_keywords(values | {"hidden": tuple(values["hidden"])})

    @classmethod
    def from_keywords(cls, values: dict[str, Any]) -> "LearnSettings":
        """The preset that `values` names, with the other values on top; unknown names are refused."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(f"unknown setting {name!r}; {nearest(name, known)}")
        preset = values.get("preset", "default")
        if preset not in PRESETS:
            raise ConfigError(f"unknown preset {preset!r}; {nearest(str(preset), PRESETS)}")
        return dataclasses.replace(PRESETS[preset], **values)


@dataclass(frozen=True)
class ResolvedSettings(LearnSettings):
    """Settings in which nothing is left open; `resolving.resolve` makes them."""

    dim: int = 20
    estimator: Estimator = "exact"
    lam: float = 0.0
    beta: float = 1.0
    steps: int = 1_500
    encoder: EncoderName = "fourier"
    oversample: int = 0


PRESETS: dict[str, LearnSettings] = {
    "default": LearnSettings(),
    "paper": LearnSettings(
        preset="paper",
        estimator="sampled",
        lam=0.0,
        steps=100_000,
        batch=32,
        learning_rate=1e-3,
        schedule="constant",
        hidden=(200, 200),
        standardise=False,
        oversample=0,
        rotate=False,
    ),
}
