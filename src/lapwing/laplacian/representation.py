"""Representation: a learned φ with its eigenfunctions and distances, and its file."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lapwing import storage
from lapwing._version import __version__
from lapwing.errors import CheckpointError, ConfigError, DatasetError, nearest
from lapwing.laplacian.encoders import Encoder, EncoderSpec, embed, encoder_skeleton
from lapwing.settings.learn import Filter

FORMAT = 1
_LARGEST_BATCH = 4_096


@dataclass(frozen=True, eq=False, repr=False)
class Representation:
    """What `lapwing.learn` returns and `lapwing.load` reads.

    Every method takes one observation or a batch, as NumPy or JAX arrays, and answers in kind.
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
    _weights: dict[tuple[Filter, float | None], np.ndarray] = field(
        default_factory=dict, init=False, repr=False
    )

    def __repr__(self) -> str:
        second = f", λ_2 = {self.eigenvalues[1]:.4f}" if self.dim > 1 else ""
        return (
            f"Representation({self.config.get('target', '?')}: {self.dim} eigenfunctions of observations of "
            f"shape {self.spec.shape}, {self.spec.name} encoder{second})"
        )

    @property
    def dim(self) -> int:
        """How many eigenfunctions there are."""
        return len(self.eigenvalues)

    @property
    def rotated(self) -> bool:
        """Whether Rayleigh-Ritz found the single eigenfunctions (the preset `paper` does without)."""
        return bool(self.config.get("settings", {}).get("rotate", True))

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The spectral filters that it has what it takes for."""
        return ("soft", "unit", "commute", "heat") if self.rotated and self.dim > 1 else ("soft",)

    def phi(self, observations) -> Any:
        """φ(s): every learned column, as the network gives it."""
        return self._answer(observations, lambda phi, xp: phi)

    def eigenfunctions(self, observations) -> Any:
        """The first `dim` eigenfunctions of the Laplacian at these observations, ordered, E[f²] = 1."""
        return self._answer(observations, self._combine)

    def embed(self, observations, filter: Filter = "soft", *, t: float | None = None) -> Any:
        """The embedding whose Euclidean distance `distance` is.

        Args:
            observations: one or a batch.
            filter: how much each eigenfunction weighs. `soft`: φ itself, √(δ - λ_i/(2β)). `unit`: all
                alike. `commute`: √(λ_2/λ_i), whose distance is that of commute times. `heat`: e^(-tλ_i).
                All but `soft` leave the constant out and have the mean distance of `soft`.
            t: the time of `heat`; None gives the last eigenfunction the weight 0.1.
        """
        check_filter(filter, t)
        if filter == "soft":
            return self.phi(observations)
        weights = self.filter_weights(filter, t)
        return self._answer(observations, lambda phi, xp: self._combine(phi, xp)[..., 1:] * weights)

    def distance(self, a, b, filter: Filter = "soft", *, t: float | None = None) -> Any:
        """Distance between observations `a` and `b`, one against one, one against many, or row by row."""
        return vector_norm(self.embed(a, filter, t=t) - self.embed(b, filter, t=t))

    def filter_weights(self, filter: Filter, t: float | None = None) -> np.ndarray:
        """What `embed` multiplies the eigenfunctions after the constant with; `soft` has no such weights."""
        if (filter, t) in self._weights:
            return self._weights[filter, t]
        if not self.rotated:
            raise ConfigError(
                f"filter {filter!r} needs single eigenfunctions, and this representation was learned "
                "with rotate=False; use filter='soft' or learn it with rotate=True"
            )
        if self.dim < 2:
            raise ConfigError(f"filter {filter!r} needs dim of 2 or more, not {self.dim}")
        weights = spectral_weights(self.eigenvalues[1:], filter, t)
        if not weights.any():
            raise ConfigError(f"t={t!r} leaves no eigenfunction any weight; lower t")
        mean = mean_distance(self.reference[:, 1:] * weights)
        scale = self.soft_distance / mean if mean > 0 else 1.0
        self._weights[filter, t] = (scale * weights).astype(np.float32)
        return self._weights[filter, t]

    def sha256(self) -> str:
        """A digest of all that is computed with, and of what wrappers and agents take from `config`."""
        arrays = self._tensors()
        settings = self.config.get("settings", {})
        facts = {name: self.config.get(name) for name in ("maze", "arena", "step")}
        facts |= {name: settings.get(name) for name in ("observation", "observation_key")}
        facts |= {"encoder": dataclasses.asdict(self.spec), "rotated": self.rotated}
        facts |= {"soft_distance": self.soft_distance}
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}\n".encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write one .safetensors file with everything inside, checked by SHA-256 when it is loaded."""
        manifest = {
            "format": FORMAT,
            "version": __version__,
            "kind": "representation",
            "encoder": dataclasses.asdict(self.spec),
            "soft_distance": self.soft_distance,
            "config": self.config,
        }
        storage.write_tensors(Path(path), self._tensors(), manifest)

    def _tensors(self) -> dict[str, np.ndarray]:
        names = ("eigenvalues", "coefficients", "reference")
        return named_arrays(self.encoder, "encoder") | {name: getattr(self, name) for name in names}

    def _combine(self, phi, xp):
        coefficients = xp.asarray(self.coefficients, dtype=phi.dtype)
        return phi @ coefficients[1:] + coefficients[0]

    def _answer(self, observations, finish):
        xp: Any = jnp if isinstance(observations, jax.Array) else np
        array = xp.asarray(observations)
        single = is_single(array.shape, self.spec.shape)
        batch = array[None] if single else array
        if xp is jnp:
            phi = _embed_jax(self.encoder, batch)
        else:
            checked = checked_batch(batch, self.spec.shape, self.spec.n_states)
            phi = embed_batch(self.encoder, checked)
        result = finish(phi, xp)
        return result[0] if single else result


def is_single(found: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether an array of shape `found` is one observation; what is neither that nor a batch is refused."""
    if found != shape and found[1:] != shape:
        raise ConfigError(
            f"observations have shape {found}; this representation takes {shape} "
            f"or a batch (n, {', '.join(map(str, shape))})".replace("(n, )", "(n,)")
        )
    return found == shape


def checked_batch(batch: np.ndarray, shape: tuple[int, ...], n_states: int | None) -> np.ndarray:
    """Observations as an encoder takes them: indices, images of bytes, or finite float32.

    Args:
        batch: one observation a row.
        shape: of one observation; () for an index.
        n_states: how many indices there are.
    """
    if shape == ():
        if not np.issubdtype(batch.dtype, np.integer):
            raise ConfigError(f"observations must be integer indices, not {batch.dtype}")
        if batch.size and not 0 <= batch.min() <= batch.max() < (n_states or 0):
            wrong = batch.min() if batch.min() < 0 else batch.max()
            raise ConfigError(f"index {wrong} is outside 0 … {(n_states or 0) - 1}")
        return batch.astype(np.int32)
    if len(shape) == 3 and np.issubdtype(batch.dtype, np.integer):
        if batch.size and not 0 <= batch.min() <= batch.max() <= 255:
            raise ConfigError("images of whole numbers must lie in 0 … 255; scale them to floats")
        return batch.astype(np.uint8)
    batch = batch.astype(np.float32)
    finite = np.isfinite(batch).all(axis=tuple(range(1, batch.ndim)))
    if not finite.all():
        raise DatasetError(f"observation {int(np.argmin(finite))} holds NaN or infinity")
    return batch


def load_representation(path: str | Path) -> Representation:
    """Read what `Representation.save` wrote. Nothing in the file is executed."""
    path = Path(path)
    tensors, manifest = storage.read_tensors(path)
    check_format(path, manifest)
    if manifest.get("kind") != "representation":
        agents = ("agent", "control agent")
        kind = "an agent" if manifest.get("kind") in agents else "a checkpoint"
        raise CheckpointError(f"{path} holds {kind}, not a representation")
    try:
        spec = manifest["encoder"]
        shapes = {"shape": tuple(spec["shape"]), "hidden": tuple(spec["hidden"])}
        spec = EncoderSpec(**(spec | shapes))
        return Representation(
            encoder=filled(encoder_skeleton(spec), tensors, "encoder", path),
            spec=spec,
            eigenvalues=tensors["eigenvalues"],
            coefficients=tensors["coefficients"],
            reference=tensors["reference"],
            soft_distance=float(manifest["soft_distance"]),
            config=dict(manifest["config"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} does not fit its own description ({error})") from error


def check_format(path: Path, manifest: dict[str, Any], format: int = FORMAT) -> None:
    """Refuse a file that another version of lapwing wrote in another form."""
    if not isinstance(manifest, dict):
        raise CheckpointError(f"{path} is damaged: it does not say what it holds")
    if manifest.get("format") != format:
        raise CheckpointError(
            f"{path} was written by lapwing {manifest.get('version', 'unknown')} in format "
            f"{manifest.get('format')}; lapwing {__version__} reads format {format}: "
            "use that version, or learn again"
        )


def spectral_weights(eigenvalues: np.ndarray, filter: Filter, t: float | None = None) -> np.ndarray:
    """The weight of each eigenfunction, before the common scale; the constant is not among them.

    Example:
        >>> spectral_weights(np.array([0.01, 0.04]), "commute").tolist()
        [1.0, 0.5]
    """
    smallest = np.maximum(eigenvalues, 1e-12)
    if filter == "commute":
        return np.sqrt(smallest[0] / smallest)
    if filter == "heat":
        return np.exp(-(np.log(10) / smallest[-1] if t is None else t) * smallest)
    return np.ones_like(eigenvalues)


def named_arrays(tree, prefix: str) -> dict[str, np.ndarray]:
    """The arrays of a tree under names that say where they stand in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        prefix + jax.tree_util.keystr(path): np.asarray(leaf)
        for path, leaf in leaves
        if isinstance(leaf, jax.Array | np.ndarray)
    }


def filled(skeleton, tensors: dict[str, np.ndarray], prefix: str, path: Path):
    """The tree with its arrays taken from a file; a missing or misshapen one is refused by name.

    An array of no rows in the skeleton stands for any number of them.
    """

    def fill(where, leaf):
        if not isinstance(leaf, jax.ShapeDtypeStruct | jax.Array | np.ndarray):
            return leaf
        name = prefix + jax.tree_util.keystr(where)
        found = tensors.get(name)
        rows = leaf.shape[:1] == (0,)
        if found is None or found.shape[rows:] != leaf.shape[rows:] or found.dtype != leaf.dtype:
            raise CheckpointError(
                f"{path} does not fit its own description: {name} should be {leaf.dtype} of shape "
                f"{leaf.shape}"
            )
        return found if isinstance(leaf, np.ndarray) else jnp.asarray(found)

    return jax.tree_util.tree_map_with_path(fill, skeleton)


@eqx.filter_jit
def _embed_jax(encoder: Encoder, batch):
    return jax.vmap(embed, in_axes=(None, 0))(encoder, batch)


def embed_batch(encoder: Encoder, batch: np.ndarray) -> np.ndarray:
    """φ of a NumPy batch of any size, in bounded memory."""
    begins = range(0, max(len(batch), 1), _LARGEST_BATCH)
    return np.concatenate([_embed_padded(encoder, batch[b : b + _LARGEST_BATCH]) for b in begins])


def _embed_padded(encoder: Encoder, batch: np.ndarray) -> np.ndarray:
    """Embed with the batch filled up to a power of two, so that few sizes are ever compiled."""
    size = 1 << max(len(batch) - 1, 0).bit_length()
    padding = np.zeros((size - len(batch), *batch.shape[1:]), batch.dtype)
    return np.asarray(_embed_jax(encoder, jnp.asarray(np.concatenate([batch, padding]))))[: len(batch)]


def mean_distance(embedded: np.ndarray) -> float:
    """The mean distance between two of these embedded states."""
    embedded = np.asarray(embedded, np.float64)
    squares = np.sum(embedded**2, axis=1)
    return float(np.mean(np.sqrt(np.maximum(squares[:, None] + squares - 2 * (embedded @ embedded.T), 0.0))))


def vector_norm(vectors: Any) -> Any:
    """The length of each vector, in NumPy or JAX."""
    if not isinstance(vectors, jax.Array):
        return np.sqrt(np.vecdot(vectors, vectors))
    # Where a vector is zero, a plain square root would have the gradient NaN.
    squares = jnp.sum(vectors**2, axis=-1)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)


def check_filter(filter: str, t: float | None = None) -> None:
    """Refuse an unknown filter, and a time that goes with none."""
    if filter not in get_args(Filter):
        raise ConfigError(f"unknown filter {filter!r}; {nearest(str(filter), get_args(Filter))}")
    if t is not None and (filter != "heat" or not 0 < t < np.inf):
        raise ConfigError(
            f"t must be above 0, finite, and goes with filter='heat', not t={t!r} with {filter!r}"
        )
