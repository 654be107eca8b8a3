"""A `pairwise` step distributed over the processes of a job: each embeds pairs of its own shards.

The loss is a function of sums over pairs, d² + 4 numbers per shard, and its gradient is a sum over pairs too.
A step sends both: the sums of every shard to all, and the gradient once to be summed and once as a sum (two
processes send each other all of it, once). Sums are formed shard by shard, as a binary tree. So if the
numbers of shards and processes are powers of two, the same numbers are added in the same order, for any
number of processes.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError
from lapwing.laplacian.encoders import Encoder, embed
from lapwing.laplacian.estimators import lam_at, read_at, steps_at_once
from lapwing.laplacian.objectives.drawing import loss_of_sums, pair_sums
from lapwing.laplacian.sampling import draw_pairs
from lapwing.laplacian.shards import Shards
from lapwing.settings.learn import ResolvedSettings

AXIS = "processes"
METRICS = ("loss", "graph_drawing", "penalty")
_DIVIDED, _EVERYWHERE = PartitionSpec(None, AXIS), PartitionSpec()


class ShardEstimator(eqx.Module):
    """`pairwise` from shards: what some steps need is read before them, as many pairs from each shard."""

    batches: Array
    """(steps, shards, both ends, pairs, …), the shards divided among the processes."""
    begin: Int[Array, ""]
    """The step that `batches` begins with."""
    shards: Shards = eqx.field(static=True)
    settings: ResolvedSettings = eqx.field(static=True)

    @classmethod
    def of(cls, shards: Shards, settings: ResolvedSettings) -> "ShardEstimator":
        """With nothing read yet."""
        seen = shards.learned_from[0]
        steps, pairs = steps_at_once(seen, settings, 2), settings.batch // shards.count
        shape = (steps, len(shards.numbers), 2, pairs, *seen.observation_shape)
        empty = _divided(np.zeros(shape, seen.observations.dtype), shards.count)
        return cls(empty, jnp.int32(0), shards, settings)

    @property
    def most_steps(self) -> int:
        """How many steps are read for at a time."""
        return len(self.batches)

    def at(self, begin: int, end: int) -> "ShardEstimator":
        """For these steps; the same numbers whatever the chunks, and however many processes."""
        own = zip(self.shards.numbers, self.shards.learned_from, strict=True)
        rows = np.stack([self._read(number, seen, begin, end) for number, seen in own], axis=1)
        padded = np.zeros((self.most_steps, *rows.shape[1:]), rows.dtype)
        padded[: end - begin] = rows
        batches = _divided(padded, self.shards.count)
        return ShardEstimator(batches, jnp.int32(begin), self.shards, self.settings)

    def _read(self, number: int, seen: Experience, begin: int, end: int) -> np.ndarray:
        settings = self.settings

        def drawn(step: int) -> tuple[np.ndarray, np.ndarray]:
            rng, lam = np.random.default_rng([settings.seed, step, number]), float(lam_at(settings, step))
            return draw_pairs(seen, lam, settings.batch // self.shards.count, settings.past_end, rng)

        return read_at(seen, np.stack([drawn(step) for step in range(begin, end)]))

    def value_and_gradient(self, encoder: Encoder, step) -> tuple[dict[str, Array], Encoder]:
        """The loss and its parts over the pairs of all processes, and the gradient; where `AXIS` is bound."""
        parameters, rest = eqx.partition(encoder, eqx.is_inexact_array)
        flat, unravel = ravel_pytree(parameters)
        batches = self.batches[step - self.begin]

        def sums_of(flat: Array, batch: Array) -> Array:
            """Of one shard."""
            of_shard = eqx.combine(unravel(flat), rest)
            phi = jax.vmap(embed, in_axes=(None, 0))(of_shard, batch.reshape(-1, *batch.shape[2:]))
            return ravel_pytree(pair_sums(*jnp.split(phi, 2)))[0]

        def sums(copies: Array) -> Array:
            return jax.lax.map(lambda one: sums_of(*one), (copies, batches))

        copies = jnp.broadcast_to(flat, (len(batches), *flat.shape))
        own, pulled_back = jax.vjp(sums, copies)
        of_shards = _of_all(own).reshape(-1, own.shape[1])
        names = ravel_pytree(pair_sums(*jnp.zeros((2, 2, self.settings.dim + self.settings.oversample))))[1]
        beta, delta = self.settings.beta, self.settings.delta

        def loss(total: Array) -> tuple[Array, dict[str, Array]]:
            return loss_of_sums(names(total), beta=beta, delta=delta)

        (_, metrics), towards = jax.value_and_grad(loss, has_aux=True)(tree_sum(of_shards))
        (gradients,) = pulled_back(jnp.broadcast_to(towards, own.shape))
        return metrics, unravel(_sum_of_all(tree_sum(gradients)))


def tree_sum(rows: Float[Array, "rows n"]) -> Float[Array, " n"]:
    """The sum of rows, of neighbours first.

    Example:
        >>> tree_sum(jnp.array([[1.0], [2.0], [3.0]])).tolist()
        [6.0]
    """
    while len(rows) > 1:
        even = len(rows) // 2 * 2
        rows = jnp.concatenate([rows[0:even:2] + rows[1:even:2], rows[even:]])
    return rows[0]


def _of_all(own: Float[Array, " ..."]) -> Float[Array, "processes ..."]:
    """What every process has, in their order.

    Each sends its own to each other one: a quarter less time a step than `all_gather` by Gloo, which passes
    it around.
    """
    return jax.lax.all_to_all(jnp.broadcast_to(own, (jax.process_count(), *own.shape)), AXIS, 0, 0)


def _sum_of_all(own: Float[Array, " n"]) -> Float[Array, " n"]:
    """The sum over processes: each sums a part of the numbers, and gives it to the others.

    Two processes send all to each other: as many bytes, in one exchange, and what an exchange costs is
    mostly the wait for the other process.
    """
    processes = jax.process_count()
    if processes <= 2:
        return tree_sum(_of_all(own))
    padded = jnp.pad(own, (0, -len(own) % processes)).reshape(processes, -1)
    part = tree_sum(jax.lax.all_to_all(padded, AXIS, 0, 0))
    return _of_all(part).reshape(-1)[: len(own)]


def bytes_a_step(parameters: int, columns: int, shards: int, processes: int) -> float:
    """What a process sends at every step.

    Args:
        parameters: of the network.
        columns: of φ, d.
        shards: of all processes.
        processes: how many.
    """
    to_others = (processes - 1) / processes
    return 4 * to_others * (2 * parameters + shards * (columns**2 + 4))


def check_spread(settings: ResolvedSettings, shards: int) -> None:
    """Refuse settings that shards cannot be learned by."""
    if settings.estimator not in ("pairwise", "closed-form") or settings.objective != "graph-drawing":
        wrong = "objective" if settings.estimator == "pairwise" else "estimator"
        raise ConfigError(
            f"{wrong}={getattr(settings, wrong)} cannot be learned from shards; use closed-form or pairwise, "
            "with the objective graph-drawing"
        )
    if settings.estimator == "pairwise" and (settings.batch % shards or settings.batch < 2 * shards):
        raise ConfigError(
            f"batch must be a multiple of the {shards} shards, and two or more for each, not {settings.batch}"
        )


def spread(run: Callable[..., Any], data: ShardEstimator) -> Callable[..., Any]:
    """`run(data, state, begin, end)` with `AXIS` bound; all but the batches is the same everywhere."""
    specs = jax.tree.map(lambda leaf: _DIVIDED if leaf is data.batches else _EVERYWHERE, data)
    others = (_EVERYWHERE,) * 3
    return jax.shard_map(run, mesh=_mesh(), in_specs=(specs, *others), out_specs=_EVERYWHERE, check_vma=False)


def on_this_process(tree: Any) -> Any:
    """Arrays that are the same everywhere, as plain ones of this process."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)


def _mesh() -> Mesh:
    """One device of each process."""
    devices = jax.devices()
    processes = range(jax.process_count())
    first = [next(one for one in devices if one.process_index == process) for process in processes]
    return Mesh(np.array(first), (AXIS,))


def _divided(rows: np.ndarray, shards: int) -> Array:
    """What this process has read, as its part of the batches of all."""
    shape = (len(rows), shards, *rows.shape[2:])
    return jax.make_array_from_process_local_data(NamedSharding(_mesh(), _DIVIDED), rows, shape)
