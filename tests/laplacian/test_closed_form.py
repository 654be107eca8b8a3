"""The closed form against walks whose eigenvalues are known, and against the loss that it minimises."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing
from lapwing.data import memory_map
from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, DatasetError, LapwingWarning
from lapwing.laplacian import basis_search, closed_form
from lapwing.laplacian.basis_search import choose
from lapwing.laplacian.batches import embed_batch
from lapwing.laplacian.chain import multi_step_eigenvalues
from lapwing.laplacian.closed_form import StageChoice, Study, Trial, fit, held_out_score
from lapwing.laplacian.evaluate import exact_spectrum
from lapwing.laplacian.objectives.drawing import exact_penalty, graph_drawing, surviving_scale
from lapwing.laplacian.target import open_target
from lapwing.runs.learn import reopen
from lapwing.settings.learn import LearnSettings
from tests.support.interruptions import Interrupted, stop_at
from tests.support.walks import (
    Known,
    around,
    cosines,
    experience_of,
    known_of_interval,
    known_of_ring,
    reflected,
)

pytestmark = pytest.mark.numeric

STEP = 0.12
QUICK = {"bumps": (60,), "bump_width": (2.0,), "slowness": (0.5,), "cutoff": (1e-7,)}
"""One trial that takes no time."""
STAGE = StageChoice(0.5, 60, 2.0, 1e-7)


@pytest.fixture(scope="module")
def interval() -> Experience:
    return experience_of(reflected(500, 31, STEP))


@pytest.fixture(scope="module")
def few() -> Experience:
    """Of a square, with more than five thousand states."""
    return experience_of(reflected(300, 21, STEP, dims=2))


def test_more_functions_than_there_are_bumps_are_refused(few):
    with pytest.raises(ConfigError, match="dim"):
        lapwing.learn(few, dim=1_000)


def hidden_in_noise(walks: np.ndarray, dims: int) -> np.ndarray:
    """Walks along some directions of a space, and noise as large along all the others."""
    rng = np.random.default_rng(0)
    noise = walks.std() * rng.standard_normal((*walks.shape[:2], dims - walks.shape[-1]))
    return np.concatenate([walks, noise], axis=2) @ np.linalg.qr(rng.standard_normal((dims, dims)))[0]


class TestKnownSpectra:
    """Statistical errors of λ are 1 to 2 % here."""

    def test_of_an_interval(self, interval):
        known = known_of_interval(interval.observations[:, 0], STEP, 5)
        rep = lapwing.learn(interval, dim=5)
        assert rep.spec.name == "bumps"
        np.testing.assert_allclose(rep.eigenvalues, known.eigenvalues, rtol=0.04, atol=1e-6)
        assert cosines(rep.eigenfunctions(interval.observations), known).min() > 0.98

    def test_of_a_ring(self):
        angles = around(500, 31, 0.4)
        known = known_of_ring(angles.ravel(), 0.4, 7)
        seen = experience_of(np.stack([np.cos(angles), np.sin(angles)], axis=-1))
        rep = lapwing.learn(seen, dim=7, **QUICK)
        np.testing.assert_allclose(rep.eigenvalues, known.eigenvalues, rtol=0.04, atol=1e-6)
        assert cosines(rep.eigenfunctions(seen.observations), known).min() > 0.98

    def test_of_a_ring_in_images(self):
        """A spot of light that moves around 8 x 8 pixels; three hues, of which one is dark."""
        angles = around(400, 21, 0.4)
        at = 4 + 2.5 * np.stack([np.sin(angles), np.cos(angles)], axis=-1)
        rows, columns = np.mgrid[:8, :8] + 0.5
        far = (rows - at[..., 0, None, None]) ** 2 + (columns - at[..., 1, None, None]) ** 2
        light = 255 * np.exp(-far / 4)
        images = np.stack([light, light / 2, np.zeros_like(light)], axis=-1).astype(np.uint8)
        seen = Experience.from_episodes(images)
        rep = lapwing.learn(seen, dim=5, encoder="bumps", **QUICK)
        known = known_of_ring(angles.ravel(), 0.4, 5)
        np.testing.assert_allclose(rep.eigenvalues, known.eigenvalues, rtol=0.1, atol=1e-6)
        assert cosines(rep.eigenfunctions(seen.observations), known).min() > 0.98

    @pytest.mark.parametrize("dims", [10, 100])
    def test_noise_in_many_dimensions_matters_little(self, interval, dims):
        seen = experience_of(hidden_in_noise(interval.observations.reshape(500, 31, 1), dims))
        rep = lapwing.learn(seen, dim=4, **(QUICK | {"slowness": (1.0,)}))
        known = known_of_interval(interval.observations[:, 0], STEP, 4)
        np.testing.assert_allclose(rep.eigenvalues[1:], known.eigenvalues[1:], rtol=0.05)
        assert cosines(rep.eigenfunctions(seen.observations), known).min() > 0.98

    def test_copies_and_constants_change_nothing(self, interval):
        plain = lapwing.learn(interval, dim=4, **QUICK)
        x = interval.observations
        copied = np.column_stack([x, np.full_like(x, 7), -3 * x + 1, x])
        other = lapwing.learn(Experience(copied, interval.lengths), dim=4, **QUICK)
        np.testing.assert_allclose(other.eigenvalues, plain.eigenvalues, rtol=0.01, atol=1e-6)

    @pytest.mark.slow
    def test_of_a_plane_with_walls(self):
        """Against the fine chain of PlaneFourRoom, whose eigenvalues come in pairs that differ by 3 %."""
        target = open_target("PlaneFourRoom", LearnSettings(transitions=300_000))
        rep = lapwing.learn("PlaneFourRoom", dim=11, transitions=300_000)
        truth, states = target.truth(), target.reference_states()
        spectrum = exact_spectrum(truth, 13)
        alike = np.random.default_rng(0).choice(len(states), 20_000, p=truth.rho)
        known = Known(spectrum.eigenvalues, spectrum.functions[alike])
        found = rep.eigenfunctions(states[alike])
        assert np.mean(np.abs(rep.eigenvalues[1:] / known.eigenvalues[1:11] - 1)) < 0.08
        assert cosines(found, known, nearly=0.05).min() > 0.95


def loss_of(encoder, pairs, beta: float, delta: float) -> float:
    """The loss at λ = 0 over one-step pairs, by the equations of `objectives`."""
    u, v = (jnp.asarray(embed_batch(encoder, end)) for end in pairs)
    both = jnp.concatenate([u, v])
    rho = jnp.full(len(both), 1 / len(both))
    return float(graph_drawing(u, v) + beta * exact_penalty(both, rho, delta))


def ends(experience: Experience) -> tuple[np.ndarray, np.ndarray]:
    here = experience.transitions(np.arange(experience.n_transitions))
    return experience.observe(here), experience.observe(here + 1)


class TestMinimum:
    BETA, DELTA = 2.0, 0.5

    @pytest.fixture
    def encoder(self, few):
        choice = (dataclasses.replace(STAGE, cutoff=1e-9),)
        return fit(few, choice, 4, oversample=2, seed=0, lam=0.0, beta=self.BETA, delta=self.DELTA)[0]

    @pytest.mark.parametrize("size", [1e-3, 1e-2, 0.1, 1.0])
    def test_no_other_linear_layer_has_a_lower_loss(self, encoder, few, size):
        pairs = ends(few)
        lowest = loss_of(encoder, pairs, self.BETA, self.DELTA)
        rng = np.random.default_rng(0)
        for _ in range(5):
            layer = jax.tree.map(
                lambda leaf: leaf * (1 + size * jnp.asarray(rng.standard_normal(leaf.shape), jnp.float32)),
                encoder.stages[-1].layer,
            )
            other = eqx.tree_at(lambda net: net.stages[-1].layer, encoder, layer)
            assert loss_of(other, pairs, self.BETA, self.DELTA) > lowest

    @pytest.mark.parametrize("turned", [False, True])
    def test_nor_has_another_scale_and_a_rotation_has_the_same(self, encoder, few, turned):
        pairs, rng = ends(few), np.random.default_rng(0)
        lowest = loss_of(encoder, pairs, self.BETA, self.DELTA)
        mix = np.linalg.qr(rng.standard_normal((6, 6)))[0] if turned else np.diag([1.02, 1, 1, 0.98, 1, 1])
        layer = encoder.stages[-1].layer
        numbers = tuple(jnp.asarray(mix.T @ np.asarray(leaf)) for leaf in (layer.weight, layer.bias))
        slots = lambda net: (net.stages[-1].layer.weight, net.stages[-1].layer.bias)  # noqa: E731
        found = loss_of(eqx.tree_at(slots, encoder, numbers), pairs, self.BETA, self.DELTA)
        assert found == pytest.approx(lowest, rel=1e-4) if turned else found > lowest

    @pytest.mark.parametrize(("lam", "delta"), [(0.0, 1.0), (0.8, 1.0), (0.0, 0.1)])
    def test_each_eigenfunction_has_the_size_that_the_penalty_leaves(self, few, lam, delta):
        encoder, _ = fit(few, (STAGE,), 6, oversample=0, seed=0, lam=lam, beta=1.0, delta=delta)
        phi = np.concatenate([embed_batch(encoder, end) for end in ends(few)]).astype(np.float64)
        here, there = np.split(phi, 2)
        second = phi.T @ phi / len(phi)
        drawing = (here - there).T @ (here - there) / (2 * len(here))
        left = np.diag(second) > 1e-6
        eigenvalues = np.diag(drawing)[left] / np.diag(second)[left]
        expected = surviving_scale(multi_step_eigenvalues(eigenvalues, lam), 1.0, delta) ** 2
        np.testing.assert_allclose(np.diag(second)[left], expected, atol=2e-4)
        np.testing.assert_allclose(second, np.diag(np.diag(second)), atol=2e-4)
        assert left.all() == (delta == 1.0)


class TestScore:
    def moments(self, quotients) -> tuple[np.ndarray, np.ndarray]:
        """Of functions that are orthonormal, with these Rayleigh quotients."""
        return np.diag(quotients).astype(float), np.eye(len(quotients))

    def test_is_the_sum_of_the_quotients_whatever_the_basis(self):
        measured = self.moments([0, 0.1, 0.2, 0.4])
        mix = np.random.default_rng(0).standard_normal((3, 3))
        for coefficients in (np.eye(4)[:, :3], np.eye(4)[:, :3] @ mix):
            score, values = held_out_score(coefficients, measured, 3)
            assert score == pytest.approx(0.3)
            np.testing.assert_allclose(values, [0, 0.1, 0.2], atol=1e-12)

    def test_a_function_that_is_missing_counts_one(self):
        copies = np.eye(4)[:, [0, 1, 1]]
        for coefficients in (np.eye(4)[:, :2], copies):
            assert held_out_score(coefficients, self.moments([0, 0.1, 0.2, 0.4]), 3)[0] == pytest.approx(1.1)

    def test_functions_that_over_fit_have_a_higher_one(self, few):
        """Narrow bumps, and as many as there are transitions for, trace single trajectories."""
        study = Study(few, 8, seed=0)
        wide, narrow = (study.trial(0.5, 400, (width,), (1e-9,)) for width in (4.0, 0.2))
        assert narrow[1] > 1.2 * wide[1]
        fitted, measured = (pairs.moments(study.basis(narrow[0])) for pairs in study.pairs)
        ritz = closed_form.rayleigh_ritz(*fitted, 8, cutoff=1e-9)
        assert ritz.eigenvalues.sum() < 0.7 * held_out_score(ritz.coefficients, measured, 8)[0]

    def test_what_is_chosen_has_the_lowest_or_nearly(self, few):
        tried = choose(few, 6, 0, 6, fixed={})
        scores = [trial.score for trial in tried]
        assert scores[0] < min(scores) / closed_form.BETTER
        assert 3 <= len(tried) <= 6
        assert tried[0].score == pytest.approx(sum(tried[0].eigenvalues))

    def test_behind_wide_bumps_that_win_alone_narrow_ones_are_tried(self, few):
        search = basis_search._Search(Study(few, 6, seed=0), 8, {}, None)
        wide = search.attempt((), 0.5, 150, (4.0,))
        best = search.behind_narrow(wide)
        _, narrow, second, *_ = search.done
        assert narrow.choice[0].bump_width in basis_search.NARROW
        assert second.choice[0] == narrow.choice[0]
        assert len(second.choice) == 2
        assert best.score == min(wide.score, *(trial.score for trial in search.done)) or best is wide
        if best is wide:
            assert min(trial.score for trial in search.done) >= closed_form.BETTER * wide.score

    def test_where_the_trials_are_used_up_they_are_not(self, few):
        search = basis_search._Search(Study(few, 6, seed=0), 2, {}, None)
        wide = search.attempt((), 0.5, 150, (4.0,))
        assert search.behind_narrow(wide) is wide
        assert search.done == [wide]

    @pytest.mark.parametrize("trials", [1, 2, 4])
    def test_no_more_are_tried_than_asked_for(self, few, trials):
        seen = []
        tried = choose(few, 4, 0, trials, fixed={}, on_trial=lambda *step: seen.append(step))
        assert len(tried) == trials
        assert [step[:2] for step in seen] == [(n, trials) for n in range(1 + trials)]
        assert {step[2]["score"] for step in seen[1:]} == {trial.score for trial in tried}

    @pytest.mark.parametrize("stages", [1, 2])
    def test_what_is_given_is_kept(self, few, stages):
        fixed = {name: value * stages for name, value in QUICK.items()}
        (only, *before) = choose(few, 4, 0, 6, fixed=fixed)
        assert only.choice == (STAGE,) * stages
        assert len(before) == stages - 1
        again = Trial.from_json(only.as_json())
        assert (again.choice, again.score, again.what) == (only.choice, only.score, only.what)

    def test_the_fit_has_the_functions_of_the_trial(self, few):
        """On the episodes of the trial, the second stage of the fit has the score of the trial."""
        fixed = {name: value * 2 for name, value in QUICK.items()}
        trial, *_ = choose(few, 5, 0, 6, fixed=fixed)
        encoder, spec = fit(few, trial.choice, 5, oversample=3, seed=0, lam=0.0, beta=1.0, delta=1.0)
        assert [sizes[1] for sizes in spec.stages] == [60, 60]
        study = Study(few, 5, seed=0)
        first = study.fitted(trial.choice[0])
        np.testing.assert_allclose(encoder.stages[0].centres, first.basis.centres, rtol=1e-5, atol=1e-5)
        second = study.behind(first).basis(trial.choice[1])
        np.testing.assert_allclose(encoder.stages[1].centres, second.centres, rtol=1e-4, atol=1e-4)


class TestBadData:
    @pytest.mark.parametrize("length", [2, 3, 10])
    def test_a_single_short_episode_gives_what_there_is(self, length):
        walk = experience_of(reflected(1, length, STEP, dims=2))
        with pytest.warns(LapwingWarning, match=r"of 6 eigenfunctions"):
            rep = lapwing.learn(walk, dim=6)
        assert rep.dim < 6
        assert np.isfinite(rep.eigenfunctions(walk.observations)).all()

    def test_episodes_of_two_steps(self, interval):
        pairs = np.stack(ends(interval), axis=1)
        rep = lapwing.learn(experience_of(pairs), dim=4, **QUICK)
        known = known_of_interval(interval.observations[:, 0], STEP, 4)
        np.testing.assert_allclose(rep.eigenvalues, known.eigenvalues, rtol=0.06, atol=1e-6)

    def test_what_is_all_the_same_where_it_is_fitted_is_refused(self):
        walk = np.concatenate([np.zeros((9_000, 2)), reflected(1, 1_000, STEP, dims=2)[0]])
        with pytest.raises(DatasetError, match="same"):
            Study(Experience(walk, [len(walk)]), 3, seed=0)

    def test_a_feature_that_changes_late_is_seen(self):
        """Scales come from all of the data, not from its beginning."""
        walks = reflected(500, 21, STEP, dims=2)
        walks[:250, :, 1] = 0.5
        scales = np.diag(Study(experience_of(walks), 3, seed=0).reduction.matrix)
        np.testing.assert_allclose(scales, 1 / walks.std(axis=(0, 1)), rtol=0.1)

    def test_more_functions_than_the_data_has(self):
        """Three distinct places, seen often, are enumerated; closed-form has them as vectors all the same."""
        places = np.random.default_rng(0).integers(0, 3, (50, 21, 1)).astype(np.float32)
        rep = lapwing.learn(experience_of(places), dim=3, estimator="closed-form")
        np.testing.assert_allclose(rep.eigenvalues, [0, 1, 1], atol=0.1)


class TestSameNumbers:
    def test_the_seed_decides(self, few):
        first, again, other = (lapwing.learn(few, dim=4, seed=seed, **QUICK) for seed in (0, 0, 1))
        assert first.sha256() == again.sha256() != other.sha256()
        np.testing.assert_allclose(first.eigenvalues, other.eigenvalues, rtol=0.05, atol=1e-6)

    def test_on_disk_and_in_memory(self, few, tmp_path, monkeypatch):
        monkeypatch.setattr(memory_map, "IN_MEMORY", 1_000)
        monkeypatch.setattr("lapwing.data.experience.IN_MEMORY", 1_000)
        np.save(tmp_path / "seen.npy", few.observations)
        mapped = Experience(np.load(tmp_path / "seen.npy", mmap_mode="r"), few.lengths)
        assert mapped.on_disk
        assert not few.on_disk
        assert lapwing.learn(mapped, dim=4, **QUICK).sha256() == lapwing.learn(few, dim=4, **QUICK).sha256()

    def test_where_fewer_are_tried_than_was_said_the_progress_is_whole_at_the_end(self, few):
        """Settings that are given leave one to be tried, of at most six."""
        seen = []
        lapwing.learn(few, dim=4, on_progress=lambda *step: seen.append(step), **QUICK)
        *_, last = (step for step in seen if step[0] == "trying out")
        assert last[1:3] == (1, 1)

    def test_saved_and_loaded(self, few, tmp_path):
        rep = lapwing.learn(few, dim=4, **{name: value * 2 for name, value in QUICK.items()})
        rep.save(tmp_path / "phi.safetensors")
        loaded = lapwing.load(tmp_path / "phi.safetensors")
        assert loaded.sha256() == rep.sha256()
        assert loaded.config["tried"] == rep.config["tried"]
        seen = few.observations[:50]
        np.testing.assert_array_equal(loaded.eigenfunctions(seen), rep.eigenfunctions(seen))

    def test_an_interrupted_run_goes_on_to_the_same_bits(self, few, tmp_path):
        whole = lapwing.learn(few, dim=4, out=tmp_path / "whole", **QUICK)
        with pytest.raises(Interrupted):
            lapwing.learn(few, dim=4, out=tmp_path / "cut", on_progress=stop_at("learning", 1), **QUICK)
        seen = []
        resumed = lapwing.learn(
            few,
            dim=4,
            out=tmp_path / "cut",
            resume=True,
            on_progress=lambda *step: seen.append(step[0]),
            **QUICK,
        )
        assert resumed.sha256() == whole.sha256()
        assert resumed.config["tried"] == whole.config["tried"]
        assert "trying out" not in seen
        assert reopen(tmp_path / "cut").result["eigenvalues"] == whole.eigenvalues.tolist()
