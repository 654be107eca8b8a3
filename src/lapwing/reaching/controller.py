"""The local controller: a network from a state and a way point to an action, trained once on the data.

It clones the data's actions, each weighed by how much nearer it came to the way point: e to the power of the
decrease of distance, in standard deviations of what a state there moves. The way points it is trained on are
states near the landmarks that a plan may name, not those that the data went to.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lapwing.errors import NonFiniteError
from lapwing.progress import OnChunk
from lapwing.reaching.landmarks import Nearest

MOST_WEIGHT = 20.0
"""No state counts more than e to the power of this times another."""
FARTHEST = 5.0
"""Features of a way point relative to the state are cut off there, in typical distances."""
STEPS_AT_ONCE = 50
Layers = list[tuple[np.ndarray, np.ndarray]]


class Samples(NamedTuple):
    """What a controller is trained on: one row an observation."""

    coordinates: np.ndarray
    features: np.ndarray
    actions: np.ndarray
    """As `ActionCodes` encodes them."""
    horizons: np.ndarray
    nearest: Nearest

    def followed(self, lag: int) -> np.ndarray:
        """The indices of the observations with at least `lag` steps after them."""
        return np.flatnonzero(self.horizons >= lag)


@dataclass(frozen=True, eq=False)
class Network:
    """Fully connected layers with relu between them, over features of the state and of the way point."""

    layers: Layers
    scale: np.ndarray
    """Of each feature, how far a way point typically is."""
    discrete: bool

    def __call__(self, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """What `ActionCodes.decode` takes, a row for each state and its way point."""
        rows = network_inputs(features, targets, self.scale)
        for weight, bias in self.layers[:-1]:
            rows = np.maximum(rows @ weight + bias, 0.0)
        weight, bias = self.layers[-1]
        return rows @ weight + bias


def network_inputs(features: np.ndarray, targets: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Where one is, and where the way point is from there."""
    relative = np.clip((targets - features) / scale, -FARTHEST, FARTHEST)
    return np.concatenate([2 * features, relative], axis=1).astype(np.float32)


class _Balanced:
    """Draws states evenly over landmarks, so that places which the data seldom visited are learned too."""

    def __init__(self, landmark: np.ndarray, states: np.ndarray):
        self._order = states[np.argsort(landmark[states], kind="stable")]
        self._sizes = np.bincount(landmark[states])
        self._sizes = self._sizes[self._sizes > 0]
        self._begins = np.cumsum(self._sizes) - self._sizes

    def draw(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """`count` states."""
        group = generator.integers(len(self._sizes), size=count)
        return self._order[self._begins[group] + (generator.random(count) * self._sizes[group]).astype(int)]


class WayPoints:
    """Draws way points for states: half of them where the data went from there, half from all around.

    Where the data went its action was right, whatever the distance says; where it did not go, only the
    distance tells. The first half is what goal-directed data is good for, the second what random data is.
    """

    def __init__(self, samples: Samples, within_reach: np.ndarray | None, farthest: float):
        """Way points up to a distance.

        Args:
            samples: the data.
            within_reach: from which landmark (row) which others are; None is any state at all.
            farthest: how many steps away those are that the data went to.
        """
        self._horizons, self._farthest = samples.horizons, max(1.0, farthest)
        self._landmark, self._within_reach = samples.nearest.landmark, within_reach
        if within_reach is None:
            return
        self._order = np.argsort(self._landmark, kind="stable")
        self._sizes = np.bincount(self._landmark, minlength=len(within_reach))
        self._begins = np.cumsum(self._sizes) - self._sizes
        self._choices = within_reach.sum(axis=1)
        self._table = np.argsort(~within_reach, axis=1, kind="stable")[:, : self._choices.max()]

    def draw(self, states: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """The index of a way point for each state."""
        half = len(states) // 2
        return np.concatenate([self._later(states[:half], generator), self._around(states[half:], generator)])

    def _later(self, states: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        most = np.minimum(self._horizons[states], self._farthest)
        return states + 1 + (generator.random(len(states)) * most).astype(int)

    def _around(self, states: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        if self._within_reach is None:
            return generator.integers(len(self._landmark), size=len(states))
        here = self._landmark[states]
        landmark = self._table[here, (generator.random(len(states)) * self._choices[here]).astype(int)]
        offset = (generator.random(len(states)) * self._sizes[landmark]).astype(int)
        return self._order[self._begins[landmark] + offset]


def usual_moves(samples: Samples, lag: int, count: int) -> np.ndarray:
    """By landmark, how far states move within `lag` steps, as a root mean square."""
    here = samples.followed(lag)
    here = here[:: max(1, len(here) // 200_000)]
    moved = np.sum((samples.coordinates[here + lag] - samples.coordinates[here]) ** 2, axis=1)
    landmark = samples.nearest.landmark[here]
    times = np.bincount(landmark, minlength=count)
    mean = np.bincount(landmark, moved, count) / np.maximum(times, 1)
    return np.sqrt(np.where(mean > 0, mean, max(float(moved.mean()), 1e-12)))


def train_network(
    samples: Samples,
    way_points: WayPoints,
    moves: np.ndarray,
    scale: np.ndarray,
    *,
    lag: int,
    temperature: float,
    hidden: tuple[int, ...],
    steps: int,
    batch: int,
    learning_rate: float,
    seed: int,
    discrete: bool,
    on_chunk: OnChunk | None = None,
) -> Network:
    """The trained controller.

    Args:
        samples: the data.
        way_points: what it learns to go to.
        moves: what `usual_moves` gives.
        scale: of each feature, how far a way point typically is.
        lag: over how many steps an action is judged.
        temperature: how much the better ones count.
        hidden: widths of the layers.
        steps: how many gradient steps.
        batch: states in each.
        learning_rate: of Adam at the start.
        seed: of everything random.
        discrete: whether actions are choices.
        on_chunk: called with (step, last step, metrics).
    """
    generator = np.random.default_rng([seed, 1])
    sizes = (2 * samples.features.shape[1], *hidden, samples.actions.shape[1])
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, steps))
    weights = _initial(sizes, jax.random.key(seed))
    state, update = optimiser.init(weights), _update(optimiser, discrete)
    here = _Balanced(samples.nearest.landmark, samples.followed(lag))
    began = time.monotonic()
    for step in range(1, steps + 1):
        chosen = here.draw(batch, generator)
        targets = way_points.draw(chosen, generator)
        inputs = network_inputs(samples.features[chosen], samples.features[targets], scale)
        weight = _weights(samples, chosen, targets, moves, lag, temperature)
        weights, state, loss = update(weights, state, inputs, samples.actions[chosen], weight)
        if step % STEPS_AT_ONCE == 0 or step == steps:
            if not np.isfinite(loss):
                raise NonFiniteError(f"the controller's loss is {loss} at step {step}; lower learning_rate")
            if on_chunk:
                speed = step / max(time.monotonic() - began, 1e-9)
                on_chunk(step, steps, {"loss": float(loss), "steps_per_second": speed})
    return Network([(np.asarray(w), np.asarray(b)) for w, b in weights], scale, discrete)


def came_nearer(
    samples: Samples, here: np.ndarray, targets: np.ndarray, moves: np.ndarray, lag: int
) -> np.ndarray:
    """How much nearer to its way point each state came within `lag` steps, in usual moves."""
    goal = samples.coordinates[targets]
    before = np.linalg.norm(samples.coordinates[here] - goal, axis=1)
    after = np.linalg.norm(samples.coordinates[here + lag] - goal, axis=1)
    return (before - after) / moves[samples.nearest.landmark[here]]


def _weights(
    samples: Samples, here: np.ndarray, targets: np.ndarray, moves: np.ndarray, lag: int, temperature: float
) -> np.ndarray:
    """The weight of each state."""
    exponents = temperature * came_nearer(samples, here, targets, moves, lag)
    weights = np.exp(np.maximum(exponents - exponents.max(), -MOST_WEIGHT))
    return (weights / weights.sum()).astype(np.float32)


def _initial(sizes: tuple[int, ...], key: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(key, (inputs, outputs)) * np.sqrt(2 / inputs), jnp.zeros(outputs))
        for key, inputs, outputs in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def _outputs(weights, rows):
    for weight, bias in weights[:-1]:
        rows = jax.nn.relu(rows @ weight + bias)
    weight, bias = weights[-1]
    return rows @ weight + bias


def _update(optimiser: optax.GradientTransformation, discrete: bool) -> Callable:
    def loss(weights, inputs, actions, weight):
        outputs = _outputs(weights, inputs)
        if discrete:
            each = optax.softmax_cross_entropy(outputs, actions)
        else:
            each = jnp.sum((outputs - actions) ** 2, axis=1)
        return jnp.sum(weight * each)

    @jax.jit
    def update(weights, state, inputs, actions, weight):
        value, gradient = jax.value_and_grad(loss)(weights, inputs, actions, weight)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(weights, updates), state, value

    return update
