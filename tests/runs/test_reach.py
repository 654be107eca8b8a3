import io
import json
import shutil

import gymnasium
import numpy as np
import pytest
from rich.console import Console

import lapwing
from lapwing.cli.main import main
from lapwing.cli.reach_report import draw_reach, reach_report, reach_table
from lapwing.errors import ConfigError, LapwingWarning
from lapwing.runs.reach import _open as open_for_reaching
from lapwing.runs.reach import reopen_reach
from lapwing.settings.reach import ReachSettings


class Ends(gymnasium.Wrapper):
    """Terminates after every fifth step."""

    def reset(self, **how):
        self.taken = 0
        return self.env.reset(**how)

    def step(self, action):
        seen, reward, _, truncated, info = self.env.step(action)
        self.taken += 1
        return seen, reward, self.taken >= 5, truncated, info


SMALL = {"transitions": 5_000, "dim": 5, "steps": 20, "batch": 64, "hidden": (16,), "landmarks": 60}
WORDS = [
    word
    for name in ("transitions", "dim", "steps", "batch", "landmarks")
    for word in (f"--{name}", str(SMALL[name]))
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a finished run; read it, do not change it."""
    out = tmp_path_factory.mktemp("runs") / "two_room"
    reacher = lapwing.reach("TwoRoom", out=out, **SMALL)
    return out, reacher


def test_a_run_keeps_what_it_made(run):
    out, reacher = run
    goal = np.array([0.5, 0.5], np.float32)
    here = np.array([[-0.5, -0.5], [0.0, 0.5]], np.float32)
    np.testing.assert_array_equal(
        lapwing.load_reacher(out).act(here, goal, noise=0.0), reacher.act(here, goal, noise=0.0)
    )
    assert lapwing.load(out).dim == SMALL["dim"]


def test_a_finished_run_is_evaluated_to_the_same(run):
    out, _ = run
    first = json.loads((out / "result.json").read_text())
    again = reopen_reach(out).result
    assert again["success"] == first["success"]
    assert again["episodes"] == first["episodes"] == 50


def test_a_resumed_run_is_the_same(run, tmp_path):
    finished, reacher = run
    out = tmp_path / "again"
    shutil.copytree(finished, out)
    (out / "result.json").unlink()
    (out / "reacher.safetensors").unlink()
    resumed = lapwing.reach("TwoRoom", out=out, resume=True, **SMALL)
    for one, other in zip(resumed.controller.layers, reacher.controller.layers, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    with pytest.raises(ConfigError, match="landmarks"):
        lapwing.reach("TwoRoom", out=out, resume=True, **(SMALL | {"landmarks": 61}))


def test_the_command_line_makes_evaluates_and_draws(run, tmp_path, capsys):
    out, phi = tmp_path / "run", str(run[0] / "representation.safetensors")
    words = [*WORDS, "--hidden", "16", "--representation", phi]
    main(["reach", "TwoRoom", *words, "--out", str(out), "--json"])
    made = json.loads(capsys.readouterr().out)
    assert {"landmarks.png", "plan.png", "goal.png", "paths.png", "film.gif"} <= {
        path.name for path in (out / "figures").iterdir()
    }
    main(["evaluate", str(out), "--json"])
    assert json.loads(capsys.readouterr().out)["success"] == made["success"]


def test_data_without_actions_is_a_sentence(tmp_path, capsys):
    np.savez(
        tmp_path / "data.npz", observations=np.random.default_rng(0).normal(size=(300, 2)), lengths=[150, 150]
    )
    with pytest.raises(SystemExit) as error:
        main(["reach", str(tmp_path / "data.npz"), "--out", str(tmp_path / "run")])
    assert error.value.code == 2
    assert "no actions" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


ROOM = """
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict


class Room(gymnasium.Env):
    '''A point in a square; the goal is in `info`.'''

    action_space = Box(-1.0, 1.0, (2,), np.float32)
    observation_space = Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.goal = self.np_random.uniform(-1, 1, (2, 2)).astype(np.float32)
        self.left = 40
        return self.seen(), {"goal": self.goal}

    def step(self, action):
        self.at, self.left = np.clip(self.at + 0.2 * action, -1, 1).astype(np.float32), self.left - 1
        success = bool(np.linalg.norm(self.at - self.goal) < 0.2)
        return self.seen(), float(success), False, self.left == 0, {"success": success}

    def seen(self):
        return self.at


class GoalRoom(Room):
    '''The same with its goal in a Dict, and a third number in its state.'''

    observation_space = Dict(
        observation=Box(-1.0, 1.0, (3,), np.float32),
        achieved_goal=Box(-1.0, 1.0, (2,), np.float32),
        desired_goal=Box(-1.0, 1.0, (2,), np.float32),
    )

    def seen(self):
        whole = np.append(self.at, np.float32(0.5) * self.at[0] * self.at[1])
        return {"observation": whole, "achieved_goal": self.at, "desired_goal": self.goal}


class FarRoom(Room):
    '''The same with about every second goal where no state is.'''

    def reset(self, **how):
        super().reset(**how)
        self.goal = np.full(2, 40.0, np.float32) if self.goal[0] > 0 else self.goal
        return self.seen(), {"goal": self.goal}
"""


@pytest.fixture
def rooms(tmp_path):
    (tmp_path / "rooms.py").write_text(ROOM)
    return tmp_path / "rooms.py"


def test_steps_past_termination_are_collected_where_asked_for():
    env = gymnasium.make("MountainCar-v0", max_episode_steps=100)
    lengths = {}
    for past in (False, True):
        data = open_for_reaching(
            Ends(env), ReachSettings(transitions=300, past_termination=past), None, None, None
        ).experience
        assert data is not None
        lengths[past] = data.lengths.max()
    assert lengths == {False: 6, True: 101}


@pytest.mark.parametrize(("name", "words"), [("Room", []), ("GoalRoom", ["--observation-key=achieved_goal"])])
def test_environments_with_goals_are_gone_to_and_evaluated(name, words, rooms, tmp_path, capsys, sketched):
    out = tmp_path / "run"
    few = [*WORDS, "--hidden", "64", "--steps", "600", "--batch", "256", *words]
    main(["reach", f"gym:{rooms}:{name}", *few, "--out", str(out), "--json"])
    made = json.loads(capsys.readouterr().out)
    assert made["episodes"] == 20
    assert made["success"] >= 0.6  # actions at random have 0.23
    main(["evaluate", str(out), "--json"])
    assert json.loads(capsys.readouterr().out)["success"] == made["success"]


def test_goals_that_are_no_states_are_told(rooms, tmp_path):
    source = f"gym:{rooms}:GoalRoom"
    with pytest.warns(LapwingWarning, match="observation-key"):
        lapwing.reach(source, out=tmp_path / "run", observation_key="observation", **SMALL)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["success"] is None
    with pytest.warns(LapwingWarning, match="observation-key"):
        outcome = reopen_reach(tmp_path / "run")
    told = io.StringIO()
    Console(file=told, width=200).print(reach_report(outcome))
    assert "desired_goal" in told.getvalue()
    assert f"explore {tmp_path / 'run'};" in told.getvalue()


def test_evaluation_goals_outside_of_the_data_fail_and_the_run_is_finished(rooms, tmp_path):
    out = tmp_path / "run"
    with pytest.warns(LapwingWarning, match=r"goals.*\(40, 40\).*transitions") as warned:
        lapwing.reach(f"gym:{rooms}:FarRoom", out=out, geometry="observation", **SMALL)
    assert len(warned) == 1
    made = json.loads((out / "result.json").read_text())
    assert made["episodes"] == 20
    assert 0 < made["goals_outside"] < 20
    assert made["success"] <= 1 - made["goals_outside"] / 20
    with pytest.warns(LapwingWarning, match="goals"):
        outcome = reopen_reach(out)
    assert outcome.result["success"] == made["success"]
    assert reach_table(outcome).row_count > 0
    draw_reach(outcome, tmp_path / "figures")


def test_where_no_goal_was_near_the_data_there_is_still_something_to_draw(run, tmp_path):
    outcome = reopen_reach(run[0])
    far = outcome.episodes._replace(
        goals=np.full_like(outcome.episodes.goals, 40.0), reached=np.zeros_like(outcome.episodes.reached)
    )
    drawn = draw_reach(outcome._replace(episodes=far), tmp_path / "figures")
    assert {"landmarks.png", "paths.png"} == {path.name for path in drawn}
