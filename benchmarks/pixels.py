"""The paper's recipe on images of FourRoom, by what its text leaves open: pixels, first weights, ε, the ½.

One seed, 1,000 transitions, 8,000 of the recipe's 100,000 steps: what learns shows by then.
Kernels of 4 with strides 2, 2, 1 do not fit 15 x 15 pixels without padding (15, 6, 2): SAME is no choice.
"""

import itertools
from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.rows import Row
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.encoders import ConvNet
from lapwing.laplacian.estimators import make_estimator
from lapwing.laplacian.evaluate import exact_spectrum, objective_gap
from lapwing.laplacian.objectives import find_objective
from lapwing.laplacian.representation import embed_batch
from lapwing.laplacian.target import Target, open_target
from lapwing.settings.learn import LearnSettings

TRANSITIONS, SEED = 1_000, 0
MEASURED_AT = (2_000, 4_000, 8_000)
Draw = Callable[[jax.Array, int, int, int], jax.Array]
"""First weights: key, outputs, inputs, and how many places each input goes to."""


def glorot(key: jax.Array, outputs: int, inputs: int, places: int) -> jax.Array:
    """Uniform, as TensorFlow 1 drew them; of a convolution the outputs count at each place of its kernel."""
    limit = np.sqrt(6 / (inputs + outputs * places))
    return jax.random.uniform(key, (outputs, inputs), minval=-limit, maxval=limit)


def he(key: jax.Array, outputs: int, inputs: int, places: int) -> jax.Array:
    """Normal, with variance 2 / inputs."""
    return jax.random.normal(key, (outputs, inputs)) * np.sqrt(2 / inputs)


class Reading(NamedTuple):
    """One way to read the recipe; pixels become (x - shift) / scale, x from 0 to 1."""

    scale: float | None = 1.0
    """None: the spread of the images without their mean."""
    shift: Literal["mean", "ground", "none"] = "mean"
    """What is taken off: the mean image; the ground's colour, where there is floor, so that it is black."""
    weights: Draw | None = None
    """With no bias at first; None: uniform within 1 / √inputs, the bias too."""
    epsilon: float = 1e-8
    beta: float = 1.0


READINGS = {
    "mean image off, over the spread": Reading(scale=None),
    "mean image off, 0 to 1 otherwise": Reading(),
    "0 to 1": Reading(shift="none"),
    "0 to 1, black ground": Reading(shift="ground"),
    "0 to 255": Reading(shift="none", scale=1 / 255),
    "mean image off, Glorot": Reading(weights=glorot),
    "mean image off, He": Reading(weights=he),
    "mean image off, ε = 1e-7": Reading(epsilon=1e-7),
    "mean image off, no ½ in the objective": Reading(beta=0.5),
}


def measure() -> list[Row]:
    """The gap of each reading at the last step, and on the way there."""
    rows = []
    for name, reading in READINGS.items():
        gaps = gaps_of(reading)
        way = ", ".join(f"{gap:.2f}" for gap in gaps)
        print(f"{name}: {way}", flush=True)
        rows.append(Row(f"pixels {name}: gap", gaps[-1], note=f"at {_steps()}: {way}"))
    return rows


def _steps() -> str:
    return ", ".join(f"{step // 1_000}" for step in MEASURED_AT) + " thousand steps"


def gaps_of(reading: Reading) -> list[float]:
    """The gap at each of the steps that are measured."""
    recipe = {"preset": "paper", "observation": "image", "transitions": TRANSITIONS}
    settings = LearnSettings.from_keywords(recipe | {"beta": reading.beta, "seed": SEED})
    target = open_target("FourRoom", settings)
    truth, key = target.truth(), jax.random.key(SEED)
    assert truth is not None
    assert target.states is not None
    spectrum = exact_spectrum(truth, 20)
    encoder = untrained(target, reading, jax.random.fold_in(key, 1))
    resolved = resolve(settings, target)
    estimator, objective = make_estimator(target, resolved, encoder), find_objective(resolved)
    adam = optax.inject_hyperparams(optax.adam)(settings.learning_rate, eps=reading.epsilon)
    state, gaps = adam.init(eqx.filter(encoder, eqx.is_inexact_array)), []
    for begin, end in itertools.pairwise((0, *MEASURED_AT)):
        bounds = (jnp.int32(begin), jnp.int32(end))
        stream = jax.random.fold_in(key, 2)
        encoder, state = _learned(estimator, objective, encoder, state, stream, *bounds)
        phi = embed_batch(encoder, target.states)
        gaps.append(objective_gap(spectrum, np.asarray(phi, np.float64), 20))
    return gaps


def untrained(target: Target, reading: Reading, key: jax.Array) -> ConvNet:
    """The paper's ConvNet with the pixels and first weights of the reading."""
    images = np.asarray(target.states, np.float64) / 255
    mean = images.mean(axis=0)
    shift = mean if reading.shift == "mean" else np.zeros_like(mean)
    if reading.shift == "ground":
        shift = np.median(images, axis=0) * (images.std(axis=0) > 0)  # only floor ever changes
    scale = np.sqrt(np.mean((images - mean) ** 2)) if reading.scale is None else reading.scale
    encoder = ConvNet(shift.astype(np.float32), np.asarray(scale, np.float32), 20, key=key)
    if reading.weights is None:
        return encoder
    for number, key_ in enumerate(jax.random.split(key, 4)):
        places = ConvNet.KERNEL**2 if number < 3 else 1

        def layer(net, number=number):
            return (*net.convolutions, net.output)[number]

        outputs, inputs = layer(encoder).weight.shape
        new = (reading.weights(key_, outputs, inputs, places), jnp.zeros(outputs))
        encoder = eqx.tree_at(lambda net, of=layer: (of(net).weight, of(net).bias), encoder, new)
    return encoder


@eqx.filter_jit
def _learned(estimator, objective, encoder, state, key, begin, end):
    """Steps of Adam; compiled once for all readings with the same β."""
    weights, rest = eqx.partition(encoder, eqx.is_inexact_array)
    adam = optax.inject_hyperparams(optax.adam)(1e-3)  # its state holds the step size and ε

    def step(t, carry):
        weights, state = carry

        def loss(weights):
            batch = estimator(eqx.combine(weights, rest), t, jax.random.fold_in(key, t))
            return objective.loss(objective.init(20), batch)[0]

        gradient = jax.grad(loss)(weights)
        updates, state = adam.update(gradient, state)
        return optax.apply_updates(weights, updates), state

    weights, state = jax.lax.fori_loop(begin, end, step, (weights, state))
    return eqx.combine(weights, rest), state
