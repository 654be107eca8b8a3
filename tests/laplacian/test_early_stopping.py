import dataclasses
import warnings

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import lapwing
from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, LapwingWarning
from lapwing.laplacian import choose as resolving
from lapwing.laplacian import train as learning
from lapwing.laplacian.chain import dense, empirical_chain
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.early_stopping import SCARCE_VISITS, held_out_stop, is_scarce
from lapwing.laplacian.evaluate import evaluate
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import embed_batch
from lapwing.laplacian.target import Target, open_target
from lapwing.laplacian.train import train
from lapwing.settings.learn import LearnSettings, ResolvedSettings

NETWORK = {"dim": 4, "hidden": (32,), "fourier_features": 32}
"""Small enough to learn in a moment."""
TRIAL = NETWORK | {"steps": 40, "learning_rate": 0.04, "schedule": "constant"}
"""A trial whose best step is neither the first nor the last."""


def target_of(source, **settings) -> Target:
    return open_target(source, LearnSettings.from_keywords(settings))


def resolved(target: Target, **settings) -> ResolvedSettings:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        return resolve(LearnSettings.from_keywords(settings), target)


def visits(states: int, transitions: int, episodes: int) -> Target:
    """A target in which every one of `states` ids occurs and there are just so many transitions."""
    lengths = np.full(episodes, 2)
    lengths[-1] = transitions - (episodes - 1) + 1
    ids = np.arange(lengths.sum()) % states
    return Target("visits", Experience(ids, lengths), states=np.arange(states))


class Kept:
    """`Checkpoints` in memory."""

    def __init__(self):
        self.states = {}

    def restore(self, like):
        return None

    def record(self, row):
        pass

    def keep(self, state, step, seconds, *, last):
        self.states[step] = state

    def leaves(self, step: int) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self.states[step]) if eqx.is_array(leaf)]


@pytest.fixture(scope="module")
def scarce() -> Target:
    """A thousand transitions of FourRoom: some seven for each state."""
    return target_of("FourRoom", transitions=1_000)


@pytest.fixture
def no_trial(monkeypatch):
    """A trial is a failure of the test."""
    monkeypatch.setattr(resolving, "held_out_stop", lambda *_: pytest.fail("a trial was made"))


def test_data_is_scarce_just_below_so_many_transitions_a_state():
    assert is_scarce(visits(6, 6 * SCARCE_VISITS - 1, 5))
    assert not is_scarce(visits(6, 6 * SCARCE_VISITS, 5))


def test_only_states_that_were_seen_count():
    walked = visits(6, 6 * SCARCE_VISITS, 5)
    more = dataclasses.replace(walked, states=np.arange(1_000))
    assert not is_scarce(more)


def test_one_episode_is_scarce_but_cannot_be_split_so_there_is_no_trial():
    target = target_of("FourRoom", transitions=500, episode_length=500)
    assert is_scarce(target)
    trials = []
    with pytest.warns(LapwingWarning, match="never visited"):
        found = resolve(LearnSettings(dim=3), target, on_trial=lambda *chunk: trials.append(chunk))
    assert not trials
    assert found.stop == found.steps


def test_a_true_chain_and_continuous_states_are_not_scarce():
    assert not is_scarce(target_of("FourRoom", true_chain=True))
    continuous = Experience(np.random.default_rng(0).standard_normal((40, 2)), [20, 20])
    assert not is_scarce(target_of(continuous))


def as_lists(experience: Experience) -> list[list[int]]:
    ends = np.cumsum(experience.lengths)
    return [list(part) for part in np.split(experience.observations, ends[:-1])]


@given(st.lists(st.integers(2, 5), min_size=2, max_size=12), st.integers(2, 4))
def test_what_is_held_out_and_the_rest_are_all_episodes_once(lengths, folds):
    experience = Experience(np.arange(sum(lengths)), lengths)  # all different: each can be recognised
    target = Target("tagged", experience, states=np.arange(len(experience.observations)))
    rest, held_out = target.folded(folds)
    assert rest.experience is not None
    kept, left = as_lists(rest.experience), as_lists(held_out)
    assert left == as_lists(experience)[::folds]
    assert sorted(kept + left) == sorted(as_lists(experience))


def test_the_rest_knows_nothing_of_what_is_held_out(scarce):
    """Neither its chain nor its eigenpairs are those of all the data, though these were computed before."""
    whole, _ = scarce.eigenpairs(4)
    rest, held_out = scarce.folded(4)
    assert len(rest.experience.lengths) == 15
    assert len(held_out.lengths) == 5
    alone = Target("rest", rest.experience, states=scarce.states)
    np.testing.assert_array_equal(rest.one_step.rho, alone.one_step.rho)
    assert not np.array_equal(rest.eigenpairs(4)[0], whole)


def test_the_truth_is_not_looked_at(scarce):
    settings = resolved(scarce, **TRIAL)
    blind = dataclasses.replace(scarce, world=None)
    assert held_out_stop(blind, settings) == held_out_stop(scarce, settings)


@pytest.mark.parametrize(("transitions", "dim"), [(60, 20), (100, 1)])
def test_there_is_a_stop_however_scarce_the_data(transitions, dim):
    """Two episodes; more dimensions than one of them can tell apart, or a single one."""
    target = target_of("FourRoom", transitions=transitions)
    settings = resolved(target, **(NETWORK | {"dim": dim, "steps": 10}))
    assert 1 <= held_out_stop(target, settings) <= 10


def test_the_stop_is_where_the_held_out_objective_is_lowest(scarce):
    """After each step by another route to the same objective."""
    settings = resolved(scarce, **TRIAL)
    rest, held_out = scarce.folded(4)
    kept, objectives = Kept(), {}
    train(rest, settings, checkpoints=kept)
    for step, state in kept.states.items():
        phi = np.asarray(embed_batch(state.encoder, scarce.states), np.float64)
        objectives[step] = held_out_objective(phi, rest, held_out, scarce, settings.dim)
    lowest = min(objectives, key=lambda step: objectives[step])
    assert len(objectives) == 40
    assert 1 < lowest < 40
    assert held_out_stop(scarce, settings) == lowest


def test_a_trial_ends_when_its_best_step_is_long_past(scarce):
    """With a constant step size the first steps are the same, however many were to come."""
    short, long, steps = resolved(scarce, **TRIAL), resolved(scarce, **(TRIAL | {"steps": 100})), []
    stop = held_out_stop(scarce, long, lambda step, *_: steps.append(step))
    assert stop == held_out_stop(scarce, short)
    assert stop < max(steps) < 100


def joint(experience: Experience) -> np.ndarray:
    """The chain of an experience, a symmetric joint distribution of pairs."""
    return dense(empirical_chain(experience).weights)


def held_out_objective(phi, rest: Target, held_out: Experience, whole: Target, dim: int) -> float:
    """Σ fᵀ(D - W)f over the held-out pairs, f the first eigenfunctions in the span of φ and the constant.

    They are found by the generalised eigenproblem itself, and made orthonormal over all the data by Cholesky.
    """
    functions = np.hstack([np.ones((len(phi), 1)), phi])
    learned, unseen, share = joint(rest.experience), joint(held_out), joint(whole.experience).sum(axis=1)
    second = functions.T @ (learned.sum(axis=1)[:, None] * functions)
    energy = functions.T @ (np.diag(learned.sum(axis=1)) - learned) @ functions
    functions = functions @ scipy.linalg.eigh(energy, second)[1][:, :dim]
    root = np.linalg.cholesky(functions.T @ (share[:, None] * functions))
    functions = np.linalg.solve(root, functions.T).T
    return sum(f @ (np.diag(unseen.sum(axis=1)) - unseen) @ f for f in functions.T)


def test_scarce_data_is_tried_out_and_the_settings_say_where_to_stop(scarce, monkeypatch):
    monkeypatch.setattr(resolving, "held_out_stop", lambda target, settings, on_chunk: 7)
    settings = resolved(scarce, **NETWORK)
    assert (settings.steps, settings.stop) == (1_000, 7)


@pytest.mark.parametrize(
    ("given", "steps", "stop"),
    [({"steps": 50}, 50, 50), ({"stop": 50}, 1_000, 50), ({"steps": 50, "stop": 20}, 50, 20)],
)
def test_steps_or_a_stop_that_are_given_need_no_trial(scarce, no_trial, given, steps, stop):
    settings = resolved(scarce, **NETWORK, **given)
    assert (settings.steps, settings.stop) == (steps, stop)


@pytest.mark.parametrize(
    "given",
    [
        {"true_chain": True},
        {"transitions": 152 * SCARCE_VISITS},
        {"transitions": 1_000, "preset": "paper", "dim": 4},
        {"transitions": 1_000, "estimator": "pairwise", "dim": 4},
        {"transitions": 1_000, "observation": "index", "dim": 4},  # a table does no better than the counts
    ],
    ids=str,
)
def test_what_is_not_tried_out(no_trial, given):
    settings = resolved(target_of("FourRoom", **given), **given)
    assert settings.stop == settings.steps


def test_a_stop_after_the_last_step_is_refused(scarce):
    with pytest.raises(ConfigError, match=r"stop.* 50 .* 51"):
        resolved(scarce, steps=50, stop=51)
    with pytest.raises(ConfigError, match=r"stop.* 1,000 .* 2,000"):
        resolved(scarce, stop=2_000)


def test_a_trial_is_told_of(scarce, monkeypatch):
    monkeypatch.setattr(resolving, "_steps", lambda *_: 12)
    phases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        lapwing.learn(
            "FourRoom",
            transitions=1_000,
            on_progress=lambda phase, done, total, _: phases.append((phase, done, total)),
            **NETWORK,
        )
    told = [call for call in phases if call[0] == "trying out"]
    assert list(dict.fromkeys(told)) == [("trying out", step, 12) for step in range(13)]
    assert phases.index(("trying out", 12, 12)) < min(
        number for number, call in enumerate(phases) if call[0] == "learning"
    )


def test_stopping_gives_the_bits_that_the_long_run_has_at_that_step(scarce, monkeypatch):
    """The step size follows the schedule of all the steps, however they are cut into chunks."""
    settings, long, kept = resolved(scarce, steps=400, **NETWORK), Kept(), {}
    with monkeypatch.context() as patch:
        patch.setattr(learning, "CHUNKS", 400)
        train(scarce, settings, checkpoints=long)
    for stop in (1, 6, 250):
        kept[stop] = Kept()
        train(scarce, dataclasses.replace(settings, stop=stop), checkpoints=kept[stop])
        assert max(kept[stop].states) == stop
        for expected, found in zip(long.leaves(stop), kept[stop].leaves(stop), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert sorted(kept[6].states) == [4, 6]


@pytest.mark.slow
def test_where_data_is_scarce_stopping_is_better_than_learning_to_the_end(scarce):
    gaps = {}
    for steps in (None, 1_000):
        settings = LearnSettings.from_keywords({"transitions": 1_000, "seed": 0, "steps": steps})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LapwingWarning)
            representation = learn_target(scarce, settings)
        gaps[steps] = evaluate(representation, scarce)["gap"]
    assert gaps[None] / gaps[1_000] < 0.7
