"""Options that do not exist, and the names of settings in messages."""

import pytest

from lapwing.cli.arguments import Learn, Train, TrainInArena
from lapwing.cli.flags import COMMANDS, as_typed, check_flags, flag_names
from lapwing.errors import ConfigError
from tests.support.command_line import refused


@pytest.mark.parametrize(
    ("option", "ours"),
    [
        ("--lr", "--learning-rate"),
        ("--epochs", "--steps"),
        ("--batch-size", "--batch"),
        ("--device", "JAX_PLATFORMS"),
        ("--n_envs=4", "--num-envs"),
        ("--learning-rat", "--learning-rate"),
    ],
)
def test_what_others_call_an_option_is_answered_with_ours(elsewhere, option, ours):
    told = refused("learn", "FourRoom", option, "3")
    assert option.partition("=")[0].replace("_", "-") in told
    assert ours in told


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("train FourRoom --reward potentiel", "did you mean potential?"),
        ("learn FourRoom --log wandbb", "did you mean wandb?"),
        ("learn FourRoom --log nowhere", "lapwing learn --help"),
    ],
)
def test_a_choice_that_is_misspelt_is_answered_with_the_nearest(elsewhere, words, hint):
    told = refused(*words.split())
    assert words.split()[-1] in told
    assert hint in told


def test_the_suggestion_is_an_option_of_the_command():
    for kinds, ours in (((Train,), "--learning-rate"), ((TrainInArena,), "--critic-rate")):
        with pytest.raises(ConfigError, match=f"--lr.*{ours}"):
            check_flags(["--lr", "1"], kinds)
    with pytest.raises(ConfigError) as told:
        check_flags(["--learning-rate", "1"], (TrainInArena,))
    assert "--learning-rate" in str(told.value)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_passes(command):
    for kind in COMMANDS[command]:
        names = flag_names([kind])
        words = [f"--{name}" for name in names] + [f"--{name.replace('-', '_')}=1" for name in names]
        check_flags([*words, "--help", "-h", "--tyro-print-completion", "target", "-1"], (kind,))


def test_settings_are_named_as_they_are_typed(elsewhere):
    assert "--observation-key" in refused("learn", "FourRoom", "--observation-key", "a")
    assert "--dim" in refused("learn", "FourRoom", "--dim", "0")


def test_what_is_no_setting_stays_as_it_is():
    for message in (
        "only 4 of 20 dimensions survive",
        "/tmp/observation_key/x.npz: no such file",
        "use lapwing.observation_key or 'episode_length'",
        "unknown target 'x'",
    ):
        assert as_typed(message) == message
    assert flag_names([Learn])  # there is something to replace


def test_who_asks_for_completion_is_told_how_to_get_it():
    assert "--tyro-print-completion" in refused("completion")
