"""`lapwing solve`: pictures, numbers for a machine, and what it refuses."""

import json

import pytest

from lapwing.cli.main import main
from lapwing.solving.files import NAME
from tests.support.command_line import called, refused
from tests.support.exact import fewest_moves, free_cells, moves, text_of

FOUR_ROOM = text_of("FourRoom")


def test_a_goal_in_a_run_is_reached_by_a_shortest_path(four_room_run, tmp_path):
    words = ("--reward", "goal=1,1", "--start", "13,13", "--out", tmp_path / "out", "--json")
    code, out, err = called("solve", four_room_run, *words)
    assert code == 0, err
    result = json.loads(out)
    free = free_cells(FOUR_ROOM)
    steps = fewest_moves(moves(FOUR_ROOM), free.index((1, 1)))[free.index((13, 13))]
    assert len(result["path"]) == steps + 1
    assert result["path"][0] == [13, 13]
    assert result["path"][-1] == [1, 1]
    assert result["share"] == pytest.approx(1, abs=1e-6)
    assert (tmp_path / "out" / "solution.png").stat().st_size > 10_000


def test_a_maze_with_a_painted_map_learns_first(elsewhere, capsys):
    (elsewhere / "maze.txt").write_text("#######\n#.....#\n#.###.#\n#.....#\n#######\n")
    (elsewhere / "map.txt").write_text("#######\n#3...9#\n#a###i#\n#.....#\n#######\n")
    main(["solve", "maze.txt", "--reward", "map.txt", "--dim", "6", "--gamma", "0.9", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (result["states"], result["dim"], result["gamma"]) == (12, 6, 0.9)
    assert result["share"] == pytest.approx(1, abs=1e-6)
    assert [1, 5] in result["path"]
    assert (elsewhere / "runs" / "maze-solve" / "solution.svg").is_file()
    main(["evaluate", "runs/maze-solve", "--json"])
    again = json.loads(capsys.readouterr().out)
    assert {name: again[name] for name in ("maze", "dim", "gamma")} == {
        "maze": "maze",
        "dim": 6,
        "gamma": 0.9,
    }
    assert again["return"] == pytest.approx(result["return"])


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("FourRoom",), "reward"),
        (("--reward", "goal=1,1"), "maze"),
        (("FourRoom", "--reward", "goal=0,0"), "goal"),
        (("FourRoom", "--reward", "goal=99,0"), "goal"),
        (("FourRoom", "--reward", "nan=1,1"), "nan"),
        (("FourRoom", "--reward", "gone.txt"), "gone.txt"),
        (("FourRoom", "--reward", "goal=1,1", "--gamma", "1"), "gamma"),
        (("FourRoom", "--reward", "goal=1,1", "--start", "0,0"), "start"),
        (("FourRoom", "--reward", "goal=1,1", "--start", "x"), "start"),
        (("FourRoom", "--reward", "goal=1,1", "--dim", "500"), "dim"),
        (("PlaneFourRoom", "--reward", "goal=1,1"), "PlaneFourRoom"),
        (("FourRom", "--reward", "goal=1,1"), "FourRoom"),
    ],
)
def test_mistakes_are_one_sentence(elsewhere, words, named):
    assert named in refused("solve", *words)


def test_a_run_has_its_own_dim(four_room_run, elsewhere):
    assert "dim" in refused("solve", four_room_run, "--reward", "goal=1,1", "--dim", "7")


def test_a_policy_is_replaced_only_when_asked(four_room_run, tmp_path):
    out = tmp_path / "out"
    assert called("solve", four_room_run, "--reward", "goal=1,1", "--out", out)[0] == 0
    before = (out / NAME).read_bytes()
    again = ("solve", four_room_run, "--reward", "goal=1,2", "--out", out)
    assert "--overwrite" in refused(*again)
    assert (out / NAME).read_bytes() == before
    assert called(*again, "--overwrite")[0] == 0
    assert (out / NAME).read_bytes() != before
