"""Batches of observations as inputs of an encoder, and φ of them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lapwing.errors import ConfigError, DatasetError
from lapwing.laplacian.encoders import Encoder, EncoderSpec, embed

_LARGEST_BATCH = 4_096


def is_single(found: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether an array of shape `found` is one observation; what is neither that nor a batch is refused."""
    if found != shape and found[1:] != shape:
        raise ConfigError(
            f"observations have shape {found}; this representation takes {shape} "
            f"or a batch (n, {', '.join(map(str, shape))})".replace("(n, )", "(n,)")
        )
    return found == shape


def as_batch(spec: EncoderSpec, array: Any) -> tuple[Any, bool]:
    """A batch as the encoder takes it, of one observation or many, and whether it was one.

    Arrays of NumPy are checked, those of JAX are not. Images that the spec makes smaller may be so already.
    """
    shrinking = spec.shrinking
    small = shrinking is not None and spec.shape in (array.shape, array.shape[1:])
    shape = spec.shape if shrinking is None or small else shrinking.shape
    single = is_single(array.shape, shape)
    batch = array[None] if single else array
    plain = isinstance(array, np.ndarray)
    batch = checked_batch(batch, shape, spec.n_states) if plain else batch
    if shrinking is None or small:
        return batch, single
    return (shrinking(batch) if plain else shrinking.of_arrays(batch, jnp)), single


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


@eqx.filter_jit
def embed_jax(encoder: Encoder, batch):
    """φ of a JAX batch."""
    return jax.vmap(embed, in_axes=(None, 0))(encoder, batch)


def embed_batch(encoder: Encoder, batch: np.ndarray) -> np.ndarray:
    """φ of a NumPy batch of any size, in bounded memory."""
    begins = range(0, max(len(batch), 1), _LARGEST_BATCH)
    return np.concatenate([_embed_padded(encoder, batch[b : b + _LARGEST_BATCH]) for b in begins])


def _embed_padded(encoder: Encoder, batch: np.ndarray) -> np.ndarray:
    """Embed with the batch filled up to a power of two, so that few sizes are ever compiled."""
    size = 1 << max(len(batch) - 1, 0).bit_length()
    padding = np.zeros((size - len(batch), *batch.shape[1:]), batch.dtype)
    return np.asarray(embed_jax(encoder, jnp.asarray(np.concatenate([batch, padding]))))[: len(batch)]
