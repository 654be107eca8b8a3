"""LaplacianEmbedding: Laplacian representations of point clouds and of trajectories, for scikit-learn.

The estimator is a thin shell: a point cloud becomes a random walk between neighbours, trajectories are
experience, and the result of either is an ordinary `Representation`. The walk is reversible, and its
stationary distribution is proportional to the sum of weights at each point. Its eigenvectors are computed
directly, and `extension` extends them to functions; a network is trained on request.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lapwing.compilation import kept_programs
from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, DatasetError, LapwingWarning, nearest, warn
from lapwing.laplacian.forward import Forward
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.target import MOST_ENUMERATED, Target, open_target
from lapwing.settings.checks import checked, checked_hidden
from lapwing.settings.learn import LearnSettings

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.neighbors import NearestNeighbors
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ConfigError("install lapwing with its extra sklearn: pip install 'lapwing[sklearn]'") from error

FILTERS = ("unit", "commute", "biharmonic", "heat")
ENCODERS = ("bumps", "fourier", "mlp")
NETWORK = ("steps", "hidden", "learning_rate", "encoder")
"""Whoever gives one of these asks for a network to be trained, unless the encoder is `bumps`."""
MOST_POINTS = 50_000
"""Of a larger cloud so many are learned from, drawn at random."""
FAINTEST = 1e-3
"""No edge has a lower weight: an outlier next to a dense clump would be cut off by rounding."""
FINENESS = 0.7
"""The Fourier bandwidth times the distance to the last of the neighbours, in standard deviations.

Measured on held-out points of rolls in 3 and in 10 dimensions, an S-curve, moons, a ring and blobs in 5, of
800 points each, as R² of exact eigenvectors averaged over the nearest points, the mean of the first four:
each cloud is within 0.01 of its best (0.90 to 0.99) at 0.5 or at 1. At 4 the blobs fall to 0.44 and the rolls
to 0.95 and 0.84. Lapwing's rule for mazes, by the nearest neighbour alone, comes to 1.4 to 3.5.
"""
FAR = 1.5
"""Beyond this distance, as in digits (5.2), a plain `mlp` does better: 0.95, where `fourier` has 0.90."""
EXACT: dict[str, Any] = {"steps": 400, "learning_rate": 0.01, "hidden": (64, 64)}
"""About a quarter of lapwing's steps: the first ten eigenfunctions of a roll and of digits span the exact
ones with cosines of 0.99 and more."""
WALKED: dict[str, Any] = EXACT | {"steps": 4_000, "learning_rate": 0.005}
WALK_LENGTH, TRANSITIONS = 200, 500_000
"""With walks of 50 steps λ is 0.96 at most, and the fourth eigenfunction of a roll of 8,000 points has a
cosine of 0.90 with the exact space; with 200, λ is 0.99 and the cosine 0.98."""
MOST_NUMBERS = 1 << 26
"""How many numbers may be seen on those walks: in high dimensions there are fewer of them."""


class LaplacianEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Laplacian embedding: the smoothest functions on the data, with `transform` for unseen points.

    A point cloud becomes a graph of nearest neighbours. The eigenvectors of the random walk on it are
    extended to all points by Gaussian bumps, selected on held-out points. For trajectories, points are near
    if they follow each other in time.

    `steps`, `hidden`, `learning_rate` and `encoder` select a network instead, which is trained on all
    eigenvectors up to 5,000 points, and on walks of 200 steps beyond.

    Args:
        n_components: the number of eigenfunctions, without the constant.
        n_neighbors: neighbours of each point in a cloud; fewer keep regions apart that nearly touch.
        filter: the weights of the eigenfunctions. `unit`: equal weights. `commute`: √(λ_2/λ_i), the
            commute-time distance. `biharmonic`: λ_2/λ_i. `heat`: e^(-tλ_i), the last with a tenth of the
            weight.
        steps: gradient steps of a network, 400 by default, 4,000 beyond 5,000 points; for trajectories as
            in `lapwing.learn`.
        hidden: widths of its hidden layers, (64, 64) by default; for trajectories as in `lapwing.learn`.
        learning_rate: Adam's learning rate, 0.01 by default, 0.005 beyond 5,000 points; for trajectories
            as in `lapwing.learn`.
        encoder: `bumps`, `fourier` or `mlp`. None: `bumps`; or, with a network, `fourier` if the
            neighbours are nearer than 1.5 standard deviations, as in few dimensions, else `mlp`; for
            trajectories as in `lapwing.learn`.
        random_state: a seed, a `RandomState`, or None for a different result each time.

    Attributes:
        representation_: the `Representation`, with distances and eigenfunctions; it can be saved.
        embedding_: the embedded training data.
        eigenvalues_: one-step eigenvalues of the Laplacian, ascending, without the constant's 0; those of a
            network are slightly above the exact ones.
        n_iter_: the number of gradient steps; 1 without a network.
        n_features_in_: the number of features of X.

    Points that coincide count once. Beyond 50,000 points, a random sample of that size is used. Numbers
    become float32: if the mean of a feature is many times its standard deviation, put a `StandardScaler`
    before it. Neighbours are found by the distance of the unscaled features.

    Example:
        >>> angles = np.linspace(0, 5, 80)
        >>> arc = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        >>> along = LaplacianEmbedding(n_components=1, n_neighbors=4).fit_transform(arc)[:, 0]
        >>> bool(abs(np.corrcoef(along, np.cos(np.pi * angles / 5))[0, 1]) > 0.99)
        True
    """

    def __init__(
        self,
        n_components: Any = 2,
        *,
        n_neighbors: Any = 10,
        filter: Any = "commute",
        steps: Any = None,
        hidden: Any = None,
        learning_rate: Any = None,
        encoder: Any = None,
        random_state: Any = 0,
    ):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.filter = filter
        self.steps = steps
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.encoder = encoder
        self.random_state = random_state

    @kept_programs()
    def fit(self, X, y=None, *, lengths=None) -> "LaplacianEmbedding":
        """Learn from a cloud, or from trajectories.

        Args:
            X: one point per row; with `lengths` one observation per row, episode after episode.
            y: ignored, for scikit-learn's interface.
            lengths: the number of rows of each episode; None means a point cloud.
        """
        rows: Any = validate_data(self, X, dtype=np.float32, ensure_min_samples=2)
        asked, n_neighbors = self._asked(), _count("n_neighbors", self.n_neighbors)
        if lengths is None:
            target, settings = _of_cloud(rows, n_neighbors, asked)
        else:
            settings = LearnSettings(**asked)
            target = open_target(Experience(rows, lengths), settings)
            _check_distinct(target.n_states, asked["dim"])
        self.representation_ = learn_target(target, settings)
        self.eigenvalues_ = self.representation_.eigenvalues[1:]
        self.n_iter_ = self.representation_.config["settings"]["stop"]
        # All components that were asked for: an untrusted one is a feature of its own, and no part of a sum.
        self._forward = Forward(self.representation_, self.filter, np.float64, trusted_only=False)
        self._n_features_out = self._forward.dim
        self.embedding_ = self._forward(rows)
        return self

    def transform(self, X) -> np.ndarray:
        """The embedding of points, seen or unseen, in float64; it does not depend on the other points."""
        check_is_fitted(self)
        return self._forward(validate_data(self, X, dtype=np.float32, reset=False))

    def _asked(self) -> dict[str, Any]:
        """The settings that are not left to lapwing, checked before any work is done."""
        _check_choice("filter", self.filter, FILTERS)
        if self.encoder is not None:
            _check_choice("encoder", self.encoder, ENCODERS)
        asked = {name: getattr(self, name) for name in NETWORK if getattr(self, name) is not None}
        if "hidden" in asked:
            asked["hidden"] = checked_hidden(self.hidden)
        asked["dim"] = _count("n_components", self.n_components) + 1
        asked["seed"] = int(check_random_state(self.random_state).randint(2**31 - 1))
        LearnSettings(**asked)
        return asked


def _of_cloud(rows: np.ndarray, n_neighbors: int, asked: dict[str, Any]) -> tuple[Target, LearnSettings]:
    """The walk between the points, and the settings that suit it."""
    points = np.unique(rows, axis=0)
    _check_distinct(len(points), asked["dim"])
    trained = [name for name in NETWORK if name in asked and asked[name] != "bumps"]
    if len(points) > MOST_POINTS and not trained:
        drawn = np.random.default_rng(asked["seed"]).choice(len(points), MOST_POINTS, replace=False)
        points = points[np.sort(drawn)]
    weights, parts = neighbour_graph(points.astype(np.float64), n_neighbors)
    if parts > 1:
        warn(
            f"the {n_neighbors} nearest neighbours leave X in {parts} parts, which were joined by the "
            "shortest edges between them: the first components separate the parts; "
            "raise n_neighbors to join them better",
            LapwingWarning,
        )
    target = Target("points", None, states=points, graph=weights)
    if not trained:
        return target, LearnSettings(**({"estimator": "closed-form", "oversample": 0} | asked))
    return _of_network(target, n_neighbors, asked)


def _of_network(target: Target, n_neighbors: int, asked: dict[str, Any]) -> tuple[Target, LearnSettings]:
    """What a network is trained on, and the settings that suit it."""
    points = target.states
    assert points is not None
    distance = neighbour_distance(points, n_neighbors)
    # In steps of √2, for each bandwidth is compiled anew.
    bandwidth = 2.0 ** (round(2 * np.log2(FINENESS / distance)) / 2)
    suited = {"encoder": "fourier" if distance < FAR else "mlp", "fourier_bandwidth": bandwidth}
    if len(points) <= MOST_ENUMERATED:
        return target, LearnSettings(**(EXACT | suited | asked))
    walkers = min(TRANSITIONS, MOST_NUMBERS // points.shape[1]) // WALK_LENGTH + 1
    walks = random_walks(target.graph, walkers, WALK_LENGTH, np.random.default_rng(asked["seed"]))
    seen = Experience(points[walks.reshape(-1)], np.full(walkers, WALK_LENGTH + 1))
    return Target("points", seen), LearnSettings(**(WALKED | suited | asked))


def neighbour_graph(points: np.ndarray, n_neighbors: int) -> tuple[Any, int]:
    """The weights of a connected, symmetric graph of neighbours, and into how many parts it fell at first.

    An edge joins two points if either is among the nearest of the other. Its weight is
    exp(-d² / (σ_u σ_v)), at least 0.001, with σ the distance to the neighbour in the middle of the
    `n_neighbors`, so that the scale is that of the surroundings (Zelnik-Manor and Perona, 2004). Parts
    between which there is no edge are joined by the shortest edges between them.

    On swiss rolls of 500 points the first eigenvector has a rank correlation of 0.98 with the position along
    the roll, the mean of five; with weights of 1 it has 0.90, for edges across the gap count as much.

    Args:
        points: one a row, all distinct, at least two.
        n_neighbors: how many neighbours of each point; all others where there are fewer.

    Example:
        >>> weights, parts = neighbour_graph(np.array([[0.0], [1.0], [10.0], [11.0]]), n_neighbors=1)
        >>> parts, weights.nnz // 2
        (2, 3)
    """
    n_neighbors = min(n_neighbors, len(points) - 1)
    directed = sparse.csr_array(_nearest(points, n_neighbors).kneighbors_graph(mode="distance"))
    scales = directed.data.reshape(len(points), n_neighbors)[:, (n_neighbors - 1) // 2]
    lengths = directed.maximum(directed.T)
    parts, label = connected_components(lengths)
    if parts > 1:
        here, there = shortest_bridges(points, label)
        bridged = np.linalg.norm(points[here] - points[there], axis=1)
        bridges = sparse.csr_array((bridged, (here, there)), shape=lengths.shape)
        lengths = lengths.maximum(bridges).maximum(bridges.T)
    edges = lengths.tocoo()
    u, v = edges.coords
    weights = np.maximum(np.exp(-(edges.data / scales[u]) * (edges.data / scales[v])), FAINTEST)
    return sparse.csr_array((weights, (u, v)), shape=lengths.shape), int(parts)


def shortest_bridges(points: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The edges, as two rows of indices, of the least total length that join all parts to one.

    The shortest edge out of a part, whichever comes next, is one of them (Borůvka).

    Args:
        points: one a row.
        label: which part each point belongs to.

    Example:
        >>> here, there = shortest_bridges(np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1]))
        >>> int(here[0]), int(there[0])
        (2, 1)
    """
    bridges: list[Any] = []
    names, sizes = np.unique(label, return_counts=True)
    for name in names[names != names[np.argmax(sizes)]]:  # each becomes part of another, but the largest
        inside, outside = np.flatnonzero(label == name), np.flatnonzero(label != name)
        distances, nearest = _nearest(points[outside], 1).kneighbors(points[inside])
        shortest = np.argmin(distances)
        bridges.append((inside[shortest], outside[nearest[shortest, 0]]))
        label = np.where(label == name, label[bridges[-1][1]], label)
    return np.array(bridges, dtype=np.intp).reshape(-1, 2).T


def neighbour_distance(points: np.ndarray, n_neighbors: int) -> float:
    """The median distance to the `n_neighbors`-th neighbour, each feature in its standard deviations.

    Example:
        >>> round(neighbour_distance(np.arange(100.0)[:, None], 10) * np.std(np.arange(100)))
        5
    """
    spread = np.std(points, axis=0)
    scaled = points / np.where(spread > 0, spread, 1.0)
    some = scaled[:: max(1, len(points) // 2_000)]
    distances, _ = _nearest(scaled, min(n_neighbors, len(points) - 1) + 1).kneighbors(some)
    return float(np.median(distances[:, -1]))


def random_walks(weights: Any, walkers: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of points on walks along the graph from stationary starts, one row a walk.

    Args:
        weights: symmetric, of a graph in which each point has a neighbour.
        walkers: how many walks.
        steps: how many steps in each.
        rng: the generator to draw from.

    Example:
        >>> random_walks(sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]), 5, 3, np.random.default_rng(0)).shape
        (5, 4)
    """
    graph = sparse.csr_array(weights)
    degree = np.asarray(graph.sum(axis=1), np.float64)
    # The cumulated weights of all edges: those of a point are an interval, in which a step is drawn.
    ends = np.cumsum(graph.data)
    begin = np.append(0.0, ends)[graph.indptr[:-1]]
    path = np.empty((walkers, steps + 1), np.int32)
    path[:, 0] = rng.choice(len(degree), walkers, p=degree / degree.sum())
    for step in range(steps):
        here = path[:, step]
        edge = np.searchsorted(ends, begin[here] + rng.random(walkers) * degree[here], side="right")
        edge = np.clip(edge, graph.indptr[here], graph.indptr[here + 1] - 1)  # against rounding
        path[:, step + 1] = graph.indices[edge]
    return path


def _nearest(points: np.ndarray, count: int) -> Any:
    """A search for the nearest of these points, by differences of features, which lose no digits."""
    return NearestNeighbors(n_neighbors=count, algorithm="kd_tree").fit(points)


def _check_distinct(count: int | None, dim: int) -> None:
    """Refuse what has fewer states than eigenfunctions; two states have none but the constant."""
    if count is not None and count < max(dim, 3):
        raise DatasetError(
            f"X has {count} distinct rows, and n_components={dim - 1} needs {max(dim, 3)} or more; "
            "lower n_components or give more data"
        )


def _check_choice(name: str, value: Any, words: tuple[str, ...]) -> None:
    if value not in words:
        hint = nearest(str(value), words)
        raise ConfigError(f"{name} must be one of {', '.join(words)}, not {value!r}; {hint}")


def _count(name: str, value: Any) -> int:
    return checked(name, value, whole=True, least=1)
