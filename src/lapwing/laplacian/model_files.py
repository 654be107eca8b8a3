"""The files of learned models: the kind of model, integrity checks, and arrays by name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapwing import storage
from lapwing._version import __version__
from lapwing.errors import CheckpointError, ConfigError

FORMAT = 1


def write_model(
    path: str | Path, kind: str, arrays: dict[str, np.ndarray], described: dict[str, Any]
) -> None:
    """Write one .safetensors file, checked by SHA-256 when it is read."""
    manifest = {"format": FORMAT, "version": __version__, "kind": kind} | described
    storage.write_tensors(Path(path), arrays, manifest)


def model_file(path: str | Path, name: str, *, missing: str) -> Path:
    """The file itself, or the one of this name in a run folder; `missing` says what a folder may lack."""
    path = Path(path)
    if not storage.is_folder(path):
        return path
    if not (path / name).is_file():
        raise ConfigError(f"{path} holds no {missing}")
    return path / name


def read_model(path: Path, *kinds: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the description of a model of one of these kinds; the first names what was asked for."""
    tensors, manifest = storage.read_tensors(path)
    check_format(path, manifest)
    found = manifest.get("kind", "checkpoint")
    if found not in kinds:
        raise CheckpointError(f"{path} holds {_with_article(found)}, not {_with_article(kinds[0])}")
    return tensors, manifest


def _with_article(kind: Any) -> str:
    return f"{'an' if str(kind)[:1] in 'aeiou' else 'a'} {kind}"


@contextmanager
def fitting_description(path: Path) -> Iterator[None]:
    """Say of which file, where its arrays are not those that it describes."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
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
