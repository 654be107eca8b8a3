"""Random walks through the tables of a gridworld, all episodes at once.

They are apart from `envs.gridworld`, which a name can be looked up with before JAX is imported.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, UInt8


def random_walks(
    next_state: Int[Array, "states actions"],
    policy: jax.Array | None,
    *,
    episodes: int,
    length: int,
    key: PRNGKeyArray,
) -> tuple[Int[Array, "episodes observations"], UInt8[Array, "episodes steps"]]:
    """Episodes of `length` moves from uniform starts: the states, and the action taken at each but the last.

    Args:
        next_state: the table of the dynamics.
        policy: probabilities of the actions in each state (states, actions); None is uniform.
        episodes: how many episodes.
        length: moves in each.
        key: a typed random key.
    """
    n_states, n_actions = next_state.shape
    start_key, walk_key = jax.random.split(key)
    start = jax.random.randint(start_key, (episodes,), 0, n_states, dtype=jnp.int32)

    def move(state, t):
        step_key = jax.random.fold_in(walk_key, t)
        if policy is None:
            action = jax.random.randint(step_key, (episodes,), 0, n_actions)
        else:
            action = jax.random.categorical(step_key, jnp.log(policy)[state])
        return next_state[state, action], (state, action.astype(jnp.uint8))

    last, (states, actions) = jax.lax.scan(move, start, jnp.arange(length))
    return jnp.concatenate([states, last[None]]).T, actions.T
