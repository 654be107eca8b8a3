"""Distances to goals as the wrappers measure them; what the wrappers make of them is tested with them."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.data.observations import view_of
from lapwing.errors import ConfigError
from lapwing.integrations.goals import RewardShaper, as_representation, check_fits, seen_key
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.laplacian.forward import Forward
from lapwing.shaping.rewards import Goal, chosen_filter
from tests.support import exact
from tests.support.representations import random_representation
from tests.support.rounding import to_rounding

pytestmark = pytest.mark.numeric

VECTOR, INDEX = spaces.Box(-2, 2, (2,), np.float32), spaces.Discrete(5, start=3)
GRAY, FIRST = spaces.Box(0, 255, (6, 5), np.uint8), spaces.Box(0, 255, (3, 6, 5), np.uint8)
SPECS = {
    "vector": EncoderSpec("mlp", (2,), 4, None, (8,)),
    "index": EncoderSpec("linear", (), 4, 5),
    "gray": EncoderSpec("conv", (6, 5, 1), 4),
    "first": EncoderSpec("conv", (6, 5, 3), 4),
}
SPACES = {"vector": VECTOR, "index": INDEX, "gray": GRAY, "first": FIRST}
REPRESENTATIONS = {kind: random_representation(spec) for kind, spec in SPECS.items()}


def shaper(space, representation=None, goal: Any = None, **kwargs) -> RewardShaper:
    """One with plain settings."""
    plain = {"form": "l2" if representation is None else "laplacian", "filter": None}
    radius = None if isinstance(goal, Goal) else 1e-6
    plain |= {"radius": radius, "scale": 1.0, "reward_scale": 1.0, "keep_reward": False}
    plain |= {"observation_key": None}
    return RewardShaper(space, representation, goal, **(plain | kwargs))


def drawn(kind: str, count: int) -> list:
    space = SPACES[kind]
    space.seed(7)
    return [space.sample() for _ in range(count)]


def seen(kind: str, one) -> np.ndarray:
    """What φ sees of an observation, written out."""
    if kind == "index":
        return np.asarray(one - 3)
    return {"vector": one, "gray": np.expand_dims(one, -1), "first": np.moveaxis(one, 0, -1)}[kind]


@pytest.mark.parametrize("kind", SPACES)
def test_distances_by_hand(kind):
    """One by one and in a batch, to one goal or one each, given as arrays or as lists."""
    rep, some, goals = REPRESENTATIONS[kind], drawn(kind, 4), drawn(kind, 8)[4:]
    flat = np.array([np.ravel(seen(kind, one)) for one in some], float)
    ends = np.array([np.ravel(seen(kind, one)) for one in goals], float)
    phi, phi_ends = (
        np.array([rep.embed(seen(kind, one), "commute") for one in ones]) for ones in (some, goals)
    )
    for each in (False, True):
        wanted, phi_wanted = (ends, phi_ends) if each else (ends[:1], phi_ends[:1])
        raw = np.linalg.norm(flat - wanted, axis=1)
        latent = 3 * np.linalg.norm(phi - phi_wanted, axis=1)
        goal = np.array(goals) if each else goals[0]
        for wanted_ in (goal, goal.tolist()):
            to = shaper(SPACES[kind], rep, wanted_, num_envs=4, scale=3.0).distances(np.array(some))
            np.testing.assert_allclose(to.raw, raw)
            np.testing.assert_allclose(to.latent, latent, rtol=1e-5, atol=1e-4)
    to = shaper(SPACES[kind], rep, goals[0], scale=3.0).distances(some[1])
    np.testing.assert_allclose(to.raw, np.linalg.norm(flat[1] - ends[0]))
    assert to.latent == to_rounding(3 * np.linalg.norm(phi[1] - phi_ends[0]), 3 * phi)
    assert shaper(SPACES[kind], rep, goals[0]).distances(goals[0]).reached


@pytest.mark.parametrize("kind", SPACES)
@settings(max_examples=15)
@given(size=st.integers(1, 20), data=st.data())
def test_an_observation_is_as_far_alone_as_in_a_batch(kind, size, data):
    """To the last bit, with one goal or one each; and the goal itself is at 0."""
    batch, goals, row = drawn(kind, size), drawn(kind, 2 * size)[size:], data.draw(st.integers(0, size - 1))
    batch[row] = goals[row]
    for given_ in (np.array(goals), goals[row]):
        to = shaper(SPACES[kind], REPRESENTATIONS[kind], given_, num_envs=size).distances(np.array(batch))
        assert (to.raw[row], to.reached[row], to.latent[row]) == (0, True, 0)
        for index, one in enumerate(batch):
            goal = goals[index] if np.ndim(given_) > np.ndim(one) else goals[row]
            alone = shaper(SPACES[kind], REPRESENTATIONS[kind], goal).distances(one)
            assert alone == (to.raw[index], to.reached[index], to.latent[index])


@pytest.mark.parametrize("filter", ["soft", "unit", "commute", "biharmonic", "heat"])
def test_the_filter_is_the_one_asked_for(filter):
    rep, (here, goal) = REPRESENTATIONS["vector"], drawn("vector", 2)
    found = shaper(VECTOR, rep, goal, filter=filter).distances(here).latent
    assert found == to_rounding(rep.distance(here, goal, filter), rep.embed(goal, filter))


@pytest.mark.parametrize("filter", ["soft", "unit", "commute", "biharmonic", "heat"])
def test_without_a_scale_the_mean_distance_is_1(filter, four_room):
    """Between states of the data, of which there are enough in a grid over FourRoom."""
    cells = np.array([(r, c) for r, c in exact.cells("FourRoom")])
    positions = (2 * cells / 14 - 1).astype(np.float32)
    distances = [
        shaper(VECTOR, four_room, goal, filter=filter, scale=None, num_envs=len(cells)).distances(positions)
        for goal in positions[::7]
    ]
    assert np.mean([to.latent for to in distances]) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("kind", SPACES)
def test_hitting_is_what_the_representation_says(kind):
    """Alone, in a batch and with a goal each; and 0 from the goal itself, to the last bit."""
    rep, some, goals = REPRESENTATIONS[kind], drawn(kind, 4), drawn(kind, 8)[4:]
    pairs = [(seen(kind, one), seen(kind, goal)) for one, goal in zip(some, goals, strict=True)]
    expected = np.array([rep.distance(*pair, "hitting") for pair in pairs])
    largest = np.abs(expected).max()
    asked = {"filter": "hitting", "scale": 2.0}
    found = shaper(SPACES[kind], rep, np.array(goals), num_envs=4, **asked).distances(np.array(some)).latent
    np.testing.assert_allclose(found, 2 * expected, rtol=1e-4, atol=1e-4 * largest)
    for one, goal, among in zip(some, goals, found, strict=True):
        alone = shaper(SPACES[kind], rep, goal, **asked)
        assert alone.distances(one).latent == among
        assert alone.distances(goal).latent == 0


def test_hitting_without_a_scale(four_room):
    """Its mean is 1; for a potential, the root mean square of its change by a step of the random walk."""
    P, cells = exact.transition("FourRoom"), np.array(exact.cells("FourRoom"))
    positions = (2 * cells / 14 - 1).astype(np.float32)
    means, squares = [], []
    for goal in positions[::7]:
        asked = {"filter": "hitting", "scale": None, "num_envs": len(positions)}
        means.append(shaper(VECTOR, four_room, goal, **asked).distances(positions).latent.mean())
        in_steps = shaper(VECTOR, four_room, goal, form="potential", gamma=0.9, **asked)
        latent = in_steps.distances(positions).latent
        squares.append(np.sum(P * (latent[:, None] - latent) ** 2) / len(P))
    assert np.mean(means) == pytest.approx(1, rel=0.15)
    assert np.sqrt(np.mean(squares)) == pytest.approx(1, rel=0.15)


def test_what_is_not_trusted_leads_to_no_goal():
    rep, (here, goal) = REPRESENTATIONS["vector"], drawn("vector", 2)
    some = dataclasses.replace(rep, config=rep.config | {"trusted": [0, 2]})
    for filter in ("commute", "biharmonic", "hitting"):
        found = shaper(VECTOR, some, goal, filter=filter).distances(here).latent
        assert found == pytest.approx(some.distance(here, goal, filter), rel=1e-4)
        assert abs(found - rep.distance(here, goal, filter)) > 1e-3


def test_the_filter_that_is_chosen():
    rep = REPRESENTATIONS["vector"]
    plain = dataclasses.replace(rep, config={"settings": {"rotate": False}})
    single = dataclasses.replace(
        rep,
        eigenvalues=rep.eigenvalues[:1],
        coefficients=rep.coefficients[:, :1],
        reference=rep.reference[:, :1],
    )
    assert [chosen_filter(None, one) for one in (rep, plain, single)] == ["commute", "soft", "soft"]
    assert chosen_filter("heat", plain) == "heat"
    here, goal = drawn("vector", 2)
    found = shaper(VECTOR, plain, goal).distances(here).latent
    assert found == to_rounding(rep.distance(here, goal, "soft"), rep.phi(goal))


def test_a_file_and_a_folder_are_opened(four_room_run, four_room):
    at, goal = np.zeros(2, np.float32), np.ones(2, np.float32)
    expected = shaper(VECTOR, four_room, goal).distances(at).latent
    for path in (four_room_run, str(four_room_run)):
        assert shaper(VECTOR, path, goal).distances(at).latent == expected
    assert as_representation(four_room) is four_room


def test_which_part_phi_sees():
    rep = REPRESENTATIONS["vector"]
    learned = dataclasses.replace(rep, config={"settings": {"observation_key": "where"}})
    parts = spaces.Dict({"what": VECTOR, "where": VECTOR})
    assert seen_key(parts, learned, None) == "where"
    assert seen_key(parts, learned, "what") == "what"
    assert seen_key(VECTOR, learned, None) is None
    assert seen_key(parts, rep, None) is None


def test_some_environments_alone_get_another_goal():
    rep, (here, first, second, third) = REPRESENTATIONS["vector"], drawn("vector", 4)
    two = shaper(VECTOR, rep, first, num_envs=3)
    two.set_goal(second, np.array([False, True, False]))
    two.set_goal(np.array([first, first, third]), np.array([False, False, True]))
    expected = [rep.distance(here, goal, "commute") for goal in (first, second, third)]
    assert two.distances(np.array([here] * 3)).latent == to_rounding(np.array(expected))


def test_a_goal_of_its_own_radius_leaves_it_when_it_goes():
    one = shaper(VECTOR, goal=np.zeros(2), radius=0.5)
    here = np.array([1.0, 0.0], np.float32)
    assert not one.distances(here).reached
    one.set_goal(Goal(np.zeros(2), radius=2.0))
    assert one.distances(here).reached
    one.set_goal(np.zeros(2))
    assert not one.distances(here).reached
    one.set_goal(np.array([0.6, 0.0]))
    assert one.distances(here).reached


@pytest.mark.parametrize(
    ("space", "goal", "words"),
    [
        (VECTOR, np.zeros(3), r"\(3,\).* \(2,\)"),
        (VECTOR, np.zeros((4, 2)), r"\(4, 2\).* \(2,\)"),
        (VECTOR, [0.0, np.nan], "float32"),
        (VECTOR, [0.0, 1e300], "float32"),
        (VECTOR, "G", "<U1"),
        (VECTOR, {"where": np.zeros(2)}, "object"),
        (INDEX, 3.5, "int64"),
        (INDEX, 8, "8 is outside 3 … 7"),
        (GRAY, np.full((6, 5), 256), "uint8"),
        (GRAY, np.zeros((6, 5, 1)), r"\(6, 5, 1\).* \(6, 5\)"),
    ],
)
def test_goals_that_are_no_observations(space, goal, words):
    with pytest.raises(ConfigError, match=f"goal .*{words}"):
        shaper(space, goal=goal)
    with pytest.raises(ConfigError, match=f"goal .*{words}"):
        shaper(space, goal=space.sample()).set_goal(goal)


def first_number(states):
    return states[..., :1]


def test_goals_of_another_kind_for_some_environments():
    some = np.array([True, False])
    for goal in (Goal(np.zeros(1), h=first_number), Goal(np.zeros(2), radius=0.1)):
        mixed = shaper(VECTOR, goal=np.zeros(2), num_envs=2)
        with pytest.raises(ConfigError, match="a goal for some of the environments"):
            mixed.set_goal(goal, some)
        assert mixed.distances(np.ones((2, 2))).raw == pytest.approx(np.sqrt(2)), "the old goal stays"
        mixed.set_goal(goal, ~some | some)
    alike = shaper(VECTOR, goal=Goal(np.zeros(1), h=first_number), num_envs=2)
    alike.set_goal(Goal(np.ones(1), h=first_number), some)
    np.testing.assert_allclose(alike.distances(np.full((2, 2), 3.0)).raw, [2, 3])


def test_an_h_that_gives_other_vectors():
    with pytest.raises(ConfigError, match=r"h\(s\) .*\(2,\).*\(1,\)"):
        shaper(VECTOR, goal=Goal(np.zeros(1))).distances(np.zeros(2, np.float32))
    never_a_batch = shaper(VECTOR, goal=Goal(np.zeros(2), h=lambda state: state[:2]), num_envs=3)
    with pytest.raises(ConfigError, match=r"h\(s\) .*\(2, 2\).*\(3, 2\)"):
        never_a_batch.distances(np.zeros((3, 2), np.float32))


def test_a_representation_of_something_else():
    rep = REPRESENTATIONS["vector"]
    wide = spaces.Box(-1, 1, (3,), np.float32)
    goal = Goal(np.zeros(2), h=lambda states: states[..., :2])
    for refuse in (
        lambda: shaper(wide, rep, np.zeros(3)),
        lambda: check_fits(Forward(rep), view_of(wide)),
        lambda: shaper(wide, rep, dataclasses.replace(goal, state=np.zeros(3))),
        lambda: shaper(wide, rep, goal).set_goal(np.zeros(3)),
    ):
        with pytest.raises(ConfigError, match=r"\(2,\), and the environment gives \(3,\)"):
            refuse()
    # φ of the goal space Z is welcome, whatever the observations are; of another Z it is not.
    at = np.ones(3, np.float32)
    to = shaper(wide, rep, goal).distances(at)
    assert to.latent == to_rounding(rep.distance(at[:2], np.zeros(2), "commute"))
    with pytest.raises(ConfigError, match=r"\(2,\), and the goal z has \(3,\)"):
        shaper(wide, rep, Goal(np.zeros(3)))
    with pytest.raises(ConfigError, match="5 states, and the environment has 4"):
        shaper(spaces.Discrete(4), REPRESENTATIONS["index"], 0)


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["radius", "scale", "gamma"])
def test_numbers_out_of_range(name, wrong):
    with pytest.raises(ConfigError, match=f"{name}.* {wrong!r}"):
        shaper(VECTOR, goal=np.zeros(2), **{name: wrong})


def test_a_goal_of_ones_own_has_its_own_radius():
    with pytest.raises(ConfigError, match=r"radius.* lapwing\.Goal"):
        shaper(VECTOR, goal=Goal(np.zeros(2)), radius=1.0)


@pytest.mark.parametrize("form", ["l2", "laplacian"])
def test_a_form_that_has_no_room_for_the_reward_of_the_environment(form):
    with pytest.raises(ConfigError, match=f"keep_reward.* '{form}'"):
        shaper(VECTOR, REPRESENTATIONS["vector"], np.zeros(2), form=form, keep_reward=True)


def test_no_goal_where_observations_have_none():
    for space in (VECTOR, spaces.Dict({"achieved_goal": VECTOR}), spaces.Dict({"desired_goal": VECTOR})):
        with pytest.raises(ConfigError, match="goal is missing"):
            shaper(space)


def test_where_the_desired_goal_is_followed():
    both = spaces.Dict({"achieved_goal": VECTOR, "desired_goal": VECTOR, "observation": VECTOR})
    follower = shaper(both)
    assert follower.follows_goal
    at = {"achieved_goal": np.zeros(2), "desired_goal": np.array([3.0, 4.0])}
    assert follower.distances(at).raw == 5
    with pytest.raises(ConfigError, match="observation_key='observation'"):
        shaper(both, observation_key="observation")
    rep = random_representation(EncoderSpec("mlp", (3,), 4, None, (8,)))
    with pytest.raises(ConfigError, match=r"\(3,\), and the environment gives \(2,\)"):
        shaper(both, rep)


def test_indices_that_do_not_begin_at_0_are_followed():
    """Goal 5 is state 4 as φ counts, and must not be taken for goal 4, which comes next."""
    both = spaces.Dict(
        {"achieved_goal": spaces.Discrete(5, start=1), "desired_goal": spaces.Discrete(5, start=1)}
    )
    follower = shaper(both)
    for goal in (5, 4, 3, 3, 2):
        at = {"achieved_goal": 1, "desired_goal": goal}
        assert follower.distances(at).raw == goal - 1
