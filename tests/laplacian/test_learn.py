"""What a representation is assembled from, and that nothing else stays behind.

The size of a step is held against all steps of the data and against `GoalReward.in_steps`.
"""

import dataclasses
import gc

import gymnasium
import jax
import numpy as np
import pytest

import lapwing
from lapwing.data.experience import Experience
from lapwing.errors import LapwingWarning
from lapwing.laplacian.choose import resolve
from lapwing.laplacian.learn import represent
from lapwing.laplacian.target import Target
from lapwing.laplacian.train import encoder_spec, untrained_encoder
from lapwing.settings.learn import LearnSettings
from lapwing.shaping.rewards import Goal, GoalReward

TINY = {"dim": 3, "steps": 2, "hidden": (8,), "fourier_features": 8, "batch": 8}


@pytest.mark.parametrize("rotate", [True, False])
def test_held_out_episodes_have_no_part_in_coefficients(rotate):
    """Not even where they show that φ is over-fitted."""
    numbers = Experience(np.repeat(np.arange(20), 20)[:, None].astype(np.float32), [20] * 20)
    held_out = np.unique(numbers.split(0.2)[1].observations).astype(int)
    walks = np.random.default_rng(0).normal(0, 0.1, (20, 20, 2)).cumsum(axis=1).astype(np.float32)
    target = Target("walks", Experience.from_episodes(walks), held_out=0.2)
    walks[held_out] = np.random.default_rng(1).normal(0, 3, (len(held_out), 20, 2))
    other = dataclasses.replace(target, experience=Experience.from_episodes(walks))
    settings = resolve(LearnSettings.from_keywords(TINY | {"rotate": rotate}), target)
    encoder, spec = untrained_encoder(target, settings), encoder_spec(target, settings)
    first, second = (represent(each, settings, encoder, spec) for each in (target, other))
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    np.testing.assert_array_equal(first.eigenvalues, second.eigenvalues)
    assert first.config["fitted_on_held_out"] is False


@pytest.mark.parametrize("source", ["PlaneFourRoom", "TwoRoom"])
def test_neither_programs_nor_arrays_stay_behind(source):
    """A program in a cache of JAX, with the arrays that it closes over, would stay for good."""

    def living(seed: int) -> tuple[int, int]:
        lapwing.learn(source, transitions=10_000, seed=seed, **TINY)
        gc.collect()
        return len(jax.local_devices()[0].client.live_executables()), len(jax.live_arrays())

    living(seed=0)
    assert living(seed=1) == living(seed=2)


class Corridor(gymnasium.Env):
    """A point that goes a fixed way to the left or to the right."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = self.np_random.random(2), 0
        return self.at.astype(np.float32), {}

    def step(self, action):
        self.at = np.clip(self.at + 0.1 * np.asarray(action), 0, 1)
        self.steps += 1
        return self.at.astype(np.float32), 0.0, False, self.steps == 50, {}


@pytest.fixture(scope="module")
def corridor():
    experience = lapwing.collect(Corridor(), 4_000, seed=0)
    return experience, lapwing.learn(experience, dim=4)


def test_of_continuous_vectors_it_is_the_median_step(corridor):
    experience, rep = corridor
    here = experience.transitions(np.arange(experience.n_transitions))
    lengths = np.linalg.norm(experience.observe(here + 1) - experience.observe(here), axis=1)
    assert rep.config["step"]["observation"] == pytest.approx(np.median(lengths[lengths > 0]), rel=0.1)


def test_enumerated_states_have_none(four_room):
    assert four_room.config["step"]["observation"] is None
    assert set(four_room.config["step"]["distance"]) == {"soft", "unit", "commute", "biharmonic", "heat"}


def test_in_the_embedding_it_is_what_counting_in_steps_finds(corridor):
    """In the mean over goals, as `in_steps` finds it for each of them."""
    experience, rep = corridor
    here = experience.transitions(np.arange(experience.n_transitions))
    ends = experience.observe(here), experience.observe(here + 1)
    for name, step in rep.config["step"]["distance"].items():
        found = [
            1 / GoalReward("potential", Goal(goal), rep, name, gamma=0.9).in_steps(*ends).scale
            for goal in ends[0][::200]
        ]
        assert step == pytest.approx(np.mean(found), rel=0.2)


def test_it_is_kept_in_the_file(corridor, tmp_path):
    rep = corridor[1]
    rep.save(tmp_path / "rep.safetensors")
    assert lapwing.load(tmp_path / "rep.safetensors").config["step"] == rep.config["step"]


def test_a_goal_of_a_wrapped_environment_is_reached_within_a_step(corridor):
    rep = corridor[1]
    goal = np.array([0.5, 0.5], np.float32)
    env = lapwing.LaplacianReward(Corridor(), rep, goal, form="mix")
    env.reset(seed=0)
    env.action_space.seed(0)
    reached = []
    for _ in range(1_000):
        seen, _, _, _, info = env.step(env.action_space.sample())
        near = np.linalg.norm(seen - goal) <= rep.config["step"]["observation"]
        assert info["goal_reached"] == near
        reached.append(near)
    assert 0 < np.mean(reached) < 0.5


def test_the_true_chain_has_the_steps_of_its_experience():
    small = {"dim": 3, "steps": 200, "hidden": (32,), "fourier_features": 32}
    exact = lapwing.learn("TwoRoom", true_chain=True, **small).config["step"]
    seen = lapwing.learn("TwoRoom", transitions=20_000, **small).config["step"]
    assert exact["observation"] is None
    for name, step in seen["distance"].items():
        # Two networks, learned apart and briefly: their mean steps are alike, not equal.
        assert step / 2 < exact["distance"][name] < 2 * step


def test_an_online_representation_has_them_too(corridor):
    experience, rep = corridor
    learner = lapwing.OnlineLearner(4, lam=0.5, lam_final=0.5, steps=60, hidden=(32,))
    learner.update(experience.observe(np.arange(begin, begin + 51)) for begin in range(0, 51 * 40, 51))
    step = learner.representation.config["step"]
    assert step["observation"] == pytest.approx(rep.config["step"]["observation"], rel=0.1)
    assert set(step["distance"]) == {"soft", "unit", "commute", "biharmonic", "heat"}


def test_features_that_stay_the_same_in_an_episode_are_named():
    rng = np.random.default_rng(0)
    moving, goals = rng.random((400, 1)), np.repeat(rng.random((20, 1)), 20, axis=0)
    with pytest.warns(LapwingWarning, match=r"1 of 2 features \(1,"):
        lapwing.learn(Experience(np.hstack([moving, goals]), [20] * 20), dim=3, trials=1)
