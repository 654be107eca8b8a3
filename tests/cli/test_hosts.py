"""`lapwing learn --hosts`: jobs of real processes, one of which is killed, or never comes."""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lapwing
from lapwing.cli import hosts
from lapwing.errors import ConfigError
from lapwing.runs.folder import RunFolder
from tests.support.command_line import called, refused
from tests.support.interruptions import Interrupted, stop_at
from tests.support.jobs import PAIRWISE, free_port, sharded_walks, start_learning


def child_of(process: int) -> int:
    return int(Path(f"/proc/{process}/task/{process}/children").read_text().split()[-1])


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are looked up in /proc")
def test_a_killed_process_ends_the_job_with_a_sentence_and_one_process_resumes_it(tmp_path):
    shards, out, port, steps = (
        sharded_walks(tmp_path, 2),
        tmp_path / "run",
        free_port(),
        ["--steps", "20000"],
    )
    begun = [start_learning(shards, out, port, number, 2, *steps) for number in range(2)]
    while not list(out.glob("checkpoint-*")):
        assert all(process.poll() is None for process in begun), begun[0].communicate()
        time.sleep(0.05)
    os.kill(child_of(begun[1].pid), signal.SIGKILL)
    for process in begun:
        printed, said = process.communicate(timeout=60)
        assert process.returncode == 2, said
        assert printed == ""
        assert "--resume" in said
        assert "Traceback" not in said
    reached = max(int(path.stem.split("-")[1]) for path in out.glob("checkpoint-*"))
    settings: dict[str, Any] = PAIRWISE | {"steps": 20_000}
    with pytest.raises(Interrupted):
        lapwing.learn(
            shards,
            out=out,
            resume=True,
            on_progress=stop_at("learning", 1),
            **settings,
        )
    assert RunFolder(out).metrics()[-1]["step"] > reached


def test_processes_that_do_not_come_are_waited_for_as_long_as_is_said(tmp_path, monkeypatch):
    shards, read = sharded_walks(tmp_path, 2), hosts.read_place
    monkeypatch.setattr(hosts, "read_place", lambda text: replace(read(text), seconds=1))
    code, out, err = called(
        "learn", shards, "--hosts", f"127.0.0.1:{free_port()},1/2", "--out", tmp_path / "run"
    )
    assert (code, out) == (2, "")
    assert "1 seconds" in err
    assert "127.0.0.1" in err


@pytest.mark.parametrize("text", ["", "here", "10.0.0.1,0/2", "10.0.0.1:99,2/2", "10.0.0.1:99,-1/2"])
def test_a_place_that_cannot_be_meant_is_refused(text):
    with pytest.raises(ConfigError, match="hosts must"):
        hosts.read_place(text)


def test_hosts_go_with_shards(elsewhere):
    assert "shards" in refused("learn", "FourRoom", "--hosts", "127.0.0.1:9999,0/2")


@pytest.mark.slow
def test_the_place_is_what_slurm_says(tmp_path, monkeypatch, capfd):
    """Two processes with the environment of SLURM's tasks, by `--hosts auto`; without one, a sentence."""
    shards = sharded_walks(tmp_path, 2)
    code, _, _ = called("learn", shards, "--hosts", "auto", "--out", tmp_path / "none")
    assert code == 2
    assert "SLURM" in capfd.readouterr().err
    job = {"SLURM_JOB_ID": str(free_port()), "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2"}
    begun = []
    for number in range(2):
        for name, value in (job | {"SLURM_PROCID": str(number), "SLURM_LOCALID": str(number)}).items():
            monkeypatch.setenv(name, value)
        words = ["--steps", "20", "--json"]
        process = start_learning(shards, tmp_path / "run", 0, number, 2, "--hosts", "auto", *words)
        begun.append(process)
    (printed, _), (nothing, said) = (process.communicate(timeout=300) for process in begun)
    assert [process.returncode for process in begun] == [0, 0], said
    assert json.loads(printed)["transitions"] == 2_000
    assert nothing == ""
