"""DQN on any Gymnasium environment with discrete actions: one update per environment step.

The losses are those of `agents.dqn`. Every episode starts with its own `reset(seed=…)`, and checkpoints are
written at ends of episodes: a resumed run is bit-identical if the environment is determined by its seed.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from lapwing.agents import dqn
from lapwing.agents.evaluation import evaluation_steps
from lapwing.agents.player import Player, Reward, Starts, starts_of
from lapwing.agents.replay_buffer import ReplayBuffer, Stored, Transitions
from lapwing.data.observations import view_of
from lapwing.errors import ConfigError
from lapwing.laplacian.batches import embed_batch
from lapwing.laplacian.encoders import Encoder, EncoderSpec, embed, fit_encoder
from lapwing.laplacian.loop import Checkpoints, Metrics, Progress, restored, run_chunks
from lapwing.progress import OnChunk
from lapwing.settings.agents import AgentSettings
from lapwing.timing import stopwatch

EVALUATION_EPISODES = 10
LONGEST_EVALUATION = 1_000
"""Where an environment has no time limit, an evaluated episode ends after so many steps."""
_EVALUATION = 2**31
"""Evaluation episodes are numbered from here, so that their seeds are not those of training."""


class GymState(NamedTuple):
    """All that is kept between episodes."""

    learner: dqn.Learner
    replay: Stored
    episode: np.ndarray
    """How many episodes have begun."""
    returns: np.ndarray
    """The mean return at each evaluation so far."""


def space_spec(env: gymnasium.Env, hidden: tuple[int, ...]) -> EncoderSpec:
    """The Q network for an environment's spaces; spaces that it cannot take are refused by name."""
    seen, actions = env.observation_space, env.action_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise ConfigError(
            f"DQN needs a Discrete action space, not {actions}; choose another environment, or wrap it in "
            "lapwing.LaplacianReward for an agent of another library, such as Stable-Baselines3's SAC"
        )
    n_actions = int(actions.n)
    if isinstance(seen, gymnasium.spaces.Discrete):
        return dqn.q_spec((), int(seen.n), n_actions, hidden)
    shape = seen.shape if isinstance(seen, gymnasium.spaces.Box) else ()
    if len(shape) in (1, 3) and not view_of(seen).channels_first:
        return dqn.q_spec(shape, None, n_actions, hidden)
    raise ConfigError(
        f"DQN takes Discrete observations, vectors or images (height, width, channels), not {seen}; "
        "wrap the environment in gymnasium.wrappers.FlattenObservation, or move the channels to the end"
    )


def checked_starts(make_env: Callable[[], gymnasium.Env]) -> Starts:
    """Where the spaces begin; an environment that cannot be made or learned from is refused."""
    with closing(make_env()) as env:
        space_spec(env, hidden=())
        return starts_of(env)


def train_on_env(
    make_env: Callable[[], gymnasium.Env],
    settings: AgentSettings,
    *,
    reward: Reward | None = None,
    checkpoints: Checkpoints | None = None,
    on_chunk: OnChunk | None = None,
) -> tuple[dqn.Training, EncoderSpec]:
    """Train a DQN agent on an environment.

    Args:
        make_env: makes one; it is called twice, for training and for evaluation.
        settings: of the agent; those of mazes do not matter here.
        reward: r(s, s', terminated), for instance a `GoalReward`, in place of the environment's own.
            Evaluation always counts the environment's own.
        checkpoints: where to keep the state between episodes, and to resume from.
        on_chunk: called after each evaluation with (step, last step, metrics).
    """
    env, eval_env = make_env(), make_env()
    try:
        with stopwatch() as watch:
            training, spec = _train(env, eval_env, settings, reward, checkpoints, on_chunk)
        return training._replace(compile_seconds=watch.compiling), spec
    finally:
        env.close()
        eval_env.close()


def _train(
    env: gymnasium.Env,
    eval_env: gymnasium.Env,
    settings: AgentSettings,
    reward: Reward | None,
    checkpoints: Checkpoints | None,
    on_chunk: OnChunk | None,
) -> tuple[dqn.Training, EncoderSpec]:
    spec, optimiser = space_spec(env, settings.hidden), optax.adam(settings.learning_rate)
    buffer = ReplayBuffer(settings.random_steps + settings.steps, spec.shape, _stored_as(env, spec))
    evaluations = evaluation_steps(settings.steps, settings.evaluate_every)

    def state_of(seen: np.ndarray, episode: int) -> GymState:
        """An untrained agent, which standardises like these observations."""
        learner = dqn.init_learner(_fitted(spec, seen, settings), optimiser)
        return GymState(learner, buffer.empty(), np.array(episode), np.full(len(evaluations), np.nan))

    progress = restored(checkpoints, state_of(buffer.content().observations, 0))
    if progress is None:
        begun = _take_random_steps(env, buffer, spec.dim, settings, reward)
        progress = Progress(state_of(buffer.observations(), begun))
    else:
        buffer.fill(progress.state.replay)
    player = Player(env, settings.seed, reward, begun=int(progress.state.episode))
    learn = eqx.filter_jit(partial(_learn, optimiser, settings.gamma))
    act = eqx.filter_jit(partial(_act, settings.epsilon))
    key = jax.random.fold_in(jax.random.key(settings.seed), 3)

    def advance(state: GymState, step: int) -> tuple[GymState, int, Metrics]:
        """To the end of the episode, or to the next evaluation within it."""
        learner, loss = state.learner, np.nan
        evaluation = evaluations[np.searchsorted(evaluations, step, side="right")]
        if player.over:
            player.begin()
        while step < evaluation and not player.over:
            batch = buffer.sample(settings.batch, np.random.default_rng([settings.seed, 1, step]))
            learner, loss = learn(learner, batch)
            action = act(learner.q, np.asarray(player.observation), jax.random.fold_in(key, step))
            transition = player.step(int(action))
            buffer.store(transition, cut=player.over and not transition.terminated)
            step += 1
            if step % settings.target_every == 0:
                learner = dqn.moved_target(learner, settings.target_rate)
        state = state._replace(learner=learner, replay=buffer.content(), episode=np.array(player.begun))
        return state, step, {"loss": float(loss)}

    def measure(state: GymState, step: int) -> tuple[GymState, Metrics] | None:
        if step not in evaluations:
            return None
        returns = state.returns.copy()
        returns[np.searchsorted(evaluations, step)] = value = mean_return(
            eval_env, state.learner.q, settings.seed
        )
        return state._replace(returns=returns), {"return": value}

    state, _, seconds = run_chunks(
        progress,
        settings.steps,
        advance,
        measure,
        dqn.not_finite,
        checkpoints=checkpoints,
        on_chunk=on_chunk,
        resumable=lambda: player.over,
    )
    return dqn.Training(state.learner.q, evaluations, state.returns, seconds, 0.0), spec


def _learn(optimiser: optax.GradientTransformation, gamma: float, learner: dqn.Learner, batch: Transitions):
    next_values = jnp.max(dqn.q_values(learner.target, batch.next_observations), axis=1)
    targets = dqn.td_targets(batch.rewards, next_values, batch.terminated, gamma)

    def loss_of(q: Encoder):
        return dqn.td_loss(dqn.q_values(q, batch.observations), batch.actions, targets), None

    learner, loss, _ = dqn.update(learner, optimiser, loss_of)
    return learner, loss


def _act(epsilon: float, q: Encoder, observation, key: PRNGKeyArray):
    return dqn.epsilon_greedy(embed(q, observation), epsilon, key=key)


def mean_return(env: gymnasium.Env, q: Encoder, seed: int) -> float:
    """The mean return of the greedy policy over ten fixed episodes; NaN if Q is not finite."""
    player, total = Player(env, seed, begun=_EVALUATION), 0.0
    limited = env.spec is not None and env.spec.max_episode_steps is not None
    for _ in range(EVALUATION_EPISODES):
        steps = 0
        while not player.over and (limited or steps < LONGEST_EVALUATION):
            values = embed_batch(q, np.asarray(player.observation)[None])[0]
            if not np.isfinite(values).all():
                return float("nan")
            total, steps = total + player.step(int(values.argmax())).rewards, steps + 1
        player.begin()
    return total / EVALUATION_EPISODES


def _stored_as(env: gymnasium.Env, spec: EncoderSpec) -> type:
    """The type that observations are stored as: bytes stay bytes."""
    if spec.shape == ():
        return np.int32
    image_of_bytes = len(spec.shape) == 3 and env.observation_space.dtype == np.uint8
    return np.uint8 if image_of_bytes else np.float32


def _take_random_steps(
    env: gymnasium.Env, buffer: ReplayBuffer, n_actions: int, settings: AgentSettings, reward: Reward | None
) -> int:
    """Store steps of the random policy; returned is how many episodes were begun."""
    player, generator = Player(env, settings.seed, reward), np.random.default_rng([settings.seed, 0])
    player.fill(buffer, settings.random_steps, lambda: int(generator.integers(n_actions)))
    return player.begun


def _fitted(spec: EncoderSpec, observations: np.ndarray, settings: AgentSettings) -> Encoder:
    key = jax.random.fold_in(jax.random.key(settings.seed), 0)
    return fit_encoder(spec, observations, standardise=True, bandwidth=None, key=key)
