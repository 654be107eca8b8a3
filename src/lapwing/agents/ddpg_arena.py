"""DDPG on robots in an arena: B robots take a step (one vector step), then the networks take B updates.

The updates are one compiled scan. The replay buffer is in host memory, of shape (vector steps, robots).
Episodes end only by their time limit, and start staggered, so that they do not all end at once. The random
numbers of vector step t come from a generator seeded with t: the same seed gives the same bits after any
interruption.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from lapwing.agents.ddpg import (
    Learner,
    Optimisers,
    Transitions,
    act_now,
    init_learner,
    network_specs,
    next_noise,
    smoothing_noise,
    update,
)
from lapwing.agents.evaluation import evaluate_policy, evaluation_steps
from lapwing.envs.arena import EPISODE_LENGTH
from lapwing.envs.simulator import Simulator
from lapwing.errors import NonFiniteError
from lapwing.laplacian.encoders import MLP, Encoder, EncoderSpec
from lapwing.laplacian.loop import Checkpoints, Metrics, Progress, restored, run_chunks
from lapwing.laplacian.sampling import sample_recent_pairs
from lapwing.progress import OnChunk
from lapwing.settings.agents import ResolvedControl
from lapwing.settings.checks import check_size
from lapwing.shaping.online import OnlinePhi, PhiState
from lapwing.timing import stopwatch

Reward = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""The reward of each step from the first observations to the second."""


@dataclass(frozen=True)
class Schedule:
    """How steps are counted: a vector step is one step of every body."""

    settings: ResolvedControl

    @property
    def random(self) -> int:
        """Vector steps of random actions."""
        return self.settings.random_steps // self.settings.envs

    @property
    def all(self) -> int:
        """Vector steps in all."""
        return self.random + self.settings.steps // self.settings.envs

    @cached_property
    def evaluations(self) -> np.ndarray:
        """After how many of the agent's steps it is evaluated."""
        return evaluation_steps(self.settings.steps, self.settings.evaluate_every)

    def elapsed(self, t, body):
        """How far each body is into its episode when vector step t begins."""
        return (t + body * EPISODE_LENGTH // self.settings.envs) % EPISODE_LENGTH

    def episode_lengths(self) -> np.ndarray:
        """How many observations each episode has, body by body."""
        times, lengths = np.arange(self.all), []
        for body in range(self.settings.envs):
            begins = np.flatnonzero((self.elapsed(times, body) == 0) | (times == 0))
            lengths.append(np.diff(np.append(begins, self.all)))
        return np.concatenate(lengths)


def empty_replay(schedule: Schedule, n_observations: int, n_actions: int) -> Transitions:
    """Room for every step of a training, (vector steps, bodies, …); more than there is memory is refused."""
    shape = (schedule.all, schedule.settings.envs)
    check_size("steps", 4 * math.prod(shape) * (2 * n_observations + n_actions + 1))
    widths = ((n_observations,), (n_actions,), (), (n_observations,))
    return Transitions(*(np.zeros(shape + width, np.float32) for width in widths))


class ControlState(NamedTuple):
    """All that changes from step to step."""

    learner: Learner
    phi: PhiState | None
    """φ, if it is learned online."""
    replay: Transitions
    rows: np.ndarray
    """The bodies, as the simulator knows them."""
    noise: np.ndarray
    success: np.ndarray
    """The share of starts from which the goal was reached, at each evaluation so far,"""
    distance: np.ndarray
    """and the mean length of the shortest path to the goal at the end."""


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
        reward: of steps between observations, by a fixed φ or none; or φ that is learned online.
        checkpoints: where to keep the state between evaluations, and to resume from.
        on_chunk: called with (step, last step, metrics) at the start and after each evaluation.
    """
    trainer = Trainer(simulator, settings, reward)
    progress = trainer.restored(checkpoints) or Progress(trainer.with_random_steps(trainer.first_state()))
    if on_chunk:
        on_chunk(progress.step, settings.steps, {})
    with stopwatch() as watch:
        trainer.compile(progress.state)
    state, _, seconds = run_chunks(
        progress,
        settings.steps,
        trainer.advance,
        trainer.evaluate,
        _not_finite,
        checkpoints=checkpoints,
        on_chunk=on_chunk,
    )
    return ControlTraining(
        state.learner.online.actor,
        trainer.specs[0],
        trainer.schedule.evaluations,
        state.success,
        state.distance,
        seconds,
        watch.compiling,
        state.phi and state.phi.encoder,
        np.swapaxes(state.replay.observations, 0, 1),
        trainer.schedule.episode_lengths(),
    )


class Trainer:
    """Steps of the bodies and updates of the networks."""

    def __init__(self, simulator: Simulator, settings: ResolvedControl, reward: Reward | OnlinePhi):
        self.simulator, self.settings, self.schedule = simulator, settings, Schedule(settings)
        self.online = reward if isinstance(reward, OnlinePhi) else None
        self.reward = None if isinstance(reward, OnlinePhi) else reward
        self.optimisers = Optimisers(optax.adam(settings.actor_rate), optax.adam(settings.critic_rate))
        self.specs = network_specs(simulator.n_observations, simulator.n_actions, settings.hidden)
        self.key = jax.random.key(settings.seed)
        self.learn = eqx.filter_jit(
            partial(
                _learn,
                self.optimisers,
                settings.gamma,
                settings.target_rate,
                settings.action_penalty,
                self.online,
            )
        )
        self.pairs = jax.jit(self._pairs)

    def restored(self, checkpoints: Checkpoints | None) -> Progress | None:
        """The progress of an interrupted training."""
        found = restored(checkpoints, self.first_state())
        if found is None:
            return None
        replay = Transitions(*map(np.array, found.state.replay))  # what was read cannot be written to
        return found._replace(state=found.state._replace(replay=replay))

    def first_state(self) -> ControlState:
        """A state of the right shapes, with the bodies at their first starts."""
        settings, simulator = self.settings, self.simulator
        generator = np.random.default_rng([settings.seed, 0])
        bodies = settings.envs
        rows = simulator.at_rest(simulator.arena.random_positions(bodies, generator), generator)
        replay = empty_replay(self.schedule, simulator.n_observations, simulator.n_actions)
        empty = np.full(len(self.schedule.evaluations), np.nan)
        return ControlState(
            self._untrained(simulator.observe(rows)),
            self.online.learner.init(self.online.encoder) if self.online else None,
            replay,
            rows,
            np.zeros((bodies, simulator.n_actions)),
            empty,
            empty,
        )

    def _untrained(self, observations: np.ndarray) -> Learner:
        key = jax.random.fold_in(self.key, 0)
        n_critics = 2 if self.settings.twin_critics else 1
        return init_learner(self.specs, observations, self.optimisers, n_critics=n_critics, key=key)

    def with_random_steps(self, state: ControlState) -> ControlState:
        """The replay filled by random actions, and networks that standardise like what was seen."""
        for t in range(self.schedule.random):
            generator = self._generator(t)
            actions = generator.uniform(-1, 1, (self.settings.envs, self.simulator.n_actions))
            state = self._moved(state, t, actions, generator)
        seen = state.replay.observations[: self.schedule.random]
        return state._replace(learner=self._untrained(seen.reshape(-1, seen.shape[-1])))

    def compile(self, state: ControlState) -> None:
        """Compile what a vector step calls, so that none pays for it."""
        act_now(state.learner.online.actor, state.replay.observations[0])
        generator = np.random.default_rng(0)
        batches = self.batches(state.replay, self.schedule.random, generator)
        smoothing = self.smoothing(generator)
        pairs = None if self.online is None else self._seen_pairs(state.replay, self.schedule.random - 1)
        jax.block_until_ready(self.learn(state.learner, state.phi, batches, smoothing, pairs))

    def advance(self, state: ControlState, step: int) -> tuple[ControlState, int, Metrics]:
        """The state at the next evaluation, its step, and the metrics of the last update."""
        evaluations, bodies, metrics = self.schedule.evaluations, self.settings.envs, {}
        end = int(evaluations[np.searchsorted(evaluations, step, side="right")])
        for t in range(self.schedule.random + step // bodies, self.schedule.random + end // bodies):
            state, metrics = self.vector_step(state, t)
        if not (self.online and self.settings.has_relative_values):  # whose gains change with φ
            metrics |= {"critic/q_bound": self._q_bound(state.replay, end)}
        return state, end, {name: float(value) for name, value in metrics.items()}

    def _q_bound(self, replay: Transitions, step: int) -> float:
        """What no return exceeds: the highest reward so far for ever; 0 for φ that is learned online."""
        filled = self.schedule.random + step // self.settings.envs
        highest = 0.0 if self.online else float(replay.rewards[:filled].max())
        return highest / (1 - self.settings.gamma)

    def evaluate(self, state: ControlState, step: int) -> tuple[ControlState, Metrics]:
        """The state with one more evaluation, which is returned too."""
        found = evaluate_policy(self.simulator, partial(act_now, state.learner.online.actor)).measures()
        number = np.searchsorted(self.schedule.evaluations, step)
        success, distance = state.success.copy(), state.distance.copy()
        success[number], distance[number] = found["success"], found["distance"]
        return state._replace(success=success, distance=distance), found

    def vector_step(self, state: ControlState, t: int) -> tuple[ControlState, dict[str, Any]]:
        """A step of every body, and an update for each."""
        settings, generator = self.settings, self._generator(t)
        seen = self.simulator.observe(state.rows)
        noise = next_noise(state.noise, settings.noise_settle, settings.noise_spread, generator)
        actions = np.clip(np.asarray(act_now(state.learner.online.actor, seen)) + noise, -1, 1)
        if not np.isfinite(actions).all():
            raise _not_finite((t - self.schedule.random) * settings.envs)
        state = self._moved(state._replace(noise=noise), t, actions, generator)
        batches = self.batches(state.replay, t + 1, generator)
        smoothing = self.smoothing(generator)
        pairs = None if self.online is None else self._seen_pairs(state.replay, t)
        learner, phi, metrics = self.learn(state.learner, state.phi, batches, smoothing, pairs)
        return state._replace(learner=learner, phi=phi), metrics

    def _generator(self, t: int) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, 1, t])

    def _moved(
        self, state: ControlState, t: int, actions: np.ndarray, generator: np.random.Generator
    ) -> ControlState:
        """The bodies a step further, what came of it in the replay, and new episodes begun."""
        simulator, bodies = self.simulator, np.arange(self.settings.envs)
        rows = simulator.step(state.rows, actions)
        before, after = simulator.observe(state.rows), simulator.observe(rows)
        values = (before, actions, self.reward(before, after) if self.reward else 0.0, after)
        for array, value in zip(state.replay, values, strict=True):
            array[t] = value
        over = self.schedule.elapsed(t + 1, bodies) == 0
        noise = np.where(over[:, None], 0.0, state.noise)
        if over.any():
            starts = simulator.arena.random_positions(int(over.sum()), generator)
            rows[over] = simulator.at_rest(starts, generator)
        return state._replace(rows=rows, noise=noise)

    def batches(self, replay: Transitions, filled: int, generator: np.random.Generator) -> Transitions:
        """As many batches as there are bodies."""
        settings = self.settings
        indices = generator.integers(filled * settings.envs, size=(settings.envs, settings.batch))
        return Transitions(*(_flat(array)[indices] for array in replay))

    def smoothing(self, generator: np.random.Generator) -> np.ndarray | None:
        """Noise on the target actions of as many batches, if there are two critics."""
        settings = self.settings
        if not settings.twin_critics:
            return None
        return smoothing_noise((settings.envs, settings.batch, self.simulator.n_actions), generator)

    def _seen_pairs(self, replay: Transitions, t: int) -> tuple[np.ndarray, np.ndarray]:
        """What φ sees of as many batches of pairs (u, v) as there are bodies."""
        assert self.online is not None
        index, later = map(np.asarray, self.pairs(t))
        u, v = _flat(replay.observations)[index], _flat(replay.next_observations)[later]
        return self.online.sees(u), self.online.sees(v)

    def _pairs(self, t) -> tuple[Array, Array]:
        """Places of s_t and of the transition that ends in s_{t+τ}, for the updates of a vector step."""
        assert self.online is not None
        learner, bodies = self.online.learner, self.settings.envs
        progress = (t - self.schedule.random) * bodies / self.settings.steps
        keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(self.key, 1), t), bodies)

        def horizon(index):
            at, body = index // bodies, index % bodies
            return jnp.minimum(EPISODE_LENGTH - self.schedule.elapsed(at, body), t + 1 - at)

        index, tau = jax.vmap(
            lambda key: sample_recent_pairs(
                horizon, (t + 1) * bodies, learner.annealed_lam(progress), learner.batch, key=key
            )
        )(keys)
        return index, index + (tau - 1) * bodies


def _not_finite(step: int) -> NonFiniteError:
    return NonFiniteError(f"Q is not finite at step {step}; lower --critic-rate or --actor-rate")


def _flat(array: np.ndarray) -> np.ndarray:
    """The replay with time and bodies in one axis."""
    return array.reshape(-1, *array.shape[2:])


def _learn(
    optimisers: Optimisers,
    gamma: float,
    target_rate: float,
    action_penalty: float,
    online: OnlinePhi | None,
    learner: Learner,
    phi: PhiState | None,
    batches: Transitions,
    smoothing: Any,
    pairs: tuple[Any, Any] | None,
) -> tuple[Learner, PhiState | None, dict[str, Any]]:
    """An update for each batch, and of φ for each batch of pairs; the metrics are those of the last."""
    _, static = eqx.partition((learner, phi), eqx.is_array)

    def one(arrays, given):
        learner, phi = eqx.combine(arrays, static)
        batch, noise, pair = given
        metrics = {}
        if online is not None:
            phi, metrics = online.learner.update(phi, *pair)
            # φ changes with every step, so rewards are those of now, not of when the step was taken.
            now = online.rewards(phi.encoder, batch.observations, batch.next_observations)
            batch = batch._replace(rewards=now)
        learner, more = update(
            learner, optimisers, batch, gamma, target_rate, smoothing=noise, action_penalty=action_penalty
        )
        return eqx.filter((learner, phi), eqx.is_array), metrics | more

    arrays = eqx.filter((learner, phi), eqx.is_array)
    arrays, metrics = jax.lax.scan(one, arrays, (batches, smoothing, pairs))
    learner, phi = eqx.combine(arrays, static)
    return learner, phi, {name: values[-1] for name, values in metrics.items()}
