import json

import numpy as np
import pytest

import lapwing
from lapwing.cli.main import main
from lapwing.errors import ConfigError
from lapwing.runs.reach import reopen_reach

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
    _, reacher = run
    out = tmp_path / "again"
    lapwing.reach("TwoRoom", out=out, **SMALL)
    (out / "result.json").unlink()
    (out / "reacher.safetensors").unlink()
    resumed = lapwing.reach("TwoRoom", out=out, resume=True, **SMALL)
    for one, other in zip(resumed.controller.layers, reacher.controller.layers, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    with pytest.raises(ConfigError, match="landmarks"):
        lapwing.reach("TwoRoom", out=out, resume=True, **(SMALL | {"landmarks": 61}))


def test_the_command_line_makes_evaluates_and_draws(tmp_path, capsys):
    out = tmp_path / "run"
    main(["reach", "TwoRoom", *WORDS, "--hidden", "16", "--out", str(out), "--json"])
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
