"""The verdict of a report follows its measures."""

import sys
from typing import Any

import pytest

from lapwing.cli.report import tried_table
from lapwing.cli.verdict import inside, leading, names_of, trusted_indices, verdict_of

SETTINGS = {"encoder": "bumps", "trials": 6, "rotate": True}


def continuous(trusted: list[int] | int, dim: int = 6, **changed: Any) -> dict[str, Any]:
    """A result of continuous states."""
    measured = {"trusted": trusted, "transitions": 5_000, "objective": 1.0, "objective_reference": 1.0}
    measured |= {name: changed[name] for name in measured if name in changed}
    encoder = changed.get("encoder", "bumps")
    settings = SETTINGS | {"encoder": encoder}
    return {
        "eigenvalues": [0.1] * dim,
        "operator": None,
        "held_out": measured,
        "settings": settings,
        "run": "runs/mine",
    }


def enumerated(
    cosines: list[float], floor: float, *, rotate: bool = True, gap: float = 0.001
) -> dict[str, Any]:
    """A result of enumerated states."""
    return {
        "eigenvalues": [0.1] * len(cosines),
        "operator": "true chain",
        "cosine": cosines,
        "cosine_mean": sum(cosines) / len(cosines),
        "cosine_floor": floor,
        "gap": gap,
        "gap_floor": 0.001,
        "gap_random": 5.0,
        "settings": SETTINGS | {"rotate": rotate},
        "run": "runs/mine",
    }


def test_all_that_can_be_trusted_is_to_be_used():
    verdict, following = verdict_of(continuous(list(range(6))))
    assert "6 of 6" in verdict
    assert "runs/mine" in following


def test_eigenvalues_that_halves_of_the_episodes_disagree_on_are_named():
    result = continuous(list(range(6)))
    result["held_out"] |= {"eigenvalues": [0.0, 0.1, 0.1, 0.2, 0.3, 0.4], "spread": [0, 0, 0.3, 0, 0, 0]}
    assert "f₃ is" in verdict_of(result)[0]
    result["held_out"]["spread"][4] = 0.5
    assert "f₃, f₅ are" in verdict_of(result)[0]
    result["held_out"]["spread"][4] = 0
    result["held_out"]["spread"][2] = 0.05
    assert "f₃" not in verdict_of(result)[0]


def test_a_part_is_named_and_a_smaller_dim_proposed():
    verdict, following = verdict_of(continuous([0, 1, 2, 4]))
    assert "4 of 6" in verdict
    assert names_of([0, 1, 2, 4]) in verdict
    assert "--dim 3" in following
    assert "episodes" in following


def test_walls_that_distances_pass_through_are_named():
    walls = {"places": 300, "walls": 9, "contrast": 1.5}
    verdict, following = verdict_of(continuous(list(range(6))) | {"barriers": walls})
    assert "6 of 6" in verdict
    assert "wall" in verdict
    assert "observation" in following


def test_episodes_that_end_early_may_end_at_the_goal():
    result = continuous(list(range(6)))
    assert "--past-termination" in verdict_of(result | {"ended_early": True}).next_step
    assert "--past-termination" not in verdict_of(result | {"ended_early": False}).next_step
    walls = {"ended_early": True, "barriers": {"places": 300, "walls": 9, "contrast": 1.5}}
    assert "--past-termination" in verdict_of(result | walls).next_step
    settings = result["settings"] | {"past_termination": True}
    assert "--past-termination" not in verdict_of(result | {"ended_early": True, "settings": settings})[1]


def test_the_constant_alone_needs_more_data():
    verdict, following = verdict_of(continuous([0]))
    assert "constant" in verdict
    assert "episodes" in following
    assert "--dim" not in following


@pytest.mark.parametrize(("encoder", "remedy"), [("fourier", "--encoder"), ("bumps", "--trials")])
def test_a_better_reference_has_a_remedy(encoder, remedy):
    verdict, following = verdict_of(continuous([0, 1], encoder=encoder, objective=1.4))
    assert "reference" in verdict
    assert "29%" in verdict
    assert remedy in following
    assert "reference" not in verdict_of(continuous([0, 1], objective=1.04))[0]


def test_few_held_out_transitions_are_said_to_be_few():
    assert "59 held-out transitions" in verdict_of(continuous([0, 1], transitions=59))[0]
    assert "held-out" not in verdict_of(continuous([0, 1], transitions=60))[0]


def test_without_held_out_episodes_nothing_is_trusted():
    _, following = verdict_of(continuous([0]) | {"held_out": None})
    assert "--held-out" in following


def test_too_few_to_hold_any_out_need_more():
    _, following = verdict_of(continuous([0]) | {"held_out": None, "transitions": 99})
    assert "100 transitions" in following
    assert "--held-out" not in following


def test_parts_that_nothing_joins_are_told_whatever_is_trusted():
    verdict, following = verdict_of(continuous(list(range(6))) | {"parts": 3})
    assert "3 parts" in verdict
    assert "part" in following
    assert "runs/mine" not in following


@pytest.mark.parametrize("rotate", [True, False])
@pytest.mark.parametrize("cosines", [[1.0] * 4, [1.0, 0.5, 0.5, 0.5]])
def test_parts_of_enumerated_states_are_told(cosines, rotate):
    verdict, following = verdict_of(enumerated(cosines, 0.6, rotate=rotate) | {"parts": 2})
    assert "2 parts" in verdict
    assert "runs/mine" not in following


def test_parts_are_told_where_nothing_was_held_out():
    assert "2 parts" in verdict_of(continuous([0]) | {"held_out": None, "parts": 2})[0]


def test_functions_that_never_change_along_an_episode_are_named():
    verdict, following = verdict_of(
        continuous(list(range(6))) | {"eigenvalues": [0.0, 1e-9, 0.0, 0.1, 0.2, 0.3]}
    )
    assert names_of([1, 2]) in verdict
    assert "goal" in following


def test_nearly_all_are_to_be_used():
    verdict, following = verdict_of(continuous([*range(8), *range(9, 20)], dim=20))
    assert "19 of 20" in verdict
    assert "runs/mine" in following


def test_observations_in_no_order_are_told_from_few_data():
    result = continuous([0])
    result["held_out"]["eigenvalues"] = [0.0, 0.98, 1.01, 0.99, 1.02, 0.97]
    verdict, following = verdict_of(result)
    assert "no more alike" in verdict
    assert "order" in following
    result["held_out"]["eigenvalues"][1] = 0.9
    assert "no more alike" not in verdict_of(result)[0]


def test_results_of_earlier_versions_count_from_the_first_on():
    assert trusted_indices({"trusted": 3}) == [0, 1, 2]
    old = continuous(2)
    del old["held_out"]["objective"], old["held_out"]["objective_reference"]
    assert "2 of 6" in verdict_of(old)[0]


def test_enumerated_states_are_judged_by_what_the_data_allows():
    verdict, following = verdict_of(enumerated([1.0, 0.99, 0.95], 0.99))
    assert "3 of 3" in verdict
    assert "runs/mine" in following
    _, following = verdict_of(enumerated([1.0, 0.99, 0.3], 0.99))
    assert "--steps" in following
    _, following = verdict_of(enumerated([1.0, 0.99, 0.3], 0.77))
    assert "--transitions" in following
    assert "--dim 2" in following


def test_columns_that_were_not_rotated_are_judged_by_their_span():
    verdict, following = verdict_of(enumerated([0.3, 0.4, 0.5], 0.99, rotate=False))
    assert "100.0%" in verdict
    assert "runs/mine" in following
    verdict, following = verdict_of(enumerated([0.3, 0.4, 0.5], 0.99, rotate=False, gap=2.5))
    assert "50.0%" in verdict
    assert "--steps" in following


def test_eigenfunctions_are_counted_from_one():
    assert names_of([0]) == "f₁"
    assert names_of([0, 1]) == "f₁, f₂"
    assert names_of([0, 1, 2, 10, 12, 13, 14]) == "f₁ to f₃, f₁₁, f₁₃ to f₁₅"
    assert (leading([]), leading([1, 2]), leading([0, 1, 2])) == (0, 0, 3)


def test_the_table_of_trials_says_which_way_is_better_and_by_how_much():
    title = str(
        tried_table([{"score": 1.0, "what": "150 bumps"}, {"score": 0.995, "what": "300 bumps"}]).title
    )
    assert "lower" in title
    assert "1%" in title


def test_the_verdict_says_how_much_of_the_space_was_seen():
    seen = {"ranges": [[0.0, 1.0], [0.0, 0.3]], "bounds": [[0.0, 1.0], [0.0, 1.0]], "covered": 0.3}
    result = continuous(list(range(6)))
    for covered, told in ((0.3, "30%"), (None, "1")):
        verdict = verdict_of(result | {"extent": seen | {"covered": covered}}).verdict
        assert "6 of 6" in verdict
        assert told in verdict.partition("6 of 6")[2]
    lacking = continuous(list(range(6)), objective=1.4) | {"extent": seen}
    assert all(words in verdict_of(lacking).verdict for words in ("reference", "30%"))
    whole = {"ranges": [[0.0, 1.0]], "bounds": [[0.0, 1.0]], "covered": 1.0}
    assert "%" not in verdict_of(result | {"extent": whole}).verdict
    assert [feature for feature, _, _ in inside(seen)] == [1]
    assert inside(seen | {"bounds": [[0.0, 1.0], [None, None]]}) == []


@pytest.mark.parametrize("known", [True, False])
def test_the_next_step_can_be_typed_as_it_is_printed(known, tmp_path, monkeypatch):
    """A virtual environment that is not activated is not on the path."""
    started_by = tmp_path / ".venv" / "bin" / "lapwing"
    started_by.parent.mkdir(parents=True)
    started_by.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(started_by)])
    monkeypatch.setenv("PATH", str(started_by.parent) if known else "")
    following = verdict_of(continuous(list(range(6)))).next_step
    assert following.startswith("lapwing explore" if known else ".venv/bin/lapwing explore")


@pytest.mark.parametrize(("share", "told"), [(None, False), (0.2, False), (0.9, True)])
def test_distances_where_most_of_the_flow_has_no_way_back_are_warned_of(share, told):
    verdict, _ = verdict_of(enumerated([1.0, 1.0], 1.0) | {"irreversibility": share})
    assert ("no way back" in verdict) == told


@pytest.mark.parametrize(("steps", "more"), [(540, "--transitions"), (1_000, "--steps")])
def test_where_learning_stopped_early_more_steps_are_not_proposed(steps, more):
    result = enumerated([1.0, 0.5], 1.0) | {"steps": steps}
    result["settings"] = result["settings"] | {"steps": 1_000}
    assert verdict_of(result).next_step == f"more {more}."
