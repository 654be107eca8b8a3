"""A reacher's landmarks and ways, for a page that plans over them."""

from typing import Any

import numpy as np

from lapwing.exploring.arrays import packed
from lapwing.exploring.scenes import Scene
from lapwing.reaching.reacher import Reacher

MOST_EDGES = 20_000
"""Of more no plan is made in a page."""


def plan_of(reacher: Reacher, scene: Scene) -> dict[str, Any] | None:
    """Landmarks where they are drawn, their coordinates, and the edges between them."""
    graph, landmarks = reacher.graph, reacher.landmarks
    points = _places(scene, landmarks.observations)
    if points is None or len(graph.steps) > MOST_EDGES or reacher.representation is None:
        return None
    weights = reacher.representation.filter_weights("commute")
    return {
        "points": packed(points.astype(np.float32)),
        "coordinates": packed(landmarks.coordinates.astype(np.float32)),
        "used": np.flatnonzero(weights > 0).tolist(),
        "begins": packed(graph.begins),
        "ends": packed(graph.ends),
        "steps": packed(graph.steps.astype(np.float32)),
        "perLength": packed(reacher.planner.steps_per_length.astype(np.float32)),
    }


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
