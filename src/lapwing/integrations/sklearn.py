"""LaplacianEmbedding: Laplacian representations of point clouds and of trajectories, for scikit-learn.

The estimator is a shell: a cloud becomes a walk between neighbours (`neighbours`), trajectories are
experience, and what is learned from either is a `Representation` as any other.
"""

import warnings
from typing import Any

import numpy as np

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, DatasetError, LapwingWarning, nearest
from lapwing.integrations.neighbours import neighbour_distance, neighbour_graph, random_walks
from lapwing.laplacian.chain import DENSE_LIMIT
from lapwing.laplacian.forward import Forward
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.target import Target, open_target
from lapwing.settings.checks import checked, checked_hidden
from lapwing.settings.learn import LearnSettings

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ConfigError("install lapwing with its extra sklearn: pip install 'lapwing[sklearn]'") from error

FILTERS = ("unit", "commute", "heat")
ENCODERS = ("fourier", "mlp")
FINENESS = 0.7
"""The Fourier bandwidth times the distance to the last of the neighbours, in standard deviations.

Measured on held-out points of rolls in 3 and in 10 dimensions, an S-curve, moons, a ring and blobs in 5, of
800 points each, as R² of exact eigenvectors averaged over the nearest points, in the mean of the first four:
each cloud is within 0.01 of its best (0.90 to 0.99) at 0.5 or at 1. At 4 the blobs fall to 0.44 and the rolls
to 0.95 and 0.84. Lapwing's rule for mazes, by the nearest neighbour alone, comes to 1.4 to 3.5.
"""
FAR = 1.5
"""Beyond this distance, as in digits (5.2), the plain `mlp` does better: 0.95, where `fourier` has 0.90."""
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
    """The smoothest functions on the data, as a network that takes unseen points too.

    A cloud of points is made a graph of nearest neighbours, and φ is learned from the random walk on it: from
    its transition matrix up to 5,000 points, from walks of 200 steps beyond. Trajectories are learned from as
    they are: near is what follows in time.

    Args:
        n_components: how many eigenfunctions, the constant left out.
        n_neighbors: of each point, in a cloud; fewer keep parts of the cloud apart that nearly touch.
        filter: how much each eigenfunction weighs. `unit`: all alike. `commute`: √(λ_2/λ_i), whose distance
            is that of commute times. `heat`: e^(-tλ_i), the last with a tenth of the weight.
        steps: gradient steps; None: 400, beyond 5,000 points 4,000; of trajectories as `lapwing.learn`.
        hidden: widths of the hidden layers; None: (64, 64), of trajectories as `lapwing.learn`.
        learning_rate: Adam's step size; None: 0.01, beyond 5,000 points 0.005; of trajectories as
            `lapwing.learn`.
        encoder: `fourier` or `mlp`; None: `fourier` where the neighbours are nearer than 1.5 standard
            deviations, as they are in few dimensions; of trajectories as `lapwing.learn`.
        random_state: a seed, a `RandomState`, or None for another outcome each time.

    Attributes:
        representation_: the `Representation`; it has a file, distances and eigenfunctions of its own.
        embedding_: what `transform` gives of the data that was learned from.
        eigenvalues_: of the Laplacian of one step, ascending, without the constant's 0; as Rayleigh quotients
            of what was learned they are a little above the exact ones.
        n_iter_: how many steps were taken.
        n_features_in_: how many features X had.

    Points that coincide count once. The network takes float32: where the mean of a feature is many times its
    spread, put a `StandardScaler` before it. Neighbours are found by the distance of features as they are.

    Example:
        >>> angles = np.linspace(0, 6, 80)
        >>> arc = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        >>> along = LaplacianEmbedding(n_components=1, n_neighbors=4, steps=200).fit_transform(arc)[:, 0]
        >>> bool(abs(np.corrcoef(along, np.cos(angles / 2))[0, 1]) > 0.9)
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

    def fit(self, X, y=None, *, lengths=None) -> "LaplacianEmbedding":
        """Learn from a cloud, or from trajectories.

        Args:
            X: one point a row; with `lengths` one observation a row, episode after episode.
            y: for scikit-learn, and not used.
            lengths: how many rows each episode has; None is a cloud.
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
        self._forward = Forward(self.representation_, self.filter, np.float64)
        self._n_features_out = self._forward.dim
        self.embedding_ = self._forward(rows)
        return self

    def transform(self, X) -> np.ndarray:
        """The embedding of points, seen or unseen, in float64; each is the same whatever others are there."""
        check_is_fitted(self)
        return self._forward(validate_data(self, X, dtype=np.float32, reset=False))

    def _asked(self) -> dict[str, Any]:
        """The settings that are not left to lapwing, checked before any work is done."""
        _check_choice("filter", self.filter, FILTERS)
        if self.encoder is not None:
            _check_choice("encoder", self.encoder, ENCODERS)
        names = ("steps", "hidden", "learning_rate", "encoder")
        asked = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
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
    weights, parts = neighbour_graph(points.astype(np.float64), n_neighbors)
    if parts > 1:
        warnings.warn(
            f"the {n_neighbors} nearest neighbours leave X in {parts} parts, which were joined by the "
            "shortest edges between them: the first components tell the parts apart; "
            "raise n_neighbors to join them better",
            LapwingWarning,
            stacklevel=3,
        )
    distance = neighbour_distance(points, n_neighbors)
    # In steps of √2, for each bandwidth is compiled anew.
    bandwidth = 2.0 ** (round(2 * np.log2(FINENESS / distance)) / 2)
    suited = {"encoder": "fourier" if distance < FAR else "mlp", "fourier_bandwidth": bandwidth}
    if len(points) <= DENSE_LIMIT:
        target = Target("points", None, states=points, graph=weights)
        return target, LearnSettings(**(EXACT | suited | asked))
    walkers = min(TRANSITIONS, MOST_NUMBERS // points.shape[1]) // WALK_LENGTH + 1
    walks = random_walks(weights, walkers, WALK_LENGTH, np.random.default_rng(asked["seed"]))
    seen = Experience(points[walks.reshape(-1)], np.full(walkers, WALK_LENGTH + 1))
    return Target("points", seen), LearnSettings(**(WALKED | suited | asked))


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
