"""The command line in arenas: what `--help` shows, what is refused and how, and tiny runs from end to end."""

import contextlib
import dataclasses
import io
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from lapwing import storage
from lapwing.cli import agent_report as report
from lapwing.cli import arguments as commands
from lapwing.cli import main as cli
from lapwing.cli.parse import parse
from lapwing.runs import train_ddpg
from lapwing.runs.folder import FIGURES
from lapwing.settings.agents import CONTROL_PRESETS, AgentSettings, ControlSettings
from lapwing.settings.learn import LearnSettings
from tests.support.command_line import called, refused, unboxed
from tests.support.small_runs import TINY_PHI

TINY = ["--steps", "320", "--evaluate-every", "160", "--random-steps", "1600"]
TINY_LEARN = ["--transitions", "3000", "--steps", "3", "--dim", "4", "--lam", "0.9", "--hidden", "16"]
TINY_LEARN += ["--fourier-features", "16"]
"""Neither leads anywhere: their numbers matter to no test."""
pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.LapwingWarning")


class Called(NamedTuple):
    folder: Path
    out: str
    err: str

    @property
    def result(self) -> dict:
        return json.loads(self.out)


@pytest.fixture(scope="module", autouse=True)
def small():
    """φ of seconds, and short films, drawn whatever this machine has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_ddpg, "QUICK_PHI", TINY_PHI)
        patch.setattr(report, "FILM_FRAMES", 5)
        patch.setenv("MUJOCO_GL", "off")
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Called:
    """`lapwing train PointUMaze --json`, on a mix that learns its φ first."""
    out = tmp_path_factory.mktemp("arena") / "run"
    code, *printed = called("train", "PointUMaze", "--reward", "mix", "--out", out, "--json", *TINY)
    assert code == 0, printed[1]
    return Called(out, *printed)


@pytest.fixture(scope="module")
def learned(tmp_path_factory) -> Called:
    """`lapwing learn PointUMaze --json`."""
    out = tmp_path_factory.mktemp("arena") / "phi"
    code, *printed = called("learn", "PointUMaze", "--out", out, "--json", *TINY_LEARN)
    assert code == 0, printed[1]
    return Called(out, *printed)


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", text))


def named(settings: type) -> set[str]:
    return {field.name.replace("_", "-") for field in dataclasses.fields(settings)}


def help_of(*arguments: str) -> str:
    code, out, _ = called(*arguments, "--help")
    assert code == 0
    return " ".join(re.sub("[│─╭╮╰╯━╸]", " ", out).split())


def default_of(text: str, option: str) -> str:
    """The examples above the options may name it too."""
    return re.findall(rf"--{option} (?:(?!--{option} ).)*?\(default: ([^)]*)\)", text)[-1]


def test_help_in_an_arena_shows_the_settings_of_ddpg_as_the_preset_quick_has_them():
    text = help_of("train", "PointUMaze")
    assert named(ControlSettings) <= options_in(text)
    assert not (named(AgentSettings) - named(ControlSettings)) & options_in(text)
    assert default_of(text, "hidden") == "128 128"
    assert default_of(text, "fast") == "True"
    assert default_of(text, "preset") == "quick"
    assert default_of(text, "gamma") == "0.995"


@pytest.mark.parametrize("preset", [["--preset", "paper"], ["--preset=paper"]])
def test_help_in_an_arena_shows_the_preset_paper_if_it_is_named(preset):
    text = help_of("train", "AntUMaze", *preset)
    assert default_of(text, "hidden") == "400 300"
    assert default_of(text, "fast") == "False"
    assert default_of(text, "preset") == "paper"


@pytest.mark.parametrize("arguments", [["train"], ["train", "HardMaze"], ["train", "gym:CartPole-v1"]])
def test_help_elsewhere_shows_the_settings_of_dqn(arguments):
    text = help_of(*arguments)
    assert named(AgentSettings) <= options_in(text)
    assert not (named(ControlSettings) - named(AgentSettings) - {"preset"}) & options_in(text)
    assert default_of(text, "hidden") == "256 256 256"
    assert "PointUMaze" in text, "and says where those of DDPG are"


def test_help_names_the_arenas_wherever_one_can_be_given():
    for command in ("train", "learn"):
        text = help_of(command)
        for name in ("PointUMaze", "PointHookMaze", "AntUMaze", "AntHookMaze", "Point:my_maze.txt"):
            assert name in text


def parsed(*arguments: str):
    return parse(list(arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "PointUMaze"],
        ["train", "Ant:my_maze.txt"],
        ["train", "--reward", "mix", "PointHookMaze"],
        ["train", "--online", "AntUMaze"],
    ],
)
def test_an_arena_is_trained_in_by_ddpg(arguments):
    command = parsed(*arguments)
    assert isinstance(command, commands.TrainInArena)
    assert isinstance(command.settings(), ControlSettings)
    assert command.target == next(word for word in arguments[1:] if word[0] in "PA")


@pytest.mark.parametrize("arguments", [["train", "HardMaze"], ["train", "my_maze.txt"], ["train"]])
def test_other_targets_are_trained_in_by_dqn(arguments):
    command = parsed(*arguments)
    assert isinstance(command, commands.Train)
    assert isinstance(command.settings(), AgentSettings)


def test_an_option_that_names_an_arena_is_no_target():
    """A folder may be called what it likes."""
    for words in (
        "HardMaze --out PointUMaze",
        "--out PointUMaze HardMaze",
        "--resume --out PointUMaze --steps 100 HardMaze",
        "--representation Ant:x --hidden 8 8 --out=PointUMaze HardMaze",
    ):
        command = parsed("train", *words.split())
        assert isinstance(command, commands.Train)
        assert command.target == "HardMaze"


@pytest.mark.parametrize("words", ["--out HardMaze", "--fast True", "--hidden 8 8 --online", "--online"])
def test_an_arena_may_come_after_any_option(words):
    command = parsed("train", *words.split(), "PointUMaze")
    assert isinstance(command, commands.TrainInArena)
    assert command.target == "PointUMaze"


@pytest.mark.parametrize(
    ("words", "target", "option", "value"),
    [
        ("train --hidden 8 8 HardMaze", "HardMaze", "hidden", (8, 8)),
        ("train --hidden=8 1e1 PointUMaze --online", "PointUMaze", "hidden", (8, 10)),
        ("learn --no-rotate --hidden 8 8 my_maze.txt --dim 3", "my_maze.txt", "hidden", (8, 8)),
        ("reproduce --only n=1000 seed=0 fig3 --draw-only", "fig3", "only", ("n=1000", "seed=0")),
    ],
)
def test_a_target_may_come_after_a_list(words, target, option, value):
    command = parsed(*words.split())
    assert (command.figure if hasattr(command, "figure") else command.target) == target
    assert getattr(command, option) == value


def test_settings_are_the_preset_s_but_for_what_is_given():
    command = parsed("train", "PointUMaze", "--preset", "paper", "--steps", "1600", "--hidden", "8", "8")
    assert command.settings() == ControlSettings(steps=1_600, hidden=(8, 8))
    command = parsed("train", "PointUMaze", "--fast", "False", "--reward", "sparse")
    assert command.settings() == dataclasses.replace(CONTROL_PRESETS["quick"], reward="sparse", fast=False)
    command = parsed("train", "PointUMaze", "--twin-critics", "False", "--action-penalty", "0")
    without = dataclasses.replace(CONTROL_PRESETS["quick"], twin_critics=False, action_penalty=0.0)
    assert command.settings() == without


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train PointUMaz", "'PointUMaz': it is neither a maze nor a file; did you mean PointUMaze?"),
        ("train Point:gone.txt", "gone.txt"),
        ("train Point:FourRoom", "--goal ROW,COLUMN"),
        ("train PointUMaze --goal 2,1", "goal (2,1)"),
        ("train AntUMaze --cell 1", "make --cell larger, 3 or so"),
        ("train PointUMaze --cell nan", "cell"),
        ("train PointUMaze --steps 100", "steps must be a multiple of envs, which is 16, not 100"),
        ("train PointUMaze --resume", "--out"),
        ("train PointUMaze --out run --resume --overwrite", "exclude each other"),
        ("train PointUMaze --preset=default", "'default'; known: paper, quick"),
        ("train PointUMaze --reward sparse --online", "leave --online out"),
        ("train PointUMaze --online --filter commute", "leave --filter out"),
        ("learn PointUMaze --observation image", "observation"),
        ("learn PointUMaze --stay", "stay=True"),
        ("learn FourRoom --observation state", "'state'"),
        ("audit PointUMaze", "PointUMaze is no maze"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(elsewhere, arguments, message):
    told = refused(*arguments.split())
    assert told.startswith("lapwing: ")
    assert message in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train PointUMaze --reward potential", "fullmix"),
        ("train PointUMaze --epsilon 0.1", "--epsilon"),
        ("train HardMaze --envs 4", "--envs"),
        ("train PointUMaze --steps many", "--steps"),
    ],
)
def test_an_option_that_is_not_understood_is_named(elsewhere, arguments, words):
    assert words in refused(*arguments.split())


NO_MUJOCO = """
import sys
sys.modules["mujoco"] = None
from lapwing.cli.main import main
for command in (
    "train PointUMaze --reward sparse",
    "train AntUMaze",
    "learn PointUMaze --transitions 500",
    "train PointUMaze --help",
):
    try:
        main(command.split())
    except SystemExit as exit:
        print(exit.code, file=sys.stderr)
"""


@pytest.mark.slow
def test_without_mujoco_the_extra_to_install_is_named(tmp_path):
    finished = subprocess.run(
        [sys.executable, "-c", NO_MUJOCO], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    *refusals, last = finished.stderr.splitlines()
    assert refusals[1::2] == ["2"] * 3
    assert all("lapwing[mujoco]" in told for told in refusals[::2])
    assert last == "0"
    assert "--envs" in finished.stdout, "and help needs none"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_json_is_the_only_line_on_standard_output(trained):
    assert trained.out.endswith("}\n")
    assert trained.out.count("\n") == 1
    result = trained.result
    assert (result["target"], result["reward"], result["run"]) == ("PointUMaze", "mix", str(trained.folder))
    assert result["evaluated_at"] == [160, 320]
    assert len(result["successes"]) == len(result["final_distances"]) == 2
    assert (result["success"], result["final_distance"]) == (
        result["successes"][-1],
        result["final_distances"][-1],
    )
    assert -1 <= result["gate"] <= 1
    assert result["settings"]["filter"] == "commute"
    assert result["settings"]["hidden"] == [128, 128]
    assert result == storage.read_checked_json(trained.folder / "result.json")


@pytest.mark.slow
def test_the_table_and_the_pictures_are_told_on_standard_error(trained):
    for words in ("PointUMaze", f"{trained.result['success']:.0%} of 49 starts", "training 320/320"):
        assert words in trained.err
    for name in ("success.png", "goal.png", "paths.png", "strip.png", "film.gif"):
        assert name in trained.err
    assert "Traceback" not in trained.err


@pytest.mark.slow
def test_evaluating_a_run_gives_its_measures_and_pictures_again(trained):
    (trained.folder / "figures" / "film.gif").unlink()
    code, again, err = called("evaluate", trained.folder, "--json")
    assert code == 0, err
    assert again.count("\n") == 1
    assert json.loads(again) == trained.result
    assert (trained.folder / "figures" / "film.gif").is_file()


@pytest.mark.slow
def test_a_finished_run_is_refused_or_resumed_and_other_settings_are_told(trained, elsewhere):
    command = ["train", "PointUMaze", "--reward", "mix", "--out", trained.folder]
    assert "finished run" in refused(*command, *TINY)
    assert "seed = 0, not 1" in refused(*command, *TINY, "--seed", "1", "--resume")
    assert "goal = [3, 1], not [1, 1]" in refused(*command, *TINY, "--goal", "1,1", "--resume")


@pytest.mark.slow
def test_an_agent_in_an_arena_cannot_be_audited_or_given_to_a_maze(trained, elsewhere):
    told = refused("train", "TwoRoom", "--representation", trained.folder)
    assert "learned on PointUMaze, not on this maze TwoRoom" in told
    assert "was not learned in a maze" in refused("audit", trained.folder)


def test_an_unfinished_run_cannot_be_evaluated(elsewhere, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(train_ddpg, "train_in_arena", interrupted)
    code, out, err = called("train", "PointUMaze", "--reward", "sparse", *TINY)
    assert (code, out) == (130, "")
    assert "--out runs/PointUMaze-sparse --resume" in err
    assert "interrupted" in err
    assert "unfinished run" in refused("evaluate", "runs/PointUMaze-sparse")


@pytest.mark.slow
def test_a_maze_of_ones_own_without_a_folder(elsewhere):
    Path("my_maze.txt").write_text("#####\n#..G#\n#####\n")
    short = ["--steps", "16", "--evaluate-every", "16", "--random-steps", "32"]
    code, out, err = called("train", "Point:my_maze.txt", "--reward", "sparse", "--json", *short)
    assert code == 0, err
    result = json.loads(out)
    assert (result["target"], result["run"]) == ("Pointmy_maze", "runs/Point-my_maze-sparse")
    assert "gate" not in result
    names = {path.name for path in Path("runs/Point-my_maze-sparse/figures").glob("*.png")}
    assert names == {"success.png", "paths.png", "strip.png"}


@pytest.mark.slow
def test_learning_in_an_arena_measures_the_distance_of_every_filter_beside_l2(learned):
    result = learned.result
    filters = {"soft", "unit", "commute", "biharmonic", "heat"}
    assert set(result["distance_correlation"]) == filters | {"hitting", "l2"}
    assert (result["target"], result["states"], result["operator"]) == ("PointUMaze", None, None)
    assert result["transitions"] == 3_000
    assert 0 < result["distance_correlation"]["l2"] < 1
    for name, value in result["distance_correlation"].items():
        assert f"distance, {name} {value:.3f} rank correlation with the shortest path" in learned.err
    assert "PointUMaze: no exact spectrum" in learned.err
    assert learned.out.count("\n") == 1


@pytest.mark.slow
def test_learning_in_an_arena_has_pictures_that_its_folder_knows(learned):
    names = {path.stem for path in (learned.folder / "figures").glob("*.png")}
    assert names == {"spectrum", "learning", "eigenfunctions", "distances"} <= set(FIGURES)


@pytest.mark.slow
def test_what_was_learned_in_an_arena_is_measured_again_without_moving(learned, monkeypatch):
    monkeypatch.setattr("lapwing.data.open.random_episodes", lambda *_: pytest.fail("a body moved"))
    monkeypatch.setattr("lapwing.cli.report.draw_all", lambda *_: [])
    code, again, err = called("evaluate", learned.folder, "--json")
    assert code == 0, err
    assert json.loads(again) == learned.result
    assert LearnSettings.from_json(learned.result["settings"]).observation == "position"


class ReachedTrainingError(Exception):
    """Nothing was refused."""


def reaches_training(monkeypatch, *arguments: str | Path) -> str:
    """What a command says before its agent would be trained."""

    def stop(*_, **__):
        raise ReachedTrainingError

    monkeypatch.setattr(train_ddpg, "train_in_arena", stop)
    err = io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stderr(err),
        contextlib.suppress(ReachedTrainingError),
    ):
        cli.main([str(argument) for argument in arguments])
        pytest.fail(f"no training: {err.getvalue()}")
    return unboxed(err.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_what_lapwing_learn_makes_of_an_arena_can_be_given_to_lapwing_train(
    learned, elsewhere, monkeypatch, preset
):
    """As its help says: a run of lapwing learn in the same arena."""
    given = ["--preset", preset, "--representation", learned.folder]
    reaches_training(monkeypatch, "train", "PointUMaze", *given, "--out", "run", *TINY)


@pytest.mark.slow
@pytest.mark.parametrize(("gate", "l2", "warned"), [(0.84, 0.5, True), (0.9, 0.95, True), (0.86, 0.5, False)])
def test_a_phi_that_does_not_lead_to_the_goal_is_warned_of_in_a_line(
    learned, elsewhere, monkeypatch, gate, l2, warned
):
    monkeypatch.setattr(train_ddpg, "_gate", lambda *_: {"gate": gate, "gate_l2": l2})
    given = ["--fast", "False", "--representation", learned.folder]
    told = reaches_training(monkeypatch, "train", "PointUMaze", *given, "--out", "run", *TINY)
    assert ("warning: " in told and f"{gate:.2f}" in told and f"{l2:.2f}" in told) == warned
    assert "LapwingWarning" not in told
