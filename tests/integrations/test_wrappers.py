"""φ in the step of an environment: as its reward, held against `GoalReward`, and in what an agent sees."""

import dataclasses
import subprocess
import sys
import warnings
from collections.abc import Iterator

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from lapwing.errors import ConfigError
from lapwing.integrations.wrappers import LaplacianObservation, LaplacianReward
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.shaping.rewards import FORMS, SHAPED_BY_PHI, Goal, GoalReward
from tests.support.environments import Asked, Seeker, Sight, restless
from tests.support.representations import answer, assert_same, random_representation
from tests.support.rounding import to_rounding
from tests.support.wrapped import GAMMA, REPRESENTATIONS, SEEKER_SPECS, SPECS, TABLES, WORLD

pytestmark = pytest.mark.numeric

GOAL_STATE = 40


@pytest.fixture(params=list(SPECS))
def kind(request) -> str:
    return request.param


def whole_state(kind: str, state: int = GOAL_STATE) -> Goal:
    """The same goal as `TABLES[kind][state]` is, as `GoalReward` takes it."""
    seen = TABLES[kind][state]
    if kind == "position":
        return Goal(seen)
    if kind == "index":
        return Goal(np.array([float(state)]), h=lambda s: np.asarray(s)[..., None], state=seen)
    return Goal(seen.ravel().astype(float), h=lambda s: s.reshape(*s.shape[:-3], -1), state=seen)


@dataclasses.dataclass
class Walked:
    """Steps of a random walk through several episodes."""

    here: np.ndarray
    there: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    infos: list[dict]

    def episodes(self) -> Iterator["Walked"]:
        """Those that came to an end."""
        ends = np.flatnonzero(self.terminated | self.truncated)
        for begin, end in zip([0, *(ends[:-1] + 1)], ends, strict=True):
            part = slice(begin, end + 1)
            yield Walked(*(getattr(self, field.name)[part] for field in dataclasses.fields(self)))


def walk(env: gymnasium.Env, steps: int = 120, seed: int = 0, **options) -> Walked:
    """Random steps; `options` are those of the first reset."""
    rng = np.random.default_rng(seed)
    here, _ = env.reset(seed=seed, options=options or None)
    rows: list[tuple] = []
    for _ in range(steps):
        there, reward, terminated, truncated, info = env.step(int(rng.integers(4)))
        rows.append((here, there, reward, terminated, truncated, info))
        here = env.reset()[0] if terminated or truncated else there
    here, there, rewards, terminated, truncated, infos = zip(*rows, strict=True)
    return Walked(*map(np.array, (here, there, rewards, terminated, truncated)), list(infos))


@pytest.mark.parametrize("form", FORMS)
def test_rewards_are_those_of_goal_reward(kind, form):
    """Step by step in NumPy what JAX gives for all steps at once, where episodes end in either way."""
    rep, table, goal = REPRESENTATIONS[kind], TABLES[kind], TABLES[kind][GOAL_STATE]
    scale = 1 / float(np.mean(rep.distance(table, goal, "commute")))
    shaping = {"form": form, "gamma": GAMMA, "scale": scale, "reward_scale": 0.25}
    went = walk(LaplacianReward(restless(kind), rep, goal, **shaping))
    assert went.terminated.any()
    assert went.truncated.any()
    oracle = GoalReward(form, whole_state(kind), rep, "commute", GAMMA, scale)
    expected = oracle(went.here, went.there, went.terminated)
    np.testing.assert_allclose(4 * went.rewards, expected, rtol=1e-5, atol=1e-4)
    assert all(type(info["goal_distance"]) is float for info in went.infos)
    to = oracle.distances(went.there)
    distances = to.latent if form in SHAPED_BY_PHI else to.raw
    np.testing.assert_allclose(
        [info["goal_distance"] for info in went.infos], distances, rtol=1e-5, atol=1e-4
    )
    assert [info["goal_reached"] for info in went.infos] == to.reached.tolist()
    assert [info["env_reward"] for info in went.infos] == [info["state"] / 10 for info in went.infos]
    assert {"state", "cell"} < set(went.infos[0]), "what the environment says stays"


@pytest.mark.parametrize("form", FORMS)
def test_the_learned_distance_of_a_learned_representation(form, four_room):
    """With no scale given its mean is 1, whatever the filter; of a potential, its mean change by a step."""
    goal = np.array([-0.5, 0.5], np.float32)
    env = gymnasium.make("lapwing/FourRoom-v0")
    kemeny = np.sum(1 / four_room.eigenvalues[1:])
    for filter in ("soft", "unit", "commute", "biharmonic", "heat", "hitting"):
        went = walk(LaplacianReward(env, four_room, goal, form=form, gamma=GAMMA, filter=filter), 60)
        unit = four_room.soft_distance if filter != "hitting" else kemeny
        if form == "potential":
            steps = four_room.config["step"]["distance"]
            unit = steps[filter] if filter != "hitting" else np.sqrt(2 * kemeny)
        oracle = GoalReward(form, Goal(goal), four_room, filter, GAMMA, 1 / unit)
        np.testing.assert_allclose(went.rewards, oracle(went.here, went.there), atol=1e-4)
    if form not in SHAPED_BY_PHI:
        without = walk(LaplacianReward(env, goal=goal, form=form), 60)
        np.testing.assert_array_equal(went.rewards, without.rewards)


def test_shaping_by_a_potential_telescopes(kind):
    """Σ γ^t r_t = Σ γ^t sparse_t + γ^T Φ(s_T) - Φ(s_0); Φ(s_T) is 0 after an end, not after a time limit."""
    rep, table = REPRESENTATIONS[kind], TABLES[kind]
    env = LaplacianReward(restless(kind), rep, table[GOAL_STATE], form="potential", gamma=GAMMA)
    potential = -np.asarray(rep.distance(table, table[GOAL_STATE], "commute"), np.float64)
    kinds = set()
    for episode in walk(env).episodes():
        states = [info["state"] for info in episode.infos]
        discount = GAMMA ** np.arange(len(states))
        sparse = np.array([0.0 if state == GOAL_STATE else -1.0 for state in states])
        first = potential[np.flatnonzero((table == episode.here[0]).reshape(len(table), -1).all(1))[0]]
        last = 0.0 if episode.terminated[-1] else GAMMA ** len(states) * potential[states[-1]]
        expected = discount @ sparse + last - first
        assert discount @ episode.rewards == to_rounding(expected, discount.sum() * potential)
        kinds.add(bool(episode.terminated[-1]))
    assert kinds == {True, False}


def test_the_reward_of_the_environment_can_be_kept():
    rep, table = REPRESENTATIONS["position"], TABLES["position"]
    goal = table[GOAL_STATE]
    for form in ("sparse", "rawmix", "mix", "potential"):
        env = LaplacianReward(restless(), rep, goal, form=form, gamma=GAMMA, keep_reward=True)
        went = walk(env, 40)
        own = np.array([info["state"] / 10 for info in went.infos])
        here, there = (np.asarray(rep.distance(at, goal, "commute")) for at in (went.here, went.there))
        raw = np.linalg.norm(went.there - goal, axis=1)
        going_on = np.where(went.terminated, 0.0, GAMMA)
        expected = {
            "sparse": own,
            "rawmix": (own - raw) / 2,
            "mix": (own - there) / 2,
            "potential": own - going_on * there + here,
        }
        np.testing.assert_allclose(went.rewards, expected[form], rtol=1e-5, atol=1e-4)


def test_the_radius_is_how_near_is_there():
    goal = TABLES["position"][GOAL_STATE]
    went = walk(LaplacianReward(restless(), goal=goal, form="sparse", radius=0.7))
    away = np.linalg.norm(went.there - goal, axis=1)
    np.testing.assert_array_equal(went.rewards, np.where(away <= 0.7, 0.0, -1.0))
    assert 5 < (away <= 0.7).sum() < 115


def test_a_reset_can_bring_another_goal(kind):
    rep, table = REPRESENTATIONS[kind], TABLES[kind]
    env = LaplacianReward(restless(kind), rep, table[GOAL_STATE], form="potential", gamma=GAMMA)
    for state in (3, 60):
        given = table[state] if kind != "index" else int(state)
        fresh = LaplacianReward(restless(kind), rep, table[state], form="potential", gamma=GAMMA)
        # walk() resets without a goal after the first episode: the goal stays.
        np.testing.assert_array_equal(walk(env, goal=given).rewards, walk(fresh).rewards)
    before = walk(env).rewards
    np.testing.assert_array_equal(before, walk(fresh).rewards)


def column_of(positions):
    return positions[..., 1:]


def test_a_goal_in_a_space_of_its_own():
    """Given at first or by a reset; then an observation again, with the radius of observations."""
    rep, table = REPRESENTATIONS["position"], TABLES["position"]
    goal = Goal(table[7, 1:], radius=0.3, h=column_of, state=table[7])
    plain = {"form": "mix", "filter": "soft"}
    first = LaplacianReward(restless(), rep, goal, **plain)
    later = LaplacianReward(restless(), rep, table[GOAL_STATE], **plain)
    oracle = GoalReward("mix", goal, rep, "soft")
    for went in (walk(first), walk(later, goal=goal)):
        np.testing.assert_allclose(went.rewards, oracle(went.here, went.there), atol=1e-4)
        assert [info["goal_reached"] for info in went.infos] == (
            np.abs(went.there[:, 1] - table[7, 1]) <= 0.3
        ).tolist()
    again = walk(later, goal=table[GOAL_STATE])
    oracle = GoalReward("mix", Goal(table[GOAL_STATE]), rep, "soft")
    np.testing.assert_allclose(again.rewards, oracle(again.here, again.there), atol=1e-4)


def test_other_options_reach_the_environment():
    asked = Asked(restless())
    env = LaplacianReward(asked, goal=TABLES["position"][GOAL_STATE], form="sparse")
    options = {"goal": TABLES["position"][3], "cell": tuple(map(int, WORLD.cells[9]))}
    kept = dict(options)
    observation, info = env.reset(seed=0, options=options)
    assert info["state"] == 9
    np.testing.assert_array_equal(observation, TABLES["position"][9])
    assert options.keys() == kept.keys()
    env.reset(options={"goal": TABLES["position"][3]})
    env.reset(options={"cell": kept["cell"]})
    env.reset()
    assert asked.asked == [{"cell": kept["cell"]}, None, {"cell": kept["cell"]}, None]


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("form", ["l2", "laplacian", "potential"])
def test_the_desired_goal_is_followed(discrete, form):
    """Each end of a step is held against the goal that was there: Φ(s, g)."""
    rep, start = random_representation(SEEKER_SPECS[discrete]), 1 if discrete else 0
    env = LaplacianReward(gymnasium.wrappers.TimeLimit(Seeker(discrete), 6), rep, form=form, gamma=GAMMA)
    went = walk(env, 80)

    def distance(observations, form: str) -> np.ndarray:
        at, goal = (
            np.array([seen[part] for seen in observations]) - start
            for part in ("achieved_goal", "desired_goal")
        )
        if form == "l2":
            return np.abs(at - goal) if discrete else np.linalg.norm(at - goal, axis=1)
        return np.asarray(rep.distance(at, goal, "commute"))

    there = distance(went.there, form)
    if form == "potential":
        expected = -1 - np.where(went.terminated, 0, GAMMA) * there + distance(went.here, form)
        far = [not info["goal_reached"] for info in went.infos]
        np.testing.assert_allclose(went.rewards[far], expected[far], rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_allclose(went.rewards, -there, rtol=1e-4, atol=1e-4)
    assert len({str(seen["desired_goal"]) for seen in went.there}) > 5


def test_where_the_goal_is_followed_the_option_is_the_environments():
    env = LaplacianReward(Seeker(), form="l2")
    goal = np.array([100.0, 0.0])
    observation, _ = env.reset(seed=0, options={"goal": goal})
    np.testing.assert_array_equal(observation["desired_goal"], goal)
    observation, reward, *_ = env.step(0)
    assert reward == pytest.approx(
        -np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"]), rel=1e-5
    )


def test_a_goal_environment_can_be_given_a_goal_of_ours():
    rep = random_representation(SEEKER_SPECS[False])
    goal = np.array([1.0, 2.0])
    for given in (goal, {"achieved_goal": goal}):
        env = LaplacianReward(Seeker(), rep, given, form="laplacian", observation_key="achieved_goal")
        went = walk(env, 10)
        at = np.array([seen["achieved_goal"] for seen in went.there])
        assert went.rewards == to_rounding(-rep.distance(at, goal, "commute"))


def test_an_arena_is_followed():
    """The real goal environment, whose own reward is the sparse one at its own radius."""
    rep = REPRESENTATIONS["position"]
    env = gymnasium.make("lapwing/PointUMaze-v0", max_episode_steps=20)
    radius = env.unwrapped.arena.goal_radius
    rng = np.random.default_rng(0)
    shaped = LaplacianReward(env, rep, form="mix", radius=radius)
    observation, _ = shaped.reset(seed=0)
    for _ in range(20):
        observation, reward, _, truncated, info = shaped.step(rng.uniform(-1, 1, 2).astype(np.float32))
        away = rep.distance(observation["achieved_goal"], observation["desired_goal"], "commute")
        assert reward == pytest.approx(-0.5 * away + 0.5 * info["env_reward"], rel=1e-4, abs=1e-4)
        assert info["goal_reached"] == info["success"]
    assert truncated


class Rewarded(Seeker):
    """One that computes its own reward of goals, as goal environments do."""

    def step(self, action):
        observation, _, *ends = super().step(action)
        return observation, self.compute_reward(*observation.values(), {}), *ends

    def compute_reward(self, achieved_goal, desired_goal, info):
        away = np.asarray(achieved_goal, float) - np.asarray(desired_goal, float)
        return -3.0 * np.abs(away if isinstance(self.place, spaces.Discrete) else away[..., 0])


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(
    ("form", "keep_reward"),
    [(form, False) for form in FORMS if form != "potential"]
    + [("sparse", True), ("rawmix", True), ("mix", True)],
)
def test_hindsight_gives_the_rewards_that_steps_had(discrete, form, keep_reward):
    rep = random_representation(SEEKER_SPECS[discrete])
    env = LaplacianReward(
        Rewarded(discrete), rep, form=form, reward_scale=2.0, keep_reward=keep_reward, radius=4.0
    )
    went = walk(env, 60)
    at, goals = (np.array([seen[part] for seen in went.there]) for part in ("achieved_goal", "desired_goal"))
    np.testing.assert_allclose(env.compute_reward(at, goals, {}), went.rewards, rtol=1e-4, atol=1e-4)
    one = env.compute_reward(at[3], goals[3], {})
    assert np.shape(one) == ()
    assert one == to_rounding(went.rewards[3], went.rewards)


def test_hindsight_that_cannot_be_had_is_refused():
    rep, goal = random_representation(SEEKER_SPECS[False]), np.zeros(2)
    shaped = LaplacianReward(Rewarded(), rep, form="potential", gamma=GAMMA)
    with pytest.raises(ConfigError, match=r"'potential'.* mix"):
        shaped.compute_reward(goal, goal, {})
    fixed = LaplacianReward(Rewarded(), rep, goal, observation_key="achieved_goal")
    with pytest.raises(ConfigError, match="desired_goal"):
        fixed.compute_reward(goal, goal, {})


WRAPPED = (
    "The environment ({}) is different from the unwrapped version ({}). This could effect the environment "
    "checker as the environment most likely has a wrapper applied to it. We recommend using the raw "
    "environment for `check_env` using `env.unwrapped`."
)
UNBOUNDED = [
    f"A Box observation space {which} value is {what}infinity. This is probably too {how}."
    for which, what, how in (("minimum", "-", "low"), ("maximum", "", "high"))
]


def warned_of(env: gymnasium.Env) -> list[str]:
    """What Gymnasium's checker warns of, but that the environment is wrapped."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env, skip_render_check=True)
    said = [str(one.message).removeprefix("\033[33mWARN: ").removesuffix("\033[0m") for one in caught]
    wrapped = WRAPPED.format(env, env.unwrapped)
    assert wrapped in said
    return [message for message in said if message != wrapped]


def test_gymnasium_finds_nothing_to_complain_of(kind):
    env = gymnasium.make("lapwing/TwoRoom-v0", observation=kind)
    goal, rep = TABLES[kind][GOAL_STATE], REPRESENTATIONS[kind]
    assert warned_of(LaplacianReward(env, rep, goal, form="potential", gamma=GAMMA)) == []
    for append in (False, True):
        assert set(warned_of(LaplacianObservation(env, rep, append=append))) <= set(UNBOUNDED)


def test_the_spec_makes_the_same_environment_again(kind):
    env = gymnasium.make("lapwing/TwoRoom-v0", observation=kind)
    shaping = {"form": "potential", "gamma": GAMMA, "filter": "heat", "scale": 2.0, "reward_scale": 0.5}
    env = LaplacianReward(env, REPRESENTATIONS[kind], TABLES[kind][GOAL_STATE], **shaping)
    again = gymnasium.make(env.spec)
    assert isinstance(again, LaplacianReward)
    np.testing.assert_array_equal(walk(env, 60).rewards, walk(again, 60).rewards)
    env = LaplacianObservation(env, REPRESENTATIONS[kind], what="heat", append=False)
    again = gymnasium.make(env.spec)
    assert again.observation_space == env.observation_space
    first, second = walk(env, 30), walk(again, 30)
    np.testing.assert_array_equal(first.there, second.there)
    np.testing.assert_array_equal(first.rewards, second.rewards)


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_the_spec_goes_through_json(kind, as_path, tmp_path):
    """With a path for the representation and a list, or a number, as goal; images are lists of bytes."""
    file = tmp_path / "phi.safetensors"
    REPRESENTATIONS[kind].save(file)
    env = gymnasium.make("lapwing/TwoRoom-v0", observation=kind)
    env = LaplacianReward(env, as_path(file), TABLES[kind][GOAL_STATE].tolist(), form="mix")
    env = LaplacianObservation(env, as_path(file), append=False)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    first, second = walk(env, 60), walk(again, 60)
    np.testing.assert_array_equal(first.rewards, second.rewards)
    np.testing.assert_array_equal(first.there, second.there)
    direct = gymnasium.make("lapwing/TwoRoom-v0", observation=kind)
    direct = LaplacianReward(direct, REPRESENTATIONS[kind], TABLES[kind][GOAL_STATE], form="mix")
    np.testing.assert_array_equal(first.rewards, walk(direct, 60).rewards)


def test_what_does_not_fit_is_refused():
    env, goal = restless(), TABLES["position"][GOAL_STATE]
    rep, other = REPRESENTATIONS["position"], REPRESENTATIONS["image"]
    for words, given, kwargs in [
        ("goal", (rep,), {}),
        ("'potential'.* representation", (None, goal), {}),
        ("gamma.* 1.5", (rep, goal), {"gamma": 1.5}),
        ("radius", (rep, goal), {"radius": -0.1}),
        (r"gives \(2,\)", (other, goal), {}),
        ("reward_scale.* 0.0", (rep, goal), {"reward_scale": 0.0}),
        ("reward_scale.* nan", (rep, goal), {"reward_scale": np.nan}),
    ]:
        with pytest.raises(ConfigError, match=words):
            LaplacianReward(env, *given, **kwargs)
    with pytest.raises(ConfigError, match=r"gives \(2,\)"):
        LaplacianObservation(env, other)
    with pytest.raises(ConfigError, match=r"goal.*\(3,\)"):
        LaplacianReward(env, rep, goal).reset(options={"goal": np.zeros(3)})


WRONG_WORDS = """
import gymnasium, lapwing
env = gymnasium.make("lapwing/TwoRoom-v0")
for form, filter in (("spares", None), ("sparse", "comute")):
    try:
        lapwing.LaplacianReward(env, goal=[0.0, 0.0], form=form, filter=filter)
    except lapwing.errors.ConfigError as error:
        print(error)
"""


def test_unknown_words_are_refused():
    """In a process of its own, for here annotations are checked before the words are looked at."""
    found = subprocess.run([sys.executable, "-c", WRONG_WORDS], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == [
        "unknown reward 'spares'; did you mean sparse?",
        "unknown filter 'comute'; did you mean commute?",
    ]


def test_importing_the_wrappers_imports_no_trainer():
    script = (
        "import sys, lapwing; lapwing.LaplacianReward, lapwing.VectorLaplacianReward; print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    trainers = {"optax", "lapwing.agents", "lapwing.laplacian.train", "lapwing.laplacian.evaluate"}
    assert not trainers & set(found.stdout.split())


@pytest.mark.parametrize("what", ["eigenfunctions", "phi", "soft", "commute"])
def test_phi_in_place_of_the_observation(kind, what):
    rep = REPRESENTATIONS[kind]
    env = LaplacianObservation(restless(kind), rep, what=what, append=False)
    expected = answer(rep, TABLES[kind], what)
    assert env.observation_space == spaces.Box(-np.inf, np.inf, expected.shape[1:], np.float32)
    went = walk(env, 40)
    assert all(env.observation_space.contains(seen) for seen in went.there)
    assert_same(went.there, expected[[info["state"] for info in went.infos]])


def test_phi_beside_the_observation(kind):
    rep, plain = REPRESENTATIONS[kind], restless(kind)
    env, table = LaplacianObservation(plain, rep), TABLES[kind]
    phi = rep.eigenfunctions(table)[:, 1:]
    seen, info = env.reset(seed=1)
    for _ in range(30):
        assert env.observation_space.contains(seen)
        raw, found = (seen[:2], seen[2:]) if kind == "position" else (seen["observation"], seen["phi"])
        np.testing.assert_array_equal(raw, table[info["state"]])
        assert_same(found, phi[info["state"]], 1e-4)
        seen, _, _, _, info = env.step(env.action_space.sample())
    box = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    if kind == "position":
        assert env.observation_space == spaces.Box(
            np.array([-1, -1] + [-np.inf] * 3, np.float32), np.array([1, 1] + [np.inf] * 3, np.float32)
        )
    else:
        assert env.observation_space == spaces.Dict({"observation": plain.observation_space, "phi": box})


def test_dict_observations_get_another_part():
    gray = random_representation(EncoderSpec("conv", (6, 5, 1), 4))
    where = REPRESENTATIONS["position"]
    learned = dataclasses.replace(where, config={"settings": {"observation_key": "where"}})
    for rep, key in ((gray, "pixels"), (where, "where"), (learned, None)):
        env = LaplacianObservation(Sight(restless()), rep, observation_key=key)
        assert set(env.observation_space.spaces) == {"where", "pixels", "phi"}
        seen, _ = env.reset(seed=0)
        assert env.observation_space.contains(seen)
        looked_at = seen["pixels"][..., None] if key == "pixels" else seen["where"]
        assert_same(seen["phi"], rep.eigenfunctions(looked_at)[1:], 1e-4)
        alone = LaplacianObservation(Sight(restless()), rep, observation_key=key, append=False)
        np.testing.assert_array_equal(alone.reset(seed=0)[0], seen["phi"])
    with pytest.raises(ConfigError, match="observation_key"):
        LaplacianObservation(Sight(restless()), where)
    with pytest.raises(ConfigError, match=r"'phi'.* append=False"):
        LaplacianObservation(LaplacianObservation(Sight(restless()), learned), learned)
    shaped = LaplacianReward(Sight(restless()), learned, np.zeros(2), form="laplacian")
    went = walk(shaped, 20)
    at = np.array([seen["where"] for seen in went.there])
    assert went.rewards == to_rounding(-learned.distance(at, np.zeros(2), "commute"))


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.float64, np.float64), (np.int64, np.float64), (np.uint8, np.float32), (np.float32, np.float32)],
)
def test_vectors_keep_their_digits(given, kept):
    """What float32 cannot hold comes as float64."""
    large = {np.float64: 1 + 2.0**-40, np.int64: 2**40 + 1}.get(given, 3)
    low, high = (-np.inf, np.inf) if np.issubdtype(given, np.floating) else (0, np.iinfo(given).max)
    inner = spaces.Box(low, high, (2,), given)

    class Still(gymnasium.Env):
        observation_space, action_space = inner, spaces.Discrete(1)

        def reset(self, *, seed=None, options=None):
            return np.array([large, 0], given), {}

    rep = random_representation(EncoderSpec("mlp", (2,), 6, None, (16,)))
    env = LaplacianObservation(Still(), rep)
    seen, _ = env.reset()
    assert (seen.dtype, env.observation_space.dtype) == (kept, kept)
    assert env.observation_space.contains(seen)
    assert seen[0] == large
    assert_same(seen[2:], rep.eigenfunctions(np.array([large, 0.0]))[1:], 1e-4)
