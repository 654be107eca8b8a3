"""Representation: a learned φ with its eigenfunctions and distances, and its file."""

import hashlib
import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from lapwing.data.extent import far_outside
from lapwing.errors import ConfigError, LapwingWarning
from lapwing.laplacian.batches import as_batch, embed_batch, embed_jax
from lapwing.laplacian.distances import (
    BEST,
    ROTATED,
    check_distance,
    check_filter,
    mean_distance,
    measure_of,
    spectral_weights,
    trusted_mask,
)
from lapwing.laplacian.encoders import Encoder, EncoderSpec, encoder_skeleton
from lapwing.laplacian.model_files import (
    filled,
    fitting_description,
    named_arrays,
    read_model,
    write_model,
)
from lapwing.settings.learn import Distance, Filter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lapwing.plots.overview import Picture


@dataclass(frozen=True, eq=False, repr=False)
class Representation:
    """What `lapwing.learn` returns and `lapwing.load` reads.

    Every method accepts one observation or a batch, as NumPy or JAX arrays, and returns the same kind.
    """

    encoder: Encoder
    spec: EncoderSpec
    eigenvalues: np.ndarray
    """One-step eigenvalues of the Laplacian, ascending; the first belongs to the constant."""
    coefficients: np.ndarray
    """How `[1, φ]` combines to eigenfunctions."""
    reference: np.ndarray
    """Eigenfunctions at some states of the data, which fix the scale of the spectral filters."""
    soft_distance: float
    """The mean distance between such states as φ was learned."""
    config: dict[str, Any] = field(default_factory=dict)
    """Target, settings, and how it was made."""
    _weights: dict[Any, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    _warned: list[str] = field(default_factory=list, init=False, repr=False)

    def __repr__(self) -> str:
        second = f", λ_2 = {self.eigenvalues[1]:.4f}" if self.dim > 1 else ""
        return (
            f"Representation({self.config.get('target', '?')}: {self.dim} eigenfunctions of observations of "
            f"shape {self.shape}, {self.spec.name} encoder{second})"
        )

    @property
    def dim(self) -> int:
        """The number of eigenfunctions."""
        return len(self.eigenvalues)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one observation; for images, that of the environment, before downsampling."""
        return self.spec.raw_shape or self.spec.shape

    @property
    def rotated(self) -> bool:
        """Whether Rayleigh-Ritz resolved the individual eigenfunctions (not with the preset `paper`)."""
        return bool(self.config.get("settings", {}).get("rotate", True))

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The available spectral filters."""
        return ("soft", *ROTATED) if self.rotated and self.dim > 1 else ("soft",)

    @property
    def distances(self) -> tuple[Distance, ...]:
        """The available distances: the filters, and `hitting`, which has no embedding."""
        return (*self.filters, "hitting") if self.filters != ("soft",) else ("soft",)

    @property
    def default_filter(self) -> Filter:
        """`biharmonic`; `soft` if φ was not rotated."""
        return BEST if BEST in self.filters else "soft"

    def phi(self, observations) -> Any:
        """φ(s): every learned column, as the network returns it."""
        return self._answer(observations, lambda phi, xp: phi)

    def eigenfunctions(self, observations) -> Any:
        """The first `dim` eigenfunctions of the Laplacian at these observations, ordered, E[f²] = 1."""
        return self._answer(observations, self._combine)

    def embed(
        self,
        observations,
        filter: Filter | None = None,
        *,
        t: float | None = None,
        trusted_only: bool = True,
    ) -> Any:
        """The embedding whose Euclidean distance `distance` is.

        Args:
            observations: one or a batch.
            filter: the weights of the eigenfunctions. `soft`: φ itself, √(δ - λ_i/(2β)). `unit`: equal
                weights. `commute`: √(λ_2/λ_i), the commute-time distance. `biharmonic`: λ_2/λ_i. `heat`:
                e^(-tλ_i). All but `soft` omit the constant and have the mean distance of `soft`. None is
                `default_filter`.
            t: the time of `heat`; None gives the last eigenfunction the weight 0.1.
            trusted_only: whether eigenfunctions that are not trusted by held-out episodes get the weight 0.
                `soft` always uses all of φ.
        """
        filter = self.default_filter if filter is None else filter
        check_filter(filter, t)
        return self.coordinates(observations, filter, t=t, trusted_only=trusted_only)

    def distance(
        self,
        a,
        b,
        filter: Distance | None = None,
        *,
        t: float | None = None,
        trusted_only: bool = True,
    ) -> Any:
        """Distance between observations `a` and `b`, one against one, one against many, or row by row.

        Args:
            a: the first observations.
            b: the second observations; the order matters only for `hitting`.
            filter: that of `embed`, for a Euclidean distance: None is `biharmonic`, which leads in open
                spaces (`LaplacianReward` takes `commute`, by which agents were evaluated); or `hitting`,
                the expected number of one-step transitions from `a` to `b`, approximated by these
                eigenfunctions, which can be negative.
            t: as for `embed`.
            trusted_only: as for `embed`.
        """
        filter = self.default_filter if filter is None else filter
        check_distance(filter, t)
        ends = [self.coordinates(end, filter, t=t, trusted_only=trusted_only) for end in (a, b)]
        self._warn_if_far_outside(a, b)
        return measure_of(filter)(*ends)

    def _warn_if_far_outside(self, *observations: Any) -> None:
        """Say once if a state is far outside of the ranges that φ was learned from: φ knows nothing there."""
        ranges = self.config.get("ranges")
        if not ranges or "ranges" in self._warned:
            return
        for given in observations:
            if isinstance(given, Tracer):
                continue
            feature = far_outside(given, ranges)
            if feature is not None:
                self._warned.append("ranges")
                low, high = ranges[feature]
                warnings.warn(
                    "a state is far outside of the data that φ was learned from, so its distance means "
                    f"nothing: feature {feature} was between {low:.3g} and {high:.3g}; learn from data that "
                    "comes there, or see whether the state is in the same units",
                    LapwingWarning,
                    stacklevel=3,
                )
                return

    def coordinates(
        self, observations, filter: Distance, *, t: float | None = None, trusted_only: bool = True
    ) -> Any:
        """The vectors that `distance` compares: `embed`, or f/√λ for `hitting`, which has no embedding."""
        if filter == "soft":
            return self.phi(observations)
        weights = self.filter_weights(filter, t, trusted_only=trusted_only)
        return self._answer(observations, lambda phi, xp: self._combine(phi, xp)[..., 1:] * weights)

    def mean_distance(self, filter: Distance) -> float:
        """The mean distance between states of the data: equal for all filters; for `hitting` in steps."""
        if filter != "hitting":
            return self.soft_distance
        return float(np.sum(self.filter_weights("hitting") ** 2))  # for E[f²] = 1

    def filter_weights(
        self, filter: Distance, t: float | None = None, *, trusted_only: bool = True
    ) -> np.ndarray:
        """The weights of the eigenfunctions after the constant; `soft` has none.

        A weight is 0 if `config["trusted"]` exists and does not contain its index, unless only the constant
        is trusted.
        """
        self._check_rotated(filter)
        kept = self._kept(trusted_only)
        key = filter, t, kept.tobytes()
        if key not in self._weights:
            weights = kept * spectral_weights(self.eigenvalues[1:], filter, t)
            if not weights.any():
                raise ConfigError(f"t={t!r} leaves no eigenfunction any weight; lower t")
            mean = mean_distance(self.reference[:, 1:] * weights)
            if filter != "hitting" and mean > 0:
                weights *= self.soft_distance / mean
            self._weights[key] = weights.astype(np.float32)
        return self._weights[key]

    def _check_rotated(self, filter: Distance) -> None:
        if not self.rotated:
            raise ConfigError(
                f"filter {filter!r} needs single eigenfunctions, and this representation was learned "
                "with rotate=False; use filter='soft' or learn it with rotate=True"
            )
        if self.dim < 2:
            raise ConfigError(f"filter {filter!r} needs dim of 2 or more, not {self.dim}")

    def _kept(self, trusted_only: bool) -> np.ndarray:
        """Which eigenfunctions after the constant are used."""
        kept = trusted_mask(self.config.get("trusted") if trusted_only else None, self.dim)
        if kept.any():
            return kept
        if "trusted" not in self._warned:
            self._warned.append("trusted")
            warnings.warn(
                "no eigenfunction but the constant is trusted, so the distance is made of all of them; learn "
                "from more episodes, or set trusted_only=False to have it so",
                LapwingWarning,
                stacklevel=4,
            )
        return np.ones_like(kept)

    def plot(self, observations: Any = None, kind: "Picture | None" = None) -> "Figure":
        """Draw a Matplotlib figure; `figure.savefig("phi.png")` saves it.

        Args:
            observations: the states to draw, a batch of vectors; not needed if φ was learned from a maze or
                an arena.
            kind: `eigenfunctions`, `distances`, `embedding` or `spectrum`; None is the first that is
                possible.
        """
        # The one import from a folder above, a door to what is drawn there; Matplotlib is loaded on the way.
        from lapwing.plots.overview import draw_representation

        return draw_representation(self, observations, kind)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from lapwing.plots.notebooks import representation_html  # a second door

        return representation_html(self)

    def sha256(self) -> str:
        """A digest of all arrays, and of the entries of `config` that wrappers and agents use."""
        arrays = self._tensors()
        settings = self.config.get("settings", {})
        facts = {name: self.config.get(name) for name in ("maze", "arena", "step")}
        facts |= {name: settings.get(name) for name in ("observation", "observation_key")}
        facts |= {"encoder": self.spec.as_json(), "rotated": self.rotated}
        facts |= {"soft_distance": self.soft_distance}
        if "trusted" in self.config:  # without it the digest is that of earlier versions
            facts["trusted"] = self.config["trusted"]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}\n".encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write one .safetensors file with everything inside, checked by SHA-256 when it is loaded."""
        tensors, described = representation_parts(self)
        write_model(path, "representation", tensors, described)

    def _tensors(self) -> dict[str, np.ndarray]:
        names = ("eigenvalues", "coefficients", "reference")
        return named_arrays(self.encoder, "encoder") | {name: getattr(self, name) for name in names}

    def _combine(self, phi, xp):
        coefficients = xp.asarray(self.coefficients, dtype=phi.dtype)
        return phi @ coefficients[1:] + coefficients[0]

    def _answer(self, observations, finish):
        xp: Any = jnp if isinstance(observations, jax.Array) else np
        batch, single = as_batch(self.spec, xp.asarray(observations))
        phi = embed_jax(self.encoder, batch) if xp is jnp else embed_batch(self.encoder, batch)
        result = finish(phi, xp)
        return result[0] if single else result


def load_representation(path: str | Path) -> Representation:
    """Read what `Representation.save` wrote. Nothing in the file is executed."""
    path = Path(path)
    return representation_from(*read_model(path, "representation"), path)


def representation_parts(
    representation: Representation, prefix: str = ""
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a representation, and what else a file must say of it.

    Args:
        representation: what is taken apart.
        prefix: of the arrays' names, in a file with others beside them.
    """
    described = {
        "encoder": representation.spec.as_json(),
        "soft_distance": representation.soft_distance,
        "config": representation.config,
    }
    return {prefix + name: array for name, array in representation._tensors().items()}, described


def representation_from(
    tensors: dict[str, np.ndarray], described: dict[str, Any], path: Path, prefix: str = ""
) -> Representation:
    """The representation that `representation_parts` took apart, as a file at `path` has it."""
    tensors = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    with fitting_description(path):
        spec = EncoderSpec.from_json(described["encoder"])
        trusted_mask(described["config"].get("trusted"), len(tensors["eigenvalues"]))
        if described["config"].get("ranges") is not None:
            np.array(described["config"]["ranges"], np.float64).reshape(*spec.shape, 2)
        return Representation(
            encoder=filled(encoder_skeleton(spec), tensors, "encoder", path),
            spec=spec,
            eigenvalues=tensors["eigenvalues"],
            coefficients=tensors["coefficients"],
            reference=tensors["reference"],
            soft_distance=float(described["soft_distance"]),
            config=dict(described["config"]),
        )
