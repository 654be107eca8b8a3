import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lapwing
from lapwing import storage
from lapwing.errors import CheckpointError, ConfigError, LapwingError, LapwingWarning, StorageError
from lapwing.mazes import read_maze
from lapwing.runs import folder as runs
from lapwing.runs.folder import RunFolder
from lapwing.runs.learn import reopen
from tests.support.folders import content, without_times
from tests.support.interruptions import Interrupted, stop_at
from tests.support.processes import ONE_THREAD, Zygote
from tests.support.small_runs import SMALL


@pytest.fixture(scope="session")
def interrupted_run(tmp_path_factory) -> Path:
    """A run cut off at step 31 of 60, with a checkpoint at 30 and one at 31."""
    out = tmp_path_factory.mktemp("runs") / "interrupted"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
        patch.setattr(runs, "SHARE_OF_CHECKPOINTS", float("inf"))
        with pytest.raises(Interrupted):
            lapwing.learn("FourRoom", out=out, on_progress=stop_at("learning", 31), **SMALL)
    return out


@pytest.fixture
def interrupted(interrupted_run, tmp_path) -> Path:
    return Path(shutil.copytree(interrupted_run, tmp_path / "run"))


@pytest.fixture
def finished(four_room_run, tmp_path) -> Path:
    return Path(shutil.copytree(four_room_run, tmp_path / "run"))


def rewrite(path: Path, **changed) -> None:
    """Change a JSON file of a run as lapwing would, with a digest that fits."""
    storage.write_checked_json(path, storage.read_checked_json(path) | changed)


def without_digests(folder: Path) -> None:
    """Make a run what lapwing 0.1.0 would have written."""
    rows = RunFolder(folder).metrics()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, changed in (("config.json", {"format": 1}), ("result.json", {})):
        if (folder / name).is_file():
            content = storage.read_checked_json(folder / name) | changed
            content.pop("tried", None)  # which came later
            (folder / name).write_text(json.dumps(content, indent=2) + "\n")


def learn(out: Path, **changed) -> lapwing.Representation:
    return lapwing.learn("FourRoom", out=out, **(SMALL | changed))


def assert_same_run(first: Path, second: Path) -> None:
    """The same bits, and the same numbers but for times and the folder's name."""
    name = "representation.safetensors"
    assert (first / name).read_bytes() == (second / name).read_bytes()
    one, other = RunFolder(first), RunFolder(second)
    assert without_times(one.result()) == without_times(other.result())
    assert without_times(one.metrics()) == without_times(other.metrics())


def test_a_finished_run_has_everything_and_no_checkpoints(four_room_run):
    assert set(content(four_room_run)) == {
        "config.json",
        "experience.npz",
        "metrics.jsonl",
        "representation.safetensors",
        "result.json",
    }
    folder = RunFolder(four_room_run)
    assert folder.finished
    assert [row["step"] for row in folder.metrics()] == list(range(1, 61))
    assert folder.config()["settings"]["dim"] == 4
    assert folder.config()["version"] == lapwing.__version__
    assert folder.config()["target"]["name"] == "FourRoom"
    assert folder.result()["steps"] == 60


def test_an_unfinished_run_has_its_last_two_checkpoints(interrupted):
    assert sorted(path.name for path in interrupted.glob("checkpoint*")) == [
        "checkpoint-000000030.safetensors",
        "checkpoint-000000031.safetensors",
    ]
    assert not RunFolder(interrupted).finished
    assert RunFolder(interrupted).metrics()[-1]["step"] == 31


def test_checkpoints_keep_their_distance_and_one_is_written_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "SECONDS_BETWEEN_CHECKPOINTS", 1e9)
    with pytest.raises(Interrupted):
        lapwing.learn("FourRoom", out=tmp_path / "a", on_progress=stop_at("learning", 59), **SMALL)
    assert list((tmp_path / "a").glob("checkpoint*")) == []
    with pytest.raises(Interrupted):
        lapwing.learn("FourRoom", out=tmp_path / "b", on_progress=stop_at("learning", 60), **SMALL)
    assert [path.name for path in (tmp_path / "b").glob("checkpoint*")] == [
        "checkpoint-000000060.safetensors"
    ]


def test_an_interrupted_run_goes_on_to_the_same_bits(interrupted, four_room_run):
    seen = []
    lapwing.learn(
        "FourRoom",
        out=interrupted,
        resume=True,
        on_progress=lambda phase, done, *rest: seen.append((phase, done)),
        **SMALL,
    )
    assert_same_run(interrupted, four_room_run)
    assert min(done for phase, done in seen if phase == "learning" and done) == 32
    assert list(interrupted.glob("checkpoint*")) == []


def test_a_run_without_a_checkpoint_starts_over_to_the_same_bits(interrupted, four_room_run):
    for path in interrupted.glob("checkpoint*"):
        path.unlink()
    (interrupted / "experience.npz").unlink()
    learn(interrupted, resume=True)
    assert_same_run(interrupted, four_room_run)


def test_what_was_collected_is_kept_while_settings_are_tried(tmp_path, monkeypatch):
    """Cut off at the first trial: it is resumed without a step in the environment, to the same bits."""
    given = {"transitions": 400, "dim": 3, "trials": 2}
    whole = lapwing.learn("gym:MountainCar-v0", out=tmp_path / "whole", **given)
    stop = stop_at("trying out", 1)
    with pytest.raises(Interrupted):
        lapwing.learn("gym:MountainCar-v0", out=tmp_path / "cut", on_progress=stop, **given)
    monkeypatch.setattr("lapwing.data.open.collect", None)
    resumed = lapwing.learn("gym:MountainCar-v0", out=tmp_path / "cut", resume=True, **given)
    assert resumed.sha256() == whole.sha256()
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


def test_resuming_where_nothing_was_begun_begins(tmp_path, four_room_run):
    with pytest.warns(LapwingWarning, match="no run"):
        learn(tmp_path / "new", resume=True)
    assert_same_run(tmp_path / "new", four_room_run)


def test_resuming_a_finished_run_only_reads_it(finished):
    before = content(finished)
    phases = []
    lapwing.learn(
        "FourRoom", out=finished, resume=True, on_progress=lambda phase, *rest: phases.append(phase), **SMALL
    )
    assert content(finished) == before
    assert "learning" not in phases


def test_a_metrics_file_cut_short_by_the_crash_is_mended(interrupted, four_room_run):
    metrics = interrupted / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes() + b'{"step": 32, "lo')
    learn(interrupted, resume=True)
    assert_same_run(interrupted, four_room_run)


def test_leftovers_of_a_killed_process_are_swept_up(interrupted, four_room_run):
    (interrupted / ".checkpoint-000000032.safetensors.abcd1234.lapwing.part").write_bytes(b"half")
    learn(interrupted, resume=True)
    assert set(content(interrupted)) == set(content(four_room_run))


def damage_flip(path: Path) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_format(path: Path) -> None:
    tensors, manifest = storage.read_tensors(path)
    storage.write_tensors(path, tensors, manifest | {"format": 0})


def damage_shape(path: Path) -> None:
    tensors, manifest = storage.read_tensors(path)
    storage.write_tensors(path, dict.fromkeys(tensors, next(iter(tensors.values()))), manifest)


@pytest.mark.parametrize("damage", [damage_flip, damage_cut, damage_empty, damage_format, damage_shape])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(interrupted, four_room_run, damage):
    damage(interrupted / "checkpoint-000000031.safetensors")
    seen = []
    with pytest.warns(LapwingWarning, match=r"checkpoint-000000031\.safetensors") as caught:
        lapwing.learn(
            "FourRoom",
            out=interrupted,
            resume=True,
            on_progress=lambda phase, done, *rest: seen.append((phase, done)),
            **SMALL,
        )
    assert len(caught) == 1
    assert min(done for phase, done in seen if phase == "learning" and done) == 31
    assert_same_run(interrupted, four_room_run)


def test_when_every_checkpoint_is_damaged_each_is_named_and_the_run_starts_over(interrupted, four_room_run):
    for path in interrupted.glob("checkpoint*"):
        damage_cut(path)
    with pytest.warns(LapwingWarning) as caught:
        learn(interrupted, resume=True)
    named = " ".join(str(warning.message) for warning in caught)
    assert "checkpoint-000000031.safetensors" in named
    assert "checkpoint-000000030.safetensors" in named
    assert_same_run(interrupted, four_room_run)


@pytest.mark.parametrize(("kind", "remedy"), [("finished", "--out"), ("interrupted", "--resume")])
def test_a_run_that_is_there_is_refused_and_untouched(request, kind, remedy):
    out = request.getfixturevalue(kind)
    before = content(out)
    with pytest.raises(ConfigError, match=f"finished run; .*{remedy}.*--overwrite"):
        learn(out)
    assert content(out) == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dim": 5}, "dim = 4, not 5"),
        ({"lam": 0.5}, r"lam = None, not 0\.5"),
        ({"hidden": (8,)}, r"hidden = \[32\], not \[8\]"),
        ({"observation": "index"}, "observation = 'position', not 'index'"),
    ],
)
def test_resuming_with_other_settings_names_the_field(interrupted, changed, message):
    before = content(interrupted)
    with pytest.raises(ConfigError, match=f"was begun with {message}; resume with the same settings"):
        learn(interrupted, resume=True, **changed)
    assert content(interrupted) == before


def test_resuming_a_run_of_another_version_is_refused(interrupted):
    rewrite(interrupted / "config.json", version="0.0.1")
    with pytest.raises(CheckpointError, match=r"lapwing 0\.0\.1; .*--overwrite"):
        learn(interrupted, resume=True)


def test_a_run_of_another_format_is_refused_by_every_reader(finished):
    rewrite(finished / "config.json", format=3, version="9.9")
    message = r"config\.json .* 9\.9 in format 3"
    with pytest.raises(CheckpointError, match=message):
        lapwing.load(finished)
    with pytest.raises(CheckpointError, match=message):
        learn(finished, resume=True)
    with pytest.raises(CheckpointError, match=message):
        learn(finished)


def test_a_damaged_configuration_is_named(finished):
    (finished / "config.json").write_text("{")
    for attempt in (lambda: lapwing.load(finished), lambda: learn(finished, resume=True)):
        with pytest.raises(CheckpointError, match=r"config\.json"):
            attempt()


@pytest.mark.parametrize("flag", [{}, {"overwrite": True}, {"resume": True}])
@pytest.mark.parametrize("name", ["resolved", "settings", "target", "version", "compile_seconds"])
def test_an_edited_configuration_is_refused_by_name_and_untouched(interrupted, name, flag):
    """Ten of ten edits once changed what a resumed run gave."""
    config = json.loads((interrupted / "config.json").read_text())
    if name in ("resolved", "settings"):
        config[name] |= {"seed": 1}
    else:
        config[name] = {"kind": "maze", "name": "x", "text": "..\n"} if name == "target" else 9
    (interrupted / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    before = content(interrupted)
    with pytest.raises(CheckpointError, match=r"config\.json is damaged or was edited"):
        learn(interrupted, **flag)
    assert content(interrupted) == before


def test_a_run_of_version_0_1_0_can_be_loaded_and_evaluated_but_not_resumed(
    finished, interrupted_run, tmp_path
):
    """Its JSON files have no digests."""
    again, result = lapwing.load(finished), RunFolder(finished).result()
    metrics = RunFolder(finished).metrics()
    without_digests(finished)
    assert lapwing.load(finished).sha256() == again.sha256()
    assert RunFolder(finished).metrics() == metrics
    assert reopen(finished).result == result
    unfinished = Path(shutil.copytree(interrupted_run, tmp_path / "unfinished"))
    without_digests(unfinished)
    for folder in (finished, unfinished):
        with pytest.raises(CheckpointError, match=r"config\.json has no digest"):
            learn(folder, resume=True)
    learn(unfinished, overwrite=True, steps=5)
    assert RunFolder(unfinished).finished


def test_a_configuration_that_only_has_the_keys_is_no_run(tmp_path):
    foreign = {"format": 1, "version": "0.1.0", "target": {"kind": "maze"}, "settings": {}, "model": "gpt"}
    others = [{}, {"target": "prod"}, {"format": 2}, {"format": 2, "sha256": "0" * 64}]
    known = dict.fromkeys(("resolved", "prepare_seconds", "compile_seconds"), 1)
    others += [known, known | {"version": "3"}, known | {"settings": {"seed": 0, "size": "XL"}}]
    others += [known | {"target": {"kind": "x"}, "settings": {"seed": 0}}, known | {"target": "prod"}]
    for changed in others:
        described = foreign | changed
        if "resolved" in described:  # all the keys of a run, and no other
            del described["model"]
        (tmp_path / "config.json").write_text(json.dumps(described))
        (tmp_path / "metrics.jsonl").write_bytes(b"not lapwing's")
        before = content(tmp_path)
        for flag in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(CheckpointError, match=r"config\.json"):
                learn(tmp_path, **flag)
        with pytest.raises(CheckpointError, match=r"config\.json"):
            lapwing.load(tmp_path)
        assert content(tmp_path) == before


def test_hidden_files_of_a_user_are_never_swept_up(finished):
    mine = {".notes.part": b"1", ".config.json.part": b"2", ".a.abcd1234.part": b"3"}
    for name, text in mine.items():
        (finished / name).write_bytes(text)
    for flag in ({"resume": True}, {"overwrite": True}):
        learn(finished, **flag)
        assert {name: (finished / name).read_bytes() for name in mine} == mine


@pytest.mark.parametrize(
    "files", [{"thesis.tex": b"all of it"}, {"config.json": b'{"model": "gpt"}'}, {"config.json": b"[]"}]
)
@pytest.mark.parametrize("flag", [{}, {"overwrite": True}, {"resume": True}])
def test_a_folder_of_someone_elses_is_refused_and_untouched(tmp_path, files, flag):
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
    (tmp_path / "metrics.jsonl").write_bytes(b"not lapwing's")
    with pytest.raises(ConfigError, match=f"{tmp_path} .*--out"):
        learn(tmp_path, **flag)
    assert content(tmp_path) == files | {"metrics.jsonl": b"not lapwing's"}
    assert not (tmp_path / ".lock").exists()


def test_overwriting_removes_the_runs_own_files_and_no_others(finished, four_room_run):
    """The old run had other settings; what is left of it is what was never lapwing's."""
    mine = {"notes.txt": b"1", "figures/poster.png": b"2", "data/experience.npz": b"3", ".hidden": b"4"}
    stale = ["checkpoint-000000007.safetensors", "figures/spectrum.png", "figures/distances.svg"]
    for name, text in (mine | dict.fromkeys(stale, b"old")).items():
        (finished / name).parent.mkdir(exist_ok=True)
        (finished / name).write_bytes(text)
    learn(finished, overwrite=True, steps=5)
    assert len(RunFolder(finished).metrics()) == 5
    after = content(finished)
    assert {name: after[name] for name in mine} == mine
    assert set(after) - set(mine) == set(content(four_room_run))


def test_overwriting_with_settings_that_cannot_be_used_loses_nothing(finished):
    before = content(finished)
    for wrong in ({"dim": 500}, {"estimator": "exact", "lam_final": 0.5}, {"encoder": "conv"}):
        with pytest.raises(ConfigError):
            learn(finished, overwrite=True, **wrong)
    assert content(finished) == before


def test_settings_that_cannot_be_used_leave_a_new_folder_free(tmp_path):
    with pytest.raises(ConfigError, match=r"dim .* 152"):
        learn(tmp_path / "run", dim=500)
    learn(tmp_path / "run", steps=5)
    assert RunFolder(tmp_path / "run").finished


def test_overwrite_and_resume_exclude_each_other(finished):
    with pytest.raises(ConfigError, match="exclude each other"):
        learn(finished, overwrite=True, resume=True)


def test_a_run_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for out in (tmp_path / "file" / "run", tmp_path / "file"):
        with pytest.raises(StorageError, match=f"{out}: "):
            learn(out)


def test_what_is_no_finished_run_cannot_be_loaded(tmp_path, interrupted):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"not a run folder: .*config\.json"):
        lapwing.load(tmp_path / "empty")
    with pytest.raises(ConfigError, match=r"unfinished run; .*--resume"):
        lapwing.load(interrupted)


@pytest.mark.parametrize("phase", ["preparing", "learning", "evaluating"])
@pytest.mark.parametrize("change", [shutil.rmtree, lambda path: path.rename(path.with_name("moved"))])
def test_a_folder_that_is_gone_while_running_is_named(tmp_path, phase, change, monkeypatch):
    monkeypatch.setattr(runs, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    out, gone = tmp_path / "run", []

    def on_progress(now, *rest):
        if now == phase and not gone:
            gone.append(change(out))

    with pytest.raises(StorageError, match=f"{out}.*: no such file or folder"):
        lapwing.learn("FourRoom", out=out, on_progress=on_progress, **SMALL)
    assert not out.exists()


def test_a_folder_whose_name_is_too_long_is_refused(tmp_path):
    for read in (learn, lapwing.load, reopen):
        with pytest.raises(LapwingError, match="the name is too long"):
            read(tmp_path / ("long" * 100))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "seteuid") or os.geteuid() != 0, reason="needs to become another user")
def test_a_folder_that_may_not_be_read_is_refused(finished):
    maze = read_maze("FourRoom")  # the other user may not see the source of this package either
    finished.parent.chmod(0o700)
    os.seteuid(65534)
    try:
        for read in (lambda out: lapwing.learn(maze, out=out, **SMALL), lapwing.load, reopen):
            with pytest.raises(LapwingError, match="permission denied"):
                read(finished)
    finally:
        os.seteuid(0)


@pytest.mark.slow
def test_a_second_run_into_one_folder_is_refused_while_the_first_goes_on(tmp_path):
    out = tmp_path / "run"
    arguments = ["learn", "FourRoom", "--out", str(out), "--steps", "100000000", "--true-chain", "--dim", "4"]
    first = subprocess.Popen(
        [sys.executable, "-m", "lapwing", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not (out / "config.json").exists():
            assert first.poll() is None
            time.sleep(0.05)
        for flag in ({}, {"resume": True}, {"overwrite": True}):
            with pytest.raises(StorageError, match=f"another process .*{out}"):
                learn(out, **flag)
        command = [sys.executable, "-m", "lapwing", *arguments, "--overwrite"]
        second = subprocess.run(command, capture_output=True, text=True)
        assert second.returncode == 2
        assert "another process is writing" in second.stderr
        assert "Traceback" not in second.stderr
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()


# Everything is imported once, in a process that has a single thread and so may fork; each line of its
# input is one command line, run by the real entry point in a child that can be killed. The first child
# leaves what it compiled for the others to read; a killed one must not leave half of that.


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see that it may fork")
def test_kill_9_at_twenty_instants_and_resume_gives_the_same_bits(tmp_path):
    command = ["learn", "FourRoom", "--observation", "index", "--transitions", "5000", "--dim", "4"]
    command += ["--steps", "40000", "--out"]
    whole = subprocess.run(
        [sys.executable, "-m", "lapwing", *command, str(tmp_path / "whole")],
        capture_output=True,
        text=True,
        env=os.environ | ONE_THREAD,
    )
    assert whole.returncode == 0, whole.stderr

    zygote = Zygote(tmp_path)
    try:
        assert zygote.run([*command, str(tmp_path / "first")])
        lifetime = zygote.seconds_until(
            tmp_path / "second" / "result.json", [*command, str(tmp_path / "second")]
        )
        for name in ("first", "second"):
            assert_same_run(tmp_path / name, tmp_path / "whole")

        instants, kills, at_a_checkpoint, folder = random.Random(0), 0, 0, 0
        while kills < 20:
            out = tmp_path / f"killed-{folder}"
            if zygote.run([*command, str(out), "--resume"], instants.uniform(0, lifetime)):
                assert_same_run(out, tmp_path / "whole")
                folder += 1
            else:
                kills += 1
                at_a_checkpoint += any(out.glob("checkpoint*"))
        assert zygote.run([*command, str(out), "--resume"])
        assert_same_run(out, tmp_path / "whole")
        assert set(content(out)) == set(content(tmp_path / "whole"))
        assert at_a_checkpoint >= 3
    finally:
        zygote.close()


@pytest.mark.parametrize("moved", [3, None], ids=["while it is moved", "while the new one learns"])
def test_a_finished_run_survives_until_the_one_that_replaces_it_is_finished(finished, monkeypatch, moved):
    before, moves, move = lapwing.load(finished).sha256(), [], storage.move

    def counted(path, to):
        moves.append(path)
        if len(moves) == moved:
            raise Interrupted
        move(path, to)

    monkeypatch.setattr(storage, "move", counted)
    with pytest.raises(Interrupted):
        learn(finished, overwrite=True, steps=50, on_progress=stop_at("learning", 20))
    with pytest.raises(Interrupted):
        learn(finished, overwrite=True, steps=50, on_progress=stop_at("learning", 20))
    kept = RunFolder(finished / ".replaced")
    assert kept.finished
    assert kept.result()["steps"] == 60
    assert lapwing.load(kept.path).sha256() == before
    learn(finished, resume=True, steps=50)
    assert not kept.path.exists()
    assert RunFolder(finished).result()["steps"] == 50


@pytest.mark.parametrize("error", [StorageError("no space"), Interrupted()], ids=["full disk", "killed"])
def test_a_finished_run_survives_where_the_new_one_cannot_be_begun(finished, monkeypatch, error):
    before, write = lapwing.load(finished).sha256(), storage.write_checked_json
    picture = RunFolder(finished).figures / f"{runs.FIGURES[0]}.png"
    picture.parent.mkdir()
    picture.write_bytes(b"drawn")

    def refused(path, value):
        if path.name == "config.json":
            raise error
        write(path, value)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_checked_json", refused)
        with pytest.raises(type(error)):
            learn(finished, overwrite=True, steps=50)
    there = finished if isinstance(error, StorageError) else finished / ".replaced"
    assert lapwing.load(there).sha256() == before
    assert (there / picture.relative_to(finished)).read_bytes() == b"drawn"
    learn(finished, overwrite=isinstance(error, StorageError), steps=50)
    assert RunFolder(finished).result()["steps"] == 50
    assert not (finished / ".replaced").exists()
