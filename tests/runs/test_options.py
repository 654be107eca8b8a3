"""Options in a run folder: exact and learned ones in a maze, DQN elsewhere, and what is refused."""

import json
from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

import lapwing
from lapwing.cli.options_report import draw_options_run, options_verdict
from lapwing.envs.arena import open_arena
from lapwing.envs.gridworld import GridWorld
from lapwing.envs.plane import open_plane
from lapwing.errors import ConfigError
from lapwing.laplacian.chain import true_chain
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.mazes import parse_maze, read_maze
from lapwing.options.option_set import NetworkOptions
from lapwing.options.purpose import functions_for, option_count
from lapwing.plots import draw_rides
from lapwing.runs.folder import RunFolder
from lapwing.runs.option_maze import aligned, exact_functions, measured
from lapwing.runs.option_networks import EnvFactory, followed, network_options, random_states
from lapwing.runs.options import OptionsOutcome, discover_options
from lapwing.settings.options import OptionsSettings
from tests.support.command_line import called, refused
from tests.support.environments import Line
from tests.support.representations import random_representation

SMALL = "#######\n#..#..#\n#.....#\n#..#..#\n#######\n"


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    (folder / "small.txt").write_text(SMALL)
    words = ("--exact", "--count", "6", "--walks", "10", "--out", folder / "run", "--json")
    code, out, err = called("options", folder / "small.txt", *words)
    assert code == 0, err
    return SimpleNamespace(folder=folder, result=json.loads(out), err=err)


def test_a_run_has_measures_pictures_and_a_verdict(small_run):
    rows = small_run.result["rows"]
    assert [row["options"] for row in rows] == [0, 4, 6, 8, 16]
    assert all(row["decisions"] > 1 and row["cover"] >= 13 for row in rows)
    assert rows[0]["decisions"] == pytest.approx(rows[0]["steps"])
    for name in ("options.png", "diffusion.svg"):
        assert (small_run.folder / "run" / "figures" / name).stat().st_size > 5_000
    assert "verdict:" in small_run.err
    assert "next:" in small_run.err


def test_a_finished_run_is_shown_again_and_its_options_load(small_run):
    run = small_run.folder / "run"
    code, out, err = called("evaluate", run, "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == small_run.result["rows"]
    assert lapwing.load_options(run).names == ("f2+", "f2-", "f3+", "f3-", "f4+", "f4-")
    code, out, err = called(
        "options", small_run.folder / "small.txt", "--exact", "--count", "6", "--walks", "10",
        "--out", run, "--resume", "--json",
    )  # fmt: skip
    assert json.loads(out)["rows"] == small_run.result["rows"]


def test_options_of_a_run_lead_to_the_ends_of_the_learned_eigenfunction(four_room_run):
    options = discover_options("FourRoom", representation=four_room_run, count=2)
    world = GridWorld(read_maze("FourRoom"))
    f = lapwing.load(four_room_run).eigenfunctions(options.observations)[:, 1]
    here = 0
    while not options.table.stops[0, here]:
        here = world.next_state[here, options.table.actions[0, here]]
    assert f[here] > np.quantile(f, 0.9)


def test_a_phi_that_is_exact_is_as_good_as_the_exact_eigenvectors():
    """Where eigenvalues repeat, the learned basis of an eigenspace is another one than NumPy's."""
    world = GridWorld(
        parse_maze("#######\n#.....#\n#.....#\n#.....#\n#.....#\n#.....#\n#######\n", name="square")
    )
    values, functions = exact_functions(world, 5)
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    functions[:, :2] = functions[:, :2] @ np.array([[0.6, -0.8], [0.8, 0.6]])
    learned = values, functions
    sources = {"learned": learned, "exact": exact_functions(world, 5, learned)}
    _, ours, exact = measured(world, sources, OptionsSettings(walks=5), counts=[4])
    assert ours["decisions"] == pytest.approx(exact["decisions"], rel=1e-3)
    assert ours["steps_alike"] == pytest.approx(exact["steps_alike"], rel=1e-3)


def test_repeated_eigenvalues_take_the_basis_that_is_nearest():
    world = GridWorld(read_maze("OneRoom"))
    chain = true_chain(world.transition_matrix())
    values, functions = chain.eigenpairs(4)
    assert values[1] == pytest.approx(values[2], abs=1e-9)
    turned = functions.copy()
    turned[:, 1:3] = functions[:, 1:3] @ np.array([[0.6, -0.8], [0.8, 0.6]])
    np.testing.assert_allclose(aligned(chain, values, functions, turned), turned, atol=1e-6)
    np.testing.assert_allclose(aligned(chain, values, functions, functions), functions, atol=1e-6)


def test_an_eigenspace_of_which_one_function_was_learned_keeps_an_orthonormal_basis():
    world = GridWorld(read_maze("OneRoom"))
    chain = true_chain(world.transition_matrix())
    values, functions = chain.eigenpairs(4)
    learned = functions[:, 1:3] @ np.array([[0.6], [0.8]])
    turned = aligned(chain, values, functions, np.column_stack([functions[:, :1], learned]))
    np.testing.assert_allclose(turned[:, 1], learned[:, 0], atol=1e-6)
    np.testing.assert_allclose(turned.T @ (chain.rho[:, None] * turned), np.eye(4), atol=1e-6)


class Slope(gymnasium.Env):
    """A point in [-1, 1] that steps left or right by up to a fifth."""

    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-1, 1)
        return np.array([self.at], np.float32), {}

    def step(self, action):
        size = self.np_random.uniform(0, 0.2)
        self.at = float(np.clip(self.at + (size if action else -size), -1, 1))
        return np.array([self.at], np.float32), 0.0, False, False, {}


def test_dqn_learns_options_where_states_cannot_be_listed():
    """φ is learned from a random walk on an interval, whose second eigenfunction goes from end to end."""
    phi = lapwing.learn(gymnasium.wrappers.TimeLimit(Slope(), 50), transitions=5_000, dim=3)

    def make():
        return gymnasium.wrappers.TimeLimit(Slope(), 50)

    settings = OptionsSettings(count=2, steps=1_500, hidden=(32,), batch=64)
    options = network_options(EnvFactory(make), phi, settings)
    rows = followed(make, options, phi, settings)
    assert [row["option"] for row in rows] == ["f2+", "f2-"]
    assert max(row["gain"] - row["gain_random"] for row in rows) > 0.5  # of 1.5 from the middle to an end
    assert all(row["gain"] > row["gain_random"] for row in rows)
    assert all(row["ended"] > 0.5 for row in rows)


class SmoothSlope(Slope):
    """The same point, which says itself how far it steps, of 0.2 at most."""

    def __init__(self):
        super().__init__()
        self.action_space = gymnasium.spaces.Box(-0.2, 0.2, (1,), np.float32)

    def step(self, action):
        assert self.action_space.contains(action)
        self.at = float(np.clip(self.at + action[0], -1, 1))
        return np.array([self.at], np.float32), 0.0, False, False, {}


def smooth_slope() -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(SmoothSlope(), 50)


def test_ddpg_learns_options_where_actions_are_continuous(tmp_path):
    phi = lapwing.learn(smooth_slope(), transitions=5_000, dim=3)
    settings = OptionsSettings(count=2, steps=1_500, hidden=(32,), batch=64)
    options = network_options(EnvFactory(smooth_slope), phi, settings)
    rows = followed(smooth_slope, options, phi, settings)
    assert all(row["gain"] - row["gain_random"] > 0.5 for row in rows)  # of 1.5 from the middle to an end
    assert all(row["ended"] > 0.5 for row in rows)
    options.save(tmp_path / "o.safetensors")
    env = lapwing.LaplacianOptions(smooth_slope(), tmp_path / "o.safetensors")
    assert env.action_space == gymnasium.spaces.Discrete(2)
    ends = []
    for option in (0, 1):
        env.reset(seed=3)
        ends.append(float(env.step(option)[0][0]))
    assert max(ends) > 0.7 > -0.7 > min(ends)


def test_options_of_an_arena_move_the_robot_by_its_position(tmp_path):
    """φ sees (x, y), the policy the whole state, and the wrapped environment gives a Dict."""
    run = tmp_path / "run"
    code, out, _ = called(
        "options", "PointUMaze", "--count", "2", "--steps", "200", "--transitions", "20000", "--dim", "3",
        "--hidden", "16", "--batch", "16", "--longest", "30", "--out", run, "--json",
    )  # fmt: skip
    assert (code, json.loads(out)["learner"]) == (0, "DDPG")
    found = lapwing.load_options(run)
    assert (found.shape, found.key, found.representation.shape) == ((6,), "observation", (2,))
    env = lapwing.LaplacianOptions(gymnasium.make("lapwing/PointUMaze-v0"), run)
    begun, _ = env.reset(seed=0)
    assert env.action_masks().shape == (2,)
    observation, _, _, _, info = env.step(0)
    assert info["option"] == "f2+"
    assert not np.array_equal(begun["achieved_goal"], observation["achieved_goal"])
    assert env.unwrapped.action_space.contains(found.act(0, observation["observation"]))
    again = called("evaluate", run, "--json")
    assert json.loads(again[1])["rows"] == json.loads(out)["rows"]
    assert all(len(way[0]) == 2 for row in json.loads(out)["rows"] for way in row["ways"])
    result = RunFolder(run).result()
    older = [
        {name: value for name, value in row.items() if name != "ways"} | {"starts": [[0.0, 0.0]]}
        for row in result["rows"]
    ]
    RunFolder(run).finish(result | {"rows": older})
    assert "earlier version" in refused("evaluate", run)


@pytest.fixture
def rides():
    """An option that leads from (0.1, 0.8) to (0.4, 0.9), feature 0 first."""
    return [{"option": "f2+", "ways": [[[0.1, 0.8], [0.2, 0.8], [0.4, 0.9]]]}] * 2


def test_rides_are_drawn_over_the_features_as_eigenfunctions_are(rides):
    figure = draw_rides(rides)
    (start,) = (line for line in figure.axes[0].lines if line.get_marker() == ".")
    assert (list(start.get_xdata()), list(start.get_ydata())) == ([0.1], [0.8])
    way = figure.axes[0].lines[0]
    assert (list(way.get_xdata()), list(way.get_ydata())) == ([0.1, 0.2, 0.4], [0.8, 0.8, 0.9])
    assert not figure.axes[1].yaxis_inverted()
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("feature 0", "feature 1")


def test_rides_in_a_plane_are_drawn_by_row_and_column(rides, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("lapwing.cli.options_report.save_figures", lambda figures, _: shown.append(figures))
    plane = open_plane("PlaneFourRoom")
    outcome = OptionsOutcome(None, {"rows": rides}, None, plane)  # type: ignore[arg-type]
    draw_options_run(outcome, tmp_path)
    axis = shown[0]["options"].axes[1]
    (start,) = (line for line in axis.lines if line.get_marker() == ".")
    assert (list(start.get_xdata()), list(start.get_ydata())) == ([0.8], [0.1])
    assert axis.yaxis_inverted()
    (walls,) = axis.images
    assert tuple(walls.get_extent()) == (-1, 1, -1, 1)
    np.testing.assert_array_equal(walls.get_array()[..., 0] == 1, plane.maze.floor)


def test_rides_in_an_arena_are_drawn_between_its_walls(rides):
    arena = open_arena("PointUMaze")
    figure = draw_rides(rides, floor=arena)
    assert len(figure.axes[0].patches) == len(arena.walls)
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("x", "y")


def numbered(first: int, closed: list | None = None) -> gymnasium.Env:
    """Five places whose numbers begin with `first`."""
    env = gymnasium.wrappers.TimeLimit(Line(first_place=first), 9)
    if closed is not None:
        env.close = lambda: closed.append(env)
    return env


def test_states_are_the_same_whatever_number_they_begin_with():
    phi = random_representation(EncoderSpec("linear", (), 3, Line.PLACES))
    settings = OptionsSettings(count=2, steps=5, hidden=(4,), batch=8)
    rows, levels = [], []
    for first in (0, 7):
        options = network_options(EnvFactory(partial(numbered, first)), phi, settings)
        found = followed(partial(numbered, first), options, phi, settings)
        rows.append([(row["gain"], row["gain_random"], row["length"]) for row in found])
        levels.append(options.levels)
    np.testing.assert_array_equal(*levels)
    np.testing.assert_array_equal(*rows)


def test_environments_are_closed_when_a_step_fails(monkeypatch):
    spec, made, closed = EncoderSpec("linear", (), 2, Line.PLACES), [], []
    phi = random_representation(EncoderSpec("linear", (), 3, Line.PLACES))
    networks = (random_representation(spec).encoder,)
    options = NetworkOptions(networks, spec, phi, ((2, 1),), np.array([99.0]), 50)

    def make():
        made.append(numbered(0, closed))
        return made[-1]

    followed(make, options, phi, OptionsSettings())
    assert len(made) == len(closed) == 1
    monkeypatch.setattr(Line, "step", lambda self, action: 1 / 0)
    for walk in (lambda: followed(make, options, phi, OptionsSettings()), lambda: random_states(make, 0)):
        with pytest.raises(ZeroDivisionError):
            walk()
    assert len(made) == len(closed) == 3


def test_a_count_that_nobody_gave_is_what_phi_gives():
    phi = random_representation(EncoderSpec("mlp", (2,), 5, None, (6,)))  # of four eigenfunctions
    assert [option_count(phi, None, usual) for usual in (4, 16)] == [4, 6]
    assert option_count(phi, 3, 16) == 3
    with pytest.raises(ConfigError, match="count=8"):
        option_count(phi, 8, 4)
    phi.config["trusted"] = [0]
    with pytest.raises(ConfigError, match="none of"):
        option_count(phi, None, 4)


def test_a_maze_has_as_many_options_as_a_given_phi_has_eigenfunctions():
    phi = random_representation(EncoderSpec("mlp", (2,), 5, None, (6,)))  # of four eigenfunctions
    assert len(discover_options("FourRoom", representation=phi)) == 6


@pytest.fixture
def nothing_is_learned(monkeypatch):
    def learned(*_):
        raise AssertionError("collected and learned before the mistake was found")

    monkeypatch.setattr("lapwing.runs.options._learned", learned)


@pytest.mark.parametrize(
    ("target", "settings", "named"),
    [
        ("PlaneFourRoom", {"kind": "covering"}, "covering"),
        ("gym:CartPole-v1", {"kind": "covering"}, "covering"),
        ("gym:Pendulum-v1", {"kind": "covering"}, "covering"),
        ("gym:Pendulum-v1", {"observation_key": "image"}, "only works with Dict"),
        ("PointUMaze", {"observation_key": "observation"}, "observation_key"),
        ("PointUMaze", {"exact": True}, "exact"),
        ("PointUMaze", {"gamma": 0}, "gamma"),
        ("gym:CartPole-v1", {"gamma": 0}, "gamma"),
        ("FourRoom", {"dim": 5, "count": 9}, "count=9 needs dim=6"),
        ("gym:CartPole-v1", {"dim": 2, "count": 4}, "count=4 needs dim=3"),
    ],
)
def test_mistakes_are_found_before_anything_is_learned(nothing_is_learned, target, settings, named):
    with pytest.raises(ConfigError, match=named):
        discover_options(target, **settings)


def test_fewer_trusted_eigenfunctions_than_options_need_is_told():
    phi = random_representation(EncoderSpec("mlp", (2,), 5, None, (6,)))  # of four eigenfunctions
    assert functions_for(phi, 5) == [2, 3, 4]
    with pytest.raises(ConfigError, match="count=8"):
        functions_for(phi, 8)
    phi.config["trusted"] = [0, 1, 3]
    assert functions_for(phi, 4) == [2, 4]
    with pytest.raises(ConfigError, match="count=5"):
        functions_for(phi, 5)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "target"),
        (("FourRoom", "--count", "400"), "--count"),
        (("FourRoom", "--kind", "sideways"), "sideways"),
        (("FourRoom", "--gamma", "1"), "--gamma"),
        (("FourRoom", "--option-share", "0"), "--option-share"),
        (("FourRoom", "--exact", "--dim", "5"), "--dim"),
        (("PlaneFourRoom", "--exact"), "exact"),
        (("ogbench:pointmaze-large-navigate-v0",), "OGBenchData"),
        (("FourRom",), "FourRoom"),
        (("FourRoom", "--representation", "gone"), "gone"),
    ],
)
def test_mistakes_are_one_sentence(elsewhere, words, named):
    assert named in refused("options", *words)


def test_more_options_than_a_run_has_eigenfunctions_is_refused(four_room_run, elsewhere):
    assert "--count" in refused("options", "FourRoom", "--representation", four_room_run, "--count", "100")


def test_phi_of_another_maze_is_refused(four_room_run):
    with pytest.raises(ConfigError, match="FourRoom"):
        discover_options("TwoRoom", representation=four_room_run)


def test_a_verdict_says_when_options_hinder():
    row = {"source": "exact", "options": 4, "decisions": 90.0, "steps": 300.0, "covered": 1.0, "cover": 900.0}
    primitive = row | {"source": "primitive", "options": 0, "steps": 100.0, "cover": 500.0}
    result = {"states": 9, "options": 4, "rows": [primitive, row], "run": "runs/x"}
    assert "hinder" in options_verdict(result).verdict
    better = row | {"steps": 50.0, "cover": 200.0}
    found = options_verdict(result | {"rows": [primitive, better]})
    assert "hinder" not in found.verdict
    assert "LaplacianOptions" in found.next_step


def test_covering_options_of_all_eigenfunctions_shorten_the_walk():
    world = GridWorld(parse_maze(SMALL, name="small"))
    settings = OptionsSettings(kind="covering", walks=5)
    rows = measured(world, {"exact": exact_functions(world, world.n_states)}, settings, counts=[4])
    assert rows[1]["decisions"] < rows[0]["decisions"]
