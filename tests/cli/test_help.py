"""What `--help` shows first."""

import dataclasses
import re

import pytest

from lapwing.cli.arguments import Learn
from lapwing.cli.flags import COMMANDS, flag_names
from lapwing.cli.help import GROUPS, SUMMARIES, grouped
from tests.support.command_line import called


def test_the_list_of_commands_is_short(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = called("--help")
    assert code == 0
    assert len(out.splitlines()) <= 25
    assert all(f" {command} " in out for command in COMMANDS)
    assert SUMMARIES.keys() == COMMANDS.keys()


def test_the_options_that_matter_come_first_and_none_is_lost(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = called("learn", "--help")
    shown = re.findall(r"^  (?:-h, )?--(?:no-)?([a-z-]+)", out, re.M)
    assert len(GROUPS["learn"]["most used"]) == 8
    assert shown[:8] == list(GROUPS["learn"]["most used"])
    assert sorted(shown) == sorted([*flag_names([Learn]), "help"])
    titles = [line.strip() for line in out.splitlines() if line[:1] == " " and line[1:2].isalpha()]
    assert titles == ["positional arguments", *GROUPS["learn"]]


def test_groups_name_options_that_exist():
    for command, groups in GROUPS.items():
        known = [*flag_names(COMMANDS[command]), "help"]
        named = [name for names in groups.values() for name in names]
        assert set(named) <= set(known)
        assert sum(not names for names in groups.values()) == 1  # where all others go


def test_a_group_without_options_is_left_out():
    rule = " ----"
    text = "\n".join(["usage", " options", rule, "  --one  about it", "         and more", "  --two  it", ""])
    found = grouped(text, {"first": ("two",), "none": ("three",), "others": ()})
    assert found.splitlines() == [
        *("usage", " first", rule, "  --two  it", ""),
        *(" others", rule, "  --one  about it", "         and more"),
    ]
    assert grouped("usage\n", {"others": ()}) == "usage\n"


def test_each_command_is_a_dataclass_with_a_docstring():
    for kinds in COMMANDS.values():
        assert all(dataclasses.is_dataclass(kind) and kind.__doc__ for kind in kinds)


@pytest.mark.parametrize("columns", ["68", "78", "90"])
def test_no_number_is_broken_over_lines_and_no_negation_has_a_default(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    _, out, _ = called("learn", "--help")
    assert not re.search(r"\d,\s*\n\s*\d{3}", out)
    negated = re.findall(r"^  --no-[a-z-]+.*?(?=^  -|^ \S)", out, re.M | re.S)
    assert negated
    assert not any("default" in entry for entry in negated)
