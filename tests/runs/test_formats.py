"""Files whose digest fits and whose content does not, as someone else may make them."""

import shutil
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from lapwing import storage
from lapwing.errors import CheckpointError
from lapwing.runs.folder import RunFolder
from lapwing.runs.formats import check_result, fits, result_format
from lapwing.settings.agents import AgentSettings, ControlSettings
from lapwing.settings.learn import ResolvedSettings
from tests.support.command_line import called

AGENT = {"target": "mine", "reward": "mix", "train_seconds": 1.5, "evaluated_at": [10, 20]}
RESULTS = {
    "gym": AGENT | {"return": -1.0, "returns": [-2.0, -1.0], "settings": AgentSettings().as_json()},
    "arena": AGENT
    | {"success": 0.5, "final_distance": 1.0, "steps_to_success": None, "successes": [0.0, 0.5]}
    | {"final_distances": [2.0, 1.0], "gate": 0.9, "settings": ControlSettings().as_json()},
}
RESULTS["maze"] = RESULTS["gym"] | {"goal": [1, 2], "optimal_return": -1.0, "steps_to_optimum": 20}
UNFIT: dict[str, list[Any]] = {
    "settings": [None, {"seed": "x"}, {"colour": 1}, []],
    "goal": [[1], [1, 2, 3], [1, "x"], "1,2"],
    "distance_correlation": [{"unheard-of": 0.5}, {"soft": "x"}, [0.5]],
    "held_out": [{}, {"trusted": 1}, 3],
    "reward": ["unheard-of", 3],
    "ended_early": [None, 1, "yes"],
}
"""What a field cannot be; all others cannot be these:"""
NO_MEASURE = [[None], {"a": 1}, True, 10**400]


def forged(value: dict[str, Any], described: Any):
    """Each field by name, with the object that has it wrong."""
    for name in get_type_hints(described):
        for wrong in UNFIT.get(name, NO_MEASURE):
            yield name, value | {name: wrong}
        if name in described.__required_keys__:
            yield name, {other: each for other, each in value.items() if other != name}


def config_of(kind: str) -> dict[str, Any]:
    return {"kind": "agent", "target": {"kind": kind}}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_of_an_agent_is_refused_by_the_field_that_cannot_be(kind):
    path, config = Path("result.json"), config_of(kind)
    check_result(path, RESULTS[kind], config)
    for name, wrong in forged(RESULTS[kind], result_format(config)):
        with pytest.raises(CheckpointError, match=rf"result\.json.*\b{name}\b"):
            check_result(path, wrong, config)


@pytest.mark.parametrize("kind", RESULTS)
def test_each_evaluation_has_its_measures(kind):
    measures = {"returns", "successes", "final_distances"} & RESULTS[kind].keys()
    for name, wrong in [(name, wrong) for name in measures for wrong in ([], [1.0], [1.0] * 3)]:
        with pytest.raises(CheckpointError, match=name):
            check_result(Path("result.json"), RESULTS[kind] | {name: wrong}, config_of(kind))
    nothing = {name: [] for name in (*measures, "evaluated_at")}
    with pytest.raises(CheckpointError, match="0 evaluations"):
        check_result(Path("result.json"), RESULTS[kind] | nothing, config_of(kind))


def test_a_result_of_learning_too(four_room_run):
    folder = RunFolder(four_room_run)
    result = folder.result()
    assert ResolvedSettings.from_json(result["settings"]).dim == 4
    for name, wrong in forged(result, result_format(folder.config())):
        with pytest.raises(CheckpointError, match=rf"result\.json.*\b{name}\b"):
            check_result(Path("result.json"), wrong, folder.config())


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("result.json", {"learn_seconds": "long"}),
        ("result.json", {"settings": {"lam": "x"}}),
        ("result.json", {"cosine": ["x"]}),
        ("metrics.jsonl", {"loss": "low"}),
        ("metrics.jsonl", {"step": None}),
    ],
    ids=str,
)
def test_a_forged_digest_ends_no_command_in_a_traceback(four_room_run, tmp_path, file, changed):
    out = Path(shutil.copytree(four_room_run, tmp_path / "run"))
    if file == "result.json":
        storage.write_checked_json(out / file, storage.read_checked_json(out / file) | changed)
    else:
        first, *others = storage.read_json_lines(out / file)
        storage.write_json_lines(out / file, [first | changed, *others])
    for arguments in (["evaluate"], ["learn", "FourRoom", "--resume", "--out"]):
        code, out_, err = called(*arguments, out, *(() if "evaluate" in arguments else SMALL_OPTIONS))
        assert (code, out_) == (2, ""), err
        assert file in err
        assert next(iter(changed)) in err


SMALL_OPTIONS = (
    *("--transitions", "5000", "--dim", "4", "--steps", "60", "--hidden", "32"),
    *("--fourier-features", "32"),
)
"""`SMALL`, on the command line."""


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_no_json(tmp_path, number):
    path = tmp_path / "result.json"
    storage.write_checked_json(path, {"gap": 0.123})
    path.write_text(path.read_text().replace("0.123", number))
    with pytest.raises(CheckpointError, match=r"result\.json"):
        storage.read_json(path)


def test_fits_is_strict_about_types():
    assert fits({"soft": 1}, dict[str, float])
    assert not fits({"soft": None}, dict[str, float])
    assert fits(3, float)
    assert not fits(3.0, int)
    assert not fits("3", int | None)
