"""DDPG on bodies in an arena: the replay against the simulator, runs that go on, and what is recorded."""

import dataclasses
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import pytest
from scipy.stats import kstest

from lapwing import storage
from lapwing.agents import ddpg, ddpg_arena, evaluation
from lapwing.agents.ddpg import Transitions, act_now
from lapwing.agents.ddpg_arena import ControlState, ControlTraining, train_in_arena
from lapwing.agents.evaluation import evaluate_policy
from lapwing.envs.arena import open_arena
from lapwing.envs.simulator import Simulator
from lapwing.errors import NonFiniteError
from lapwing.laplacian.encoders import MLP, EncoderSpec, init_encoder
from lapwing.laplacian.model_files import named_arrays
from lapwing.runs.folder import RunFolder
from lapwing.settings.agents import ResolvedControl
from lapwing.shaping.online import OnlinePhi, PhiLearner
from lapwing.shaping.rewards import Goal
from tests.support.interruptions import Interrupted
from tests.support.training import Kept, counted, episodes

LENGTH = 9
"""Of an episode here."""
BODIES, RANDOM, ROUNDS = 4, 10, 30
SETTINGS = ResolvedControl(
    reward="l2",
    envs=BODIES,
    random_steps=RANDOM * BODIES,
    steps=80,
    evaluate_every=4,
    batch=8,
    hidden=(8,),
    fast=True,
    gamma=0.9,
    actor_rate=0.01,
    critic_rate=0.01,
    target_rate=0.1,
)
"""Evaluated after every round, so that each can be looked at."""
SELDOM = dataclasses.replace(SETTINGS, evaluate_every=40)
GOAL = np.array([-2.0, -2.0], np.float32)


@pytest.fixture(autouse=True, scope="module")
def short_episodes():
    with pytest.MonkeyPatch.context() as patch:
        for module in (ddpg_arena, evaluation):
            patch.setattr(module, "EPISODE_LENGTH", LENGTH)
        yield


def after(kept: Kept, round_: int) -> ControlState:
    """The state when a round was over."""
    return kept.at((round_ + 1 - RANDOM) * BODIES)


@cache
def simulator() -> Simulator:
    return Simulator(open_arena("PointUMaze", fast=True))


def nearness(_: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """A reward without φ."""
    return -np.linalg.norm(seen[:, :2] - GOAL, axis=1)


def first_two(observations: Any) -> Any:
    return observations[..., :2]


@dataclass(frozen=True)
class Watching(OnlinePhi):
    """φ that remembers which observations it was shown."""

    shown: list = field(default_factory=list)

    def sees(self, observations: Any) -> Any:
        self.shown.append(np.asarray(observations))
        return super().sees(observations)


def online_phi() -> Watching:
    spec = EncoderSpec("mlp", (2,), 3, hidden=(8,))
    encoder: Any = init_encoder(
        spec, np.zeros(2, np.float32), np.full(2, 2.0, np.float32), 1.0, key=jax.random.key(7)
    )
    learner = PhiLearner(beta=2.0, delta=0.1, lam=0.9, lam_final=0.01, batch=8, learning_rate=1e-3)
    return Watching(learner, encoder, "mix", Goal(z=GOAL, radius=0.6, h=first_two))


def reward_of(kind: str) -> Any:
    return nearness if kind == "fixed" else online_phi()


def trained(kind: str, settings: ResolvedControl = SETTINGS, **how: Any) -> ControlTraining:
    return train_in_arena(simulator(), settings, reward_of(kind), **how)


class Whole:
    """An uninterrupted run and all that can be known of it."""

    def __init__(self, kind: str):
        self.kept, self.reward = Kept(), reward_of(kind)
        self.training = train_in_arena(
            simulator(),
            SETTINGS,
            self.reward,
            checkpoints=self.kept,
            on_chunk=lambda *call: self.kept.calls.append(call),
        )
        self.replay = after(self.kept, ROUNDS - 1).replay


@cache
def whole(kind: str) -> Whole:
    return Whole(kind)


KINDS = pytest.mark.parametrize("kind", ["fixed", "online"])
TIMES = np.array(counted(LENGTH, BODIES, ROUNDS + 1)).T
"""How far each body is into its episode when each round begins."""
OVER = TIMES[1:] == 0
"""Whether a round is the last of an episode."""


def state_bytes(state: ControlState) -> dict[str, bytes]:
    """All that changes, but for the evaluations."""
    return {
        name: array.tobytes()
        for name, array in named_arrays(state, "state").items()
        if name not in ("state.success", "state.distance")
    }


def through(network: MLP, seen: np.ndarray) -> np.ndarray:
    """A network in NumPy."""
    values = (seen - np.asarray(network.shift)) / np.asarray(network.scale)
    for place, layer in enumerate(network.layers):
        values = np.maximum(values, 0) if place else values
        values = values @ np.asarray(layer.weight).T + np.asarray(layer.bias)
    return values


def policy(actor: MLP, seen: np.ndarray) -> np.ndarray:
    """μ(s)."""
    return np.tanh(through(actor, seen))


class TestReplay:
    @KINDS
    def test_every_transition_is_a_step_of_the_simulator(self, kind):
        """From the observation alone, for that is all of a body's state but the time."""
        seen, actions, _, after = (array.reshape(-1, array.shape[-1]) for array in whole(kind).replay[:4])
        rows = np.column_stack([np.zeros(len(seen)), seen])
        stepped = simulator().observe(simulator().step(rows, actions.reshape(-1, 2)))
        turn = (stepped[:, 2] - after[:, 2] + np.pi) % (2 * np.pi) - np.pi
        np.testing.assert_allclose(turn, 0, atol=1e-4)
        other = [0, 1, 3, 4, 5]
        np.testing.assert_allclose(stepped[:, other], after[:, other], atol=1e-4)
        assert np.abs(after - seen).max() > 0.1

    @KINDS
    def test_within_an_episode_each_transition_begins_where_the_last_one_ended(self, kind):
        seen, _, _, after = whole(kind).replay
        going_on = ~OVER[:-1]
        np.testing.assert_array_equal(seen[1:][going_on], after[:-1][going_on])
        assert OVER[:-1].sum() >= 2 * BODIES

    @KINDS
    def test_where_one_ends_the_next_begins_afresh(self, kind):
        """s' is the last state of the old episode, and s at rest anywhere, but for small deviations."""
        seen, _, _, after = whole(kind).replay
        fresh, last = seen[1:][OVER[:-1]], after[:-1][OVER[:-1]]
        assert simulator().arena.has_room(fresh[:, :2].astype(float)).all()
        assert np.abs(fresh[:, 2]).max() <= 0.1
        assert np.abs(fresh[:, 3:]).max() < 0.5
        assert np.abs(last[:, 3:5]).max() > 0.5, "bodies were moving when they were stopped"
        assert (np.abs(fresh[:, :2] - last[:, :2]).max(axis=1) > 1e-3).all()
        assert len(np.unique(fresh[:, :2], axis=0)) == len(fresh)
        # As the first ones do.
        assert np.abs(seen[0, :, 2]).max() <= 0.1
        np.testing.assert_array_equal(simulator().observe(whole(kind).kept.first.rows), seen[0])

    def test_rewards_are_those_of_arriving(self):
        seen, _, rewards, after = whole("fixed").replay
        for round_ in range(ROUNDS):
            np.testing.assert_array_equal(
                rewards[round_], nearness(seen[round_], after[round_]).astype(np.float32)
            )

    def test_rewards_of_a_phi_that_changes_are_not_kept(self):
        assert not whole("online").replay.rewards.any()

    @KINDS
    def test_it_is_handed_out_body_by_body_with_the_lengths_of_episodes(self, kind):
        run = whole(kind)
        for body in range(BODIES):
            np.testing.assert_array_equal(run.training.seen[body], run.replay.observations[:, body])
        assert run.training.lengths.tolist() == [n for each in TIMES[:-1].T for n in episodes(list(each))]


class TestActions:
    def test_at_first_they_are_uniformly_random(self):
        pushes = whole("fixed").replay.actions[:RANDOM].ravel()
        assert kstest(pushes, "uniform", args=(-1, 2)).pvalue > 1e-3
        assert (np.abs(pushes) < 1).all(), "nothing was cut off"

    @KINDS
    def test_then_they_are_the_policys_with_noise(self, kind):
        """As the policy was when the round began; where an episode is over, noise begins from nothing."""
        run, added = whole(kind), []
        for round_ in range(RANDOM + 1, ROUNDS):
            before, now, over = after(run.kept, round_ - 1), after(run.kept, round_), OVER[round_]
            seen = run.replay.observations[round_]
            np.testing.assert_array_equal(simulator().observe(before.rows), seen)
            meant = policy(before.learner.online.actor, seen)
            expected = np.clip(meant + now.noise, -1, 1)
            np.testing.assert_allclose(run.replay.actions[round_][~over], expected[~over], atol=1e-5)
            assert not now.noise[over].any()
            assert now.noise[~over].all()
            added.append(((now.noise - 0.85 * before.noise) / 0.2)[~over])
        assert kstest(np.concatenate(added).ravel(), "norm").pvalue > 1e-3
        pushes = run.replay.actions[RANDOM:]
        assert (np.abs(pushes) <= 1).all()

    def test_networks_standardise_like_what_was_seen_at_random(self):
        run = whole("fixed")
        seen = run.replay.observations[:RANDOM].reshape(-1, 6)
        actor, (critic,) = after(run.kept, ROUNDS - 1).learner.online
        for network in (actor, critic):
            np.testing.assert_allclose(network.shift[:6], seen.mean(axis=0), atol=1e-5)
            np.testing.assert_allclose(network.scale[:6], seen.std(axis=0), rtol=1e-4)
        np.testing.assert_array_equal(critic.shift[6:], [0, 0])
        np.testing.assert_array_equal(critic.scale[6:], [1, 1])


class TestPairs:
    def shown(self) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Round by round: which body, and the rounds that u begins and v ends."""
        run, found = whole("online"), []
        at_u: dict[bytes, tuple[int, int]] = {}
        at_v: dict[bytes, tuple[int, int]] = {}
        for round_ in range(ROUNDS):
            for body in range(BODIES):
                at_u[run.replay.observations[round_, body].tobytes()] = (round_, body)
                at_v[run.replay.next_observations[round_, body].tobytes()] = (round_, body)
        shown = run.reward.shown
        assert len(shown) == 2 * (1 + ROUNDS - RANDOM), "u and v, for each round and to compile"
        for number in range(1, len(shown) // 2):
            u, v = shown[2 * number : 2 * number + 2]
            assert u.shape == v.shape == (BODIES, 8, 6), "a batch of pairs for each update"
            begins = np.array([at_u[each.tobytes()] for each in u.reshape(-1, 6)])
            ends = np.array([at_v[each.tobytes()] for each in v.reshape(-1, 6)])
            np.testing.assert_array_equal(begins[:, 1], ends[:, 1])
            found.append((RANDOM + number - 1, begins[:, 1], begins[:, 0], ends[:, 0]))
        return found

    def test_are_of_one_episode_and_of_what_there_is(self):
        number = np.zeros((ROUNDS, BODIES), int)
        number[1:] = np.cumsum(OVER[:-1], axis=0)
        newest = []
        for round_, body, begin, end in self.shown():
            assert (begin <= end).all()
            assert (end <= round_).all()
            np.testing.assert_array_equal(number[begin, body], number[end, body])
            assert set(body) == set(range(BODIES))
            newest.append(end.max() == round_)
        assert np.mean(newest) > 0.5, "the round that was just taken is in it"

    def test_they_come_nearer_as_lam_is_annealed(self):
        """From λ = 0.9 to 0.01."""
        far = [np.mean(end > begin) for _, _, begin, end in self.shown()]
        assert np.mean(far[:4]) > 0.4
        assert np.mean(far[-2:]) < 0.2

    def test_phi_is_what_came_of_it(self):
        run = whole("online")
        assert isinstance(run.training.phi, MLP)
        final = after(run.kept, ROUNDS - 1).phi
        for one, other in zip(jax.tree.leaves(run.training.phi), jax.tree.leaves(final.encoder), strict=True):
            np.testing.assert_array_equal(one, other)
        first = online_phi().encoder.layers[0].weight
        assert np.abs(np.asarray(run.training.phi.layers[0].weight) - first).max() > 0.02
        assert whole("fixed").training.phi is None


def test_phi_takes_its_step_first_and_rewards_are_those_of_now():
    """The loss of one update, by hand, with φ as it is afterwards; the replay's rewards do not matter."""
    online, rng = online_phi(), np.random.default_rng(0)
    optimisers = ddpg.Optimisers(optax.adam(0.02), optax.adam(0.05))
    seen = rng.normal(size=(1, 8, 6)).astype(np.float32)
    after = seen + rng.normal(size=seen.shape).astype(np.float32)
    after[0, 0, :2] = GOAL
    actions = rng.uniform(-1, 1, (1, 8, 2)).astype(np.float32)
    batches = Transitions(seen, actions, np.full((1, 8), 1e3, np.float32), after)
    pairs = tuple(rng.normal(size=(2, 1, 8, 2)).astype(np.float32))
    specs = ddpg.network_specs(6, 2, (8,))
    start = ddpg.init_learner(specs, seen[0], optimisers, key=jax.random.key(0))
    learn = eqx.filter_jit(partial(ddpg_arena._learn, optimisers, 0.9, 0.1, 0.0, online))
    _, phi, metrics = learn(start, online.learner.init(online.encoder), batches, None, pairs)

    def loss(encoder: MLP) -> float:
        latent = through(encoder, after[0, :, :2]) - through(encoder, GOAL[None])
        away = np.linalg.norm(after[0, :, :2] - GOAL, axis=1) > 0.6
        rewards = -0.5 * np.linalg.norm(latent, axis=1) - 0.5 * away
        actor, (critic,) = start.target
        following = through(critic, np.hstack([after[0], policy(actor, after[0])]))[:, 0]
        values = through(critic, np.hstack([seen[0], actions[0]]))[:, 0]
        return np.mean((values - rewards - 0.9 * following) ** 2)

    assert float(metrics["critic/loss"]) == pytest.approx(loss(phi.encoder), rel=1e-4)
    assert loss(online.encoder) != pytest.approx(loss(phi.encoder), rel=5e-4), "it had taken a step"
    assert set(metrics) >= {"phi/loss", "critic/loss", "actor/loss"}


class TestRecords:
    COMMON = frozenset({"critic/loss", "critic/q", "critic/q_highest", "critic/q_bound", "actor/loss"}) | {
        *("actor/saturated",),
        *("success", "distance", "overturned", "step", "seconds"),
    }

    @KINDS
    def test_the_rows(self, kind):
        run = whole(kind)
        more = {"phi/loss", "phi/graph_drawing", "phi/penalty"} if kind == "online" else set()
        for row in run.kept.rows:
            assert set(row) == self.COMMON | more | {"steps_per_second"}
            assert all(np.isfinite(value) for value in row.values())
        assert [row["step"] for row in run.kept.rows] == list(range(4, 81, 4))
        assert (np.diff([row["seconds"] for row in run.kept.rows]) > 0).all()
        assert run.kept.calls[0] == (0, 80, {}), "before anything is compiled"
        assert run.kept.calls[1:] == [(row["step"], 80, row) for row in run.kept.rows]
        assert run.kept.last == [False] * 19 + [True]

    def test_q_stands_beside_what_no_return_exceeds(self):
        rewards = whole("fixed").replay.rewards
        for row in whole("fixed").kept.rows:
            seen = rewards[: RANDOM + row["step"] // BODIES]
            assert row["critic/q_bound"] == pytest.approx(10 * seen.max(), rel=1e-5)
            assert row["critic/q_highest"] >= row["critic/q"] - 1e-6
        assert {row["critic/q_bound"] for row in whole("online").kept.rows} == {0.0}

    def test_an_evaluation_is_of_the_policy_at_that_time(self):
        run = whole("fixed")
        for round_ in (RANDOM, 19, ROUNDS - 1):
            number = round_ - RANDOM
            actor = after(run.kept, round_).learner.online.actor
            tried = evaluate_policy(simulator(), partial(act_now, actor))
            row = run.kept.rows[number]
            assert row["success"] == run.training.success[number] == tried.reached.mean()
            assert row["distance"] == run.training.distance[number] == pytest.approx(tried.left.mean())
        assert len(set(run.training.distance)) > 10
        kept = after(run.kept, 19)
        assert np.isfinite(kept.distance[:10]).all()
        assert np.isnan(kept.distance[10:]).all()

    @KINDS
    def test_the_training(self, kind):
        training = whole(kind).training
        assert training.evaluated_at.tolist() == list(range(4, 81, 4))
        assert training.success.shape == training.distance.shape == (20,)
        assert training.seconds == whole(kind).kept.rows[-1]["seconds"] > 0
        assert training.compile_seconds > 0
        assert (training.spec.shape, training.spec.dim, training.spec.hidden) == ((6,), 2, (8,))
        actor = after(whole(kind).kept, ROUNDS - 1).learner.online.actor
        np.testing.assert_array_equal(training.actor.layers[0].weight, actor.layers[0].weight)


class TestBits:
    def test_the_same_seed_gives_the_same_however_often_it_is_evaluated(self):
        kept = Kept()
        training = trained("fixed", SELDOM, checkpoints=kept)
        assert training.evaluated_at.tolist() == [40, 80]
        assert training.success.tolist() == whole("fixed").training.success[[9, 19]].tolist()
        assert training.distance.tolist() == whole("fixed").training.distance[[9, 19]].tolist()
        for round_ in (19, 29):
            assert state_bytes(after(kept, round_)) == state_bytes(after(whole("fixed").kept, round_))

    def test_different_seeds_differ(self):
        kept = Kept()
        trained("fixed", dataclasses.replace(SELDOM, seed=1), checkpoints=kept)
        one, other = after(kept, 29), after(whole("fixed").kept, 29)
        for first, second in zip(one.replay, other.replay, strict=True):
            assert (first[0] != second[0]).all()
        first, second = (np.asarray(each.learner.online.actor.layers[0].bias) for each in (one, other))
        assert not np.isclose(first, second, atol=1e-3).any()

    def test_phi_learned_online_goes_on_to_the_same(self):
        cut = Kept(until=40)
        with pytest.raises(Interrupted):
            trained("online", SELDOM, checkpoints=cut)
        assert [step for _, step, _ in cut.states] == [40]
        before = state_bytes(cut.states[0][0])
        going_on = Kept(states=list(cut.states))
        training = trained("online", SELDOM, checkpoints=going_on)
        assert [row["step"] for row in going_on.rows] == [80]
        assert state_bytes(after(going_on, 29)) == state_bytes(after(whole("online").kept, 29))
        assert training.distance.tolist() == whole("online").training.distance[[9, 19]].tolist()
        assert state_bytes(cut.states[0][0]) == before, "what was kept is not written to"
        assert training.seconds > cut.states[0][2]

    def test_a_run_folder_goes_on_to_the_same(self, tmp_path, often):

        def stop(step, steps, row):
            if step:
                raise Interrupted

        with pytest.raises(Interrupted):
            trained("fixed", SELDOM, checkpoints=RunFolder(tmp_path), on_chunk=stop)
        assert [path.name for path in tmp_path.glob("checkpoint*")] == ["checkpoint-000000040.safetensors"]
        steps = []
        training = trained(
            "fixed", SELDOM, checkpoints=RunFolder(tmp_path), on_chunk=lambda step, *_: steps.append(step)
        )
        assert steps == [40, 80], "where it goes on from, and the rest"
        assert [row["step"] for row in RunFolder(tmp_path).metrics()] == [40, 80]
        tensors, _ = storage.read_tensors(tmp_path / "checkpoint-000000080.safetensors")
        expected = state_bytes(after(whole("fixed").kept, 29))
        assert {name: tensors[name].tobytes() for name in expected} == expected
        assert training.success.tolist() == whole("fixed").training.success[[9, 19]].tolist()
        np.testing.assert_array_equal(training.seen, whole("fixed").training.seen)


@pytest.fixture
def run_away(tmp_path, monkeypatch) -> Kept:
    """A run whose reward is no number, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    kept = Kept()
    with pytest.raises(NonFiniteError, match=r"step \d+;.*--critic-rate"):
        train_in_arena(simulator(), SELDOM, lambda *seen: nearness(*seen) * np.nan, checkpoints=kept)
    return kept


def test_values_that_run_away_are_not_kept_and_do_not_reach_the_simulator(run_away, tmp_path, capfd):
    """MuJoCo would complain of each push on standard error and in a file in the working directory."""
    assert (run_away.rows, run_away.states) == ([], [])
    assert list(tmp_path.iterdir()) == []
    assert "WARNING" not in capfd.readouterr().err
