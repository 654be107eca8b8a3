"""Learning from shards: in one process here, in two of one machine, and against the sums of all the data."""

import json
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

import lapwing
from lapwing.data.shards import join_shards, load_shard
from lapwing.errors import ConfigError, DatasetError
from lapwing.laplacian import hosts
from lapwing.laplacian.objectives.drawing import PairSums, loss_of_sums, pair_sums, pairwise_loss
from lapwing.laplacian.ritz import moments_of_experience
from lapwing.laplacian.shards import open_shards
from lapwing.laplacian.spread import bytes_a_step, tree_sum
from lapwing.runs.folder import RunFolder
from tests.support.jobs import PAIRWISE, in_processes, sharded_walks

pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return sharded_walks(tmp_path_factory.mktemp("shards"), 4)


def test_the_loss_of_summed_pairs_is_that_of_all_pairs():
    u, v = np.random.default_rng(0).normal(size=(2, 12, 3)).astype(np.float32)
    parts = [pair_sums(jnp.asarray(u[rows]), jnp.asarray(v[rows])) for rows in (slice(5), slice(5, None))]
    total = PairSums(*(first + second for first, second in zip(*parts, strict=True)))
    found, _ = loss_of_sums(total, beta=2.0, delta=0.5)
    wanted, _ = pairwise_loss(jnp.asarray(u), jnp.asarray(v), beta=2.0, delta=0.5)
    assert float(found) == pytest.approx(float(wanted), rel=1e-5)


def test_neighbours_are_summed_first():
    """So that halves of the rows can be summed elsewhere: 1 is lost beside 1e8, and here it is not."""
    rows = jnp.array([[1e8], [-1e8], [1.0], [0.0]], jnp.float32)
    assert float(tree_sum(rows)[0]) == float(tree_sum(jnp.stack([tree_sum(rows[:2]), tree_sum(rows[2:])]))[0])
    assert float(tree_sum(rows)[0]) == 1.0


def test_a_process_alone_sends_nothing():
    assert bytes_a_step(1_000, 8, 4, 1) == 0
    assert bytes_a_step(1_000, 8, 4, 2) == 4 * (1_000 + 2 * 68)


def test_moments_are_those_of_all_transitions(shards):
    opened = open_shards(shards, 0.0, 64, 0)

    def moments(part, some):
        return moments_of_experience(part, np.square, most=some), part.n_transitions

    whole = lapwing.load_experience(shards.with_name("walks"))
    for found, wanted in zip(
        opened.mean_moments(moments, 10**6), moments_of_experience(whole, np.square), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert opened.n_transitions == whole.n_transitions


def test_held_out_episodes_are_not_in_the_sample_that_is_learned_from(shards):
    opened = open_shards(shards, 0.2, 64, 0)
    learned, held_out = ({tuple(row) for row in part.observations.tolist()} for part in opened.sample)
    assert not learned & held_out
    every = {tuple(row) for number in range(4) for row in load_shard(shards, number).observations.tolist()}
    assert learned | held_out == every


SCRIPT = """
import json, warnings
import lapwing
warnings.simplefilter("ignore")
shards, settings, out = sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
rep = lapwing.learn(shards, out=out, **settings)
bumps = lapwing.learn(shards, dim=4, trials=1)
print(json.dumps([rep.eigenvalues.tolist(), bumps.eigenvalues.tolist()]))
jax.distributed.shutdown()
"""


def test_two_processes_learn_what_one_does(shards, tmp_path):
    """By `pairwise` and in closed form: the loss to 1e-5, eigenvalues to 1e-4; the first process writes."""
    settings = json.dumps(PAIRWISE)
    first, second = map(json.loads, in_processes(2, SCRIPT, shards, settings, tmp_path / "two"))
    np.testing.assert_allclose(first, second, atol=1e-6)
    alone = lapwing.learn(shards, out=tmp_path / "one", **PAIRWISE)
    bumps = lapwing.learn(shards, dim=4, trials=1)
    np.testing.assert_allclose(first[0], alone.eigenvalues, atol=1e-4)
    np.testing.assert_allclose(first[1], bumps.eigenvalues, atol=1e-4)
    losses = [[row["loss"] for row in RunFolder(tmp_path / run).metrics()] for run in ("one", "two")]
    np.testing.assert_allclose(*losses, rtol=1e-5, atol=1e-5)


def refused_by(shards, error, word, **settings):
    with pytest.raises(error, match=word):
        lapwing.learn(shards, **(PAIRWISE | settings))


def test_what_shards_cannot_be_learned_by_is_refused(shards):
    refused_by(shards, ConfigError, "batch", batch=30)
    refused_by(shards, ConfigError, "objective", objective="allo")
    refused_by(shards, ConfigError, "estimator", estimator="sampled")


def test_shards_of_other_shapes_are_named(shards, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(shards, folder)
    shutil.rmtree(folder / "shard-002")
    lapwing.save_episodes(folder / "shard-002", np.zeros((5, 60, 3), np.float32) + np.arange(60)[:, None])
    join_shards(folder)
    refused_by(folder, DatasetError, "shard 2")


def test_a_shard_that_is_too_small_is_named(tmp_path):
    lapwing.save_episodes(tmp_path / "own" / "shard-000", np.random.default_rng(0).normal(size=(2, 9, 2)))
    refused_by(join_shards(tmp_path / "own"), DatasetError, "shard 0")


@pytest.mark.parametrize("name", ["jax", "data"])
def test_processes_that_are_not_alike_are_refused_by_number(monkeypatch, name):
    def gathered(blob):
        return [blob, json.dumps(json.loads(blob) | {name: "other"}).encode()]

    monkeypatch.setattr(hosts, "gathered", gathered)
    with pytest.raises(ConfigError, match=f"process 1 has {name} other"):
        hosts.check_alike({"data": "this"})


def test_processes_must_divide_the_shards(monkeypatch):
    monkeypatch.setattr(hosts.jax, "process_count", lambda: 3)
    with pytest.raises(ConfigError, match="4 shards"):
        hosts.shards_of_process(4)
