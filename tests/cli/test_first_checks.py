"""What can be refused at once is, before JAX is imported."""

import json
import subprocess
import sys

import pytest

from tests.support.command_line import refused

_WITHOUT_JAX = """
import sys
from lapwing.cli.main import main
sys.modules["jax"] = None  # importing it is an error from here on
main(sys.argv[1:])
"""


@pytest.fixture
def run(elsewhere):
    """What looks like the folder of a run that was begun."""
    folder = elsewhere / "taken"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"format": 2, "version": "0", "target": {}}))
    return folder


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("learn FourRoom --dim 0", "--dim"),
        ("learn", "lapwing learn FourRoom"),
        ("learn gym:CartPool-v1", "CartPole-v1"),
        ("learn gym:CartPole-v1 --wrap nowhere:Wrapper", "'nowhere'"),
        ("learn gym:CartPole-v1 --wrap gone.py:Wrapper", "gone.py"),
        ("learn gym:CartPole-v1 --wrap gymnasium.wrappers:TimeLimt", "TimeLimit"),
        ("learn FourRoom --out taken", "--overwrite"),
        ("reach taken", "--representation taken"),
        ("evaluate nowhere", "nowhere"),
        ("explore nowhere", "nowhere"),
        ("explore take", "did you mean taken?"),
        ("explore ring.py", "lapwing learn gym:ring.py:NAME"),
        ("evaluate walks.npz", "lapwing learn walks.npz"),
        ("train gym:CartPole-v1 --goal 0.8,0", "--goal='0.8,0' only works with mazes"),
        ("train gym:CartPole-v1 --representation taken", "lapwing.LaplacianReward"),
        ("data taken", "lapwing data inspect taken"),
        ("data inspect", "lapwing data inspect"),
        ("reach data.npz --goal 1,1", ".act(observation, goal)"),
    ],
)
@pytest.mark.usefixtures("run")
def test_a_refusal_names_what_is_wrong(words, named):
    assert named in refused(*words.split())


@pytest.mark.parametrize(
    "words",
    [
        "learn FourRoom --dim 0",
        "learn gym:CartPool-v1",
        "learn gym:nowhere.py:Env",
        "learn gym:CartPole-v1 --wrap nowhere:Wrapper",
        "learn FourRoom --out taken",
        "learn nowhere.npz",
        "learn minari:no/where-v0",
        "reach ogbench:pointmaze-huge-navigate",
        "train gym:CartPole-v1 --representation taken",
        "data inspect nowhere.npz",
    ],
)
def test_a_refusal_needs_no_jax(words, run):
    called = [sys.executable, "-c", _WITHOUT_JAX, *words.split()]
    ended = subprocess.run(called, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_wrapper_is_refused_before_the_folder_of_the_run_is_told(elsewhere):
    (elsewhere / "runs" / "gym-CartPole-v1").mkdir(parents=True)
    assert "CartPole-v1-2" not in refused("learn", "gym:CartPole-v1", "--wrap", "nowhere:Wrapper")


def test_a_foreign_folder_is_not_called_a_run(elsewhere):
    (elsewhere / "mine").mkdir()
    (elsewhere / "mine" / "config.json").write_text("{}")
    assert "--overwrite" not in refused("learn", "TwoRoom", "--out", "mine")


def test_a_file_of_ones_own_without_its_suffix_is_named_in_full(elsewhere):
    (elsewhere / "boat.py").write_text("")
    assert "gym:boat.py:Boat" in refused("learn", "gym:boat:Boat")
