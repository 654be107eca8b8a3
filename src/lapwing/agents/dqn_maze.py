"""DQN in a maze: all steps and updates in one compiled loop, with exact evaluation.

Whatever depends only on the state is a table: rewards, moves, and the values of the target network, which
change only when it is updated. The replay buffer holds every step so far, as a state and an action. The
random numbers of step t come from `fold_in(key, t)`, so the same seed gives the same bits after any
interruption.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, Scalar

from lapwing.agents import dqn
from lapwing.agents.evaluation import evaluation_steps
from lapwing.laplacian.encoders import Encoder, EncoderSpec, fit_encoder
from lapwing.laplacian.loop import Checkpoints, Metrics, Progress, restored, run_chunks
from lapwing.laplacian.sampling import sample_recent_pairs
from lapwing.progress import OnChunk
from lapwing.settings.agents import AgentSettings
from lapwing.shaping.online import OnlineRewards, PhiState
from lapwing.shaping.tasks import GridTask
from lapwing.timing import stopwatch


class Tables(NamedTuple):
    """The task as arrays."""

    observations: Array
    next_state: Int[Array, "states actions"]
    rewards: Float[Array, "states actions"] | None
    """None if they change with φ."""


class AgentState(NamedTuple):
    """All that changes from step to step."""

    learner: dqn.Learner
    phi: PhiState | None
    """φ, if it is learned online."""
    target_values: Float[Array, " states"]
    """max_a Q(s, a) of the target network in every state."""
    state: Int[Scalar, ""]
    """Where the agent is."""
    states: Int[Array, " capacity"]
    """The replay: where each step began,"""
    actions: Int[Array, " capacity"]
    """and the action that it took."""


class MazeState(NamedTuple):
    """What a checkpoint holds."""

    state: AgentState
    returns: np.ndarray
    """The mean return at each evaluation so far."""


def train_on_maze(
    task: GridTask,
    rewards: np.ndarray | OnlineRewards,
    settings: AgentSettings,
    *,
    checkpoints: Checkpoints | None = None,
    on_chunk: OnChunk | None = None,
) -> tuple[dqn.Training, EncoderSpec]:
    """Train a DQN agent.

    Args:
        task: the maze and its goal.
        rewards: of each action in each state, as `GridTask.rewards` gives them; or those of a φ that is
            learned online.
        settings: of the agent.
        checkpoints: where to keep the state between evaluations, and to resume from.
        on_chunk: called after each evaluation with (step, last step, metrics).
    """
    tables = Tables(
        jnp.asarray(task.world.observations(settings.observation)),
        jnp.asarray(task.world.next_state),
        None if isinstance(rewards, OnlineRewards) else jnp.asarray(rewards, jnp.float32),
    )
    online = rewards if isinstance(rewards, OnlineRewards) else None
    optimiser = optax.adam(settings.learning_rate)
    states, *shape = tables.observations.shape
    spec = dqn.q_spec(tuple(shape), states, task.world.n_actions, settings.hidden)
    evaluations = evaluation_steps(settings.steps, settings.evaluate_every)
    first = MazeState(
        _first_state(tables, spec, optimiser, settings, online), np.full(len(evaluations), np.nan)
    )
    progress = restored(checkpoints, first) or Progress(first)
    with stopwatch() as watch:
        run_chunk = _compiled_chunk(tables, optimiser, settings, online, progress.state.state)
        table_of = eqx.filter_jit(dqn.q_values)
        table_of(progress.state.state.learner.q, tables.observations)

    def advance(kept: MazeState, step: int) -> tuple[MazeState, int, Metrics]:
        end = int(evaluations[np.searchsorted(evaluations, step, side="right")])
        state, loss = run_chunk(kept.state, step, end)
        return kept._replace(state=state), end, {"loss": float(loss) / (end - step)}

    def measure(kept: MazeState, step: int) -> tuple[MazeState, Metrics]:
        q_table, returns = (
            np.asarray(table_of(kept.state.learner.q, tables.observations)),
            kept.returns.copy(),
        )
        if not np.isfinite(q_table).all():
            raise dqn.not_finite(step)
        returns[np.searchsorted(evaluations, step)] = value = task.mean_return(q_table.argmax(axis=1))
        return kept._replace(returns=returns), {"return": value}

    progress = run_chunks(
        progress, settings.steps, advance, measure, dqn.not_finite, checkpoints=checkpoints, on_chunk=on_chunk
    )
    (state, returns), _, seconds = progress
    phi = state.phi and state.phi.encoder
    return dqn.Training(state.learner.q, evaluations, returns, seconds, watch.compiling, phi), spec


def _first_state(
    tables: Tables,
    spec: EncoderSpec,
    optimiser: optax.GradientTransformation,
    settings: AgentSettings,
    online: OnlineRewards | None,
) -> AgentState:
    """An untrained agent, with a replay that holds the random steps."""
    key = jax.random.key(settings.seed)
    # Positions lie in [-1, 1] and stay as they are, as in the paper; images are freed of the mean image.
    q = fit_encoder(
        spec,
        np.asarray(tables.observations),
        standardise=spec.name == "conv",
        bandwidth=None,
        key=jax.random.fold_in(key, 0),
    )
    states, actions = _random_steps(tables, settings, jax.random.fold_in(key, 1))
    start = jax.random.randint(jax.random.fold_in(key, 2), (), 0, len(tables.observations))
    return AgentState(
        dqn.init_learner(q, optimiser),
        online and online.learner.init(online.encoder),
        jnp.max(dqn.q_values(q, tables.observations), axis=1),
        start,
        jnp.pad(states, (0, settings.steps)),
        jnp.pad(actions, (0, settings.steps)),
    )


def _random_steps(
    tables: Tables, settings: AgentSettings, key: PRNGKeyArray
) -> tuple[Int[Array, " steps"], Int[Array, " steps"]]:
    """States and actions of the random policy, in episodes from uniform starts."""
    n_states, n_actions = tables.next_state.shape
    length = min(settings.episode_length, settings.random_steps)
    episodes = -(-settings.random_steps // length)
    start_key, action_key = jax.random.split(key)
    start = jax.random.randint(start_key, (episodes,), 0, n_states)
    actions = jax.random.randint(action_key, (length, episodes), 0, n_actions)
    _, states = jax.lax.scan(lambda s, a: (tables.next_state[s, a], s), start, actions)
    return states.T.ravel()[: settings.random_steps], actions.T.ravel()[: settings.random_steps]


def _agent_step(
    tables: Tables,
    optimiser,
    settings: AgentSettings,
    online: OnlineRewards | None,
    key,
    step,
    agent: AgentState,
):
    """One update from the replay, one ε-greedy step, and now and then a move of the target network."""
    n_states, _ = tables.next_state.shape
    batch_key, act_key, start_key, phi_key = jax.random.split(jax.random.fold_in(key, step), 4)
    phi, rewards = agent.phi, tables.rewards
    if online is not None:
        phi = _phi_step(tables, settings, online, phi_key, step, agent)
        rewards = online.table(phi.encoder, tables.observations, tables.next_state, settings.gamma)
    assert rewards is not None
    filled = settings.random_steps + step
    indices = jax.random.randint(batch_key, (settings.batch,), 0, filled)
    states, actions = agent.states[indices], agent.actions[indices]
    next_values = agent.target_values[tables.next_state[states, actions]]
    never = jnp.zeros(settings.batch, bool)
    targets = dqn.td_targets(rewards[states, actions], next_values, never, settings.gamma)

    def loss_of(q: Encoder):
        values = _values_at(q, tables.observations, jnp.append(states, agent.state))
        return dqn.td_loss(values[:-1], actions, targets), values[-1]

    learner, loss, here = dqn.update(agent.learner, optimiser, loss_of)
    action = dqn.epsilon_greedy(here, settings.epsilon, key=act_key)
    at_limit = (step + 1) % settings.episode_length == 0
    anywhere = jax.random.randint(start_key, (), 0, n_states)
    learner, target_values = jax.lax.cond(
        (step + 1) % settings.target_every == 0,
        partial(_move_target, tables, settings.target_rate),
        lambda learner, values: (learner, values),
        learner,
        agent.target_values,
    )
    return agent._replace(
        learner=learner,
        phi=phi,
        target_values=target_values,
        state=jnp.where(at_limit, anywhere, tables.next_state[agent.state, action]),
        states=agent.states.at[filled].set(agent.state),
        actions=agent.actions.at[filled].set(action),
    ), loss


def _phi_step(
    tables: Tables, settings: AgentSettings, online: OnlineRewards, key, step, agent: AgentState
) -> PhiState:
    """One step of φ on pairs of the replay, which ends each episode after so many steps."""
    filled, length = settings.random_steps + step, settings.episode_length

    def horizon(index):
        first = jnp.where(index < settings.random_steps, 0, settings.random_steps)
        last = jnp.where(index < settings.random_steps, settings.random_steps, filled)
        end = first + ((index - first) // length + 1) * length
        return jnp.minimum(end, last) - index

    lam = online.learner.annealed_lam(step / settings.steps)
    index, tau = sample_recent_pairs(horizon, filled, lam, online.learner.batch, key=key)
    before = index + tau - 1
    v = tables.next_state[agent.states[before], agent.actions[before]]
    assert agent.phi is not None
    u_seen, v_seen = tables.observations[agent.states[index]], tables.observations[v]
    return online.learner.update(agent.phi, u_seen, v_seen)[0]


def _values_at(
    q: Encoder, observations: Array, states: Int[Array, " batch"]
) -> Float[Array, "batch actions"]:
    """Q in these states; a table of no more states than that is computed whole, and gathered from."""
    if len(observations) <= len(states):
        return dqn.q_values(q, observations)[states]
    return dqn.q_values(q, observations[states])


def _move_target(tables: Tables, rate: float, learner: dqn.Learner, values):
    learner = dqn.moved_target(learner, rate)
    return learner, jnp.max(dqn.q_values(learner.target, tables.observations), axis=1)


def _compiled_chunk(
    tables: Tables,
    optimiser: optax.GradientTransformation,
    settings: AgentSettings,
    online: OnlineRewards | None,
    state: AgentState,
) -> Callable[[AgentState, int, int], tuple[AgentState, Any]]:
    """`run(state, begin, end) -> (state, sum of the losses)`."""
    key = jax.random.fold_in(jax.random.key(settings.seed), 3)
    _, static = eqx.partition(state, eqx.is_array)

    def one_step(tables, step, carry):
        arrays, total = carry
        agent = eqx.combine(arrays, static)
        agent, loss = _agent_step(tables, optimiser, settings, online, key, step, agent)
        return eqx.filter(agent, eqx.is_array), total + loss

    def run(tables, arrays, begin, end):
        return jax.lax.fori_loop(begin, end, partial(one_step, tables), (arrays, jnp.zeros(())))

    arrays = eqx.filter(state, eqx.is_array)
    compiled = jax.jit(run).lower(tables, arrays, jnp.int32(0), jnp.int32(0)).compile()

    def run_chunk(state: AgentState, begin: int, end: int) -> tuple[AgentState, Any]:
        arrays = eqx.filter(state, eqx.is_array)
        arrays, total = compiled(tables, arrays, jnp.int32(begin), jnp.int32(end))
        return eqx.combine(arrays, static), total

    return run_chunk
