import csv
import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing._version import __version__
from lapwing.errors import CheckpointError
from lapwing.figures import grid
from lapwing.figures.grid import COLUMNS, Measure, Measured, Run, read_table, rows_of, write_table

RUN = Run("fig3", "FourRoom", "default", "position", 1_000, 20, 1.0, None, 0, "quick", '{"dim": 20}')


def row(**changed) -> dict:
    (one,) = rows_of(RUN, Measured([Measure("gap", 0.5)], 2.0))
    return one | changed


def cells(path) -> list[list[str]]:
    """What a table holds, as text."""
    return list(csv.reader(path.read_text().splitlines()))


def test_the_same_configuration_has_the_same_key_on_every_day_and_machine():
    """Written down here: what is in a committed table must stay known."""
    assert dataclasses.replace(RUN).key == RUN.key == "2d5819237c34"
    assert dataclasses.replace(RUN, preset="paper", figure="fig6").key == RUN.key


OTHER = {
    "environment": "TwoRoom",
    "method": "graph-drawing",
    "input": "image",
    "n": 1_001,
    "d": 21,
    "beta": None,
    "lam": 0.0,
    "seed": 1,
    "recipe": '{"dim": 20, "steps": 3}',
    "reward": "l2",
}


def test_every_other_field_matters_to_a_key():
    assert set(OTHER) == {field.name for field in dataclasses.fields(Run)} - {"preset", "figure"}
    for name, value in OTHER.items():
        assert dataclasses.replace(RUN, **{name: value}).key != RUN.key


def test_the_order_in_which_settings_are_given_does_not_matter():
    assert grid.recipe(dim=3, steps=5) == grid.recipe(steps=5, dim=3)
    assert dataclasses.replace(RUN, recipe=grid.recipe(dim=3, steps=5)).settings == {"dim": 3, "steps": 5}


def test_the_columns_of_a_table_are_those_of_the_design_and_the_key(tmp_path):
    write_table(tmp_path / "t.csv", [])
    assert (tmp_path / "t.csv").read_text() == (
        "figure,environment,method,input,n,d,beta,lam,reward,seed,step,metric,value,seconds,preset,version,key\n"
    )
    assert set(row()) == set(COLUMNS)


def test_each_measure_of_a_run_is_a_row():
    measured = Measured([Measure("gap", 0.25), Measure("return", 7.0, step=30)], 1.23456)
    first, second = rows_of(RUN, measured)
    assert (first["metric"], first["value"], first["step"]) == ("gap", 0.25, None)
    assert (second["metric"], second["value"], second["step"]) == ("return", 7.0, 30)
    assert first["seconds"] == second["seconds"] == 1.235
    assert (first["key"], first["version"], first["preset"]) == (RUN.key, __version__, "quick")


whole = st.integers(0, 2**40)
number = st.floats(0, allow_infinity=False).map(abs)
word = st.from_regex("[A-Za-z][A-Za-z0-9 _-]*", fullmatch=True)
typed_rows = st.fixed_dictionaries(
    dict.fromkeys(("figure", "environment", "method", "input", "metric"), word)
    | {"n": whole, "d": whole, "seed": st.integers(0, 2**32 - 1), "step": whole | st.none()}
    | {"value": st.floats(allow_nan=False), "seconds": number, "beta": number | st.none()}
    | {"lam": st.floats(0, 1, exclude_max=True).map(abs) | st.none(), "reward": word | st.none()}
    | {"preset": st.sampled_from(["quick", "paper"]), "version": st.just("0.1.0")}
    | {"key": st.from_regex("[0-9a-f]{12}", fullmatch=True)}
)


@given(st.lists(typed_rows, max_size=5, unique_by=lambda row: row["key"]))
def test_what_is_written_is_read_again_to_the_bit(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("grid") / "t.csv"
    write_table(path, rows)
    assert as_text(read_table(path)) == as_text(rows)


def as_text(rows: list[dict]) -> list[str]:
    """In an order of its own, types and the sign of zero included."""
    return sorted(repr(sorted(one.items(), key=lambda item: item[0])) for one in rows)


def test_a_value_that_is_not_a_number_survives(tmp_path):
    write_table(tmp_path / "t.csv", [row(value=math.nan)])
    (again,) = read_table(tmp_path / "t.csv")
    assert math.isnan(again["value"])


def test_a_table_that_is_not_there_is_empty(tmp_path):
    assert read_table(tmp_path / "none.csv") == []


def test_rows_are_sorted_whatever_was_finished_first(tmp_path):
    runs = [
        dataclasses.replace(RUN, seed=seed, n=n, method=method, beta=beta)
        for seed in (1, 0)
        for n in (10_000, 300)
        for method, beta in (("transitions-2017", None), ("default", 1.0), ("default", None))
    ]
    measured = Measured([Measure("rank", 3.0), Measure("gap", 1.0)], 1.0)
    rows = [one for run in runs for one in rows_of(run, measured)]
    shuffled = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
    write_table(tmp_path / "one.csv", rows)
    write_table(tmp_path / "other.csv", shuffled)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()
    _, *lines = cells(tmp_path / "one.csv")
    assert [line[2] for line in lines] == ["default"] * 16 + ["transitions-2017"] * 8
    assert [int(line[4]) for line in lines[:16]] == [300] * 8 + [10_000] * 8


@pytest.mark.parametrize("header", ["a,b,c", ",".join(COLUMNS[:-1]), ",".join(reversed(COLUMNS)), ""])
def test_a_table_with_other_columns_is_refused_by_name(tmp_path, header):
    path = tmp_path / "mine.csv"
    path.write_text(f"{header}\n1,2,3\n")
    with pytest.raises(CheckpointError, match=r"mine\.csv"):
        read_table(path)
    assert path.read_text() == f"{header}\n1,2,3\n"


def damaged(tmp_path, change):
    """A table of four rows of which the third, in line 4, is damaged by `change`."""
    path = tmp_path / "t.csv"
    write_table(path, [row(metric=metric) for metric in "abcd"])
    lines = path.read_text().splitlines()
    lines[3] = change(lines[3].split(","))
    path.write_text("\n".join(lines) + "\n")
    return path


def put(name: str, text: str):
    def change(values: list[str]) -> str:
        values[COLUMNS.index(name)] = text
        return ",".join(values)

    return change


DAMAGE = {
    "a word for a whole number": put("n", "many"),
    "a fraction for a whole number": put("seed", "0.5"),
    "a word for a number": put("value", "low"),
    "no value": put("value", ""),
    "no key": put("key", ""),
    "cut short": lambda values: ",".join(values[:12]),
    "cut within a cell": lambda values: ",".join(values)[:40],
    "a blank within a number": put("n", "1 00"),
    "a figure of another script": put("n", "१०"),
    "a control character in a word": put("method", "def\x01ult"),
    "a seed out of range": put("seed", str(2**32)),
    "a lam out of range": put("lam", "1.5"),
    "negative seconds": put("seconds", "-2.0"),
    "an unknown preset": put("preset", "quicj"),
    "a key that is none": put("key", "2d5819237c3g"),
    "another environment than the run's": put("environment", "FourRoon"),
    "another n than the run's": put("n", "3000"),
    "a cell too many": lambda values: ",".join([*values, "more"]),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_line_is_named(tmp_path, change):
    path = damaged(tmp_path, change)
    with pytest.raises(CheckpointError, match=r"t\.csv .*line 4\b"):
        read_table(path)


def test_a_row_that_stands_there_twice_is_named(tmp_path):
    write_table(tmp_path / "t.csv", [row(), row(value=0.25)])
    with pytest.raises(CheckpointError, match=r"t\.csv is damaged in line 3"):
        read_table(tmp_path / "t.csv")


def test_rows_that_the_key_of_their_run_denies_are_refused(tmp_path):
    grid.check_runs(tmp_path / "t.csv", [row(), row(key="0" * 12, n=7)], [RUN])
    with pytest.raises(CheckpointError, match=r"t\.csv is damaged: seed of the run"):
        grid.check_runs(tmp_path / "t.csv", [row(seed=3)], [RUN])


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00figure")
    with pytest.raises(CheckpointError, match=r"t\.csv"):
        read_table(tmp_path / "t.csv")
