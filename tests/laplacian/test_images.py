"""Learning from images of some size: what φ sees of them is the same everywhere."""

import warnings

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing
from lapwing.data.experience import Experience
from lapwing.errors import ConfigError, LapwingNote
from lapwing.laplacian.bases import principal_components
from lapwing.laplacian.cost import cost_of_images
from lapwing.laplacian.forward import Forward

SIZE, SIDE = 80, 12


def screens(positions: np.ndarray) -> np.ndarray:
    """A bright square on a dark screen, at each of some positions in the plane."""
    images = np.zeros((len(positions), SIZE, SIZE, 1), np.uint8)
    for image, (row, column) in zip(images, positions, strict=True):
        image[row : row + SIDE, column : column + SIDE] = 250
    return images


def walks(places: int, episodes: int, length: int, seed: int = 0) -> np.ndarray:
    """Random walks along a line of positions, (episodes, length)."""
    rng = np.random.default_rng(seed)
    at = rng.integers(places, size=episodes)
    steps = []
    for _ in range(length):
        steps.append(at)
        at = np.clip(at + rng.choice([-1, 1], size=episodes), 0, places - 1)
    return np.stack(steps, axis=1)


@pytest.fixture(scope="module")
def learned():
    """φ of images that recur: a square at one of 17 places of a row."""
    places = walks(17, 40, 50)
    positions = np.stack([np.full(places.size, 30), places.reshape(-1) * 4], axis=1)
    experience = Experience(screens(positions), np.full(40, 50))
    with pytest.warns(LapwingNote, match="80 × 80 × 1"):
        return lapwing.learn(experience, dim=4, image_size=32), screens(positions[:60])


def test_the_eigenfunctions_of_a_line_are_cosines(learned):
    representation, _ = learned
    line = screens(np.stack([np.full(17, 30), np.arange(17) * 4], axis=1))
    found = representation.eigenfunctions(line)[:, 1]
    exact = np.cos(np.pi * (np.arange(17) + 0.5) / 17)
    assert abs(np.corrcoef(found, exact)[0, 1]) > 0.98


def test_whole_and_shrunk_images_give_the_same_in_numpy_and_jax(learned):
    representation, images = learned
    assert representation.shape == (80, 80, 1)
    assert representation.spec.shape == (27, 27, 1)
    whole = representation.eigenfunctions(images)
    small = representation.eigenfunctions(representation.spec.shrinking(images))
    assert np.allclose(whole, small, atol=1e-6)
    assert np.allclose(representation.eigenfunctions(jnp.asarray(images)), whole, atol=1e-4)
    assert np.allclose(representation.eigenfunctions(images[3]), whole[3], atol=1e-5)
    forward = Forward(representation, "eigenfunctions")
    assert forward.shape == (80, 80, 1)
    assert np.allclose(forward(images), whole[:, 1:], atol=1e-3)


def test_the_file_holds_how_images_are_shrunk(learned, tmp_path):
    representation, images = learned
    representation.save(tmp_path / "phi.safetensors")
    loaded = lapwing.load(tmp_path / "phi.safetensors")
    assert loaded.spec == representation.spec
    assert loaded.sha256() == representation.sha256()
    assert np.array_equal(loaded.phi(images), representation.phi(images))


def test_other_shapes_are_refused_by_the_shape_that_is_taken(learned):
    representation, _ = learned
    with pytest.raises(ConfigError, match=r"\(80, 80, 1\)"):
        representation.phi(np.zeros((81, 80, 1), np.uint8))


def test_a_module_of_pytorch_shrinks_as_numpy_does(learned):
    torch = pytest.importorskip("torch")
    representation, images = learned
    module = lapwing.to_torch(representation)
    assert module.shape == (80, 80, 1)
    found = module(torch.from_numpy(images)).numpy()
    assert np.allclose(found, representation.eigenfunctions(images)[:, 1:], atol=1e-3)


def test_a_wrapper_takes_images_as_the_environment_gives_them(learned):
    representation, images = learned

    class Still(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (80, 80, 1), np.uint8)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return images[0], {}

        def step(self, action):
            return images[1], 0.0, False, False, {}

    env = lapwing.LaplacianObservation(Still(), representation, append=False)
    assert np.allclose(env.reset()[0], representation.eigenfunctions(images[0])[1:], atol=1e-3)
    reward = lapwing.LaplacianReward(Still(), representation, goal=images[1], form="laplacian")
    reward.reset()
    assert reward.step(0)[1] == pytest.approx(0.0, abs=1e-4)


def test_continuous_images_are_learned_in_closed_form():
    rng = np.random.default_rng(1)
    steps = rng.integers(-3, 4, (30, 100, 2)).cumsum(axis=1) + 30
    positions = np.clip(steps, 0, SIZE - SIDE).reshape(-1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lapwing.errors.LapwingWarning)
        noisy = screens(positions) + rng.integers(0, 3, (3_000, 1, 1, 1), np.uint8)  # none recurs
        noisy[:, 0, 0, 0] = rng.integers(0, 256, 3_000)
        rep = lapwing.learn(Experience(noisy, np.full(30, 100)), dim=4, trials=1)
    assert rep.config["settings"]["estimator"] == "closed-form"
    assert np.isfinite(rep.eigenfunctions(screens(positions[::20]))).all()
    assert rep.config["held_out"]["eigenvalues"][1] < 0.3  # about 1 for a random function


def test_principal_components_are_those_of_the_covariance():
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((300, 6)) * [9, 7, 5, 3, 2, 1]) @ rng.standard_normal((6, 200))
    rows = (rows - rows.mean(axis=0)).astype(np.float32)
    found = principal_components(rows, 4)
    _, _, exact = np.linalg.svd(rows.astype(np.float64), full_matrices=False)
    assert np.allclose(np.linalg.svd(exact[:4] @ found, compute_uv=False), 1, atol=1e-3)
    assert principal_components(rows, 50).shape[1] == 6  # directions without variance are left out


def test_the_estimate_grows_with_pixels_images_and_networks():
    small, large = cost_of_images((32, 32, 3), 20_000), cost_of_images((64, 64, 3), 20_000)
    many = cost_of_images((32, 32, 3), 40_000)
    assert small[0] < large[0]
    assert small[1] < many[1]
    assert cost_of_images((32, 32, 3), 20_000, by_network=True)[0] > small[0]


@pytest.mark.parametrize(
    ("shape", "rows", "gib"),
    [
        ((53, 40, 3), 5_000, 0.96),
        ((53, 40, 3), 10_000, 1.26),
        ((53, 40, 3), 20_000, 1.98),
        ((105, 80, 3), 5_000, 1.69),
    ],
)
def test_the_memory_told_is_near_the_peak_that_was_measured(shape, rows, gib):
    """Of `lapwing learn gym:ALE/Freeway-v5` and, with 20,000 frames, Pong."""
    assert cost_of_images(shape, rows)[1] / 2**30 == pytest.approx(gib, rel=0.15)
