"""φ learned beside a DQN agent in a maze: its reward, the pairs it learns from, runs, and what is refused."""

import dataclasses
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lapwing
from lapwing.agents import dqn_maze
from lapwing.agents.agent import Agent
from lapwing.agents.dqn import Training, init_learner
from lapwing.agents.dqn_maze import AgentState, Tables, train_on_maze
from lapwing.errors import ConfigError
from lapwing.laplacian.encoders import MLP, EncoderSpec, Linear, init_encoder
from lapwing.runs.folder import RunFolder
from lapwing.runs.train_dqn import online_rewards, reopen_agent
from lapwing.settings.agents import AgentSettings
from lapwing.settings.learn import PRESETS, LearnSettings
from lapwing.shaping.online import OnlineRewards, PhiLearner, PhiState
from tests.support import exact
from tests.support.folders import content, without_times
from tests.support.training import MAZE, TINY, Interrupted, Kept, task_of

POSITIONS = dataclasses.replace(TINY, observation="position", hidden=(8,), evaluate_every=40, reward="mix")
LEARNER = PhiLearner(beta=5.0, delta=0.05, lam=0.9, lam_final=0.95, batch=16, learning_rate=1e-3)
SMALL_PHI = {"hidden": (8,), "batch": 16, "transitions": 4_000, "dim": 3}
"""What makes of the paper's recipe that of `LEARNER`: both are compiled once."""


def rewards_online(settings: AgentSettings = POSITIONS, **changed: Any) -> OnlineRewards:
    spec = EncoderSpec("mlp", (2,), 3, hidden=(8,))
    encoder: Any = init_encoder(
        spec, np.zeros(2, np.float32), np.ones(2, np.float32), 1.0, key=jax.random.key(5)
    )
    given = {"learner": LEARNER, "encoder": encoder, "form": "mix"} | changed
    return OnlineRewards(task=task_of(settings), **given)


def positions() -> np.ndarray:
    cells = np.array(exact.free_cells(MAZE), float)
    return (2 * cells / [2, 3] - 1).astype(np.float32)


def through(encoder, seen: np.ndarray) -> np.ndarray:
    first, second = encoder.layers
    hidden = np.maximum(seen @ np.asarray(first.weight).T + np.asarray(first.bias), 0)
    return hidden @ np.asarray(second.weight).T + np.asarray(second.bias)


class TestTable:
    @pytest.mark.parametrize("scale", [1.0, 2.5])
    @pytest.mark.parametrize("form", ["mix", "laplacian", "potential"])
    def test_is_that_of_the_task_with_the_same_embedding(self, form, scale):
        online, task = rewards_online(form=form, scale=scale), task_of(POSITIONS)
        seen = task.world.observations("position")
        np.testing.assert_allclose(seen, positions(), atol=1e-6)
        other: Any = eqx.tree_at(lambda e: e.layers[-1].weight, online.encoder, jnp.ones((3, 8)) * 0.3)
        table, goal = np.array(exact.moves(MAZE)), exact.goal_of(MAZE)
        of = eqx.filter_jit(lambda encoder: online.table(encoder, jnp.asarray(seen), jnp.asarray(table), 0.9))
        for encoder in (online.encoder, other):
            found, embedded = np.asarray(of(encoder)), through(encoder, positions())
            expected = task.rewards(form, task.distances(embedded, scale), 0.9)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
            # And by hand.
            latent = scale * np.linalg.norm(embedded - embedded[goal], axis=1)
            sparse = (table == goal) - 1.0
            by_hand = {
                "mix": -0.5 * latent[table] + 0.5 * sparse,
                "laplacian": -latent[table],
                "potential": sparse - 0.9 * latent[table] + latent[:, None],
            }
            np.testing.assert_allclose(found, by_hand[form], rtol=1e-4, atol=1e-5)


@dataclass(frozen=True)
class Watching(PhiLearner):
    """Hands out the pairs that it was given, and learns nothing."""

    def update(self, state, u, v):
        return PhiState(u, v), {}


RANDOM, STEPS, LENGTH = 23, 40, 7
ANNEALED = Watching(beta=5.0, delta=0.05, lam=0.9, lam_final=0.1, batch=4_000, learning_rate=0.01)


@cache
def draw() -> Any:
    """`(step) -> (t, t + τ)`; every step leads to a state of its own, so that both are seen."""
    settings = dataclasses.replace(TINY, random_steps=RANDOM, steps=STEPS, episode_length=LENGTH)
    room = RANDOM + STEPS
    ids = jnp.arange(room + 1)
    tables = Tables(ids, jnp.stack([jnp.minimum(ids + 1, room), ids], axis=1), None)
    encoder: Any = Linear(room + 1, 2, key=jax.random.key(0))
    online = OnlineRewards(ANNEALED, encoder, "mix", task_of(TINY))
    state = AgentState(
        init_learner(encoder, optax.adam(0.1)),
        ANNEALED.init(encoder),
        jnp.zeros(room + 1),
        jnp.asarray(0),
        ids[:room],
        jnp.zeros(room, int),
    )
    return jax.jit(lambda step: dqn_maze._phi_step(tables, settings, online, jax.random.key(2), step, state))


def test_phi_and_the_batch_are_drawn_by_different_keys(monkeypatch):
    """Drawing integers splits the key that it is given, so φ's must be none of the parts either."""
    keys: dict[Any, Any] = {}

    def phi_step(tables, settings, online, key, step, agent):
        keys["phi"] = key
        return agent.phi

    def randint(key, shape, *bounds):
        keys[shape] = key
        return jnp.zeros(shape, int)

    monkeypatch.setattr(dqn_maze, "_phi_step", phi_step)
    monkeypatch.setattr(jax.random, "randint", randint)
    task, online = task_of(POSITIONS), rewards_online()
    seen = jnp.asarray(task.world.observations("position"))
    tables = Tables(seen, jnp.asarray(task.world.next_state), None)
    room, optimiser = jnp.zeros(POSITIONS.random_steps + POSITIONS.steps, int), optax.adam(0.1)
    q = MLP(np.zeros(2, np.float32), np.ones(2, np.float32), (8,), 4, key=jax.random.key(0))
    phi = online.learner.init(online.encoder)
    state = AgentState(init_learner(q, optimiser), phi, jnp.zeros(len(seen)), jnp.asarray(0), room, room)
    dqn_maze._agent_step(tables, optimiser, POSITIONS, online, jax.random.key(1), 0, state)
    used = keys[(POSITIONS.batch,)]
    parts = [used, *jax.random.split(used, 2)]
    taken = {tuple(jax.random.key_data(part).tolist()) for part in parts}
    assert tuple(jax.random.key_data(keys["phi"]).tolist()) not in taken


class TestPairs:
    def drawn(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        begin, end = draw()(step)
        return np.asarray(begin), np.asarray(end)

    def episode(self, place: int) -> tuple[bool, int]:
        """Those of the random policy are cut off where the agent begins its own."""
        if place < RANDOM:
            return False, place // LENGTH
        return True, (place - RANDOM) // LENGTH

    def last_of(self, place: int, filled: int) -> int:
        """The last step of the same episode that there is."""
        return max(other for other in range(filled) if self.episode(other) == self.episode(place))

    @pytest.mark.parametrize("step", [0, 3, 7, 39])
    def test_are_of_one_episode_and_all_of_its_pairs_occur(self, step):
        begin, end = self.drawn(step)
        filled = RANDOM + step
        allowed = {
            (place, last + 1)
            for place in range(filled)
            for last in range(place, self.last_of(place, filled) + 1)
        }
        found = set(zip(begin.tolist(), end.tolist(), strict=True))
        assert found <= allowed
        assert {place for place, _ in found} == set(range(filled))
        common = {(place, end) for place, end in allowed if end - place <= (3 if step < 20 else 1)}
        assert common <= found

    def test_they_come_nearer_as_lam_is_annealed(self):
        """From 0.9 to 0.1: the share of one step is (1-λ) / (1-λ^m) among those with m steps to go."""
        shares = []
        for step in (0, 39):
            begin, end = self.drawn(step)
            whole = (begin < RANDOM - RANDOM % LENGTH) & (begin % LENGTH == 0)
            shares.append(np.mean(end[whole] == begin[whole] + 1))
        lam = 0.9 - 0.8 * 39 / 40
        assert shares[0] == pytest.approx(0.1 / (1 - 0.9**7), abs=0.12)
        assert shares[1] == pytest.approx((1 - lam) / (1 - lam**7), abs=0.06)


@cache
def whole() -> tuple[Training, Kept]:
    """An uninterrupted run."""
    kept = Kept()
    return train_on_maze(task_of(POSITIONS), rewards_online(), POSITIONS, checkpoints=kept)[0], kept


def leaves(tree) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


class TestTraining:
    def test_phi_is_learned_and_handed_out(self):
        training, kept = whole()
        assert leaves(training.phi) == leaves(kept.at(120).state.phi.encoder)
        assert leaves(kept.first.state.phi.encoder) == leaves(rewards_online().encoder)
        for one, other in ((kept.first.state, kept.at(40).state), (kept.at(40).state, kept.at(120).state)):
            moved = np.abs(np.asarray(one.phi.encoder.layers[0].weight) - other.phi.encoder.layers[0].weight)
            assert moved.max() > 0.005
        assert int(jax.tree.leaves(kept.at(120).state.phi.optimiser)[0]) == 120, "a step of its own for each"


ONLINE = {
    name: getattr(POSITIONS, name)
    for name in ("episode_length", "random_steps", "steps", "gamma", "epsilon", "batch", "learning_rate")
} | {"target_every": 10, "target_rate": 0.3, "hidden": (8,), "evaluate_every": 40, "online": True}
CARTPOLE = "gym:CartPole-v1"
pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")


@pytest.fixture(autouse=True, scope="module")
def small_phi():
    """The paper's recipe with a smaller network and fewer data: its numbers matter to no test."""
    small = dataclasses.replace(PRESETS["paper-shaping"], **SMALL_PHI)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "paper-shaping", small)
        yield


@pytest.fixture(scope="module")
def maze(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("mazes") / "mine.txt"
    path.write_text(MAZE)
    return path


@pytest.fixture(scope="module")
def online_run(tmp_path_factory, maze) -> Path:
    """A finished run; read it, do not change it."""
    out = tmp_path_factory.mktemp("runs") / "run"
    lapwing.train(maze, out=out, reward="mix", **ONLINE)
    return out


class TestRun:
    def test_what_is_in_the_folder(self, online_run):
        assert set(content(online_run)) == {
            *("config.json", "metrics.jsonl", "agent.safetensors", "result.json"),
            "representation.safetensors",
        }
        config = RunFolder(online_run).config()
        assert config["settings"]["online"] is True
        shared = {"observation": "position", "stay": False, "episode_length": 7, "seed": 0}
        recipe = dataclasses.replace(PRESETS["paper-shaping"], **shared)
        assert LearnSettings.from_json(config["phi"]) == recipe

    def test_the_result(self, online_run):
        result = RunFolder(online_run).result()
        assert (result["target"], result["reward"]) == ("mine", "mix")
        assert result["evaluated_at"] == [40, 80, 120]
        assert result["returns"] == [row["return"] for row in RunFolder(online_run).metrics()]
        assert result["audit"]["name"] == "mix"
        agent = lapwing.load_agent(online_run)
        assert isinstance(agent, Agent)
        assert agent.act(np.zeros(2)) in range(4)

    def test_phi_can_be_loaded(self, online_run):
        phi = lapwing.load(online_run)
        settings = phi.config["settings"]
        assert (settings["lam"], settings["lam_final"], settings["beta"]) == (0.9, 0.95, 5.0)
        assert (phi.config["target"], phi.dim, phi.rotated) == ("mine", 3, False)
        recipe = LearnSettings.from_json(RunFolder(online_run).config()["phi"])
        start = online_rewards(task_of(POSITIONS), POSITIONS, recipe)
        assert start.learner == LEARNER
        one, other = (np.asarray(each.layers[0].weight) for each in (phi.encoder, start.encoder))
        assert one.shape == other.shape
        assert 1e-3 < np.abs(one - other).max() < 0.15, "a hundred and twenty steps of a thousandth"

    def test_a_reopened_run_is_shaped_by_the_phi_of_the_end(self, online_run):
        outcome, phi = reopen_agent(online_run), lapwing.load(online_run)
        assert outcome.result == RunFolder(online_run).result()
        seen, goal = positions(), exact.goal_of(MAZE)
        latent = np.linalg.norm(phi.phi(seen) - phi.phi(seen[goal]), axis=1)
        table = np.array(exact.moves(MAZE))
        expected = -0.5 * latent[table] + 0.5 * ((table == goal) - 1.0)
        assert outcome.shaped is not None
        np.testing.assert_allclose(outcome.shaped.rewards, expected, rtol=1e-3, atol=1e-5)
        assert outcome.shaped.audit.as_json() == outcome.result["audit"]

    def test_the_reward_need_not_be_named(self, maze, online_run, tmp_path):
        """And a folder changes nothing of the agent."""
        lapwing.train(maze, **ONLINE).save(tmp_path / "agent.safetensors")
        saved = (online_run / "agent.safetensors").read_bytes()
        assert (tmp_path / "agent.safetensors").read_bytes() == saved

    def test_an_unfinished_run_goes_on_to_the_same(self, maze, online_run, tmp_path, often):

        def stop(phase, done, total, metrics):
            if phase == "training" and done >= 40:
                raise Interrupted

        out = tmp_path / "run"
        with pytest.raises(Interrupted):
            lapwing.train(maze, out=out, on_progress=stop, reward="mix", **ONLINE)
        lapwing.train(maze, out=out, resume=True, reward="mix", **ONLINE)
        assert (out / "agent.safetensors").read_bytes() == (online_run / "agent.safetensors").read_bytes()
        assert lapwing.load(out).sha256() == lapwing.load(online_run).sha256()
        assert without_times(RunFolder(out).result()) == without_times(RunFolder(online_run).result())
        assert without_times(RunFolder(out).metrics()) == without_times(RunFolder(online_run).metrics())

    @pytest.mark.parametrize(("scale", "expected"), [(None, 1.0), (20.0, 20.0)])
    def test_the_scale_multiplies_its_distance(self, scale, expected):
        settings = dataclasses.replace(POSITIONS, scale=scale, online=True)
        assert online_rewards(task_of(POSITIONS), settings, PRESETS["paper-shaping"]).scale == expected


class TestRefused:
    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"filter": "commute"}, "'commute'.* --filter"),
            ({"reward": "potential"}, "'potential'.* --reward mix"),
            ({"reward": "l2"}, "'l2'.* --online"),
        ],
        ids=str,
    )
    def test_settings(self, tmp_path, changed, words):
        with pytest.raises(ConfigError, match=words):
            lapwing.train("TwoRoom", out=tmp_path / "run", **(ONLINE | changed))
        assert list(tmp_path.iterdir()) == []

    def test_a_representation(self, maze, online_run, tmp_path):
        for given in (lapwing.load(online_run), online_run):
            with pytest.raises(ConfigError, match="--representation"):
                lapwing.train(maze, representation=given, out=tmp_path / "run", **ONLINE)
        assert list(tmp_path.iterdir()) == []

    def test_an_environment(self, tmp_path):
        with pytest.raises(ConfigError, match="online=True"):
            lapwing.train(CARTPOLE, out=tmp_path / "run", online=True, steps=40)
        assert list(tmp_path.iterdir()) == []

    def test_a_run_that_was_online_does_not_go_on_otherwise(self, maze, online_run):
        before = content(online_run)
        offline = ONLINE | {"online": False, "reward": "mix"}
        with pytest.raises(ConfigError, match="online = True, not False"):
            lapwing.train(maze, out=online_run, resume=True, preset="paper", **offline)
        assert content(online_run) == before
