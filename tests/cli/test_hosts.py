"""`lapwing learn --hosts`: jobs of real processes, one of which is killed, or never comes."""

import json
import os
import shutil
import signal
import socket
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lapwing
from lapwing.cli import hosts, rendezvous
from lapwing.errors import ConfigError, HostsError
from lapwing.runs.folder import RunFolder
from tests.support.command_line import called, refused
from tests.support.interruptions import Interrupted, stop_at
from tests.support.jobs import (
    ADDRESSES,
    PAIRWISE,
    cut_cable,
    end_all,
    free_port,
    sharded_walks,
    start_learning,
    two_hosts,
)


@pytest.fixture(autouse=True)
def no_process_outlives_its_test():
    yield
    end_all()


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
    assert "signal 9" in said
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


@pytest.mark.parametrize(("steps", "awaited"), [(10**5, None), (10**5, "checkpoint-*"), (10**9, "config.*")])
def test_an_interrupt_ends_a_process_at_once_and_quietly(tmp_path, steps, awaited):
    """Before the others have come, between two records, and where the first record is 10^7 steps away."""
    shards, out, port, connected = sharded_walks(tmp_path, 2), tmp_path / "run", free_port(), bool(awaited)
    begun = [start_learning(shards, out, port, n, 2, "--steps", str(steps)) for n in range(1 + connected)]
    while awaited and not list(out.glob(awaited)):
        assert begun[0].poll() is None
        time.sleep(0.05)
    time.sleep(0 if connected else 3)
    begun[0].send_signal(signal.SIGINT)
    _, said = begun[0].communicate(timeout=40)
    assert begun[0].returncode == 130, said
    assert "Traceback" not in said
    assert ("--resume" in said) == connected
    ended(begun[1:], 2)


def test_processes_that_do_not_come_are_waited_for_as_long_as_is_said(tmp_path, monkeypatch):
    shards, read = sharded_walks(tmp_path, 2), hosts.read_place
    monkeypatch.setattr(hosts, "read_place", lambda text: replace(read(text), seconds=1))
    code, out, err = called(
        "learn", shards, "--hosts", f"127.0.0.1:{free_port()},1/2", "--out", tmp_path / "run"
    )
    assert (code, out) == (2, "")
    assert "1 seconds" in err
    assert "127.0.0.1" in err


PLACES = [
    "",
    "here",
    "10.0.0.1,0/2",
    "10.0.0.1:99,2/2",
    "10.0.0.1:99,-1/2",
    "10.0.0.1:99999,0/2",
    "::1:9999,0/2",
]


@pytest.mark.parametrize("text", PLACES)
def test_a_place_that_cannot_be_meant_is_refused(text):
    with pytest.raises(ConfigError, match="hosts must"):
        rendezvous.read_place(text)


def test_a_port_that_is_taken_is_named_at_once():
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostsError, match=str(port)):
            rendezvous.connect(rendezvous.Place(f"127.0.0.1:{port}", 0, 2))


def test_an_address_that_leads_nowhere_is_named():
    with pytest.raises(HostsError, match=r"nowhere\.invalid"):
        rendezvous.address_towards("nowhere.invalid:1234")


def ended(begun: list, code: int) -> list[tuple[str, str]]:
    """What each process printed and said; all end with this code, and without a traceback."""
    told = [process.communicate(timeout=120) for process in begun]
    assert [process.returncode for process in begun] == [code] * len(begun), told
    assert not any("Traceback" in said for _, said in told)
    return told


def test_what_one_process_refuses_is_told_by_all(tmp_path):
    shards, port = sharded_walks(tmp_path, 2), free_port()
    partial = shutil.copytree(shards, tmp_path / "partial")
    shutil.rmtree(partial / "shard-001")
    begun = [start_learning(at, tmp_path / "run", port, n, 2) for n, at in enumerate((shards, partial))]
    for printed, said in ended(begun, 2):
        assert printed == ""
        assert "process 1" in said
        assert str(partial / "shard-001") in said


def test_processes_that_were_told_other_numbers_of_processes_are_refused(tmp_path):
    shards, port = sharded_walks(tmp_path, 2), free_port()
    begun = [start_learning(shards, tmp_path / "run", port, n, 2 + n, "--steps", "20") for n in range(2)]
    for _, said in ended(begun, 2):
        assert "number of processes 3" in said


def test_a_finished_run_is_one_for_processes_without_its_folder_too(tmp_path):
    shards, out, settings = sharded_walks(tmp_path, 2), tmp_path / "run", PAIRWISE | {"steps": 20}
    lapwing.learn(shards, out=out, **settings)
    begun = [start_learning(shards, out, (port := free_port()), 0, 2, "--steps", "20")]
    begun.append(start_learning(shards, out, port, 1, 2, "--steps", "20"))
    for _, said in ended(begun, 2):
        assert "process 0" in said
        assert "--overwrite" in said
    port, resumed = free_port(), ["--steps", "20", "--resume", "--json"]
    begun = [
        start_learning(shards, tmp_path / name, port, n, 2, *resumed) for n, name in enumerate(("run", "no"))
    ]
    (printed, _), (nothing, _) = ended(begun, 0)
    assert json.loads(printed)["transitions"] == 2_000
    assert nothing == ""
    assert not (tmp_path / "no").exists()


@pytest.fixture
def machines():
    with ExitStack() as stack:
        try:
            yield stack.enter_context(two_hosts())
        except OSError as error:
            pytest.skip(f"no network namespaces can be made here: {error}")


def test_machines_with_addresses_of_their_own_learn_together(tmp_path, machines):
    """Also where the machine's name leads to a loopback address, as on most; each has a disk of its own."""
    shards, begun = sharded_walks(tmp_path, 2), []
    for number, on in enumerate(machines):
        own, out = shutil.copytree(shards, tmp_path / f"disk-{number}"), tmp_path / f"run-{number}"
        shutil.rmtree(own / f"shard-{1 - number:03d}")
        words = ["--steps", "20", "--json"]
        begun.append(start_learning(own, out, 4_321, number, 2, *words, at=ADDRESSES[0], on=on))
    (printed, _), (nothing, _) = ended(begun, 0)
    assert json.loads(printed)["transitions"] == 2_000
    assert nothing == ""
    assert not (tmp_path / "run-1").exists()


@pytest.mark.slow
def test_machines_whose_cable_is_cut_end_with_a_sentence(tmp_path, machines):
    shards, out, begun = sharded_walks(tmp_path, 2), tmp_path / "run", []
    for number, on in enumerate(machines):
        words = ["--steps", "400000"]
        begun.append(start_learning(shards, out, 4_321, number, 2, *words, at=ADDRESSES[0], on=on))
    while not list(out.glob("checkpoint-*")):
        assert all(process.poll() is None for process in begun), begun[0].communicate()
        time.sleep(0.05)
    cut_cable()
    for _, said in ended(begun, 2):
        assert "--resume" in said


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
