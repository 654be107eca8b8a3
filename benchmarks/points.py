"""Clouds of points: seconds, and how well they are embedded, beside SpectralEmbedding on the same points."""

import time
import warnings
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_moons, make_swiss_roll
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import normalized_mutual_info_score, r2_score
from sklearn.neighbors import NearestNeighbors

from benchmarks.rows import Row
from lapwing import LaplacianEmbedding
from lapwing.integrations.sklearn import neighbour_graph
from lapwing.laplacian.chain import graph_chain

NEIGHBOURS = 10
"""`LaplacianEmbedding`'s default; SpectralEmbedding's is a tenth of the points."""
LEVEL = 0.01
"""By so much k-means on equally good embeddings differ."""


def digits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits of scikit-learn, in an order of chance: the first for learning (seed 0), or the rest."""
    points, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(points))
    chosen = order[:1_500] if seed == 0 else order[1_500:]
    return points[chosen[:count]], labels[chosen[:count]]


CLOUDS: tuple[tuple[str, int, int, Any], ...] = (
    ("digits", 1_500, 10, digits),
    ("moons", 1_500, 2, lambda n, seed: make_moons(n, noise=0.05, random_state=seed)),
    ("moons", 5_000, 2, lambda n, seed: make_moons(n, noise=0.05, random_state=seed)),
    ("swiss roll", 1_500, 2, lambda n, seed: make_swiss_roll(n, noise=0.3, random_state=seed)),
    ("swiss roll", 5_000, 2, lambda n, seed: make_swiss_roll(n, noise=0.3, random_state=seed)),
)
"""Name, points, components, and how to draw them."""


def clusters(embedded: np.ndarray, labels: np.ndarray) -> float:
    """NMI of k-means with the labels."""
    found = KMeans(len(np.unique(labels)), n_init=10, random_state=0).fit_predict(embedded)
    return float(normalized_mutual_info_score(labels, found))


def rank(embedded: np.ndarray, along: np.ndarray) -> float:
    """Rank correlation of the first component with the position along the roll."""
    return abs(float(spearmanr(embedded[:, 0], along)[0]))


def exact_functions(points: np.ndarray, unseen: np.ndarray, count: int) -> np.ndarray:
    """The exact eigenvectors of the graph, at unseen points the mean of those of the five nearest."""
    points = points.astype(np.float32).astype(np.float64)
    weights, _ = neighbour_graph(points, NEIGHBOURS)
    _, functions = graph_chain(weights).eigenpairs(count + 1)
    _, nearest = NearestNeighbors(n_neighbors=5).fit(points).kneighbors(unseen)
    return functions[nearest, 1:].mean(axis=1)


def unseen_r2(embedding: LaplacianEmbedding, exact: np.ndarray, unseen: np.ndarray) -> float:
    """The mean R² of exact eigenfunctions at unseen points, each with the one that was learned."""
    learned = np.asarray(embedding.representation_.eigenfunctions(unseen.astype(np.float32)))[:, 1:]
    signs = np.sign(np.sum(learned * exact, axis=0))
    return float(r2_score(exact, learned * signs))


def measure() -> list[Row]:
    warnings.simplefilter("ignore", UserWarning)  # SpectralEmbedding's, of graphs in parts
    rows = []
    for name, count, components, draw in CLOUDS:
        points, known = draw(count, 0)
        unseen, _ = draw(1_000, 1)
        began = time.process_time()
        embedding = LaplacianEmbedding(components, n_neighbors=NEIGHBOURS).fit(points)
        seconds = time.process_time() - began
        score = rank if name == "swiss roll" else clusters
        theirs = {
            neighbours: score(
                SpectralEmbedding(components, n_neighbors=neighbours, random_state=0).fit_transform(points),
                known,
            )
            for neighbours in (None, NEIGHBOURS)
        }
        what = "rank along the roll" if score is rank else f"NMI, d = {components}"
        note = f"SpectralEmbedding {theirs[None]:.3f}, with {NEIGHBOURS} neighbours {theirs[NEIGHBOURS]:.3f}"
        exact = exact_functions(points, unseen, components)
        rows += [
            Row(f"{name}, {count:,} points: seconds to fit", seconds, 5, True, "of the CPU, compiling too"),
            Row(f"… {what}", score(embedding.embedding_, known), max(theirs.values()) - LEVEL, note=note),
            Row("… R² at unseen points", unseen_r2(embedding, exact, unseen), 0.97),
        ]
    return rows
