"""Learning φ: compiled chunks of Adam steps on an objective, with checkpoints between them.

Every random number of step t comes from `fold_in(key, t)`, so the same seed gives the same bits whatever the
chunks, and after any interruption.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from lapwing.errors import NonFiniteError
from lapwing.laplacian import hosts
from lapwing.laplacian.chain import one_step_eigenvalues
from lapwing.laplacian.encoders import Encoder, EncoderSpec, embed, fit_encoder
from lapwing.laplacian.estimators import CHUNKS, DiskEstimator, make_estimator, sums_over_all
from lapwing.laplacian.loop import Checkpoints, Metrics, Progress, restored, run_chunks
from lapwing.laplacian.objectives import Objective, find_objective
from lapwing.laplacian.objectives.checks import checked_metrics
from lapwing.laplacian.objectives.drawing import distance_to_identity
from lapwing.laplacian.spread import METRICS, ShardEstimator, on_this_process, spread
from lapwing.laplacian.target import Target
from lapwing.progress import OnChunk, begun_and_done, report_begin
from lapwing.settings.learn import ResolvedSettings
from lapwing.timing import stopwatch


class TrainState(NamedTuple):
    """All that changes from step to step."""

    encoder: Encoder
    optimiser: optax.OptState
    objective: Any = ()
    """What the objective learns besides φ."""


@dataclass(frozen=True)
class Trained:
    """A trained encoder and what its training took."""

    encoder: Encoder
    spec: EncoderSpec
    learn_seconds: float
    compile_seconds: float
    prepare_seconds: float
    """What the estimator took to build: with exact, the eigenpairs of the chain."""
    eigenvalues: np.ndarray | None = None
    """One-step eigenvalues as the objective knows them, if it does."""


def train(
    target: Target,
    settings: ResolvedSettings,
    *,
    objective: Objective | None = None,
    checkpoints: Checkpoints | None = None,
    on_chunk: OnChunk | None = None,
    on_compiling: OnChunk | None = None,
) -> Trained:
    """Learn φ from `target`; `settings` have been through `choose.resolve`.

    Args:
        target: what to learn from.
        settings: with no value left open.
        objective: a user's own, where the settings name one.
        checkpoints: where to keep the state between chunks, and to resume from.
        on_chunk: called after each chunk with (step, last step, metrics).
        on_compiling: called with (0, 1, {}) before a step is compiled, and (1, 1, {}) after it.
    """
    key = jax.random.key(settings.seed)
    spec = encoder_spec(target, settings)
    encoder = untrained_encoder(target, settings)
    optimiser = make_optimiser(settings)
    chosen = find_objective(settings, objective)
    own_state = chosen.init(settings.dim + settings.oversample)
    state = TrainState(encoder, optimiser.init(eqx.filter(encoder, eqx.is_inexact_array)), own_state)
    progress = restored(checkpoints, state) or Progress(state)
    if target.shards is not None:
        progress = _of_first(progress)
    with begun_and_done(on_compiling):
        with stopwatch() as preparing:
            estimator = _estimator(target, settings, encoder)
        with stopwatch() as compiling:
            run_chunk = _compiled_chunk(
                estimator, chosen, optimiser, jax.random.fold_in(key, 2), progress.state
            )
            measure = _make_measure(target, settings)
            measure(progress.state.encoder)
    report_begin(on_chunk, settings.stop)
    chunk = max(1, settings.steps // CHUNKS)

    def advance(state: TrainState, step: int) -> tuple[TrainState, int, Metrics]:
        end = min(step + chunk, settings.stop)
        state, sums, bad_step = run_chunk(state, step, end)
        if bad_step >= 0:
            raise _not_finite(int(bad_step))
        return state, end, {name: float(value) / (end - step) for name, value in sums.items()}

    progress = run_chunks(
        progress,
        settings.stop,
        advance,
        lambda state, step: (state, measure(state.encoder)),
        _not_finite,
        checkpoints=checkpoints,
        on_chunk=on_chunk,
    )
    compile_seconds = preparing.compiling + compiling.compiling + compiling.working
    eigenvalues = _own_eigenvalues(chosen, progress.state, target, settings)
    return Trained(
        progress.state.encoder, spec, progress.seconds, compile_seconds, preparing.working, eigenvalues
    )


def _estimator(target: Target, settings: ResolvedSettings, encoder: Encoder):
    if target.shards is not None:
        return ShardEstimator.of(target.shards, settings)
    return make_estimator(target, settings, encoder)


def _of_first(progress: Progress) -> Progress:
    """The state that the first process has, from a checkpoint or not, in all."""
    step, seconds = hosts.told_by_first(lambda: [progress.step, progress.seconds])
    arrays, rest = eqx.partition(progress.state, eqx.is_array)
    return Progress(eqx.combine(hosts.as_in_first(arrays), rest), step, seconds)


def _own_eigenvalues(
    objective: Objective, state: TrainState, target: Target, settings: ResolvedSettings
) -> np.ndarray | None:
    """Of one step, from those that the objective knows of P_λ."""
    moment = _second_moment(state.encoder, *_measured_states(target, settings))
    found = objective.eigenvalues(state.objective, moment)
    if found is None:
        return None
    lam = settings.lam if settings.lam_final is None else settings.lam_final
    return one_step_eigenvalues(np.asarray(found, np.float64), lam)[: settings.dim]


def _not_finite(step: int) -> NonFiniteError:
    return NonFiniteError(
        f"the loss is not finite at step {step}; "
        "lower --learning-rate or --beta, or look for outliers in the data"
    )


def encoder_spec(target: Target, settings: ResolvedSettings) -> EncoderSpec:
    """The encoder that the settings ask for."""
    spec = EncoderSpec(
        name=settings.encoder,
        shape=target.observation_shape,
        dim=settings.dim + settings.oversample,
        n_states=target.n_states if settings.encoder == "linear" else None,
        hidden=settings.hidden if settings.encoder in ("mlp", "fourier") else (),
        n_features=settings.fourier_features,
    )
    return spec.shrunk_by(target.experience.shrinking if target.experience else None)


def untrained_encoder(target: Target, settings: ResolvedSettings, stream: int = 1) -> Encoder:
    """The encoder at step 0; `stream` numbers the random stream of the seed that it is drawn from."""
    return fit_encoder(
        encoder_spec(target, settings),
        target.typical_observations(settings.seed),
        standardise=settings.standardise,
        image_scale=settings.image_scale,
        bandwidth=settings.fourier_bandwidth,
        key=jax.random.fold_in(jax.random.key(settings.seed), stream),
    )


def make_optimiser(settings: ResolvedSettings) -> optax.GradientTransformation:
    """Adam with the schedule of the settings."""
    if settings.schedule == "cosine":
        return optax.adam(optax.cosine_decay_schedule(settings.learning_rate, settings.steps))
    return optax.adam(settings.learning_rate)


def _compiled_chunk(estimator, objective: Objective, optimiser, key, state: TrainState):
    """`run(state, begin, end) -> (state, sums of the metrics, first step that is not finite or -1)`."""
    _, static = eqx.partition(state, eqx.is_array)
    data, estimator_static = eqx.partition(estimator, eqx.is_array)
    sharded = isinstance(estimator, ShardEstimator)
    if sharded:
        names = METRICS
    else:
        batch = eqx.filter_eval_shape(estimator, state.encoder, jnp.int32(0), key)
        names = checked_metrics(objective, state.objective, batch)

    def gradient_step(estimator, step, carry):
        arrays, sums, bad_step = carry
        state = eqx.combine(arrays, static)

        def loss(encoder):
            batch = estimator(encoder, step, jax.random.fold_in(key, step))
            value, metrics = objective.loss(state.objective, batch)
            return value, (metrics, batch)

        if sharded:
            metrics, gradient = estimator.value_and_gradient(state.encoder, step)
            value, own_state = metrics["loss"], state.objective
        else:
            (value, (metrics, batch)), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(state.encoder)
            own_state = objective.update(state.objective, batch)
        updates, optimiser_state = optimiser.update(gradient, state.optimiser)
        state = TrainState(eqx.apply_updates(state.encoder, updates), optimiser_state, own_state)
        sums = {name: sums[name] + metrics[name] for name in sums}
        bad_step = jnp.where((bad_step < 0) & ~jnp.isfinite(value), step, bad_step)
        return eqx.filter(state, eqx.is_array), sums, bad_step

    def run(data, arrays, begin, end):
        sums = dict.fromkeys(names, jnp.zeros(()))
        step = partial(gradient_step, eqx.combine(data, estimator_static))
        return jax.lax.fori_loop(begin, end, step, (arrays, sums, jnp.int32(-1)))

    arrays = eqx.filter(state, eqx.is_array)
    spread_run = spread(run, data) if sharded else run
    compiled = jax.jit(spread_run).lower(data, arrays, jnp.int32(0), jnp.int32(0)).compile()

    def run_chunk(state: TrainState, begin: int, end: int):
        arrays, totals, bad_step = eqx.filter(state, eqx.is_array), {}, -1
        reads = isinstance(estimator, DiskEstimator | ShardEstimator)
        most = estimator.most_steps if reads else end - begin
        for first in range(begin, end, most):
            last = min(first + most, end)
            current = estimator.at(first, last) if reads else estimator
            data = eqx.filter(current, eqx.is_array)
            arrays, sums, bad_step = compiled(data, arrays, jnp.int32(first), jnp.int32(last))
            totals = jax.tree.map(jnp.add, totals, sums) if totals else sums
            if sharded:
                totals, bad_step = on_this_process((totals, bad_step))
                arrays = hosts.as_in_first(on_this_process(arrays))
            if bad_step >= 0:
                break
        return eqx.combine(arrays, static), totals, bad_step

    return run_chunk


def _make_measure(target: Target, settings: ResolvedSettings):
    """`measure(encoder)`: how orthonormal φ is, and how many dimensions have not vanished."""
    batch, rho = _measured_states(target, settings)

    def measure(encoder) -> dict[str, float | int]:
        moment = np.asarray(_second_moment(encoder, batch, rho), np.float64) / settings.delta
        if not np.isfinite(moment).all():
            return {"orthonormality_error": math.nan, "surviving_dimensions": 0}
        return {
            "orthonormality_error": distance_to_identity(moment),
            "surviving_dimensions": int(np.sum(np.linalg.eigvalsh(moment) > 0.01)),
        }

    return measure


def _measured_states(target: Target, settings: ResolvedSettings) -> tuple[jax.Array, jax.Array]:
    """Observations that E[φφᵀ] is measured on, and the share of each."""
    if settings.estimator == "exact" and sums_over_all(target, settings):
        observations, weights = target.states, target.one_step.rho
    else:
        observations = target.some_observations(1_024, settings.seed)
        weights = np.full(len(observations), 1 / len(observations))
    return jnp.asarray(observations), jnp.asarray(weights, jnp.float32)


@eqx.filter_jit
def _second_moment(encoder: Encoder, batch, rho):
    """E[φφᵀ]; compiled once for each shape, where a closure would stay in JAX's cache after every call."""
    phi = jax.vmap(embed, in_axes=(None, 0))(encoder, batch)
    return phi.T @ (rho[:, None] * phi)
