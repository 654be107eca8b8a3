import hypothesis.strategies as st
import pytest
from hypothesis import given

import lapwing
from lapwing import errors
from lapwing.mazes import BUILT_IN


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ConfigError, ValueError),
        (errors.MazeError, errors.ConfigError),
        (errors.DatasetError, ValueError),
        (errors.StorageError, OSError),
        (errors.NonFiniteError, ArithmeticError),
        (errors.CheckpointError, errors.LapwingError),
    ],
)
def test_each_error_is_caught_as_lapwings_own_and_as_the_builtin_it_refines(error, builtin):
    assert issubclass(error, errors.LapwingError)
    assert issubclass(error, builtin)


def test_a_warning_is_no_error():
    assert issubclass(errors.LapwingWarning, UserWarning)
    assert not issubclass(errors.LapwingWarning, errors.LapwingError)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("FourRom", "FourRoom"),
        ("fourroom", "FourRoom"),
        ("TwoRooms", "TwoRoom"),
        ("hard_maze", "HardMaze"),
        ("OneRoom ", "OneRoom"),
    ],
)
def test_the_nearest_name_is_suggested(word, meant):
    assert errors.nearest(word, BUILT_IN) == f"did you mean {meant}?"


def test_all_names_are_listed_where_none_is_near():
    assert errors.nearest("xyzzy", ["OneRoom", "TwoRoom"]) == "known: OneRoom, TwoRoom"
    assert errors.nearest("xyzzy", []) == "known: "


@given(st.text(), st.lists(st.text(min_size=1), min_size=1, unique_by=str.casefold))
def test_a_hint_names_a_known_word_whatever_is_asked(word, known):
    hint = errors.nearest(word, known)
    assert any(name in hint for name in known)


@given(st.lists(st.text("abcdefgh", min_size=3), min_size=1, unique_by=str.casefold), st.data())
def test_a_known_word_is_its_own_nearest(known, data):
    word = data.draw(st.sampled_from(known))
    assert errors.nearest(word, known) == f"did you mean {word}?"


def test_a_warning_names_the_line_that_called_lapwing():
    with pytest.warns(errors.LapwingWarning) as caught:
        lapwing.learn([[1, 2], [3, 4]], dim=3)
    assert {warning.filename for warning in caught} == {__file__}
