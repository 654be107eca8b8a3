"""Reachers as files: one .safetensors with φ, the landmarks, the graph and the controller, and a digest."""

from pathlib import Path
from typing import Any

import numpy as np

from lapwing.errors import CheckpointError, ConfigError
from lapwing.laplacian.model_files import fitting_description, model_file, read_model, write_model
from lapwing.laplacian.representation import Representation, representation_from, representation_parts
from lapwing.reaching.action_codes import ActionCodes
from lapwing.reaching.controller import Network
from lapwing.reaching.geometry import Places
from lapwing.reaching.graph import Graph
from lapwing.reaching.neighbours import Neighbours
from lapwing.reaching.reacher import Landmarks, Reacher

KIND = "reacher"
_GRAPH = ("begins", "ends", "steps")
_NEIGHBOURS = ("features", "before", "after", "actions")


def save_reacher(reacher: Reacher, path: str | Path) -> None:
    """Write one .safetensors file, checked by SHA-256 when it is loaded."""
    if not isinstance(reacher.places.embedding, Representation | None):
        raise ConfigError("a reacher is saved with a learned φ, and this one has a function in its place")
    arrays, controller = _controller_parts(reacher.controller)
    arrays |= {f"landmarks.{name}": array for name, array in reacher.landmarks._asdict().items()}
    arrays |= {f"graph.{name}": getattr(reacher.graph, name) for name in _GRAPH}
    arrays |= {"shift": reacher.places.shift, "scale": reacher.places.scale, "actions": reacher.codes.rows}
    described: dict[str, Any] = {
        "config": reacher.config,
        "shape": list(reacher.places.shape),
        "local": reacher.places.local,
        "ahead": reacher.ahead,
        "plans": reacher.plans,
        "discrete": reacher.codes.discrete,
        "action_shape": list(reacher.codes.shape),
        "controller": controller,
        "representation": None,
    }
    if reacher.representation is not None:
        phi, described["representation"] = representation_parts(reacher.representation, "phi.")
        arrays |= phi
    contiguous = {name: np.array(array, order="C") for name, array in arrays.items()}
    write_model(path, KIND, contiguous, described)


def load_reacher(path: str | Path) -> Reacher:
    """Read what `Reacher.save` wrote, or the reacher in a run folder. Nothing in the file is executed."""
    path = model_file(path, "reacher.safetensors", missing="reacher; lapwing reach makes one")
    tensors, manifest = read_model(path, KIND)
    with fitting_description(path):
        return _reacher(tensors, manifest, path)


def _reacher(tensors: dict[str, np.ndarray], manifest: dict[str, Any], path: Path) -> Reacher:
    representation = None
    if manifest["representation"] is not None:
        representation = representation_from(tensors, manifest["representation"], path, "phi.")
    landmarks = Landmarks(*(tensors[f"landmarks.{name}"] for name in Landmarks._fields))
    count = len(landmarks.coordinates)
    graph = Graph(count, *(tensors[f"graph.{name}"] for name in _GRAPH))
    _check_graph(graph, path)
    codes = ActionCodes(bool(manifest["discrete"]), tensors["actions"], tuple(manifest["action_shape"]))
    return Reacher(
        Places(
            *(tuple(manifest["shape"]), representation, tensors["shift"], tensors["scale"]),
            local=float(manifest["local"]),
        ),
        landmarks,
        graph,
        float(manifest["ahead"]),
        codes,
        _controller(tensors, manifest["controller"], codes.discrete),
        bool(manifest["plans"]),
        dict(manifest["config"]),
    )


def _check_graph(graph: Graph, path: Path) -> None:
    ends = np.concatenate([graph.begins, graph.ends])
    same = len(graph.begins) == len(graph.ends) == len(graph.steps)
    if (
        not same
        or (ends.size and not 0 <= ends.min() <= ends.max() < graph.count)
        or (graph.steps <= 0).any()
    ):
        raise CheckpointError(f"{path} does not fit its own description: its edges are not between landmarks")


def _controller_parts(controller: Network | Neighbours) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    if isinstance(controller, Neighbours):
        arrays = {f"controller.{name}": getattr(controller, name) for name in _NEIGHBOURS}
        return arrays, {"name": "neighbours", "temperature": controller.temperature}
    arrays = {"controller.scale": controller.scale}
    for number, (weight, bias) in enumerate(controller.layers):
        arrays |= {f"controller.{number}.weight": weight, f"controller.{number}.bias": bias}
    return arrays, {"name": "network", "layers": len(controller.layers)}


def _controller(
    tensors: dict[str, np.ndarray], described: dict[str, Any], discrete: bool
) -> Network | Neighbours:
    if described["name"] == "neighbours":
        arrays = {name: tensors[f"controller.{name}"] for name in _NEIGHBOURS}
        return Neighbours(**arrays, temperature=float(described["temperature"]))
    layers = [
        (tensors[f"controller.{number}.weight"], tensors[f"controller.{number}.bias"])
        for number in range(int(described["layers"]))
    ]
    return Network(layers, tensors["controller.scale"], discrete)


def as_json(reacher: Reacher) -> dict[str, Any]:
    """How large it is, for the result of a run."""
    parts = np.bincount(reacher.graph.parts)
    return {
        "landmarks": reacher.graph.count,
        "edges": len(reacher.graph.steps),
        "parts": len(parts),
        "largest_part": int(parts.max()),
        "ahead": reacher.ahead,
        "jumps": int(reacher.config.get("jumps", 0)),
    }
