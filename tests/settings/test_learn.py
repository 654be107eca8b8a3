import dataclasses
import inspect
import json
import math
import re
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

from lapwing.errors import ConfigError
from lapwing.settings.learn import PRESETS, LearnSettings

WHOLE = {
    "dim": 1,
    "transitions": 1,
    "episode_length": 1,
    "steps": 1,
    "fourier_features": 1,
    "batch": 2,
    "oversample": 0,
    "seed": 0,
}
"""Whole numbers, each with the least that makes sense."""
POSITIVE = ("beta", "delta", "learning_rate", "fourier_bandwidth", "image_scale")
SHARES = ("lam", "lam_final")
CHOICES = {
    "observation": ("position", "positon"),
    "estimator": ("exact", "exakt"),
    "objective": ("allo", "alo"),
    "encoder": ("fourier", "furier"),
    "schedule": ("cosine", "cosin"),
    "past_end": ("truncate", "trunkate"),
    "preset": ("paper", "papper"),
}
"""A word that is known and one that is nearly so."""


@pytest.fixture(autouse=True, scope="module")
def unchecked_types():
    """Take away the type checks that only the tests have: settings answer for themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LearnSettings, "__init__", inspect.unwrap(LearnSettings.__init__))
        yield


def valid_settings():
    """Any settings at all, as keywords."""
    positive = st.floats(min_value=1e-6, max_value=1e6)
    return st.fixed_dictionaries(
        {},
        optional={
            **{name: st.integers(least, 10_000) for name, least in WHOLE.items()},
            **dict.fromkeys(POSITIVE, positive),
            **{name: st.floats(0, 1, exclude_max=True) for name in SHARES},
            "observation": st.sampled_from(["index", "position", "image", "state"]),
            "estimator": st.sampled_from(["sampled", "pairwise", "exact", None]),
            "encoder": st.sampled_from(["linear", "mlp", "fourier", "conv", None]),
            "schedule": st.sampled_from(["constant", "cosine"]),
            "past_end": st.sampled_from(["discard", "truncate"]),
            "preset": st.sampled_from(["default", "paper", "paper-shaping", "paper-control"]),
            "hidden": st.lists(st.integers(1, 512), max_size=4).map(tuple),
            **{name: st.booleans() for name in ("stay", "true_chain", "standardise", "rotate")},
        },
    )


def assert_refused(name, value):
    with pytest.raises(ConfigError, match=re.escape(name)) as caught:
        LearnSettings.from_keywords({name: value})
    assert repr(value) in str(caught.value)
    assert "\n" not in str(caught.value)


@given(valid_settings())
def test_settings_survive_json(values):
    settings = LearnSettings.from_keywords(values)
    text = json.dumps(settings.as_json(), allow_nan=False)
    assert LearnSettings.from_json(json.loads(text)) == settings


@given(valid_settings())
def test_what_is_given_stands_and_the_preset_fills_in_the_rest(values):
    settings = LearnSettings.from_keywords(values)
    base = PRESETS[values.get("preset", "default")]
    for field in dataclasses.fields(LearnSettings):
        assert getattr(settings, field.name) == values.get(field.name, getattr(base, field.name))


@given(
    st.sampled_from([*WHOLE]),
    st.sampled_from([math.nan, math.inf, "3", True, [4]]) | st.floats() | st.integers(max_value=-1),
)
def test_what_is_no_whole_number_is_refused(name, wrong):
    assume(not (isinstance(wrong, float) and wrong.is_integer() and wrong >= WHOLE[name]))
    assert_refused(name, wrong)


@pytest.mark.parametrize(("name", "least"), WHOLE.items())
def test_whole_numbers_have_a_least(name, least):
    assert getattr(LearnSettings.from_keywords({name: least}), name) == least
    assert_refused(name, least - 1)


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_number_of_any_type_becomes_an_int(name):
    for five in (5.0, np.int64(5), np.uint8(5), np.float32(5), Fraction(5)):
        value = getattr(LearnSettings.from_keywords({name: five}), name)
        assert (value, type(value)) == (5, int)


@pytest.mark.parametrize("name", [*POSITIVE, *SHARES])
def test_a_number_of_any_type_becomes_a_float(name):
    for half in (np.float32(0.5), np.float64(0.5), Fraction(1, 2)):
        value = getattr(LearnSettings.from_keywords({name: half}), name)
        assert (value, type(value)) == (0.5, float)


@pytest.mark.parametrize("name", POSITIVE)
def test_weights_and_sizes_are_above_zero_and_finite(name):
    for wrong in (math.nan, math.inf, -math.inf, 0.0, -1.0, "1", True, (1.0,)):
        assert_refused(name, wrong)


@pytest.mark.parametrize("name", SHARES)
def test_lambda_is_at_least_zero_and_below_one(name):
    for wrong in (math.nan, math.inf, 1.0, -0.1, "0.9", False):
        assert_refused(name, wrong)


@pytest.mark.parametrize(("name", "limit"), [("seed", 2**32), ("steps", 2**31), ("transitions", 2**31)])
def test_what_is_counted_in_a_machine_word_fits_one(name, limit):
    assert getattr(LearnSettings.from_keywords({name: limit - 1}), name) == limit - 1
    assert_refused(name, limit)


def test_hidden_is_a_list_of_widths():
    assert LearnSettings.from_keywords({"hidden": [8, 4]}).hidden == (8, 4)
    for wrong in [(0,), (-3,), (2.5,), (math.nan,), ("8",), 64, "88"]:
        with pytest.raises(ConfigError, match="hidden"):
            LearnSettings.from_keywords({"hidden": wrong})


@pytest.mark.parametrize(("name", "word", "typo"), [(n, w, t) for n, (w, t) in CHOICES.items()])
def test_an_unknown_choice_is_refused_with_the_nearest(name, word, typo):
    with pytest.raises(ConfigError, match=f"{name}.*did you mean {word}") as caught:
        LearnSettings.from_keywords({name: typo})
    assert repr(typo) in str(caught.value)


def test_an_unknown_setting_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown setting 'beeta'; did you mean beta\?"):
        LearnSettings.from_keywords({"beeta": 1})


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LearnSettings().dim = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_every_setting_is_documented_for_the_command_line():
    source = inspect.getsource(LearnSettings)
    for field in dataclasses.fields(LearnSettings):
        begin = source.index(f"\n    {field.name}: ")
        assert re.match(r'\n    \w+: (.|\n)*?\n    """\w', source[begin : begin + 300]), field.name


def test_the_preset_paper_is_the_papers_recipe():
    """FACTS: λ=0, batch 32, Adam 1e-3, 100,000 steps, MLP 200-200; neither oversampled nor rotated."""
    paper = LearnSettings.from_keywords({"preset": "paper"})
    assert (paper.estimator, paper.lam, paper.batch) == ("sampled", 0.0, 32)
    assert (paper.steps, paper.learning_rate, paper.schedule) == (100_000, 1e-3, "constant")
    assert paper.hidden == (200, 200)
    assert paper.past_end == "discard"
    assert (paper.oversample, paper.rotate) == (0, False)
    assert (paper.transitions, paper.episode_length, paper.stay) == (1_000_000, 50, False)
    assert paper.delta == 1.0


@pytest.mark.parametrize(
    "wrong",
    [{"bumps": 0.5}, {"slowness": 1}, {"keys": (1,)}, {"wrap": 7}, {"observation_key": 3}, {"preset": []}],
    ids=str,
)
def test_a_value_of_another_type_is_refused_by_name(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=name):
        LearnSettings.from_keywords(wrong)
