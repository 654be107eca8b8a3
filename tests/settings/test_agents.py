"""Settings of agents and of learning: sizes that no machine has are refused by the field's name."""

from typing import Any, get_args, get_type_hints

import pytest

from lapwing.errors import ConfigError
from lapwing.settings import checks
from lapwing.settings.agents import AgentSettings, ControlSettings
from lapwing.settings.learn import LearnSettings

HUGE = 10**12


def counts(settings: Any) -> list[str]:
    """The fields that are whole numbers."""
    return [
        name
        for name, hint in get_type_hints(settings).items()
        if int in (hint, *get_args(hint)) and name != "hidden"
    ]


CASES = [(kind, name) for kind in (AgentSettings, ControlSettings, LearnSettings) for name in counts(kind)]


def test_the_fields_that_are_tried():
    assert {("batch", AgentSettings), ("envs", ControlSettings), ("dim", LearnSettings)} <= {
        (name, kind) for kind, name in CASES
    }


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_number_that_no_machine_has_room_for(kind, name):
    with pytest.raises(ConfigError, match=rf"\b{name}\b"):
        kind(**{name: HUGE})


@pytest.mark.parametrize("kind", [AgentSettings, ControlSettings, LearnSettings])
@pytest.mark.parametrize("hidden", [(HUGE,), (64, HUGE, 64), (10**7, 10**7), (10**300,) * 3])
def test_layers_that_no_machine_has_room_for(kind, hidden):
    with pytest.raises(ConfigError, match="hidden"):
        kind(hidden=hidden)


def test_what_fits_depends_on_the_machine(monkeypatch):
    wide = {"hidden": (2**16, 2**16), "batch": 2}
    monkeypatch.setattr(checks, "memory_bytes", lambda: 2**36)
    assert AgentSettings(**wide).hidden == (2**16, 2**16)
    monkeypatch.setattr(checks, "memory_bytes", lambda: 2**35)
    with pytest.raises(ConfigError, match="hidden"):
        AgentSettings(**wide)


def test_where_the_system_does_not_say_how_much_memory_it_has(monkeypatch):
    monkeypatch.delattr("os.sysconf")
    with pytest.raises(ConfigError, match="batch"):
        LearnSettings(batch=HUGE, hidden=(256,))


def test_settings_are_checked_again_although_they_equal_others_that_were():
    """1 == True, and what a JSON file holds has no hash."""
    settings = AgentSettings(online=True)
    object.__setattr__(settings, "hidden", [8, 8])
    checks.check_kinds(settings)
    object.__setattr__(settings, "online", 1)
    with pytest.raises(ConfigError, match="online"):
        checks.check_kinds(settings)


@pytest.mark.parametrize(("steps", "given"), [(3000, 3008), (1, 16)])
def test_steps_that_the_bodies_cannot_share_are_refused_with_a_number_that_they_can(steps, given):
    with pytest.raises(ConfigError, match=rf"steps.*{given}$"):
        ControlSettings(steps=steps)
    ControlSettings(steps=given)
