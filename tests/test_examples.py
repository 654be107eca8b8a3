"""Every example runs as a script, and says what it is there to show."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import sharing_compiled

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=sharing_compiled() | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line)]


def test_every_example_is_run_here():
    tested = {"own_environment.py", "cartpole.py", "offline_data.py", "sb3_shaped.py", "swiss_roll.py"}
    tested |= {"dqn_single_file.py", "any_goal.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested


def test_an_environment_of_ones_own_has_a_distance_that_knows_its_wall(tmp_path):
    printed = run("own_environment.py", str(tmp_path), "20000", cwd=tmp_path)
    through, beside = (numbers(line.split("  ")[-1])[-1] for line in printed.splitlines()[1:3])
    assert through > 1.5 * beside
    assert (tmp_path / "rooms.safetensors").is_file()


@pytest.mark.slow
def test_cartpole_is_drawn(tmp_path):
    printed = run("cartpole.py", str(tmp_path), cwd=tmp_path)
    assert numbers(printed.splitlines()[0])[:2] == sorted(numbers(printed.splitlines()[0])[:2])
    assert (tmp_path / "cartpole.png").is_file()


def test_recorded_data_becomes_eigenfunctions(tmp_path):
    printed = run("offline_data.py", str(tmp_path), "60", cwd=tmp_path)
    assert "'episodes': 60" in printed
    trusted = int(re.search(r"trusted (\d+) of 6", printed)[1])
    assert trusted >= 3
    assert (tmp_path / "offline.png").is_file()
    assert (tmp_path / "walks_run" / "representation.safetensors").is_file()


def test_any_goal_is_reached_from_random_data(tmp_path):
    printed = run("any_goal.py", str(tmp_path), "6000", cwd=tmp_path)
    reached = int(re.search(r"(\d+) of 20 goals", printed)[1])
    assert reached >= 14
    assert (tmp_path / "plan.png").is_file()


@pytest.mark.slow
def test_a_shaped_agent_of_stable_baselines_learns_sooner(tmp_path):
    printed = run("sb3_shaped.py", cwd=tmp_path)
    success = {line.split()[0]: int(line.split()[-1].rstrip("%")) for line in printed.splitlines()}
    assert success["potential"] > success["sparse"] + 20


def test_a_swiss_roll_is_unrolled_for_points_that_were_not_there(tmp_path):
    printed = run("swiss_roll.py", str(tmp_path), cwd=tmp_path)
    assert "PCA" in printed
    assert list(tmp_path.glob("*.png"))


def test_a_dqn_in_one_file_learns_from_the_shaped_reward(tmp_path):
    printed = run(
        *("dqn_single_file.py", "--total-timesteps", "2000", "--phi-transitions", "5000"),
        *("--evaluation-episodes", "20"),
        cwd=tmp_path,
    )
    assert int(re.search(r"potential: success (\d+)%", printed)[1]) >= 60
