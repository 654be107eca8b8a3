"""DDPG on bodies in an arena: B of them take a step, then the networks take B, in one compiled scan.

The replay lies in host memory, time by time, body by body. Episodes end by their time limit alone and begin
staggered, so that they do not all end at once. All that is random in round t comes from a generator seeded
with t: the same seed gives the same bits after any interruption.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from lapwing.agents import ddpg
from lapwing.agents.attempts import act_now, attempt
from lapwing.agents.rounds import Replay, Rounds, empty_replay
from lapwing.envs.arena import EPISODE_LENGTH
from lapwing.envs.simulator import Simulator
from lapwing.errors import NonFiniteError
from lapwing.laplacian.encoders import MLP, Encoder, EncoderSpec
from lapwing.laplacian.online import OnlinePhi, PhiState, sample_recent_pairs
from lapwing.laplacian.train import Checkpoints, OnChunk
from lapwing.settings.control import ResolvedControl
from lapwing.timing import stopwatch

Reward = Callable[[np.ndarray], np.ndarray]
"""The reward of arriving at each of these observations."""


class ControlState(NamedTuple):
    """All that changes from round to round."""

    learner: ddpg.Learner
    phi: PhiState | None
    """φ, if it is learned beside the agent."""
    replay: Replay
    rows: np.ndarray
    """The bodies, as the simulator knows them."""
    noise: np.ndarray
    success: np.ndarray
    """The share of starts from which the goal was reached, at each evaluation so far,"""
    distance: np.ndarray
    """and how long the way to the goal still was at the end, in the mean."""


class ControlTraining(NamedTuple):
    """What training gives."""

    actor: MLP
    spec: EncoderSpec
    evaluated_at: np.ndarray
    success: np.ndarray
    distance: np.ndarray
    seconds: float
    compile_seconds: float
    phi: Encoder | None
    seen: np.ndarray
    """The observations of the replay, body by body,"""
    lengths: np.ndarray
    """and how many belong to each episode."""


def train_in_arena(
    simulator: Simulator,
    settings: ResolvedControl,
    reward: Reward | OnlinePhi,
    *,
    checkpoints: Checkpoints | None = None,
    on_chunk: OnChunk | None = None,
) -> ControlTraining:
    """Train a DDPG agent.

    Args:
        simulator: of the arena.
        settings: of the agent, with a `critic_rate`.
        reward: of arriving at observations, by a fixed φ or none; or φ that is learned beside the agent.
        checkpoints: where to keep the state between evaluations, and to go on from.
        on_chunk: called with (step, last step, metrics) at the start and after each evaluation.
    """
    trainer = Trainer(simulator, settings, reward)
    state, step, seconds = _begun(trainer, checkpoints)
    if on_chunk:
        on_chunk(step, settings.steps, {})
    with stopwatch() as watch:
        trainer.compile(state)
    for number, end in enumerate(trainer.rounds.evaluations.tolist()):
        if end <= step:
            continue
        began = time.perf_counter()
        state, row = trainer.advanced(state, step, end)
        elapsed = time.perf_counter() - began
        seconds += elapsed
        state, judged = trainer.evaluated(state, number)
        row |= judged | {"step": end, "seconds": seconds, "steps_per_second": (end - step) / elapsed}
        step = end
        if checkpoints:
            checkpoints.record(row)
            checkpoints.keep(state, step, seconds, last=step == settings.steps)
        if on_chunk:
            on_chunk(step, settings.steps, row)
    return ControlTraining(
        state.learner.online.actor,
        trainer.specs[0],
        trainer.rounds.evaluations,
        state.success,
        state.distance,
        seconds,
        watch.compiling,
        state.phi and state.phi.encoder,
        np.swapaxes(state.replay.observations, 0, 1),
        trainer.rounds.episode_lengths(),
    )


def _begun(trainer: "Trainer", checkpoints: Checkpoints | None) -> tuple[ControlState, int, float]:
    """The state to go on from, how many of the agent's steps led to it, and the seconds that they took."""
    state = trainer.first_state()
    restored = checkpoints.restore(state) if checkpoints else None
    if restored is None:
        return trainer.with_random_steps(state), 0, 0.0
    state, step, seconds = restored
    return state._replace(replay=Replay(*map(np.array, state.replay))), step, seconds


class Trainer:
    """Rounds of the bodies and updates of the networks."""

    def __init__(self, simulator: Simulator, settings: ResolvedControl, reward: Reward | OnlinePhi):
        self.simulator, self.settings, self.rounds = simulator, settings, Rounds(settings)
        self.online = reward if isinstance(reward, OnlinePhi) else None
        self.reward = None if isinstance(reward, OnlinePhi) else reward
        self.optimisers = ddpg.Optimisers(optax.adam(settings.actor_rate), optax.adam(settings.critic_rate))
        self.specs = ddpg.network_specs(simulator.n_observations, simulator.n_actions, settings.hidden)
        self.key = jax.random.key(settings.seed)
        self.learn = eqx.filter_jit(
            partial(_learn, self.optimisers, settings.gamma, settings.target_rate, self.online)
        )
        self.pairs = jax.jit(self._pairs)

    def first_state(self) -> ControlState:
        """A state of the right shapes, with the bodies at their first starts."""
        settings, simulator = self.settings, self.simulator
        generator = np.random.default_rng([settings.seed, 0])
        bodies = settings.envs
        rows = simulator.at_rest(simulator.arena.random_positions(bodies, generator), generator)
        replay = empty_replay(self.rounds, simulator.n_observations, simulator.n_actions)
        empty = np.full(len(self.rounds.evaluations), np.nan)
        return ControlState(
            self._untrained(simulator.observe(rows)),
            self.online.learner.init(self.online.encoder) if self.online else None,
            replay,
            rows,
            np.zeros((bodies, simulator.n_actions)),
            empty,
            empty,
        )

    def _untrained(self, observations: np.ndarray) -> ddpg.Learner:
        key = jax.random.fold_in(self.key, 0)
        return ddpg.init_learner(self.specs, observations, self.optimisers, key=key)

    def with_random_steps(self, state: ControlState) -> ControlState:
        """The replay filled by random actions, and networks that standardise like what was seen."""
        for round_ in range(self.rounds.random):
            generator = self._generator(round_)
            actions = generator.uniform(-1, 1, (self.settings.envs, self.simulator.n_actions))
            state = self._moved(state, round_, actions, generator)
        seen = state.replay.observations[: self.rounds.random]
        return state._replace(learner=self._untrained(seen.reshape(-1, seen.shape[-1])))

    def compile(self, state: ControlState) -> None:
        """Compile what a round calls, so that no round pays for it."""
        act_now(state.learner.online.actor, state.replay.observations[0])
        batches = self.batches(state.replay, self.rounds.random, np.random.default_rng(0))
        pairs = None if self.online is None else self._seen_pairs(state.replay, self.rounds.random - 1)
        jax.block_until_ready(self.learn(state.learner, state.phi, batches, pairs))

    def advanced(self, state: ControlState, step: int, end: int) -> tuple[ControlState, dict[str, float]]:
        """The rounds from one of the agent's steps to another, and the metrics of the last update."""
        bodies, metrics = self.settings.envs, {}
        for round_ in range(self.rounds.random + step // bodies, self.rounds.random + end // bodies):
            state, metrics = self.round(state, round_)
        row = {name: float(value) for name, value in metrics.items()}
        if not all(map(np.isfinite, row.values())):
            raise _not_finite(end)
        return state, row

    def evaluated(self, state: ControlState, number: int) -> tuple[ControlState, dict[str, float]]:
        """The state with one more evaluation, which is given too."""
        attempts = attempt(self.simulator, state.learner.online.actor)
        success, distance = state.success.copy(), state.distance.copy()
        success[number], distance[number] = attempts.reached.mean(), attempts.left.mean()
        row = {"success": float(success[number]), "distance": float(distance[number])}
        return state._replace(success=success, distance=distance), row

    def round(self, state: ControlState, round_: int) -> tuple[ControlState, dict[str, Any]]:
        """A step of every body, and an update for each."""
        settings, generator = self.settings, self._generator(round_)
        seen = self.simulator.observe(state.rows)
        noise = ddpg.next_noise(state.noise, settings.noise_settle, settings.noise_spread, generator)
        actions = np.clip(np.asarray(act_now(state.learner.online.actor, seen)) + noise, -1, 1)
        if not np.isfinite(actions).all():
            raise _not_finite((round_ - self.rounds.random) * settings.envs)
        state = self._moved(state._replace(noise=noise), round_, actions, generator)
        batches = self.batches(state.replay, round_ + 1, generator)
        pairs = None if self.online is None else self._seen_pairs(state.replay, round_)
        learner, phi, metrics = self.learn(state.learner, state.phi, batches, pairs)
        return state._replace(learner=learner, phi=phi), metrics

    def _generator(self, round_: int) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, 1, round_])

    def _moved(
        self, state: ControlState, round_: int, actions: np.ndarray, generator: np.random.Generator
    ) -> ControlState:
        """The bodies a step further, what came of it in the replay, and new episodes begun."""
        simulator, bodies = self.simulator, np.arange(self.settings.envs)
        rows = simulator.step(state.rows, actions)
        after = simulator.observe(rows)
        values = (simulator.observe(state.rows), actions, self.reward(after) if self.reward else 0.0, after)
        for array, value in zip(state.replay, values, strict=True):
            array[round_] = value
        over = self.rounds.elapsed(round_ + 1, bodies) == 0
        noise = np.where(over[:, None], 0.0, state.noise)
        if over.any():
            starts = simulator.arena.random_positions(int(over.sum()), generator)
            rows[over] = simulator.at_rest(starts, generator)
        return state._replace(rows=rows, noise=noise)

    def batches(self, replay: Replay, filled: int, generator: np.random.Generator) -> ddpg.Batch:
        """As many batches as there are bodies."""
        settings = self.settings
        places = generator.integers(filled * settings.envs, size=(settings.envs, settings.batch))
        return ddpg.Batch(*(_flat(array)[places] for array in replay))

    def _seen_pairs(self, replay: Replay, round_: int) -> tuple[np.ndarray, np.ndarray]:
        """What φ sees of as many batches of pairs (u, v) as there are bodies."""
        assert self.online is not None
        place, later = map(np.asarray, self.pairs(round_))
        u, v = _flat(replay.observations)[place], _flat(replay.next_observations)[later]
        return self.online.sees(u), self.online.sees(v)

    def _pairs(self, round_) -> tuple[Array, Array]:
        """Places of s_t and of the transition that ends in s_{t+τ}, for the updates of a round."""
        assert self.online is not None
        learner, bodies = self.online.learner, self.settings.envs
        progress = (round_ - self.rounds.random) * bodies / self.settings.steps
        keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(self.key, 1), round_), bodies)

        def horizon(place):
            at, body = place // bodies, place % bodies
            return jnp.minimum(EPISODE_LENGTH - self.rounds.elapsed(at, body), round_ + 1 - at)

        place, tau = jax.vmap(
            lambda key: sample_recent_pairs(
                horizon, (round_ + 1) * bodies, learner.annealed_lam(progress), learner.batch, key=key
            )
        )(keys)
        return place, place + (tau - 1) * bodies


def _not_finite(step: int) -> NonFiniteError:
    return NonFiniteError(f"Q is not finite at step {step}; lower --critic-rate or --actor-rate")


def _flat(array: np.ndarray) -> np.ndarray:
    """The replay with rounds and bodies in one axis."""
    return array.reshape(-1, *array.shape[2:])


def _learn(
    optimisers: ddpg.Optimisers,
    gamma: float,
    target_rate: float,
    online: OnlinePhi | None,
    learner: ddpg.Learner,
    phi: PhiState | None,
    batches: ddpg.Batch,
    pairs: tuple[Any, Any] | None,
) -> tuple[ddpg.Learner, PhiState | None, dict[str, Any]]:
    """An update for each batch, and of φ for each batch of pairs; the metrics are those of the last."""
    _, static = eqx.partition((learner, phi), eqx.is_array)

    def one(arrays, given):
        learner, phi = eqx.combine(arrays, static)
        batch, pair = given
        metrics = {}
        if online is not None:
            phi, metrics = online.learner.update(phi, *pair)
            # φ changes with every step, so rewards are those of now, not of when the step was taken.
            batch = batch._replace(rewards=online.rewards(phi.encoder, batch.next_observations))
        learner, more = ddpg.update(learner, optimisers, batch, gamma, target_rate)
        return eqx.filter((learner, phi), eqx.is_array), metrics | more

    arrays = eqx.filter((learner, phi), eqx.is_array)
    arrays, metrics = jax.lax.scan(one, arrays, (batches, pairs))
    learner, phi = eqx.combine(arrays, static)
    return learner, phi, {name: values[-1] for name, values in metrics.items()}
