"""The wrappers of vectors of environments, step for step against single wrapped environments."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from lapwing.errors import ConfigError
from lapwing.integrations.vector_wrappers import (
    VectorLaplacianObservation,
    VectorLaplacianReward,
    autoreset_mode,
)
from lapwing.integrations.wrappers import LaplacianObservation, LaplacianReward
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.shaping.rewards import FORMS, Goal
from tests.support.environments import Asked, Seeker, Sight, restless
from tests.support.representations import random_representation
from tests.support.wrapped import GAMMA, REPRESENTATIONS, SEEKER_SPECS, TABLES

pytestmark = pytest.mark.numeric

COUNT, STEPS = 4, 45
MODES = list(AutoresetMode)
BY_THEMSELVES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
GOALS = [3, 17, 40, 60]
OTHERS = [9, 30, 3, 51]


@pytest.fixture(params=MODES, ids=[mode.name for mode in MODES])
def mode(request) -> AutoresetMode:
    return request.param


class Singles:
    """Single environments, stepped as a vector of them with this autoreset would be, one after the other."""

    def __init__(self, envs: list[gymnasium.Env], mode: AutoresetMode):
        self.envs, self.mode, self.over = envs, mode, [False] * len(envs)

    def reset(self, seed: int) -> list:
        self.over = [False] * len(self.envs)
        return [env.reset(seed=seed + place)[0] for place, env in enumerate(self.envs)]

    def step(self, actions) -> list[dict]:
        return [self._one(place, int(action)) for place, action in enumerate(actions)]

    def _one(self, place: int, action: int) -> dict:
        env = self.envs[place]
        if self.over[place]:
            assert self.mode == AutoresetMode.NEXT_STEP
            self.over[place] = False
            blank = {"reward": 0.0, "terminated": False, "truncated": False, "info": None, "final": None}
            return blank | {"seen": env.reset()[0]}
        seen, reward, terminated, truncated, info = env.step(action)
        final, over = None, terminated or truncated
        if over and self.mode == AutoresetMode.SAME_STEP:
            final, seen, over = seen, env.reset()[0], False
        self.over[place] = over
        names = ("seen", "reward", "terminated", "truncated", "info", "final")
        return dict(zip(names, (seen, reward, terminated, truncated, info, final), strict=True))

    def reset_some(self, chosen: np.ndarray, options: list[dict | None]) -> dict[int, object]:
        some = np.flatnonzero(chosen)
        for place in some:
            self.over[place] = False
        return {place: self.envs[place].reset(options=options[place])[0] for place in some}


def rows_of(batch, count: int = COUNT) -> list:
    """A batch of observations one by one."""
    if isinstance(batch, dict):
        parts = {name: rows_of(part, count) for name, part in batch.items()}
        return [{name: part[place] for name, part in parts.items()} for place in range(count)]
    return [batch[place] for place in range(count)]


def assert_equal(found, expected) -> None:
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for name in expected:
            assert_equal(found[name], expected[name])
    else:
        np.testing.assert_array_equal(found, expected)


def assert_step(found: tuple, expected: list[dict], told: bool = True) -> None:
    """A step of the vector is those of the single environments, to the last bit."""
    seen, rewards, terminated, truncated, infos = found
    assert rewards.shape == (len(expected),)
    for place, (row, one) in enumerate(zip(rows_of(seen, len(expected)), expected, strict=True)):
        assert_equal(row, one["seen"])
        assert rewards[place] == one["reward"]
        assert (terminated[place], truncated[place]) == (one["terminated"], one["truncated"])
        if one["final"] is not None:
            assert_equal(infos["final_obs"][place], one["final"])
        if told:
            for name in ("goal_distance", "goal_reached", "env_reward"):
                assert infos[f"_{name}"][place] == (one["info"] is not None)
                if one["info"] is not None:
                    assert infos[name][place] == one["info"][name]


def compare(vector, singles: Singles, steps: int = STEPS, *, told: bool = True, actions: int = 4) -> dict:
    """Both through the same actions; ended episodes are begun again by hand where nobody else does."""
    seen, _ = vector.reset(seed=11)
    for row, one in zip(rows_of(seen, vector.num_envs), singles.reset(11), strict=True):
        assert_equal(row, one)
    return go_on(vector, singles, steps, told=told, actions=actions)


def go_on(
    vector, singles: Singles, steps: int, *, told: bool = True, actions: int = 4, seed: int = 0
) -> dict:
    rng, ends = np.random.default_rng(seed), {"terminated": 0, "truncated": 0}
    for _ in range(steps):
        chosen = rng.integers(actions, size=vector.num_envs)
        found, expected = vector.step(chosen), singles.step(chosen)
        assert_step(found, expected, told)
        for name in ends:
            ends[name] += sum(one[name] for one in expected)
        over = found[2] | found[3]
        if singles.mode == AutoresetMode.DISABLED and over.any():
            seen, _ = vector.reset(options={"reset_mask": over})
            for place, one in singles.reset_some(over, [None] * len(over)).items():
                assert_equal(rows_of(seen, vector.num_envs)[place], one)
    return ends


def several(kind: str = "position") -> list:
    """Environments with limits of their own, so that they seldom end together."""
    return [partial(restless, kind, 5 + 3 * place) for place in range(COUNT)]


def scale_of(kind: str) -> float:
    """What makes distances about 1, so that tolerances mean something."""
    table = TABLES[kind]
    return 1 / float(np.mean(REPRESENTATIONS[kind].distance(table, table[0], "commute")))


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("form", FORMS)
def test_a_step_is_that_of_single_environments(form, kind, mode):
    """A goal for each, ends for good and by time limits, in all modes."""
    rep, table = REPRESENTATIONS[kind], TABLES[kind]
    shaping = {"form": form, "gamma": GAMMA, "scale": scale_of(kind), "reward_scale": 2.0}
    vector = SyncVectorEnv(several(kind), autoreset_mode=mode)
    vector = VectorLaplacianReward(vector, rep, table[GOALS], **shaping)
    singles = [
        LaplacianReward(env(), rep, table[goal], **shaping)
        for env, goal in zip(several(kind), GOALS, strict=True)
    ]
    ends = compare(vector, Singles(singles, mode))
    assert min(ends.values()) > 3


def test_one_goal_for_all_and_the_own_reward_kept(mode):
    rep, goal = REPRESENTATIONS["position"], TABLES["position"][40]
    shaping = {"form": "potential", "gamma": GAMMA, "keep_reward": True, "filter": "heat"}
    vector = VectorLaplacianReward(SyncVectorEnv(several(), autoreset_mode=mode), rep, goal, **shaping)
    singles = [LaplacianReward(env(), rep, goal, **shaping) for env in several()]
    compare(vector, Singles(singles, mode))


@pytest.mark.parametrize("kind", ["position", "index"])
def test_some_get_another_goal(kind, mode):
    """By a reset of some environments in the middle, and of all."""
    rep, table = REPRESENTATIONS[kind], TABLES[kind]
    shaping = {"form": "potential", "gamma": GAMMA, "scale": scale_of(kind)}
    vector = VectorLaplacianReward(
        SyncVectorEnv(several(kind), autoreset_mode=mode), rep, table[GOALS], **shaping
    )
    singles = Singles(
        [
            LaplacianReward(env(), rep, table[goal], **shaping)
            for env, goal in zip(several(kind), GOALS, strict=True)
        ],
        mode,
    )
    compare(vector, singles, 13)
    some, options = np.array([True, False, True, False]), {"goal": table[OTHERS]}
    asked = {**options, "reset_mask": some}
    seen, _ = vector.reset(options=asked)
    assert set(asked) == {"goal", "reset_mask"}, "the caller's options stay as they are"
    begun = singles.reset_some(some, [{"goal": table[goal]} for goal in OTHERS])
    for place, one in begun.items():
        assert_equal(seen[place], one)
    go_on(vector, singles, 20, seed=1)
    one_for_two = np.array([False, True, True, False])
    vector.reset(options={"goal": table[22], "reset_mask": one_for_two})
    singles.reset_some(one_for_two, [{"goal": table[22]}] * COUNT)
    go_on(vector, singles, 12, seed=2)
    vector.reset(options={"goal": table[8]})
    singles.reset_some(np.ones(COUNT, bool), [{"goal": table[8]}] * COUNT)
    go_on(vector, singles, 12, seed=3)


def column_of(positions):
    return positions[..., 1:]


def test_a_goal_in_a_space_of_its_own(mode):
    rep, table = REPRESENTATIONS["position"], TABLES["position"]
    goal = Goal(table[7, 1:], radius=0.3, h=column_of, state=table[7])
    vector = VectorLaplacianReward(SyncVectorEnv(several(), autoreset_mode=mode), rep, goal)
    singles = [LaplacianReward(env(), rep, goal) for env in several()]
    compare(vector, Singles(singles, mode))


@pytest.mark.parametrize("discrete", [False, True])
def test_goal_environments_are_followed(discrete, mode):
    """Goals differ between environments and change within episodes, also with their last step."""
    rep = random_representation(SEEKER_SPECS[discrete])
    shaping = {"form": "potential", "gamma": GAMMA, "scale": 0.1}
    envs = [lambda limit=limit: TimeLimit(Seeker(discrete), limit) for limit in (4, 7, 9)]
    vector = VectorLaplacianReward(SyncVectorEnv(envs, autoreset_mode=mode), rep, **shaping)
    singles = [LaplacianReward(env(), rep, **shaping) for env in envs]
    ends = compare(vector, Singles(singles, mode), 60)
    assert min(ends.values()) > 3


def test_other_options_reach_the_environments(mode):
    asked = [Asked(env()) for env in several()[:2]]
    vector = SyncVectorEnv([partial(next, iter([env])) for env in asked], autoreset_mode=mode)
    vector = VectorLaplacianReward(vector, goal=TABLES["position"][0], form="l2")
    vector.reset(options={"goal": TABLES["position"][1], "cell": (1, 1)})
    vector.reset(options={"goal": TABLES["position"][1], "reset_mask": np.array([True, False])})
    vector.reset(options={"cell": (1, 2), "reset_mask": np.array([False, True])})
    assert asked[0].asked == [{"cell": (1, 1)}, {}]
    assert asked[1].asked == [{"cell": (1, 1)}, {"cell": (1, 2)}]


@pytest.mark.parametrize("append", [True, False])
@pytest.mark.parametrize("kind", TABLES)
def test_observations_are_those_of_single_environments(kind, append, mode):
    """The last observations of episodes hold φ too."""
    rep = REPRESENTATIONS[kind]
    shown = {"append": append, "what": "commute" if append else "eigenfunctions"}
    vector = VectorLaplacianObservation(SyncVectorEnv(several(kind), autoreset_mode=mode), rep, **shown)
    singles = [LaplacianObservation(env(), rep, **shown) for env in several(kind)]
    assert vector.single_observation_space == singles[0].observation_space
    assert vector.observation_space.contains(vector.reset(seed=0)[0])
    compare(vector, Singles(singles, mode), told=False)
    assert vector.observation_space.contains(vector.step(np.zeros(COUNT, int))[0])


def test_dict_observations_get_another_part(mode):
    rep = REPRESENTATIONS["position"]
    envs = [lambda env=env: Sight(env()) for env in several()]
    vector = SyncVectorEnv(envs, autoreset_mode=mode)
    vector = VectorLaplacianObservation(vector, rep, observation_key="where")
    singles = [LaplacianObservation(env(), rep, observation_key="where") for env in envs]
    assert set(vector.single_observation_space.spaces) == {"where", "pixels", "phi"}
    compare(vector, Singles(singles, mode), told=False)
    assert vector.observation_space.contains(vector.step(np.zeros(COUNT, int))[0])


def test_reward_and_observation_go_together(mode):
    rep, goal = REPRESENTATIONS["position"], TABLES["position"][40]
    vector = VectorLaplacianReward(SyncVectorEnv(several(), autoreset_mode=mode), rep, goal)
    vector = VectorLaplacianObservation(vector, rep)
    singles = [LaplacianObservation(LaplacianReward(env(), rep, goal), rep) for env in several()]
    compare(vector, Singles(singles, mode))


CART = random_representation(EncoderSpec("fourier", (4,), 6, None, (16,), 8))


def test_a_vector_that_is_no_list_of_environments():
    """CartPole as one array: its ends are real, and what is between two observations is known."""
    vector = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
    goal = np.zeros(4, np.float32)
    shaped = VectorLaplacianReward(vector, CART, goal, form="potential", gamma=GAMMA, keep_reward=True)
    rng = np.random.default_rng(0)
    here, _ = shaped.reset(seed=0)
    over, ends = np.zeros(3, bool), 0
    for _ in range(120):
        there, rewards, terminated, truncated, infos = shaped.step(rng.integers(2, size=3))
        before, after = (np.asarray(CART.distance(at, goal, "commute")) for at in (here, there))
        expected = infos["env_reward"] - GAMMA * np.where(terminated, 0, after) + before
        np.testing.assert_allclose(rewards, np.where(over, 0.0, expected), rtol=1e-4, atol=1e-4)
        here, over = there.copy(), terminated | truncated
        ends += over.sum()
    assert ends > 5
    seen = VectorLaplacianObservation(
        gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point"), CART
    )
    first, _ = seen.reset(seed=0)
    assert (first.shape, seen.observation_space.shape) == ((3, 7), (3, 7))
    np.testing.assert_allclose(first[:, 4:], CART.eigenfunctions(first[:, :4])[:, 1:], rtol=1e-4, atol=1e-4)


def test_arenas_stepped_at_once_are_followed():
    rep = REPRESENTATIONS["position"]
    vector = gymnasium.make_vec(
        "lapwing/PointUMaze-v0", num_envs=3, vectorization_mode="vector_entry_point", max_episode_steps=8
    )
    shaped = VectorLaplacianReward(vector, rep, form="laplacian")
    rng, over = np.random.default_rng(0), np.zeros(3, bool)
    shaped.reset(seed=0)
    for _ in range(20):
        seen, rewards, terminated, truncated, _ = shaped.step(rng.uniform(-1, 1, (3, 2)).astype(np.float32))
        away = rep.distance(seen["achieved_goal"], seen["desired_goal"], "commute")
        np.testing.assert_allclose(rewards, np.where(over, 0, -np.asarray(away)), rtol=1e-4, atol=1e-4)
        over = terminated | truncated


@pytest.mark.parametrize("mode", BY_THEMSELVES, ids=lambda mode: mode.name)
def test_environments_in_processes_of_their_own(mode):
    """Started afresh, for a copy of a process that runs JAX could hang."""
    envs = [partial(gymnasium.make, "CartPole-v1", max_episode_steps=limit) for limit in (6, 40)]
    shaping = {"form": "potential", "gamma": GAMMA}
    vector = AsyncVectorEnv(envs, autoreset_mode=mode, context="spawn")
    try:
        shaped = VectorLaplacianReward(vector, CART, np.zeros(4), **shaping)
        singles = Singles([LaplacianReward(env(), CART, np.zeros(4), **shaping) for env in envs], mode)
        ends = compare(
            VectorLaplacianObservation(shaped, CART, append=False), _seeing(singles), 40, actions=2
        )
    finally:
        vector.close()
    assert min(ends.values()) > 0


def _seeing(singles: Singles) -> Singles:
    seeing = [LaplacianObservation(env, CART, append=False) for env in singles.envs]
    return Singles(seeing, singles.mode)


@pytest.mark.parametrize("mode", BY_THEMSELVES, ids=lambda mode: mode.name)
def test_the_vector_of_wrapped_environments_is_the_wrapped_vector(mode):
    """Wrappers inside the vector do the same, more slowly."""
    rep, goal = REPRESENTATIONS["position"], TABLES["position"][40]
    inside = SyncVectorEnv(
        [lambda env=env: LaplacianReward(env(), rep, goal) for env in several()], autoreset_mode=mode
    )
    outside = VectorLaplacianReward(SyncVectorEnv(several(), autoreset_mode=mode), rep, goal)
    for vector in (inside, outside):
        vector.reset(seed=5)
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        actions = rng.integers(4, size=COUNT)
        np.testing.assert_array_equal(inside.step(actions)[1], outside.step(actions)[1])


def test_what_does_not_fit_is_refused():
    rep, table = REPRESENTATIONS["position"], TABLES["position"]
    vector = SyncVectorEnv(several())
    for words, given, goal, kwargs in [
        (r"goal.* \(3, 2\).* \(2,\)", rep, table[:3], {}),
        ("goal", rep, None, {}),
        (r"shape \(\)", REPRESENTATIONS["index"], table[0], {}),
        ("reward_scale", rep, table[0], {"reward_scale": 0.0}),
        ("radius", rep, table[0], {"radius": -1.0}),
    ]:
        with pytest.raises(ConfigError, match=words):
            VectorLaplacianReward(vector, given, goal, **kwargs)
    with pytest.raises(ConfigError, match=r"shape \(\)"):
        VectorLaplacianObservation(vector, REPRESENTATIONS["index"])
    shaped = VectorLaplacianReward(vector, rep, table[0])
    shaped.reset(seed=0)
    some = np.array([True, False, False, False])
    with pytest.raises(ConfigError, match="goal for some"):
        shaped.reset(options={"goal": Goal(table[0], radius=0.5), "reset_mask": some})


def test_how_episodes_begin_anew():
    class Plain(gymnasium.vector.VectorEnv):
        metadata: dict = {}  # noqa: RUF012
        num_envs = 1
        single_observation_space = observation_space = spaces.Discrete(2)

    assert autoreset_mode(Plain()) == AutoresetMode.NEXT_STEP
    for mode in AutoresetMode:
        assert autoreset_mode(SyncVectorEnv([restless], autoreset_mode=mode)) == mode
        Plain.metadata = {"autoreset_mode": mode.value}
        assert autoreset_mode(Plain()) == mode
