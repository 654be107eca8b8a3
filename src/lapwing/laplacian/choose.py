"""Choosing the settings that are not given, from the data."""

import dataclasses
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lapwing.errors import ConfigError
from lapwing.laplacian import basis_search, closed_form
from lapwing.laplacian.closed_form import Trial
from lapwing.laplacian.early_stopping import held_out_stop, is_scarce
from lapwing.laplacian.encoders import data_bandwidth, default_encoder, embed
from lapwing.laplacian.estimators import eigenpairs_known
from lapwing.laplacian.extension import extension_of
from lapwing.laplacian.objectives import check_objective
from lapwing.laplacian.representation import embed_batch
from lapwing.laplacian.ritz import moments_of_experience, rayleigh_ritz
from lapwing.laplacian.shortfalls import warn_of_shortfalls
from lapwing.laplacian.spread import check_spread
from lapwing.laplacian.target import Target, check_dim
from lapwing.laplacian.train import encoder_spec, train, untrained_encoder
from lapwing.progress import OnChunk
from lapwing.settings.learn import EncoderName, Estimator, LearnSettings, ResolvedSettings
from lapwing.storage import memory_bytes

LARGEST_LAM = 0.9999
SCARCE_BANDWIDTH = 1 / 3
"""What remains of the Fourier bandwidth where data is scarce: smoother functions need fewer visits."""
GRADIENT_SETTINGS = (
    "steps",
    "stop",
    "batch",
    "learning_rate",
    "schedule",
    "hidden",
    "fourier_features",
    "fourier_bandwidth",
    "lam_final",
    "past_end",
    "standardise",
    "image_scale",
    "objective",
)
"""Settings that closed-form has no use for."""
STAGE_SETTINGS = tuple(field.name for field in dataclasses.fields(closed_form.StageChoice))
"""Settings that nothing else has a use for."""
EXACT_STEPS: dict[EncoderName, int] = {"linear": 2_000, "conv": 4_000}
"""Of `exact`, where they do not depend on how many states there are."""
STEPS_FOR = 20
"""For so many dimensions the steps suffice; they grow with more."""
ALLO_BARRIER = 2.0
"""What the barrier of ALLO begins with in its authors' settings."""
LEARNING_RATES: dict[EncoderName, float] = {"linear": 0.01, "mlp": 0.002, "fourier": 0.002, "conv": 0.001}


def resolve(settings: LearnSettings, target: Target, *, on_trial: OnChunk | None = None) -> ResolvedSettings:
    """The same settings with every None given a value; `on_trial` sees the progress of trials, if any."""
    return choose(settings, target, on_trial=on_trial)[0]


def choose(
    settings: LearnSettings, target: Target, *, on_trial: OnChunk | None = None
) -> tuple[ResolvedSettings, list[Trial]]:
    """The resolved settings, and what was tried on validation episodes: the chosen one first."""
    resolved = by_rules(settings, target)
    if resolved.estimator == "closed-form" and target.extends_eigenvectors:
        return _by_states_left_out(settings, resolved, target, on_trial)
    if resolved.estimator == "closed-form":
        return _by_trials(settings, resolved, target, on_trial)
    if target.states is None and settings.lam is not None:
        eigenvalues = np.zeros(resolved.dim)  # nothing is known of them, and nothing depends on them
    else:
        eigenvalues = _estimated_eigenvalues(resolved, target)
    if settings.lam is None:
        lam = _lam(eigenvalues[resolved.dim - 1], resolved, target)
        resolved = dataclasses.replace(resolved, lam=lam)
    warn_of_shortfalls(resolved, target, eigenvalues)
    if _may_over_fit(settings, resolved, target):
        resolved = dataclasses.replace(resolved, stop=held_out_stop(target, resolved, on_trial))
    return resolved, []


def by_rules(settings: LearnSettings, target: Target) -> ResolvedSettings:
    """What needs no look at the spectrum; λ and what trials decide are left as they are."""
    states = target.n_states
    dim = settings.dim if settings.dim is not None else min(20, states or 20)
    if states is not None:
        check_dim(dim, states)
    paper = settings.preset != "default"
    oversample = settings.oversample if settings.oversample is not None else max(4, dim // 4)
    needed = 0 if states is None else bytes_of_eigenpairs(states, dim + oversample)
    estimator = settings.estimator or default_estimator(settings, target, needed)
    check_objective(settings, estimator)
    _check_estimator(estimator, settings, target, needed)
    encoder = settings.encoder or default_encoder(target.observation_shape)
    if estimator == "closed-form":
        encoder = "bumps"
    if paper and settings.encoder is None and encoder == "fourier":
        encoder = "mlp"
    steps = settings.steps or _steps(estimator, encoder, states, dim)
    if settings.stop and settings.stop > steps:
        raise ConfigError(f"stop must be at most {steps:,} steps, not {settings.stop:,}; raise --steps")
    standardise = settings.standardise
    if standardise is None:
        standardise = not paper or encoder == "conv"
    image_scale = settings.image_scale
    if image_scale is not None and not (encoder == "conv" and standardise):
        raise ConfigError(
            f"image_scale={image_scale:g} is of images that the encoder conv standardises; leave it out"
        )
    if image_scale is None and paper and encoder == "conv" and standardise and estimator == "sampled":
        image_scale = 1.0  # divided by their spread, 0.04 in FourRoom, the loss of small batches jumps
    # Half as wide where pairs are drawn from continuous states: nearly as good there, in half the time.
    hidden = (256, 256) if states is not None else (128, 128)
    chosen = {
        "dim": dim,
        "estimator": estimator,
        "oversample": min(oversample, states - dim) if states is not None else oversample,
        "steps": steps,
        "stop": settings.stop or steps,
        "standardise": standardise,
        "image_scale": image_scale,
        "encoder": encoder,
        "hidden": settings.hidden if settings.hidden is not None else hidden,
        "learning_rate": settings.learning_rate or LEARNING_RATES.get(encoder, 1.0),
        "beta": settings.beta or _beta(settings, dim),
        "lam": settings.lam or 0.0,
        "held_out": target.held_out,
    }
    resolved = ResolvedSettings(**(vars(settings) | chosen))
    encoder_spec(target, resolved)  # refuses an encoder that does not take such observations
    if target.shards is not None:
        check_spread(resolved, target.shards.count)
    if encoder == "fourier" and settings.fourier_bandwidth is None:
        resolved = dataclasses.replace(resolved, fourier_bandwidth=_bandwidth(resolved, target))
    return resolved


def _by_trials(
    settings: LearnSettings, resolved: ResolvedSettings, target: Target, on_trial: OnChunk | None
) -> tuple[ResolvedSettings, list[Trial]]:
    """The bumps that serve validation episodes best; or a network, if it does so better."""
    fixed = {name: getattr(settings, name) for name in _given(settings, STAGE_SETTINGS)}
    learned_from = target.learned_from
    tried = basis_search.choose(
        learned_from,
        resolved.dim,
        resolved.seed,
        settings.trials,
        fixed=fixed,
        on_trial=on_trial,
        study=target.study(resolved.dim, resolved.seed),
    )
    networks = [] if fixed else _network_settings(settings, target)
    for network in networks:
        trial = _network_trial(network, target)
        tried.append(trial)
        if on_trial:
            on_trial(len(tried), settings.trials, {"score": trial.score})
        if trial.score < closed_form.BETTER * tried[0].score_of(resolved.dim):
            better = [trial, *(other for other in tried if other is not trial)]
            return choose(network, target)[0], better
    if on_trial:
        on_trial(len(tried), len(tried), {})  # where more would not help, they are fewer than was said
    best = tried[0]
    values = np.pad(best.eigenvalues, (0, max(0, resolved.dim - len(best.eigenvalues))), mode="edge")
    return _with_choice(settings, resolved, target, best, values), tried


def _by_states_left_out(
    settings: LearnSettings, resolved: ResolvedSettings, target: Target, on_trial: OnChunk | None
) -> tuple[ResolvedSettings, list[Trial]]:
    """The bumps that follow the eigenvectors of a chain best at states that they were not fitted to."""
    if given := _given(settings, STAGE_SETTINGS):
        raise ConfigError(
            f"{given[0]}={getattr(settings, given[0])!r} is of bumps that are fitted to episodes, and these "
            "states are enumerated: bumps extend their exact eigenvectors; leave it out"
        )
    columns = resolved.dim + resolved.oversample
    tried = extension_of(target, columns, resolved.seed).choose(on_trial)
    values, _ = target.eigenpairs(columns)
    return _with_choice(settings, resolved, target, tried[0], values), tried


def _with_choice(
    settings: LearnSettings, resolved: ResolvedSettings, target: Target, best: Trial, values: np.ndarray
) -> ResolvedSettings:
    """The settings with the chosen stages, and λ by the eigenvalues."""
    lam = settings.lam if settings.lam is not None else _lam(values[resolved.dim - 1], resolved, target)
    chosen = {name: tuple(getattr(stage, name) for stage in best.choice) for name in STAGE_SETTINGS}
    return dataclasses.replace(resolved, lam=lam, **chosen)


def _network_settings(settings: LearnSettings, target: Target) -> list[LearnSettings]:
    """The networks that are tried after the bumps, as far as the number of trials allows."""
    names: tuple[EncoderName, ...] = ("mlp", "fourier") if len(target.observation_shape) == 1 else ("conv",)
    count = max(0, settings.trials - basis_search.MOST_TRIALS)
    return [dataclasses.replace(settings, estimator="pairwise", encoder=name) for name in names[:count]]


def _network_trial(settings: LearnSettings, target: Target) -> Trial:
    """A network, trained on what bumps are fitted on and scored as they are."""
    fit, validation = target.learned_from.split(closed_form.VALIDATION)
    part = dataclasses.replace(target, experience=fit, held_out=0.0, shards=None)
    resolved = choose(settings, part)[0]
    embed_all = partial(embed_batch, train(part, resolved).encoder)
    most = closed_form.SOME_PAIRS
    fitted, measured = (moments_of_experience(one, embed_all, most=most) for one in (fit, validation))
    ritz = rayleigh_ritz(*fitted, resolved.dim)
    score, _ = closed_form.held_out_score(ritz.coefficients, measured, resolved.dim)
    return Trial(f"{resolved.encoder} network, {resolved.steps:,} steps of pairwise", score)


def _may_over_fit(settings: LearnSettings, resolved: ResolvedSettings, target: Target) -> bool:
    """Whether the steps are ours to choose, the data is scarce, and the encoder can do better than it."""
    if settings.steps is not None or settings.stop is not None or not is_scarce(target):
        return False
    if settings.objective != "graph-drawing":  # when to stop was studied for it alone
        return False
    assert target.experience is not None
    several = target.experience.n_episodes > 1
    return several and resolved.estimator == "exact" and resolved.encoder != "linear"


def _bandwidth(settings: ResolvedSettings, target: Target) -> float:
    seen, spec = target.typical_observations(settings.seed), encoder_spec(target, settings)
    steps = None
    if target.states is None:
        here, there = target.some_transitions(10_000, settings.seed)
        steps = there - here
    bandwidth = data_bandwidth(spec, seen, settings.standardise, steps)
    return bandwidth * SCARCE_BANDWIDTH if is_scarce(target) else bandwidth


def _beta(settings: LearnSettings, dim: int) -> float:
    if settings.objective == "allo":
        return ALLO_BARRIER
    return dim / 20 if settings.preset != "default" else 1.0


def _steps(estimator: str, encoder: EncoderName, states: int | None, dim: int) -> int:
    """Enough for the loss to be flat at the end, on every maze tried; more dimensions take longer."""
    if estimator == "closed-form":
        return 1
    if estimator != "exact":
        return 6_000
    if encoder in EXACT_STEPS:
        return EXACT_STEPS[encoder]
    return round((1_000 if (states or 0) <= 500 else 1_500) * max(1.0, dim / STEPS_FOR))


def bytes_of_eigenpairs(states: int, dimensions: int) -> int:
    """About what `exact` holds while it finds eigenpairs: Lanczos vectors, twice as many, and two copies."""
    return 5 * 8 * states * eigenpairs_known(states, dimensions)


def default_estimator(settings: LearnSettings, target: Target, needed: int) -> Estimator:
    """No gradient steps for images and continuous vectors of data, unless a setting asks for them.

    Args:
        settings: which may ask.
        target: what is learned from.
        needed: the bytes that `exact` takes.
    """
    if settings.encoder == "bumps" or _given(settings, STAGE_SETTINGS):
        return "closed-form"
    plain = settings.preset == "default" and settings.encoder is None and settings.rotate
    plain = plain and not _given(settings, GRADIENT_SETTINGS)
    images = len(target.observation_shape) == 3 and target.experience is not None and target.world is None
    if plain and images:
        return "closed-form"
    if target.states is not None:
        return "exact" if needed <= memory_bytes() else "pairwise"
    return "closed-form" if plain and len(target.observation_shape) == 1 else "pairwise"


def _given(settings: LearnSettings, names: Sequence[str]) -> list[str]:
    """Which of these settings are not left at their defaults."""
    return [name for name in names if getattr(settings, name) != getattr(LearnSettings, name)]


def _check_estimator(estimator: str, settings: LearnSettings, target: Target, needed: int) -> None:
    if (estimator == "closed-form") != (settings.encoder == "bumps") and settings.encoder is not None:
        raise ConfigError(
            f"encoder bumps and estimator closed-form go together, not {settings.encoder} with {estimator}; "
            "leave one of them out"
        )
    if estimator == "closed-form":
        _check_closed_form(settings, target)
        return
    stages = _given(settings, STAGE_SETTINGS)
    if stages:
        raise ConfigError(
            f"{stages[0]}={getattr(settings, stages[0])!r} is of bumps, and estimator {estimator} has none; "
            "leave one of them out"
        )
    if estimator == "exact":
        if target.n_states is None:
            raise ConfigError(
                "estimator exact needs enumerated states, and these observations are continuous; "
                "use --estimator pairwise"
            )
        if needed > memory_bytes():
            raise ConfigError(
                f"estimator exact needs eigenfunctions of {target.n_states:,} states, which take "
                f"{needed / 2**30:,.1f} GiB of memory, and there are {memory_bytes() / 2**30:,.1f}; "
                "lower --dim, or use --estimator pairwise"
            )
        if settings.lam_final is not None:
            raise ConfigError("lam_final only works with sampled or pairwise; exact keeps one lam")
        if settings.past_end != "discard":
            raise ConfigError(
                "past_end only works with sampled or pairwise; exact knows no end of an episode"
            )
    elif target.experience is None:
        raise ConfigError(
            f"true_chain only works with estimator exact, not {estimator} (there is no experience to "
            "draw from); leave one of them out"
        )


def _check_closed_form(settings: LearnSettings, target: Target) -> None:
    given = _given(settings, GRADIENT_SETTINGS)
    if given:
        raise ConfigError(
            f"{given[0]}={getattr(settings, given[0])!r} is of gradient descent, and estimator closed-form "
            "takes no steps; leave one of them out"
        )
    if target.graph is None and (target.experience is None or target.observation_shape == ()):
        raise ConfigError("estimator closed-form needs episodes of vectors or images; use --estimator exact")


def _lam(eigenvalue: float, settings: ResolvedSettings, target: Target) -> float:
    """1 - λ near the d-th one-step eigenvalue: λ decides how well the eigenfunctions separate.

    Where pairs are drawn within episodes, no more than half of an episode ahead in the mean.
    """
    lam = 1 - eigenvalue
    if settings.estimator in ("sampled", "pairwise") and target.experience is not None:
        lam = min(lam, 1 - 2 / max(2.0, float(np.mean(target.learned_from.lengths)) - 1))
    return float(round(min(max(lam, 0.0), LARGEST_LAM), 4))


def _estimated_eigenvalues(settings: ResolvedSettings, target: Target) -> np.ndarray:
    """One-step eigenvalues: of the chain where states are enumerated, else a quick estimate from above."""
    if target.states is not None:
        values, _ = target.eigenpairs(settings.dim)
    else:
        encoder = untrained_encoder(target, settings)
        stage = encoder.features if settings.encoder == "fourier" else lambda x: embed(encoder, x)
        functions = jax.jit(jax.vmap(stage))
        moments = moments_of_experience(
            target.learned_from, lambda batch: np.asarray(functions(jnp.asarray(batch))), most=20_000
        )
        values = rayleigh_ritz(*moments, settings.dim).eigenvalues
    return np.pad(values, (0, settings.dim - len(values)), mode="edge")
