import contextlib
import dataclasses
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import lapwing
from lapwing import storage
from lapwing.cli.progress import stderr_console
from lapwing.data.experience import Experience
from lapwing.settings.learn import LearnSettings
from tests.support.command_line import called, refused
from tests.support.processes import in_own_mount

SMALL = ["--transitions", "5000", "--dim", "4", "--steps", "20", "--hidden", "16", "--fourier-features", "16"]
QUICK = ["--transitions", "5000", "--dim", "3", "--steps", "2", "--observation", "index"]
TRUTHS = ["gap", "gap_floor", "gap_random", "cosine", "cosine_mean", "cosine_floor", "eigenvalues_exact"]
NAMED_IN_THE_JSON = [*TRUTHS, "eigenvalues", "learn_seconds", "compile_seconds", "steps", "states", "run"]


@pytest.fixture(scope="session")
def learned(tmp_path_factory) -> tuple[Path, str, str]:
    """The folder, standard output and standard error of `lapwing learn FourRoom --json`."""
    out = tmp_path_factory.mktemp("cli") / "run"
    code, stdout, stderr = called("learn", "FourRoom", "--out", out, "--json", *SMALL)
    assert code == 0
    return out, stdout, stderr


@pytest.mark.parametrize("arguments", [["--help"], ["evaluate", "--help"], ["learn", "-h"]])
def test_help_is_no_error(arguments):
    code, out, _ = called(*arguments)
    assert code == 0
    assert "usage: lapwing" in out


def test_help_explains_every_setting():
    _, out, _ = called("learn", "--help")
    for field in dataclasses.fields(LearnSettings):
        assert re.search(f"--(no-)?{field.name.replace('_', '-')}\\b", out), field.name
    for option in ("--out", "--overwrite", "--resume", "--json", "FourRoom", "gym:ENV_ID"):
        assert option in out


def test_help_shows_the_defaults_of_a_preset():
    for arguments in (["--preset", "paper"], ["--preset=paper"]):
        _, out, _ = called("learn", "FourRoom", *arguments, "--help")
        assert "(default: sampled)" in out
        assert "(default: 100000)" in out


def test_the_version():
    assert called("--version") == (0, f"lapwing {lapwing.__version__}\n", "")


def test_json_is_the_only_line_on_standard_output(learned):
    folder, out, err = learned
    assert out.endswith("}\n")
    assert out.count("\n") == 1
    result = json.loads(out)
    assert set(NAMED_IN_THE_JSON) <= result.keys()
    assert (result["run"], result["steps"], result["states"]) == (str(folder), 20, 152)
    assert len(result["cosine"]) == len(result["eigenvalues"]) == len(result["eigenvalues_exact"]) == 4
    assert 0 < result["gap_floor"] < result["gap"] < result["gap_random"]
    assert 0 < result["cosine_mean"] <= 1
    assert result == storage.read_checked_json(folder / "result.json")
    for words in ("FourRoom", "true chain", "objective gap", f"{result['gap']:.4g}", "learning 20/20"):
        assert words in err


@pytest.mark.usefixtures("sketched")
def test_without_json_nothing_is_on_standard_output_and_the_table_on_standard_error(elsewhere):
    code, out, err = called("learn", "FourRoom", "--out", "run", *QUICK)
    assert (code, out) == (0, "")
    assert "objective gap" in err
    assert "run/figures" in err


def test_the_figures_are_pictures(learned):
    folder, _, _ = learned
    names = {path.stem for path in (folder / "figures").iterdir()}
    assert names == {"eigenfunctions", "spectrum", "distances", "learning"}
    for name in names:
        pixels = matplotlib.image.imread(folder / "figures" / f"{name}.png")
        assert pixels.shape[0] > 100
        assert pixels.shape[1] > 100
        assert pixels.std() > 0
        root = ElementTree.parse(folder / "figures" / f"{name}.svg").getroot()
        assert root.tag.endswith("svg")


def test_what_is_interrupted_before_anything_is_saved_is_not_to_be_resumed(elsewhere, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("lapwing.runs.learn.open_target", interrupted)
    code, out, err = called("learn", "FourRoom", *QUICK)
    assert (code, out) == (130, "")
    assert "--resume" not in err
    assert not Path("runs").exists()


@pytest.mark.usefixtures("sketched")
def test_two_runs_without_a_folder_go_to_two(elsewhere):
    told = [called("learn", "FourRoom", *QUICK) for _ in range(2)]
    assert [code for code, _, _ in told] == [0, 0]
    assert "evaluate runs/FourRoom " not in told[0][2]
    assert "evaluate runs/FourRoom " in told[1][2]  # the second says that there is a first
    assert sorted(path.name for path in Path("runs").iterdir()) == ["FourRoom", "FourRoom-2"]
    assert Path("runs/FourRoom-2/result.json").exists()


@pytest.mark.usefixtures("sketched")
def test_an_environment_without_a_truth_has_null_for_it(elsewhere):
    code, out, err = called(
        *("learn", "gym:CartPole-v1", "--out", "run", "--json", "--transitions", "3000", "--dim", "3"),
        *("--steps", "3", "--hidden", "16", "--fourier-features", "16"),
    )
    assert code == 0
    result = json.loads(out)
    assert set(NAMED_IN_THE_JSON) <= result.keys()
    for name in TRUTHS:
        assert result[name] is None
    assert result["states"] is None
    assert len(result["eigenvalues"]) == 3
    assert "no exact spectrum" in err
    assert {path.name for path in Path("run/figures").glob("*.png")} == {
        "distances.png",
        "eigenfunctions.png",
        "embedding.png",
        "learning.png",
        "spectrum.png",
    }


@pytest.mark.usefixtures("sketched")
def test_a_maze_and_data_of_ones_own(elsewhere):
    Path("my_room.txt").write_text("#####\n#...#\n#...#\n#####\n")
    code, out, _ = called("learn", "my_room.txt", "--json", *QUICK)
    assert code == 0
    assert json.loads(out)["run"] == "runs/my_room"
    walk = np.random.default_rng(0).choice([-1, 1], 2_000).cumsum() % 6
    Experience(walk, [2_000]).save("walk.npz")
    code, out, _ = called("learn", "walk.npz", "--json", "--dim", "3", "--steps", "2")
    result = json.loads(out)
    assert (code, result["target"], result["states"]) == (0, "walk", 6)
    assert result["operator"].startswith("empirical chain")


def test_one_dimension_is_the_constant_alone(elsewhere):
    code, out, _ = called("learn", "FourRoom", "--out", "run", "--json", *QUICK, "--dim", "1")
    result = json.loads(out)
    assert (code, result["cosine"], result["eigenvalues"]) == (0, [pytest.approx(1)], [pytest.approx(0)])
    assert set(result["distance_correlation"]) == {"soft"}
    assert {path.stem for path in Path("run/figures").iterdir()} == {"spectrum", "learning"}


@pytest.mark.usefixtures("sketched")
def test_warnings_are_single_lines_on_standard_error(elsewhere):
    code, out, err = called(
        *("learn", "OneRoom", "--out", "run", "--true-chain", "--observation", "index", "--steps", "2"),
        *("--lam", "0.9", "--beta", "5", "--delta", "0.05"),
    )
    assert (code, out) == (0, "")
    assert "warning: only 9 of 20 dimensions survive beta=5" in err
    assert "LapwingWarning" not in err
    assert ".py:" not in err


@pytest.mark.usefixtures("sketched")
def test_a_run_is_refused_resumed_and_overwritten(elsewhere):
    command = ["learn", "FourRoom", "--out", "run", "--json", *QUICK]
    assert called(*command)[0] == 0
    assert "holds a finished run" in refused(*command)
    assert "dim = 3, not 4" in refused(*command, "--resume", "--dim", "4")
    code, out, _ = called(*command, "--resume")
    assert (code, json.loads(out)["steps"]) == (0, 2)
    code, out, _ = called(*command, "--overwrite", "--steps", "3")
    assert (code, json.loads(out)["steps"]) == (0, 3)


@pytest.mark.usefixtures("sketched")
def test_evaluating_a_run_gives_its_measures_again(learned, elsewhere):
    _, out, _ = learned
    folder = Path(shutil.copytree(learned[0], elsewhere / "run"))
    for name in ("spectrum.png", "learning.svg"):
        (folder / "figures" / name).unlink()
    code, again, err = called("evaluate", folder, "--json")
    assert code == 0
    assert again.count("\n") == 1
    assert json.loads(again) == json.loads(out)
    assert "objective gap" in err
    assert (folder / "figures" / "spectrum.png").exists()
    code, nothing, err = called("evaluate", folder)
    assert (code, nothing) == (0, "")
    assert "objective gap" in err


ENVIRONMENT = """
from pathlib import Path
import gymnasium
import numpy as np

Path("ran").write_text("it did")

class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.zeros(1, np.float32)
        return self.at.copy(), {}

    def step(self, action):
        self.at += 2 * action - 1
        return self.at.copy(), 0.0, False, bool(self.np_random.random() < 0.1), {}
"""


@pytest.fixture(scope="module")
def walked(tmp_path_factory) -> Path:
    """A folder with an environment's file and a run that was learned in it."""
    folder = tmp_path_factory.mktemp("walked")
    (folder / "walk.py").write_text(ENVIRONMENT)
    with contextlib.chdir(folder):
        words = ("--out", "run", "--transitions", "500", "--dim", "2", "--steps", "2", "--hidden", "8")
        code, _, err = called("learn", "gym:walk.py:Walk", *words, "--fourier-features", "8")
        assert code == 0, err
        Path("ran").unlink()
    return folder


@pytest.fixture
def from_someone(walked, tmp_path, monkeypatch) -> Path:
    """A copy of that folder, with which nothing has been done yet."""
    monkeypatch.chdir(shutil.copytree(walked, tmp_path / "copy"))
    return Path("run")


@pytest.mark.usefixtures("sketched")
def test_a_run_folder_runs_no_file(from_someone):
    """Whatever reads it: the file that its config.json names may be anyone's."""
    assert called("evaluate", "run")[0] == 0
    assert lapwing.load("run").dim == 2
    Path("run/experience.npz").unlink()
    assert lapwing.load("run").dim == 2
    told = refused("evaluate", "run")
    assert "walk.py:Walk" in told
    assert "--env gym:" in told
    assert not Path("ran").exists()


@pytest.mark.parametrize("env_id", ["walk:Walk-v0", "./walk.py:Walk", "nowhere/walk.py:Walk"])
def test_a_run_folder_imports_no_module(from_someone, env_id, monkeypatch):
    monkeypatch.syspath_prepend(str(Path.cwd()))
    Path("run/experience.npz").unlink()
    path = Path("run/config.json")
    config = storage.read_checked_json(path)
    storage.write_checked_json(path, config | {"target": config["target"] | {"env_id": env_id}})
    assert env_id in refused("evaluate", "run")
    assert not Path("ran").exists()


def test_a_run_folder_runs_no_wrappers(from_someone):
    Path("run/experience.npz").unlink()
    path = Path("run/config.json")
    config = storage.read_checked_json(path)
    settings = config["settings"] | {"wrap": ["walk.py:Walk"]}
    storage.write_checked_json(path, config | {"settings": settings})
    for more in ((), ("--env", "gym:walk.py:Walk")):
        assert "walk.py:Walk" in refused("evaluate", "run", *more)
    assert not Path("ran").exists()


@pytest.mark.usefixtures("sketched")
def test_a_file_that_the_user_names_is_run(from_someone):
    Path("run/experience.npz").unlink()
    Path("walk.py").rename("moved.py")
    assert "gym:walk.py:Walk" in refused("evaluate", "run", "--env", "gym:CartPole-v1")
    assert "gym:walk.py:Walk" in refused("evaluate", "run", "--env", "FourRoom")
    assert called("evaluate", "run", "--env", "gym:moved.py:Walk")[0] == 0
    assert Path("ran").exists()
    assert Path("run/experience.npz").exists()


def test_an_agent_of_a_file_is_evaluated_without_running_it(from_someone):
    code, _, err = called("train", "gym:walk.py:Walk", *TINY, "--out", "agent")
    assert code == 0, err
    assert err.count("own reward") == 2  # before it is trained, and over the table
    Path("ran").unlink()
    assert called("evaluate", "agent")[0] == 0
    assert "--env" in refused("evaluate", "agent", "--env", "gym:walk.py:Walk")
    assert not Path("ran").exists()


def test_an_environment_is_named_only_for_a_run_that_has_one(learned, elsewhere):
    assert "--env" in refused("evaluate", learned[0], "--env", "gym:CartPole-v1")


def test_a_target_that_is_not_described_in_full_is_refused(from_someone):
    path = Path("run/config.json")
    config = storage.read_checked_json(path)
    for target in (
        {"kind": "gym"},
        {"kind": "gym", "env_id": 7},
        {"kind": "maze", "name": 1},
        {"kind": "arena"},
    ):
        storage.write_checked_json(path, config | {"target": target})
        assert "run " in refused("evaluate", "run")


def test_a_run_that_is_held_is_not_evaluated(learned, elsewhere):
    out = Path(shutil.copytree(learned[0], elsewhere / "run"))
    shutil.rmtree(out / "figures")
    with storage.lock(out):
        assert "another process is writing to" in refused("evaluate", "run")
    assert not (out / "figures").exists()


@pytest.mark.usefixtures("sketched")
def test_brackets_in_names_are_shown_as_they_are(elsewhere):
    """They are Rich's markup, which must not vanish from a name, nor break the table."""
    Path("a[/b]").mkdir(parents=True)
    Path("a[/b]/[red]c.txt").write_text("#####\n#...#\n#.G.#\n#####\n")
    code, _, err = called("learn", "a[/b]/[red]c.txt", "--out", "a[/b]/run[bold]", *QUICK)
    assert code == 0, err
    assert "[red]c: against" in err
    assert "a[/b]/run[bold]: the run" in err
    code, _, err = called("audit", "a[/b]/[red]c.txt", "a[/b]/run[bold]", "--out", "a[/b]/audit")
    assert code == 0, err
    assert "φ2: a[/b]/run[bold]" in err
    assert "[red]c, goal" in err
    np.savez(
        "a[/b]/d.npz", **{"x[/b]": np.ones(2), "observations": np.ones((4, 2)), "lengths": np.array([4])}
    )
    code, _, err = called("data", "inspect", "a[/b]/d.npz")
    assert "x[/b]" in err
    assert "Traceback" not in err
    assert "[/b]" in refused("evaluate", "a[/b]/run[bold]", "--nope[/b]")


def test_a_name_that_is_too_long_is_refused(elsewhere):
    long = "long" * 100
    for arguments in (("learn", "FourRoom", "--out", long, *QUICK), ("evaluate", long), ("learn", long)):
        assert long in refused(*arguments)
    for arguments in (("audit", "HardMaze", "--out", long), ("reproduce", "fig2", "--out", long)):
        assert long in refused(*arguments)


def test_a_folder_that_is_gone_before_the_pictures_is_named(elsewhere, monkeypatch):
    from lapwing.runs import learn

    run = learn.run

    def run_and_lose(*arguments, **options):
        outcome = run(*arguments, **options)
        shutil.rmtree("run")
        return outcome

    monkeypatch.setattr(learn, "run", run_and_lose)
    code, out, err = called("learn", "FourRoom", "--out", "run", *QUICK)
    assert (code, out) == (2, "")
    assert "lapwing: run: no such file or folder" in err


def test_a_huge_file_is_refused_unread(elsewhere):
    with Path("huge.txt").open("wb") as file:
        file.truncate(20 * 2**30)
    assert "huge.txt" in refused("learn", "huge.txt")


def test_what_is_no_run_cannot_be_evaluated(elsewhere):
    Path("empty").mkdir()
    for name in ("empty", "gone"):
        assert name in refused("evaluate", name)
    assert "config.json" in refused("evaluate", "empty")
    assert "config.json" not in refused("evaluate", "gone")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["learn", "FourRom"],
            "unknown target 'FourRom': it is neither a maze nor a file; did you mean FourRoom?",
        ),
        (["learn"], "lapwing learn FourRoom"),
        (["learn", "gone.npz"], "gone.npz"),
        (["lern", "FourRoom"], "learn?"),
        (["learn", "FourRoom", "--learning-rat", "3"], "--learning-rate"),
        (["learn", "FourRoom", "--preset", "papr"], "'papr'; did you mean paper?"),
        (["learn", "FourRoom", "--preset=papr"], "'papr'; did you mean paper?"),
        (["learn", "FourRoom", "--observation", "imag"], "'image'"),
        (["learn", "FourRoom", "--dim", "many"], "--dim"),
        (["learn", "FourRoom", "--dim"], "--dim"),
        (["learn", "FourRoom", "--resume"], "--out"),
        (["learn", "FourRoom", "--out", "x", "--resume", "--overwrite"], "exclude each other"),
        (["learn", "FourRoom", "--dim", "153"], "153"),
        (["learn", "FourRoom", "--true-chain", "--estimator", "sampled"], "--true-chain"),
        ([], "learn"),
        (["evaluate"], "RUN"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_told_in_a_sentence(elsewhere, arguments, message):
    if "--transitions" not in arguments and arguments[:1] == ["learn"] and len(arguments) > 2:
        arguments = [*arguments[:2], "--transitions", "500", *arguments[2:]]
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    "option",
    ["--lam=nan", "--lam=-0.1", "--beta=inf", "--dim=-3", "--batch=1", "--hidden=0", "--seed=4294967296"],
)
def test_a_number_that_makes_no_sense_is_named(elsewhere, option):
    typed, value = option.split("=")
    message = refused("learn", "FourRoom", option)
    wrong = re.escape(value) + r"(\.0)?"
    assert re.fullmatch(rf"lapwing: {typed} must be a (whole )?number .*, not {wrong}", message), message


@pytest.mark.parametrize(("written", "number"), [("2e3", 2000), ("2_000", 2000), ("2000.0", 2000)])
def test_a_whole_number_can_be_written_in_other_ways(elsewhere, written, number):
    assert f"not {number}" in refused("learn", "FourRoom", "--dim", written, "--transitions", "500")


@pytest.mark.parametrize(
    ("command", "option", "written"),
    [
        ("learn", "--transitions", "2.5"),
        ("learn", "--dim", "ten"),
        ("learn", "--seed", "nan"),
        ("learn", "--lam", "high"),
        ("learn", "--hidden", "wide"),
        ("learn", "--encoder", "forier"),
        ("train", "--gamma", "much"),
        ("reach", "--landmarks", "few"),
    ],
)
def test_a_value_that_cannot_be_read_is_named_in_one_line(elsewhere, command, option, written):
    for given in ([option, written], [f"{option}={written}"]):
        told = refused(command, "FourRoom", *given)
        assert told.startswith(f"lapwing: {option} ")
        assert f"'{written}'" in told


def test_an_option_without_its_value_is_named(elsewhere):
    for words in (["--dim"], ["--dim", "--resume"]):
        assert refused("learn", "FourRoom", *words).startswith("lapwing: --dim needs a value")


@pytest.mark.parametrize("words", [["learn", "FourRoom", "HardMaze"], ["evaluate", "one", "two"]])
def test_a_second_target_is_named(elsewhere, words):
    told = refused(*words)
    assert words[1] in told
    assert words[2] in told


@pytest.mark.parametrize("text", [b"###\n###\n", b"#####\n#.?.#\n#####\n", b"\xff\xfe\x00"])
def test_a_maze_that_cannot_be_walked(elsewhere, text):
    Path("bad.txt").write_bytes(text)
    assert re.match(r"lapwing: (maze (bad: |file bad\.txt )|bad\.txt )", refused("learn", "bad.txt"))


class Bomb:
    """Goes off if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


BAD_DATA = {
    "pickled": ({"observations": np.array([Bomb()], dtype=object), "lengths": np.array([1])}, "pickled"),
    "lengths": ({"observations": np.ones((2, 1)), "lengths": np.array([2.0])}, "lengths"),
    "one-step": ({"observations": np.ones((3, 1)), "lengths": np.array([2, 1])}, "episode 1 "),
    "nan": ({"observations": np.array([[1.0], [np.nan]]), "lengths": np.array([2])}, "episode 0, step 1"),
    "missing": ({"observations": np.ones((3, 1))}, "'lengths'"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_data_that_cannot_be_learned_from(elsewhere, name):
    arrays, message = BAD_DATA[name]
    np.savez("bad.npz", **arrays)
    told = refused("learn", "bad.npz")
    assert told.startswith("lapwing: bad.npz")
    assert message in told


def test_a_folder_that_is_not_lapwings_is_untouched(elsewhere):
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("all of it")
    assert "thesis.tex" in refused("learn", "FourRoom", "--out", "mine", "--overwrite", *QUICK)
    assert Path("mine/thesis.tex").read_text() == "all of it"


def test_learning_that_blows_up_names_the_step(elsewhere):
    code, out, err = called("learn", "FourRoom", "--out", "run", "--learning-rate", "1e30", *SMALL)
    assert (code, out) == (2, "")
    assert "at step 1; lower --learning-rate" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_the_whole_command_as_a_process(tmp_path):
    command = [sys.executable, "-m", "lapwing", "learn", "FourRoom", "--json", *QUICK]
    finished = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "\x1b" not in finished.stderr
    result = json.loads(finished.stdout)
    assert finished.stdout.count("\n") == 1
    assert result["run"] == "runs/FourRoom"
    assert (tmp_path / "runs" / "FourRoom" / "representation.safetensors").exists()

    command = [sys.executable, "-m", "lapwing", "learn", "FourRom"]
    finished = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.count("\n") == 1
    assert finished.stderr.startswith("lapwing: unknown target 'FourRom'")


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    command = ["learn", "FourRoom", "--out", "run", "--steps", "1000000", "--true-chain", "--dim", "4"]
    # A shell may start its background jobs, and so the tests, with SIGINT ignored.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    process = subprocess.Popen(
        [sys.executable, "-c", listening + "from lapwing.cli.main import main; main()", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    while not (tmp_path / "run" / "config.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    presses, ended = 0, False
    while not ended:
        process.send_signal(signal.SIGINT)
        presses += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            out, err = process.communicate(timeout=30)
            ended = True
    assert (process.returncode, out) == (130, "")
    # Now and then the first is lost in a callback of JAX, where Python shows it and goes on.
    assert presses > 1 or "Traceback" not in err
    assert "--out run --resume" in err


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_space(tmp_path):
    printed = in_own_mount(
        tmp_path,
        "size=100k",
        f"""
        import contextlib, io, os, sys
        from pathlib import Path
        from lapwing.cli.main import main
        out = Path(sys.argv[1]) / "run"
        filler = Path(sys.argv[1]) / "filler"
        command = ["learn", "FourRoom", "--out", str(out), *{QUICK!r}]
        filler.write_bytes(bytes(60_000))
        for arguments in (command, [*command, "--resume"]):
            err = io.StringIO()
            try:
                with contextlib.redirect_stderr(err):
                    main(arguments)
            except SystemExit as exit:
                print(exit.code, "disk is full" in err.getvalue(), "Traceback" in err.getvalue())
                print(sum(name.endswith(".part") for name in os.listdir(out)))
            os.truncate(filler, 0)
            os.system(f"mount -o remount,size=4m {{out.parent}}")
        print((out / "result.json").exists())
        """,
    ).splitlines()
    assert printed == ["2 True False", "0", "True"]


TINY = ["--random-steps", "200", "--steps", "40", "--evaluate-every", "20", "--hidden", "8"]


@pytest.mark.usefixtures("sketched")
def test_an_agent_is_trained_shown_and_evaluated_again(elsewhere):
    code, out, err = called("train", "TwoRoom", "--reward", "l2", *TINY, "--out", "run", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert (result["target"], result["reward"], result["evaluated_at"]) == ("TwoRoom", "l2", [20, 40])
    assert result["optimal_return"] == pytest.approx(-11.358, abs=1e-3)
    assert f"{result['return']:.3f}" in err
    names = {path.name for path in (elsewhere / "run" / "figures").iterdir()}
    assert names == {f"{n}.{e}" for n in ("returns", "reward", "policy") for e in ("png", "svg")} | {
        "policy.gif"
    }
    code, again, err = called("evaluate", "run", "--json")
    assert code == 0, err
    assert json.loads(again) == result


@pytest.mark.usefixtures("sketched")
def test_an_agent_learns_its_phi_first(elsewhere):
    code, _, err = called("train", "TwoRoom", "--reward", "potential", *TINY, "--out", "run")
    assert code == 0, err
    assert "learning" in err
    assert "training" in err
    assert lapwing.load("run/representation").config["target"] == "TwoRoom"
    code, out, err = called("audit", "TwoRoom", "run/representation", "--json", "--out", "audit")
    assert code == 0, err
    names = [audit["name"] for audit in json.loads(out)]
    assert {"sparse", "mix, commute, φ1", "mix, commute, φ2", "potential, soft, φ2"} <= set(names)
    assert (elsewhere / "audit" / "audit.png").is_file()
    assert "φ2: run/representation" in err


@pytest.mark.usefixtures("sketched")
def test_the_folder_of_an_agent_is_named_by_its_reward(elsewhere):
    assert called("train", "TwoRoom", "--reward", "sparse", *TINY)[0] == 0
    assert (elsewhere / "runs" / "TwoRoom-sparse" / "agent.safetensors").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train", "lapwing train HardMaze"),
        ("train HardMaze --goal 0,0", "goal (0,0)"),
        ("train HardMaze --goal there", "goal must be ROW,COLUMN such as 10,3, not 'there'"),
        ("train FourRoom", "--goal ROW,COLUMN"),
        ("train HardMaze --reward mixx", "rawmix"),
        ("train HardMaze --scale nan", "scale"),
        ("train HardMaze --resume", "--out"),
        ("train HardMaze --filter heat --preset paper", "'heat'"),
        ("train HardMaze --reward l2 --preset paper", "preset"),
        ("train gym:Pendulum-v1", "Box"),
        ("train gym:CartPole-v1 --reward mix", "reward='mix'"),
        ("train nowhere.npz", "nowhere.npz"),
        ("audit", "lapwing audit HardMaze"),
        ("audit HardMaze TwoRoom", "TwoRoom is of another maze than HardMaze"),
        ("audit gym:CartPole-v1", "gym:CartPole-v1 is no maze"),
        ("audit HardMaze --gamma 2", "gamma"),
        ("trian HardMaze", "'trian'; did you mean train?"),
    ],
)
def test_a_mistake_with_an_agent_is_told_in_a_sentence(elsewhere, arguments, message):
    assert message in refused(*arguments.split())


def test_a_phi_of_another_maze_is_refused(elsewhere, four_room_run):
    told = refused("train", "TwoRoom", "--representation", four_room_run)
    assert "learned on FourRoom, not on this maze TwoRoom" in told


@pytest.mark.parametrize(("columns", "width"), [(None, 120), ("90", 90)])
def test_a_file_has_wider_tables_than_a_small_terminal(columns, width, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert stderr_console().width == width


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_that_a_command_is_starting(terminal, elsewhere, monkeypatch, capsys):
    """One that is refused, but not before JAX is imported."""
    from lapwing.cli.main import main

    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    with pytest.raises(SystemExit):
        main(["learn", "FourRoom", "--transitions", "500", "--dim", "153"])
    assert ("starting" in capsys.readouterr().err) == terminal
