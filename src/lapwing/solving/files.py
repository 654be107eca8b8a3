"""Policies of `lapwing.solve` as files: one .safetensors with φ, the model and the reward, and a digest.

Q is not in the file: value iteration recomputes it on loading.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lapwing.errors import ConfigError
from lapwing.laplacian.model_files import fitting_description, model_file, read_model, write_model
from lapwing.laplacian.representation import representation_from, representation_parts
from lapwing.solving.embedding import Embedding
from lapwing.solving.model import ActionModel, Policy

KIND = "policy"
NAME = "policy.safetensors"
_MODEL = ("seen", "landmarks", "samples", "cell")
_MATRIX = ("data", "indices", "indptr")


def save_policy(policy: Policy, path: str | Path) -> None:
    """Write one .safetensors file, checked by SHA-256 when it is loaded."""
    model, embed = policy.model, policy.model.embed
    if not isinstance(embed, Embedding):
        raise ConfigError(
            "only a policy of what lapwing.action_model made can be saved, not of another embedding"
        )
    arrays = {name: getattr(model, name) for name in _MODEL} | {"rewards": policy.rewards}
    arrays |= {f"transition.{name}": getattr(model.transition, name) for name in _MATRIX}
    optional = {"states": model.states, "scale": embed.scale}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    described: dict[str, Any] = {
        "shape": list(model.shape),
        "n_states": model.n_states,
        "gamma": policy.gamma,
        "units": list(embed.units),
        "representation": None,
    }
    if embed.representation is not None:
        phi, described["representation"] = representation_parts(embed.representation, "phi.")
        arrays |= phi
    write_model(path, KIND, {name: np.array(array, order="C") for name, array in arrays.items()}, described)


def load_policy(path: str | Path) -> Policy:
    """Read what `Policy.save` wrote, or the policy in a folder of `lapwing solve`.

    Nothing in the file is executed.
    """
    path = model_file(path, NAME, missing="policy; lapwing solve makes one")
    tensors, manifest = read_model(path, KIND)
    with fitting_description(path):
        model = _model(tensors, manifest, path)
        _check(model, tensors["rewards"])
        return model.policy(tensors["rewards"], float(manifest["gamma"]))


def _model(tensors: dict[str, np.ndarray], manifest: dict[str, Any], path: Path) -> ActionModel:
    phi = None
    if manifest["representation"] is not None:
        phi = representation_from(tensors, manifest["representation"], path, "phi.")
    vectors, slow = manifest["units"]
    landmarks, actions = tensors["seen"].shape
    matrix = tuple(tensors[f"transition.{name}"] for name in _MATRIX)
    return ActionModel(
        Embedding(phi, tensors.get("scale"), (float(vectors), float(slow))),
        tuple(manifest["shape"]),
        sparse.csr_array(matrix, shape=(landmarks * actions, landmarks)),
        states=tensors.get("states"),
        n_states=manifest["n_states"],
        **{name: tensors[name] for name in _MODEL},
    )


def _check(model: ActionModel, rewards: np.ndarray) -> None:
    """Refuse arrays that do not belong together; the digest is of the file, not of what it means."""
    count = len(model.landmarks)
    ends = model.transition.indices
    fits = len(model.seen) == len(rewards) == count and len(model.cell) == len(model.samples)
    fits = fits and (not ends.size or 0 <= ends.min() <= ends.max() < count)
    fits = fits and (not model.cell.size or 0 <= model.cell.min() <= model.cell.max() < count)
    if model.states is not None:
        fits = fits and len(model.states) == count and model.states.max(initial=0) < (model.n_states or 0)
    if not fits:
        raise ValueError("landmarks, moves and rewards are not of the same model")
