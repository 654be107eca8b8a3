"""A reacher's landmarks and ways, for a page that plans over them."""

from typing import Any

import numpy as np

from lapwing.exploring.arrays import packed
from lapwing.exploring.scenes import Scene
from lapwing.laplacian.representation import Representation
from lapwing.reaching.geometry import Places, floored
from lapwing.reaching.reacher import Reacher

MOST_EDGES = 20_000
"""Of more no plan is made in a page."""


def plan_of(reacher: Reacher, scene: Scene) -> dict[str, Any] | None:
    """Landmarks where they are drawn, their coordinates, and the edges between them."""
    graph, landmarks = reacher.graph, reacher.landmarks
    points = _places(scene, landmarks.observations)
    flat = scene.observations is not None and scene.observations.ndim == 2
    if points is None or len(graph.steps) > MOST_EDGES or reacher.representation is None:
        return None
    if reacher.places.local and not flat:  # for the page knows no other observations
        return None
    return {
        "points": packed(points.astype(np.float32)),
        "coordinates": packed(landmarks.coordinates.astype(np.float32)),
        "weights": _weights(reacher.representation),
        "local": _local(reacher.places),
        "begins": packed(graph.begins),
        "ends": packed(graph.ends),
        "steps": packed(graph.steps.astype(np.float32)),
        "perLength": packed(reacher.planner.steps_per_length.astype(np.float32)),
    }


def _weights(representation: Representation) -> tuple[list[int], list[float]] | None:
    """The columns of the eigenfunctions that are coordinates, and their weights; None: φ itself is."""
    if "commute" not in representation.filters:
        return None
    kept, floor = floored(representation)
    weights = floor * representation.filter_weights("commute")[kept]
    return (1 + np.flatnonzero(kept)).tolist(), weights.astype(float).tolist()


def _local(places: Places) -> dict[str, Any] | None:
    """What makes the other coordinates of an observation, where there are such."""
    if not places.local:
        return None
    return {"shift": places.shift.tolist(), "scale": (places.local * places.scale).astype(float).tolist()}


def _places(scene: Scene, observations: np.ndarray) -> np.ndarray | None:
    """Where landmarks are drawn: by the inverse of what leads to features, or as the states they are."""
    if scene.to_features is not None and observations.ndim == 2:
        matrix, offset = scene.to_features[:, :2], scene.to_features[:, 2]
        return (observations[:, :2] - offset) @ np.linalg.inv(matrix).T
    seen = scene.observations
    if seen is None:
        return None
    flat, wanted = (rows.reshape(len(rows), -1).astype(np.float64) for rows in (seen, observations))
    nearest = [int(np.abs(flat - row).sum(axis=1).argmin()) for row in wanted]
    return scene.points[nearest]
