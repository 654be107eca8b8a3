"""Metrics in TensorBoard and Weights & Biases."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import lapwing
from lapwing.errors import ConfigError
from lapwing.integrations.metric_logger import metric_logger
from tests.support.command_line import called

SMALL = {"transitions": 20_000, "dim": 3, "steps": 50, "observation": "index"}


def logged(folder: Path) -> dict[str, dict[int, float]]:
    """The scalars of an event file: by tag, then by step."""
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})  # all of them
    events.Reload()
    return {
        tag: {event.step: float(event.tensor_proto.float_val[0]) for event in events.Tensors(tag)}
        for tag in events.Tags()["tensors"]
    }


class Run:
    """What `wandb.init` returns, as far as it is used."""

    def __init__(self, **options):
        self.options, self.rows, self.defined, self.finished = options, [], [], False

    def define_metric(self, name, step_metric):
        self.defined.append((name, step_metric))

    def log(self, row):
        self.rows.append(row)

    def finish(self):
        self.finished = True


@pytest.fixture
def wandb_runs(monkeypatch) -> list[Run]:
    runs: list[Run] = []
    module = types.ModuleType("wandb")
    module.init = lambda **options: runs.append(Run(**options)) or runs[-1]  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return runs


def test_tensorboard_has_the_metrics_of_each_step(tmp_path):
    told = []

    def also(*progress):
        told.append(progress)

    with metric_logger(tensorboard=tmp_path / "board", also=also) as log:
        lapwing.learn("OneRoom", on_progress=log, **SMALL)
    rows = [(done, metrics) for phase, done, _, metrics in told if phase == "learning" and metrics]
    found = logged(tmp_path / "board")
    assert rows
    assert found["learning/loss"] == pytest.approx({step: row["loss"] for step, row in rows}, rel=1e-6)
    assert "learning/step" not in found


def test_wandb_has_them_under_a_step_of_their_phase(wandb_runs):
    told = []
    with metric_logger(wandb={"project": "phi"}, also=lambda *progress: told.append(progress)) as log:
        log("collecting", 10, 20, {})
        log("learning", 5, 9, {"loss": 2.0, "step": 5})
        log("learning", 9, 9, {"loss": 1.0})
    assert [(phase, done) for phase, done, *_ in told] == [
        ("collecting", 10),
        ("learning", 5),
        ("learning", 9),
    ]
    (run,) = wandb_runs
    assert run.options == {"project": "phi"}
    assert run.defined == [("learning/*", "learning/step")]
    assert run.rows == [
        {"learning/loss": 2.0, "learning/step": 5},
        {"learning/loss": 1.0, "learning/step": 9},
    ]
    assert run.finished


def test_a_run_is_finished_where_learning_fails(wandb_runs):
    def failing() -> None:
        with metric_logger(wandb={}) as log:
            log("learning", 1, 9, {"loss": 2.0})
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        failing()
    assert wandb_runs[0].finished


def test_both_at_once_from_the_command_line(elsewhere, wandb_runs):
    options = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
    code, _, err = called("learn", "--log", "tensorboard", "wandb", "OneRoom", "--out", "runs/mine", *options)
    assert code == 0, err
    found = logged(Path("runs/tensorboard/mine"))
    assert {"learning/loss", "result/gap"} <= found.keys()
    (run,) = wandb_runs
    assert run.options["name"] == "mine"
    assert sum("learning/loss" in row for row in run.rows) == len(found["learning/loss"])


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(ConfigError, match=r"\[tensorboard\]"), metric_logger(tensorboard=tmp_path):
        pass
    with pytest.raises(ConfigError, match=r"tensorboard.*wandb"), metric_logger():
        pass


@pytest.mark.slow
def test_wandb_itself_offline(tmp_path, monkeypatch):
    import wandb

    monkeypatch.setenv("WANDB_SILENT", "true")
    options = {"project": "phi", "mode": "offline", "dir": str(tmp_path)}
    with metric_logger(wandb=options) as log:
        log("learning", 5, 9, {"loss": 2.0})
    wandb.teardown()  # as at the end of a process: its service writes what it still holds
    (record,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert b"learning/loss" in record.read_bytes()


REFUSED = """
from lapwing.errors import ConfigError
from lapwing.integrations.metric_logger import metric_logger
try:
    with metric_logger(wandb={"project": "phi"}):
        pass
except ConfigError as error:
    print("refused:", error)
"""


def test_wandb_without_a_key_is_refused_with_a_sentence(tmp_path):
    """In a process of its own, for wandb starts a service and leaves files open."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    done = subprocess.run(
        [sys.executable, "-c", REFUSED],
        env=ours | {"HOME": str(tmp_path)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("refused: wandb did not begin a run"), done.stderr
