import functools
import importlib
import json
import linecache
import shutil
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import lapwing
from lapwing.errors import CheckpointError, ConfigError, LapwingWarning
from lapwing.sweeps import on_ray
from lapwing.sweeps.grid import SweepRun
from lapwing.sweeps.local import name_of
from lapwing.sweeps.pools import pool_maker
from lapwing.sweeps.sweep import RESULTS, digest_of, learn_and_evaluate
from tests.support import swept
from tests.support.command_line import refused


def test_every_combination_is_done_in_order_and_kept(tmp_path):
    told = []
    runs = lapwing.sweep(
        swept.area,
        {"width": np.arange(2, 4), "height": (5.0,)},
        out=tmp_path / "out",
        jobs=1,
        on_progress=lambda *each: told.append(each),
    )
    assert [run.parameters for run in runs] == [{"width": 2, "height": 5.0}, {"width": 3, "height": 5.0}]
    assert [run.result["area"] for run in runs] == [10.0, 15.0]
    assert runs[0].result["sides"] == [2.0, 5.0]
    assert runs[0].result["open"] is None
    assert runs[0].row()["area"] == 10.0
    assert [done for _, done, *_ in told] == [0, 1, 2]
    assert json.loads((tmp_path / "out" / RESULTS).read_text())["runs"][0]["seconds"] >= 0


def test_what_is_done_is_not_done_again_and_failures_only_when_asked(tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    points = [{"number": number, "log": str(log)} for number in (1, 2, 3)]
    runs = lapwing.sweep(swept.refuse_two, points[:2], out=out, jobs=1)
    assert runs[0].result == 0
    assert runs[1].error == "number must not be 2"
    runs = lapwing.sweep(swept.refuse_two, points, out=out, jobs=1)
    assert "ZeroDivisionError" in runs[2].error
    assert "swept.py" in runs[2].error
    assert log.read_text().split() == ["1", "2", "3"]
    lapwing.sweep(swept.refuse_two, points[:2], out=out, jobs=1, retry=True)
    assert log.read_text().split() == ["1", "2", "3", "2"]


def test_a_row_keeps_every_number():
    result = {"seconds": 1, "error": 2, "width": 3, "result_width": 4, "area": 5}
    row = SweepRun({"width": 6}, result=result, seconds=7.0).row()
    assert sorted(map(str, row.values())) == ["1", "2", "3", "4", "5", "6", "7.0", "None"]
    assert (row["width"], row["area"], row["seconds"], row["error"]) == (6, 5, 7.0, None)


def module_with(folder, body):
    """A module of its own whose function `f` has this body; it is imported anew."""
    (folder / "own_sweep.py").write_text(f"def f(number):\n{body}\n")
    sys.modules.pop("own_sweep", None)
    linecache.clearcache()
    importlib.invalidate_caches()
    return importlib.import_module("own_sweep").f


def test_results_of_before_the_function_was_changed_are_warned_of(tmp_path, monkeypatch, recwarn):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    out, grid = tmp_path / "out", {"number": [1, 2]}
    lapwing.sweep(module_with(tmp_path, "    return number"), grid, out=out, jobs=1)
    lapwing.sweep(module_with(tmp_path, "    # the same\n    return  number"), grid, out=out, jobs=1)
    assert not recwarn
    with pytest.warns(LapwingWarning, match="2 of 2"):
        runs = lapwing.sweep(module_with(tmp_path, "    return -number"), grid, out=out, jobs=1)
    assert [run.result for run in runs] == [1, 2]


def test_what_a_target_is_made_of_is_in_its_digest(tmp_path):
    """A data file, a folder of data, and the file of an environment; other targets have none."""
    found = []
    for seed in (0, 1):
        walks = np.random.default_rng(seed).normal(size=(3, 9, 2)).astype(np.float32)
        shutil.rmtree(tmp_path / "walks", ignore_errors=True)
        lapwing.save_episodes(tmp_path / "walks", walks)
        (tmp_path / "env.py").write_text(f"SEED = {seed}\n")
        (tmp_path / "walks.npz").write_bytes(bytes([seed]))
        names = (tmp_path / "walks", f"gym:{tmp_path}/env.py:Env", tmp_path / "walks.npz")
        found.append([digest_of(str(name)) for name in names])
    assert None not in found[0]
    assert not set(found[0]) & set(found[1])
    assert digest_of("FourRoom") is None


def test_what_a_function_holds_is_in_its_digest():
    def made(factor):
        def multiply(number):
            return factor * number

        return multiply

    assert digest_of(made(2)) == digest_of(made(2))
    assert digest_of(made(2)) != digest_of(made(3))
    two, three = (functools.partial(swept.area, width=width) for width in (2, 3))
    assert digest_of(two) != digest_of(three)
    assert name_of(functools.partial(swept.area, width=2)) == name_of(functools.partial(swept.area, width=2))


def test_a_worker_that_dies_fails_its_point_and_the_others_are_done():
    runs = lapwing.sweep(swept.fall_over, {"number": [1, 2]}, jobs=1)
    assert "signal 9" in runs[0].error
    assert runs[1].result == 2


def test_a_target_is_learned_and_measured():
    measures = learn_and_evaluate("FourRoom", lambda *_: None, dim=3, transitions=20_000, steps=50)
    assert len(measures["eigenvalues"]) == 3
    assert measures["gap"] >= 0


@pytest.mark.slow
def test_a_target_is_learned_for_every_point(tmp_path):
    grid = {"dim": [3, 4], "transitions": [2_000], "steps": [50]}
    runs = lapwing.sweep("FourRoom", grid, out=tmp_path, jobs=1)
    assert [run.error for run in runs] == [None, None]
    assert [len(run.result["eigenvalues"]) for run in runs] == [3, 4]


def test_a_function_of_a_script_is_found_and_a_kill_loses_nothing(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        textwrap.dedent("""
            import os, sys
            import lapwing

            def square(number):
                return number * number

            def stop(phase, done, total, metrics):
                if done == int(sys.argv[1]):
                    os._exit(9)

            if __name__ == "__main__":
                runs = lapwing.sweep(square, {"number": [1, 2, 3]}, out="out", jobs=1, on_progress=stop)
                print([run.result for run in runs])
        """)
    )
    killed = subprocess.run([sys.executable, script, "2"], cwd=tmp_path, timeout=120)
    assert killed.returncode == 9
    assert len(json.loads((tmp_path / "out" / RESULTS).read_text())["runs"]) == 2
    again = subprocess.run(
        [sys.executable, script, "9"], cwd=tmp_path, timeout=120, capture_output=True, text=True
    )
    assert again.stdout == "[1, 4, 9]\n", again.stderr


GUARDED = """
import sys
import lapwing

FACTOR = int(sys.argv[1])

def scaled(number):
    return number * FACTOR

if __name__ == "__main__":
    print([run.result for run in lapwing.sweep(scaled, {"number": [1, 2]}, jobs=1)])
"""


@pytest.mark.parametrize("words", [["own.py"], ["-m", "own"]], ids=["script", "module"])
def test_workers_see_the_words_of_the_command_line(tmp_path, words):
    (tmp_path / "own.py").write_text(GUARDED)
    done = subprocess.run(
        [sys.executable, *words, "10"], cwd=tmp_path, timeout=120, capture_output=True, text=True
    )
    assert done.stdout == "[10, 20]\n", done.stderr


def test_a_script_without_a_guard_is_told_of_it_and_nothing_is_kept(tmp_path):
    """Its call of `sweep` is met again by every worker that looks for the function."""
    script = tmp_path / "bare.py"
    script.write_text(
        "import lapwing\n\ndef same(number):\n    return number\n\n"
        "lapwing.sweep(same, {'number': [1]}, jobs=1, out='out')\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "ConfigError" in done.stderr
    assert "__main__" in done.stderr
    assert not (tmp_path / "out" / RESULTS).exists()


@pytest.mark.parametrize(
    ("function", "grid", "options", "named"),
    [
        (lambda number: number, {"number": [1]}, {}, "function"),
        (functools.partial(swept.told, on_progress=None), {"number": [1]}, {}, "function"),
        (swept.told, {"number": 3}, {}, "number"),
        (swept.told, {"number": "abc"}, {}, "number"),
        (swept.told, [{"number": 1}, {"number": 1}], {}, "twice"),
        (swept.told, {"number": [float("nan")]}, {}, "nan"),
        (swept.told, {"number": [object()]}, {}, "object"),
        (swept.told, {"number": [1]}, {"jobs": 0}, "jobs"),
        (swept.told, {"number": [1]}, {"jobs": "2"}, "jobs"),
        (swept.told, None, {}, "grid"),
        (swept.told, ["number"], {}, "grid"),
        (None, {"number": [1]}, {}, "function"),
        ("FourRoom", {"target": ["TwoRoom"]}, {}, "target"),
        (swept.told, {"number": [1]}, {"on": None}, "on must"),
        (swept.told, {"number": [1]}, {"on": "moon"}, "moon"),
    ],
)
def test_what_cannot_be_swept_is_refused_by_name(function, grid, options, named):
    with pytest.raises(ConfigError, match=named):
        lapwing.sweep(function, grid, **options)


def test_results_that_json_cannot_hold_are_errors_of_the_run():
    (run,) = lapwing.sweep(swept.not_json, {"number": [1]}, jobs=1)
    assert "object" in run.error


def test_results_of_another_function_and_damaged_ones_are_refused(tmp_path):
    lapwing.sweep(swept.told, [], out=tmp_path)
    assert not (tmp_path / RESULTS).exists()
    lapwing.sweep(swept.told, {"number": [1]}, out=tmp_path, jobs=1)
    with pytest.raises(CheckpointError, match=RESULTS):
        lapwing.sweep(swept.area, {"width": [1], "height": [1]}, out=tmp_path)
    text = (tmp_path / RESULTS).read_text()
    (tmp_path / RESULTS).write_text(
        text.replace('"result":1', '"result":7').replace('"result": 1', '"result": 7')
    )
    with pytest.raises(CheckpointError, match=RESULTS):
        lapwing.sweep(swept.told, {"number": [1]}, out=tmp_path)


@pytest.mark.parametrize("given", [False, True], ids=["RAY_ADDRESS", "on"])
def test_what_listens_and_is_no_cluster_is_refused_in_time(monkeypatch, given):
    monkeypatch.setattr(on_ray, "HEALTH_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1" if given else address)
        with pytest.raises(ConfigError, match=address):
            lapwing.sweep(swept.told, {"number": [1]}, on=f"ray:{address}" if given else "ray")


@pytest.mark.parametrize("where", ["moon", "ray:nowhere", "ray:127.0.0.1:1"])
def test_a_place_that_is_none_is_refused_on_the_command_line(where, tmp_path):
    assert where.removeprefix("ray:") in refused("reproduce", "fig3", "--on", where, "--out", tmp_path)


def test_an_address_without_a_cluster_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1"):
        pool_maker("ray:127.0.0.1:1")(1, tmp_path)
