"""φ learned while a policy changes, in the user's own training loop.

Each update adds the policy's newest episodes to the recent ones, and takes more gradient steps on pairs of
them. λ decreases over the updates, because a trained policy moves faster (the paper).
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import subspace_angles

from lapwing.compilation import kept_programs
from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, DatasetError, NonFiniteError
from lapwing.laplacian.choose import LEARNING_RATES
from lapwing.laplacian.encoders import EncoderSpec, data_bandwidth, default_encoder, fit_encoder
from lapwing.laplacian.learn import represent
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.sampling import annealed_lam, draw_pairs, surviving_share
from lapwing.laplacian.target import Target
from lapwing.laplacian.train import encoder_spec
from lapwing.settings.checks import checked, checked_hidden
from lapwing.settings.learn import EncoderName, ResolvedSettings
from lapwing.shaping.online import PhiLearner, PhiState

ONLINE = "online"
"""What the target of such a representation is called."""
MOST_PAIRS = 20_000
"""Eigenfunctions are fitted on at most this many pairs after each update."""
DRIFT_STATES = 2_000
"""On how many states drift is measured."""
PAIR_BYTES = 1 << 27
"""How much of the pairs is laid out for the network at a time; images are large."""


class Update(NamedTuple):
    """What an update did."""

    number: int
    """Counted from 1."""
    transitions: int
    """How many are kept to learn from."""
    lam: float
    """λ of this update."""
    surviving_share: float
    """The share of pairs that end within their episode at this λ."""
    loss: float
    """The mean over the steps of this update."""
    graph_drawing: float
    penalty: float
    drift: float
    """The largest principal angle, in radians, between the eigenfunctions now and after the last update, over
    states that are kept; π/2 after the first."""
    eigenvalues: np.ndarray


class OnlineLearner:
    """Learns φ from a stream of episodes.

    Args:
        dim: the number of eigenfunctions, including the constant.
        lam: λ of the first update.
        lam_final: λ at the end of annealing.
        anneal_updates: the number of updates over which λ is annealed; afterwards it is constant.
        steps: gradient steps per update.
        batch: pairs per step.
        capacity: the number of transitions in the buffer; the oldest episodes are dropped first, never the
            last one.
        n_states: the number of states, if observations are indices.
        beta: the weight of the orthonormality penalty.
        delta: the penalty's target for E[φ_i²].
        learning_rate: Adam's learning rate; None chooses by the encoder.
        encoder: the network, not `bumps`, which takes no gradient steps; None chooses by the observation.
        hidden: widths of its hidden layers.
        oversample: dimensions learned beyond `dim`.
        seed: the random seed.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> walks = np.clip(np.cumsum(rng.normal(0, 0.2, (20, 51, 2)), axis=1), -1, 1)
        >>> learner = OnlineLearner(dim=4, steps=20, hidden=(16,))
        >>> learner.update(walks).transitions
        1000
        >>> learner.update(walks[:10]).drift < 1.6
        True
        >>> learner.representation.eigenfunctions(np.zeros((3, 2))).shape
        (3, 4)
    """

    def __init__(
        self,
        dim: int = 10,
        *,
        lam: float = 0.99,
        lam_final: float = 0.95,
        anneal_updates: int = 100,
        steps: int = 200,
        batch: int = 256,
        capacity: int = 100_000,
        n_states: int | None = None,
        beta: float = 1.0,
        delta: float = 1.0,
        learning_rate: float | None = None,
        encoder: EncoderName | None = None,
        hidden: tuple[int, ...] = (128, 128),
        oversample: int = 4,
        seed: int = 0,
    ):
        self._anneal_updates = checked("anneal_updates", anneal_updates, whole=True, least=1)
        self._capacity = checked("capacity", capacity, whole=True, least=1)
        self._n_states = None if n_states is None else checked("n_states", n_states, whole=True, least=1)
        if encoder == "bumps":
            raise ConfigError("encoder must be one that learns by gradient steps, not bumps; leave it out")
        self._given = {"learning_rate": learning_rate, "encoder": encoder}
        # The fields of LearnSettings check themselves, and the representation is saved with them.
        fields: dict[str, Any] = {
            "dim": dim,
            "lam": lam,
            "lam_final": lam_final,
            "beta": beta,
            "delta": delta,
        }
        fields |= {"steps": steps, "stop": steps, "batch": batch, "oversample": oversample, "seed": seed}
        fields |= {"hidden": checked_hidden(hidden), "estimator": "pairwise", "schedule": "constant"}
        fields |= {name: value for name, value in self._given.items() if value is not None}
        self._settings = ResolvedSettings(**fields)
        self._episodes: list[np.ndarray] = []
        self._updates = 0
        self._model: _Model | None = None
        self._snapshot: Representation | None = None

    def __repr__(self) -> str:
        return f"OnlineLearner({self._updates} updates, {_transitions(self._episodes)} transitions kept)"

    @property
    def representation(self) -> Representation:
        """A snapshot of φ after the last update."""
        if self._snapshot is None:
            raise ConfigError("nothing has been learned yet; call update(episodes) first")
        return self._snapshot

    @kept_programs()
    def update(self, episodes: Iterable[ArrayLike]) -> Update:
        """Add these episodes, learn for `steps` steps, and return the losses, λ and drift.

        An update that raises an error changes nothing.

        Args:
            episodes: arrays of observations, one per episode, each with at least two.
        """
        new = Experience.from_episodes(episodes)
        self._check_alike(new)
        kept = self._kept_with(new)
        experience = self._experience(kept)
        target, lam = Target(ONLINE, experience), self._lam()
        model, losses = self._learn(self._model or self._untrained(target, experience), experience, lam)
        now = represent(target, model.settings, model.state.encoder, model.spec, most_pairs=MOST_PAIRS)
        moved = np.pi / 2
        if self._snapshot is not None:
            moved = drift(self._snapshot, now, target.some_observations(DRIFT_STATES, seed=1))
        self._model, self._snapshot, self._episodes = model, now, kept
        self._updates += 1
        return Update(
            number=self._updates,
            transitions=experience.n_transitions,
            lam=lam,
            surviving_share=surviving_share(experience, lam),
            drift=moved,
            eigenvalues=now.eigenvalues,
            **losses,
        )

    def _check_alike(self, new: Experience) -> None:
        found = new.observations.shape[1:], new.observations.dtype
        before = self._episodes[0] if self._episodes else new.observations
        if found != (before.shape[1:], before.dtype):
            raise DatasetError(
                f"episodes have observations of shape {found[0]} and {found[1]}, those before had "
                f"{before.shape[1:]} and {before.dtype}; give the same"
            )
        if new.table is None and self._n_states is not None:
            raise ConfigError(
                f"n_states={self._n_states} only works with observations that are indices, and these "
                f"have shape {found[0]}; leave it out"
            )
        if new.table is not None and (self._n_states is None or new.observations.max() >= self._n_states):
            raise ConfigError(
                f"observations are indices up to {new.observations.max()}; say with n_states how many states "
                f"there are, not {self._n_states}"
            )

    def _kept_with(self, new: Experience) -> list[np.ndarray]:
        episodes = [*self._episodes, *np.split(new.observations, new.ends[:-1] + 1)]
        onwards = np.cumsum([len(episode) - 1 for episode in reversed(episodes)])
        return episodes[-max(1, int(np.sum(onwards <= self._capacity))) :]

    def _experience(self, episodes: list[np.ndarray]) -> Experience:
        table = None if self._n_states is None else np.arange(self._n_states)
        return Experience(np.concatenate(episodes), np.array([len(one) for one in episodes]), table)

    def _untrained(self, target: Target, experience: Experience) -> "_Model":
        """A network whose input is fitted to the first episodes."""
        name = self._given["encoder"] or default_encoder(target.observation_shape)
        rate = self._given["learning_rate"] or LEARNING_RATES[name]
        settings = dataclasses.replace(self._settings, encoder=name, learning_rate=rate)
        spec = dataclasses.replace(encoder_spec(target, settings), n_states=self._n_states)
        seen = experience.observe(np.arange(len(experience.observations)))
        if name == "fourier":
            begins = experience.transitions(np.arange(experience.n_transitions))
            bandwidth = data_bandwidth(spec, seen, True, seen[begins + 1] - seen[begins])
            settings = dataclasses.replace(settings, fourier_bandwidth=bandwidth)
        key = jax.random.fold_in(jax.random.key(settings.seed), 1)
        encoder = fit_encoder(spec, seen, standardise=True, bandwidth=settings.fourier_bandwidth, key=key)
        return _Model(settings, spec, PhiLearner.of(settings).init(encoder))

    def _lam(self) -> float:
        assert self._settings.lam_final is not None
        share = min(1.0, self._updates / max(1, self._anneal_updates - 1))
        return annealed_lam(self._settings.lam, self._settings.lam_final, share)

    def _learn(
        self, model: "_Model", experience: Experience, lam: float
    ) -> tuple["_Model", dict[str, float]]:
        settings, state, sums = self._settings, model.state, dict[str, float]()
        rng = np.random.default_rng([settings.seed, self._updates])
        pairs = np.stack(draw_pairs(experience, lam, settings.steps * settings.batch, "discard", rng))
        at_once = max(1, PAIR_BYTES // experience.observe(pairs[0, : settings.batch]).nbytes)
        for begin in range(0, settings.steps, at_once):
            steps = min(at_once, settings.steps - begin)
            indices = pairs[:, begin * settings.batch : (begin + steps) * settings.batch]
            shape = (2, steps, settings.batch, *experience.observation_shape)
            u, v = jnp.asarray(experience.observe(indices).reshape(shape))
            state, metrics = _steps(PhiLearner.of(model.settings), state, u, v)
            for name, value in metrics.items():
                sums[name] = sums.get(name, 0.0) + float(value)
        if not np.isfinite(list(sums.values())).all():
            raise NonFiniteError(
                f"the loss is not finite in update {self._updates + 1}; lower learning_rate or beta, or look "
                "for outliers in the episodes"
            )
        means = {name.removeprefix("phi/"): total / settings.steps for name, total in sums.items()}
        return model._replace(state=state), means


class _Model(NamedTuple):
    """What an update replaces as a whole."""

    settings: ResolvedSettings
    spec: EncoderSpec
    state: PhiState


def _transitions(episodes: list[np.ndarray]) -> int:
    return sum(len(episode) - 1 for episode in episodes)


def drift(before: Representation, after: Representation, observations: np.ndarray) -> float:
    """The largest principal angle, in radians, between the spans of two representations' eigenfunctions.

    Args:
        before: one of them.
        after: the other.
        observations: the states that they are compared on.
    """
    spans = (np.asarray(rep.eigenfunctions(observations), np.float64) for rep in (before, after))
    return float(subspace_angles(*spans).max())


@eqx.filter_jit
def _steps(learner: PhiLearner, state: Any, u: Any, v: Any) -> tuple[Any, dict[str, Any]]:
    """Several steps of Adam, one on each batch of pairs; the metrics are their sums."""
    arrays, static = eqx.partition(state, eqx.is_array)

    def step(arrays: Any, pair: Any) -> tuple[Any, dict[str, Any]]:
        after, metrics = learner.update(eqx.combine(arrays, static), *pair)
        return eqx.filter(after, eqx.is_array), metrics

    arrays, metrics = jax.lax.scan(step, arrays, (u, v))
    return eqx.combine(arrays, static), {name: jnp.sum(values) for name, values in metrics.items()}
