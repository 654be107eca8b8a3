import dataclasses
import re
import warnings

import numpy as np
import pytest

from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, DatasetError, LapwingWarning
from lapwing.laplacian import choose as resolving
from lapwing.laplacian.choose import bytes_of_eigenpairs, choose, resolve
from lapwing.laplacian.target import Target, open_target
from lapwing.mazes import parse_maze
from lapwing.settings.learn import LearnSettings, ResolvedSettings
from tests.support import exact

ROOM = parse_maze("#####\n#...#\n#...#\n#####\n", name="room")


def target_of(source, **settings) -> Target:
    return open_target(source, LearnSettings.from_keywords(settings))


def resolved(target: Target, **settings) -> ResolvedSettings:
    return resolve(LearnSettings.from_keywords(settings), target)


def quietly(target: Target, **settings) -> ResolvedSettings:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        return resolved(target, **settings)


def only_warning(target: Target, **settings) -> str:
    with pytest.warns(LapwingWarning) as caught:
        resolved(target, **settings)
    assert len(caught) == 1
    return str(caught[0].message)


@pytest.fixture(scope="module")
def true_four_room() -> Target:
    return target_of("FourRoom", true_chain=True)


@pytest.fixture(scope="module")
def walked() -> Target:
    return target_of("FourRoom", transitions=20_000)


@pytest.fixture(scope="module")
def continuous() -> Target:
    """Episodes of 20 steps of a slow random walk in the plane."""
    steps = 0.1 * np.random.default_rng(0).standard_normal((100, 21, 2))
    return open_target(Experience(steps.cumsum(axis=1).reshape(-1, 2), [21] * 100), LearnSettings())


@pytest.mark.parametrize(
    ("settings", "scale"),
    [({}, None), ({"preset": "paper"}, 1.0), ({"preset": "paper", "estimator": "exact"}, None)],
)
def test_only_small_batches_of_the_papers_recipe_leave_images_their_scale(settings, scale):
    images = target_of(ROOM, observation="image", transitions=2_000)
    assert quietly(images, dim=4, **settings).image_scale == scale


@pytest.mark.parametrize(("observation", "more"), [("position", {}), ("image", {"standardise": False})])
def test_a_scale_of_images_is_refused_where_none_are_standardised(observation, more):
    target = target_of(ROOM, observation=observation, transitions=2_000)
    with pytest.raises(ConfigError, match="image_scale"):
        quietly(target, dim=4, observation=observation, image_scale=2.0, **more)


OF_COLLECTING = {"lam_final", "num_envs", "observation_key", "image_scale"}
OF_BUMPS = {"bumps", "bump_width", "slowness", "cutoff"}


def left_open(settings: ResolvedSettings) -> set[str]:
    return {field.name for field in dataclasses.fields(settings) if getattr(settings, field.name) is None}


def test_nothing_is_left_open(true_four_room, continuous):
    assert left_open(resolved(true_four_room)) == OF_COLLECTING | OF_BUMPS
    assert left_open(resolved(continuous)) == OF_COLLECTING | {"fourier_bandwidth"}


def test_what_is_given_is_kept(true_four_room):
    given = {"dim": 3, "lam": 0.3, "beta": 2.5, "steps": 7, "oversample": 0, "learning_rate": 0.5}
    given |= {"fourier_bandwidth": 2.0, "encoder": "mlp", "estimator": "exact"}
    settings = quietly(true_four_room, **given)
    assert {name: getattr(settings, name) for name in given} == given
    assert quietly(true_four_room, lam=0.0).lam == 0


@pytest.mark.parametrize("dim", [2, 11, 40])
def test_lambda_lies_where_the_last_eigenvalue_separates(true_four_room, dim):
    """1 - λ near the d-th one-step eigenvalue."""
    settings = quietly(true_four_room, dim=dim)
    assert settings.lam == pytest.approx(1 - exact.spectrum("FourRoom")[0][dim - 1], abs=1e-4)
    assert 0 <= quietly(true_four_room, dim=1).lam < 1


def test_drawn_pairs_reach_half_an_episode_at_most():
    """λ/(1-λ) + 1 = 1/(1-λ) steps in the mean: 25 of 50."""
    target = target_of("FourRoom", transitions=20_000, episode_length=50)
    assert quietly(target, dim=2, estimator="pairwise").lam == pytest.approx(1 - 2 / 50)
    assert quietly(target, dim=2, estimator="exact").lam > 0.98


def test_lambda_of_continuous_data_is_estimated(continuous):
    settings = quietly(continuous, dim=4, estimator="pairwise")
    assert 0 < settings.lam <= 1 - 2 / 20 + 1e-9
    assert quietly(continuous, dim=4, lam=0.25, estimator="pairwise").lam == 0.25


def test_lambda_of_the_closed_form_is_that_of_validation_episodes(continuous):
    """No pair is drawn within an episode, so its length does not matter."""
    settings, tried = choose(LearnSettings(dim=4), continuous)
    assert settings.lam == pytest.approx(1 - tried[0].eigenvalues[3], abs=1e-4)
    assert quietly(continuous, dim=4, lam=0.25).lam == 0.25


@pytest.mark.parametrize(
    ("observation", "encoder"), [("index", "linear"), ("position", "fourier"), ("image", "conv")]
)
def test_the_encoder_follows_the_observation(observation, encoder):
    target = target_of("FourRoom", true_chain=True, observation=observation)
    assert quietly(target, observation=observation).encoder == encoder


def test_there_are_no_more_dimensions_than_states():
    settings = quietly(target_of(ROOM, true_chain=True))
    assert settings.dim == 6
    assert settings.oversample == 0
    settings = quietly(target_of(ROOM, true_chain=True), dim=4)
    assert settings.dim + settings.oversample == 6


@pytest.mark.parametrize(("dim", "more"), [(1, 4), (4, 4), (16, 4), (20, 5), (80, 20)])
def test_a_quarter_more_is_learned_than_asked_for(true_four_room, dim, more):
    assert quietly(true_four_room, dim=dim).oversample == more


@pytest.mark.parametrize(("dim", "beta"), [(20, 1.0), (50, 2.5), (100, 5.0)])
def test_the_papers_beta_grows_with_the_dimensions(walked, dim, beta):
    settings = quietly(walked, preset="paper", dim=dim)
    assert settings.beta == beta
    assert (settings.estimator, settings.lam, settings.encoder) == ("sampled", 0.0, "mlp")
    assert (settings.steps, settings.batch, settings.learning_rate) == (100_000, 32, 1e-3)
    assert (settings.oversample, settings.rotate, settings.hidden) == (0, False, (200, 200))


def ring(states: int) -> Target:
    walk = np.random.default_rng(0).choice([-1, 1], 60_000).cumsum() % states
    walk = np.concatenate([np.arange(states), walk])
    return open_target(Experience(walk, [len(walk)]), LearnSettings())


def test_the_estimator_follows_the_number_of_states(walked, continuous):
    assert quietly(walked).estimator == "exact"
    assert quietly(continuous).estimator == "closed-form"
    assert quietly(ring(6_000), dim=2, lam=0.5).estimator == "exact"


def test_states_whose_eigenfunctions_do_not_fit_into_memory(monkeypatch):
    many = ring(6_000)
    needed = bytes_of_eigenpairs(6_000, 2 + 4)
    monkeypatch.setattr(resolving, "memory_bytes", lambda: needed)
    assert quietly(many, dim=2, lam=0.5).estimator == "exact"
    monkeypatch.setattr(resolving, "memory_bytes", lambda: needed - 1)
    assert quietly(many, dim=2, lam=0.5).estimator == "pairwise"
    with pytest.raises(ConfigError, match=r"6,000.*--estimator pairwise"):
        resolved(many, dim=2, lam=0.5, estimator="exact")


def test_a_default_run_has_nothing_to_warn_of(walked, true_four_room):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolved(walked)
        resolved(true_four_room)


def test_few_pairs_survive():
    """Episodes of two steps, λ=.9: of (0,τ) and (1,τ) survive 1-λ² and 1-λ, on average 14.5 %."""
    target = target_of("FourRoom", transitions=10_000, episode_length=2)
    message = only_warning(target, dim=2, estimator="pairwise", lam=0.9)
    assert re.search(r"14% .*lam=0\.9", message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolved(target, dim=2, estimator="pairwise", lam=0.9, past_end="truncate")
        resolved(target, dim=2, estimator="pairwise", lam=0.5)


def test_data_that_is_too_short_for_lambda_is_refused():
    """Of 40 transitions in episodes of one, one in a thousand survives."""
    pairs = Experience(np.random.default_rng(0).normal(size=(80, 2)), np.full(40, 2))
    with pytest.raises(DatasetError, match=r"lam=0\.999: .* 0 of 40 pairs"):
        resolved(open_target(pairs, LearnSettings(held_out=0.0)), lam=0.999, dim=3, estimator="pairwise")


def test_states_that_were_never_visited():
    target = target_of("FourRoom", transitions=400, seed=3)
    assert target.experience is not None
    followed = target.experience.horizons > 0
    seen = set(target.experience.observations[followed]) | set(
        target.experience.observations[np.flatnonzero(followed) + 1]
    )
    with pytest.warns(LapwingWarning) as caught:
        resolved(target, dim=2)
    messages = " ".join(str(warning.message) for warning in caught)
    assert f"{152 - len(seen)} of 152 states are never visited" in messages


@pytest.mark.parametrize(("dim", "warned"), [(91, False), (92, True)])
def test_more_dimensions_than_d_has_positive_eigenvalues(true_four_room, dim, warned):
    """FACTS: FourRoom has 91, fewer than the paper's own d=100."""
    if warned:
        message = only_warning(true_four_room, dim=dim, beta=100.0)
        assert re.search(f"dim={dim} .* 91 ", message)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            resolved(true_four_room, dim=dim, beta=100.0)


@pytest.mark.parametrize(("maze", "beta", "survivors"), [("OneRoom", 5.0, 9), ("HardMaze", 0.5, 3)])
def test_only_some_dimensions_survive(maze, beta, survivors):
    """FACTS: the survivors of 20 at δ=.05 and λ=.9."""
    target = target_of(maze, true_chain=True)
    message = only_warning(target, dim=20, beta=beta, delta=0.05, lam=0.9)
    assert re.search(rf"only {survivors} of 20 .* beta={beta:g} .*--beta", message)


def test_data_that_falls_into_parts():
    here, there = np.arange(400) % 2, 2 + np.arange(400) % 2
    target = open_target(Experience(np.concatenate([here, there]), [400, 400]), LearnSettings())
    message = only_warning(target, dim=2, lam=0.0)
    assert "2 parts" in message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dim": 153}, "dim must be between 1 and 152 states, not 153; lower --dim"),
        ({"estimator": "exact", "lam_final": 0.5}, "lam_final"),
        ({"estimator": "exact", "past_end": "truncate"}, "past_end"),
        ({"encoder": "conv"}, r"encoder conv .*\(2,\)"),
    ],
)
def test_settings_that_do_not_go_with_the_data(walked, settings, words):
    with pytest.raises(ConfigError, match=words):
        resolved(walked, **settings)


@pytest.mark.parametrize("estimator", ["sampled", "pairwise"])
def test_the_true_chain_has_no_pairs_to_draw(true_four_room, estimator):
    with pytest.raises(ConfigError, match=f"true_chain.* {estimator}"):
        resolved(true_four_room, estimator=estimator)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"encoder": "bumps", "estimator": "pairwise"}, "encoder"),
        ({"encoder": "mlp", "estimator": "closed-form"}, "encoder"),
        ({"estimator": "closed-form", "steps": 100}, "steps"),
        ({"encoder": "bumps", "hidden": (8,)}, "hidden"),
        ({"estimator": "closed-form", "preset": "paper"}, "steps"),
        ({"bumps": (100,), "learning_rate": 0.1}, "learning_rate"),
        ({"bumps": (100,), "estimator": "pairwise"}, "bumps"),
        ({"cutoff": (1e-3,), "estimator": "sampled"}, "cutoff"),
    ],
)
def test_gradient_steps_and_the_closed_form_do_not_mix(continuous, settings, named):
    with pytest.raises(ConfigError, match=rf"^{named}\b"):
        resolved(continuous, **settings)


@pytest.mark.parametrize("settings", [{"encoder": "bumps"}, {"bumps": (20,)}, {"estimator": "closed-form"}])
def test_bumps_are_asked_for_by_any_of_their_names(walked, settings):
    """Of enumerated states as well, which have vectors."""
    chosen = quietly(walked, dim=3, trials=1, **settings)
    assert (chosen.estimator, chosen.encoder) == ("closed-form", "bumps")
    assert chosen.bumps is not None
    assert chosen.bumps[0] <= 150


def test_bumps_are_of_episodes_of_vectors_or_images(true_four_room):
    for target in (true_four_room, target_of("FourRoom", transitions=1_000, observation="index")):
        with pytest.raises(ConfigError, match="closed-form"):
            resolved(target, estimator="closed-form")


@pytest.mark.parametrize("name", ["steps", "hidden", "encoder", "batch"])
def test_a_setting_of_networks_asks_for_one(continuous, name):
    value = {"steps": 5, "hidden": (8,), "encoder": "mlp", "batch": 8}[name]
    assert quietly(continuous, dim=3, **{name: value}).estimator == "pairwise"


def test_continuous_states_cannot_be_summed_over(continuous):
    with pytest.raises(ConfigError, match=r"estimator exact.*--estimator pairwise"):
        resolved(continuous, estimator="exact")
